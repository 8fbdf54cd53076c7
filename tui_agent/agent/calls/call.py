"""Defines a tool call, the stages that it passes through, and its outcome.

A call has exactly one outcome, even if a stage raises an exception. `ToolRunner` makes the calls,
sends them through the stages of ``stages`` and ``repetition``, and appends the outcomes as results.
"""

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
"""Runs a tool call through the remaining stages and returns its outcome."""

_UNKNOWN = "The call may have been carried out in part. Check before you continue; don't repeat it."


class StopRunError(Exception):
    """Raised to end the run; the message is a sentence for the user.

    ``result`` is the output that the model receives for the call that ended the run; "" for none.
    """

    def __init__(self, message: str, result: str = "") -> None:
        super().__init__(message)
        self.result = result


GETS_THROUGH = (StopRunError, KeyboardInterrupt, GeneratorExit)
"""Exceptions that pass through all stages instead of becoming the call's result."""


class RefusedError(Exception):
    """Raised if a call isn't allowed to run; the message is written for the model."""


@dataclass
class Call:
    """One tool call, with the results of the stages it has passed.

    ``found`` and ``given`` are its tool and arguments; None if they can't be read, and ``problem``
    then gives the model the reason. ``held`` is the call's context, None until the stage
    `Understood`. ``needs`` are the permissions that the call needs, and ``by_hook`` is what the
    hooks decided about it.
    """

    part: ToolCallPart
    found: Tool[Any] | None = None
    given: ToolInput | None = None
    forwarded: bool = False
    """Whether the called tool only passes the call on to the tool ``found``."""
    problem: str = ""
    held: ToolContext | None = None
    needs: Sequence[PermissionNeed] = ()
    by_hook: HookVerdict = field(default_factory=HookVerdict)
    changed_by_hook: str | None = None
    """The arguments as JSON text if a hook changed them; otherwise None."""
    started_at: int = 0
    """Time when the call began, in milliseconds since the epoch; 0 before it begins.

    Set when the stages begin, and again once the call is allowed.
    """
    was_started: bool = False
    """Whether the call was allowed, and its start was announced to the frontends."""
    live: str = ""
    """The last part of the tool's output so far, which is the result if the call is interrupted."""
    finished: "Outcome | None" = None
    """The outcome of the tool itself; None until the tool has ended.

    It becomes the call's result if the work after the tool, such as a hook, is interrupted.
    """
    answered: bool = False
    """Whether the result entry of the call has been created."""

    @property
    def call_id(self) -> str:
        return self.part.call_id

    @property
    def tool(self) -> Tool[Any]:
        """The called tool. Raises ToolError if the call can't be read."""
        if self.found is None:
            raise ToolError(self.problem)
        return self.found

    @property
    def arguments(self) -> ToolInput:
        """The call's arguments. Raises ToolError if the call can't be read."""
        if self.given is None:
            raise ToolError(self.problem)
        return self.given

    @property
    def context(self) -> ToolContext:
        """What the tool may use while it runs; raises ToolError before the stage `Understood`."""
        if self.held is None:
            raise ToolError("The call has no context yet.")
        return self.held

    @property
    def is_read_only(self) -> bool:
        return self.found is not None and self.found.read_only

    @property
    def title(self) -> str:
        """A short description of the call for its card on the screen; "" for an unreadable call."""
        if self.found is None or self.given is None:
            return ""
        try:
            return self.found.title(self.given)
        except GETS_THROUGH:
            raise
        except BaseException:
            # An error in making the title must not keep the call from giving its result.
            log.exception("%s has no title", self.part.tool)
            return ""


@frozen
class Outcome:
    """How a tool call ended, that is, its status and its result."""

    status: ToolStatus
    result: ToolResult

    @classmethod
    def of(cls, result: ToolResult) -> "Outcome":
        """Return the outcome for a tool's result: ERROR if the tool failed, otherwise COMPLETED."""
        return cls(ToolStatus.ERROR if result.is_error else ToolStatus.COMPLETED, result)


class Stage(Protocol):
    """A stage of every tool call, which may refuse the call, or act before and after others."""

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        """Return the call's outcome: that of ``proceed``, which runs the later stages, or its own.

        `Link.run` turns an exception into an outcome, except for those in `GETS_THROUGH`.
        """
        ...


@frozen
class Link:
    """A stage of a tool call, with the function that runs the call through the later stages."""

    stage: Stage
    proceed: Proceed

    async def run(self, call: Call) -> Outcome:
        """Run the stage and return the call's outcome, even if the stage raises an exception.

        Raises only the exceptions in `GETS_THROUGH`, and CancelledError if the current task is
        cancelled.
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
    """Return a function that runs a call through all stages, of which the first is outermost."""
    proceed: Proceed = _nothing_left
    for stage in reversed(stages):
        proceed = Link(stage, proceed).run
    return proceed


async def _nothing_left(call: Call) -> Outcome:
    raise ToolError(f"No stage runs {call.part.tool}.")


def outcome_of(call: Call, error: BaseException) -> Outcome:
    """Return the outcome, with a text for the model, for an exception that a stage raised.

    The status of the outcome is DENIED for a RefusedError, and ERROR for any other exception.
    """
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
