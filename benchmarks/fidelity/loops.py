"""Whether loops are told from honest work: loops put into sessions, and the repetitions sessions have anyway."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.fidelity.traces import Trace
from tui_agent.agent.doom_loop import detect
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
)

_STARTS = 12
"""Places of each trace at which a loop or honest work is put in."""
_LONGEST = 30
"""Calls after which a loop counts as missed."""
_HONEST = ("waits", "edits and tests", "reads on")
_LOOPS = ("one call", "two calls", "three calls", "unreadable")


@dataclass(frozen=True, slots=True)
class Found:
    """How often a kind was stopped, of how many, and after how many calls."""

    kind: str
    stopped: int
    of: int
    calls: float


def loop_table(traces: Sequence[Trace]) -> str:
    """Lay out what was stopped, and precision and recall over all."""
    found = [_of(kind, traces) for kind in (*_LOOPS, *_HONEST)]
    calls, recorded = _in_traces(traces)
    right = sum(one.stopped for one in found if one.kind in _LOOPS)
    wrong = sum(one.stopped for one in found if one.kind in _HONEST) + recorded
    all_loops = sum(one.of for one in found if one.kind in _LOOPS)
    lines = [
        f"Loops: precision {right / max(1, right + wrong):.1%}, recall {right / max(1, all_loops):.1%}"
    ]
    for one in found:
        what = "loop" if one.kind in _LOOPS else "honest"
        after = f", after {one.calls:.1f} calls" if one.stopped else ""
        lines.append(f"  {what:<7} {one.kind:<16} stopped {one.stopped} of {one.of}{after}")
    return "\n".join([*lines, f"  in the traces themselves: {recorded} of {calls:,} calls"])


def _of(kind: str, traces: Sequence[Trace]) -> Found:
    lengths: list[int] = []
    tried = 0
    for trace in traces:
        for place in range(0, len(trace.entries), max(1, len(trace.entries) // _STARTS)):
            tried += 1
            path: list[Entry] = list(trace.entries[max(0, place - 60) : place])
            for number, (tool, arguments, output) in zip(
                range(1, _LONGEST + 1), _calls(kind), strict=False
            ):
                call, result = _step(f"put_in_{number}", tool, arguments, output)
                path.append(call)
                if detect(path, f"put_in_{number}") is not None:
                    lengths.append(number)
                    break
                path.append(result)
    return Found(kind, len(lengths), tried, sum(lengths) / max(1, len(lengths)))


def _calls(kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield the calls of a kind as tool, arguments and output; honest ones come to an end."""
    step = 0
    while True:
        step += 1
        match kind:
            case "one call":
                yield "read", '{"path": "a.py"}', "same"
            case "two calls":
                yield (
                    ("edit", '{"path": "a.py"}', "not found")
                    if step % 2
                    else ("read", '{"path": "a.py"}', "same")
                )
            case "three calls":
                yield (
                    "bash",
                    json.dumps({"command": f"make {'abc'[step % 3]}"}),
                    f"failed in {step}.2 s",
                )
            case "unreadable":
                yield "write", '{"path": "a.py", "content": ' + "x" * step, "not JSON"
            case "waits" if step <= 12:
                yield (
                    "bash",
                    '{"command": "kubectl get pods"}',
                    f"pending, {step * 7} of 90 started",
                )
            case "edits and tests" if step <= 24 and step % 2:
                yield (
                    "edit",
                    json.dumps({"path": "a.py", "old": f"v{step}", "new": f"v{step + 1}"}),
                    "Edited a.py",
                )
            case "edits and tests" if step <= 24:
                yield "bash", '{"command": "pytest -q"}', f"{24 - step} failed"
            case "reads on" if step <= 24:
                yield (
                    "read",
                    json.dumps({"path": "a.py", "offset": step * 100}),
                    f"lines from {step * 100}",
                )
            case _:
                return


def _in_traces(traces: Sequence[Trace]) -> tuple[int, int]:
    """Return how many calls the traces hold and at how many of them a loop would have been asked about."""
    calls = stopped = 0
    for trace in traces:
        for place, entry in enumerate(trace.entries):
            if isinstance(entry, AssistantEntry):
                for call in entry.tool_calls:
                    calls += 1
                    stopped += (
                        detect(trace.entries[max(0, place - 200) : place + 1], call.call_id)
                        is not None
                    )
    return calls, stopped


def _step(
    call_id: str, tool: str, arguments: str, output: str
) -> tuple[AssistantEntry, ToolResultEntry]:
    call = ToolCallPart(call_id=call_id, tool=tool, arguments=arguments)
    status = ToolStatus.ERROR if output in ("not found", "not JSON") else ToolStatus.COMPLETED
    return AssistantEntry(parts=(call,), model="demo"), ToolResultEntry(
        call_id=call_id, tool=tool, status=status, output=output
    )
