"""Checks the user's keymap (``[keys]`` in the settings) and applies it to the full-screen program."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from string import punctuation
from typing import Any, NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import Keys, _character_to_key
from textual.screen import Screen

from tui_agent.files.atomic import write_atomically
from tui_agent.lazy import frozen
from tui_agent.ui.bindings import CHORD, EVERYWHERE, NO_KEY

_MODIFIERS = frozenset({"ctrl", "alt", "shift", "super", "hyper", "meta"})
_NAMES = frozenset(key.value for key in Keys) | {f"f{number}" for number in range(1, 25)}
_PUNCTUATION = frozenset(map(_character_to_key, f"{punctuation} "))
MAIN = "main"
"""Value of `Rebindable.place` for the main screen's actions. On this screen, the prompt usually has
the focus."""
PROMPT = "prompt"
"""Value of `Rebindable.place` for the prompt's actions. Keys of `PROMPT` and `MAIN` work at the
same time."""
QUESTION = "question"
"""Value of `Rebindable.place` for the actions of a question above the prompt. All other keys are
typed into the prompt."""
EVERYWHERE_PLACE = "everywhere"
"""Value of `Rebindable.place` for actions that work on every page, such as redrawing the screen."""
_TYPING_PLACES = frozenset({MAIN, PROMPT, QUESTION, EVERYWHERE_PLACE})
"""Values of `Rebindable.place` for actions whose keys can't be plain characters, because these are
typed as text."""
_SEQUENCE_PLACES = frozenset({MAIN, PROMPT})
"""Values of `Rebindable.place` for the actions that can have sequences of two keys."""

RESERVED = frozenset({"escape", "enter", "ctrl+c", "ctrl+q"})
"""Keys that can't be rebound, because the user needs them to leave a page or the program."""

_NEVER_SECOND = frozenset({"escape", "ctrl+q"})
"""Keys that can't end a sequence: the first cancels it, the second always quits."""

_SENT_AS = {
    "ctrl+m": "enter",
    "ctrl+i": "tab",
    "ctrl+h": "backspace",
    "ctrl+[": "escape",
    "ctrl+left_square_bracket": "escape",
}
"""Keys that most terminals can't tell from another key, each with that key."""

_FIRST_EVERYWHERE = frozenset(
    binding.id for binding in EVERYWHERE if binding.id is not None and binding.priority
)
"""Actions whose keys never reach the prompt, not even as the second key of a sequence."""

LAST_KEY_NOTICE = "keys-told.txt"
"""Name of the file that contains the last notice about actions that lost a key."""

NEW_KEY_HINT = 'You can set another key in [keys], or "" for no key.'
"""Last sentence of the notice about actions that lost a key. It tells the user what to do."""


@frozen
class Rebindable:
    """An action whose keys (comma-separated) the user can change.

    ``help`` describes the action. ``place`` is the part of the interface in which the keys work;
    two actions of the same place can't share a key. Keys of the main screen and the prompt can be
    sequences, such as ``ctrl+x ctrl+e``, which only work in the prompt.
    """

    id: str
    keys: str
    help: str
    place: str


class CheckedKeys(NamedTuple):
    """The result of `check_keymap`: the valid part of a keymap, and sentences about the rest."""

    keymap: dict[str, str]
    """The keys of each action by its id, separated by commas; "" for an action without a key."""
    problems: list[str]
    """A sentence for each entry of the keymap that is ignored, with the reason."""
    taken: list[str]
    """A sentence for each action that lost a default key to another action."""


def check_keymap(keymap: Mapping[str, str], known: Iterable[Rebindable]) -> CheckedKeys:
    """Check a keymap (action id to keys) against the ``known`` actions.

    Actions of the main screen, the prompt and questions, and actions that work on every page, can't
    be bound to plain characters. If another action that works at the same time has a configured key
    only by default, it loses the key. If two actions that work at the same time are set to the same
    key, the setting of the second is ignored.
    """
    actions = {action.id: action for action in known}
    good: dict[str, str] = {}
    problems: list[str] = []
    first = _keys_before_prompt(keymap, actions)
    for name, keys in keymap.items():
        problem = _problem(name, keys, actions, first)
        if problem is None:
            good[name] = ",".join(_split(keys))
        else:
            problems.append(problem)
    for name in reversed(list(good)):
        wanted = _wanted(actions[name], good)
        for other in _rivals(actions[name], actions):
            if other.id in good and wanted & set(_split(good[other.id])):
                keys = good.pop(name)
                problems.append(
                    f"[keys] {name} = “{keys}” is ignored: {other.id} is set to this key, too."
                )
                break
    lost, taken = _take_keys(good, actions)
    return CheckedKeys({**good, **lost}, problems, taken)


def _wanted(action: Rebindable, keymap: Mapping[str, str]) -> set[str]:
    """Return the keys that a keymap gives to an action in addition to its default keys.

    Default keys are left out, because actions that share a default key never work at the same time.
    """
    return set(_split(keymap[action.id])) - set(_split(action.keys))


def _rivals(action: Rebindable, actions: Mapping[str, Rebindable]) -> list[Rebindable]:
    """Return the other actions that work at the same time, so that their keys may clash."""
    others = []
    for other in actions.values():
        if other.id != action.id and _work_together(other, action):
            others.append(other)
    return others


def _take_keys(
    good: Mapping[str, str], actions: Mapping[str, Rebindable]
) -> tuple[dict[str, str], list[str]]:
    """Return the keys left for actions that lose default keys, and a sentence about each loss.

    ``good`` contains the configured keys by action id. These keys are taken from all other actions.
    """
    lost: dict[str, str] = {}
    notices: list[str] = []
    for name in good:
        wanted = _wanted(actions[name], good)
        for other in _rivals(actions[name], actions):
            keys = _split(lost.get(other.id, other.keys))
            taken = [key for key in keys if key in wanted]
            if other.id in good or not taken:
                continue
            lost[other.id] = ",".join(key for key in keys if key not in wanted)
            if len(taken) == 1:
                notices.append(f"{taken[0]} now runs {name}; {other.id} has lost this key.")
            else:
                these = " and ".join(taken)
                notices.append(f"{these} now run {name}; {other.id} has lost these keys.")
    return lost, notices


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


def _work_together(one: Rebindable, other: Rebindable) -> bool:
    return one.place == other.place or {one.place, other.place} <= _TYPING_PLACES


def _keys_before_prompt(
    keymap: Mapping[str, str], actions: Mapping[str, Rebindable]
) -> Mapping[str, str]:
    """Return the keys that never reach the prompt, each with the action that it runs."""
    found = {}
    for name in _FIRST_EVERYWHERE.intersection(actions):
        for key in _split(keymap.get(name, actions[name].keys)):
            found[key] = name
    return found


def _problem(
    name: str, keys: str, actions: Mapping[str, Rebindable], first: Mapping[str, str]
) -> str | None:
    """Return a sentence that says why an action can't have the configured keys; None if it can.

    ``first`` contains the keys that never reach the prompt, each with the action that it runs.
    """
    if name not in actions:
        close = get_close_matches(name, actions, 1)
        meant = " /keys lists them."
        if close:
            meant = f" Did you mean {close[0]}?"
        return f"[keys] names an unknown action: “{name}”.{meant}"
    for key in _split(keys):
        if problem := _key_problem(key, actions[name], first):
            return f"[keys] {name} = “{keys}”: {problem}"
    return None


def _key_problem(key: str, action: Rebindable, first: Mapping[str, str]) -> str | None:
    """Return why an action can't have a key or sequence of keys; None if it can.

    ``first`` contains the keys that never reach the prompt, each with the action that it runs.
    """
    one, _, second = key.partition(" ")
    for pressed in filter(None, (one, second)):
        if not _is_key(pressed):
            return f"“{key}” is not a key; write it like ctrl+g, f5 or alt+up."
        if other := _SENT_AS.get(pressed):
            return f"most terminals can't tell {pressed} from {other}."
    if second:
        return _sequence_problem(one, second, action, first)
    if key in RESERVED or (key == CHORD and key not in _split(action.keys)):
        return f"{key} can't be rebound."
    if action.place in _TYPING_PLACES and (len(key) == 1 or key in _PUNCTUATION):
        return f"{key} is needed for typing in the prompt."
    return None


def _sequence_problem(
    one: str, second: str, action: Rebindable, first: Mapping[str, str]
) -> str | None:
    if action.place not in _SEQUENCE_PLACES or one != CHORD:
        return f"only the prompt can have sequences of two keys; they begin with {CHORD}."
    if second in _NEVER_SECOND:
        return f"{second} can't be rebound, not even in a sequence."
    if second in first:
        return f"{second} can't end a sequence, because it runs {first[second]} on every page."
    return None


def _is_key(key: str) -> bool:
    """Return True if a text is a key in Textual's notation, such as ctrl+g, f5 or alt+up."""
    *modifiers, last = key.split("+")
    if not set(modifiers) <= _MODIFIERS or len(set(modifiers)) != len(modifiers):
        return False
    return (
        key in _NAMES
        or last in _NAMES
        or last in _PUNCTUATION
        or (len(last) == 1 and last.isprintable())
    )


def rebindable_actions(own: Sequence[BindingType]) -> list[Rebindable]:
    """Return all actions whose keys the user can change, that is, those whose bindings have an id.

    They belong to the main screen (its bindings are ``own``), to the program, the prompt,
    questions, the conversation and the context map.
    """
    from tui_agent.ui.screens.context import ContextScreen
    from tui_agent.ui.widgets.prompt import Prompt
    from tui_agent.ui.widgets.question_prompt import QuestionChoices
    from tui_agent.ui.widgets.transcript.pane import BlockPane

    places = {
        MAIN: own,
        EVERYWHERE_PLACE: EVERYWHERE,
        PROMPT: Prompt.BINDINGS,
        QUESTION: QuestionChoices.BINDINGS,
        "conversation": BlockPane.BINDINGS,
        "context map": ContextScreen.BINDINGS,
    }
    actions = []
    for place, bindings in places.items():
        for binding in bindings:
            if isinstance(binding, Binding) and binding.id:
                keys = "" if binding.key == NO_KEY else binding.key
                actions.append(Rebindable(binding.id, keys, binding.description.lower(), place))
    return actions


def use_keys(main: Screen[Any], keymap: Mapping[str, str], last_notice: Path) -> Mapping[str, str]:
    """Replace the keymap (keys by action id) with the user's, and return the valid part of it.

    Each invalid setting is shown as a warning. One notice names the actions that lost a key. It is
    stored in the file ``last_notice``, so that it is not repeated, even at later starts.
    """
    found = check_keymap(keymap, rebindable_actions(main.BINDINGS))
    main.app.set_keymap({name: keys or NO_KEY for name, keys in found.keymap.items()})
    for problem in found.problems:
        main.notify(problem, severity="warning")
    notice = ""
    if found.taken:
        notice = " ".join([*found.taken, NEW_KEY_HINT])
    if notice != _read(last_notice):
        with suppress(OSError):
            write_atomically(last_notice, notice.encode())
        if notice:
            main.notify(notice)
    return found.keymap


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
