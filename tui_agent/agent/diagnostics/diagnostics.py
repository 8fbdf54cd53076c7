"""Runs checkers in the background after edits, and returns new problems for the model.

`Loop` calls `Diagnostics.findings` before each request and appends the entry. ``checks`` decides
which checkers a file has and which problems are new. Edits never wait for a check. The next request
waits briefly for a check, once; problems found later are sent with a later request, always in a new
entry at the end.

To tell which problems an edit caused, a checker's first run is repeated in a sandbox that shows the
edited files as they were before. The findings of later runs are compared with those of the previous
run.
"""

import asyncio
import contextlib
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agent.diagnostics.checks import (
    Check,
    Problem,
    checks_for,
    new_problems,
    parse_problems,
    problem_in,
)
from tui_agent.agent.events import AgentEvent, ChecksAwaited, Notice
from tui_agent.agent.ports import AgentPorts
from tui_agent.editing.diffs import line_origins
from tui_agent.files.inside import read_regular
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file
from tui_agent.processes.capture import plain_text
from tui_agent.processes.environment import command_environment
from tui_agent.processes.process import Command, CommandRun, run_command
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.sandbox import SandboxError
from tui_agent.sandbox.view import View, Writes
from tui_agent.session.entries import DIAGNOSTICS_PREFIX, FilePart, TextPart, UserEntry, UserPart
from tui_agent.text_files.encodings import user_text
from tui_agent.tools.changes import MAX_CHANGED_BYTES
from tui_agent.tools.code import CodeTool
from tui_agent.tools.outputs import counted

if TYPE_CHECKING:
    from tui_agent.tools.language_servers.server import LanguageServer

log = logging.getLogger(__name__)

REASON = "diagnostics"
"""Value of ``UserEntry.synthetic`` in the entries that show the model new problems."""
MAX_SHOWN = 10
"""Maximum number of a file's problems that are sent to the model."""
MAX_FILES_SHOWN = 5
"""Maximum number of files whose problems are sent to the model in one entry."""
MAX_OUTPUT = 8_000_000
"""Maximum number of bytes that a checker may print. One that prints more isn't used again."""
MAX_KNOWN = 20
"""Maximum number of command lines of one checker for which the findings are kept.

The findings of the oldest command lines are dropped.
"""
MAX_FILE_BYTES = 2_000_000
"""Maximum bytes of an edited file whose lines are compared with those before the edit."""

Before = Mapping[Path, bytes | None]
"""Edited files, each with its content before the edit, or None if the file didn't exist."""


_content = partial(read_regular, limit=MAX_CHANGED_BYTES)


class _GaveUpError(Exception):
    """Raised if a checker can't be used.

    The message is a verb phrase that follows the checker's name.
    """


@dataclass
class Checker:
    """A check, with the edited files that it still has to check and the problems it has found."""

    check: Check
    edited: dict[Path, bytes | None] = field(default_factory=dict)
    """Files edited since the last check began, each with its content before the first edit."""
    checking: Before = field(default_factory=dict)
    """The files that are being checked now, each with its content before the edit."""
    known: dict[tuple[str, ...], list[Problem]] = field(default_factory=dict)
    """The findings of the last run of each of the check's command lines."""
    unreported: list[Problem] = field(default_factory=list)
    """New problems that have not been sent to the model yet."""
    found: int = 0
    """Number of problems, old and new ones, that the last check found."""
    seconds: float | None = None
    """Number of seconds that the last check took; None before the first check."""
    gave_up: str = ""
    """Why the checker is no longer used, as a verb phrase; "" if it is still used."""
    task: asyncio.Task[None] | None = None
    was_waited_for: bool = False
    """Whether a request has already waited for the check that is running now."""

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()


class Diagnostics:
    """Checks the files that an agent edits, and returns new problems for the agent's model."""

    def __init__(self, ports: AgentPorts, emit: Callable[[AgentEvent], None]) -> None:
        self._ports = ports
        self._emit = emit
        self._root = Path(os.path.realpath(ports.project))
        self._switched: bool | None = None
        self.is_reported_by_run = False
        """Whether a run is in progress. If so, its next request will contain new problems.

        If not, a notice tells the user when a check finds new problems.
        """
        self.checkers: dict[Check, Checker] = {}
        """The checkers that were used so far, in the order of their first use."""

    @property
    def enabled(self) -> bool:
        """Whether edited files are checked, as set by `switch` or else by the settings."""
        if self._switched is None:
            return self._ports.diagnostics.enabled
        return self._switched

    def switch(self, *, on: bool) -> None:
        """Turn the checks of this session on or off. Checkers that gave up are tried again."""
        self._switched = on
        for checker in self.checkers.values():
            checker.gave_up = ""

    # -- edits ----------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def watching(self, paths: Sequence[Path] | None) -> AsyncIterator[None]:
        """Record which of these files change inside the context, so that `findings` checks them.

        They are also recorded after an error, because a failed call may have changed some. Does
        nothing if ``paths`` is None or checks are off.
        """
        if not self.enabled or not paths:
            yield
            return
        before = await asyncio.to_thread(lambda: {path: _content(path) for path in paths})
        try:
            yield
        finally:
            await self._note_edits(before)

    async def _note_edits(self, before: Mapping[Path, bytes | None]) -> None:
        """Record, for each checker, which files differ from their contents in ``before``."""

        def found() -> dict[Path, list[Check]]:
            changed = [path for path, was in before.items() if _content(path) != was]
            return {path: self._checks_for(path) for path in changed}

        for path, checks in (await asyncio.to_thread(found)).items():
            for check in checks:
                checker = self.checkers.setdefault(check, Checker(check))
                checker.edited.setdefault(path, before[path])

    def _checks_for(self, path: Path) -> list[Check]:
        server = self._server_of(path)
        name = server.name if server is not None else ""
        return checks_for(path, self._root, self._ports.diagnostics, name)

    def _server_of(self, path: Path) -> "LanguageServer | None":
        """Return the language server that runs for a file; None if no server runs for it."""
        for tool in self._ports.tools:
            if isinstance(tool, CodeTool):
                server = tool.running_for(path, self._root)
                if server is not None:
                    return server
        return None

    async def findings(self) -> UserEntry | None:
        """Start checking edited files, and return an entry with new problems; None without any.

        Waits once for each check, for at most the seconds of the setting ``wait``, but not for a
        checker that took longer last time. A later call returns problems found after that.
        """
        if self.enabled:
            for checker in self.checkers.values():
                if checker.edited and not checker.running and not checker.gave_up:
                    checker.was_waited_for = False
                    checker.task = asyncio.get_running_loop().create_task(self._work(checker))
            await self._wait_for_checks()
        reported = self._take_unreported()
        if not reported:
            return None
        text = self._ports.prompt("diagnostics").strip()
        more = len(reported) - MAX_FILES_SHOWN
        if more > 0:
            text += f"\nThere are problems in {counted(more, 'more file')}."
        parts: list[UserPart] = [TextPart(text=text)]
        for path, lines in list(reported.items())[:MAX_FILES_SHOWN]:
            parts.append(FilePart(path=f"{DIAGNOSTICS_PREFIX}{path}", text=_as_text(lines)))
        return UserEntry(parts=tuple(parts), synthetic=REASON)

    async def _wait_for_checks(self) -> None:
        wait = self._ports.diagnostics.wait
        names: dict[str, None] = {}
        tasks: list[asyncio.Task[None]] = []
        for checker in self.checkers.values():
            is_quick = (checker.seconds or 0) <= wait
            if (
                checker.task is None
                or not checker.running
                or checker.was_waited_for
                or not is_quick
            ):
                continue
            checker.was_waited_for = True
            names[checker.check.name] = None
            tasks.append(checker.task)
        if tasks:
            self._emit(ChecksAwaited(tuple(names)))
            await asyncio.wait(tasks, timeout=wait)

    def _take_unreported(self) -> dict[str, list[str]]:
        """Remove the problems that weren't reported yet, and return them as lines, by file.

        Problems in files that are being checked again stay for a later call.
        """
        taken: dict[str, list[str]] = {}
        for checker in self.checkers.values():
            # Leave out problems in files that are being checked again, because they may be gone.
            moving = {self._name(path) for path in (*checker.edited, *checker.checking)}
            kept: list[Problem] = []
            for problem in checker.unreported:
                if problem.path in moving:
                    kept.append(problem)
                else:
                    text = f"{problem} ({checker.check.name})"
                    taken.setdefault(problem.path, []).append(text)
            checker.unreported = kept
        return taken

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    async def aclose(self) -> None:
        """End all checks that are running."""
        tasks = [checker.task for checker in self.checkers.values() if checker.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # -- one check ------------------------------------------------------------------------------------------------

    async def _work(self, checker: Checker) -> None:
        while checker.edited and not checker.gave_up:
            checker.checking = checker.edited
            checker.edited = {}
            try:
                await self._check(checker, checker.checking)
            except _GaveUpError as error:
                self._give_up(checker, str(error))
            except Exception as error:  # An error in a check must not end the run.
                log.exception("a check failed")
                self._give_up(checker, f"failed: {type(error).__name__}: {error}.")
            finally:
                checker.checking = {}
        if checker.unreported and not self.is_reported_by_run:
            files = dict.fromkeys([problem.path for problem in checker.unreported])
            count = counted(len(checker.unreported), "new problem")
            found = f"{checker.check.name} found {count} in {', '.join(files)}."
            self._say(f"{found} The model receives this with your next message.")

    def _give_up(self, checker: Checker, why: str) -> None:
        checker.gave_up = why
        checker.unreported = []
        checker.edited = {}
        self._say(f"{checker.check.name} {why} It is no longer used; /diagnostics on retries it.")

    def _say(self, text: str) -> None:
        self._emit(Notice(text, action="diagnostics"))

    async def _check(self, checker: Checker, edited: Before) -> None:
        files = sorted(path for path in edited if is_file(path))
        words = checker.check.command(files)
        began = self._ports.clock()
        if checker.check.is_server:
            known, after = await self._reported_by_server(edited)
        else:
            known = checker.known.get(words)
            after = await self._problems(checker.check, words)
        checker.seconds = (self._ports.clock() - began) / 1_000
        if known is None:
            # Run this after the check, to use its caches, and only if there are problems.
            known = []
            if after:
                known = await self._problems_before(checker.check, words, edited)

        def read_origins() -> dict[str, list[int | None]]:
            found: dict[str, list[int | None]] = {}
            for path, was in edited.items():
                found[self._name(path)] = _origins_of(was, _content(path))
            return found

        origins = await asyncio.to_thread(read_origins)
        new = await asyncio.to_thread(new_problems, known, after, origins)
        checker.known.pop(words, None)
        checker.known[words] = after
        if len(checker.known) > MAX_KNOWN:
            del checker.known[next(iter(checker.known))]
        still = {problem.key for problem in after}
        unreported: dict[Problem, None] = {}
        for problem in checker.unreported:
            if problem.path not in origins or problem.key in still:
                unreported[problem] = None
        checker.unreported = list(unreported | dict.fromkeys(new))
        checker.found = len(after)

    async def _reported_by_server(
        self, edited: Before
    ) -> tuple[list[Problem] | None, list[Problem]]:
        """Return the errors that language servers find in edited files, before the edit and now.

        Errors before the edit are determined only for files that existed before and have errors
        now. For files without a server, no errors are returned. Raises _GaveUpError if a server
        fails.
        """
        from tui_agent.tools.language_servers.connection import ServerError

        known: list[Problem] = []
        after: list[Problem] = []
        for path, was in edited.items():
            server = self._server_of(path)
            content = await asyncio.to_thread(_content, path)
            if server is None or content is None:
                continue
            name = self._name(path)
            try:
                found = await server.documents.errors(path, user_text(content))
                before = []
                if found and was is not None:
                    before = await server.documents.errors(path, user_text(was))
                    await server.documents.open(path)
            except ServerError as error:
                raise _GaveUpError(f"{error}.") from None
            after += [problem_in(self._root, name, one.line + 1, one.message) for one in found]
            known += [problem_in(self._root, name, one.line + 1, one.message) for one in before]
        return known, after

    async def _problems_before(
        self, check: Check, words: tuple[str, ...], edited: Before
    ) -> list[Problem] | None:
        """Run a checker on the edited files as they were before the edit; return its findings.

        None if the sandbox isn't bubblewrap, which is necessary for this, or if the run fails.
        """
        sandbox = await asyncio.to_thread(self._sandbox_for, check)
        if sandbox is None or sandbox.state.kind != "bubblewrap":
            return None
        with tempfile.TemporaryDirectory(prefix="tui-agent-before-") as place:
            replaced = await asyncio.to_thread(_write_former_contents, Path(place), edited)
            try:
                return await self._problems(check, words, replaced)
            except _GaveUpError:
                return None

    async def _problems(
        self, check: Check, words: tuple[str, ...], replaced: Mapping[Path, Path] | None = None
    ) -> list[Problem]:
        """Run a checker and return its findings. Raises _GaveUpError if the checker can't be used.

        ``replaced`` maps files to the copies that the checker sees instead.
        """
        timeout = self._ports.diagnostics.timeout
        run = CommandRun()
        try:
            await self._run(check, words, run, replaced or {})
        except (SandboxError, OSError) as error:
            raise _GaveUpError(f"could not be started: {error}".rstrip(".") + ".") from None
        if run.timed_out:
            raise _GaveUpError(f"took longer than {timeout:g} s after an edit.")
        if run.capture.total_bytes > MAX_OUTPUT:
            raise _GaveUpError(f"printed more than {MAX_OUTPUT // 1_000_000} MB.")
        output = await asyncio.to_thread(plain_text, run.capture.raw())
        found = await asyncio.to_thread(parse_problems, output, check.where, self._root)
        if run.exit_code and not found:
            lines = output.strip().splitlines() or ["no output"]
            said = lines[0].strip()[:160]
            raise _GaveUpError(
                f"ended with exit code {run.exit_code} and reported no problem (“{said}”)."
            )
        return found

    async def _run(
        self,
        check: Check,
        words: tuple[str, ...],
        run: CommandRun,
        replaced: Mapping[Path, Path],
    ) -> None:
        ports = self._ports
        timeout = self._ports.diagnostics.timeout
        sandbox = await asyncio.to_thread(self._sandbox_for, check)
        environment = command_environment(ports.environment)
        if sandbox is None:
            await run_command(
                Command(words, check.where, environment, timeout), lambda _text: None, run
            )
            return
        # A check with replaced files must not write caches, because they would be wrong for later
        # checks.
        view = View(Writes.NOTHING if replaced else Writes.OUTPUTS)
        launch = await sandbox.launch(
            words, check.where, ports.project, view, environment, replaced=replaced
        )
        command = Command(
            launch.arguments,
            check.where,
            launch.environment,
            timeout=timeout,
            descriptors=launch.descriptors,
            wait_for_others=launch.gone if launch.info >= 0 else None,
        )
        try:
            await run_command(command, lambda _text: None, run)
        finally:
            code = None if run.timed_out else run.exit_code
            await asyncio.shield(sandbox.finish(launch, "", code))

    def _sandbox_for(self, check: Check) -> Sandbox | None:
        """Return the sandbox in which a checker runs; None to run it without one.

        Only commands from the user's settings run without one. If there is no sandbox, raises
        _GaveUpError for other checkers, and for all checkers if the settings require a sandbox.
        """
        sandbox = self._ports.sandbox
        if sandbox is not None and sandbox.active:
            return sandbox
        if not check.is_users or (sandbox is not None and sandbox.refusal()):
            raise _GaveUpError("needs a sandbox, and there is none.")
        return None


def _origins_of(was: bytes | None, now: bytes | None) -> list[int | None]:
    before = was or b""
    after = now or b""
    if max(len(before), len(after)) > MAX_FILE_BYTES:
        return list(range(after.count(b"\n") + 1))
    return line_origins(user_text(before), user_text(after))


def _as_text(lines: Sequence[str]) -> str:
    count = counted(len(lines), "new problem")
    shown = ""
    if len(lines) > MAX_SHOWN:
        shown = f", {MAX_SHOWN} of them shown"
    return "\n".join([f"{count}{shown}:", *lines[:MAX_SHOWN]])


def _write_former_contents(place: Path, edited: Before) -> dict[Path, Path]:
    """Write the former contents of the edited files into ``place``, except for files that are gone.

    ``place`` is a directory. Returns the path of each copy, by edited file.
    """
    copies: dict[Path, Path] = {}
    later = time.time() + 1
    for number, (path, was) in enumerate(edited.items()):
        if is_file(path):
            copy = copies[path] = place / f"{number}-{path.name}"
            copy.write_bytes(was or b"")
            # Checkers cache results by size and time, often in whole seconds, so the copies get a
            # modification time of their own.
            os.utime(copy, (later, later))
    return copies


def state_lines(diagnostics: Diagnostics) -> Iterator[str]:
    """Yield a line for the user with the name and the state of each checker used so far."""
    for checker in diagnostics.checkers.values():
        if checker.gave_up:
            state = f"no longer used: it {checker.gave_up}"
        elif checker.running:
            state = "running"
        else:
            state = f"{counted(checker.found, 'problem')} in all"
            if checker.seconds is not None:
                state += f", {checker.seconds:.1f} s"
        yield f"{checker.check.name}: {state}"
