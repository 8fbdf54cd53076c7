"""The result of a session: its changes to the project's files, written as a patch or a Git commit.

The changes are those that checkpoints recorded; changes that others made in between are separated
where possible. ``files.git_writing`` makes the patch, or the commit on a new branch; the working
tree is not changed.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import cast

from tui_agent.agent.checkpoints.file_snapshots import Snapshot, take_snapshot
from tui_agent.agent.checkpoints.plan import DROPPED, Conflict, after_of, before_of, changes_in
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.checkpoints.restoring import Restorer
from tui_agent.app.format import listed, plural
from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.files.git_writing import (
    Committed,
    FileEdit,
    FileVersion,
    commit_to_branch,
    make_patch,
    merge,
    uncommittable,
)
from tui_agent.files.own_git import find_project
from tui_agent.lazy import frozen
from tui_agent.safe_text import one_line
from tui_agent.session.entries import AssistantEntry, CheckpointEntry, FileChange
from tui_agent.session.session import Session

BRANCH = "branch:"
"""Prefix by which a target is recognised as a Git branch instead of a file."""

_SUBJECT_CHARS = 72
_SUMMARY_CHARS = 2_000
_EXECUTABLE = 0o100

_NAMED = 5
"""Maximum number of paths that a sentence names; the others are counted."""


def _net_changes(
    changes: Iterable[FileChange], content: Callable[[Snapshot], bytes | None]
) -> tuple[list[FileEdit], list[Conflict], list[str]]:
    """Combine the changes to each file into one.

    Returns three lists: the files that differ at the end, the files left out (each with the
    reason), and the paths of files in which changes by others can't be separated from the session's
    changes.

    Args:
        changes: the changes recorded on one path of the session tree, oldest first.
        content: returns the bytes of a file's snapshot, None if they are not kept.
    """
    by_path: dict[str, list[FileChange]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    files: list[FileEdit] = []
    left_out: list[Conflict] = []
    mixed: list[str] = []
    for path, made in sorted(by_path.items()):
        snapshots = []
        for change in made:
            snapshots += [before_of(change), after_of(change)]
        if reason := _why_not(snapshots, content):
            left_out.append(Conflict(path, reason))
            continue
        file, is_mixed = _combined(path, made, content)
        if file.before != file.after:
            files.append(file)
            if is_mixed:
                mixed.append(path)
    return files, left_out, mixed


def _why_not(snapshots: Sequence[Snapshot], content: Callable[[Snapshot], bytes | None]) -> str:
    """Return why a file can't be in the result; "" if it can.

    Reasons are a snapshot that has a problem or isn't kept any more.
    """
    for snapshot in snapshots:
        if snapshot.problem:
            return snapshot.problem
    for snapshot in snapshots:
        if snapshot.digest is not None and content(snapshot) is None:
            return DROPPED
    return ""


def _combined(
    path: str, made: list[FileChange], content: Callable[[Snapshot], bytes | None]
) -> tuple[FileEdit, bool]:
    """Combine the session's changes to a file; also return whether others' changes are included.

    Changes that others made between the session's changes are left out by a three-way merge, if
    that is possible.
    """
    first = before_of(made[0])
    last = after_of(made[-1])
    own = content(first)
    has_links = any(one.is_link for change in made for one in (before_of(change), after_of(change)))
    is_mixed = False
    for change in made:
        before = content(before_of(change))
        after = content(after_of(change))
        if own == before:
            own = after
            continue
        merged = None
        # Two targets of a link can't be merged.
        if not has_links and own is not None and before is not None and after is not None:
            merged = merge(before, own, after)
        if merged is None:
            is_mixed = True
            own = after
        else:
            own = merged
    then = _version(content(first), first)
    return FileEdit(path, then, _version(own, last)), is_mixed


def _version(content: bytes | None, snapshot: Snapshot) -> FileVersion:
    return FileVersion(content, bool(snapshot.mode & _EXECUTABLE), snapshot.is_link)


class ResultError(UserFacingError):
    """Raised if a session has no result, or its result can't be written."""


@frozen
class SessionResult:
    """A session's changes to files, on the session path that ends at the entry ``leaf``.

    Reads files and runs git, so create and use it in a thread.
    """

    session: Session
    leaf: int | None
    project: Path
    files: Sequence[FileEdit]
    left_out: Sequence[Conflict]
    """Files that can't be in the result, each with the reason."""
    mixed: Sequence[str]
    """Files whose result includes changes that others made to the same lines as the session."""
    omitted: int
    """Number of changed files that are missing here, because there were too many to record."""

    @classmethod
    def of(
        cls, session: Session, snapshots: SnapshotStore, leaf: int | None = None
    ) -> "SessionResult":
        """Return the result of a session at the entry ``leaf``, by default at its current leaf."""
        if leaf is None:
            leaf = session.leaf
        project = find_project(Path(session.info.cwd))
        restorer = Restorer(project, snapshots)
        ids = session.reader.parting(leaf, None).left.of_kind("checkpoint")
        checkpoints = cast("list[CheckpointEntry]", session.entries(ids))
        changes = list(changes_in(checkpoints))
        places = {change.after: change.path for change in changes if change.after}

        def content(snapshot: Snapshot) -> bytes | None:
            data = restorer.content(snapshot)
            if data is None and snapshot.digest in places:
                # No snapshot is stored if a command changed thousands of files, so read them from
                # the disk.
                reading = take_snapshot(project / places[snapshot.digest])
                if reading.snapshot.digest == snapshot.digest:
                    data = reading.data
                else:
                    data = None
            return data

        files, left_out, mixed = _net_changes(changes, content)
        refused: dict[str, str] = {}
        own: list[str] = []
        for file in files:
            if repository := _repository_of(file.path, project):
                refused[file.path] = f"of the repository {repository}"
            else:
                own.append(file.path)
        refused |= uncommittable(project, own)
        for path, reason in refused.items():
            left_out.append(Conflict(path, reason))
        return cls(
            session,
            leaf,
            project,
            files=[file for file in files if file.path not in refused],
            left_out=left_out,
            mixed=mixed,
            omitted=sum(entry.omitted for entry in checkpoints),
        )

    def __bool__(self) -> bool:
        return bool(self.files)

    def write(self, target: str) -> str:
        """Write the result as a patch, or commit it to ``branch:NAME``; return a sentence about it.

        Raises:
            ResultError: the session changed no file, or the file can't be written.
            GitWriteError: Git can't make the commit.
        """
        if not self:
            raise ResultError(f"This session changed no files in {self.project}.{self.remarks()}")
        if target.startswith(BRANCH):
            name = target.removeprefix(BRANCH)
            done = commit_to_branch(self.project, name, self.files, self.message())
            files = plural(len(self.files) - len(done.left_out), "file")
            return f"Committed {files} to {done.branch} ({done.commit[:9]}).{self.remarks(done)}"
        try:
            write_atomically(Path(target), make_patch(self.files))
        except OSError as error:
            raise ResultError(f"{target} can't be written: {error.strerror or error}.") from None
        return (
            f"Wrote the changes of {plural(len(self.files), 'file')} to {target}. "
            f"Apply them with git apply.{self.remarks()}"
        )

    def message(self) -> str:
        """Return the commit message: the session's title and last answer, and its id as a trailer."""
        info = self.session.info
        title = one_line(info.title or info.first_message or "Work of a session", _SUBJECT_CHARS)
        path = reversed(self.session.path(self.leaf))
        answers = (entry.text.strip() for entry in path if isinstance(entry, AssistantEntry))
        # Remove "#" from headings, because Git drops lines that begin with it when a message is
        # edited.
        lines = next(filter(None, answers), "").splitlines()
        answer = "\n".join(line.lstrip("# ") if line.startswith("#") else line for line in lines)
        if len(answer) > _SUMMARY_CHARS:
            answer = f"{answer[:_SUMMARY_CHARS].rstrip()}…"
        return (
            "\n\n".join(filter(None, [title, answer, f"Tui-Agent-Session: {info.id}#{self.leaf}"]))
            + "\n"
        )

    def remarks(self, done: Committed | None = None) -> str:
        """Return sentences about changes that were left out, or mixed with others'; "" if none.

        Each sentence begins with a space. If there is a commit, ``done``, the sentences also name
        the files that it left out or mixed.
        """
        left_out = {conflict.path: conflict.reason for conflict in self.left_out}
        mixed = list(self.mixed)
        if done is not None:
            left_out |= done.left_out
            mixed += done.mixed
        said = []
        if left_out:
            rows = [f"{path} ({reason})" for path, reason in left_out.items()]
            said.append(f"Left out: {listed(rows, _NAMED)}.")
        if self.omitted:
            said.append(
                f"{self.omitted:,} more changed files were not recorded: there were too many."
            )
        if mixed:
            said.append(
                f"Others changed the same lines, so their changes are included: {', '.join(dict.fromkeys(mixed))}."
            )
        return "".join(f" {sentence}" for sentence in said)

    def as_json(self) -> dict[str, object]:
        """Return a JSON object with the session, entry, project and paths of the files."""
        return {
            "session": self.session.id,
            "entry": self.leaf,
            "project": str(self.project),
            "files": [file.path for file in self.files],
            "left_out": {conflict.path: conflict.reason for conflict in self.left_out},
            "not_recorded": self.omitted,
            "mixed": list(self.mixed),
        }


def _repository_of(path: str, project: Path) -> str:
    """Return the path of the nested Git repository that contains a file; "" if there is none.

    The path is relative to the project.
    """
    folders = (folder for folder in PurePosixPath(path).parents if folder.name)
    for folder in folders:
        if os.path.lexists(project / folder / ".git"):
            return str(folder)
    return ""
