"""Markdown as it looks, construct by construct, and at any width."""

import pytest

from tests.ui.transcript.samples import ANSWER, CJK
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.lines import Line, spans_width


def lines_of(text: str, width: int = 40) -> list[Line]:
    return list(MarkdownDocument(text, finished=True).lines(width))


def shown(text: str, width: int = 40) -> list[str]:
    return ["".join(part for part, _ in line.prefix) + line.text for line in lines_of(text, width)]


def styles(text: str) -> dict[str, str]:
    return {part: style for line in lines_of(text) for part, style in line.content()}


@pytest.mark.parametrize(
    ("source", "looks"),
    [
        ("one\n\ntwo", ["one", "", "two"]),
        ("kept\nline break", ["kept", "line break"]),
        ("# Title\ntext", ["Title", "", "text"]),
        ("Title\n=====", ["Title"]),
        ("- a\n- b", ["• a", "• b"]),
        ("- a\n\n- b", ["• a", "", "• b"]),
        ("Text:\n- a", ["Text:", "• a"]),
        ("- a\n  - b\n    - c", ["• a", "  ◦ b", "    ▪ c"]),
        ("9. a\n9. b", ["9. a", "10. b"]),
        ("0) a", ["0) a"]),
        ("- [ ] open\n- [x] done", ["☐ open", "☑ done"]),
        ("- first\n\n  second", ["• first", "", "  second"]),
        ("> a\n> > b", ["▏ a", "▏ ▏ b"]),
        ("> - a", ["▏ • a"]),
        ("-", ["• "]),
        ("***", ["─" * 40]),
        ("```\na\n\n  b\n```", [" a", " ", "   b"]),
        ("    indented", [" indented"]),
        ("~~~py\nx", [" x"]),
        ("- a\n  ```\n  code\n  ```", ["• a", "   code"]),
        ("<div>html</div>", ["<div>html</div>"]),
        ("a &amp; b &lt;", ["a & b <"]),
        ("![alt](pic.png)", ["[image: alt] (pic.png)"]),
        ("[text](https://a.b/c)", ["text (https://a.b/c)"]),
        ("<https://a.b/c>", ["https://a.b/c"]),
        ("[text][1]\n\n[1]: https://a.b", ["text (https://a.b)"]),
        ("[bold]markup[/bold]", ["[bold]markup[/bold]"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["a  b", "─  ─", "1  2"]),
        ("| a | long |\n|--:|:-:|\n| 123 | x |", ["  a  long", "───  ────", "123   x"]),
    ],
)
def test_constructs(source: str, looks: list[str]) -> None:
    assert shown(source) == looks


def test_a_table_too_wide_wraps_its_cells_and_one_much_too_wide_becomes_a_list() -> None:
    rows = shown("| head | text |\n|---|---|\n| cell | a long text that wraps |", 20)
    assert rows == ["head  text", "────  ──────────────", "cell  a long text", "      that wraps"]
    source = (
        "|alpha|beta|gamma|delta|\n|-|-|-|-|\n|one one one|two two two|three three|four four four|"
    )
    assert shown(source, 16)[0] == "alpha: one one"
    assert "delta: four four" in shown(source, 16)


@pytest.mark.parametrize(
    "href", ["javascript:alert(1)", "file:///etc/passwd", "src/app.py", "https://a.b/" + "x" * 3000]
)
def test_only_plain_web_addresses_become_links_of_the_terminal(href: str) -> None:
    assert not [style for style in styles(f"[l]({href})").values() if "url:" in style]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"So $\int f(x)\,dx = a*b*c$ holds.", "So ∫ f(x) dx = a*b*c holds."),
        (r"$S = \sum_i p_i q_i$ and $$x^2 \le \frac{a}{b+c}$$", "S = ∑ᵢ pᵢ qᵢ and x² ≤ a/(b+c)"),
        (r"\(\alpha \to \sqrt{z}\), \[\left( \hat{x} \right)\] for $n$", "α → √z, ( x̂ ) for n"),
        (r"$\begin{cases} 1 \end{cases}$ stays", r"$\begin{cases} 1 \end{cases}$ stays"),
        (
            "$HOME/bin:$PATH, $MY_VAR$ and US$5 (or 3$)",
            "$HOME/bin:$PATH, $MY_VAR$ and US$5 (or 3$)",
        ),
        (r"So \(a\;b\_1\) holds.", "So a b_1 holds."),
        (r"It costs $5, not *ten*\, or $10.", "It costs $5, not ten, or $10."),
        (r"Call \(this\).", "Call (this)."),
    ],
)
def test_a_formula_is_shown_as_it_is_written(source: str, shown: str) -> None:
    assert "".join(line.text for line in lines_of(source, 80)) == shown


def test_a_bare_address_is_a_link_without_the_end_of_its_sentence() -> None:
    found = styles("See https://a.org/b_c_d?x=1&y=2), or\n**https://a.b/c.** `https://code.c/d`.")
    links = {text: style for text, style in found.items() if "url:" in style}
    assert list(links) == ["https://a.org/b_c_d?x=1&y=2", "https://a.b/c"]
    assert links["https://a.b/c"] == "text strong link url:https://a.b/c"


def test_entities_cannot_bring_control_characters_back() -> None:
    assert not set("\x1b\u202e\x00\x07") & set("".join(shown("&#27;[31m &#x202e;x &#0; &#7;")))


def test_long_code_lines_fold_without_losing_spaces() -> None:
    lines = lines_of("```\n" + "ab " * 20 + "\n```", 20)
    assert "".join(line.text for line in lines) == "ab " * 20
    assert [line.join for line in lines] == ["\n", *[""] * (len(lines) - 1)]


@pytest.mark.parametrize("width", [1, 2, 5, 20, 37, 80, 120, 200])
@pytest.mark.parametrize(
    "source",
    [ANSWER, CJK, "> " * 12 + "deep", "- " * 12 + "deep", "1. a\n   - b\n     > c d e f g h"],
)
def test_no_line_is_wider_than_asked(source: str, width: int) -> None:
    for line in lines_of(source, width):
        allowed = max(width, 2)
        assert spans_width(line.prefix) + spans_width(line.content()) <= allowed + (
            0 if width >= 8 else 8
        )


def test_copying_gives_list_markers_and_quotes_back() -> None:
    assert [line.lead for line in lines_of("- a\n  - b\n\n> q")] == ["• ", "  ◦ ", "", "> "]
