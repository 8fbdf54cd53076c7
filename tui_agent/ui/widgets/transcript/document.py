"""`MarkdownDocument`, a Markdown text that grows while an answer is streamed.

The cost of adding text doesn't depend on the length of the text so far. Everything before the last
top-level block is frozen, that is, not parsed again. Within that block, finished list items,
finished lines of a code fence (in steps of `CHUNK`) and finished pieces of a long paragraph are
frozen, too. The rest of the text, called the tail, is parsed again each time. If the tail starts
inside a fence or a paragraph, a stub is put before it, so that the parser opens such a block. The
stub is the first line of the fence, or a letter for a paragraph.

The result is the same no matter in which pieces the text arrived. If parsing takes too long, the
text is shown as plain text.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.code import CHUNK, Code
from tui_agent.ui.widgets.transcript.flows import CodeFlow, Flow, LineBuilder, TextFlow
from tui_agent.ui.widgets.transcript.lines import Line, span_of
from tui_agent.ui.widgets.transcript.markdown import (
    BLANK,
    SEGMENT,
    FlowMaker,
    TopBlock,
    fence_lines,
    language_of,
    parse_blocks,
    split_paragraph,
    top_blocks,
)
from tui_agent.ui.widgets.transcript.time_limit import TooLongError, limited

_SECONDS: Final = 0.8
"""Maximum processor time, in seconds, for parsing and laying out newly added text."""

_LETTER: Final = "x"
"""The stub that stands for the frozen part of a paragraph when only the rest is parsed."""

_UNDECIDED: Final = re.compile(
    r"(?:^|\n)(?:[ \t]*(?:[-=*_#>`~|:+\s]+|\d{1,9}[.)]?|`{3,}[^`\n]*|~{3,}[^\n]*)|(?<!\|)\n?\|[^\n]*(?:\n[|:\- ]*)?)\Z"
)
"""Matches the end of a text if it might become another kind of block when more text arrives.

Such an end is not shown until it is clear what it is.
"""

_DELIMITERS: Final = re.compile(r"[^\n]*\n[ \t]*[|:=-][|:= \t-]*(?:\n|\Z)")
"""Matches two lines, the second of which makes the first a heading or the header of a table."""


@dataclass(slots=True)
class _OpenBlock:
    """The partly frozen block in which the tail starts.

    The tail is the part of the text that isn't frozen yet. ``stub`` is parsed before the tail to
    open the block again. ``start`` is the block's offset in the text. ``flows`` is the number of
    frozen flows (paragraphs, code blocks and the like) before the block, and ``previous`` is the
    kind of the block before it. For a numbered list, ``number`` is the number of the tail's first
    item. For a code fence, ``code`` contains all lines, of which the first ``frozen_lines`` are
    frozen.
    """

    kind: str
    stub: str
    start: int
    flows: int
    previous: str
    number: int | None = None
    code: Code | None = None
    frozen_lines: int = 0


class MarkdownDocument:
    """Markdown text that may still grow, laid out as lines. ``base`` is the style of plain text."""

    def __init__(self, text: str = "", *, base: str = "text", finished: bool = False) -> None:
        self._base = base
        self.source = ""
        """The text as it was received."""
        self._held = ""
        """A carriage return at the end of the text, or "" if there is none.

        It is held back until it is known whether a line feed follows.
        """
        self._source = ""
        """The sanitized text received so far, except for a carriage return in ``_held``."""
        self.finished = False
        """Whether the text is complete."""
        self._width = 0
        self._is_plain = False
        self._reset()
        if text:
            self.append(text)
        if finished:
            self.finish()

    def append(self, text: str) -> None:
        """Add text to the document. The next call of `lines` parses it."""
        self.source += text
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self._source += sanitize.text(text[:-1] if self._held else text)
        self._changed = True

    def finish(self) -> None:
        """Mark the text as complete. Its last line is then shown, and reference links work."""
        if self.finished:
            return
        self.finished = True
        if self._held:
            self._source += "\n"
            self._held = ""
        if "]:" in self._source and not self._is_plain:
            self._within_time(self._find_references)
        self._changed = True

    def lines(self, width: int) -> list[Line]:
        """Return the document as lines that are at most ``width`` cells wide.

        The caller must not change the returned list, because the next call may return it again.
        """
        if width != self._width:
            self._width = width
            self._builder = LineBuilder(width)
            self._built = 0
            self._builder.mark()
            self._stale = True
        if self._changed or self._stale:
            self._within_time(self._lay_out)
        return self._builder.lines

    def _within_time(self, work: Callable[[], None]) -> None:
        try:
            with limited(_SECONDS):
                work()
        except TooLongError:
            self._is_plain = True
            self._reset()
            self._lay_out()

    def _lay_out(self) -> None:
        if self._changed:
            self._parse()
        if not self._stale:
            return
        self._stale = False
        builder = self._builder
        builder.rewind()
        while self._built < len(self._frozen):
            builder.feed(self._frozen[self._built])
            self._built += 1
        builder.mark()
        for flow in self._tail:
            builder.feed(flow)

    # -- parsing

    def _find_references(self) -> None:
        references: dict[str, Any] = {}
        parse_blocks(self._source, references)
        if references.get("references"):
            self._reset(references)

    def _reset(self, references: dict[str, Any] | None = None) -> None:
        self._frozen: list[Flow] = []
        self._tail: list[Flow] = []
        self._offset = 0
        self._open: _OpenBlock | None = None
        self._whole_until = -1
        self._scanned = 0
        self._previous = ""
        self._references = references or {}
        self._changed = True
        self._stale = True
        self._built = 0
        self._builder = LineBuilder(max(self._width, 1))
        self._builder.mark()

    def _parse(self) -> None:
        self._changed = False
        self._stale = True
        source = self._source
        if self._is_plain:
            rows = [list(span_of(line, self._base)) for line in source.split("\n")]
            self._tail = [TextFlow(rows)]
            return
        complete = source.rfind("\n") + 1
        if self.finished or len(source) - max(complete, self._offset) > 2 * SEGMENT:
            complete = len(source)
        if complete > self._scanned:
            self._scanned = complete
            self._freeze(complete)
        end = len(source)
        if not self.finished:
            last_lines = max(source.rfind("\n", 0, max(complete - 1, 0)), self._offset - 1, 0)
            undecided = _UNDECIDED.search(source, last_lines)
            if undecided is not None and not (self._open and self._open.kind == "fence"):
                end = undecided.start() + (source[undecided.start()] == "\n")
        text = self._text(max(end, self._offset))
        self._tail = self._flows_of(
            top_blocks(parse_blocks(text, self._new_references())), text.split("\n")
        )

    def _text(self, end: int) -> str:
        stub = ""
        if self._open:
            stub = self._open.stub
        return stub + self._source[self._offset : end]

    def _new_references(self) -> dict[str, Any]:
        """Return the dictionary in which the parser stores definitions of reference links.

        While the text is still growing, this is a new dictionary ({}), so definitions are not kept.
        """
        if self.finished:
            return self._references
        return {}

    def _maker(self, lines: list[str], number: int | None = None) -> FlowMaker:
        source = self._source
        end = self._offset - 1
        starts_line = end >= 0 and source[end] == "\n"
        return FlowMaker(
            lines,
            base=self._base,
            blank_before=starts_line
            and BLANK.match(source, source.rfind("\n", 0, end) + 1, end) is not None,
            previous=self._previous,
            number=number,
            references=self._new_references(),
        )

    def _flows_of(self, blocks: list[TopBlock], lines: list[str]) -> list[Flow]:
        """Convert the parsed blocks to flows: paragraphs, code blocks, tables and rules.

        If a block is partly frozen (see `_OpenBlock`), the first flow continues it. ``lines`` are
        the lines of the parsed text.
        """
        opened = self._open
        maker = self._maker(lines, opened.number if opened else None)
        rest = blocks
        flows: list[Flow] = []
        if opened and blocks and opened.kind == blocks[0].kind:
            first, *others = blocks
            if opened.kind == "paragraph":
                goes_on = self._maker([])
                goes_on.add_text(first.tokens[1].content[len(_LETTER) :], joins=True)
                flows = goes_on.flows
                rest = others
                maker.previous = "paragraph"
            elif opened.kind == "fence" and opened.code is not None:
                fenced = []
                if first.tokens[0].content:
                    fenced = fence_lines(first.tokens[0])
                opened.code.replace(opened.frozen_lines, fenced)
                flows = [CodeFlow(opened.code, opened.frozen_lines, len(opened.code.lines))]
                rest = others
                maker.previous = "code"
        for block in rest:
            maker.add(block.tokens)
        self._after = maker.previous
        return flows + maker.flows

    # -- freezing

    def _freeze(self, end: int) -> None:
        """Freeze the parts of the text before the offset ``end`` that later text can't change.

        Frozen text isn't parsed again.
        """
        while True:
            text = self._text(end)
            if self._open and self._open.kind == "paragraph" and _DELIMITERS.match(text):
                self._reopen()
                continue
            blocks = top_blocks(parse_blocks(text, self._new_references()))
            if not blocks:
                return
            if self._open and self._open.kind != blocks[0].kind:
                self._reopen()
                continue
            if len(blocks) > 1:
                lines = text.split("\n")
                self._add_frozen(
                    self._flows_of(blocks[:-1], lines), self._offset_of(text, blocks[-1].line)
                )
                self._open = None
                continue
            kind = blocks[0].kind
            if kind in {"bullet_list", "ordered_list"}:
                self._freeze_items(blocks[0], text)
            elif kind == "fence":
                self._freeze_code(blocks[0], text)
            elif kind == "paragraph" and self._whole_until != self._offset:
                self._freeze_text(blocks[0], text)
            return

    def _offset_of(self, text: str, line: int) -> int:
        position = 0
        for _ in range(line):
            position = text.index("\n", position) + 1
        return self._offset + position - (len(self._open.stub) if self._open else 0)

    def _add_frozen(self, flows: list[Flow], offset: int) -> None:
        self._frozen.extend(flows)
        self._previous = self._after
        self._offset = offset

    def _reopen(self) -> None:
        """Unfreeze the open block, because new text has changed its kind.

        The block is then parsed again from its start.
        """
        opened = self._open
        if opened is None:
            return
        del self._frozen[opened.flows :]
        if self._built > opened.flows:
            self._built = 0
            self._builder = LineBuilder(self._width)
            self._builder.mark()
        self._offset = opened.start
        self._previous = opened.previous
        self._open = None
        self._whole_until = opened.start

    def _opened(self, kind: str, stub: str, text: str, line: int) -> _OpenBlock:
        if self._open and self._open.kind == kind:
            return self._open
        start = self._offset_of(text, line)
        return _OpenBlock(kind, stub, start, len(self._frozen), self._previous)

    def _freeze_items(self, block: TopBlock, text: str) -> None:
        items = [token.type == "list_item_open" and token.level == 1 for token in block.tokens]
        starts = [index for index, is_item in enumerate(items) if is_item]
        if len(starts) < 2:
            return
        opened = self._opened(block.kind, "", text, block.line)
        last = block.tokens[starts[-1]]
        line = 0
        if last.map:
            line = last.map[0]
        done = TopBlock([*block.tokens[: starts[-1]], block.tokens[-1]], block.line, line)
        flows = self._flows_of([done], text.split("\n"))
        self._after = "item"
        if block.kind == "ordered_list":
            first = opened.number
            if first is None:
                start = block.tokens[0].attrGet("start")
                first = 1
                if start is not None:
                    first = int(start)
            opened.number = first + len(starts) - 1
        self._add_frozen(flows, self._offset_of(text, line))
        self._open = opened

    def _freeze_code(self, block: TopBlock, text: str) -> None:
        token = block.tokens[0]
        lines = []
        if token.content:
            lines = fence_lines(token)
        count = max(len(lines) - 1, 0) // CHUNK * CHUNK
        if not count:
            return
        if block.line == 0:
            first_line = text[: text.index("\n") + 1]
        else:
            first_line = text.split("\n")[block.line] + "\n"
        opened = self._opened("fence", first_line, text, block.line)
        offset = self._offset_of(text, block.line + 1 + count)
        flow: CodeFlow
        if opened.code is None:
            opened.code = Code(language_of(token))
            maker = self._maker(text.split("\n"))
            flow = CodeFlow(opened.code, 0, count, gap=maker.gap("code", block.line))
        else:
            flow = CodeFlow(opened.code, opened.frozen_lines, opened.frozen_lines + count)
        opened.code.replace(opened.frozen_lines, lines[:count])
        opened.frozen_lines += count
        self._after = "code"
        self._add_frozen([flow], offset)
        self._open = opened

    def _freeze_text(self, block: TopBlock, text: str) -> None:
        joined = self._open is not None
        content = block.tokens[1].content[len(_LETTER) if joined else 0 :]
        pieces = list(split_paragraph(content))
        if len(pieces) < 2 or (not joined and content.startswith("[")):
            return
        cut = pieces[-1][0]
        opened = self._opened("paragraph", _LETTER, text, block.line)
        maker = self._maker(text.split("\n"))
        maker.add_text(content[:cut], block.line, joins=joined)
        start = self._offset
        if not joined:
            start = self._offset_of(text, block.line)
            while self._source[start] in " \t\n":
                start += 1
        self._after = "paragraph"
        self._add_frozen(maker.flows, start + cut)
        self._open = opened
