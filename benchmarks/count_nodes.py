"""Opens a session in this process without a terminal and prints how many widgets are on the screen."""

import asyncio
import sys
from contextlib import aclosing

from tui_agent.app.services import AppServices, FirstView, Look
from tui_agent.cli.arguments import parse
from tui_agent.cli.controller_wiring import ControllerWiring
from tui_agent.cli.wiring import Wiring
from tui_agent.ui.app import TuiAgentApp

SIZE = (120, 40)


async def count(session: str) -> int:
    """Return the widgets of the main screen with the session open."""
    async with aclosing(Wiring(parse(["-r", session]))) as wiring:
        screen = ControllerWiring(wiring)

        async def load() -> tuple[AppServices, FirstView]:
            return screen, screen.start()

        app = TuiAgentApp(load, Look())
        async with app.run_test(size=SIZE) as pilot, asyncio.timeout(60):
            while app.main.agent is None:
                await pilot.pause()
            await pilot.pause()
            nodes = len(app.screen.walk_children(with_self=True))
            await app.main.agent.aclose()
            return nodes


if __name__ == "__main__":
    print(asyncio.run(count(sys.argv[1])))
