"""Gives actions the keys the user wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen


def use_keys(main: MainScreen, keymap: Mapping[str, str]) -> Mapping[str, str]:
    """Take the keys that can be used, say what is wrong with the others, and return those taken."""
    if not keymap:
        if main.keymap:
            main.app.set_keymap({})
        return {}
    from tui_agent.ui.key_help import rebindable_actions, writing_keys
    from tui_agent.ui.keymap import checked

    good, problems = checked(keymap, rebindable_actions(), writing_keys())
    main.app.set_keymap(good)
    for problem in problems:
        main.notify(problem, severity="warning", markup=False)
    return good
