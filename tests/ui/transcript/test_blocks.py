"""Blocks: what is shown of tool cards, diffs, outputs, markers and code, folded and open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ui.transcript.samples import list_source
from tui_agent.context.context_status import Standing
from tui_agent.permission import refused_by_hook, with_note
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    FilePart,
    ReasoningPart,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    Truncation,
    UserEntry,
)
from tui_agent.ui.widgets.transcript import lexing
from tui_agent.ui.widgets.transcript.blocks import Block, Fold
from tui_agent.ui.widgets.transcript.bodies import TextBody, body_lines
from tui_agent.ui.widgets.transcript.build import BuildContext, blocks_of
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.code import CHUNK, RESET, Code
from tui_agent.ui.widgets.transcript.diffs import DiffBody
from tui_agent.ui.widgets.transcript.feed import LiveFeed
from tui_agent.ui.widgets.transcript.lines import Line, spans_width
from tui_agent.ui.widgets.transcript.model import TranscriptModel

CALL = ToolCallPart(call_id="c1", tool="bash", arguments='{"command": "make test"}')


def row(line: Line, width: int = 70) -> str:
    left = "".join(text for text, _ in line.prefix) + line.text
    tail = "".join(text for text, _ in line.tail)
    return f"{left:<{width - len(tail)}}{tail}".rstrip() if tail else left.rstrip()


def rows(block: Block, width: int = 70) -> list[str]:
    return [row(line, width) for line in block.lines(width)]


def result(
    output: str, status: ToolStatus = ToolStatus.COMPLETED, **fields: object
) -> ToolResultEntry:
    fields = {"tool": "bash", "title": "make test", "id": 7, "tokens": 3_200, **fields}
    return ToolResultEntry(call_id="c1", status=status, output=output, **fields)  # type: ignore[arg-type]


def only(entry: Entry, **around: object) -> Block:
    (block,) = blocks_of(entry, BuildContext(**around))  # type: ignore[arg-type]
    return block


def test_a_message_of_a_command_shows_its_line_and_opens_to_what_was_sent() -> None:
    part = TextPart(text="Look for bugs.\nIn app.py.", typed="/review app.py")
    block = only(UserEntry(id=1, parts=(part,)))
    assert rows(block) == ["You  /review app.py", "  ▸ text sent for the command · 2 lines"]
    assert block.copy_text() == "/review app.py"
    block.cycle()
    assert rows(block)[1:] == [
        "  ▾ text sent for the command · 2 lines",
        "  Look for bugs.",
        "  In app.py.",
    ]


def test_what_a_tool_in_a_file_prints_is_shown_while_it_runs() -> None:
    card = CardBlock(ToolCallPart(call_id="c1", tool="count_words", arguments="{}"))
    card.start("a.txt", "{}")
    assert len(rows(card)) == 1
    card.add_output("".join(f"line {number}\n" for number in range(50)))
    assert rows(card)[-1] == "  line 49"
    card.finish(ToolStatus.COMPLETED, ToolMetadata(), 1.25)
    card.set_result(result("six words"))
    assert len(rows(card)) == 1


def test_a_call_that_a_hook_refused_tells_the_hooks_reason_on_its_head() -> None:
    hook = "“check.sh” (.claude/settings.json:5)"
    card = CardBlock(CALL, result(refused_by_hook("no pushes today", hook), ToolStatus.DENIED))
    assert f"denied: no pushes today – hook {hook}" in rows(card, 160)[0]
    card = CardBlock(CALL, result(refused_by_hook("", hook), ToolStatus.DENIED))
    assert f"denied: no reason given – hook {hook}" in rows(card, 160)[0]
    former = "A hook of the user refused this call: no pushes today"
    card = CardBlock(CALL, result(former, ToolStatus.DENIED))
    assert "denied: no pushes today" in rows(card)[0]


def test_a_refused_call_tells_the_users_words_on_its_head() -> None:
    told = with_note("The user did not allow this call.", "use unittest instead")
    card = CardBlock(CALL, result(told, ToolStatus.DENIED))
    assert "denied: use unittest instead" in rows(card)[0]
    card.cycle()
    assert rows(card)[-1] == "  instead"
    long = rows(CardBlock(CALL, result(with_note("No.", "word " * 40), ToolStatus.DENIED)), 80)[0]
    assert "denied: word word" in long
    assert "…" in long


def test_a_command_shows_the_end_of_its_output_first() -> None:
    card = CardBlock(CALL, result("\n".join(map(str, range(50)))))
    assert card.fold is Fold.PART
    assert rows(card)[1:] == [
        "  … 44 earlier lines · o whole",
        *(f"  {number}" for number in range(44, 50)),
    ]
    card.cycle()
    assert len(rows(card)) == 51
    card.cycle()
    assert len(rows(card)) == 1
    card.cycle()
    assert card.fold is Fold.PART
    card.choose_fold(Fold.CLOSED)
    card.set_result(result("text"))
    assert card.fold is Fold.CLOSED, "as the user folded it"


def test_a_result_that_is_not_in_context_can_be_restored() -> None:
    card = CardBlock(CALL, result("text"))
    card.set_standing(Standing.CLEARED, edited=True)
    assert "cleared · 3.2k tokens · bring back" in rows(card)[0]
    assert card.actions == ("restore",)
    card.set_standing(Standing.PINNED, edited=True)
    assert "pinned" in rows(card)[0]
    assert card.actions == ()


def test_code_that_was_read_has_numbers_that_are_not_copied() -> None:
    card = CardBlock(
        ToolCallPart(call_id="c1", tool="read", arguments="{}"),
        result(
            "9\tdef f():\n10\t\treturn 1",
            tool="read",
            title="a.py",
            metadata=ToolMetadata(path="a.py"),
        ),
    )
    card.choose_fold(Fold.FULL)
    lines = card.lines(60)[1:]
    assert [row(line) for line in lines] == ["   9  def f():", "  10      return 1"]
    assert [line.text for line in lines] == ["def f():", "    return 1"]
    assert ("def", "output syntax-keyword") in lines[0].content()


def test_lines_of_a_diff_that_look_like_its_head_are_lines() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ new\n same\n\\ No newline at end of file\n"
    assert [row(line) for line in body_lines(DiffBody(diff), 60)] == [
        "  1 - -- old comment",
        "  1 + ++ new",
        "  2   same",
    ]


def test_one_hidden_line_is_shown_instead_of_told() -> None:
    body = TextBody("1\n2\n3\n4")
    assert len(list(body_lines(body, 20, 3))) == 4
    assert [row(line) for line in body_lines(body, 20, 2)] == ["  1", "  2", "  … 2 more lines"]


def test_a_very_long_row_takes_four_lines_of_a_part_and_a_very_long_body_ends_with_an_offer() -> (
    None
):
    assert len(list(body_lines(TextBody("x " * 5_000), 40, 6))) == 5
    *_, last = body_lines(TextBody("\n".join(map(str, range(5_000)))), 40)
    assert row(last) == "  … 3,000 more lines · o whole"


def test_a_very_long_message_is_shown_in_part() -> None:
    block = only(UserEntry(parts=(TextPart(text="\n".join(map(str, range(100)))),)))
    assert rows(block)[-5:] == ["     20", "  … 76 more lines", "     97", "     98", "     99"], (
        "a question below a long paste is seen"
    )
    block.cycle()
    assert len(rows(block)) == 100


@pytest.mark.parametrize(
    ("fields", "line", "actions"),
    [
        (
            {"finish": "error", "error": "overloaded [529]"},
            "✗ overloaded [529] · f8 retry",
            ("retry",),
        ),
        ({"finish": "interrupted", "interrupted": True}, "■ Interrupted", ()),
        (
            {"finish": "repetition", "interrupted": True},
            "■ Stopped, because the answer repeats itself",
            (),
        ),
        (
            {"interrupted": True, "error": "No."},
            "■ Interrupted while waiting to try again: No. · f8 retry",
            ("retry",),
        ),
        (
            {"finish": "length"},
            "■ The answer was cut off at the model's output limit · send “continue” to go on",
            (),
        ),
        (
            {"finish": "unmarked"},
            "■ The server ended the answer without marking it as complete · send “continue” to go on",
            (),
        ),
        ({}, "■ The model gave no answer", ()),
    ],
)
def test_an_answer_that_did_not_end_says_so(
    fields: dict[str, object], line: str, actions: tuple[str, ...]
) -> None:
    block = only(AssistantEntry(parts=(), model="m", **fields))  # type: ignore[arg-type]
    assert " ".join(row.strip() for row in rows(block)) == line
    assert block.actions == actions


@given(st.text(st.characters(exclude_categories=[]), max_size=120), st.integers(12, 90))
def test_no_text_makes_a_line_wider_than_asked(text: str, width: int) -> None:
    call = ToolCallPart(call_id="c1", tool=text[:20] or "x", arguments=text)
    entries: list[Entry] = [
        UserEntry(parts=(TextPart(text=text),)),
        AssistantEntry(parts=(TextPart(text=text),), model="m", error=text, finish="error"),
        ShellEntry(command=text, output=text, exit_code=1),
        ToolResultEntry(
            call_id="c1", tool="read", status=ToolStatus.ERROR, output=text, title=text
        ),
    ]
    blocks = [block for entry in entries for block in blocks_of(entry, BuildContext())] + [
        CardBlock(call)
    ]
    for block in blocks:
        for line in block.lines(width):
            assert spans_width((*line.prefix, *line.content(), *line.tail)) <= width


def test_colours_of_a_chunk_go_on_in_the_next() -> None:
    code = Code("python")
    code.replace(0, ['"""', *["inside"] * (CHUNK * 2), '"""', "def f(): pass"])
    assert code.spans(CHUNK + 5) == (("inside", "code syntax-string"),)
    assert code.spans(CHUNK * 2 + 2)[0] == ("def", "code syntax-keyword")


def test_looking_at_the_end_of_long_code_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    highlight_lines, looks = lexing.highlight_lines, []
    monkeypatch.setattr(
        lexing, "highlight_lines", lambda *given: (looks.append(given), highlight_lines(*given))[1]
    )
    code = Code("python")
    code.replace(0, ["x = 1"] * 10_000)
    code.spans(9_999)
    assert 0 < len(looks) <= RESET // CHUNK


@pytest.mark.parametrize(
    "language", ["c", "json", "html", "bash", "diff", "yaml", "", "nonsense", "text"]
)
def test_every_kind_of_lexer_keeps_the_text_and_unknown_languages_stay_plain(language: str) -> None:
    source = [
        '{"a": [1, "b"]}',
        "int main() { return 0; } /* c */",
        "<a href='x'>y</a>",
        "$ ls -l",
        "- k: v",
        "",
    ]
    code = Code(language)
    code.replace(0, source)
    drawn = [code.spans(index) for index in range(len(source))]
    assert ["".join(text for text, _ in spans) for spans in drawn] == source
    assert ({style for spans in drawn for _, style in spans} == {"code"}) is (
        language in {"", "nonsense", "text"}
    )


def told_problems(**counts: int) -> UserEntry:
    files = [
        FilePart(path=f"diagnostics:{path}.py", text=f"{n} new problems:\n{path}.py:3: Bad (ruff)")
        for path, n in counts.items()
    ]
    return UserEntry(
        id=8, parts=(TextPart(text="<system-reminder>"), *files), synthetic="diagnostics"
    )


def edits() -> list[Entry]:
    """Two edits of one answer, and what checkers found in one of the files."""
    calls = tuple(
        ToolCallPart(call_id=name, tool="edit", arguments="{}") for name in ("a", "b", "a again")
    )
    results = [
        ToolResultEntry(
            id=2 + at, parent_id=1 + at, call_id=name, tool="edit", status=ToolStatus.COMPLETED, output="Edited.",
            metadata=ToolMetadata(path=f"{name[0]}.py", additions=1),
        )
        for at, name in enumerate(("a", "b", "a again"))
    ]  # fmt: skip
    answer = AssistantEntry(id=1, parts=calls, model="test/model", finish="tool_calls")
    return [answer, *results, told_problems(a=2).model_copy(update={"parent_id": 4})]


@pytest.mark.parametrize("loaded", [True, False])
def test_the_last_card_of_a_file_tells_how_many_problems_its_edits_made(loaded: bool) -> None:
    model = TranscriptModel(80)
    model.open(list_source(edits() if loaded else []))
    feed = LiveFeed(model, lambda: 0.0)
    for entry in () if loaded else edits():
        feed.append(entry)
    heads = [
        block.lines(70)[0].tail for block in model.item(0).blocks if isinstance(block, CardBlock)
    ]
    assert [("2 new problems", "status-warning") in head for head in heads] == [False, False, True]


def test_what_checkers_found_is_one_line_that_opens() -> None:
    block = only(told_problems(a=2, b=1))
    assert rows(block) == ["▸ 3 new problems in a.py, b.py"]
    block.cycle()
    assert rows(block)[1:] == ["  a.py:3: Bad (ruff)", "  b.py:3: Bad (ruff)"]


@pytest.mark.parametrize(
    ("truncation", "shown"),
    [
        (
            Truncation(total_lines=9_000, total_bytes=90_000, kept_lines=52, kept_bytes=600),
            "Output was cut, 52 of 9,000 lines shown",
        ),
        (
            Truncation(total_lines=1, total_bytes=1_300_000, kept_lines=1, kept_bytes=12_000),
            "Output was cut, 12.0 kB of 1.3 MB shown",
        ),
        (None, "Some control characters or bytes are left out"),
    ],
)
def test_a_card_says_how_much_of_an_output_it_shows(
    truncation: Truncation | None, shown: str
) -> None:
    call = ToolCallPart(call_id="c1", tool="bash", arguments='{"command": "make"}')
    result = ToolResultEntry(
        call_id="c1",
        tool="bash",
        status=ToolStatus.COMPLETED,
        output="some",
        full_output="blob",
        metadata=ToolMetadata(truncation=truncation),
    )
    card = CardBlock(call, result)
    card.choose_fold(Fold.FULL)
    assert any(shown in row for row in rows(card))


def test_one_word_and_one_token_are_said_to_be_one() -> None:
    entry = AssistantEntry(parts=(ReasoningPart(text="Hm."),), model="m")
    thought, _ = blocks_of(entry, BuildContext())
    assert rows(thought) == ["▸ Thought · 1 word"]
    card = CardBlock(CALL, result("x", tokens=1))
    card.set_standing(Standing.CLEARED, edited=True)
    assert "1 token ·" in rows(card)[0]


def test_a_message_says_which_of_its_files_are_not_attached() -> None:
    missing = FilePart(path="nope.txt", text="[not attached]", problem="there is no such file")
    block = only(UserEntry(parts=(TextPart(text="see @nope.txt"), missing)))
    assert any("@nope.txt · not sent: there is no such file" in row for row in rows(block))
