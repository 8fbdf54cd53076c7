"""How far the gauge is from what a provider reports."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.fidelity.traces import RECORDED, Trace
from tui_agent.context.budget import Meter, ModelLimits
from tui_agent.context.calibration import first_calibration
from tui_agent.context.request import wire_tool
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter, count_text
from tui_agent.session.entries import AssistantEntry, TextPart, ToolSchema, UserEntry

_ROOT = Path(__file__).resolve().parents[2]
_CHINESE = (
    "上下文窗口是有限的，所以旧的工具输出会被占位符代替。用户的原话永远保留，不会经过模型改写。"
    "如果压缩之后仍然超过阈值，就沿着固定的阶梯继续缩减，直到满足后置条件，或者说明原因并拒绝。"
)
_JAPANESE = (
    "コンテキストウィンドウには限りがあるので、古いツールの出力は短い行に置き換えられます。"
    "ユーザーの言葉はそのまま残ります。"
)
_KOREAN = "컨텍스트 창은 한정되어 있으므로 오래된 도구 출력은 짧은 한 줄로 바뀝니다. 사용자의 말은 그대로 남습니다. "
_ENGLISH = (
    "The history of a session is never changed. What a model is shown of it follows from the path alone, so going back "
    "is moving the leaf, and a summary can be undone like everything else. Nothing is lost when something is left out: "
    "its address stays, and one call brings it back. "
)
_REPORTS = 8
"""Reports a model's factor is learnt from before it is judged."""


@dataclass(frozen=True, slots=True)
class Error:
    """Shares the gauge was off.

    Of a model whose encoding is known, of one whose encoding is another than assumed after a few reports, and of
    counting a token per four characters.
    """

    what: str
    known: float
    learnt: float
    by_characters: float


def errors(traces: Sequence[Trace]) -> Iterator[Error]:
    """Yield the error per kind of text, and on the requests of the recorded session."""
    source = (_ROOT / "tui_agent" / "context" / "compaction.py").read_text(encoding="utf-8")
    parameters = {
        "type": "object",
        "properties": {f"field_{n}": {"type": "string"} for n in range(40)},
    }
    schema = str(
        wire_tool(ToolSchema(name="search", description="Search files", parameters=parameters))
    )
    encoded = base64.b64encode(Random(0).randbytes(12_000)).decode()
    kinds = {
        "English": _ENGLISH * 20,
        "code": source,
        "JSON": schema * 4,
        "中文": _CHINESE * 20,
        "日本語": _JAPANESE * 20,
        "한국어": _KOREAN * 20,
        "base64": encoded,
    }
    for what, text in kinds.items():
        yield _of_text(what, text)
    for trace in traces:
        if trace.name == RECORDED:
            yield _of_requests(trace)


def gauge_table(found: Sequence[Error]) -> str:
    """Lay the errors out."""
    lines = ["Gauge error: encoding known · another one, learnt from reports · characters / 4"]
    return "\n".join(
        [
            *lines,
            *(
                f"{e.what:<20} {e.known:>7.2%} {e.learnt:>7.2%} {e.by_characters:>7.1%}"
                for e in found
            ),
        ]
    )


def _of_text(what: str, text: str) -> Error:
    """Compare with cl100k_base, of a model known to use it and as if that were not known.

    What is learnt comes from reports on the first half of the text, what is judged is the second.
    """
    counter = TokenCounter("unknown/model", first_calibration("unknown/model"))
    seen, judged = text[: len(text) // 2], text[len(text) // 2 :]
    reported = count_text(judged, "cl100k_base")
    for _ in range(_REPORTS):
        counter = counter.learn(count_text(seen), count_text(seen, "cl100k_base"))
    return Error(
        what,
        abs(TokenCounter("gpt-4").text(judged) / reported - 1),
        abs(counter.text(judged) / reported - 1),
        abs(len(judged) / 4 / reported - 1),
    )


def _of_requests(trace: Trace) -> Error:
    """Compare with what the providers reported in a recorded session, request by request."""
    settings = ContextSettings()
    counters: dict[str, TokenCounter] = {}
    ours: list[float] = []
    naive: list[float] = []
    characters = 0
    for place, entry in enumerate(trace.entries):
        if (
            isinstance(entry, AssistantEntry)
            and entry.usage is not None
            and entry.usage.prompt
            and not entry.error
        ):
            path, limits = trace.entries[:place], ModelLimits(entry.model, 1_000_000)
            counter = counters.get(
                entry.model, TokenCounter(entry.model, first_calibration(entry.model))
            )
            reported = entry.usage.prompt
            ours.append(abs(Meter(limits, settings, counter).measure(path).total / reported - 1))
            naive.append(abs(characters / 4 / reported - 1))
            counted = Meter(limits, settings, counter).counted(path)
            counters[entry.model] = counter.learn(counted, reported)
        characters += _characters(entry)
    return Error("recorded requests", median(ours), median(ours), median(naive))


def _characters(entry: object) -> int:
    if isinstance(entry, AssistantEntry):
        return len(entry.text) + sum(len(call.arguments) for call in entry.tool_calls)
    if isinstance(entry, UserEntry):
        return sum(len(part.text) for part in entry.parts if isinstance(part, TextPart))
    return len(getattr(entry, "output", ""))
