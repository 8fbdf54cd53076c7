"""Starts the judge process, sends it requests, and checks its answers.

The judge (``judge_program``) decides which changes of commands are kept. It runs in the sandbox and
keeps running. Its answers aren't trusted, because it reads files that commands wrote. So paths must
be in the project, and an answer's size, number of names and time are limited.
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tui_agent.lazy import frozen
from tui_agent.processes.environment import own
from tui_agent.safe_text import one_line
from tui_agent.sandbox.change_policy import LossReason
from tui_agent.sandbox.judge_program import MAX_NAMES, grants_from
from tui_agent.sandbox.layer import MAX_CHANGES
from tui_agent.sandbox.view import Grants, View, Writes

JUDGE_SECONDS = 600.0
"""Maximum seconds to wait for an answer from the judge. Copying a large directory takes long."""
MAX_ANSWER_BYTES = 64 * 1024**2
_MAX_PATH = 4_096
_PIECE = 1 << 18
_SHOWN = 5
_MAX_QUOTED = 300
"""Maximum number of characters of the judge's error output that an error message quotes."""

_REASONS = {
    LossReason.SOURCES: "The command may not change these files.",
    LossReason.UNRESTORABLE: "/undo can't restore these files, so the user has to allow the change.",
    LossReason.STEERING: "Other programs run these files or read them as settings.",
    LossReason.SECRETS: "Files with such names contain secrets.",
    LossReason.REPOSITORY: "They belong to a git repository.",
    LossReason.OUTSIDE: "Links that lead out of the project are never kept, except links to programs.",
    LossReason.SPECIAL: (
        "Never kept are pipes, sockets, devices, setuid and sparse files, and unreadable directories."
    ),
    LossReason.OVERTAKEN: "Others changed these files meanwhile.",
    LossReason.TOGETHER: (
        "They are in deleted directories that contain files which have to stay, or in new directories to which such "
        "directories may have been moved."
    ),
    LossReason.FAILED: "They could not be written.",
    LossReason.LIMIT: "The command changed too many files, or nested directories too deeply.",
}
"""Sentences for the model that say why changes were discarded."""

_ALLOWABLE = (
    LossReason.SOURCES,
    LossReason.UNRESTORABLE,
    LossReason.STEERING,
    LossReason.SECRETS,
    LossReason.REPOSITORY,
    LossReason.TOGETHER,
)
"""Reasons for which changes are discarded only because the user hasn't allowed them."""

Started = tuple[Sequence[str], Sequence[int]]
"""An argument list, and the descriptors of this program from which the new process reads.

`JudgeProcess` closes the descriptors after the process has ended.
"""


class JudgeError(Exception):
    """The judge gave no answer or an invalid answer, or reported an error. The message says why."""


class JudgeEndedError(JudgeError):
    """The judge process ended before it answered."""


@contextlib.contextmanager
def checking_answer() -> Iterator[None]:
    """In a block that reads an answer, convert errors (ValueError, KeyError, …) to JudgeError."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError):
        raise JudgeError("the judge's answer has invalid content") from None


@frozen
class Names:
    """The relative paths of the first few changes, and the number of all changes."""

    names: tuple[str, ...] = ()
    count: int = 0

    def listed(self) -> str:
        more = ""
        if self.count > _SHOWN:
            more = f" and {self.count - _SHOWN} more"
        # A command chose the names, so a line break in a name must not look like a line of this
        # program.
        return ", ".join(map(one_line, self.names[:_SHOWN])) + more


@frozen
class Verdict:
    """The judge's verdict on the changes of a command. Paths are relative to the project.

    If ``needs`` has paths, there is no verdict yet: the judge needs to know what git and the
    checkpoints know about them. ``sources`` are the source files and directories to keep; ``keeps``
    is True if there are any, so that the request "keep" has to follow. ``lost`` are the discarded
    changes by reason, and ``wanted`` are the sandbox grants that they would need.
    """

    needs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    keeps: bool = False
    lost: Mapping[LossReason, Names] = field(default_factory=dict)
    wanted: Grants = Grants()

    @property
    def asks_about(self) -> tuple[str, ...]:
        """The first of the discarded changes that the user could allow."""
        names: list[str] = []
        for reason in _ALLOWABLE:
            if reason in self.lost:
                names += self.lost[reason].names
        return tuple(names)

    def notes(self, view: View) -> list[str]:
        """Return the notes for the model on discarded changes, one for each reason."""
        done = "Not kept"
        if view.writes is Writes.NOTHING:
            done = "Thrown away"
        notes = []
        for reason, names in self.lost.items():
            why = _REASONS[reason]
            notes.append(f"[{done}, the files are as they were: {names.listed()}. {why}]")
        return notes


class JudgeProcess:
    """The judge process of one project, started by the first request and again after a failure."""

    def __init__(self, start: Callable[[], Started]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owned: Sequence[int] = ()
        self._end: Callable[[], object] = bool
        self._errors = b""

    def ask(self, do: str, **given: Any) -> dict[str, Any]:
        """Send a request and return the answer; ``do`` names a method of `judge_program.Judge`.

        Blocks for up to `JUDGE_SECONDS`, so call it in a thread. If the judge ends before it
        answers, it is started again, but only once. Raises JudgeError if the answer reports an
        error, or if there is no valid answer; in the second case the process is ended.
        """
        request = json.dumps({"do": do, **given}).encode() + b"\n"
        with self._lock:
            try:
                row = self._answer(request)
            except JudgeEndedError:
                # The judge was killed, maybe long ago, but a new process can answer instead.
                row = self._answer(request)
        if "error" in row:
            raise JudgeError(one_line(str(row["error"]))[:_MAX_PATH])
        return row

    def _answer(self, request: bytes) -> dict[str, Any]:
        try:
            answer = _exchange(*self._pipes(), request, time.monotonic() + JUDGE_SECONDS)
            self._read_errors()
        except JudgeError as error:
            said = self._last_error()
            self._end()
            self._process = None
            if said and isinstance(error, JudgeEndedError):
                raise JudgeEndedError(f"{error}: {said}") from None
            raise
        return answer

    def _read_errors(self) -> None:
        """Read the error output so far, so that its pipe doesn't fill up; store the last part."""
        if self._process is None or self._process.stderr is None:
            return
        with contextlib.suppress(OSError):
            while piece := os.read(self._process.stderr.fileno(), _PIECE):
                self._errors = (self._errors + piece)[-_MAX_PATH:]

    def _last_error(self) -> str:
        """Return the last line that the process wrote to its error output; "" for no output."""
        self._read_errors()
        lines = self._errors.decode("utf-8", "replace").split("\n")
        return next((one_line(line)[:_MAX_QUOTED] for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        with self._lock:
            self._end()
            self._process = None

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """Return the judge's standard input and output. Starts the judge if it isn't running."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = self._start_process()
            self._end = weakref.finalize(self, _end_process, self._process, self._owned)
        reads = self._process.stdin
        writes = self._process.stdout
        if reads is None or writes is None:
            raise JudgeError("the judge process has no pipes")
        return reads, writes

    def _start_process(self) -> "subprocess.Popen[bytes]":
        try:
            command, self._owned = self._start()
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=own({}),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise JudgeError(f"the judge process can't be started ({error.strerror})") from None
        self._errors = b""
        if process.stderr is not None:
            os.set_blocking(process.stderr.fileno(), False)
        return process


def judge_words(project: Path) -> tuple[str, ...]:
    """Return the command line of a project's judge. The caller adds the sandbox's command line."""
    paths = [str(place) for place in _packages()]
    code = f"import sys; sys.path[:0] = {paths!r}; from tui_agent.sandbox.judge_program import main; main()"
    return (sys.executable, "-I", "-S", "-B", "-c", code, str(project))


def judge_places() -> list[Path]:
    """Return the existing directories of Python, this program and the judge's libraries."""
    found = (*map(Path, (sys.prefix, sys.base_prefix)), *_packages())
    return list(dict.fromkeys(place for place in found if place.is_dir()))


def _packages() -> list[Path]:
    """Return the directories of this program and of the libraries that the judge needs."""
    import pathspec

    return [Path(__file__).resolve().parents[2], Path(pathspec.__file__).resolve().parents[1]]


def _end_process(process: "subprocess.Popen[bytes]", owned: Sequence[int]) -> None:
    """Kill the judge, and close its pipes and the descriptors that it read."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.kill()
    process.wait()
    for descriptor in owned:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _exchange(reads: IO[bytes], writes: IO[bytes], request: bytes, until: float) -> dict[str, Any]:
    """Write a request to the judge's input ``reads``, and return the answer from ``writes``.

    ``until`` is the deadline on the monotonic clock, in seconds. Raises JudgeError if the answer is
    late, too long or unreadable, and JudgeEndedError if the judge has ended.
    """
    writing = reads.fileno()
    reading = writes.fileno()
    os.set_blocking(writing, False)
    try:
        while request:
            _wait(until, writing=writing)
            request = request[os.write(writing, request[:_PIECE]) :]
        answer = bytearray()
        while not answer.endswith(b"\n"):
            _wait(until, reading=reading)
            piece = os.read(reading, _PIECE)
            if not piece:
                raise JudgeEndedError("the judge process ended")
            answer += piece
            if len(answer) > MAX_ANSWER_BYTES:
                raise JudgeError("the judge's answer is too long")
    except OSError:
        raise JudgeEndedError("the judge process ended") from None
    try:
        row = json.loads(answer)
    except (ValueError, RecursionError):
        raise JudgeError("the judge's answer can't be read") from None
    if not isinstance(row, dict):
        raise JudgeError("the judge's answer can't be read")
    return row


def _wait(until: float, *, reading: int | None = None, writing: int | None = None) -> None:
    poll = select.poll()
    if reading is not None:
        poll.register(reading, select.POLLIN)
    if writing is not None:
        poll.register(writing, select.POLLOUT)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise JudgeError(f"the judge process took more than {JUDGE_SECONDS:.0f} s")


def verdict_from(row: Mapping[str, Any], project: Path) -> Verdict:
    """Return the verdict from the judge's answer to the request "judge".

    Raises JudgeError if the answer has the wrong form, or contains a path outside the project.
    """
    with checking_answer():
        wanted = grants_from(row.get("wanted", {}))
        for path in (*wanted.protected, *wanted.secrets, *wanted.write):
            _inside(str(path.relative_to(project)))
        return Verdict(
            needs=paths_from(row.get("needs", [])),
            sources=paths_from(row.get("sources", [])),
            keeps=row.get("keeps") is True,
            lost=_lost_from(row.get("lost", {})),
            # Ignore these grants, because no change in the project needs to read other paths or to
            # reach hosts.
            wanted=replace(wanted, read=frozenset(), hosts=frozenset()),
        )


def _lost_from(rows: Mapping[str, Any]) -> dict[LossReason, Names]:
    found = {LossReason(reason): names_from(row) for reason, row in rows.items()}
    return {reason: names for reason, names in found.items() if names.names}


def names_from(row: Mapping[str, Any]) -> Names:
    """Return the names in one field of the judge's answer, and their count.

    Raises ValueError, TypeError or KeyError if the field has another form or too many names.
    """
    names = row["names"]
    count = row["count"]
    if len(names) > MAX_NAMES or not all(
        isinstance(name, str) and len(name) <= _MAX_PATH for name in names
    ):
        raise ValueError(names)
    if not isinstance(count, int) or count < len(names):
        raise ValueError(count)
    return Names(tuple(names), count)


def paths_from(names: Any) -> tuple[str, ...]:
    """Return the paths that one field of the judge's answer lists.

    Raises ValueError or TypeError unless ``names`` is a list of at most `MAX_CHANGES` relative
    paths without ``..``.
    """
    if not isinstance(names, list) or len(names) > MAX_CHANGES:
        raise ValueError("too many")
    return tuple(map(_inside, names))


def _inside(name: str) -> str:
    os.fsencode(name)  # raises ValueError if no file can have this name
    path = PurePosixPath(name)
    if (
        len(name) > _MAX_PATH
        or path.is_absolute()
        or ".." in path.parts
        or not path.parts
        or "\0" in name
    ):
        raise ValueError(name)
    return name
