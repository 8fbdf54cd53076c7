"""Follows the settings when they changed while the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.app.desk import Desk


def reload(desk: Desk) -> tuple[str, ...]:
    """Read the settings anew; what can follow at once does. Returns the settings that changed.

    Raises:
        ConfigError: they can't be used; everything stays as it was.
    """
    read = desk.services.reread_settings()
    if read is None:
        return ()
    desk.face.apply_ui_settings(read.ui)
    desk.face.refresh_facts()
    return read.changed


def describe_changes(changed: tuple[str, ...]) -> str:
    """Return a sentence about settings that were read anew: what counts now, and what later and from when on."""
    from tui_agent.setting_rows import counts

    if not changed:
        return "The settings were read again; nothing changed."
    by_time: dict[str, list[str]] = {}
    for key in changed:
        by_time.setdefault(counts(key) or "now", []).append(key)
    times = sorted(by_time.items(), key=lambda item: item[0] != "now")
    parts = [f"{', '.join(keys)} {'takes' if len(keys) == 1 else 'take'} effect {when}" for when, keys in times]
    return f"The settings were read again: {'; '.join(parts)}."
