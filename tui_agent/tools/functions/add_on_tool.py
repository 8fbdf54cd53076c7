"""A function of an add-on as a tool, and the object that add-ons register their functions with."""

import asyncio
import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from tui_agent.errors import ToolError, UserFacingError
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.tools.base import RawInput, ToolContext, ToolResult
from tui_agent.tools.functions.in_process import FunctionTool
from tui_agent.tools.functions.signature import FunctionError

_is_add_on: ContextVar[bool] = ContextVar("is_add_on", default=False)
"""Whether the code of an add-on is running."""


class AddOnError(UserFacingError):
    """A tool that an add-on registers can't be offered; the message says why."""


class AddOnTool(FunctionTool):
    """A function of an add-on.

    The user is asked about a call as about any that may change something.
    """

    about = "runs in the program, outside the sandbox"

    def __init__(self, function: Callable[..., Any], shown: str) -> None:
        super().__init__(_off_the_loop(function))
        self.shown = shown

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        del context
        detail = f"{self.name} {json.dumps(arguments.values, ensure_ascii=False)}"
        return (PermissionNeed(Permission.TOOL, self.name, detail=detail),)

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        try:
            with add_on_running():
                return await super().run(arguments, context)
        except SystemExit as error:  # it would end the program
            raise ToolError(f"{self.name} called sys.exit({error.code!r})") from None
        except (KeyboardInterrupt, GeneratorExit) as error:  # so would these
            raise ToolError(f"{self.name} raised {type(error).__name__}") from None


class AddOn:
    """Registers an add-on's tools, in its ``def register(add_on: AddOn) -> None``."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._tools: dict[str, AddOnTool] = {}

    @property
    def tools(self) -> tuple[AddOnTool, ...]:
        """The tools registered so far."""
        return tuple(self._tools.values())

    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a typed function with a docstring as a tool, and return it.

        Raises:
            UserFacingError: the function can't be a tool, or another has its name.
        """
        if not callable(function):
            raise AddOnError(f"{function!r} is no function")
        try:
            made = AddOnTool(function, self._shown)
        except FunctionError as error:
            raise AddOnError(str(error)) from None
        if made.name in self._tools:
            raise AddOnError(f"two functions are called {made.name}")
        self._tools[made.name] = made
        return function


def _off_the_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function for a plain one, which then runs in a thread."""
    if inspect.iscoroutinefunction(function) or not hasattr(function, "__name__"):
        return function

    @functools.wraps(function)
    async def in_thread(**arguments: Any) -> Any:
        returned = await asyncio.to_thread(_called, function, arguments)
        if inspect.isawaitable(returned):
            return await returned
        return returned

    return in_thread


def _called(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return function(**arguments)
    except StopIteration as error:  # no future takes it: whoever waits would wait for ever
        raise RuntimeError(f"StopIteration: {error}".removesuffix(": ")) from error


# -- what add-ons print ----------------------------------------------------------------------------


@contextmanager
def add_on_running() -> Iterator[None]:
    """Send what the code inside prints to standard error: standard output is the program's own."""
    if not isinstance(sys.stdout, _Output):
        sys.stdout = _Output(sys.stdout)
    token = _is_add_on.set(True)
    try:
        yield
    finally:
        _is_add_on.reset(token)


class _Output:
    """Standard output, without what add-ons print."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if _is_add_on.get():
            return sys.stderr.write(text)
        return self._stream.write(text)
