"""How far the gauge is from what a provider reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.fidelity.traces import Trace
from tui_agent.context.budget import ModelLimits, estimate_tokens, measure
from tui_agent.context.request import wire_tool
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter, count_text
from tui_agent.session.entries import AssistantEntry, TextPart, ToolSchema, UserEntry

_ROOT = Path(__file__).resolve().parents[2]
_CHINESE = (
    "上下文窗口是有限的，所以旧的工具输出会被占位符代替。用户的原话永远保留，不会经过模型改写。"
    "如果压缩之后仍然超过阈值，就沿着固定的阶梯继续缩减，直到满足后置条件，或者说明原因并拒绝。"
)
_ENGLISH = (
    "The history of a session is never changed. What a model is shown of it follows from the path alone, so going back "
    "is moving the leaf, and a summary can be undone like everything else. Nothing is lost when something is left out: "
    "its address stays, and one call brings it back. "
)
_REPORTS = 3
"""Reports a model's factor is learnt from before it is judged."""


@dataclass(frozen=True, slots=True)
class Error:
    """Shares the gauge was off, next to what counting a token per four characters gives."""

    what: str
    ours: float
    by_characters: float


def errors(recorded: Trace | None) -> Iterator[Error]:
    """Yield the error per kind of text, for a model of another encoding than assumed, and on recorded requests."""
    source = (_ROOT / "tui_agent" / "context" / "compaction.py").read_text(encoding="utf-8")
    parameters = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(40)}}
    schema = str(wire_tool(ToolSchema(name="search", description="Search files", parameters=parameters)))
    for what, text in (("English", _ENGLISH * 20), ("code", source), ("JSON", schema * 4), ("中文", _CHINESE * 20)):
        yield _of_text(what, text)
    if recorded is not None:
        yield _of_requests(recorded)


def _of_text(what: str, text: str) -> Error:
    """Compare with cl100k_base as if it were a provider whose encoding is not known."""
    counter = TokenCounter("unknown/model")
    reported = count_text(text, "cl100k_base")
    for _ in range(_REPORTS):
        counter = counter.learn(estimate=counter.text(text), reported=reported)
    return Error(what, abs(counter.text(text) / reported - 1), abs(len(text) / 4 / reported - 1))


def _of_requests(trace: Trace) -> Error:
    """Compare with what the providers reported in a recorded session, request by request."""
    settings = ContextSettings()
    counters: dict[str, TokenCounter] = {}
    ours: list[float] = []
    naive: list[float] = []
    characters = 0
    for place, entry in enumerate(trace.entries):
        if isinstance(entry, AssistantEntry) and entry.usage is not None and entry.usage.prompt and not entry.error:
            path, limits = trace.entries[:place], ModelLimits(entry.model, 1_000_000)
            counter = counters.get(entry.model, TokenCounter(entry.model))
            reported = entry.usage.prompt
            ours.append(abs(measure(path, limits, settings, counter).total / reported - 1))
            naive.append(abs(characters / 4 / reported - 1))
            estimate = estimate_tokens(path, limits, counter)
            counters[entry.model] = counter.learn(estimate=estimate, reported=reported)
        characters += _characters(entry)
    return Error("recorded requests", median(ours), median(naive))


def _characters(entry: object) -> int:
    if isinstance(entry, AssistantEntry):
        return len(entry.text) + sum(len(call.arguments) for call in entry.tool_calls)
    if isinstance(entry, UserEntry):
        return sum(len(part.text) for part in entry.parts if isinstance(part, TextPart))
    return len(getattr(entry, "output", ""))
