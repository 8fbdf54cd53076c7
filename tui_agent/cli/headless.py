"""A run without a screen: the same agent, its events as text or as JSON lines."""

import asyncio
import dataclasses
import re
import sys
from typing import Any, TextIO

from pydantic import BaseModel

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import (
    AgentEvent,
    Decision,
    EntryAppended,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    RetryScheduled,
    RunEnded,
    ToolStarted,
)
from tui_agent.agent.preparing import prepare
from tui_agent.cli.daily_notices import DailyNotices
from tui_agent.cli.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_STOPPED
from tui_agent.cli.output import say, say_json
from tui_agent.cli.signals import ENDING, listening
from tui_agent.session.entries import AssistantEntry, ToolResultEntry, ToolStatus

NOBODY_TO_ASK = "Nobody can be asked in this run. Work within what is allowed, or say what would have to be allowed."


class HeadlessRun:
    """Drives one message through an agent and writes what comes of it."""

    def __init__(
        self,
        agent: Agent,
        *,
        as_json: bool,
        out: TextIO | None = None,
        err: TextIO | None = None,
        told: DailyNotices | None = None,
    ) -> None:
        """Make a run. ``told`` knows what the runs before said of servers; without it everything is said."""
        self._agent = agent
        self._told = told
        self._as_json = as_json
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._ended: asyncio.Future[RunEnded] = asyncio.get_running_loop().create_future()
        self._answer = ""
        self._last: AssistantEntry | None = None
        self._denied: list[str] = []
        self._refused: set[str] = set()
        self._untold: OSError | None = None
        self._acted = False
        self._commands: dict[str, str] = {}

    async def run(self, message: str, piped: str = "") -> int:
        """Send the message, wait for the end, return the exit code. ``piped`` is what standard input held.

        Raises:
            CommandError: the message is a command of the user's that cannot be used.
            OSError: what came of it could not be written, and so the run was interrupted.
        """
        if self._as_json:
            session = self._agent.session
            opened = {"type": "session", "id": session.id, "cwd": session.info.cwd, "model": self._agent.model}
            say_json(opened, file=self._out)
        prepared = await prepare(message, self._agent.session, self._agent.ports, piped=piped)
        if prepared.problem:
            say(prepared.problem, file=self._err)
        if prepared.model is not None:
            self._agent.change_model(prepared.model)
        if prepared.mode is not None:
            self._agent.change_mode(prepared.mode)
        unsubscribe = self._agent.subscribe(self._on_event)
        try:
            with listening(lambda _number: self._agent.interrupt(), *ENDING):
                self._agent.submit(prepared.parts)
                ended = await self._ended
        finally:
            unsubscribe()
        if self._untold is not None:
            raise self._untold
        return self._report(ended)

    def _on_event(self, event: AgentEvent) -> None:
        try:
            self._tell(event)
        except OSError as error:  # nobody reads any more, or there is no room for what is written
            self._untold = self._untold or error
            self._agent.interrupt()
        if isinstance(event, RunEnded) and not self._ended.done():
            self._ended.set_result(event)

    def _tell(self, event: AgentEvent) -> None:
        if self._as_json:
            say_json(event_json(event), file=self._out)
        match event:
            case PermissionAsked(request=request):
                if request.again:
                    # It ran, and nothing came of what it was for.
                    self._denied.append(f"{request.tool} {request.title}")
                    self._refused.add(request.call_id)
                # Answered from outside the event, as a person would.
                asyncio.get_running_loop().call_soon(
                    self._agent.answer_permission,
                    request.call_id,
                    PermissionAnswer(Decision.DENY, NOBODY_TO_ASK),
                )
            case EntryAppended(entry=AssistantEntry() as answer):
                self._last = answer
                self._answer = answer.text or self._answer
            case EntryAppended(entry=ToolResultEntry(status=ToolStatus.DENIED) as result):
                self._denied.append(f"{result.tool} {result.title}")
            case EntryAppended(entry=ToolResultEntry(status=ToolStatus.COMPLETED) as result) if (
                result.call_id not in self._refused
            ):
                changed = bool(result.metadata.modified_files)
                self._acted = self._acted or changed or self._did_more_than_read(result.call_id)
            case ToolStarted(call_id=call_id, tool="bash", arguments=arguments):
                self._commands[call_id] = self._command(arguments)
            case RetryScheduled(seconds=seconds, reason=reason) if not self._as_json:
                say(f"{reason} Trying again in {seconds:.0f} s.", file=self._err)
            case Notice(message=text, action=action) if not self._as_json:
                if action != "mcp" or self._told is None or self._told.is_news(text):
                    say(text, file=self._err)
            case _:
                pass

    def _command(self, arguments: str) -> str:
        """Return the whole command of a call; its title is cut."""
        from tui_agent.tools.arguments import parse_arguments
        from tui_agent.tools.registry import find_tool

        return str(getattr(parse_arguments(find_tool("bash", self._agent.ports.tools), arguments), "command", ""))

    def _did_more_than_read(self, call_id: str) -> bool:
        """Whether a call was a command that needed to be allowed."""
        from tui_agent.shell.needs import command_needs

        ports, command = self._agent.ports, self._commands.get(call_id)
        return command is not None and any(
            not need.harmless for need in command_needs(command, ports.cwd, ports.project)
        )

    def _report(self, ended: RunEnded) -> int:
        if not self._as_json and self._answer:
            say(self._answer, file=self._out)
        if ended.reason == "interrupted":
            return EXIT_INTERRUPTED
        if ended.error:
            say(ended.error, file=self._err)
            return EXIT_STOPPED if ended.reason == "stopped" else EXIT_FAILED
        if ended.reason == "step_limit":
            say(f"Stopped after {ended.steps} steps. To go on: tui-agent -c -p continue", file=self._err)
            return EXIT_STOPPED
        if self._denied and not self._acted:
            what = ", ".join(dict.fromkeys(self._denied))
            say(
                f"Not allowed: {what}. Allow it with --allow, for example --allow edit --allow 'bash:*'.",
                file=self._err,
            )
            return EXIT_STOPPED
        if (why := self._incomplete()) is not None:
            say(why, file=self._err)
            return EXIT_STOPPED
        return EXIT_DONE

    def _incomplete(self) -> str | None:
        """Return why the last answer is not all that was to be said, None when it is."""
        if self._last is None:
            return None
        match self._last.finish:
            case "length":
                return "The answer is cut: it reached the longest the model or the server gives. tui-agent -c goes on."
            case "content_filter":
                return "The provider's content filter ended the answer."
            case _ if not self._last.text.strip():
                return "The model said nothing beside its thinking."
            case _:
                return None


def event_json(event: AgentEvent) -> dict[str, Any]:
    """Return an event as JSON: ``type`` is its name in snake case, entries are as they are stored."""
    fields = {field.name: _plain(getattr(event, field.name)) for field in dataclasses.fields(event)}
    return {"type": event_name(type(event)), **fields}


def event_name(kind: type) -> str:
    """Return what an event is called in JSON."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
