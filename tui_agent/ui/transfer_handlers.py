"""What ``/export`` and ``/import`` do, and the key in the list of sessions that exports one."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from tui_agent.ui.format import one_line, short_path, visible

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.agent.exporting import ExportOrder
    from tui_agent.ui.screens.main import MainScreen
    from tui_agent.ui.widgets.notice import Severity

_CHOICES = (
    ("markdown", "Markdown: the current branch, to read and quote"),
    ("html", "One HTML file: the current branch, for a browser"),
    ("html all", "One HTML file: every branch"),
    ("json", "JSON lines: everything, to import elsewhere"),
    ("markdown redact", "Markdown without secrets and names of home directories"),
    ("html redact", "HTML without them"),
    ("json redact", "JSON lines without them"),
)
_USAGE = "Write it like /export talk.md, /export page.html --all, /export all.jsonl --redact."


async def export(main: MainScreen, argument: str) -> None:
    """Write the session to a file: ``/export FILE --all --redact``; without anything ask in which form."""
    from tui_agent.agent.exporting import ExportFormat, ExportOrder, format_of, unknown_ending

    if main.agent is None:
        return
    session_id = main.agent.session.id
    if not argument:
        ask_export(main, session_id)
        return
    try:
        words = shlex.split(argument)
    except ValueError:
        words = argument.split()
    flags = {word for word in words if word.startswith("--")}
    names = [word for word in words if not word.startswith("--")]
    if flags - {"--all", "--branch", "--redact"} or len(names) > 1:
        main.say(_USAGE, "warning")
        return
    target = names[0] if names else ""
    if (why := unknown_ending(target)) and not _place(main, target).is_dir():
        main.say(why, "warning")
        return
    form = format_of(target) or (ExportFormat(target) if target in list(ExportFormat) else ExportFormat.MARKDOWN)
    target = "" if target in list(ExportFormat) else target
    whole = True if "--all" in flags else False if "--branch" in flags else None
    await _write(main, ExportOrder(session_id, form, whole=whole, redacted="--redact" in flags), target)


def ask_export(main: MainScreen, session_id: str) -> None:
    """Ask in which form a session is to be written, and write it beside the project's files."""
    from tui_agent.agent.exporting import ExportFormat, ExportOrder
    from tui_agent.ui.screens.choice import ChoiceScreen

    def answered(choice: str | None) -> None:
        if choice is not None:
            form, _, more = choice.partition(" ")
            whole = True if more == "all" else None
            order = ExportOrder(session_id, ExportFormat(form), whole=whole, redacted=more == "redact")
            main.run_worker(_write(main, order, ""), group="export", exit_on_error=False)

    main.app.push_screen(ChoiceScreen("Export this session as", _CHOICES), answered)


async def _write(main: MainScreen, order: ExportOrder, target: str) -> None:
    from tui_agent.session.errors import StoreError

    path = _place(main, target)
    if (transfer := main.services.transfer) is None:
        return
    try:
        written = await asyncio.to_thread(transfer.export, order, path)
    except FileExistsError:
        _tell(main, f"There is a {short_path(path)} already; take another name.", "warning")
    except OSError as error:
        _tell(main, f"{short_path(path)} can't be written: {error.strerror or error}.", "error")
    except StoreError as error:
        _tell(main, error.message, "error")
    else:
        without = ", without secrets and home directories" if order.redacted else ""
        _tell(main, f"Exported to {short_path(written)}{without}.")


async def import_(main: MainScreen, argument: str) -> None:
    """Take in the sessions of a file or a directory; one alone is opened with ``/sessions``."""
    if not argument:
        main.prompt.set_draft("/import ")
        main.say("Name a file or a directory: sessions of tui-agent, Pi, Claude Code or OpenCode.")
        return
    path = _place(main, argument.strip("\"'"))
    main.say(f"Importing {short_path(path)} …")
    main.run_worker(_take_in(main, path), group="import", exit_on_error=False)


async def _take_in(main: MainScreen, path: Path) -> None:
    from tui_agent.session.errors import StoreError

    if (transfer := main.services.transfer) is None:
        return
    try:
        outcome = await asyncio.to_thread(transfer.import_files, path)
    except StoreError as error:
        _tell(main, error.message, "error")
        return
    severity: Severity = "warning" if outcome.failed else "information"
    if len(outcome.told) > 1:
        from textual.content import Content

        from tui_agent.ui.screens.report import ReportScreen

        main.say(one_line(outcome.told[-1], 200), severity)
        told = Content("\n".join(visible(line) for line in outcome.told))
        main.app.push_screen(ReportScreen("Imported", told))
        return
    hint = f" /sessions {outcome.session_id[-8:]} opens it." if outcome.session_id else ""
    main.say(" ".join(outcome.told) + hint, severity)


def _place(main: MainScreen, text: str) -> Path:
    """Return the path that a user means: below the session's directory, or in their home with ``~``.

    An imported session's directory may be another machine's: then it is the one the program was started in.
    """
    from pathlib import Path

    base = main.cwd if main.cwd.is_dir() else main.services.cwd
    return base / Path(text).expanduser()


def _tell(main: MainScreen, message: str, severity: Severity = "information") -> None:
    """Say it where one looks: above the prompt, or over the list of sessions."""
    if main.app.screen is main:
        main.say(message, severity)
    else:
        main.app.notify(message, severity=severity, markup=False)
