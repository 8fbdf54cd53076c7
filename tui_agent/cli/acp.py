"""``tui-agent acp``: serves an editor over the Agent Client Protocol, on standard input and output.

Only protocol messages go to standard output; all other output goes to standard error. The package
``tui_agent.acp`` handles the messages.
"""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

from tui_agent.agent.agent import Agent
from tui_agent.cli.agent_making import adjustable
from tui_agent.cli.controller_wiring import ControllerWiring
from tui_agent.cli.ending import run_to_end
from tui_agent.cli.login import run_login
from tui_agent.cli.models import is_usable
from tui_agent.cli.wiring import Wiring
from tui_agent.config import ConfigError

if TYPE_CHECKING:
    import acp

MAX_MODELS = 300
"""Maximum number of models that are offered to an editor."""
LINE_BYTES = 50 * 1024 * 1024
"""Maximum size of a message from the editor, in bytes. Messages can contain images."""


def run_acp(arguments: Namespace) -> int:
    """Serve one editor until it closes standard input; return the exit code.

    With ``--login``, only ask for a provider's API key.
    """
    if arguments.login:
        return run_login(Namespace(provider="", force=False))
    # Keep standard output for the protocol, and send all other output to standard error.
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    run_to_end(_serve(arguments, out))
    return 0


async def _serve(arguments: Namespace, out: BinaryIO) -> None:
    from acp import AgentSideConnection
    from acp.meta import AGENT_METHODS
    from acp.schema import DeleteSessionRequest

    from tui_agent.acp.server import EditorAgent, Introduction, MessageLines

    async with aclosing(Wiring(arguments)) as wiring:
        agent = EditorAgent(WiredSessionFactory(wiring))
        loop = asyncio.get_running_loop()
        reader = MessageLines(limit=LINE_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            # `acp.Agent` declares optional methods, too, which the agent doesn't have to implement.
            connection = AgentSideConnection(
                cast("acp.Agent", agent),
                writer,
                reader,
                listening=False,
                use_unstable_protocol=True,
            )
            agent.notify = connection._conn.send_notification  # noqa: SLF001
            # The SDK has no route for delete_session, and its route for initialize drops some
            # fields.
            router = connection._conn._handler  # noqa: SLF001
            router.route_request(
                AGENT_METHODS["session_delete"], DeleteSessionRequest, agent, "delete_session"
            )
            router.route_request(AGENT_METHODS["initialize"], Introduction, agent, "initialize")
            try:
                await connection.listen()
            finally:
                await asyncio.shield(connection.close())
        finally:
            await agent.aclose()


class WiredSessionFactory:
    """Provides the store, services, models and settings to the sessions of an editor."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self.store = wiring.store
        self.demo = bool(wiring.arguments.demo)
        self.services = partial(ControllerWiring, wiring)
        self._models: tuple[str, ...] | None = None

    async def models(self, *, refresh: bool = False) -> Sequence[str]:
        """Return the ids of the configured models, then of other usable ones; `MAX_MODELS` at most.

        The result is cached; with ``refresh``, it is looked up again.
        """
        if self._models is None or refresh:
            self._models = await asyncio.to_thread(self._usable)
        return self._models

    def follow_settings(self, agents: Iterable[Agent]) -> str:
        """Read the settings again, and apply changes to ``agents``.

        Returns "" on success. If the settings are invalid, returns the reason and changes nothing.
        """
        try:
            changed = self._wiring.reload()
        except ConfigError as error:
            return str(error)
        if changed:
            self._models = None
            for agent in agents:
                agent.adopt(adjustable(self._wiring, agent.ports))
        return ""

    def _usable(self) -> tuple[str, ...]:
        wiring = self._wiring
        available = wiring.router.keys.available()
        configured = wiring.loaded.config.models
        usable = []
        for info in wiring.catalog.models():
            if is_usable(info, available, wiring.catalog):
                usable.append(info.id)
        return tuple(dict.fromkeys([*configured, *usable]))[:MAX_MODELS]
