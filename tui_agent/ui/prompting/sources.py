"""The sources of the prompt's completions: files, subagents, MCP resources, sessions and entries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agent.mentions import escaped, unescaped
from tui_agent.app.format import age, one_line
from tui_agent.ui.prompting.completion import (
    LIMIT,
    Candidate,
    CompletionSource,
    as_path,
    mention,
    rank_files,
    rank_labels,
    with_directories,
)

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.session.records import EntryHeader

FILE_LIST_SECONDS = 5.0
"""Seconds after which the list of the project's files is read again."""
_SESSION = "session"
"""The word after ``@`` that begins a mention of another session."""
_FEWEST_LETTERS = 3
"""Minimum number of letters of the word ``session`` that the user has to type before other sessions
are offered."""
_MAX_PREVIEW_CHARS = 72
"""Maximum number of characters in the preview of an entry."""
_ROLE_NAMES = {
    "user": "you",
    "assistant": "answer",
    "tool_result": "tool",
    "shell": "shell",
    "compaction": "compaction",
}


def sources(controller: Controller, files: FileSource) -> tuple[CompletionSource, ...]:
    """Return all sources of completions, each with the kind of token that it completes."""
    return (
        ("mention", files.find),
        ("path", partial(_find_paths, files)),
        ("mention", partial(_find_named, controller)),
        ("mention", partial(_find_sessions, controller)),
        ("entry", partial(_find_entries, controller)),
    )


class FileSource:
    """Completes files and directories of the project."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._paths: Sequence[str] = ()
        self._read: tuple[Path, float] | None = None

    def forget(self) -> None:
        """Make the next call of ``find`` read the project's list of files again."""
        self._read = None

    async def find(self, query: str) -> Sequence[Candidate]:
        """Return candidates for the files and directories that match the query, best first.

        The result is empty before a session is open. The list of files is read again if it is older
        than `FILE_LIST_SECONDS` or belongs to another directory.
        """
        controller = self._controller
        if not controller.attached.is_set():
            return ()
        where = controller.cwd
        now = time.monotonic()
        if self._read is None or self._read[0] != where or now - self._read[1] > FILE_LIST_SECONDS:
            self._paths = await asyncio.to_thread(
                with_directories, await controller.services.list_files(where)
            )
            self._read = (where, time.monotonic())
        return await asyncio.to_thread(rank_files, query, self._paths)


async def _find_paths(files: FileSource, query: str) -> Sequence[Candidate]:
    """Return candidates for the paths that match a word of a shell command, best first.

    Names with control characters are left out.
    """
    found = await files.find(query.removeprefix("./"))
    return [as_path(one, query) for one in found if unescaped(one.label) == one.label]


async def _find_named(controller: Controller, query: str) -> Sequence[Candidate]:
    """Return candidates for the subagents and MCP resources that match the query, best first.

    Names with control characters are left out. The result is empty before a session is open.
    """
    if controller.agent is None:
        return ()
    from tui_agent.agent.preparing import all_named

    rows = all_named(controller.agent.ports)
    named: list[Candidate] = []
    for row in rows:
        if escaped(row.name) != row.name:
            continue
        text = f"{row.kind}: {row.description}" if row.description else row.kind
        preview = one_line(text, _MAX_PREVIEW_CHARS)
        named.append(Candidate(mention(row.name), row.name, preview))
    return rank_labels(query, named)


async def _find_sessions(controller: Controller, query: str) -> Sequence[Candidate]:
    """Return the other sessions in this directory that match a query like ``session:1a2``.

    For a query like ``session:1a2b3c4d#4``, return the matching entries of that session. The result
    is empty if no session is open, or if the query does not begin with at least `_FEWEST_LETTERS`
    letters of ``session``.
    """
    is_meant = len(query) >= _FEWEST_LETTERS and query.startswith(_SESSION[: len(query)])
    if controller.agent is None or not is_meant:
        return ()
    from tui_agent.agent.other_sessions import sessions_beside
    from tui_agent.session.ids import short_id

    now = controller.services.clock()
    name, sign, wanted = query.partition("#")
    infos = await asyncio.to_thread(sessions_beside, controller.agent.session)
    named = {f"{_SESSION}:{short_id(info.id)}": info for info in infos}
    if not sign:
        rows: list[Candidate] = []
        for known, info in named.items():
            title = one_line(info.title or info.first_message, _MAX_PREVIEW_CHARS)
            label = f"{known}  {title}"
            rows.append(Candidate(mention(known), label, age(info.updated_at, now)))
        return rank_labels(query, rows)
    if name not in named:
        return ()
    store = controller.services.store
    found = await asyncio.to_thread(store.mentionable, named[name].id, wanted, LIMIT)
    entries = [_entry(header, now, 0, here=True) for header in found]
    return [
        replace(one, insert=f"@{name}{one.insert}", score=float(len(entries) - place))
        for place, one in enumerate(entries)
    ]


async def _find_entries(controller: Controller, query: str) -> Sequence[Candidate]:
    """Return at most `LIMIT` entries of the open session that match a query, best first.

    Entries whose number begins with the query come first. Entries whose preview contains the query
    come next, then entries whose preview contains the query's letters in order. Within each of
    these groups, the newest entry comes first. Searches all branches, but leaves out undone
    entries.
    """
    if controller.agent is None:
        return ()
    now = controller.services.clock()
    found = await asyncio.to_thread(
        controller.services.store.mentionable, controller.agent.session.id, query, LIMIT
    )
    session = controller.agent.session
    kept = [header for header in found if not session.history.is_undone(header.id)]
    return [
        _entry(header, now, len(kept) - place, here=session.on_path(header.id))
        for place, header in enumerate(kept)
    ]


def _entry(header: EntryHeader, now: float, score: int, *, here: bool) -> Candidate:
    from tui_agent.app.strip_markdown import plain_preview
    from tui_agent.session.previews import ERROR

    who = _ROLE_NAMES.get(header.kind, header.kind.replace("_", " "))
    preview = plain_preview(header.kind, header.preview)
    if header.kind == "assistant" and preview.startswith(ERROR):
        who = "error"
        preview = preview.removeprefix(ERROR)
    label = f"#{header.id:<5} {who:<10} {one_line(preview, _MAX_PREVIEW_CHARS)}"
    about = age(header.created_at, now)
    if not here:
        about = f"other branch · {about}"
    return Candidate(f"#{header.id} ", label, about, score=float(score))
