"""Whether files go along with a move: what is asked, what is shown of a plan, and how it is carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.format import one_line, plural
from tui_agent.app.frontend import Choice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.checkpoints.plan import RestorePlan
    from tui_agent.app.controller import Controller
    from tui_agent.context.branch_summary import MovePlan

    Go = Callable[[], Awaitable[str]]
    """Moves; returns the sentence that says so."""

MAX_FILES_LISTED = 6
"""Files listed; the rest is counted."""
_WIDTH = 56
_PATH = 34

KEEP, RESTORE = "keep", "restore"


def files_text(plan: RestorePlan) -> str:
    """Return what restoring would do, a line for each file, and what stays with its reason."""
    rows = [f"{step.what:<7} {_path(step.path)}" for step in plan.steps]
    rows += [f"stays   {_path(conflict.path)}: {conflict.reason}" for conflict in plan.conflicts]
    shown = [row if len(row) <= _WIDTH else f"{row[: _WIDTH - 1]}…" for row in rows[:MAX_FILES_LISTED]]
    if len(rows) > MAX_FILES_LISTED:
        shown.append(f"… and {len(rows) - MAX_FILES_LISTED} more")
    if plan.omitted:
        shown.append(f"{plan.omitted:,} more files changed; there were too many to keep")
    return "\n".join(shown)


def files_question(plan: RestorePlan) -> Choice:
    """Return the question whether files go along. Answered with ``keep`` or ``restore``."""
    answers = [(KEEP, "Keep files as they are"), (RESTORE, f"Restore {plural(len(plan.steps), 'file')}")]
    question = f"{plural(len(plan.steps) + len(plan.conflicts), 'file')} changed in between."
    return Choice(question, answers, files_text(plan), unasked=KEEP)


async def carry_out(
    agent: Agent,
    move: MovePlan,
    files: RestorePlan | None,
    *,
    focus: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Move (see ``Navigator.move``) and restore files, None to keep them; undoing the move does likewise.

    Returns the paths that stay as they are though they should have changed; the user was told why.
    """
    await agent.navigator.move(move, focus=focus, progress=progress)
    agent.files.remember(move.from_id, move.leaf, along=files is not None)
    if files is None:
        return []
    done = await agent.files.restore(files)
    return [conflict.path for conflict in (*done.failed, *files.conflicts)]


async def move_with_files(
    controller: Controller, agent: Agent, target: int | None, go: Go, *, pair: tuple[int | None, int | None]
) -> None:
    """Move, and take files along as they went along the last time between the entries of ``pair``.

    Where nobody knows, the user is asked; escape is no move at all. Nothing is asked where no file would change.
    """
    files, here = agent.files, agent.session.leaf
    plan = await files.plan(target)
    along = files.went_along(*pair)
    if plan.steps and along is None:
        answer = await controller.ask(files_question(plan))
        if answer is None:
            return
        along = answer == RESTORE
    said = await go()
    if plan.steps:
        files.remember(here, target, along=bool(along))
        if along:
            await files.restore(plan, said)


def _path(path: str) -> str:
    text = one_line(path, 10_000)
    return text if len(text) <= _PATH else f"…{text[1 - _PATH :]}"
