"""Converts streamed Markdown to the lines that plain mode prints, using the screen's parser."""

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Final

from tui_agent.lazy import LazyPattern
from tui_agent.ui.widgets.transcript.flows import CodeFlow, Flow, RuleFlow, TableFlow, TextFlow
from tui_agent.ui.widgets.transcript.lines import StyledSpan
from tui_agent.ui.widgets.transcript.markdown import (
    BULLETS,
    FlowMaker,
    parse_blocks,
    top_blocks,
)
from tui_agent.ui.widgets.transcript.time_limit import TooLongError, limited

_SECONDS: Final = 0.8
"""Maximum processor time, in seconds, for parsing a block. Text that takes longer is yielded with
its markup."""

_FENCE: Final = LazyPattern(r"\s*(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_BEGINS: Final = LazyPattern(r"\s*(?:[-*+]|\d{1,9}[.)])\s+|\s*#{1,6}(?:\s|$)")
"""Matches a line that begins a block even without a blank line before it: a list item or a
heading."""
_HEADING: Final = LazyPattern(r"\s*#{1,6}(?:\s|$)")
_SILENT: Final = re.compile(rf"[{''.join(BULLETS)}>]")
"""Matches markers of quotes and unnumbered items, which are not read aloud."""


class MarkdownLines:
    """Converts streamed Markdown to lines for reading aloud: no markup, commas between cells.

    Code is yielded line by line. Other text is yielded at the end of its paragraph, list item or
    table, because the rest can change how it is parsed.
    """

    def __init__(self) -> None:
        self._open = ""
        self._block: list[str] = []
        """The complete lines of the block that may still grow."""
        self._fence = ""
        """The marks that opened the code block in which the text ends; "" outside of code."""

    def feed(self, text: str) -> Iterator[str]:
        """Add streamed text and yield the lines of the blocks that it completes."""
        *lines, self._open = (self._open + text).split("\n")
        for line in lines:
            yield from self._add(line)

    def end(self) -> Iterator[str]:
        """Yield the lines of the incomplete last block.

        Text that is added later counts as outside of a code block.
        """
        rest = self._open
        self._open = ""
        if rest:
            yield from self._add(rest)
        yield from self._end_block()
        self._fence = ""

    def _add(self, line: str) -> Iterator[str]:
        fence = _FENCE.match(line)
        if self._fence:
            if fence is not None and self._closes(fence):
                self._fence = ""
                yield "End of code."
            else:
                yield line
        elif fence is not None:
            yield from self._end_block()
            self._fence = fence["marks"]
            yield "Code:"
        elif not line.strip():
            yield from self._end_block()
        else:
            if _BEGINS.match(line):
                yield from self._end_block()
            self._block.append(line)
            if _HEADING.match(line):
                yield from self._end_block()

    def _closes(self, fence: re.Match[str]) -> bool:
        return fence["marks"].startswith(self._fence) and not fence["info"].strip()

    def _end_block(self) -> Iterator[str]:
        """Yield the lines of the open block, and close the block.

        Its indentation is ignored, because text after a blank line within a list item would
        otherwise be parsed as code.
        """
        source = dedent("\n".join(self._block))
        self._block.clear()
        maker = FlowMaker(source.split("\n"))
        try:
            with limited(_SECONDS):
                for block in top_blocks(parse_blocks(source)):
                    maker.add(block.tokens)
        except TooLongError:
            yield from source.split("\n")
            return
        for flow in maker.flows:
            yield from _lines_of(flow)


def _lines_of(flow: Flow) -> Iterator[str]:
    match flow:
        case TextFlow():
            marker = " ".join(_SILENT.sub("", flow.frame.first_lead).split())
            for row in flow.rows:
                text = _text(row)
                if text:
                    yield f"{marker} {text}".lstrip()
                marker = ""
        case TableFlow():
            for cells in flow.rows:
                texts = [_text(cell) for cell in cells]
                if any(texts):
                    yield ", ".join(filter(None, texts))
        case CodeFlow():
            yield "Code:"
            yield from flow.code.lines[flow.start : flow.end]
            yield "End of code."
        case RuleFlow():
            return


def _text(spans: list[StyledSpan]) -> str:
    return "".join([text for text, _style in spans]).strip()
