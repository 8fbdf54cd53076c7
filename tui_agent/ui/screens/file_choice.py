"""Whether files go along with a move: what is asked, what is shown of a plan, and how it is carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.abilities import RewindingAgent
from tui_agent.ui.format import plural
from tui_agent.ui.screens.choice import ChoiceScreen
from tui_agent.ui.widgets.transcript import sanitize

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.screen import Screen

    from tui_agent.agent.checkpoints.plan import RestorePlan

    Go = Callable[[], Awaitable[bool]]
    """Moves; returns whether that went well."""

SHOWN = 6
"""Files listed; the rest is counted."""
_WIDTH = 56
_PATH = 34

KEEP, RESTORE = "keep", "restore"


def files_text(plan: RestorePlan) -> str:
    """Return what restoring would do, a line for each file, and what stays with its reason."""
    rows = [f"{step.what:<7} {_path(step.path)}" for step in plan.steps]
    rows += [f"stays   {_path(conflict.path)}: {conflict.reason}" for conflict in plan.conflicts]
    shown = [row if len(row) <= _WIDTH else f"{row[: _WIDTH - 1]}…" for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        shown.append(f"… and {len(rows) - SHOWN} more")
    if plan.omitted:
        shown.append(f"{plan.omitted:,} more files changed; there were too many to keep")
    return "\n".join(shown)


def files_question(plan: RestorePlan, *, keep_first: bool = True) -> ChoiceScreen:
    """Return the question whether files go along. Dismissed with ``keep`` or ``restore``, None for neither."""
    answers = [(KEEP, "Keep files as they are"), (RESTORE, f"Restore {plural(len(plan.steps), 'file')}")]
    question = f"{plural(len(plan.steps) + len(plan.conflicts), 'file')} changed in between."
    return ChoiceScreen(question, answers if keep_first else answers[::-1], files_text(plan))


async def move_with_files(
    screen: Screen[None], agent: object, target: int | None, go: Go, *, pair: tuple[int | None, int | None]
) -> None:
    """Move, and take files along as they went along the last time between the entries of ``pair``.

    Where nobody knows, the user is asked; escape is no move at all. Nothing is asked where no file would change.
    """
    if not isinstance(agent, RewindingAgent):
        await go()
        return
    files, here = agent.files, agent.session.leaf
    plan = await files.plan(target)
    known = files.went_along(*pair)
    if not plan.steps or known is not None:
        if await go() and plan.steps:
            files.remember(here, target, along=bool(known))
            if known:
                await files.restore(plan)
        return

    async def answered_with(answer: str) -> None:
        if await go():
            files.remember(here, target, along=answer == RESTORE)
            if answer == RESTORE:
                await files.restore(plan)

    def answered(answer: str | None) -> None:
        if answer is not None:
            screen.run_worker(answered_with(answer), group="tree-move", exclusive=True)

    screen.app.push_screen(files_question(plan), answered)


def _path(path: str) -> str:
    text = sanitize.line(path)
    return text if len(text) <= _PATH else f"…{text[1 - _PATH :]}"
