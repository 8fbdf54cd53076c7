"""The ``webfetch`` tool: reads one web page or PDF as Markdown or text."""

import asyncio
import contextlib
import json
import re
from typing import ClassVar

from pydantic import Field

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.converters import convert, document_text
from tui_agent.session.entries import ToolMetadata, Truncation
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import python_name
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import Output, finish, size_text
from tui_agent.web.addresses import WebAddress, read_address, same_site
from tui_agent.web.fetching import PDF, MovedError, WebClient, WebPage, timeout_message
from tui_agent.whole_numbers import plural

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = LazyPattern(
    r"text/|application/(.*\+)?(json|xml|yaml|toml|javascript|ecmascript|x-sh|x-yaml|x-ndjson|sql)$"
)
_META_CHARSET = LazyPattern(rb"<meta[^>]{0,200}charset=[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_SNIFFED_BYTES = 4_096
"""Number of bytes at the beginning of a page that are used to find the page's encoding and to
decide whether it is text."""
_ERROR_CHARS = 2_000
"""Maximum number of characters of an error page that are shown."""
_LONG_LINE = 2_000
"""Maximum length, in characters, of the lines of JSON that is shown as it was received. JSON with a
longer line is reformatted."""
_MAX_PDF_LINES = 20_000
"""Maximum number of lines of text that are extracted from a PDF."""
_AROUND = 2
"""Number of lines that are shown before and after each line that contains the words of ``find``."""


class WebFetchInput(ToolInput):
    """Arguments of the ``webfetch`` tool."""

    url: str
    offset: int = Field(default=1, ge=1)
    """Number of the first line to show, counted from 1."""
    find: str = ""
    """Words to find in the page. Only lines that contain all of them are shown, with the lines
    around them. "" to show all lines."""


class WebFetchTool(Tool[WebFetchInput]):
    """Fetches a page and returns it as text. Nothing but the request for the page is sent."""

    name: ClassVar[str] = "webfetch"
    description: ClassVar[str] = "Read a web page or PDF."
    Input = WebFetchInput
    traits = ToolTraits(
        kind="fetch",
        other_names="fetch fetchurl webget browse",
        repeatable=True,
    )
    read_only: ClassVar[bool] = True

    def __init__(self, web: WebClient | None = None) -> None:
        self._web = web or WebClient()

    def needs(self, arguments: WebFetchInput, context: ToolContext) -> tuple[PermissionNeed, ...]:  # noqa: ARG002 - as inherited
        return (_need(read_address(arguments.url)),)

    async def run(self, arguments: WebFetchInput, context: ToolContext) -> ToolResult:
        asked = read_address(arguments.url)

        def may_follow(before: WebAddress, after: WebAddress) -> bool:
            verdict = context.verdict(_need(after))
            if verdict == "deny":
                raise ToolError(f"{asked} redirects to {after}, which a permission rule denies.")
            return verdict == "allow" or same_site(before, after)

        try:
            async with asyncio.timeout(self._web.settings.timeout):
                page = await self._web.get(asked, may_follow)
                return await finish(await _output(page, asked, arguments, context), context)
        except MovedError as moved:
            raise ToolError(
                f"{asked} redirects to {moved.address}. To read that, call webfetch with it."
            ) from None
        except TimeoutError:
            raise ToolError(timeout_message(asked, self._web.settings)) from None

    def title(self, arguments: WebFetchInput) -> str:
        return arguments.url.strip().removeprefix("https://")


def _need(address: WebAddress) -> PermissionNeed:
    family = f"{address.scheme}://{address.netloc}/*"
    return PermissionNeed(Permission.WEBFETCH, str(address), detail=str(address), always=family)


async def _output(
    page: WebPage, asked: WebAddress, arguments: WebFetchInput, context: ToolContext
) -> Output:
    title = f"{page.address.netloc}{page.address.target}"
    is_text = _TEXT.match(page.content_type) or page.content_type in _HTML or _is_utf8(page.body)
    is_pdf = page.body.startswith(PDF)
    if page.binary or not (is_text or is_pdf):
        kind = page.content_type or "unknown type"
        size = ""
        if page.length is not None:
            size = f", {size_text(page.length)}"
        about = f"[{page.address} can't be read as text ({kind}{size}). To use it, download it with curl in bash.]"
        return Output(about, title)
    if is_pdf:
        text = await _pdf_text(page, context)
    else:
        text = await _text(page, context)
    notes = []
    if page.address != asked:
        notes = [f"[From {page.address}]"]
    if page.status >= 400:
        text = text[:_ERROR_CHARS].rstrip()
        failed = f"[{page.address.netloc} answers {page.status} {page.reason}.]"
        return Output("\n".join([failed, *notes, text]).rstrip(), title, is_error=True)
    text = _part(text, arguments)
    footer = ""
    if page.cut:
        footer = f"[The page is longer; only its first {size_text(len(page.body))} were read.]"
    return Output(
        text="\n".join(
            [*notes, text if text.strip() else "[The page has no text. Scripts may create it.]"]
        ),
        title=title,
        footer=footer,
        cut_hint=lambda truncation: "\n".join(filter(None, [_rest(truncation), footer])),
        metadata=ToolMetadata(count=text.count("\n") + 1),
    )


def _part(text: str, arguments: WebFetchInput) -> str:
    """Return those lines of a page that a call selects with ``offset`` and ``find``.

    With ``find``, the lines are numbered, and the lines around them are included. Raises ToolError
    if the offset is past the end, or if no line contains all the words.
    """
    lines = text.rstrip("\n").split("\n")
    if arguments.offset > len(lines):
        raise ToolError(
            f"offset {arguments.offset} is past the end: the page has {plural(len(lines), 'line')}."
        )
    wanted = range(arguments.offset - 1, len(lines))
    if not arguments.find.strip():
        return "\n".join(lines[at] for at in wanted)
    words = arguments.find.casefold().split()
    found = [at for at in wanted if all(word in lines[at].casefold() for word in words)]
    if not found:
        since = ""
        if arguments.offset > 1:
            since = f" from line {arguments.offset} on"
        raise ToolError(
            f"No line{since} contains all the words of “{arguments.find}”. "
            f"The page has {plural(len(lines), 'line')}; try fewer words."
        )
    return "\n".join(_around(lines, found))


def _around(lines: list[str], found: list[int]) -> list[str]:
    """Return the found lines of a page with the lines around them, numbered, and "..." for gaps.

    ``found`` are indexes into ``lines``, ascending.
    """
    shown: list[str] = []
    after = 0
    for at in found:
        first = max(at - _AROUND, after)
        end = min(at + _AROUND + 1, len(lines))
        if shown and first > after:
            shown.append("...")
        shown += [f"{number + 1}: {lines[number]}" for number in range(first, end)]
        after = max(after, end)
    return shown


def _rest(truncation: Truncation) -> str:
    shown = truncation.kept_lines
    return f"[Lines 1-{shown} of {truncation.total_lines}. Recall this result by its #number with offset={shown + 1}.]"


def _is_utf8(body: bytes) -> bool:
    """Return True if a page's body is UTF-8, judged by its first ``_SNIFFED_BYTES`` bytes."""
    try:
        body[:_SNIFFED_BYTES].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > _SNIFFED_BYTES - 4
    return True


async def _text(page: WebPage, context: ToolContext) -> str:
    """Return a page that isn't a PDF as text.

    HTML is converted to Markdown, and JSON with long lines is reformatted.
    """
    charset = page.charset
    if charset is None and (found := _META_CHARSET.search(page.body[:_SNIFFED_BYTES])):
        charset = found[1].decode("ascii")
    text = page.body.decode(python_name(charset or "") or "utf-8", "replace")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if page.content_type in _HTML or (
        not page.content_type and text.lstrip()[:15].lower().startswith("<!doctype html")
    ):
        return await _markdown(text, page.address, context)
    if page.content_type.endswith("json") and any(
        len(line) > _LONG_LINE for line in text.split("\n")
    ):
        with contextlib.suppress(ValueError, RecursionError):
            return await asyncio.to_thread(
                lambda: json.dumps(json.loads(text), indent=1, ensure_ascii=False)
            )
    return text


async def _pdf_text(page: WebPage, context: ToolContext) -> str:
    text = await document_text("pdf", page.body, _MAX_PDF_LINES, context.environment)
    if text is None:
        raise ToolError(f"The PDF file at {page.address} could not be converted to text.")
    return text


async def _markdown(html: str, address: WebAddress, context: ToolContext) -> str:
    """Convert HTML to Markdown in another process, because a large page takes seconds.

    Raises ToolError if the conversion fails.
    """
    converted = await convert(
        "tui_agent.web.markdown",
        str(address),
        data=html.encode("utf-8", "replace"),
        environment=context.environment,
    )
    if converted is None:
        raise ToolError(f"The page at {address} could not be converted to text.")
    return converted.decode("utf-8", "replace")
