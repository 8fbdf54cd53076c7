"""The user's own keys: which actions can have another one, and what is wrong with a ``[keys]`` table. Pure."""

from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches

from textual.binding import Binding, BindingType
from textual.keys import Keys

from tui_agent.lazy import dataclass

_MODIFIERS = frozenset({"ctrl", "alt", "shift", "super", "hyper", "meta"})
_NAMES = frozenset(key.value for key in Keys) | {f"f{number}" for number in range(1, 25)}
_PUNCTUATION = frozenset(
    {
        "slash", "backslash", "question_mark", "full_stop", "comma", "semicolon", "colon", "minus", "plus",
        "equals_sign", "underscore", "asterisk", "ampersand", "at", "number_sign", "dollar_sign", "percent_sign",
        "exclamation_mark", "tilde", "circumflex_accent", "grave_accent", "vertical_line", "quotation_mark",
        "apostrophe", "left_square_bracket", "right_square_bracket", "left_parenthesis", "right_parenthesis",
        "less_than_sign", "greater_than_sign", "space",
    }
)  # fmt: skip
MAIN = "main"
"""The place where the prompt has the focus most of the time."""

RESERVED = frozenset({"escape", "enter", "ctrl+c", "ctrl+q"})
"""Keys that always do the same: without them one could not get out again."""


@dataclass(frozen=True, slots=True)
class Rebindable:
    """An action that can have another key. ``place`` is where it works: actions of one place need different keys."""

    id: str
    keys: str
    help: str
    place: str


def rebindable(place: str, bindings: Iterable[BindingType]) -> list[Rebindable]:
    found = [binding for binding in bindings if isinstance(binding, Binding) and binding.id]
    return [Rebindable(binding.id or "", binding.key, binding.description.lower(), place) for binding in found]


def checked(
    keymap: Mapping[str, str], known: Iterable[Rebindable], writing: Container[str] = frozenset()
) -> tuple[dict[str, str], list[str]]:
    """Return the keys that can be used, and a sentence for each that can't.

    ``writing`` are the keys the prompt needs; actions of the main screen can't have them, nor plain characters.
    """
    actions = {action.id: action for action in known}
    good: dict[str, str] = {}
    problems: list[str] = []
    for name, keys in keymap.items():
        problem = _problem(name, keys, actions)
        if problem is None and actions[name].place == MAIN:
            problem = _for_writing(name, keys, writing)
        if problem is None:
            good[name] = ",".join(key.strip() for key in keys.split(","))
        else:
            problems.append(problem)
    for name in list(good):
        other = next((taken for taken in _taken(name, good, actions) if taken != name), None)
        if other is not None:
            problems.append(f"[keys] {name} = “{good[name]}”: {other} has this key already.")
            del good[name]
    return good, problems


def _problem(name: str, keys: str, actions: Mapping[str, Rebindable]) -> str | None:
    if name not in actions:
        close = get_close_matches(name, actions, 1)
        meant = f" Did you mean {close[0]}?" if close else " /keys lists them."
        return f"[keys] has no action “{name}”.{meant}"
    for key in keys.split(","):
        if not is_key(key.strip()):
            return f"[keys] {name} = “{keys}”: “{key.strip()}” is not a key; write it like ctrl+g, f5 or alt+up."
        if key.strip() in RESERVED:
            return f"[keys] {name} = “{keys}”: {key.strip()} can't be given to anything else."
    return None


def _for_writing(name: str, keys: str, writing: Container[str]) -> str | None:
    for key in (key.strip() for key in keys.split(",")):
        if key in writing or len(key) == 1 or key in _PUNCTUATION:
            return f"[keys] {name} = “{keys}”: {key} is for writing in the prompt."
    return None


def _taken(name: str, good: Mapping[str, str], actions: Mapping[str, Rebindable]) -> Iterable[str]:
    wanted = set(good[name].split(","))
    for other in actions.values():
        if other.place == actions[name].place and wanted & set(good.get(other.id, other.keys).split(",")):
            yield other.id


def is_key(key: str) -> bool:
    """Whether a text names a key as Textual does: a name or a character, with modifiers before it."""
    *modifiers, last = key.split("+")
    if not set(modifiers) <= _MODIFIERS or len(set(modifiers)) != len(modifiers):
        return False
    return key in _NAMES or last in _NAMES or last in _PUNCTUATION or (len(last) == 1 and last.isprintable())
