"""The demo model, which plays a script without a key or network, and the demo's sample project."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.context.calibration import first_calibration, rough_count
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.context.tokens import MESSAGE_TOKENS
from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.protocol import (
    ErrorKind,
    Finished,
    ModelError,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    UsageReport,
)
from tui_agent.session.entries import Usage

if TYPE_CHECKING:
    from tui_agent.model.demo_script import DemoTurn

DEMO_MODEL = "demo"
"""The id of the demo model."""

DEMO_WINDOW = 16_384
"""The demo model's context window, in tokens. The window is small so that it fills up within
minutes."""

DEMO_MAX_OUTPUT = 2_048
"""Maximum length of the demo model's answers, in tokens."""

ORDERS_A_MONTH = 115
"""Number of lines in each file of orders. The number is so small that reading a file is never
truncated."""

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_CACHED_REQUESTS = 8
"""Number of newest requests that the demo model treats as cached, as a provider would."""

GOODS = ("bread roll", "tea", "cup", "teapot", "cake", "honey", "jam")


class DemoCatalog(Catalog):
    """The catalog with the demo model added."""

    def info(self, model: str) -> ModelInfo:
        if model == DEMO_MODEL:
            return ModelInfo(DEMO_MODEL, "demo", DEMO_WINDOW, DEMO_MAX_OUTPUT)
        return super().info(model)

    def knows(self, model: str) -> bool:
        return model == DEMO_MODEL or super().knows(model)


class DemoClient:
    """A model client whose answers come from a script. The tools that it calls are real.

    ``pace`` is the time between two pieces of an answer in seconds; 0 streams without pauses.
    ``window`` is the context window in tokens.
    """

    def __init__(self, *, pace: float = 0.02, window: int = DEMO_WINDOW) -> None:
        self._pace = pace
        self._window = window
        self._cached = deque[tuple[bytes, ...]](maxlen=_CACHED_REQUESTS)
        self._answered: Counter[bytes] = Counter()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the next step of the script.

        Raises:
            ModelError: the request is larger than the demo's window.
        """
        from tui_agent.model.demo_script import load_script, next_turn, pieces

        script = load_script()
        lines = tuple(request_bytes(request).splitlines(keepends=True))
        tokens = _tokens(lines)
        if tokens > self._window:
            message = script.overflow.replace("{window}", f"{self._window:,}")
            raise ModelError(ErrorKind.CONTEXT_OVERFLOW, message, window=self._window)
        said = sha256(b"".join(lines[len(request.tools) :])).digest()
        turn = next_turn(script, request, self._answered[said])
        self._answered[said] += 1
        for thought in pieces(turn.thinking):
            yield ReasoningDelta(thought)
            await asyncio.sleep(self._pace)
        for piece in pieces(turn.text):
            yield TextDelta(piece)
            await asyncio.sleep(self._pace)
        for index, call in enumerate(turn.calls):
            for piece in pieces(call.arguments, 24):
                yield ToolCallDelta(index, call.call_id, call.tool, piece)
                await asyncio.sleep(self._pace)
            yield ToolCallReady(call.call_id, call.tool, call.arguments)
        yield UsageReport(self._usage(lines, turn), cost=0.0)
        yield Finished("tool_calls" if turn.calls else "stop")

    async def aclose(self) -> None:
        """Do nothing: the demo has no connections."""

    def _usage(self, lines: tuple[bytes, ...], turn: "DemoTurn") -> Usage:
        """Return the usage to report, in tokens.

        The longest beginning shared with one of the last requests counts as read from the cache. As
        with a provider, a request for a summary or a title doesn't push the conversation out of the
        cache.
        """
        shared = max((_shared_lines(before, lines) for before in self._cached), default=0)
        self._cached.append(lines)
        cached = _tokens(lines[:shared])
        said = turn.text + "".join(call.arguments for call in turn.calls)
        reasoning = 0
        if turn.thinking:
            reasoning = _tokens((turn.thinking.encode(),))
        return Usage(
            input=_tokens(lines) - cached,
            output=_tokens((said.encode(),)) + reasoning,
            cache_read=cached,
            reasoning=reasoning,
        )


def _shared_lines(before: tuple[bytes, ...], now: tuple[bytes, ...]) -> int:
    """Return the number of lines that two requests have in common at their beginning."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        shared += 1
    return shared


def _tokens(lines: tuple[bytes, ...]) -> int:
    """Estimate tokens in the program's own way, so that reported and estimated tokens are equal."""
    sizes = first_calibration(DEMO_MODEL)
    return round(sum(sizes.apply(MESSAGE_TOKENS + rough_count(line.decode())) for line in lines))


def create_demo_workspace(directory: Path) -> None:
    """Write the demo's sample project into a directory, but don't overwrite existing files."""
    from tui_agent.model.demo_script import load_script

    files = dict(load_script().workspace)
    # The files contain a year of orders, so that reading them one after another fills the window.
    for number, month in enumerate(MONTHS, 1):
        rows = (
            f"{number:02}-{day % 28 + 1:02},order {number * 100 + day},{GOODS[(day * number) % len(GOODS)]},"
            f"{1 + (day * 7 + number) % 4},{150 + (day * 37 + number * 11) % 900}"
            for day in range(ORDERS_A_MONTH)
        )
        files[f"orders/{number:02}-{month}.csv"] = (
            "\n".join(["date,order,item,quantity,price", *rows]) + "\n"
        )
    for name, text in files.items():
        path = directory / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.lstrip("\n"), encoding="utf-8")
