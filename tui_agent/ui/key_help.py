"""The keys of the full-screen program, as the help lists them, the most useful first."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.binding import BindingType
from textual.screen import Screen

from tui_agent.ui.keymap import MAIN, Rebindable, checked, rebindable

PROMPT_KEYS: tuple[tuple[str, str], ...] = (
    ("enter", "send; while it works: steer it after the current step"),
    ("alt+enter", "while it works: send when it is done"),
    ("escape ctrl+c", "stop the agent; twice, prompt empty: go back, or quit"),
    ("tab", "into the conversation: j k move, space folds, o opens"),
    ("shift+enter ctrl+j", "new line"),
    ("up down", "earlier messages, from the first or last line"),
    ("/name @file #12", "a command, a file, an entry; tab completes"),
    ("!command", "run a command; !!command keeps it from the model"),
    ("pageup pagedown", "scroll; ctrl+home and ctrl+end go to the ends"),
    ("ctrl+p", "find a command, a key or a setting"),
    ("alt+up", "take back the last message that waits"),
    ("any other letter", "in the conversation: begins a message, as long as it does nothing to the block"),
    ("ctrl+c", "copy what is selected, or clear the prompt"),
    ("ctrl+v", "paste an image from the clipboard"),
    ("ctrl+e", "write in $VISUAL or $EDITOR"),
    ("ctrl+z", "suspend; fg in the shell brings it back"),
    ("ctrl+_ ctrl+y", "undo and redo what was written"),
    ("ctrl+q ctrl+d", "quit; ctrl+d only in an empty prompt"),
)
"""Keys that are not commands."""


def writing_keys() -> frozenset[str]:
    """Return the keys that the prompt needs."""
    from textual.binding import BindingsMap
    from textual.widgets import TextArea

    from tui_agent.ui.widgets.prompt import Prompt

    return frozenset(BindingsMap([*TextArea.BINDINGS, *Prompt.BINDINGS]).key_to_bindings)


def rebindable_actions(own: Sequence[BindingType]) -> list[Rebindable]:
    """Return every action that can have another key; ``own`` are those of the main screen."""
    from tui_agent.ui.screens.context import ContextScreen
    from tui_agent.ui.widgets.transcript.pane import BlockPane

    return [
        *rebindable(MAIN, own),
        *rebindable("conversation", BlockPane.BINDINGS),
        *rebindable("context map", ContextScreen.BINDINGS),
    ]


def use_keys(main: Screen[Any], before: Mapping[str, str], keymap: Mapping[str, str]) -> Mapping[str, str]:
    """Give actions the keys the user wants in place of those ``before``.

    Says what is wrong with keys that can't be used, and returns those taken.
    """
    if not keymap:
        if before:
            main.app.set_keymap({})
        return {}
    good, problems = checked(keymap, rebindable_actions(main.BINDINGS), writing_keys())
    main.app.set_keymap(good)
    for problem in problems:
        main.notify(problem, severity="warning", markup=False)
    return good
