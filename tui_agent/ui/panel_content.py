"""Computes the side panel's content: outline of a session, to-dos, changed files, running jobs.

All functions are pure, except that `summarised_changes` reads summarised entries from the store.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tui_agent.app.strip_markdown import plain_preview
from tui_agent.lazy import frozen
from tui_agent.processes.jobs import JobState
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    CheckpointEntry,
    CompactionEntry,
    Entry,
    ShellEntry,
    SummaryEntry,
    ToolResultEntry,
    UserEntry,
    kinds,
)
from tui_agent.session.path_queries import newest
from tui_agent.session.records import EntryHeader
from tui_agent.session.session import Session
from tui_agent.session.skeleton import Headers
from tui_agent.tools.todo import TodoTool, current_todos, done_of, is_of_newest_turn
from tui_agent.ui.widgets.tree.segments import Segment, TreeIndex

MAX_FILES = 12
"""Maximum number of changed files that are listed. If there are more, the most recently changed are
listed."""

_OUTLINED = kinds(lambda kind: kind.in_outline)
"""Kinds of entries that always have a row in the outline. Other entries have a row only if they are
labelled or are the leaf (the current entry)."""


@frozen
class OutlineRow:
    """A row of the outline: a message on the active path, a labelled entry, the leaf, or a branch.

    The leaf is the current entry. ``is_branch`` marks the row of another branch. ``count`` is the
    number of entries in that branch, including branches of it; 0 for other rows. The ``entry_id``
    of a branch's row is the id of its first message, or of its first entry if it has no message.
    """

    entry_id: int
    text: str
    depth: int = 0
    on_path: bool = True
    is_leaf: bool = False
    is_branch: bool = False
    label: str = ""
    count: int = 0
    is_leaf_only: bool = False
    """Whether the entry has a row only because it is the leaf (the current entry)."""


@frozen
class ChangedFile:
    """A file that the session changed, with the numbers of lines added and removed.

    ``entry_id`` is the id of the last entry that changed the file.
    """

    path: str
    additions: int = 0
    deletions: int = 0
    entry_id: int | None = None


@frozen
class PanelFacts:
    """The contents of the side panel, except the outline.

    ``todos`` are (status, text). ``todo_entry`` is the id of the newest result of the to-do tool,
    None if there is none. ``files`` contains at most `MAX_FILES`, the most recently changed last.
    ``jobs`` are the running jobs, as (number, command).
    """

    todos: tuple[tuple[str, str], ...] = ()
    todo_entry: int | None = None
    files: tuple[ChangedFile, ...] = ()
    jobs: tuple[tuple[int, str], ...] = ()


def with_new_leaf(rows: Sequence[OutlineRow], entry: Entry) -> list[OutlineRow]:
    """Return the outline's rows with a new entry appended as the leaf; [] if no row is the leaf.

    If the entry is not newer than the leaf, the rows are returned unchanged, because they may have
    been read after the entry was stored.
    """
    leaf = next((row for row in reversed(rows) if row.is_leaf), None)
    if leaf is None or entry.id <= leaf.entry_id:
        if leaf is not None:
            return list(rows)
        return []
    depth = leaf.depth
    earlier = []
    for row in rows:
        if not row.is_leaf_only:
            earlier.append(replace(row, is_leaf=False) if row.is_leaf else row)
    text = _text(entry)
    return [
        *earlier,
        OutlineRow(entry.id, text, depth, is_leaf=True, is_leaf_only=not entry.in_outline),
    ]


def outline(headers: Headers, leaf: int | None, labels: Mapping[int, str]) -> list[OutlineRow]:
    """Return the outline: the messages of the active path, oldest first, and the other branches.

    Each other branch has one row, after the entry where it leaves the path. The active path leads
    from the root of the session tree to the leaf (the current entry). Its labelled entries and the
    leaf also have a row. ``labels`` contains the labels by entry id. Subagents' branches and former
    attempts have no row.
    """
    index = TreeIndex(headers, leaf)
    rows: list[OutlineRow] = []
    stack: list[tuple[Segment, int]] = [(root, 0) for root in reversed(_branches(index.roots))]
    while stack:
        segment, depth = stack.pop()
        if segment.active:
            rows.extend(_messages(segment, depth, leaf, labels))
        if left := segment.headers[segment.active :]:
            first = left[next(iter(left.of_kinds(["user"])), 0)]
            label = next((labels[left.ids[at]] for at in _positions(left, labels)), "")
            rows.append(
                OutlineRow(
                    first.id,
                    _text(first),
                    depth + bool(segment.active),
                    on_path=False,
                    is_branch=True,
                    label=label,
                    count=segment.count - segment.active,
                )
            )
        children = _branches(segment.children)
        is_fork = len(children) > 1
        # Put the active branch last, without indentation, so that a long session stays at the left.
        children = sorted(children, key=lambda child: child.active == 0)
        if segment.active or any(child.active for child in children):
            stack.extend((child, depth + (is_fork and not child.active)) for child in children)
    return rows


def _branches(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments that belong neither to a subagent nor to a former attempt."""
    branches = []
    for segment in segments:
        if not segment.is_subagent and not segment.is_former_attempt:
            branches.append(segment)
    return branches


def _messages(
    segment: Segment, depth: int, leaf: int | None, labels: Mapping[int, str]
) -> Iterable[OutlineRow]:
    """Yield the outline's rows for the entries of a segment that are on the active path.

    Entries of the kinds in `_OUTLINED`, labelled entries and the leaf have a row.
    """
    on_path = segment.headers[: segment.active]
    places = {*on_path.of_kinds(_OUTLINED), *_positions(on_path, labels), len(on_path) - 1}
    for header in on_path.some(sorted(places)):
        label = labels.get(header.id, "")
        is_outlined = header.kind in _OUTLINED
        if is_outlined or label or header.id == leaf:
            yield OutlineRow(
                header.id,
                _text(header),
                depth,
                label=label,
                is_leaf=header.id == leaf,
                is_leaf_only=not is_outlined and not label,
            )


def _positions(headers: Headers, ids: Iterable[int]) -> list[int]:
    return [at for entry_id in sorted(ids) if (at := headers.position(entry_id)) is not None]


def _text(header: EntryHeader | Entry) -> str:
    if header.kind == "compaction":
        return "Compacted"
    return plain_preview(header.kind, header.preview) or header.kind.replace("_", " ")


def panel_facts(path: Sequence[Entry], jobs: Iterable[JobState] = ()) -> PanelFacts:
    """Return the to-dos and changed files of a session path, and the running jobs among ``jobs``.

    To-dos that are all done are included only if they were set in the newest turn. Files named only
    by checkpoints are not included.
    """
    todos = current_todos(path)
    done, count = done_of(todo.status for todo in todos)
    if done == count and not is_of_newest_turn(path):
        todos = ()
    newest_list = newest(path, ToolResultEntry, where=lambda entry: entry.tool == TodoTool.name)
    return PanelFacts(
        todos=tuple((str(todo.status), todo.content) for todo in todos),
        todo_entry=newest_list.id if newest_list is not None else None,
        files=tuple(changed_files(entry for entry in path if entry.kind != "checkpoint").values())[
            -MAX_FILES:
        ],
        jobs=running_jobs(jobs),
    )


def summarised_changes(session: Session) -> list[Entry]:
    """Return the summarised tool results that may report a change to a file named in a summary.

    These are the results whose preview contains the path of a file that a compaction on the active
    path lists as modified. They contain the line counts, which the compaction lacks.
    """
    active = {entry.id: entry for entry in session.active_path()}
    names: set[str] = set()
    for entry in active.values():
        if isinstance(entry, CompactionEntry):
            names.update(entry.details.modified_files)
    if not names:
        return []
    results = session.path_outline().of_kind("tool_result")
    headers = session.reader.headers([entry_id for entry_id in results if entry_id not in active])
    ids = []
    for header in headers:
        if any(name in header.preview for name in names):
            ids.append(header.id)
    return session.entries(ids)


def running_jobs(jobs: Iterable[JobState]) -> tuple[tuple[int, str], ...]:
    return tuple((job.id, job.command) for job in jobs if job.running)


def changed_files(entries: Iterable[Entry]) -> dict[str, ChangedFile]:
    """Return the files that the entries changed, by path, in the order of their last tool result.

    The numbers of lines come from tool results. A file named only by a summary or checkpoint has
    counts of 0 and stays where it was first named. The counts of a call that changed several files
    are added only to the file in the call's ``path``.
    """
    found: dict[str, ChangedFile] = {}
    for entry in entries:
        match entry:
            case SummaryEntry():
                for name in entry.details.modified_files:
                    found.setdefault(name, ChangedFile(name, entry_id=entry.id))
            case CheckpointEntry():
                for change in entry.files:
                    found.setdefault(change.path, ChangedFile(change.path, entry_id=entry.id))
            case ToolResultEntry(metadata=data):
                of_one = bool(data.path and (data.diff or data.additions or data.deletions))
                names = data.modified_files or ((data.path or "",) if of_one else ())
                for name in names:
                    before = found.pop(name, ChangedFile(name))
                    added = before.additions
                    removed = before.deletions
                    is_counted = len(names) == 1 or name == data.path
                    if is_counted:
                        added += data.additions
                        removed += data.deletions
                    found[name] = ChangedFile(name, added, removed, entry.id)
            case UserEntry() | ShellEntry() | AssistantEntry() | BookkeepingEntry():
                pass
    return found
