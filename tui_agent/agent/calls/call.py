"""A tool call, the stages it passes through, and its outcome: exactly one, whatever is raised on the way."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import field
from typing import Any, Protocol

from tui_agent.agent.gate import HookVerdict
from tui_agent.errors import ToolError, UserFacingError
from tui_agent.lazy import dataclass, frozen
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import ToolCallPart, ToolStatus
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.paths import explain

log = logging.getLogger(__name__)

Proceed = Callable[["Call"], Coroutine[Any, Any, "Outcome"]]
"""Takes a call through the stages that are left."""

_UNKNOWN = (
    "Nobody knows how much of it was done: look before you go on, and don't repeat the same call."
)


class StopRunError(Exception):
    """The run is to end; the message is one sentence for a person.

    ``result`` is the text that answers the call which ended it, for the model.
    """

    def __init__(self, message: str, result: str = "") -> None:
        super().__init__(message)
        self.result = result


GETS_THROUGH = (StopRunError, KeyboardInterrupt, GeneratorExit)
"""What is raised on a call's way and does not become its result. Cancelling its task gets through
too."""


class RefusedError(Exception):
    """A call may not run. Its text is written for the model."""


@dataclass
class Call:
    """One call, and what the stages know of it so far.

    ``found`` and ``given`` are its tool and arguments; None where ``problem`` says, to the model,
    why they can't be read.
    """

    part: ToolCallPart
    found: Tool[Any] | None = None
    given: ToolInput | None = None
    problem: str = ""
    held: ToolContext | None = None
    needs: Sequence[PermissionNeed] = ()
    by_hook: HookVerdict = field(default_factory=HookVerdict)
    changed_by_hook: str | None = None
    """The JSON text of the arguments when a hook changed them."""
    started_at: int = 0
    """Milliseconds since the epoch; time that the user took to answer does not count."""
    was_started: bool = False
    live: str = ""
    """The end of its live output, which is its result when it is interrupted."""
    answered: bool = False

    @property
    def call_id(self) -> str:
        return self.part.call_id

    @property
    def tool(self) -> Tool[Any]:
        """Its tool; raises ToolError where the call can't be read."""
        if self.found is None:
            raise ToolError(self.problem)
        return self.found

    @property
    def arguments(self) -> ToolInput:
        """Its arguments; raises ToolError where the call can't be read."""
        if self.given is None:
            raise ToolError(self.problem)
        return self.given

    @property
    def context(self) -> ToolContext:
        """The surroundings it runs in; raises ToolError before the stage that makes them."""
        if self.held is None:
            raise ToolError("The call has no context yet.")
        return self.held

    @property
    def is_read_only(self) -> bool:
        return self.found is not None and self.found.read_only

    @property
    def title(self) -> str:
        """A few words for a card, "" where there are none."""
        if self.found is None or self.given is None:
            return ""
        try:
            return self.found.title(self.given)
        except GETS_THROUGH:
            raise
        except BaseException:  # a title is no reason to lose a result
            log.exception("%s has no title", self.part.tool)
            return ""


@frozen
class Outcome:
    """How a call ended."""

    status: ToolStatus
    result: ToolResult

    @classmethod
    def of(cls, result: ToolResult) -> "Outcome":
        return cls(ToolStatus.ERROR if result.is_error else ToolStatus.COMPLETED, result)


class Stage(Protocol):
    """One thing that is done around every call."""

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        """Return the call's outcome: that of ``proceed``, or another without it.

        Whatever it raises is the outcome.
        """
        ...


@frozen
class Link:
    """A stage with those after it."""

    stage: Stage
    proceed: Proceed

    async def run(self, call: Call) -> Outcome:
        """Return the call's outcome.

        Cancelling and StopRunError get through, and nothing else is raised.
        """
        try:
            return await self.stage.around(call, self.proceed)
        except GETS_THROUGH:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return outcome_of(call, error)
        except BaseException as error:  # noqa: BLE001 - a tool's SystemExit or group of errors ends its call only
            return outcome_of(call, error)


def linked(stages: Sequence[Stage]) -> Proceed:
    """Return what takes a call through all stages, the first one outermost."""
    proceed: Proceed = _nothing_left
    for stage in reversed(stages):
        proceed = Link(stage, proceed).run
    return proceed


async def _nothing_left(call: Call) -> Outcome:
    raise ToolError(f"Nothing runs {call.part.tool}.")


def outcome_of(call: Call, error: BaseException) -> Outcome:
    """Return the outcome of a call on whose way an error was raised."""
    match error:
        case RefusedError():
            return Outcome(ToolStatus.DENIED, ToolResult(str(error)))
        case ToolError() | UserFacingError():
            text = str(error)
        case OSError():
            log.warning("%s failed", call.part.tool, exc_info=error)
            text = str(explain(error, str(error.filename or call.part.tool)))
        case _:
            log.error("%s failed", call.part.tool, exc_info=error)
            text = f"{call.part.tool} failed with an internal error ({_named(error)}). {_UNKNOWN}"
    return Outcome(ToolStatus.ERROR, ToolResult(text, is_error=True))


def _named(error: BaseException) -> str:
    said = str(error).strip()[:300]
    if said:
        return f"{type(error).__name__}: {said}"
    return type(error).__name__
