"""Follows the settings when they changed while the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.app.controller import Controller


def reload(controller: Controller) -> Sequence[str]:
    """Read the settings again and apply those that take effect at once. Returns the keys of those that changed.

    Raises:
        ConfigError: they can't be used; everything stays as it was.
    """
    changed = controller.services.reread_settings()
    controller.frontend.apply_settings(controller.services.config())
    controller.frontend.refresh_facts()
    return changed


def describe_changes(changed: Sequence[str]) -> str:
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
