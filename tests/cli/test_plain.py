"""Plain mode prints lines and nothing that draws; lines typed are messages, commands or answers."""

import asyncio
import io
import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.app.services import FirstView
from tui_agent.cli.main import is_plain
from tui_agent.cli.markdown_lines import MarkdownLines
from tui_agent.cli.plain import LineReader, PlainFrontend
from tui_agent.session.entries import ToolResultEntry, ToolStatus, UserEntry

WRITE = Call("write", '{"path": "a.txt", "content": "one\\n"}')
DRAWING = re.compile("[\u2500-\u259f\x1b]")


class Plain:
    """Plain mode on a harness's agent, with a clock that the test turns."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.now = 0.0
        self.out = io.StringIO()
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.frontend = PlainFrontend(
            harness.services(), self.lines.get, out=self.out, clock=lambda: self.now
        )

    @property
    def text(self) -> str:
        return self.out.getvalue()

    async def type(self, line: str | None) -> None:
        self.lines.put_nowait(line)
        await asyncio.sleep(0)

    async def until(self, text: str) -> None:
        """Wait until the text is printed."""
        async with asyncio.timeout(30):
            while text not in self.text:
                await asyncio.sleep(0.01)

    async def play(self, *steps: tuple[str, str | None]) -> str:
        """Type each line once the text before it is printed, a second later; return all that is printed."""
        running = asyncio.ensure_future(self.frontend.run(FirstView()))
        for awaited, line in steps:
            await self.until(awaited)
            self.now += 1
            await self.type(line)
        assert await asyncio.wait_for(running, 30) == 0
        return self.text


def results(plain: Plain) -> list[ToolResultEntry]:
    return [entry for entry in plain.harness.path() if isinstance(entry, ToolResultEntry)]


def plain_with(tmp_path: Path, *replies: Reply) -> Plain:
    return Plain(make_agent(tmp_path, ScriptedClient(list(replies)), answer=None, rules=()))


async def test_a_question_is_answered_with_its_number_and_nothing_is_drawn(tmp_path: Path) -> None:
    plain = plain_with(
        tmp_path, Reply("I **write** it.", calls=(WRITE,)), Reply("# Done\n\n- `a.txt`: [one](x)")
    )
    text = await plain.play(("You: ", "go"), ("Answer with a number", "1"), ("tokens, ", "/quit"))
    assert "I write it.\nQuestion: Create a.txt (+1 line)?" in text
    assert "1: yes, once" in text
    assert "Done\na.txt: one" in text
    assert results(plain)[0].status is ToolStatus.COMPLETED
    assert not DRAWING.search(text)


async def test_words_are_a_no_with_a_note(tmp_path: Path) -> None:
    plain = plain_with(tmp_path, Reply(calls=(WRITE,)), Reply("All right."))
    await plain.play(
        ("You: ", "go"), ("Answer with a number", "use b.txt, 2 lines"), ("All right.", None)
    )
    assert results(plain)[0].status is ToolStatus.DENIED
    assert "use b.txt, 2 lines" in results(plain)[0].output


async def test_yes_with_words_allows_the_call_and_the_model_reads_the_words(
    tmp_path: Path,
) -> None:
    plain = plain_with(tmp_path, Reply(calls=(WRITE,)), Reply("All right."))
    await plain.play(
        ("You: ", "go"), ("Answer with a number", "Yes, and b.txt too"), ("All right.", None)
    )
    assert results(plain)[0].status is ToolStatus.COMPLETED
    assert plain.harness.entries(UserEntry)[-1].text == "and b.txt too"


async def test_a_line_typed_before_the_question_was_seen_answers_nothing(tmp_path: Path) -> None:
    plain = plain_with(tmp_path, Reply(calls=(WRITE,)), Reply("Seen."), Reply("Seen."))
    running = asyncio.ensure_future(plain.frontend.run(FirstView()))
    await plain.until("You: ")
    await plain.type("go")
    await plain.until("Answer with a number")
    await plain.type("1")
    while not plain.lines.empty():
        await asyncio.sleep(0.01)
    assert not results(plain)
    plain.now += 1
    await plain.type("n")
    await plain.until("tokens, ")
    await plain.type("/quit")
    await running
    assert results(plain)[0].status is ToolStatus.DENIED


async def test_a_defect_in_reading_lines_ends_the_program(tmp_path: Path) -> None:
    plain = plain_with(tmp_path)

    async def read() -> str:
        raise KeyError("a defect")

    frontend = PlainFrontend(plain.harness.services(), read, out=plain.out)
    with pytest.raises(KeyError):
        await asyncio.wait_for(frontend.run(FirstView()), 30)


async def test_a_question_of_a_session_that_was_left_takes_no_lines(tmp_path: Path) -> None:
    plain = plain_with(tmp_path, Reply(calls=(WRITE,)), Reply("Yes."))
    running = asyncio.ensure_future(plain.frontend.run(FirstView()))
    await plain.until("You: ")
    await plain.type("go")
    await plain.until("Answer with a number")
    # Typed before the question was seen.
    await plain.type("/new")
    await plain.until("Session: go")
    plain.now += 1
    await plain.type("hello")
    await plain.until("Yes.")
    await plain.type(None)
    assert await asyncio.wait_for(running, 30) == 0


async def test_without_a_model_a_prompt_of_the_command_line_is_given_back(tmp_path: Path) -> None:
    plain = plain_with(tmp_path, Reply("Yes."))
    start = FirstView(screen="welcome", prompt="fix it")
    running = asyncio.ensure_future(plain.frontend.run(start))
    await plain.until("Not sent: fix it")
    await plain.type(None)
    assert await asyncio.wait_for(running, 30) == 0
    assert plain.harness.path() == []


async def test_the_end_of_the_input_refuses_what_nobody_can_allow(tmp_path: Path) -> None:
    plain = plain_with(tmp_path, Reply(calls=(WRITE,)), Reply("Then not."))
    text = await plain.play(("You: ", "go"), ("Answer with a number", None))
    assert "Then not." in text
    assert results(plain)[0].status is ToolStatus.DENIED


async def test_the_tree_and_the_context_are_lines_and_a_number_goes_there(tmp_path: Path) -> None:
    plain = plain_with(tmp_path, Reply("One."), Reply("Two."))
    text = await plain.play(
        ("You: ", "first"),
        ("One.", "second"),
        ("Two.", "/context"),
        ("  second", "/tree"),
        ("Number of the entry", "3"),
        ("Moved to", "/tree"),
        ("on another branch", ""),
        ("You: ", "/quit"),
    )
    assert "#5 assistant, you are here: Two." in text
    assert "#5 assistant, on another branch: Two." in text


async def test_a_long_list_is_narrowed_down_by_words_and_a_text_is_written_anew(
    tmp_path: Path,
) -> None:
    from tui_agent.app.frontend import LongText, Pick, PickRow

    plain = plain_with(tmp_path)
    rows = [PickRow(str(number), f"row {number} of many") for number in range(60)]
    running = asyncio.ensure_future(plain.frontend.run(FirstView()))
    asked = asyncio.ensure_future(plain.frontend.ask(Pick("Which?", rows)))
    await plain.until("40 more rows")
    await plain.type("25")
    await plain.until("1: row 25 of many")
    await plain.type("57 many")
    await plain.until("1: row 57 of many")
    await plain.type("1")
    assert await asked == "57"
    changed = asyncio.ensure_future(plain.frontend.ask(LongText("Do what?", "this task")))
    await plain.until("this task")
    await plain.type("another task")
    assert await changed == "another task"
    await plain.type(None)
    await running


def test_markdown_reads_as_text() -> None:
    lines = MarkdownLines()
    text = "# Title\n\n| a | b |\n|---|---|\n| 1 | **2** |\n```python\nx = 1  # one\n```\n---\nSee `x` and *y*.\nopen"
    assert [*lines.feed(text[:30]), *lines.feed(text[30:]), *lines.end()] == [
        "Title", "a, b", "1, 2", "Code:", "x = 1  # one", "End of code.", "See x and y.", "open",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("markdown", "lines"),
    [
        (r"""| a | b |
|---|---|
| pipes \| escaped | `x \| y` |
| R&amp;D | |""", ["a, b", "pipes | escaped, x | y", "R&D"]),
        ("a \\* b &lt;c&gt; &amp;amp;", ["a * b <c> &amp;"]),
        ("one **two\nthree** four", ["one two", "three four"]),
        ("1. one\n2. two\n   - three\n\n     more\n- [x] four", ["1. one", "2. two", "three", "more", "☑ four"]),
        ("> said | by\n> others", ["said | by", "others"]),
        ("````\n```\n| a |\n````\nb", ["Code:", "```", "| a |", "End of code.", "b"]),
        ("see [this](https://x.test/a_b)", ["see this (https://x.test/a_b)"]),
        ("| no table", ["| no table"]),
    ],
)  # fmt: skip
def test_plain_mode_reads_markdown_as_the_screen_does(markdown: str, lines: list[str]) -> None:
    whole = MarkdownLines()
    assert [*whole.feed(markdown), *whole.end()] == lines
    streamed = MarkdownLines()
    pieces = [line for letter in markdown for line in streamed.feed(letter)]
    assert [*pieces, *streamed.end()] == lines


async def test_lines_come_from_a_pipe_whole(tmp_path: Path) -> None:
    read, write = os.pipe()
    reader = LineReader(read)
    os.write(write, b"one\r\ntw")
    os.write(write, "ö\nthree".encode())
    os.close(write)
    assert [await reader.next() for _ in range(4)] == ["one", "twö", "three", None]
    os.close(read)


async def test_lines_come_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\n" + "x" * 100_000 + "\nthree")
    for name, lines in ((tmp_path / "lines", ["one", "x" * 100_000, "three"]), ("/dev/null", [])):
        descriptor = os.open(name, os.O_RDONLY)
        reader = LineReader(descriptor)
        assert [await reader.next() for _ in range(len(lines) + 1)] == [*lines, None]
        os.close(descriptor)


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize(
    ("term", "variable", "table", "expected"),
    [
        ("xterm", "", "", False),
        ("dumb", "", "", True),
        ("xterm", "true", "", True),
        ("xterm", "", "[ui]\nplain = true\n", True),
        ("xterm", "false", "[ui]\nplain = true\n", False),
        ("xterm", "", "plain = [", False),
    ],
)
def test_where_plain_mode_is_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    term: str,
    variable: str,
    table: str,
    expected: bool,
    is_terminal: bool,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("TUI_AGENT_UI__PLAIN", variable)
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text(table)
    assert is_plain() is expected
