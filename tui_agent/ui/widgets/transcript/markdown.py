"""Converts Markdown to flows: CommonMark, tables, strikethrough, task lists and formulas.

The flows are described in flows.py. HTML is shown as text. Line breaks inside paragraphs are kept,
because models intend them. Empty lines between list items are kept as they are in the source, so
that the layout of an item doesn't depend on later items.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

from tui_agent.lazy import dataclass, frozen
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.code import Code
from tui_agent.ui.widgets.transcript.flows import (
    Alignment,
    CodeFlow,
    Flow,
    Frame,
    RuleFlow,
    TableFlow,
    TextFlow,
)
from tui_agent.ui.widgets.transcript.formulas import FORMULA, readable_formula
from tui_agent.ui.widgets.transcript.lines import StyledSpan

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

SEGMENT: Final = 1_500
"""Maximum length, in characters, of a paragraph that is parsed as a whole.

A longer paragraph is cut into pieces where no markup is open (see also `MAX_SEGMENT_CHARS`).
"""

MAX_SEGMENT_CHARS: Final = 6_000
"""Length, in characters, at which a piece of a paragraph is cut at the next space.

It is cut there even inside emphasis.
"""

BULLETS: Final = ("•", "◦", "▪")

_SAFE_LINK: Final = re.compile(r"https?://[\x21-\x7e]{1,2000}\Z")
_LANGUAGE: Final = re.compile(r"[\w+#.-]+")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`|]*[^\s<>\"'`|.,;:!?*_)\]}]")
"""Matches an http or https address in plain text, without the punctuation that follows it."""
BLANK: Final = re.compile(r"[ \t>]*\Z")
"""Matches a line, or the rest of one, that contains only white space and quote marks (``>``)."""


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "tasklists": True, "maxNesting": 40})
    parser.enable(["table", "strikethrough"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.inline.ruler.before("escape", "math", _read_math)
    return parser


def _read_math(state: "StateInline", silent: bool) -> bool:  # noqa: FBT001 - markdown-it's form
    """Parse a formula at the current position. Return False if there is none.

    This is a parser rule for markdown-it. If ``silent`` is True, it only checks for a formula, and
    doesn't add a token.
    """
    found = FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("text", "", 0).content = readable_formula(found[0])
    state.pos = found.end()
    return True


def parse_blocks(text: str, references: dict[str, Any] | None = None) -> "list[Token]":
    """Return the block tokens of a Markdown text, without parsing the inline content.

    The function uses the definitions of reference links in ``references``, and adds the definitions
    in the text to them.
    """
    return _parser().parse(text, references if references is not None else {})


@frozen
class TopBlock:
    """A top-level block of a document: its tokens, and its position in the parsed text.

    ``line`` is the index of the block's first line. ``end`` is the index of the line after the
    block.
    """

    tokens: "Sequence[Token]"
    line: int
    end: int

    @property
    def kind(self) -> str:
        """The kind of block as markdown-it names it, such as ``paragraph`` or ``fence``."""
        return self.tokens[0].type.removesuffix("_open")


def top_blocks(tokens: "Sequence[Token]") -> list[TopBlock]:
    """Divide the block tokens of a Markdown text into its top-level blocks."""
    blocks: list[TopBlock] = []
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            first = tokens[start]
            line, end = first.map or [0, 0]
            blocks.append(TopBlock(tokens[start : index + 1], line, end))
            start = index + 1
    return blocks


def split_paragraph(content: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end offsets of the pieces in which a paragraph's text is parsed.

    All pieces but the last have at least `SEGMENT` characters. A piece ends at white space where no
    code span, link or emphasis seems to be open. After `MAX_SEGMENT_CHARS` characters, it ends at
    any white space, and after twice as many characters, it ends anywhere. Where a piece ends
    depends only on the text before that place, so it stays the same when the text grows.
    """
    start = 0
    while len(content) - start > SEGMENT:
        cut = _cut(content, start)
        if cut is None:
            break
        yield start, cut
        start = cut
    yield start, len(content)


def _cut(content: str, start: int) -> int | None:
    position = start + SEGMENT
    limit = start + MAX_SEGMENT_CHARS
    while position < len(content):
        if content[position] in " \n" and content[position - 1] not in " \n\\":
            if position >= limit or _balanced(content[start:position]):
                return position
        elif position >= limit * 2 - start:
            return position
        position += 1
    return None


def _balanced(text: str) -> bool:
    return (
        text.count("`") % 2 == 0
        and text.count("*") % 2 == 0
        and text.count("~") % 2 == 0
        and text.count("[") == text.count("]")
        and text.count("(") <= text.count(")")
        and text.count("<") <= text.count(">")
    )


def inline_rows(content: str, base: str, references: dict[str, Any]) -> list[list[StyledSpan]]:
    """Parse inline Markdown into rows of spans, with one row for each line of the source.

    ``base`` is the style of plain text. ``references`` contains the definitions of reference links.
    """
    rows: list[list[StyledSpan]] = [[]]
    children: list[Token] = []
    _parser().inline.parse(content, _parser(), references, children)
    styles = [base]
    links: list[tuple[str, int, int]] = []
    for kind, token, text in _joined(children):
        match kind:
            case "text" if not links and "://" in text:
                _add_with_addresses(rows, text, styles[-1])
            case "text" | "html_inline":
                _add(rows, text, styles[-1])
            case "code_inline":
                _add(rows, token.content, f"{styles[-1]} code-inline")
            case "softbreak" | "hardbreak":
                rows.append([])
            case "strong_open" | "em_open" | "s_open":
                name = {"strong_open": "strong", "em_open": "em", "s_open": "strike"}[token.type]
                styles.append(f"{styles[-1]} {name}")
            case "link_open":
                href = str(token.attrGet("href") or "")
                links.append((href, len(rows), len(rows[-1])))
                # An address becomes a link only if a terminal can safely open it.
                target = ""
                if _SAFE_LINK.match(href):
                    target = f" url:{href}"
                styles.append(f"{styles[-1]} link{target}")
            case "link_close":
                styles.pop()
                _add_address(rows, links.pop(), styles[-1])
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case "image":
                _add(rows, f"[image: {token.content or 'untitled'}]", f"{styles[-1]} em")
                source = str(token.attrGet("src") or "")
                _add(rows, f" ({source})" if source else " ", f"{styles[-1]} url")
    return rows


def _joined(tokens: "Sequence[Token]") -> "Iterator[tuple[str, Token, str]]":
    """Yield the type, the token and the text of each token. Successive text tokens are merged."""
    for is_text, group in groupby(tokens, lambda token: token.type in {"text", "text_special"}):
        found = list(group)
        if is_text:
            yield "text", found[0], "".join(token.content for token in found)
            continue
        for token in found:
            yield token.type, token, token.content


def _add_with_addresses(rows: list[list[StyledSpan]], text: str, style: str) -> None:
    """Append text to the last row. Web addresses in the text become links."""
    at = 0
    for found in _ADDRESS.finditer(text):
        _add(rows, text[at : found.start()], style)
        target = ""
        if _SAFE_LINK.match(found[0]):
            target = f" url:{found[0]}"
        _add(rows, found[0], f"{style} link{target}")
        at = found.end()
    _add(rows, text[at:], style)


def _add_address(rows: list[list[StyledSpan]], link: tuple[str, int, int], style: str) -> None:
    """Append a link's address after the link's text, unless the text is the address itself.

    ``link`` contains the address, and two numbers that mark where the link's text begins: the
    number of rows, and the number of spans in the last row.
    """
    href, row, index = link
    shown = ""
    if row == len(rows):
        shown = "".join(text for text, _ in rows[row - 1][index:])
    address = href.removeprefix("mailto:")
    if href and shown not in {
        address,
        address.removeprefix("https://"),
        address.removeprefix("http://"),
    }:
        _add(rows, f" ({address})" if address else " ", f"{style} url")


def _add(rows: list[list[StyledSpan]], value: str, style: str) -> None:
    """Append text to the last row.

    The text is sanitized first, because it may contain an HTML entity, which can stand for any
    character.
    """
    value = sanitize.line(value)
    if not value:
        return
    row = rows[-1]
    if row and row[-1][1] == style:
        row[-1] = (row[-1][0] + value, style)
    else:
        row.append((value, style))


@dataclass(slots=True)
class _Container:
    """A quote or list item whose end has not been reached yet.

    ``used`` says whether its marker, such as a bullet, has already been used for a flow.
    """

    frame: Frame
    line: int
    used: bool = False


class FlowMaker:
    """Converts the block tokens of a Markdown text to flows.

    ``source_lines`` are the lines of the parsed text, and ``base`` is the style of plain text.
    ``blank_before`` says whether a blank line precedes the first block in the source, and
    ``previous`` is the kind of the block before the first one. If the tokens continue a numbered
    list, ``number`` is the number of their first item.
    """

    def __init__(
        self,
        source_lines: Sequence[str],
        *,
        base: str = "text",
        blank_before: bool = False,
        previous: str = "",
        number: int | None = None,
        references: dict[str, Any] | None = None,
    ) -> None:
        self._source = source_lines
        self._base = base
        self._blank_before = blank_before
        self.previous = previous
        """Kind of the last block, which decides whether an empty line follows it."""

        self._number = number
        if references is not None:
            self._references = references
        else:
            self._references = {}
        self._containers: list[_Container] = []
        self._lists: list[int | None] = []
        self._pending_gap: bool | None = None
        self.flows: list[Flow] = []

    def add(self, tokens: "Sequence[Token]") -> None:
        """Convert block tokens to flows, and append the flows to the result."""
        index = 0
        while index < len(tokens):
            index = self._block(tokens, index)

    def add_text(
        self,
        content: str,
        line: int = 0,
        style: str = "",
        *,
        kind: str = "paragraph",
        joins: bool = False,
    ) -> None:
        """Append the flows for a paragraph or heading, given as inline Markdown.

        ``line`` is the index of its first line in the source. If ``joins`` is True, the text
        continues the previous paragraph.
        """
        if style:
            base = f"{self._base} {style}"
        else:
            base = self._base
        gap = self.gap(kind, line) and not joins
        frame = self._frame()
        for start, end in split_paragraph(content):
            rows = inline_rows(content[start:end], base, self._references)
            self.flows.append(TextFlow(rows, frame, gap=gap, joins=joins))
            gap = False
            joins = True

    def _block(self, tokens: "Sequence[Token]", index: int) -> int:
        """Convert the block that begins with the token at ``index``.

        Returns the index of the token after the block.
        """
        token = tokens[index]
        line, _end = token.map or (0, 0)
        match token.type:
            case "paragraph_open":
                self.add_text(tokens[index + 1].content, line)
                return index + 3
            case "heading_open":
                level = min(int(token.tag[1:]), 4)
                self.add_text(tokens[index + 1].content, line, f"heading{level}", kind="heading")
                return index + 3
            case "table_open":
                end = index
                while tokens[end].type != "table_close":
                    end += 1
                self._table(tokens[index : end + 1], line)
                return end + 1
            case "fence" | "code_block":
                code = Code(language_of(token))
                code.replace(0, fence_lines(token))
                gap = self.gap("code", line)
                self.flows.append(CodeFlow(code, 0, len(code.lines), self._frame(), gap=gap))
            case "hr":
                self.flows.append(RuleFlow(self._frame(), gap=self.gap("rule", line)))
            case _:
                self._enter_or_leave(token, line)
        return index + 1

    def _enter_or_leave(self, token: "Token", line: int) -> None:
        """Handle a token that begins or ends a quote, a list or a list item."""
        match token.type:
            case "blockquote_open":
                self._open_quote(line)
            case "blockquote_close":
                self._containers.pop()
                self._pending_gap = None
                self.previous = "quote"
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._open_numbered(token)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self.previous = "list"
            case "list_item_open":
                self._open_item(token, line)
            case "list_item_close":
                self._close_item()
            case _:
                pass

    def _open_quote(self, line: int) -> None:
        bar: StyledSpan = ("▏ ", "quote-bar")
        self._pending_gap = self.gap("quote", line)
        self._containers.append(_Container(Frame((bar,), (bar,), "> ", "> "), line))
        self.previous = "quote-open"

    def _open_numbered(self, token: "Token") -> None:
        start = int(token.attrs.get("start", 1))
        if self._number is not None and not self._containers:
            start = self._number
            self._number = None
        self._lists.append(start)

    def _close_item(self) -> None:
        item = self._containers[-1]
        if not item.used:
            gap = self.gap("paragraph", item.line)
            self.flows.append(TextFlow([[]], self._frame(), gap=gap))
        self._containers.pop()
        self.previous = "item"

    def _open_item(self, token: "Token", line: int) -> None:
        number = self._lists[-1]
        if number is None:
            marker = BULLETS[min(self._lists.count(None) - 1, len(BULLETS) - 1)]
        else:
            marker = f"{number}{token.markup}"
            self._lists[-1] = number + 1
        if token.meta and "checked" in token.meta:
            box = "☑" if token.meta["checked"] else "☐"
            if number is None:
                marker = box
            else:
                marker = f"{marker} {box}"
        indent = " " * (len(marker) + 1)
        frame = Frame(((f"{marker} ", "bullet"),), ((indent, "text"),), f"{marker} ", indent)
        self._containers.append(_Container(frame, line))

    def _frame(self) -> Frame:
        frame = Frame()
        for container in self._containers:
            own = container.frame
            if container.used and not all(text.isspace() for text, _ in own.rest):
                frame.outer = (*frame.rest, *own.rest)
            if container.used:
                frame.first += own.rest
                frame.first_lead += own.rest_lead
            else:
                frame.first += own.first
                frame.first_lead += own.first_lead
            frame.rest += own.rest
            frame.rest_lead += own.rest_lead
            container.used = True
        return frame

    def gap(self, kind: str, line: int) -> bool:
        """Return whether an empty line precedes a block, and set `previous` to the block's kind.

        ``line`` is the index of the block's first line in the source. Top-level blocks are always
        separated by an empty line. In lists and quotes, there is an empty line where the source
        contains one, and also before a heading or table and after a heading.
        """
        previous = self.previous
        self.previous = kind
        if self._pending_gap is not None:
            gap = self._pending_gap
            self._pending_gap = None
            return gap
        if not previous or previous == "quote-open":
            return False
        if not self._containers:
            return True
        if line == 0:
            blank = self._blank_before
        else:
            blank = BLANK.match(self._source[line - 1]) is not None
        return blank or (previous == "heading" or kind in {"table", "heading"})

    def _table(self, tokens: "Sequence[Token]", line: int) -> None:
        rows: list[list[list[StyledSpan]]] = []
        alignments: list[Alignment] = []
        for index, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in {"th_open", "td_open"}:
                if token.type == "th_open":
                    base = f"{self._base} strong"
                else:
                    base = self._base
                cell = inline_rows(tokens[index + 1].content, base, self._references)
                rows[-1].append([run for row in cell for run in row])
                if token.type == "th_open":
                    style = str(token.attrGet("style") or "text-align:left")
                    alignments.append(cast("Alignment", style.removeprefix("text-align:")))
        gap = self.gap("table", line)
        self.flows.append(TableFlow(rows, alignments, self._frame(), gap=gap))


def language_of(token: "Token") -> str:
    """Return the language of a code fence, in lower case. Empty if the fence names none."""
    found = None
    if token.info:
        found = _LANGUAGE.match(token.info.strip())
    if found:
        return found.group().lower()
    return ""


def fence_lines(token: "Token") -> list[str]:
    """Return the lines of a code block.

    There is always at least one line, which may be empty.
    """
    lines = token.content.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines or [""]
