"""What each letter does, once for all pages: a letter that drops on one page does not show a difference on another."""

from collections.abc import Mapping
from typing import Final

LETTERS: Final[Mapping[str, frozenset[str]]] = {
    letter: frozenset(actions.split())
    for letter, actions in {
        "a": "add",
        "b": "edit_restore request_restore",
        "c": "go_on choose",
        "C": "compare",
        "d": "diff",
        "e": "rename change request_edit",
        "E": "export",
        "f": "fork",
        "g": "request_jump go_to_start",
        "G": "go_to_end",
        "h": "close",
        "i": "login",
        "j": "focus_block scroll move",
        "k": "focus_block scroll move",
        "l": "label",
        "m": "edit_mask",
        "M": "merge",
        "n": "hit next_match step focus_message",
        "N": "hit next_match step focus_message",
        "o": "request request_open request_enter subagent log",
        "p": "edit_pin",
        "q": "dismiss back",
        "r": "request_retry restart race",
        "s": "request_compact compact",
        "t": "take",
        "u": "undo undelete request_undo",
        "v": "toggle_here days sort",
        "V": "group",
        "w": "steer",
        "x": "stop remove delete edit_drop",
        "X": "stop_all",
        "y": "copy copy_block",
    }.items()
}
"""The actions a letter may have. An argument that says what an action does is joined to its name.

The answers to a question have letters of their own: there is nothing else on the screen then that takes one.
"""
