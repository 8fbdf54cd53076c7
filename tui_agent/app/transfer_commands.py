"""``/export`` and ``/import`` write and read session files; ``/result`` writes a session's changes.

exporting.py, importing.py and results.py do the work; the commands parse the arguments, ask the
user and report.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, plural, short_path, visible
from tui_agent.app.frontend import Choice, Report, Severity
from tui_agent.errors import CommandError
from tui_agent.path_checks import at_home, is_directory

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.app.controller import Controller
    from tui_agent.app.exporting import ExportOrder
    from tui_agent.app.results import SessionResult

_CHOICES = (
    ("markdown", "Markdown: the current branch, to read and quote"),
    ("html", "One HTML file: the current branch, for a browser"),
    ("html all", "One HTML file: every branch"),
    ("json", "JSON lines: everything, to import elsewhere"),
    ("claude-code", "Claude Code's session file: the current branch, to continue there"),
    ("codex", "Codex's session file: the current branch, to continue there"),
    ("markdown redact", "Markdown without secrets, and without user names in paths"),
    ("html redact", "HTML without secrets, and without user names in paths"),
    ("json redact", "JSON lines without secrets, and without user names in paths"),
)
_NAME_CHARS = 40
_USAGE = "Use, for example, /export talk.md, /export page.html --all, /export all.jsonl --redact."


@Command(
    "export",
    "write this session to a file: md, html, jsonl",
    argument="[FILE]",
    changes_files=True,
    place=80,
    words="save, share, download, markdown, json",
)
async def export(controller: Controller, argument: str) -> None:
    """Write the session to a file, as in ``/export FILE --all --redact``.

    Without arguments, asks for a format.
    """
    from tui_agent.app.exporting import ExportFormat, ExportOrder, format_of, unknown_ending

    session_id = controller.open_agent.session.id
    if not argument:
        await ask_export(controller, session_id)
        return
    try:
        words = shlex.split(argument)
    except ValueError:
        words = argument.split()
    flags: set[str] = set()
    names: list[str] = []
    for word in words:
        if word.startswith("--"):
            flags.add(word)
        else:
            names.append(word)
    if flags - {"--all", "--branch", "--redact"} or len(names) > 1:
        raise CommandError(_USAGE)
    target = ""
    if names:
        target = names[0]
    if (why := unknown_ending(target)) and not is_directory(_place(controller, target)):
        raise CommandError(why)
    form = format_of(target) or (
        ExportFormat(target) if target in list(ExportFormat) else ExportFormat.MARKDOWN
    )
    if target in list(ExportFormat):
        target = ""
    if "--all" in flags:
        whole = True
    elif "--branch" in flags:
        whole = False
    else:
        whole = None
    await _write(
        controller, ExportOrder(session_id, form, whole=whole, redacted="--redact" in flags), target
    )


async def ask_export(controller: Controller, session_id: str) -> None:
    """Ask for a format, and write the session into a new file in the session's directory."""
    from tui_agent.app.exporting import ExportFormat, ExportOrder

    choice = await controller.ask(Choice("Export this session as", _CHOICES))
    if choice is not None:
        form, _, more = choice.partition(" ")
        whole = None
        if more == "all":
            whole = True
        await _write(
            controller,
            ExportOrder(session_id, ExportFormat(form), whole=whole, redacted=more == "redact"),
            "",
        )


async def _write(controller: Controller, order: ExportOrder, target: str) -> None:
    from tui_agent.app.exporting import write_export

    path = _place(controller, target)
    try:
        written, _size = await asyncio.to_thread(
            write_export, controller.services.store, order, path
        )
    except FileExistsError as error:
        there = short_path(error.filename)
        controller.frontend.announce(f"{there} already exists. Choose another name.", "warning")
    except OSError as error:
        controller.frontend.announce(
            f"{short_path(path)} can't be written: {error.strerror or error}.", "error"
        )
    else:
        without = ""
        if order.redacted:
            without = ", without secrets and user names in paths"
        controller.frontend.announce(f"Exported to {short_path(written)}{without}.")


@Command(
    "import",
    "import sessions, including those of other agents",
    argument="[FILE]",
    needs_screen=True,
    place=90,
    words="load, claude code, codex",
)
async def import_(controller: Controller, argument: str) -> None:
    """Import the sessions of a file or a directory, and report on each.

    Without an argument, explains what to type.
    """
    from tui_agent.app.importing import import_all
    from tui_agent.session.formats.table import FORMATS

    if not argument:
        controller.frontend.set_draft("/import ")
        known = ", ".join(row.program for row in FORMATS)
        controller.say(f"Add the path of a file or directory that contains sessions of {known}.")
        return
    path = _place(controller, argument.strip("\"'"))
    controller.say(f"Importing {short_path(path)} …")
    lines, imported, failed = await asyncio.to_thread(import_all, controller.services.store, path)
    severity: Severity = "warning" if failed else "information"
    if len(lines) > 1:
        controller.say(one_line(lines[-1], 200), severity)
        controller.show(Report("Imported", [visible(line) for line in lines]))
        return
    hint = ""
    if len(imported) == 1:
        hint = f" /sessions {imported[0].session_id[-8:]} opens it."
    controller.say(" ".join(lines) + hint, severity)


def _place(controller: Controller, text: str) -> Path:
    """Return the path that the user typed, with ``~`` replaced by the home directory.

    A relative path is resolved against the session's directory; if that doesn't exist, against the
    directory in which the program was started.
    """
    if is_directory(controller.cwd):
        base = controller.cwd
    else:
        base = controller.services.cwd
    return base / at_home(text)


@Command(
    "result",
    "write the session's changes as a patch or to a new branch",
    argument="[FILE | branch:NAME]",
    changes_files=True,
    place=335,
    words="apply, git, pull request, save changes",
)
async def result(controller: Controller, argument: str) -> None:
    target = argument.strip().strip("\"'")
    found = await session_result(controller)
    if not target and found:
        info = found.session.info
        title = (info.title or info.first_message).lower()
        name = re.sub(r"[^a-z0-9]+", "-", title)[:_NAME_CHARS].strip("-") or "session-result"
        answers = (
            (f"{name}.patch", f"a patch: {name}.patch"),
            (f"branch:{name}", f"a commit on a new branch: {name}"),
        )
        files = plural(len(found.files), "file")
        target = (
            await controller.ask(
                Choice(f"Write the changes of {files} to", answers, found.remarks().strip())
            )
            or ""
        )
        if not target:
            return
    await write_result(controller, found, target)


async def session_result(controller: Controller) -> SessionResult:
    """Record pending file changes, and return the result of the open session.

    Raises `ResultError` if file changes are not recorded at all, `CommandError` if the agent is
    working.
    """
    from tui_agent.app.results import ResultError, SessionResult

    agent = controller.idle_agent
    if (snapshots := agent.ports.checkpoints) is None:
        raise ResultError(
            "File changes are not recorded, so there is no result. Set checkpoints.enabled for new sessions."
        )
    await agent.files.settle()
    return await asyncio.to_thread(SessionResult.of, agent.session, snapshots)


async def write_result(controller: Controller, found: SessionResult, target: str) -> None:
    """Write a result to ``target``, and report that.

    ``target`` is ``branch:NAME`` or a file; a relative path is resolved as for ``/export``.
    """
    from tui_agent.app.results import BRANCH

    if target.startswith(BRANCH):
        place = target
    else:
        place = str(_place(controller, target))
    controller.say(await asyncio.to_thread(found.write, place))
