"""Exports a session as a single HTML file that loads nothing from the network.

All text of the session is escaped.

Without scripts the page can be read from top to bottom. The page's script adds a search, lets the
reader fold messages, and shows one path through the tree.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from markdown_it import MarkdownIt

from tui_agent.safe_text import one_line, readable
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    FilePart,
    ImagePart,
    ReasoningPart,
    ShellEntry,
    SummaryEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    UserEntry,
    is_by_user,
)
from tui_agent.session.formats.copies import SessionCopy
from tui_agent.session.formats.incoming import IMAGE_TYPES
from tui_agent.session.formats.markdown import (
    Section,
    call_facts,
    facts_of,
    joined,
    marker_of,
    results_of,
    sections_of,
    when,
)
from tui_agent.whole_numbers import plural

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "script-src 'sha256-{}'"
)
"""Content security policy of the page. Whatever text a session contains, the page loads nothing
from the network and runs only its own script."""
_TOOLS = (
    '<div id="tools" hidden><input id="search" type="search" placeholder="Search  /" aria-label="Search">'
    '<span id="count" role="status"></span><button id="open">Open all</button><button id="fold">Fold all</button>'
    '<button id="every" hidden>Show all branches</button></div>\n'
)
_DIFF_LINES = (("+++", "at"), ("---", "at"), ("@@", "at"), ("+", "add"), ("-", "del"))
"""The prefixes of the lines of a diff, each with the CSS class of such lines."""
MAX_LISTED = 400
"""Maximum number of messages of one section that the tree of links shows."""


def write(
    copy: SessionCopy, put: Callable[[str], object], *, whole: bool, css: str, script: str
) -> None:
    """Write a session as HTML, either only the path to its leaf or, with ``whole``, every branch.

    A tree of links to messages and branches is at the top. ``put`` is called with the text, piece
    by piece. ``css`` and ``script`` are included in the page.
    """
    page = _Page(copy)
    name, models, cost = facts_of(copy)
    info = copy.info
    title = escape(one_line(name, 200))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    put(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY.format(digest)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{css}\n</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    )
    count = plural(len(copy.entries), "entry")
    facts = joined(info.cwd, when(info.created_at), ", ".join(models), count, cost)
    put(f'<p class="facts">{escape(one_line(facts, 500))}</p>\n</header>\n')
    sections = sections_of(copy, whole=whole)
    tree = _Tree(sections)
    put(
        f"<nav><details><summary>Messages and branches</summary>{tree.listed(None)}</details></nav>\n{_TOOLS}"
    )
    put("<main>\n")
    for section in sections:
        up = tree.above.get(section.number, "")
        put(
            f'<div class="stretch" id="s{section.number}" data-number="{section.number}" data-up="{up}">\n'
        )
        if section.number > 1:
            where = "from the beginning"
            if section.after is not None:
                here = " (current)" if section.current else ""
                where = f'after <a href="#e{section.after}">#{section.after}</a>{here}'
            put(f'<h2 class="branch" id="branch{section.number}">Branch {where}</h2>\n')
        for block in page.blocks(section):
            put(block + "\n")
        put(tree.ways(section))
        put("</div>\n")
    put(f"</main>\n<script>{script}</script>\n</body>\n</html>\n")


class _Tree:
    """A session's sections as a tree; its methods return HTML with links to the sections.

    ``above`` maps a section's number to the number of its parent section.
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        ends = {section.entries[-1].id: section.number for section in sections if section.entries}
        self.above: dict[int, int] = {}
        self._below: dict[int | None, list[Section]] = {}
        for section in sections:
            if section.after is not None and section.entries:
                self.above[section.number] = ends[section.after]
            self._below.setdefault(self.above.get(section.number), []).append(section)

    def listed(self, number: int | None) -> str:
        """Return an HTML list of the sections directly below the section ``number``.

        Each item contains links to the section's first ``MAX_LISTED`` user messages, and a list of
        the sections below it. If ``number`` is None, the list contains the sections at the
        session's beginning.
        """
        waiting: list[Section | str] = ["</ul>", *reversed(self._below.get(number, ())), "<ul>"]
        pieces: list[str] = []
        while waiting:
            section = waiting.pop()
            if isinstance(section, str):
                pieces.append(section)
                continue
            pieces.append(f"<li>{_way(section)}")
            rows: list[str] = []
            for entry in section.entries:
                if is_by_user(entry):
                    rows.append(f'<li><a href="#e{entry.id}">{_line(entry.preview, 100)}</a></li>')
            if listed := rows[1:MAX_LISTED]:
                pieces.append(f"<ul>{''.join(listed)}</ul>")
            waiting.append("</li>")
            if below := self._below.get(section.number):
                waiting += ["</ul>", *reversed(below), "<ul>"]
        return "".join(pieces)

    def ways(self, section: Section) -> str:
        """Return HTML links to the branches that follow a section; "" for fewer than two."""
        below = self._below.get(section.number, ())
        if len(below) < 2:
            return ""
        ways = "".join(f"<li>{_way(one)}</li>" for one in below)
        return f'<div class="ways">Continued in:<ul>{ways}</ul></div>\n'


def _way(section: Section) -> str:
    if not section.entries:
        return "…"
    first = next(
        (entry.preview for entry in section.entries if is_by_user(entry)),
        section.entries[0].preview,
    )
    here = " (current)" if section.current else ""
    return f'<a href="#s{section.number}" data-way="{section.number}">{_line(first, 100) or "…"}</a>{here}'


class _Page:
    def __init__(self, copy: SessionCopy) -> None:
        self._copy = copy
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable(
            ["table", "strikethrough"]
        )
        # Images are left out, because an image that is loaded from another server would reveal to
        # that server who reads the page.
        self._markdown.disable("image")

    def blocks(self, section: Section) -> Iterator[str]:
        results = results_of(section.entries)
        called: set[str] = set()
        for entry in section.entries:
            match entry:
                case UserEntry():
                    yield self._user(entry)
                case AssistantEntry():
                    called.update(call.call_id for call in entry.tool_calls)
                    yield f'<section id="e{entry.id}">{self._label(entry.id)}'
                    yield from self._answer(entry, results)
                    yield "</section>"
                case ToolResultEntry():
                    if entry.call_id not in called:
                        yield self._tool(entry.tool, "", entry)
                case ShellEntry():
                    output = f"<pre>{_text(entry.output)}</pre>"
                    yield _folded(f"! {_line(entry.command)}", output, entry.id)
                case SummaryEntry():
                    summary = _line(f"{marker_of(entry)} · #{entry.id}")
                    body = f"<div>{self._render(entry.summary)}</div>"
                    yield _folded(summary + self._label(entry.id), body, entry.id)
                case BookkeepingEntry():
                    if (marker := marker_of(entry)) is not None:
                        yield f'<p class="marker" id="e{entry.id}">{_line(marker)}{self._label(entry.id)}</p>'

    def _label(self, entry_id: int) -> str:
        label = self._copy.labels.get(entry_id)
        if label:
            return f' <span class="label">{_line(label)}</span>'
        return ""

    def _user(self, entry: UserEntry) -> str:
        who = "You"
        if entry.synthetic:
            who = f"Note ({_line(entry.occasion)})"
        link = f'<a class="where" href="#e{entry.id}">{who} · #{entry.id} · {when(entry.created_at)}</a>'
        pieces = [link + self._label(entry.id)]
        for part in entry.parts:
            match part:
                case TextPart(typed=str(line)):
                    pieces.append(f'<pre class="said">{_text(line)}</pre>')
                    pieces.append(_folded("Sent to the model", f"<pre>{_text(part.text)}</pre>"))
                case TextPart():
                    pieces.append(f'<pre class="said">{_text(part.text)}</pre>')
                case FilePart():
                    pieces.append(_folded(f"@{_line(part.path)}", f"<pre>{_text(part.text)}</pre>"))
                case ImagePart():
                    pieces.append(self._image(part))
        kind = "user note" if entry.synthetic else "user"
        return f'<article class="{kind}" id="e{entry.id}">{"".join(pieces)}</article>'

    def _answer(
        self, entry: AssistantEntry, results: Mapping[str, ToolResultEntry]
    ) -> Iterator[str]:
        for part in entry.parts:
            match part:
                case TextPart() if part.text.strip():
                    yield self._render(part.text)
                case ReasoningPart() if part.text.strip():
                    yield _folded("Thinking", f"<div>{self._render(part.text)}</div>")
                case ToolCallPart():
                    yield self._tool(part.tool, part.arguments, results.get(part.call_id))
                case _:
                    pass
        if entry.error:
            yield f'<p class="error">Error: {_line(entry.error, 2_000)}</p>'
        elif entry.ending:
            yield f'<p class="marker">{entry.ending.capitalize()}</p>'

    def _tool(self, tool: str, arguments: str, result: ToolResultEntry | None) -> str:
        title, status = call_facts(arguments, result)
        summary = f"{_line(tool, 60)} {_line(title, 120)}"
        pieces = []
        if arguments:
            pieces = [f"<pre>{_text(arguments)}</pre>"]
        if result is not None:
            facts = result.metadata
            if facts.additions or facts.deletions:
                summary += f' <span class="counts">+{facts.additions} −{facts.deletions}</span>'
            if facts.diff:
                lines: list[str] = []
                for line in readable(facts.diff).splitlines():
                    kind = next((name for start, name in _DIFF_LINES if line.startswith(start)), "")
                    lines.append(f'<span class="{kind}">{escape(line) or " "}</span>')
                pieces.append(f'<pre class="diff">{"".join(lines)}</pre>')
            if result.output:
                pieces.append(f"<pre>{_text(result.output)}</pre>")
            pieces += map(self._image, result.attachments)
        if status:
            summary += f' <span class="status">{status}</span>'
        return _folded(summary, "".join(pieces), result.id if result is not None else None)

    def _image(self, part: ImagePart) -> str:
        content = None
        if part.mime in IMAGE_TYPES:
            content = self._copy.blob(part.blob)
        if content is None:
            name = _line(part.path or part.mime)
            return f'<p class="marker">{part.kind.capitalize()} {name}</p>'
        data = base64.b64encode(content).decode("ascii")
        return (
            f'<p><img alt="{_line(part.path or "image")}" src="data:{part.mime};base64,{data}"></p>'
        )

    def _render(self, text: str) -> str:
        rendered: str = self._markdown.render(readable(text))
        return rendered


def _folded(summary: str, body: str, entry_id: int | None = None) -> str:
    anchor = ""
    if entry_id is not None:
        anchor = f' id="e{entry_id}"'
    return f"<details{anchor}><summary>{summary}</summary>{body}</details>"


def _text(text: str) -> str:
    return escape(readable(text))


def _line(text: str, limit: int = 200) -> str:
    return escape(one_line(text, limit))
