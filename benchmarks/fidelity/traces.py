"""The sessions to replay: recorded ones when they are there, and generated ones."""

import json
import lzma
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.importing import read_file
from tui_agent.session.formats.reading import ImportRefused

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
LONG = DATA / "sessions" / "long"
"""Recorded sessions, beside the project."""
RECORDED = "pi-large-session"
ID_STEP = 10
"""Distance of recorded ids, so that a policy's own entries find room between them."""
COUNTER = TokenCounter("gpt-4o")


Half = Literal["chosen on", "held out"]
"""Constants are chosen on one half of the traces and reported on the other."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A session as it went, without any context management of its own."""

    name: str
    entries: tuple[Entry, ...]
    recorded: bool = False
    half: Half = "held out"
    parts: tuple["Trace", ...] = ()
    """The recordings that are told one after the other."""

    @property
    def tokens(self) -> int:
        """All of it, in tokens."""
        return sum(entry.tokens for entry in self.entries)


_CHOSEN_ON = ("4a328c96", "61a9e7db", "2cd490d2", "0cbdf933", "swe-psf")
"""Parts of the names of recordings that constants may be chosen on."""


def all_traces() -> Iterator[Trace]:
    """Yield every recorded and generated trace; the long ones outgrow windows of 128k and more as well.

    Recordings of one project are also told one after the other, because alone they are too short for large windows.
    """
    recordings = [
        Trace(name_of(path), numbered(entries), recorded=True, half=_half(path))
        for path in _recordings()
        if (entries := _recorded(path))
    ]
    yield from recordings
    for half in get_args(Half):
        if parts := [
            trace for trace in recordings if trace.half == half and "claude" in trace.name
        ]:
            yield in_a_row(parts)
    for seed, half in enumerate(get_args(Half), start=1):
        yield Trace(
            f"features {seed}", numbered(Story(seed, files=60).features(tasks=30)), half=half
        )
        yield Trace(
            f"one run {seed}", numbered(Story(10 + seed, files=60).one_run(steps=200)), half=half
        )
        yield Trace(
            f"bug hunt {seed}", numbered(Story(20 + seed, files=40).hunt(rounds=60)), half=half
        )
        chinese = Story(40 + seed, files=60, chinese=True).features(tasks=25)
        yield Trace(f"中文 {seed}", numbered(chinese), half=half)
        yield Trace(
            f"long run {seed}", numbered(Story(50 + seed, files=80).one_run(steps=420)), half=half
        )
        scattered = Story(30 + seed, files=60, scattered=True).features(tasks=30)
        yield Trace(f"scattered {seed}", numbered(scattered), half=half)


def in_a_row(parts: Sequence[Trace]) -> Trace:
    """Return recordings of one half, told one after the other."""
    entries = numbered([entry for part in parts for entry in part.entries])
    return Trace(
        f"in a row, {parts[0].half}", entries, recorded=True, half=parts[0].half, parts=tuple(parts)
    )


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def _half(path: Path) -> Half:
    """Return the half of a recording; of the long ones another half, which is not here, judges."""
    if path.parent == LONG or any(part in path.name for part in _CHOSEN_ON):
        return "chosen on"
    return "held out"


def _recordings() -> list[Path]:
    sessions = DATA / "sessions"
    return [
        path
        for path in (*DATA.glob("*.jsonl"), *sorted(sessions.glob("*")), *sorted(LONG.glob("*")))
        if path.is_file() and path.suffix != ".md"
    ]


def numbered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    numbered: list[Entry] = []
    for place, entry in enumerate(entries, 1):
        values = {
            "id": place * ID_STEP,
            "parent_id": (place - 1) * ID_STEP or None,
            "tokens": COUNTER.entry(entry),
        }
        numbered.append(entry.model_copy(update=values))
    return tuple(numbered)


def _recorded(path: Path) -> list[Entry]:
    """Return what was said in a recording, nothing where it is damaged; a subagent's is a conversation of its own."""
    if path.suffix == ".traj":
        return list(_swe_agent(json.loads(path.read_text(encoding="utf-8"))))
    with TemporaryDirectory() as place:
        copy = Path(place) / path.name.removesuffix(".xz")
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        copy.write_bytes(data.replace(b'"isSidechain":true', b'"isSidechain":false'))
        try:
            [session] = read_file(copy)
        except ImportRefused as error:
            print(f"left out: {error}", file=sys.stderr)
            return []
    said = (UserEntry, AssistantEntry, ToolResultEntry)
    return [entry for entry in session.entries if isinstance(entry, said)]


def _swe_agent(trajectory: dict[str, Any]) -> Iterator[Entry]:
    """Yield a trajectory of SWE-agent: the task, then each command with what it printed."""
    asked = next(message for message in trajectory["history"] if message["role"] == "user")
    yield UserEntry(parts=(TextPart(text=_plain(asked["content"])),))
    for number, step in enumerate(trajectory["trajectory"]):
        call = ToolCallPart(
            call_id=f"call_{number}", tool="bash", arguments=json.dumps({"command": step["action"]})
        )
        yield AssistantEntry(
            parts=(TextPart(text=step["thought"]), call), model="demo", finish="tool_calls"
        )
        yield ToolResultEntry(
            call_id=call.call_id,
            tool="bash",
            status=ToolStatus.COMPLETED,
            output=step["observation"] or "",
            title=step["action"][:200],
        )


def _plain(content: Any) -> str:
    return (
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    )


_VERBS = (
    "load",
    "parse",
    "merge",
    "render",
    "resolve",
    "validate",
    "emit",
    "split",
    "index",
    "flush",
)
_NOUNS = (
    "config",
    "session",
    "token",
    "theme",
    "branch",
    "cache",
    "report",
    "widget",
    "schema",
    "cursor",
)
_RULES = (
    "Never change the public API of {0}.",
    "You must keep {0} free of third-party imports.",
    "Always run the tests of {0} before you go on.",
    "Don't touch {0}.",
)
_RULES_CHINESE = (
    "不要修改 {0} 的公共接口。",
    "必须保持 {0} 没有第三方依赖。",
    "修改 {0} 之后务必运行测试。",
)


class Story:
    """Writes a session: an agent in a made-up project whose files and symbols come up again and again.

    What is used again follows what real sessions show: mostly recent things, some from long ago, and symbols that
    were acted on more than symbols that were only seen. In a ``scattered`` one nothing of that holds: every file and
    every symbol is as likely as any other, so that no rule of what to keep can be right.
    """

    def __init__(
        self, seed: int, files: int, *, chinese: bool = False, scattered: bool = False
    ) -> None:
        self._random = Random(seed)
        self._chinese = chinese
        self._scattered = scattered
        self._clock = 1_700_000_000_000
        self._entries: list[Entry] = []
        self._calls = 0
        self._files = [self._file(number) for number in range(files)]
        self._used: list[int] = []

    def features(self, tasks: int) -> list[Entry]:
        """Tell of many small tasks, each with reading, editing and testing."""
        for task in range(tasks):
            file = self._pick()
            self._ask(task, file)
            for _ in range(self._random.randint(3, 7)):
                self._work(file)
                file = self._pick() if self._random.random() < 0.5 else file
            self._test(failing=self._random.random() < 0.3)
            self._say(f"{self._symbol(file)} in {self._path(file)} is done.")
        return self._entries

    def one_run(self, steps: int) -> list[Entry]:
        """Tell of one request and hundreds of steps."""
        self._ask(0, 0)
        for _ in range(steps):
            self._work(self._pick())
            if self._random.random() < 0.15:
                self._test(failing=self._random.random() < 0.5)
        self._say("All done.")
        return self._entries

    def hunt(self, rounds: int) -> list[Entry]:
        """Tell of a search for one fault: much output, few edits, facts from early on needed at the end."""
        clue = f"{self._random.randrange(16**10):010x}"
        self._ask(0, 0)
        self._result(
            "bash", {"command": "git log -5 --oneline"}, f"{clue} Change the order of locks\n", 0
        )
        for number in range(rounds):
            file = self._pick()
            self._grep(file)
            self._work(file)
            self._test(failing=True)
            if number % 8 == 7:
                self._ask(number, file)
        self._result("bash", {"command": f"git show {clue}"}, self._source(0), 0)
        self._say(f"Commit {clue} broke {self._path(0)}.")
        return self._entries

    def _file(self, number: int) -> tuple[str, list[str]]:
        rng = self._random
        stem = f"{rng.choice(_NOUNS)}_{rng.choice(_NOUNS)}{number}"
        names = [
            f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}_{number}_{place}"
            for place in range(rng.randint(8, 30))
        ]
        return f"src/{rng.choice(_NOUNS)}s/{stem}.py", names

    def _path(self, file: int) -> str:
        return self._files[file][0]

    def _symbol(self, file: int) -> str:
        names = self._files[file][1]
        if self._scattered:
            return self._random.choice(names)
        # The first symbols of a file are the ones that matter.
        return names[min(int(self._random.expovariate(0.25)), len(names) - 1)]

    def _pick(self) -> int:
        rng = self._random
        if self._scattered:
            chosen = rng.randrange(len(self._files))
        elif self._used and rng.random() < 0.55:
            back = min(int(rng.expovariate(0.25)), len(self._used) - 1)
            chosen = self._used[-1 - back]
        elif self._used and rng.random() < 0.4:
            chosen = rng.choice(self._used)
        else:
            chosen = rng.randrange(len(self._files))
        self._used.append(chosen)
        return chosen

    def _source(self, file: int) -> str:
        path, names = self._files[file]
        lines = [f'"""Module {path}."""', ""]
        for place, name in enumerate(names):
            other = self._random.choice(self._files)[1][0]
            limit = self._random.randint(10, 99_999)
            body = f"    value = {other}(cursor, limit={limit})\n    return [item for item in value if item.{name}]"
            lines.append(
                f"def {name}(cursor, scope={place}):\n    '''Return what {name} finds.'''\n{body}\n"
            )
        return "\n".join(lines)

    def _ask(self, number: int, file: int) -> None:
        rng = self._random
        rules = _RULES_CHINESE if self._chinese else _RULES
        rule = rng.choice(rules).format(self._path(rng.randrange(len(self._files))))
        if self._chinese:
            text = f"任务 {number}：请修改 {self._path(file)} 里的 {self._symbol(file)}，让它支持新的缓存格式。{rule}"
        else:
            text = f"Task {number}: make {self._symbol(file)} in {self._path(file)} support the new cache. {rule}"
        # A person is away for more than five minutes every fourth time, and for hours now and then.
        self._clock += 1_000 * rng.choice((20, 60, 120, 240, 60, 120, 900, 7_200))
        self._entries.append(UserEntry(parts=(TextPart(text=text),), created_at=self._clock))

    def _work(self, file: int) -> None:
        choice = self._random.random()
        if choice < 0.5:
            self._result("read", {"path": self._path(file)}, self._source(file), file)
        elif choice < 0.8:
            old, new = self._symbol(file), self._symbol(file)
            arguments = {
                "path": self._path(file),
                "old": f"def {old}(cursor):",
                "new": f"def {old}(cursor, {new}):",
            }
            self._result("edit", arguments, f"Edited {self._path(file)}", file)
        else:
            self._grep(file)

    def _grep(self, file: int) -> None:
        name = self._symbol(file)
        hits = [
            f"{self._path(self._random.randrange(len(self._files)))}:{self._random.randint(1, 400)}: {name}(cursor)"
            for _ in range(self._random.randint(2, 40))
        ]
        self._result("grep", {"pattern": name}, "\n".join(hits), file)

    def _test(self, *, failing: bool) -> None:
        file = self._used[-1] if self._used else 0
        tests = f"tests/test_{self._path(file).rsplit('/', 1)[-1]}"
        lines = [f"{tests}::test_{name} PASSED" for name in self._files[file][1]]
        if failing:
            name = self._symbol(file)
            lines.append(
                f"E   AssertionError: {name} returned {self._random.randint(1, 999)} items, expected 7"
            )
        self._result(
            "bash", {"command": f"pytest -q {tests}"}, "\n".join(lines), file, code=int(failing)
        )

    def _now(self) -> int:
        self._clock += 1_000 * self._random.randint(4, 30)
        return self._clock

    def _say(self, text: str) -> None:
        self._entries.append(
            AssistantEntry(parts=(TextPart(text=text),), model="demo", created_at=self._now())
        )

    def _result(
        self, tool: str, arguments: dict[str, Any], output: str, file: int, code: int | None = None
    ) -> None:
        self._calls += 1
        call_id = f"call_{self._calls}"
        intent = (
            f"我来看看 {self._symbol(file)}。"
            if self._chinese
            else f"Let me look at {self._symbol(file)}."
        )
        call = ToolCallPart(
            call_id=call_id, tool=tool, arguments=json.dumps(arguments, ensure_ascii=False)
        )
        parts = (TextPart(text=intent), call)
        self._entries.append(
            AssistantEntry(parts=parts, model="demo", finish="tool_calls", created_at=self._now())
        )
        path = arguments.get("path")
        metadata = ToolMetadata(
            path=path,
            exit_code=code,
            read_files=(path,) if tool == "read" else (),
            modified_files=(path,) if tool == "edit" else (),
        )
        title = path or arguments.get("command") or arguments.get("pattern") or ""
        status = ToolStatus.ERROR if code else ToolStatus.COMPLETED
        self._entries.append(
            ToolResultEntry(
                call_id=call_id,
                tool=tool,
                status=status,
                output=output,
                title=title,
                metadata=metadata,
            )
        )
