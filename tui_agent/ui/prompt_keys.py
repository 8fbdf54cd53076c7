"""The keys of the prompt in words, for the help and the list that a question mark shows."""

from typing import Final

PROMPT_KEYS: Final[tuple[tuple[str, str], ...]] = (
    ("enter", "send; during a run: after the step; again: at once"),
    ("alt+enter", "during a run: queue the message until the run ends"),
    ("escape ctrl+c", "stop; twice in an empty prompt: go back, or quit"),
    ("tab", "into the conversation: j k move, o opens whole outputs"),
    ("shift+enter ctrl+j", "new line; so does enter after a backslash"),
    ("up down", "earlier messages, from the first or last line"),
    ("/name @file #12", "a command, attach a file or image, an entry"),
    ("!command", "run a shell command; !!command keeps it from the model"),
    ("pageup pagedown", "scroll; ctrl+home and ctrl+end go to the ends"),
    ("ctrl+p", "find a command, a key or a setting"),
    ("alt+up", "take back the last waiting message; up does in an empty prompt"),
    (
        "any other letter",
        "in the conversation: starts a message, unless it is a key of the block",
    ),
    ("ctrl+c", "copy the selection, or clear the prompt; up restores its text"),
    ("ctrl+x ctrl+s", "in sequence: put the draft away; once more: bring it back"),
    ("ctrl+x ctrl+b", "in sequence: let the running command go on as a background job"),
    ("ctrl+v", "attach the image in the clipboard"),
    ("ctrl+x ctrl+e", "in sequence: edit the prompt in $VISUAL or $EDITOR"),
    ("ctrl+a ctrl+e", "start and end of the line; alt+left and alt+right move by words"),
    ("ctrl+z", "suspend the program; fg in the shell resumes it"),
    (
        "ctrl+k ctrl+u ctrl+w",
        "erase to the end or start of the line, or a word; ctrl+y inserts it",
    ),
    ("ctrl+_ alt+_", "undo and redo edits of the prompt"),
    ("ctrl+q ctrl+d", "quit; ctrl+d only in an empty prompt"),
)
"""Keys and their effects by default, most useful first."""
