"""Helpers for the key bindings of screens and widgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from textual.binding import Binding, BindingsMap, BindingType

CHORD: Final = "ctrl+x"
"""The key that begins all sequences of two keys in the prompt."""
NO_KEY: Final = "no_key"
"""Value in Textual's keymap for an action that has no key. If the value were empty, the action
would keep its default key."""


def hidden(
    keys: str,
    action: str,
    description: str = "",
    *,
    id: str | None = None,  # noqa: A002 - as Binding has it
    priority: bool = False,
    system: bool = False,
) -> Binding:
    """Return a binding that the help lists, but the line of keys at the screen's bottom doesn't."""
    return Binding(keys, action, description, show=False, id=id, priority=priority, system=system)


def keys_of(
    bindings: Iterable[BindingType], keymap: Mapping[str, str]
) -> Mapping[str, list[Binding]]:
    """Return the bindings by key. If a key has several for one action, only the first is included.

    ``keymap`` (comma-separated keys by binding id) replaces the default keys of the bindings that
    it names.
    """
    found: dict[str, list[Binding]] = {}
    for own, binding in BindingsMap(bindings):
        keys = [own]
        if binding.id is not None and binding.id in keymap:
            keys = [key.strip() for key in keymap[binding.id].split(",") if key.strip()]
        for key in keys:
            bound = found.setdefault(key, [])
            if all(other.action != binding.action for other in bound):
                bound.append(binding)
    return found


def find_binding(name: str, bindings: Iterable[BindingType]) -> Binding | None:
    """Return the binding whose id is ``name``; None if there is none."""
    for binding in bindings:
        if isinstance(binding, Binding) and binding.id == name:
            return binding
    return None


EVERYWHERE: Final = (
    hidden("ctrl+z", "suspend_process", "suspend the program", id="suspend"),
    hidden("ctrl+l", "redraw", "draw the screen again", id="redraw", priority=True),
    hidden(
        "ctrl+p",
        "command_palette",
        "find a command, a key or a setting",
        id="palette",
        priority=True,
    ),
)
"""Bindings that work on every screen and whose keys the user can change."""
