"""Defines the tool that runs an add-on's function, and the object that registers functions.

Text that an add-on's code prints goes to standard error, because when such code first runs,
``sys.stdout`` is replaced for the whole process (`add_on_running`).
"""

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from tui_agent.errors import ToolError, UserFacingError
from tui_agent.json_text import as_lines
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.tools.base import RawInput, ToolContext, ToolResult
from tui_agent.tools.functions.in_process import FunctionTool
from tui_agent.tools.functions.signature import FunctionError

_is_add_on: ContextVar[bool] = ContextVar("is_add_on", default=False)
"""True in the asyncio tasks and threads that are running an add-on's code."""


class AddOnError(UserFacingError):
    """Raised if a function that an add-on registers can't become a tool; the message says why."""


class AddOnTool(FunctionTool):
    """A tool made from a function of an add-on. Its calls need the permission ``TOOL``.

    A coroutine function runs on the event loop, any other function in a thread.
    """

    about = "runs in the program, outside the sandbox"

    def __init__(self, function: Callable[..., Any], shown: str) -> None:
        super().__init__(_in_thread(function))
        self.shown = shown

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        del context
        detail = as_lines(arguments.values)
        return (PermissionNeed(Permission.TOOL, self.name, detail=detail),)

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        try:
            with add_on_running():
                return await super().run(arguments, context)
        except SystemExit as error:  # Such an exception would end the program.
            raise ToolError(f"{self.name} called sys.exit({error.code!r})") from None
        except (KeyboardInterrupt, GeneratorExit) as error:  # This would end the program.
            raise ToolError(f"{self.name} raised {type(error).__name__}") from None


class AddOn:
    """Registers an add-on's tools; passed to the add-on's function ``register(add_on: AddOn)``."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._tools: dict[str, AddOnTool] = {}

    @property
    def tools(self) -> tuple[AddOnTool, ...]:
        """The tools that the add-on has registered so far."""
        return tuple(self._tools.values())

    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a typed function with a docstring as a tool, and return the function.

        Can be used as a decorator.

        Raises:
            AddOnError: the function can't be a tool, or the add-on has already registered a tool
                of that name.
        """
        if not callable(function):
            raise AddOnError(f"{function!r} is not a function")
        try:
            made = AddOnTool(function, self._shown)
        except FunctionError as error:
            raise AddOnError(str(error)) from None
        if made.name in self._tools:
            raise AddOnError(f"two functions are called {made.name}")
        self._tools[made.name] = made
        return function


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function that calls a plain function in a thread.

    A coroutine function is returned unchanged.
    """
    if inspect.iscoroutinefunction(function) or not hasattr(function, "__name__"):
        return function

    @functools.wraps(function)
    async def in_thread(**arguments: Any) -> Any:
        returned = await asyncio.to_thread(_call, function, arguments)
        if inspect.isawaitable(returned):
            return await returned
        return returned

    return in_thread


def _call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return function(**arguments)
    except StopIteration as error:  # a future can't hold it: awaiting it would never end
        raise RuntimeError(f"StopIteration: {error}".removesuffix(": ")) from error


# -- what add-ons print ----------------------------------------------------------------------------


@contextmanager
def add_on_running() -> Iterator[None]:
    """Redirect what is printed in the block from standard output to standard error.

    Use this around calls of an add-on's code, because standard output belongs to the program.
    """
    if not isinstance(sys.stdout, _Output):
        sys.stdout = _Output(sys.stdout)
    token = _is_add_on.set(True)
    try:
        yield
    finally:
        _is_add_on.reset(token)


class _Output:
    """Replaces ``sys.stdout``, and sends the text that add-ons print to standard error instead."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if _is_add_on.get():
            return sys.stderr.write(text)
        return self._stream.write(text)
