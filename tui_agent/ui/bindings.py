"""Helper for the key bindings of screens and widgets."""

from __future__ import annotations

from textual.binding import Binding


def hidden(
    keys: str,
    action: str,
    description: str = "",
    *,
    id: str | None = None,  # noqa: A002 - as Binding has it
    priority: bool = False,
    system: bool = False,
) -> Binding:
    """Return a binding that the help lists, but the line of keys at the bottom doesn't."""
    return Binding(keys, action, description, show=False, id=id, priority=priority, system=system)
