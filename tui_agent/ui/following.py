"""Has the interface follow the settings: at the start, and when they changed while the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.own_keys import use_keys

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen
    from tui_agent.ui.services import UiSettings


def follow(main: MainScreen) -> tuple[str, ...]:
    """Read the settings anew; what can follow at once does. Returns the settings that changed.

    Raises:
        ConfigError: they can't be used; everything stays as it was.
    """
    read = main.services.reread_settings()
    if read is None:
        return ()
    use(main, read.ui)
    main.show_facts()
    return read.changed


def use(main: MainScreen, settings: UiSettings) -> None:
    """Look and behave as the interface's settings say."""
    main.look_like(settings)
    main.keymap = use_keys(main, settings.keys)
    main.prompt.cursor_blink = settings.cursor_blink and not settings.reduced_motion
    if main.view is not None:
        main.view.question.wait_for(grace=settings.permission_grace, typing_pause=settings.typing_pause)


def told(changed: tuple[str, ...]) -> str:
    """Return a sentence about settings that were read anew: what counts now, and what later and from when on."""
    from tui_agent.setting_rows import counts

    if not changed:
        return "The settings are read anew; nothing changed."
    by_time: dict[str, list[str]] = {}
    for key in changed:
        by_time.setdefault(counts(key) or "now", []).append(key)
    times = sorted(by_time.items(), key=lambda item: item[0] != "now")
    parts = [f"{', '.join(keys)} {'counts' if len(keys) == 1 else 'count'} {when}" for when, keys in times]
    return f"Read anew. {'; '.join(parts)}."
