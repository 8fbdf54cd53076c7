"""The library API: a session, an agent that works in it, and your own tools (docs/library.md).

The user's settings, keys, instructions and sessions are not used unless the caller passes them in.
"""

import asyncio
import inspect
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from pydantic import SecretStr, ValidationError

from tui_agent.agent.agent import Agent as SessionAgent
from tui_agent.agent.assembly import Models, ModelSources, hold_and_recover, make_ports, web_tools
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    Decision,
    EntryAppended,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.agent.permissions import Action, Mode, Rule, parse_rule
from tui_agent.agent.run_budget import RunBudget
from tui_agent.context.request import ModelRequest
from tui_agent.context.tokens import TokenCounter
from tui_agent.errors import ToolError, UserFacingError
from tui_agent.lazy import frozen
from tui_agent.model.demo import DemoCatalog, DemoClient
from tui_agent.model.settings import ModelSettings
from tui_agent.path_checks import is_file, real_path
from tui_agent.paths import config_dir, data_dir, log_dir
from tui_agent.processes.environment import SafeEnvironment
from tui_agent.resources import packaged_prompt
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import AssistantEntry, Entry, ToolResultEntry, UserEntry
from tui_agent.session.records import EntryHeader
from tui_agent.session.session import Session as StoredSession
from tui_agent.session.store import Store
from tui_agent.tools.functions.add_on_tool import AddOn
from tui_agent.tools.functions.in_process import FunctionTool
from tui_agent.tools.functions.tool_files import FoundFile, ToolFiles
from tui_agent.tools.remember import RememberTool
from tui_agent.web.settings import FetchSettings, SearchSettings

__all__ = [
    "AddOn",
    "Agent",
    "AgentEvent",
    "AnswerDelta",
    "AssistantEntry",
    "Decision",
    "Entry",
    "EntryAppended",
    "EntryHeader",
    "LibraryError",
    "ModelRequest",
    "Notice",
    "PermissionAnswer",
    "PermissionAsked",
    "PermissionRequest",
    "ReasoningProgress",
    "RequestStarted",
    "RetryScheduled",
    "RunEnded",
    "RunStarted",
    "Session",
    "ToolError",
    "ToolFinished",
    "ToolOutput",
    "ToolResultEntry",
    "ToolStarted",
    "Turn",
    "UserEntry",
    "UserFacingError",
    "user_store",
]

T = TypeVar("T")
Answer = bool | PermissionAnswer
Ask = Callable[[PermissionRequest], Answer | Awaitable[Answer]]
NOBODY = "No one can be asked for permission here. Use what is allowed, or say which permission you need."
"""Text that tells the model why a call was refused when no user can be asked for permission."""

_NO_LOOPS = Rule("doom_loop", "*", Action.DENY, "default")


class LibraryError(UserFacingError):
    """Raised when the library was used incorrectly. The message says how to correct the call."""


def user_store() -> Path:
    """Return the path of the database that contains the user's sessions.

    It can be passed to `Session` as ``file``.
    """
    return data_dir() / "sessions.db"


@frozen
class Turn:
    """The result of one message to the agent.

    ``text`` is the model's last text, "" if it wrote none. ``reason`` is why the turn ended: done,
    length (the answer was cut off at its token limit), unmarked (the server ended it without
    marking it as complete), interrupted, error, step_limit, budget or stopped. ``error`` is
    the error's message, None without an error. ``entries`` are the entries appended to the session,
    oldest first. ``cost`` is the total in US dollars, None if the price of a request is not known.
    """

    text: str
    reason: str
    error: str | None
    entries: tuple[Entry, ...]
    cost: float | None

    @property
    def ok(self) -> bool:
        """Whether the model finished its answer, that is, whether ``reason`` is "done"."""
        return self.reason == "done"


class Session:
    """A session: a tree of entries in a file, which this class reads and an `Agent` changes.

    Args:
        file: the database that keeps the session, created if missing. Without one, the session is
            deleted when it is closed.
        id: the session to open: its id, the beginning or end of the id, or "last" for the newest.
            Without one, a new session is created.
        cwd: the working directory of a new session.

    Raises:
        UserFacingError: the file can't be used or has no such session, or another program has the
            session open.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the usual name
        cwd: str | os.PathLike[str] = ".",
    ) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if file is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tui-agent-")
            file = Path(self._temporary.name, "sessions.db")
        self._store = Store(Path(file))
        estimate = TokenCounter("").estimate
        try:
            session_id = self._named(id) or self._store.create_session(real_path(Path(cwd))).id
            self._session = hold_and_recover(
                StoredSession(self._store, session_id, estimate=estimate)
            )
        except BaseException:
            self.close()
            raise

    def _named(self, name: str | None) -> str:
        if name is None:
            return ""
        if name != "last":
            return self._store.session(name).id
        newest = next(iter(self._store.sessions(limit=1)), None)
        if newest is None:
            raise LibraryError(f"There is no session in {self._store.path}.")
        return newest.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def id(self) -> str:
        """The session's id, a UUID."""
        return self._session.id

    @property
    def cwd(self) -> Path:
        return Path(self._session.info.cwd)

    @property
    def leaf(self) -> int | None:
        """The id of the current entry; None if the next entry begins at the root.

        The next entry is appended to the current entry. The id is None while the session is empty,
        and after a move or an undo to the point before the first entry.
        """
        return self._session.leaf

    def path(self, leaf: int | None = None) -> list[Entry]:
        """Return the entries from the root to the leaf, or to the entry ``leaf``, oldest first."""
        return self._session.path(leaf)

    def tree(self) -> list[EntryHeader]:
        """Return a header for every entry of every branch, oldest first.

        A header has the entry's id, parent, kind, preview and tokens, but not its content.
        """
        return list(self._session.skeleton())

    def entry(self, entry_id: int) -> Entry:
        """Return the entry with the given id.

        Raises:
            UserFacingError: the session has no entry with this id.
        """
        return self._session.entry(entry_id)


class Agent:
    """An agent that works in a session. Use it as ``async with Agent(...) as agent``.

    In a program without an event loop, use ``with`` and `wait`. Use an agent from one thread only.

    Args:
        model: ``demo``, or ``provider/name`` as in docs/models.md; with ``base_url``, any name that
            the server knows.
        session: the session to work in; without one, a temporary session that is deleted when the
            agent is closed.
        base_url: the address of an OpenAI-compatible server, with its ``/v1``.
        api_key: the key for the model.
        context_window: the size of the model's window in tokens, if neither the server nor the
            catalog knows it.
        environ: environment variables that may contain providers' keys and addresses; pass
            ``os.environ`` for the user's. None are used by default.
        tools: functions with type hints and a docstring, which are called in this process; and
            paths of tool files (docs/tools.md), whose functions run in separate processes.
        builtin_tools: names of the built-in tools to offer; all by default.
        ask: called for each tool call that no rule allows or denies; returns True, False or a
            ``PermissionAnswer``, and may be async. Without it such calls are refused.
        allow: rules for calls that are allowed, written as for ``--allow``: ``edit``, ``bash:git *``.
        deny: rules for calls that are refused, written in the same way.
        mode: build, auto-edit, plan or yolo.
        instructions: text added to the end of the program's system prompt.
        sandbox: auto (commands run in a sandbox if the machine has one), off, or required.
        max_steps: maximum requests for one message.
        max_cost: maximum US dollars for one message. The turn ends before the request that would
            exceed it, with the reason "budget". No request is sent to a model of unknown price.
        max_tokens: maximum tokens for one message, requests and answers together. Beyond it, the turn
            also ends with the reason "budget".
        timeout: maximum seconds for one message; then the turn ends with the reason "budget".

    Raises:
        LibraryError: an argument can't be used: a tool, a rule, a mode, a file that doesn't exist.
    """

    def __init__(  # noqa: PLR0913 - each has a default and is given by its name
        self,
        model: str = "demo",
        *,
        session: Session | None = None,
        base_url: str = "",
        api_key: str = "",
        context_window: int | None = None,
        environ: Mapping[str, str] | None = None,
        tools: Iterable[Callable[..., Any] | str | os.PathLike[str]] = (),
        builtin_tools: Iterable[str] | None = None,
        ask: Ask | None = None,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        mode: Literal["build", "auto-edit", "plan", "yolo"] = "build",
        instructions: str = "",
        sandbox: Literal["auto", "off", "required"] = "auto",
        max_steps: int = 200,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,
    ) -> None:
        _check_lists(tools=tools, builtin_tools=builtin_tools, allow=allow, deny=deny)
        _check_limits(max_cost=max_cost, max_tokens=max_tokens, timeout=timeout)
        try:
            rules = [parse_rule(rule, Action.ALLOW) for rule in allow]
            rules += [parse_rule(rule, Action.DENY) for rule in deny]
            added, files = _functions_and_files(tools)
            if mode not in set(Mode):
                raise LibraryError(f"There is no mode “{mode}”. Use one of: {', '.join(Mode)}.")
            key = SecretStr(api_key) if api_key else None
            own = ModelSettings(
                base_url=base_url or None, api_key=key, context_window=context_window
            )
            held = SandboxSettings(mode=sandbox)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            raise LibraryError(
                f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}, not {wrong['input']!r}."
            ) from None
        except ValueError as error:
            raise LibraryError(str(error)) from None
        self._owned = Session() if session is None else None
        self.session: Session = session or self._owned  # type: ignore[assignment]  # one of them is not None
        """The session that the agent works in."""
        self._ask = ask
        self._failure: BaseException | None = None
        self._runner: asyncio.Runner | None = None
        self._left = False
        model = f"openai/{model}" if base_url and "/" not in model else model
        settings = {} if model == "demo" else {model: own}
        environ = dict(environ or {})
        sources = ModelSources(DemoCatalog(settings, {}, environ=environ), environ, settings, {})
        prompt = partial(_prompt, instructions=instructions)
        self._models = Models(sources, prompt, demo=DemoClient(pace=0))
        store = self.session._store  # noqa: SLF001 - one module
        cwd = self.session.cwd
        ports = make_ports(
            self._models,
            store,
            cwd,
            prompt,
            web=web_tools(FetchSettings(), SearchSettings(), environ),
            environment=SafeEnvironment(os.environ),
            checkpoints=SnapshotStore(store.put_blob, store.blob),
            rules=(Rule("task", "*", Action.ALLOW), *(() if ask else (_NO_LOOPS,)), *rules),
            sandbox=Sandbox(held, (config_dir(), data_dir(), log_dir()), project=cwd),
            max_steps=max_steps,
            budget=RunBudget(max_cost, max_tokens, timeout),
            tool_files=ToolFiles(lambda: (files, [])),
        )
        # A project's memory belongs to the user, so the model is not offered the tool that writes
        # it.
        ports.tools = tuple(tool for tool in ports.tools if tool.name != RememberTool.name)
        known = {tool.name: tool for tool in ports.tools}
        if builtin_tools is not None:
            names = list(builtin_tools)
            if unknown := [name for name in names if name not in known]:
                raise LibraryError(
                    f"There is no built-in tool “{unknown[0]}”. Use one of: {', '.join(known)}."
                )
            ports.tools = tuple(tool for name, tool in known.items() if name in names)
        for number, tool in enumerate(added):
            if tool.name in known:
                raise LibraryError(
                    f"“{tool.name}” is the name of a built-in tool; call the function something else."
                )
            if tool.name in {other.name for other in added[:number]}:
                raise LibraryError(
                    f"Two functions are called “{tool.name}”; call one of them something else."
                )
        ports.tools += tuple(added)
        self._agent = SessionAgent(self.session._session, ports, model=model, mode=mode)  # noqa: SLF001
        if self._agent.model != model:
            self._agent.change_model(model)
        self._agent.questions.relay(self._decide)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise LibraryError(
                "An event loop is running: use “async with”, and await instead of wait."
            )
        self._runner = asyncio.Runner()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._runner is not None:
            self._runner.run(self.aclose())
            self._runner.close()
            self._runner = None

    async def aclose(self) -> None:
        """End the current turn, and close everything that the agent opened.

        A session that was passed to the agent stays open.
        """
        await self._agent.aclose()
        await self._models.client.aclose()
        if self._owned is not None:
            self._owned.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the agent and return its result: ``agent.wait(agent.send("…"))``.

        This is for programs that have no event loop.

        Raises:
            LibraryError: the agent was not entered with a plain ``with``.
        """
        if self._runner is None:
            work.close()
            raise LibraryError("wait works only inside a plain “with”; elsewhere use await.")
        return self._runner.run(work)

    # -- a turn

    async def run(self, message: str) -> AsyncGenerator[AgentEvent, None]:
        """Send a message and yield the events of the agent's run; the last one is ``RunEnded``.

        Leaving the loop earlier interrupts the run.

        Raises:
            LibraryError: the agent is still working on another message.
            Exception: ``ask`` raised this error. It interrupts the run, and is raised at the end.
        """
        if self._agent.running:
            # The caller may just have left the loop over the events of an earlier message. asyncio
            # then closes that generator in a separate task, which starts during the first of these
            # sleeps.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if self._left:
                await self._agent.wait_idle()
        if self._agent.running:
            raise LibraryError("The agent is working on another message; wait until that is done.")
        events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        leave = self._agent.channel.subscribe(events.put_nowait)
        self._left = False
        try:
            self._agent.submit(message)
            ended = False
            while not ended:
                event = await events.get()
                ended = isinstance(event, RunEnded)
                yield event
        finally:
            self._left = True
            leave()
            self._agent.interrupt()
            await self._agent.wait_idle()
        if self._failure is not None:
            failure = self._failure
            self._failure = None
            raise failure

    async def send(
        self, message: str, on_event: Callable[[AgentEvent], None] | None = None
    ) -> Turn:
        """Send a message, wait for the end of the turn and return its result.

        ``on_event`` is called with each event.

        Raises:
            LibraryError, Exception: for the same reasons as `run`.
        """
        entries: list[Entry] = []
        ending = RunEnded("interrupted")
        async with aclosing(self.run(message)) as events:
            async for event in events:
                if on_event is not None:
                    on_event(event)
                match event:
                    case EntryAppended(entry=entry):
                        entries.append(entry)
                    case RunEnded():
                        ending = event
                    case _:
                        pass
        text = ""
        cost: float | None = 0
        for entry in entries:
            if isinstance(entry, AssistantEntry):
                text = entry.text or text
                cost = None if cost is None or entry.cost is None else cost + entry.cost
        return Turn(text, ending.reason, ending.error, tuple(entries), cost)

    def interrupt(self) -> None:
        """Interrupt the turn. The next message continues from the entries recorded so far."""
        self._agent.interrupt()

    async def _decide(self, request: PermissionRequest) -> PermissionAnswer:
        answer: Answer = PermissionAnswer(Decision.DENY, NOBODY)
        if self._ask is not None:
            try:
                said = self._ask(request)
                answer = await said if inspect.isawaitable(said) else said
            except Exception as error:  # noqa: BLE001 - an error of the caller's function; run raises it at the end
                self._failure = error
                self._agent.interrupt()
        if isinstance(answer, bool):
            return PermissionAnswer(Decision.ONCE if answer else Decision.DENY)
        return answer

    # -- the tree and the request

    @property
    def model(self) -> str:
        return self._agent.model

    def change_model(self, model: str) -> None:
        """Use another model from the next request on: ``demo`` or ``provider/name``."""
        self._agent.change_model(model)

    async def move(self, entry_id: int | None) -> None:
        """Make an entry the leaf (the current entry), so that the next message is appended to it.

        With None, the next message begins a new branch at the root. Files are not changed.

        Raises:
            UserFacingError: there is no such entry, or the agent is working on a message.
        """
        await self._agent.navigator.go(entry_id)

    async def undo(self) -> int | None:
        """Undo the newest turn, move, compaction or context edit, and return the new leaf's id.

        Returns None if the leaf is then before the first entry.

        Raises:
            UserFacingError: there is nothing to undo, or the agent is working on a message.
        """
        return await self._agent.navigator.undo()

    async def compact(self, focus: str = "") -> str | None:
        """Replace older entries in the context with a summary that a model writes.

        ``focus`` tells the model what to concentrate on. Returns why the compaction failed; returns
        None if it succeeded or, while the agent works on a message, was postponed to the next step.
        """
        return (await self._agent.compact(focus)).problem

    async def request(self) -> ModelRequest:
        """Return the request that would be sent now, without a new message.

        It is made for the session's current leaf.
        """
        await self._agent.warm()
        return self._agent.inspector.next_request()

    async def tokens(self) -> tuple[int, int]:
        """Return the sizes of the next request and of the model's context window, in tokens.

        If the size of the window is unknown, 32,768 tokens are assumed.
        """
        await self._agent.warm()
        size = self._agent.context_size()
        return size.total, size.window


def _check_lists(**given: object) -> None:
    """Raise LibraryError if an argument that should be a list is a string.

    Python would accept the string, and use each of its letters as an item.
    """
    for name, value in given.items():
        if isinstance(value, str):
            raise LibraryError(f"{name} takes a list: write {name}=[{value!r}].")


def _check_limits(**given: float | None) -> None:
    for name, value in given.items():
        if value is not None and value <= 0:
            raise LibraryError(f"{name} has to be more than 0, not {value}. None means no limit.")


def _functions_and_files(
    tools: Iterable[Callable[..., Any] | str | os.PathLike[str]],
) -> tuple[list[FunctionTool], list[FoundFile]]:
    added: list[FunctionTool] = []
    files: list[FoundFile] = []
    for tool in tools:
        if isinstance(tool, str | os.PathLike):
            path = real_path(Path(tool))
            if not is_file(path):
                raise LibraryError(f"There is no tool file {path}.")
            files.append(FoundFile(path, path.name))
        elif callable(tool):
            added.append(FunctionTool(tool))
        else:
            raise LibraryError(f"{tool!r} can't be a tool: give a function, or the path of a file.")
    return added, files


def _prompt(name: str, instructions: str) -> str:
    text = packaged_prompt(name)
    if name == "system" and instructions:
        return f"{text}\n\n{instructions}"
    return text
