"""``tui-agent web``: the full-screen program in a browser on this machine, one process for each tab."""

import asyncio
import secrets
import socket
import sys
from argparse import Namespace
from contextlib import closing, suppress

from tui_agent.cli.arguments import UsageError
from tui_agent.cli.ending import ENDING, listening
from tui_agent.cli.output import say

HOST = "127.0.0.1"
DEFAULT_PORT = 8765
SHUTDOWN_SECONDS = 20.0
"""Seconds that the programs of all tabs have to end."""


def run_web(arguments: Namespace) -> int:
    """Serve until a signal; returns the exit code.

    Raises:
        UsageError: the optional packages are missing, or the port asked for is taken.
    """
    try:
        import textual_serve  # noqa: F401 - only whether it is there
    except ImportError:
        raise UsageError(
            f'The browser needs more packages: {sys.executable} -m pip install "textual-serve>=1.1.3,<1.2"'
        ) from None
    with closing(bind(arguments.port)) as bound:
        asyncio.run(_serve(bound, arguments.rest))
    return 0


def bind(port: int | None) -> socket.socket:
    """Return a socket on this machine's own address; a free port where the usual one is taken.

    Raises:
        UsageError: the port that was asked for can't be used.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port or DEFAULT_PORT))
    except OSError as error:
        if port is not None:
            bound.close()
            reason = f"Cannot use port {port}: {error.strerror}. Without --port a free one is taken."
            raise UsageError(reason) from error
        bound.bind((HOST, 0))
    return bound


async def _serve(bound: socket.socket, rest: list[str]) -> None:
    from aiohttp import web

    from tui_agent.cli.web_server import TabServer

    port = bound.getsockname()[1]
    token = secrets.token_urlsafe(32)
    server = TabServer([sys.executable, "-P", "-m", "tui_agent"], rest, port=port, token=token)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    done = asyncio.Event()
    try:
        await web.SockSite(runner, bound).start()
        say(f"http://{HOST}:{port}/?token={token}")
        say("Open this address in a browser on this machine. Whoever has it can use the agent as you.", file=sys.stderr)
        say("Each tab is a program of its own; closing it ends the program and keeps the session.", file=sys.stderr)
        say("Ctrl+C here ends all of them.", file=sys.stderr)
        with listening(lambda _number: done.set(), *ENDING):
            await done.wait()
    finally:
        with suppress(asyncio.CancelledError):
            await runner.cleanup()
