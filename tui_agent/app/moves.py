"""Moves to another entry of the session tree, and restores the project's files to match.

The user is asked first if files were changed outside the session. The functions return a phrase
about what happened to files, which the callers show. The agent's navigator moves the session's
leaf (the entry after which the session continues); its file rewinder plans and restores files.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.format import one_line, plural
from tui_agent.app.frontend import Choice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.checkpoints.plan import Conflict, RestorePlan
    from tui_agent.agent.checkpoints.restoring import Restored
    from tui_agent.app.controller import Controller
    from tui_agent.context.branch_summary import MovePlan
    from tui_agent.session.entries import Entry

    Go = Callable[[], Awaitable[object]]

NOT_RECORDED = (
    "Changes to files are not recorded, because checkpoints.enabled is false in the settings."
)
"""Message if a command needs recorded file changes, but changes are not recorded."""

MAX_NAMED = 3
"""Maximum number of files or commits that a sentence names; the others are counted."""

REST = "y"
CONVERSATION = "c"
NOWHERE = "n"
"""Answers to the question about files that were changed outside the session.

`REST` restores the other files, `CONVERSATION` restores none, and `NOWHERE` cancels the move.
"""

_RUNS = ("tool_result", "shell")
"""Kinds of entries that can record a command. The command may have made a Git commit."""


async def move_with_files(
    controller: Controller,
    agent: Agent,
    target: int | None,
    go: Go,
    *,
    pair: tuple[int | None, int | None],
) -> str | None:
    """Move to ``target`` by calling ``go``, and restore files as they were at that entry.

    Returns a phrase about what happened to files, "" if nothing happened; None if the user cancels.
    ``pair`` contains the two ends of the move that is undone or redone. If that move didn't restore
    files, this move doesn't restore them either. Raises NavigationError if the session continued in
    the meantime.
    """
    from tui_agent.agent.checkpoints.plan import RestorePlan

    here = agent.session.leaf
    stays = frozenset(pair) in agent.files.stayed
    files: RestorePlan | None = RestorePlan()
    if not stays:
        files = await files_along(controller, agent, target)
    if files is None:
        return None
    commits = await commits_left(agent, target)
    _require_unmoved(agent, here)
    await go()
    done = await agent.files.restore(files)
    if stays:
        agent.files.stayed.add(frozenset((here, target)))
    return files_phrase(files, done, commits)


async def make_move(
    agent: Agent,
    move: MovePlan,
    files: RestorePlan | None,
    *,
    focus: str | None = None,
    progress: Callable[[str], None] | None = None,
    verb: str = "restored",
) -> str:
    """Move the session's leaf as planned (see ``Navigator.move``), and restore the project's files.

    If ``files`` is None, no files are restored. Returns a phrase about what happened to files, ""
    if nothing happened; ``verb`` is its word for files that are not deleted. Raises NavigationError
    if the session has continued since the move was planned.
    """
    commits = await commits_left(agent, move.leaf)
    _require_unmoved(agent, move.from_id)
    await agent.navigator.move(move, focus=focus, progress=progress)
    if files is None:
        agent.files.stayed.add(frozenset((move.from_id, move.leaf)))
        return "files stay as they are"
    return files_phrase(files, await agent.files.restore(files), commits, verb=verb)


def _require_unmoved(agent: Agent, leaf: int | None) -> None:
    """Raise NavigationError if the session is no longer at ``leaf``, where a move was planned.

    For example, the report of a job can begin a run while the user is being asked.
    """
    from tui_agent.agent.navigator import NavigationError

    if agent.running or agent.session.leaf != leaf:
        raise NavigationError("The session went on meanwhile, so nothing was moved. Try again.")


async def files_along(
    controller: Controller, agent: Agent, target: int | None
) -> RestorePlan | None:
    """Return how to restore files on a move to the entry ``target``; None if the user cancels.

    Asks about files that were changed outside the session. If the user agrees, doesn't ask about
    the same changes again. The plan is empty if the user wants to move without restoring files.
    """
    from tui_agent.agent.checkpoints.plan import RestorePlan

    ends = frozenset((agent.session.leaf, target))
    agent.files.stayed.discard(ends)
    plan = await agent.files.plan(target)
    found = await agent.files.changed_by_others(plan)
    foreign = list(found)
    if not foreign:
        return plan
    changes = await agent.files.foreign_changes(target)
    names = _listed([conflict.path for conflict in foreign])
    answers = [
        (REST, f"yes; {names} {_stay(foreign)} unchanged"),
        (CONVERSATION, "only the conversation, no files"),
        (NOWHERE, "no"),
    ]
    asked = Choice(
        f"{names} changed outside this session. Continue anyway?",
        answers,
        why=_why(foreign, plan),
        files=changes,
        unasked=REST,
        inline=True,
    )
    answer = await controller.ask(asked)
    if answer not in {REST, CONVERSATION}:
        return None
    agent.files.accept(found)
    if answer == REST:
        return plan
    agent.files.stayed.add(ends)
    return RestorePlan()


def _why(foreign: Sequence[Conflict], plan: RestorePlan) -> str:
    """Return sentences that say why files conflict and what happens to the other files."""
    reasons = ", ".join(dict.fromkeys(conflict.reason for conflict in foreign))
    rest = _steps_phrase(plan, [step.path for step in plan.steps])
    if rest:
        return f"{reasons.capitalize()}. The rest: {rest}."
    return f"{reasons.capitalize()}."


def files_phrase(
    plan: RestorePlan, done: Restored, commits: Sequence[str] = (), *, verb: str = "restored"
) -> str:
    """Return a phrase that names the restored and deleted files, and what is not reverted.

    Files in conflict and the Git ``commits`` are not reverted. ``verb`` is the word for the files
    that are not deleted. Returns "" if there is nothing to name.
    """
    said = []
    if done.done:
        said = [_steps_phrase(plan, done.done, verb)]
    said += _directories_phrases(plan, done.directories)
    stays = done.stays(plan)
    for conflict in stays[:MAX_NAMED]:
        said.append(f"{_name(conflict.path)} stays ({conflict.reason})")
    if (more := len(stays) - MAX_NAMED) > 0:
        said.append(f"{plural(more, 'more file')} unchanged")
    if plan.omitted:
        said.append(f"{plan.omitted:,} more files changed and stay: there were too many to record")
    if commits:
        said.append(
            f"the {'commit' if len(commits) == 1 else 'commits'} {_listed(commits)} {_stay(commits)}"
        )
    return ", ".join(said)


def _stay(things: Sequence[object]) -> str:
    return "stays" if len(things) == 1 else "stay"


def _steps_phrase(plan: RestorePlan, paths: Sequence[str], verb: str = "restored") -> str:
    """Return a phrase that says which files a plan deletes and which it restores.

    ``verb`` is the word for the second.
    """
    gone = {step.path for step in plan.steps if not step.wanted.exists}
    deleted: list[str] = []
    restored: list[str] = []
    for path in paths:
        if path in gone:
            deleted.append(path)
        else:
            restored.append(path)
    said = []
    if deleted:
        said = [f"{_listed(deleted)} deleted"]
    if restored:
        said.append(f"{_listed(restored)} {verb}")
    return ", ".join(said)


def _directories_phrases(plan: RestorePlan, paths: Sequence[str]) -> list[str]:
    """Return phrases that name the directories in ``paths`` that contain no file of the plan.

    The names of the plan's files already say what happened to the directories around these.
    """
    removed: list[str] = []
    created: list[str] = []
    for step in plan.directories:
        around = f"{step.path}/"
        has_files = any(file.path.startswith(around) for file in plan.steps)
        if step.path in paths and not has_files:
            (removed if step.mode is None else created).append(around)
    said = []
    if removed:
        said = [f"{_listed(removed)} removed"]
    if created:
        said.append(f"{_listed(created)} created")
    return said


def _listed(names: Sequence[str]) -> str:
    shown = [_name(name) for name in names[:MAX_NAMED]]
    if len(names) > MAX_NAMED:
        shown[MAX_NAMED - 1 :] = [f"{len(names) - MAX_NAMED + 1} more"]
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _name(path: str) -> str:
    text = one_line(path, 10_000)
    if len(text) <= 40:
        return text
    return f"…{text[-39:]}"


async def commits_left(agent: Agent, target: int | None) -> list[str]:
    """Return short ids of the Git commits made on the part of the session path that a move leaves.

    The move goes to the entry ``target``, and doesn't undo commits. The list is empty if no command
    or tool was run on that part of the path.
    """
    from tui_agent.files.own_git import commits_between

    left = agent.session.reader.parting(agent.session.leaf, target).left
    if not any(left.of_kind(kind) for kind in _RUNS):
        return []
    ids = list(left.ids)
    ends: list[Entry] = agent.session.entries([ids[0], ids[-1]])
    if not ends:
        return []
    times = [entry.created_at / 1_000 for entry in ends]
    return await asyncio.to_thread(commits_between, agent.ports.project, min(times), max(times))
