"""The ``recall`` tool: shows the model content of the session that isn't sent to it any more.

A call contains the number of an entry, words to search for on all branches, or a topic of the
project's memory.
"""

import asyncio
import re
from dataclasses import replace
from typing import ClassVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from tui_agent.context.recalling import fits, outline, recall_limits
from tui_agent.errors import ToolError
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import (
    Archive,
    FoundEntry,
    FreeTool,
    ToolContext,
    ToolInput,
    ToolResult,
)
from tui_agent.tools.outputs import Output, counted, finish

MAX_HITS = 12
"""Maximum number of entries that a search finds."""
WITH_LINES = 6
"""Number of found entries that are shown with their matching lines. Each further entry is shown as
one line."""
_ADDRESS = re.compile(
    r"\s*#?(\d{1,9})(?:[\s:,]+(?:lines?\s+)?(\d{1,9})\s*-\s*(\d{1,9})?)?\s*", re.IGNORECASE
)
"""Matches an entry's number with or without a range of lines, such as ``#12``, ``12 30-60`` or ``12
30-``."""
_REMEMBERED = re.compile(r"\s*memory[\s:]+(\S.*?)\s*", re.IGNORECASE)
"""Matches ``memory TOPIC``, which asks for the entry from which the memory's line on the topic was
made."""
_NUMBERED = re.compile(r"(\d+)\t")
"""Matches the line number at the beginning of a line in the output of ``read``."""


class RecallInput(ToolInput):
    """Arguments of the ``recall`` tool."""

    what: str = Field(description="Entry number, its lines as in #12 30-60, or words to search for")
    offset: SkipJsonSchema[int] = Field(default=1, ge=1)
    limit: SkipJsonSchema[int | None] = Field(default=None, ge=1)
    grep: str = ""
    """Text that the shown lines must contain, ignoring case; "" for all lines."""


class RecallTool(FreeTool[RecallInput]):
    """Shows the model an entry, a part of an entry, or search results.

    Calls need no permission, because they only read the session.
    """

    name: ClassVar[str] = "recall"
    description: ClassVar[str] = (
        "Bring back what is out of view: cleared or cut outputs, compacted messages, other branches."
    )
    Input = RecallInput
    traits = ToolTraits(kind="read", quotes=True, shows_past=True, protected=True)
    read_only: ClassVar[bool] = True

    async def run(self, arguments: RecallInput, context: ToolContext) -> ToolResult:
        if context.archive is None:
            raise ToolError("There is no session to recall entries from.")
        if address := _ADDRESS.fullmatch(arguments.what):
            if address[2]:
                arguments = arguments.model_copy(update=_span(address[2], address[3]))
            roomy = replace(context, limits=recall_limits(context.limits))
            return await self._entry(int(address[1]), arguments, context.archive, roomy)
        if remembered := _REMEMBERED.fullmatch(arguments.what):
            text = await asyncio.to_thread(context.archive.remembered, remembered[1])
            if text is not None:
                return await finish(Output(text, arguments.what, stored=False), context)
        found = await asyncio.to_thread(context.archive.search, arguments.what, MAX_HITS)
        if not found:
            raise ToolError(f"Nothing in this session matches {arguments.what!r}; try other words.")
        lines = []
        for place, hit in enumerate(found):
            lines += _hit_lines(hit, whole=place < WITH_LINES)
        footer = "[Recall an entry by its #number to see all of it.]"
        metadata = ToolMetadata(count=len(found))
        title = f"“{arguments.what}”"
        return await finish(
            Output("\n".join(lines), title, footer=footer, metadata=metadata, stored=False), context
        )

    @staticmethod
    async def _entry(
        entry_id: int, wanted: RecallInput, archive: Archive, context: ToolContext
    ) -> ToolResult:
        text = await asyncio.to_thread(archive.text, entry_id)
        if text is None:
            raise ToolError(f"There is no entry #{entry_id} in this session.")
        lines = text.removesuffix("\n").split("\n")
        numbered = _NUMBERED.match(lines[0])
        before = 0
        if numbered:
            before = int(numbered[1]) - 1
        offset = max(wanted.offset - before, 1)
        if offset > len(lines):
            end = before + len(lines)
            raise ToolError(f"#{entry_id} ends at line {end:,}; {wanted.offset} is beyond its end.")
        if wanted == RecallInput(what=wanted.what) and not fits(lines, context.limits):
            names = await asyncio.to_thread(archive.names_in_use)
            shown = await asyncio.to_thread(outline, lines, names, context.limits)
            return await finish(_outline_output(entry_id, lines, shown, before), context)
        total = len(lines)
        words = wanted.grep.lower()
        numbers = [at for at in range(offset, total + 1) if words in lines[at - 1].lower()]
        if not numbers:
            raise ToolError(
                f"No line of #{entry_id} from {offset} on contains {wanted.grep!r}; it has {total} lines."
            )
        given = numbers[: wanted.limit]

        def footer(shown: int) -> str:
            if wanted.grep:
                rest = ""
                if shown < len(numbers):
                    following = before + given[max(shown, 1) - 1] + 1
                    rest = f' Continue with "#{entry_id} {following}-".'
                return f"[{shown} of {counted(len(numbers), 'matching line')}, of {total} in all.{rest}]"
            first = before + offset
            last = before + offset - 1 + shown
            return f'[Lines {first}-{last} of {before + total}. Continue with "#{entry_id} {last + 1}-".]'

        rows = []
        for at in given:
            number = f"{at}: " if wanted.grep and not before else ""
            rows.append(f"{number}{lines[at - 1]}")
        output = Output(
            "\n".join(rows),
            f"#{entry_id}",
            cut_hint=lambda cut: footer(cut.kept_lines),
            footer=footer(len(given)) if wanted.grep or len(given) < len(numbers) else "",
            metadata=ToolMetadata(count=total),
            stored=False,
        )
        result = await finish(output, context)
        if not context.vision or wanted.grep or offset > 1:
            return result
        return replace(result, attachments=tuple(await asyncio.to_thread(archive.images, entry_id)))

    def title(self, arguments: RecallInput) -> str:
        return arguments.what


def _span(first: str, last: str | None) -> dict[str, int]:
    """Return ``offset`` and ``limit`` for a range of lines as the model wrote it.

    The model may give the two numbers in either order. Without ``last``, there is no limit.
    """
    if last is None:
        return {"offset": max(int(first), 1)}
    least, most = sorted((int(first), int(last)))
    offset = max(least, 1)
    return {"offset": offset, "limit": max(most - offset + 1, 1)}


def _outline_output(
    entry_id: int, lines: list[str], shown: list[tuple[int, str]], before: int
) -> Output:
    """Return the output for a long entry, which is its beginning and its most important lines.

    The important lines are numbered, the beginning isn't.

    ``shown`` are pairs of a line's index, from 0, and its text, perhaps cut. ``before`` is the
    number of lines that the file has before the entry's first line, if the entry is a read of a
    part of a file; else 0.
    """
    head = next((at for at, row in enumerate(shown) if row != (at, lines[at])), len(shown))
    rows = []
    for place, (at, text) in enumerate(shown):
        number = "" if place < head or _NUMBERED.match(text) else f"{before + at + 1}: "
        rows.append(f"{number}{text}")
    first = before + 1
    last = before + len(lines)
    whole = f"Lines {first}-{before + head} of {last}"
    if head == 0:
        whole = f"The beginning of line {first} of {last}"
    more = ""
    if len(shown) > max(head, 1):
        more = ", and lines with names in use or new names, some cut (…)"
    footer = f'[{whole}{more}. For the rest: "#{entry_id} {first}-{last}", or grep.]'
    return Output(
        "\n".join(rows),
        f"#{entry_id}",
        footer=footer,
        metadata=ToolMetadata(count=len(lines)),
        stored=False,
    )


def _hit_lines(hit: FoundEntry, *, whole: bool) -> list[str]:
    """Return the output for a found entry: its matching lines if ``whole``, else one line.

    The single line contains a description of the entry and the longest of the matching lines.
    """
    head = f"#{hit.entry_id} {hit.gist}{'' if hit.here else ' (other branch)'}"
    best = max((text for _, text in hit.lines), key=len, default="").strip()
    if not whole:
        return [f"{head}: {best}" if best else head]
    rows = [head]
    if hit.beside:
        rows.append(f"  ({hit.beside})")
    for number, text in hit.lines:
        rows.append(f"  {number}: {text}")
    return rows
