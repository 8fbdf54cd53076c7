"""The ``/redact`` command: removes a secret for good from everything that the program stores.

redacting.py searches for the secret, and removes it after the user has agreed and while the open
session is closed. The frontend removes the secret from the prompt and its history.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import plural, short_path
from tui_agent.app.frontend import Choice, TextLine
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.app.redacting import Finding, OwnPlaces
    from tui_agent.session.redacting import Removal

BEYOND_REACH = (
    "The provider, exports in other places, your project's files, the settings and the terminal's "
    "history may still contain it. Replace the secret at the service it belongs to."
)
"""Text about what `/redact` can't change, and what the user should do."""
_WHICH = TextLine("The secret, or the number of an entry (#34)", confirm="search", hidden=True)


@Command(
    "redact",
    "remove a secret, or entry #N, for good from everything stored",
    argument="[TEXT | #N]",
    place=345,
)
async def redact(controller: Controller, argument: str) -> None:
    """Remove a secret from every session, index, draft, log and copy, after asking once.

    ``argument`` is the secret, or ``#N`` for the content of an entry. If it is "", the user is
    asked for one of them.
    """
    from tui_agent.app.redacting import Redaction

    agent = controller.idle_agent
    controller.require_writable()
    if controller.race is not None or controller.asides:
        raise CommandError("Other sessions or a race are still running here. End them first.")
    text = argument.strip()
    if not text:
        text = await controller.ask(_WHICH) or ""
    if not text:
        return
    removal, name = _removal(controller, text)
    redaction = Redaction(controller.services.store, removal, _places(controller))
    controller.say("Searching everything that is stored …")
    finding = await asyncio.to_thread(redaction.find)
    if not finding:
        controller.say("Not found in anything that the program stores.")
        return
    if open_elsewhere := redaction.holders(finding, but=agent.session.id):
        names = ", ".join(f"“{title}”" for title in open_elsewhere)
        raise CommandError(
            f"Sessions with this content are open in other tui-agent programs: {names}. Close them there first."
        )
    lines = [*redaction.lines(finding), "", BEYOND_REACH]
    if count := agent.jobs.running:
        lines.append(f"{plural(count, 'background job')} of this session will be stopped.")
    answer = await controller.ask(
        Choice(
            f"Remove {name} from all of these? This can't be undone.",
            (("keep", "Keep it"), ("redact", "Remove it for good")),
            "\n".join(lines),
        )
    )
    if answer != "redact":
        controller.frontend.clear_notice()
        return
    if controller.idle_agent is not agent:
        raise CommandError("Another session was opened in the meantime. Nothing was removed.")
    controller.say("Redacting …")
    try:
        left = await controller.between_sessions(asyncio.to_thread(redaction.carry_out, finding))
    finally:
        controller.frontend.rewrite_typed(removal.forms.text)
    _report(controller, finding, [short_path(path) for path in (*left, *finding.unread)])


def _removal(controller: Controller, text: str) -> tuple[Removal, str]:
    """Return what to remove, and a noun phrase to name it by, which doesn't show the secret.

    ``text`` is the secret or ``#N``. Raises `CommandError` if the secret is too short or the entry
    has no content, and `EntryNotFound` if there is no entry N.
    """
    from tui_agent.app.redacting import removal_of_entry
    from tui_agent.secret_forms import MIN_CHARS, SecretForms
    from tui_agent.session.errors import EntryNotFound
    from tui_agent.session.redacting import Removal

    agent = controller.open_agent
    estimate = agent.counter.estimate
    if named := re.fullmatch(r"#(\d{1,18})", text):
        entry = agent.session.entry(int(named[1]))
        try:
            removal = removal_of_entry(entry, agent.session.id, controller.services.store, estimate)
        except EntryNotFound:
            raise CommandError(f"{text} has no content to remove.") from None
        return removal, f"the content of {text}, and the secrets in it,"
    if len(text) < MIN_CHARS:
        raise CommandError(
            f"Type at least {MIN_CHARS} characters, because a shorter text may be part of other words."
        )
    return Removal(SecretForms([text]), estimate), f"the text of {len(text)} characters"


def _places(controller: Controller) -> OwnPlaces:
    from tui_agent.app.redacting import OwnPlaces

    services = controller.services
    ports = controller.open_agent.ports
    return OwnPlaces(
        services.own_places,
        races=ports.copies,
        project=ports.project,
        exports=(controller.cwd, services.cwd),
    )


def _report(controller: Controller, finding: Finding, left: list[str]) -> None:
    """Show in how many entries and files the secret was removed, and where that failed."""
    stored = finding.store
    where = plural(sum(stored.entries.values()) + stored.deleted, "entry")
    if files := len(finding.files) + len(finding.backups):
        where += f" and {plural(files, 'file')}"
    if left:
        controller.say(
            f"Redacted in {where}. These could not be changed: {', '.join(left)}", "warning"
        )
    else:
        controller.say(f"Redacted in {where}. {BEYOND_REACH}")
