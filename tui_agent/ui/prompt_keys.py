"""Descriptions of the prompt's keys, shown in the help and in the list that ``?`` opens."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from tui_agent.ui.bindings import CHORD

if TYPE_CHECKING:
    from tui_agent.ui.key_help import Rebindable

_KEYS_IN_TEXT: Final = re.compile(r"(?:ctrl|alt|shift)\+\w+|\b(?:up|j|k|o)\b")
"""Matches the names of keys in the sentences of `PROMPT_KEYS`. Any other single letter in a
sentence is a word."""
_MEANT: Final = {"o": "transcript.open"}
"""Ids of the actions that `PROMPT_KEYS` describes, by key. A key is listed here only if the
described action is not the first action with this default key."""

PROMPT_KEYS: Final[tuple[tuple[str, str], ...]] = (
    ("enter", "send (during a run: after the step; twice: at once)"),
    ("alt+enter", "during a run: queue the message until the run ends"),
    ("escape ctrl+c", "stop the run; twice in an empty prompt: rewind or quit"),
    ("tab", "read the conversation: j k move, o opens whole outputs"),
    ("shift+enter ctrl+j", "start a new line; enter after a backslash does, too"),
    ("up down", "older or newer messages, from the first or last line"),
    ("/name @file #12", "run a command, attach a file or image, name an entry"),
    ("!command", "run a shell command; !!command keeps it from the model"),
    ("pageup pagedown", "scroll; ctrl+home and ctrl+end go to the ends"),
    ("ctrl+p", "find a command, a key or a setting"),
    ("alt+up", "take back the last waiting message; in an empty prompt, up does, too"),
    (
        "any other letter",
        "in the conversation: starts a message, unless it is a key of the block",
    ),
    ("ctrl+c", "copy the selection, or clear the prompt; up restores its text"),
    ("ctrl+x ctrl+s", "in sequence: put the draft away; again: bring it back"),
    ("ctrl+x ctrl+b", "in sequence: move the running command to the background"),
    ("ctrl+v", "attach the image in the clipboard"),
    ("ctrl+x ctrl+e", "in sequence: edit the prompt in $VISUAL or $EDITOR"),
    ("ctrl+a ctrl+e", "start and end of the line; alt+left and alt+right move by words"),
    ("ctrl+z", "suspend the program; fg in the shell resumes it"),
    (
        "ctrl+k ctrl+u ctrl+w",
        "erase to the line's end or start, or a word; ctrl+y inserts it again",
    ),
    ("ctrl+_ alt+_", "undo and redo edits of the prompt"),
    ("ctrl+q ctrl+d", "quit; ctrl+d only in an empty prompt"),
)
"""The prompt's default keys and what each of them does. The most useful keys come first."""


def prompt_keys(
    actions: Iterable["Rebindable"], keymap: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return `PROMPT_KEYS` with the user's own keys in place of the default keys.

    Rows that have no key left are omitted. ``actions`` are all actions whose keys can be changed;
    ``keymap`` contains the user's keys by action id.
    """
    if not keymap:
        return PROMPT_KEYS
    used: dict[str, str] = {}
    for action in actions:
        for key in action.keys.split(","):
            if _MEANT.get(key, action.id) != action.id:
                continue
            # If several actions have this key by default, `PROMPT_KEYS` describes the first of
            # them.
            used.setdefault(key, keymap.get(action.id, key).replace(",", " "))

    def now_of(key: str) -> str:
        return used.get(key.replace("+_", "+underscore"), key).replace("+underscore", "+_")

    rows = []
    for keys, text in PROMPT_KEYS:
        if keys.startswith(CHORD):
            names = [keys]
        else:
            names = keys.split()
        shown = " ".join(filter(None, dict.fromkeys(map(now_of, names))))
        if shown:
            rows.append(
                (shown, _KEYS_IN_TEXT.sub(lambda found: now_of(found[0]) or "no key", text))
            )
    return tuple(rows)
