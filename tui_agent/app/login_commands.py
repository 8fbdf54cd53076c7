"""``/login`` asks for a provider's API key and saves the key; ``/logout`` removes the key.

The user enters the key or signs in with a browser. An entered key is tried before it is saved. If
the session has no model yet, ``/login`` then chooses one. `LoginController` tries, saves and
removes the keys.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command, key_of
from tui_agent.app.format import one_line
from tui_agent.app.frontend import Choice, Pick, PickRow, TextLine
from tui_agent.errors import UserFacingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.app.controller import Controller
    from tui_agent.app.logins import LoginController, LoginRow
    from tui_agent.model.sign_in import BrowserSignIn

_SIGN_IN = (
    ("browser", "Sign in with the browser"),
    ("elsewhere", "Sign in with a browser on another machine: copy the address"),
)


@Command(
    "login",
    "enter a provider's API key or sign in",
    argument="[PROVIDER]",
    needs_screen=True,
    place=120,
    words="api key, token, account",
)
async def login(controller: Controller, argument: str) -> None:
    port = controller.services.logins
    name, rest = _words(argument)
    if rest:
        controller.say(
            f"Type /login {one_line(name, 30)} without the key. You enter it hidden in the next step.",
            "warning",
        )
        return
    row = await _provider(
        controller, "Log in to which provider?", await asyncio.to_thread(port.rows), name
    )
    if row is None:
        return
    if row.missing:
        controller.say(
            f"{row.name} also needs {' and '.join(row.missing)} in the environment when tui-agent starts.",
            "warning",
        )
        return
    kept = await _take_key(controller, port, row)
    if not kept:
        return
    controller.say(kept)
    if controller.agent is not None and not controller.agent.model:
        from tui_agent.app.model_commands import ask_for_model, use_model

        model = await asyncio.to_thread(port.first_model) or await ask_for_model(controller, "")
        if model and await use_model(controller, model):
            key = key_of("model", controller.frontend.keymap)
            controller.say(f"{kept} The model is {one_line(model, 60)}; {key} chooses another.")


@Command(
    "logout",
    "remove an API key that was entered with /login",
    argument="[PROVIDER]",
    needs_screen=True,
    place=130,
    words="delete a key, sign out",
)
async def logout(controller: Controller, argument: str) -> None:
    port = controller.services.logins
    name, _rest = _words(argument)
    rows = [row for row in await asyncio.to_thread(port.rows) if row.is_kept]
    if not rows:
        controller.say(
            "No API key was entered with /login. Keys from the environment or config.toml have to be removed there."
        )
        return
    row = await _provider(controller, "Remove the key of which provider?", rows, name)
    if row is not None:
        controller.say(await asyncio.to_thread(port.forget, row.id))


def _words(argument: str) -> tuple[str, str]:
    name, _space, rest = argument.strip().partition(" ")
    return name.lower(), rest


async def _provider(
    controller: Controller, question: str, rows: Sequence[LoginRow], name: str
) -> LoginRow | None:
    """Return the provider with this name or id; for "", ask the user with the title ``question``.

    Returns None if the user cancels. If there is no such provider, tells the user so and returns
    None.
    """
    by_name: dict[str, LoginRow] = {}
    for one in rows:
        by_name[one.name.lower()] = one
        by_name[one.id] = one
    if name and name not in by_name:
        known = ", ".join(row.id for row in rows[:6])
        controller.say(
            f"There is no provider {one_line(name, 40)} here. The list begins with {known}. "
            "Leave out the name to see them all.",
            "warning",
        )
        return None
    chosen = name or await controller.ask(Pick(question, [_pick_row(row) for row in rows]))
    if not chosen:
        return None
    return by_name.get(chosen)


def _pick_row(row: LoginRow) -> PickRow:
    """Return the row for a provider in the list from which the user chooses one.

    Its text contains the provider's id, so that typing the id finds it.
    """
    name = one_line(row.name, 30)
    if row.id.replace("_", " ") not in name.lower():
        name += f" ({row.id})"
    return PickRow(
        row.id,
        f"{'✓' if row.source else '·'} {name}",
        f"key from {row.source}" if row.source else row.variable,
    )


async def _take_key(controller: Controller, port: LoginController, row: LoginRow) -> str:
    """Let the user enter a key or sign in; ask again until a key is saved.

    Returns the confirmation to show; "" if the user cancels.
    """
    where = await asyncio.to_thread(port.where)
    while True:
        made = ""
        if row.page:
            made = f"Create a key at {row.page}\n"
        now = f"{row.name} has no API key yet."
        if row.source:
            now = f"The key of {row.name} now comes from {row.source}."
        answers = [("paste", "Paste the key")]
        if row.signs_in:
            answers = [*_SIGN_IN, *answers]
        kept = f"\nThe key will be saved in {where}."
        if row.note:
            note = f"\n{row.note}"
        else:
            note = ""
        how = await controller.ask(
            Choice(f"Log in to {row.name}", answers, made + now + kept + note)
        )
        if not how:
            return ""
        sentence = await (
            _enter(controller, port, row)
            if how == "paste"
            else _sign_in(controller, port, row, how)
        )
        if sentence is not None:
            return sentence


async def _sign_in(
    controller: Controller, port: LoginController, row: LoginRow, how: str
) -> str | None:
    """Let the user sign in to a provider with a browser, and save the key.

    ``how`` is "browser" to open the page here, "elsewhere" to copy its address for another machine.
    Returns the confirmation to show; None if the user cancelled or signing in failed. Shows the
    user why it failed.
    """
    controller.frontend.announce(f"Signing in to {row.name} …")
    try:
        async with port.sign_in(row.id) as attempt:
            controller.frontend.clear_notice()
            if how == "elsewhere":
                controller.frontend.copy(attempt.url)
            else:
                controller.frontend.open_page(attempt.url)
            key = await _wait_for_sign_in(controller, row, attempt)
    except UserFacingError as error:
        controller.frontend.clear_notice()
        await controller.ask(
            Choice(f"You are not signed in to {row.name}", [("back", "Back")], str(error))
        )
        return None
    if key is None:
        return None
    return f"You are signed in to {row.name}. {await asyncio.to_thread(port.keep_key, row.id, key)}"


async def _wait_for_sign_in(
    controller: Controller, row: LoginRow, attempt: BrowserSignIn
) -> str | None:
    """Wait until the user has signed in, or has pasted the last address from the browser.

    Returns the key; None if the user cancelled.
    """
    signing = asyncio.ensure_future(attempt.key())
    details = (
        f"Sign in at\n{attempt.url}\n"
        "This page closes when you are signed in. If it stays open, paste the last address from the browser."
    )
    question = TextLine(f"Waiting for {row.name}", confirm="send", details=details)
    asking = asyncio.ensure_future(controller.ask(question))
    try:
        await asyncio.wait({signing, asking}, return_when=asyncio.FIRST_COMPLETED)
        if not signing.done():
            text = asking.result()
            if not text:
                return None
            attempt.paste(text)
            controller.frontend.announce(f"Signing in to {row.name} …")
        return await signing
    finally:
        signing.cancel()
        asking.cancel()
        await asyncio.gather(signing, asking, return_exceptions=True)


async def _enter(controller: Controller, port: LoginController, row: LoginRow) -> str | None:
    """Ask for an API key, try it and save it; return a confirmation, None if no key was saved.

    The user decides whether to save a key that could not be tried.
    """
    details = "The key is not shown or logged, and is not sent anywhere else."
    entered = await controller.ask(
        TextLine(f"API key of {row.name}", confirm="try it", details=details, hidden=True)
    )
    if not entered:
        return None
    controller.frontend.announce(f"Trying the key at {row.name} …")
    trial = await port.try_key(row.id, entered)
    controller.frontend.clear_notice()
    if trial.verdict != "accepted":
        keep = []
        if trial.verdict == "unknown":
            keep = [("keep", "Save it anyway")]
        title = "The key was not accepted"
        if keep:
            title = "The key could not be tried"
        if (
            await controller.ask(Choice(title, [*keep, ("again", "Enter another")], trial.sentence))
            != "keep"
        ):
            return None
    return f"{trial.sentence} {await asyncio.to_thread(port.keep_key, row.id, entered)}"
