"""``tui-agent login`` and ``logout``: ask for a provider's API key and save the key, or remove it.

`LoginController` tries, saves and removes the keys.
"""

import asyncio
import getpass
import sys
import termios
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from tui_agent.app.logins import LoginController, LoginRow
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.ending import run_to_end
from tui_agent.cli.output import say
from tui_agent.config import load_config
from tui_agent.model.logins import Logins


def run_login(arguments: Namespace) -> int:
    controller = _controller()
    provider = _named(controller.rows(), arguments.provider)
    if provider.missing:
        say(
            f"{provider.name} also needs {' and '.join(provider.missing)} in the environment.",
            file=sys.stderr,
        )
        return 1
    if provider.signs_in:
        key = run_to_end(_sign_in(controller, provider))
    else:
        if provider.note:
            say(provider.note, file=sys.stderr)
        if provider.page and sys.stdin.isatty():
            say(f"Create a key at {provider.page}")
        key = _read(f"API key of {provider.name} (not shown): ")
    if key:
        return _try(controller, provider, key, force=arguments.force)
    return 0


def run_logout(arguments: Namespace) -> int:
    controller = _controller()
    kept = [row for row in controller.rows() if row.is_kept]
    if not kept:
        say("No API key was entered with tui-agent login, so none was removed.", file=sys.stderr)
        return 1
    row = _named(kept, arguments.provider)
    say(controller.forget(row.id))
    return 0


def _controller() -> LoginController:
    config = load_config().config
    return LoginController(Logins(), lambda: config)


def _named(rows: Sequence[LoginRow], name: str) -> LoginRow:
    """Return the row of the provider with this id or name.

    For "", returns the only row; if there are several, lists them on a terminal and asks for a
    name.

    Raises:
        UsageError: there is no such provider, or no name was given.
    """
    if not name and len(rows) == 1:
        return rows[0]
    if not name and sys.stdin.isatty():
        for row in rows:
            mark = "✓" if row.source else " "
            say(f"{mark} {row.id:<20} {row.name:<24} {row.source or row.variable}")
        name = input("Provider: ").strip()
    found = next((row for row in rows if name.lower() in {row.id, row.name.lower()}), None)
    if found is None:
        known = ", ".join(row.id for row in rows)
        if not name:
            raise UsageError(f"Name a provider: {known}.")
        raise UsageError(f"There is no provider “{name}”. Choose one of: {known}.")
    return found


def _read(prompt: str) -> str:
    """Read a line without showing it on the terminal; raises UsageError if the line is empty."""
    if sys.stdin.isatty():
        text = getpass.getpass(prompt)
    else:
        text = sys.stdin.readline()
    if not text.strip():
        raise UsageError("No key was entered. Type or paste it, or pipe it in.")
    return text


async def _sign_in(controller: LoginController, provider: LoginRow) -> str:
    """Print the address of the sign-in page, wait until the user has signed in, and save the key.

    Returns "". If the user pastes a key instead, returns that key and saves nothing.
    """
    async with controller.sign_in(provider.id) as attempt:
        say(f"Sign in to {provider.name} with a browser at\n\n  {attempt.url}\n", file=sys.stderr)
        say(
            "If the browser is on another machine, paste the address of its last page. "
            "You can also paste a key.",
            file=sys.stderr,
        )
        signing = asyncio.ensure_future(attempt.key())
        try:
            text = await _read_beside(
                signing, f"Address, code or key of {provider.name} (not shown): "
            )
            if attempt.is_key(text):
                return text
            if text:
                attempt.paste(text)
            kept = controller.keep_key(provider.id, await signing)
            say(f"You are signed in to {provider.name}. {kept}")
            return ""
        finally:
            signing.cancel()


async def _read_beside(other: "asyncio.Future[str]", prompt: str) -> str:
    """Read a line from the user without showing it; return "" if ``other`` is done first."""
    entered: asyncio.Future[Any] = asyncio.ensure_future(asyncio.to_thread(_read, prompt))
    before = None
    if sys.stdin.isatty():
        before = termios.tcgetattr(sys.stdin)
    try:
        await asyncio.wait({other, entered}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if before is not None:
            # If a hidden read was abandoned, the terminal's echo is still off, so restore it.
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
    if entered.done():
        return str(entered.result())
    return ""


def _try(controller: LoginController, provider: LoginRow, key: str, *, force: bool) -> int:
    """Try a key, and save it if the provider accepts it; return the exit code.

    A key that could not be tried is saved with ``force``, or if the user agrees.
    """
    trial = asyncio.run(controller.try_key(provider.id, key))
    if trial.verdict == "accepted" or (force and trial.verdict == "unknown"):
        say(f"{trial.sentence} {controller.keep_key(provider.id, key)}")
        return 0
    can_keep = trial.verdict == "unknown"
    advice = ""
    if can_keep and not sys.stdin.isatty():
        advice = " --force saves it anyway."
    say(f"{trial.sentence}{advice}", file=sys.stderr)
    if (
        can_keep
        and sys.stdin.isatty()
        and input("Save it anyway? [y/N] ").strip().lower() in {"y", "yes"}
    ):
        say(controller.keep_key(provider.id, key))
        return 0
    return 1
