"""The keys of screens and widgets."""

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
    """A key that the help lists, and no line of keys shows."""
    return Binding(keys, action, description, show=False, id=id, priority=priority, system=system)
