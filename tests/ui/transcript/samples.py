"""Invented entries of every kind, for the demo of the transcript, its tests and its benchmark."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    FilePart,
    ImagePart,
    ModelChangeEntry,
    PruneEntry,
    ReasoningPart,
    ShellEntry,
    SummaryDetails,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    Truncation,
    UserEntry,
)
from tui_agent.session.records import EntryOutline, Outlines
from tui_agent.ui.widgets.transcript.source import EntrySource

MODEL = "demo/model"

ANSWER = """The redirect dropped `next` because **`login_required`** builds the target from `request.path` alone.

## What happens

1. `LOGIN_URL` is taken from the settings,
2. the view calls `redirect()` *without* the query string,
3. the [session middleware](https://docs.example.com/sessions) never sees it.

- fixed in `src/auth/views.py`
  - covered by a new test
- [x] query string kept
- [ ] changelog

```python
def login_redirect(request):
    \"\"\"Keep where the user wanted to go.\"\"\"
    query = urlencode({"next": request.get_full_path()})
    return redirect(f"{settings.LOGIN_URL}?{query}", permanent=False)  # 302
```

| Case | Before | After |
|------|:------:|------:|
| `/cart?page=2` | `/login` | `/login?next=…` |
| already signed in | loop | passes through |

> Note: the old behaviour was documented, so mention it in the release notes.

---

~~Nothing else uses it.~~ Two other callers do, see `grep` above.
"""

CJK = """日本語の文章も正しく折り返されます。全角文字は二つのセルを使うので、行の幅を数えるときに注意が必要です。
한국어와 中文也一样，标点不会出现在行首。Emoji 👩‍💻 ✅ ⚠️ and combining e\u0301 stay in their cells; עברית too."""

DIFF = """--- a/src/auth/views.py
+++ b/src/auth/views.py
@@ -38,5 +38,6 @@ def login_required(view):
     def wrapper(request, *args, **kwargs):
         if request.user.is_authenticated:
             return view(request, *args, **kwargs)
-        return redirect(LOGIN_URL)
+        query = urlencode({"next": request.get_full_path()})
+        return redirect(f"{LOGIN_URL}?{query}")
     return wrapper
"""

PYTEST = "\n".join(
    [f"tests/test_auth.py::test_case_{number} \x1b[32mPASSED\x1b[0m" for number in range(40)]
    + ["", "40 passed in 1.21s"]
)


class Samples:
    """Makes entries with ascending ids."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._calls = count(1)

    def user(self, text: str, **fields: Any) -> UserEntry:
        return UserEntry(id=next(self._ids), parts=(TextPart(text=text),), **fields)

    def answer(self, *parts: Any, **fields: Any) -> AssistantEntry:
        made = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
        return AssistantEntry(id=next(self._ids), parts=made, model=MODEL, **fields)

    def call(self, tool: str, arguments: str) -> ToolCallPart:
        return ToolCallPart(call_id=f"call_{next(self._calls)}", tool=tool, arguments=arguments)

    def result(
        self, call: ToolCallPart, output: str, title: str, seconds: float = 0.1, **fields: Any
    ) -> ToolResultEntry:
        told = {
            "status": ToolStatus.COMPLETED,
            "tokens": max(len(output) // 4, 1),
            "output": output,
            "title": title,
        }
        times = {"started_at": 1_000, "ended_at": 1_000 + int(seconds * 1000)}
        return ToolResultEntry(
            id=next(self._ids), call_id=call.call_id, tool=call.tool, **told | times | fields
        )

    def entry(self, kind: Any, **fields: Any) -> Any:
        return kind(id=next(self._ids), **fields)


def every_kind() -> list[Entry]:
    """Return a conversation with every kind of block."""
    make = Samples()
    grep = make.call("grep", '{"pattern": "next=", "path": "src/"}')
    read = make.call("read", '{"path": "src/auth/views.py"}')
    edit = make.call("edit", '{"path": "src/auth/views.py", "old": "a", "new": "b"}')
    bash = make.call("bash", '{"command": "pytest -q tests/test_auth.py"}')
    entries: list[Entry] = [
        make.user("The login redirect loses the query string. Find out why.\n\nKeep the tests green."),
        make.answer(ReasoningPart(text="The user wants the *cause* first.\n\nI should grep for `next=`."), grep),
        make.result(grep, 'src/auth/views.py:41: next=path\nsrc/shop/urls.py:7: "?next="', "next= · 2 matches",
                    metadata=ToolMetadata(count=2)),
        make.answer(read),
        make.result(read, "\n".join(f"{n}\tline_{n} = {n}  # a comment" for n in range(1, 413)), "src/auth/views.py",
                    metadata=ToolMetadata(path="src/auth/views.py", count=412)),
        make.answer(edit, bash),
        make.result(edit, "ok", "src/auth/views.py", 0.01,
                    metadata=ToolMetadata(path="src/auth/views.py", diff=DIFF, additions=2, deletions=1)),
        make.result(bash, PYTEST, "pytest -q tests/test_auth.py", 1.3, metadata=ToolMetadata(exit_code=0)),
        make.answer(ANSWER),
        make.entry(CompactionEntry, summary="# Goal\n\nFix the login redirect.\n\n- cause found\n- fix applied",
                   first_kept_id=9, tokens_before=152_300, tokens_after=18_900, trigger="threshold",
                   details=SummaryDetails(read_files=("src/auth/views.py",), modified_files=("src/auth/views.py",),
                                          user_messages=("one",), anchors=("two", "three"))),
        UserEntry(id=11, parts=(TextPart(text="And the picture?"), FilePart(path="notes.md", text="a\nb"),
                                ImagePart(blob="0", mime="image/png", width=640, height=480, path="shot.png")),
                  mid_run=True),
    ]  # fmt: skip
    make.user("skipped")
    failed = make.call("bash", '{"command": "make\\nmake test"}')
    denied = make.call("bash", '{"command": "rm -rf build"}')
    stopped = make.call("webfetch", '{"url": "https://example.com"}')
    entries += [
        make.answer("Trying.", failed, denied, stopped),
        make.result(failed, "make: *** No rule to make target 'test'.  Stop.", "make make test", 0.2,
                    status=ToolStatus.ERROR, metadata=ToolMetadata(exit_code=2)),
        make.result(denied, "Denied: use make clean instead.", "rm -rf build", 0, status=ToolStatus.DENIED),
        make.result(stopped, "[Tool execution was interrupted]", "https://example.com", 0,
                    status=ToolStatus.INTERRUPTED),
        make.entry(ShellEntry, command="git status --short", output=" M src/auth/views.py\n?? notes.md", exit_code=0),
        make.entry(PruneEntry, targets=(3, 5), tokens_freed=12_300, reason="older than the last 40k tokens"),
        make.entry(BranchSummaryEntry, summary="Tried middleware; too invasive.", from_id=8),
        make.entry(ContextEditEntry, target=5, action="drop"),
        make.entry(ModelChangeEntry, model="demo/larger-model"),
        make.answer(CJK),
        make.answer("Half an ans", interrupted=True, finish="interrupted"),
        make.answer(finish="error", error="The provider is overloaded (529)."),
        make.user("Escape attempts: \x1b[31mred\x1b[0m \x07 [bold]markup[/bold] \u202eabc"),
        make.answer(make.call("bash", '{"command": "seq 9999"}')),
    ]  # fmt: skip
    last = entries[-1]
    if isinstance(last, AssistantEntry):
        entries.append(
            make.result(last.tool_calls[0], "\n".join(str(number) for number in range(400)), "seq 9999", 0.3,
                        full_output="0" * 64, metadata=ToolMetadata(
                            truncation=Truncation(total_lines=9_999, total_bytes=48_000, kept_lines=400,
                                                  kept_bytes=1_500)))
        )  # fmt: skip
    return entries


def list_source(entries: Sequence[Entry]) -> EntrySource:
    outlines = Outlines.of(EntryOutline(entry.id, entry.kind, _size(entry)) for entry in entries)
    by_id = {entry.id: entry for entry in entries}
    return EntrySource(outlines, lambda ids: [by_id[entry_id] for entry_id in ids])


class GeneratedSource(EntrySource):
    """Any number of entries that are made when they are loaded: a user message, an answer with a call, a result."""

    def __init__(self, length: int) -> None:
        kinds = ("user", "assistant", "tool_result", "assistant")
        sizes = (40, 0, 460, len(ANSWER) + 16)
        outlines = Outlines.of(
            EntryOutline(index + 1, kinds[index % 4], sizes[index % 4]) for index in range(length)
        )
        super().__init__(outlines, self._loaded)
        self.loads = 0

    def _loaded(self, ids: Sequence[int]) -> list[Entry]:
        self.loads += len(ids)
        return [self._make(entry_id) for entry_id in ids]

    def _make(self, entry_id: int) -> Entry:
        call = ToolCallPart(
            call_id=f"call_{entry_id // 4}", tool="grep", arguments='{"pattern": "next"}'
        )
        match (entry_id - 1) % 4:
            case 0:
                return UserEntry(
                    id=entry_id, parts=(TextPart(text=f"Question {entry_id}: where is it used?"),)
                )
            case 1:
                return AssistantEntry(id=entry_id, parts=(call,), model=MODEL)
            case 2:
                output = "\n".join(f"src/file_{row}.py:{row}: value = {row}" for row in range(12))
                return ToolResultEntry(
                    id=entry_id, call_id=call.call_id, tool="grep", status=ToolStatus.COMPLETED, output=output,
                    title="next", metadata=ToolMetadata(count=12),
                )  # fmt: skip
            case _:
                return AssistantEntry(
                    id=entry_id,
                    parts=(TextPart(text=f"## Answer {entry_id}\n\n{ANSWER}"),),
                    model=MODEL,
                )


def _size(entry: Entry) -> int:
    match entry:
        case UserEntry() | AssistantEntry():
            return len(entry.text)
        case ToolResultEntry():
            return len(entry.output)
        case _:
            return len(entry.preview)
