"""Hypothesis strategies for paths of entries as they come in life, and as they never should."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tui_agent.context.view import resolve
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    REASONING,
    AssistantEntry,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    FileChange,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ModelChangeEntry,
    PinnedText,
    PruneEntry,
    ReasoningPart,
    ShellEntry,
    SummaryDetails,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolSchema,
    ToolStatus,
    Usage,
    UserEntry,
    kinds,
)

ITEM = '{"compacted": [{"type": "compaction", "content": "s", "signature": "c2ln"}]}'
MODELS = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5")
TOOLS = ("read", "bash", "edit", "grep")

CACHE_BREAKING = frozenset(kinds(lambda kind: kind.breaks_prefix))
"""Kinds after which a request need not extend the one before."""

texts = st.one_of(
    st.sampled_from(
        [
            "",
            " \n\t",
            "Fix the bug in src/app.py",
            "上下文窗口管理还有三层机制",
            "日本語テキスト 한국어",
            "👩‍👩‍👧 done ✅",
            "half \ud83d pair",
            "nul\0 and \x1b[31mred\x1b[0m",
            "{message} {gist} </system-reminder> <|endoftext|>",
            "x" * 3_000,
            "one\ntwo\nthree\n",
        ]
    ),
    st.text(max_size=40),
    st.text(st.characters(codec=None), max_size=10),
)
images = st.builds(
    ImagePart,
    blob=st.sampled_from(["a" * 64, "b" * 64]),
    mime=st.just("image/png"),
    width=st.sampled_from([0, 64, 1920]),
    height=st.sampled_from([0, 48, 1080]),
    path=st.sampled_from([None, "shot.png"]),
)
user_parts = st.lists(
    st.one_of(
        st.builds(TextPart, text=texts),
        st.builds(TextPart, text=texts),
        st.builds(FilePart, path=st.sampled_from(["src/app.py", "文件.md"]), text=texts),
        images,
    ),
    max_size=3,
).map(tuple)
call_ids = st.one_of(
    st.integers(0, 5).map(lambda n: f"call_{n}"),
    st.sampled_from(
        ["", "call 1", "toolu_01AbC", "c" * 80, "функция", "call_1__thought__AbC+/=", "call_1_2"]
    ),
)
arguments = st.one_of(
    st.dictionaries(st.sampled_from(["path", "command", "content"]), texts, max_size=2).map(
        json.dumps
    ),
    st.dictionaries(st.sampled_from(["path", "n"]), st.integers(), max_size=2).map(
        lambda value: json.dumps(value, indent=1)
    ),
    st.sampled_from(
        [
            "",
            "  ",
            "{",
            '{"path": "a',
            "[1]",
            '"text"',
            "null",
            "NaN",
            '{"a": NaN}',
            '{"a": "\\ud800"}',
            "{}{}",
        ]
    ),
    st.sampled_from(['{"path": "\ud800"}', '{"content": "' + "y" * 900 + '"}', "[" * 2_000]),
)
tools = st.sampled_from([*TOOLS, *TOOLS, "functions.read", "", "weird tool 工具", "t" * 80])
usages = st.one_of(
    st.none(),
    st.builds(
        Usage,
        input=st.integers(0, 90_000),
        output=st.integers(0, 4_000),
        cache_read=st.integers(0, 50_000),
    ),
)


@dataclass
class Growing:
    """A path being drawn: what has been appended, and the calls it made."""

    entries: list[Entry] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)

    def append(self, kind: type[Any], **values: Any) -> None:
        number = len(self.entries) + 1
        self.entries.append(
            kind(id=number, parent_id=number - 1 or None, created_at=number * 1_000, **values)
        )


EDITS: list[dict[str, Any]] = [
    *({"action": action} for action in ("drop", "mask", "pin", "restore")),
    {"action": "edit", "text": "other words {id}"},
    {"action": "leave_out", "parts": ("a" * 64,), "note": "picture taken out"},
    {"action": "leave_out", "parts": (REASONING,), "note": "reasoning taken out"},
]


@st.composite
def entry_values(  # noqa: C901 - one arm per kind of a closed union
    draw: st.DrawFn, kind: str, path: Growing
) -> tuple[type[Any], dict[str, Any]]:
    """Draw one entry's class and fields, fitting (or not) to the path so far."""
    tokens = draw(st.integers(0, 5_000))
    some_id = st.integers(1, len(path.entries) + 2)
    match kind:
        case "user":
            values = {
                "parts": draw(user_parts),
                "synthetic": draw(st.sampled_from([None, None, "continue"])),
                "mid_run": draw(st.booleans()),
            }
            return UserEntry, values | {"tokens": tokens}
        case "assistant":
            return AssistantEntry, draw(_answers(path)) | {"tokens": tokens}
        case "tool_result":
            known = [call for call, _ in path.made[-4:]]
            call_id = draw(st.one_of(st.sampled_from(known), call_ids) if known else call_ids)
            return ToolResultEntry, draw(_results(call_id)) | {"tokens": tokens}
        case "shell":
            values = {
                "command": draw(texts),
                "output": draw(texts),
                "excluded": draw(st.booleans()),
            }
            return ShellEntry, values | {
                "exit_code": draw(st.sampled_from([None, 0, 1])),
                "tokens": tokens,
            }
        case "compaction":
            return CompactionEntry, {
                "summary": draw(texts),
                "first_kept_id": draw(st.one_of(st.none(), some_id)),
                "tokens_before": 100,
                "tokens_after": 50,
                "trigger": "threshold",
                "details": draw(_details(some_id)),
                **draw(
                    st.sampled_from([{}, {}, *({"model": model, "item": ITEM} for model in MODELS)])
                ),
            }
        case "branch_summary":
            return BranchSummaryEntry, {
                "summary": draw(texts),
                "from_id": draw(some_id),
                "details": draw(_details(some_id)),
            }
        case "prune":
            return PruneEntry, {
                "targets": tuple(draw(st.lists(some_id, max_size=4))),
                "tokens_freed": 10,
                "reason": "pressure",
                "keep_chars": draw(st.sampled_from([0, 0, 1, 200])),
            }
        case "context_edit":
            return ContextEditEntry, {
                "target": draw(some_id),
                **draw(st.sampled_from(EDITS)),
            }
        case "model_change":
            return ModelChangeEntry, {"model": draw(st.sampled_from(MODELS))}
        case "mode_change":
            return ModeChangeEntry, {"mode": draw(st.sampled_from(["build", "plan"]))}
        case "effort_change":
            return EffortChangeEntry, {"effort": draw(st.sampled_from([None, *Effort]))}
        case "system":
            blocks = tuple(draw(st.lists(texts, max_size=3)))
            schema = ToolSchema(
                name="read", description="Read a file", parameters={"type": "object"}
            )
            opening = draw(st.sampled_from(("", "Directory: /home/me")))
            return SystemEntry, {
                "blocks": blocks,
                "opening": opening,
                "tools": (schema,),
                "model": draw(st.sampled_from(MODELS)),
            }
        case _:
            return CheckpointEntry, {"files": (FileChange(path="a.py", after="0" * 64),)}


@st.composite
def _answers(draw: st.DrawFn, path: Growing) -> dict[str, Any]:
    model = draw(st.sampled_from(MODELS))
    parts: list[Any] = [
        ReasoningPart(
            text=draw(texts), blob=blob, model=draw(st.sampled_from(["", model, *MODELS]))
        )
        for blob in draw(
            st.lists(st.sampled_from([None, '{"signature": "s=="}', "{}"]), max_size=2)
        )
    ]
    parts += [TextPart(text=text) for text in draw(st.lists(texts, max_size=2))]
    calls = draw(st.lists(st.tuples(call_ids, tools, arguments), max_size=3))
    parts += [
        ToolCallPart(call_id=call_id, tool=tool, arguments=text) for call_id, tool, text in calls
    ]
    path.made += [(call_id, tool) for call_id, tool, _ in calls]
    failed = draw(st.sampled_from([False, False, False, True]))
    interrupted = draw(st.sampled_from([False, False, False, True]))
    return {
        "parts": tuple(parts),
        "model": model,
        "usage": draw(usages),
        "error": "Connection lost" if failed else None,
        "interrupted": interrupted,
        "finish": "error"
        if failed
        else "interrupted"
        if interrupted
        else "tool_calls"
        if calls
        else "stop",
    }


@st.composite
def _results(draw: st.DrawFn, call_id: str) -> dict[str, Any]:
    return {
        "call_id": call_id,
        "tool": draw(tools),
        "status": draw(st.sampled_from(list(ToolStatus))),
        "output": draw(texts),
        "title": draw(texts),
        "attachments": tuple(draw(st.lists(images, max_size=2)))
        if draw(st.integers(0, 4)) == 0
        else (),
        "metadata": ToolMetadata(exit_code=draw(st.sampled_from([None, 0, 2]))),
    }


@st.composite
def _details(draw: st.DrawFn, ids: st.SearchStrategy[int]) -> SummaryDetails:
    rows = st.lists(texts, max_size=2).map(tuple)
    return SummaryDetails(
        read_files=draw(rows),
        modified_files=draw(rows),
        anchors=draw(rows),
        user_messages=draw(rows),
        pinned=tuple(
            PinnedText(id=n, text=draw(texts)) for n in draw(st.lists(ids, max_size=2, unique=True))
        ),
    )


KINDS = (
    *("user",) * 6, *("assistant",) * 6, *("tool_result",) * 8, *("shell", "prune", "context_edit") * 2,
    *("compaction", "branch_summary", "model_change", "mode_change", "effort_change", "system", "checkpoint"),
)  # fmt: skip


@st.composite
def paths(draw: st.DrawFn, max_size: int = 14) -> list[Entry]:
    """Draw a whole path, root first, ids ascending from 1."""
    path = Growing()
    if draw(st.integers(0, 9)):
        path.append(
            SystemEntry, blocks=("You are an agent.", "Directory: /home/me"), model=MODELS[0]
        )
    for kind in draw(st.lists(st.sampled_from(KINDS), max_size=max_size)):
        entry_class, values = draw(entry_values(kind, path))
        path.append(entry_class, **values)
    return path.entries


@st.composite
def grown_paths(draw: st.DrawFn) -> tuple[list[Entry], Entry]:
    """Draw a path and one entry more that follows it."""
    path = Growing(entries=draw(paths()))
    path.made = [
        (call.call_id, call.tool)
        for e in path.entries
        if isinstance(e, AssistantEntry)
        for call in e.tool_calls
    ]
    entry_class, values = draw(entry_values(draw(st.sampled_from(sorted(set(KINDS)))), path))
    path.append(entry_class, **values)
    return path.entries[:-1], path.entries[-1]


def active(path: list[Entry]) -> list[Entry]:
    """Return the active path of a whole one: the last of each state, and what the last compaction left."""
    compaction = resolve(path).compaction
    if compaction is None:
        return path
    at, first = path.index(compaction), compaction.first_kept_id
    start = next((i for i in range(at) if path[i].id == first), at)
    states = ("system", "model_change", "mode_change", "effort_change")
    last = {entry.kind: entry for entry in path[:start] if entry.kind in states}
    return sorted(last.values(), key=lambda entry: entry.id) + path[start:]
