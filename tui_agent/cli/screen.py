"""Starts the full-screen program, drawing the prompt first and then loading everything else.

At the end, prints how to continue, or starts the detached run in which the session continues.
"""

import asyncio
import gc
import os
import tomllib
from argparse import Namespace
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from tui_agent.cli.ending import ENDING, end_in_time, listening
from tui_agent.isolation import DETACHED_NAME_VARIABLE
from tui_agent.paths import cache_dir, config_dir
from tui_agent.text_files.encodings import settings_text

if TYPE_CHECKING:
    from tui_agent.app.services import AppServices, FirstView, Look
    from tui_agent.cli.controller_wiring import ControllerWiring
    from tui_agent.cli.wiring import Wiring


async def run_screen(arguments: Namespace) -> int:
    """Run the full-screen program until the user quits; return the exit code.

    Afterwards, starts the detached run in which the session continues, if the user wanted one. If
    loading the settings or the first session failed, raises that error.
    """
    # Switch the garbage collector off: nothing that is imported, read or built for the first
    # session becomes garbage, and looking for it takes a tenth of the startup, or more for a long
    # session. The app switches the collector on again.
    gc.disable()
    from tui_agent.ui.app import TuiAgentApp
    from tui_agent.ui.background import BackgroundMemory

    detached_as = os.environ.pop(DETACHED_NAME_VARIABLE, "")
    wired: list[Wiring] = []
    screens: list[ControllerWiring] = []

    async def load() -> "tuple[AppServices, FirstView]":
        wiring = await asyncio.to_thread(_wire, arguments)
        wired.append(wiring)
        from tui_agent.cli.controller_wiring import ControllerWiring

        screen = ControllerWiring(wiring)
        screen.detached_as = detached_as
        screens.append(screen)
        prompt = app.main.prompt
        screen.last_typed = lambda: prompt.last_typed
        return screen, screen.start()

    app = TuiAgentApp(load, first_look(), BackgroundMemory(cache_dir()))

    def end(number: int) -> None:
        if app.end(number):
            end_in_time()

    try:
        with listening(end, *ENDING):
            await app.run_async()
    finally:
        end_in_time()
        for wiring in wired:
            await wiring.aclose()
    if app.failure is not None:
        raise app.failure
    detached = next(filter(None, (screen.detached_arguments for screen in screens)), ())
    if detached:
        from tui_agent.cli.detached.commands import start_and_say

        with suppress(OSError):  # the terminal may be gone
            start_and_say(detached)
        return 0
    with suppress(OSError):  # the terminal may be gone
        for way in filter(None, (screen.resume_command for screen in screens)):
            print(f"Continue with: {way}", flush=True)
    return app.return_code or 0


def _wire(arguments: Namespace) -> "Wiring":
    """Import the modules for the first session, and build the program's parts.

    This function is called in a thread.
    """
    from tui_agent.cli.logs import skip_plugins

    skip_plugins()
    import_module("tui_agent.cli.controller_wiring")
    from tui_agent.cli.wiring import Wiring
    from tui_agent.tools.registry import builtin_tools

    # Called only to import the tools' modules, because an agent makes its own tools.
    builtin_tools()
    return Wiring(arguments)


def first_look() -> "Look":
    """Return the theme and motion settings for the first frame, read from the settings file.

    Mistakes in the file are ignored here, and reported when all settings are loaded.
    """
    from tui_agent.app.services import Look

    try:
        table = tomllib.loads(settings_text((config_dir() / "config.toml").read_bytes())).get(
            "ui", {}
        )
        theme = table.get("theme")
        still = table.get("reduced_motion", False)
    except (OSError, ValueError, AttributeError):
        return Look()
    return Look(theme=theme if isinstance(theme, str) else None, reduced_motion=still is True)
