"""Makes the texts of the tree's rows, one line per row, as styled spans.

An entry is loaded only if its header doesn't contain what the row shows. The icons of tool results
are cached.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from tui_agent.app import format as wording
from tui_agent.app import race_text
from tui_agent.app.format import dotted
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.lazy import dataclass
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    PruneEntry,
    RaceRunner,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.records import EntryHeader
from tui_agent.session.skeleton import Headers
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.cards import ICONS
from tui_agent.ui.widgets.transcript.lines import StyledSpan, cells, crop
from tui_agent.ui.widgets.transcript.races import STYLES
from tui_agent.ui.widgets.tree.outline import LineKind, TreeLine
from tui_agent.ui.widgets.tree.segments import TreeIndex

HERE_MARK = "◀ here"

_HEADING = re.compile(r"^#+\s+\S+\s+")
_MENTION = re.compile(r'(?<!\w)@(?:"[^"]*/([^"/]+)"|/[^\s"]*/([^\s"/]+))')
"""Matches a mention of a file with its path. The row shows only the file's name instead."""
_PATH = re.compile(r"^\S*/(\S+)$")


@dataclass
class RowTexts:
    """Makes the texts of the rows in the session tree.

    ``load`` returns an entry by its id, or None if it can't be read. It is called only for visible
    rows whose entry's header isn't enough. ``now`` is in seconds since the epoch.
    """

    index: TreeIndex
    labels: dict[int, str]
    load: Callable[[int], Entry | None]
    now: float
    runners: Mapping[int, RaceRunner] = field(default_factory=dict)
    """The agents of an active race, by the id of the last entry in the agent's branch."""
    _icons: dict[int, StyledSpan] = field(default_factory=dict)

    def text(self, line: TreeLine, room: int) -> list[StyledSpan]:
        """Return the text of a row, cut to ``room`` cells, without the texts at its right edge.

        The texts at the right edge are returned by `tail`.
        """
        if line.what is LineKind.FOLD:
            return [(crop(self._fold(line), room), "faint")]
        header = line.segment.headers[line.row.last]
        if line.what is LineKind.GROUP:
            return self._calls(line.segment.headers[line.row.first : line.row.last + 1], room)
        name, style, text = self._entry(header)
        spans: list[StyledSpan] = []
        if name:
            spans = [(name, style)]
        room -= cells(name)
        if room > 0:
            return [*spans, (crop(text, room), "faint" if style == "faint" else "text")]
        return spans

    def tail(self, line: TreeLine, width: int, *, is_here: bool) -> list[StyledSpan]:
        """Return the texts at the right edge of a row.

        They are labels, the runner, the size of the branch, the time, and the mark of the leaf.
        ``width`` is the width of the whole row, in cells. If the row is narrow, some of these texts
        are left out.
        """
        room = max(width // 4, 6)
        spans: list[StyledSpan] = [
            (f"[{crop(sanitize.line(label), room)}]", "label") for label in self._labels(line)
        ]
        spans += self._runner(line, width)
        if line.is_head and width >= 50:
            spans.append((f"{wording.tokens(line.segment.tokens):>6}", "faint"))
            if line.segment.cost and width >= 60:
                spans.append((f"{wording.money(line.segment.cost):>6}", "faint"))
        header = line.segment.headers[line.row.last]
        if (
            width >= 70
            and line.what is not LineKind.FOLD
            and (line.is_head or header.kind == "user")
        ):
            spans.append((short_time(header.created_at, self.now), "faint"))
        if is_here:
            spans.append((HERE_MARK, "here"))
        gap = ("  ", "text")
        parted: list[StyledSpan] = []
        for run in spans:
            if parted:
                parted.append(gap)
            parted.append(run)
        return parted

    def _runner(self, line: TreeLine, width: int) -> list[StyledSpan]:
        """Return a list with the state of the runner whose branch ends in this line.

        A runner is one of the agents in a race. The list is empty if there is no such runner.
        """
        ids = line.segment.headers.ids[line.row.first : line.row.last + 1]
        is_fold = line.what is LineKind.FOLD
        if line.is_folded and not is_fold:
            return []
        runner = None
        for leaf, one in self.runners.items():
            is_below = is_fold and leaf > ids[-1] and self._is_in(leaf, line)
            if is_below or leaf in ids:
                runner = one
                break
        if runner is None:
            return []
        mark = race_text.STATE_MARKS[runner.state]
        text = ""
        if width >= 60:
            cost = wording.money(runner.cost) if runner.cost else ""
            parts = (runner.name, wording.plural(runner.steps, "step"), cost)
            text = dotted(*parts)
        return [(f"{mark} {sanitize.line(text)}".rstrip(), STYLES[runner.state])]

    def _labels(self, line: TreeLine) -> list[str]:
        if not self.labels:
            return []
        if line.what is LineKind.FOLD:
            shown = line.segment.headers.ids[line.row.last]
            labels = []
            for entry_id, text in self.labels.items():
                if entry_id > shown and self._is_in(entry_id, line):
                    labels.append(text)
            return labels
        ids = line.segment.headers.ids[line.row.first : line.row.last + 1]
        return [self.labels[entry_id] for entry_id in ids if entry_id in self.labels]

    def _is_in(self, entry_id: int, line: TreeLine) -> bool:
        """Return True if an entry is in the segment of a line, or in a segment below that one."""
        found = self.index.locate(entry_id)
        segment = None
        if found is not None:
            segment = found[0]
        while segment is not None and segment is not line.segment:
            segment = segment.parent
        return segment is not None

    def _entry(self, header: EntryHeader) -> tuple[str, str, str]:  # noqa: PLR0911 - one arm per kind
        text = sanitize.line(header.preview)
        match header.kind:
            case "user":
                entry = self.load(header.id)
                if isinstance(entry, UserEntry) and entry.synthetic:
                    return "Note: ", "faint", text
                return "You: ", "user", _MENTION.sub(_short_mention, text) or "(attachments)"
            case "assistant":
                return (
                    "Assistant: ",
                    "assistant",
                    plain_preview(header.kind, text) or self._unsaid(header),
                )
            case "tool_result":
                icon, style = self._icon(header.id)
                return f"{icon} ", style, _call(text)
            case "shell":
                return "$ ", "user", text.removeprefix("!")
            case "subagent":
                return "Subagent ", "faint", text
            case "compaction":
                return "", "faint", f"[{self._compaction(header)}]"
            case "branch_summary":
                return (
                    "[branch summary] ",
                    "faint",
                    plain_preview(header.kind, _HEADING.sub("", text)),
                )
            case "prune":
                return "", "faint", f"[{self._prune(header)}]"
            case "system":
                return "", "faint", f"[system prompt · {text}]"
            case kind:
                return "", "faint", f"[{kind.replace('_', ' ')} · {text}]"

    def _unsaid(self, header: EntryHeader) -> str:
        entry = self.load(header.id)
        if not isinstance(entry, AssistantEntry):
            return "(empty)"
        thought = any(part.type == "reasoning" for part in entry.parts)
        said = [entry.ending, "only reasoning" if thought else ""]
        return f"({', '.join(filter(None, said)) or 'empty'})"

    def _icon(self, entry_id: int) -> StyledSpan:
        found = self._icons.get(entry_id)
        if found is None:
            entry = self.load(entry_id)
            if isinstance(entry, ToolResultEntry):
                status = entry.status
            else:
                status = ToolStatus.COMPLETED
            found = self._icons[entry_id] = ICONS[status]
        return found

    def _compaction(self, header: EntryHeader) -> str:
        entry = self.load(header.id)
        if not isinstance(entry, CompactionEntry):
            return "compaction"
        by = " · by the provider" if entry.item else ""
        return f"compaction {wording.tokens(entry.tokens_before)} → {wording.tokens(entry.tokens_after)}{by}"

    def _prune(self, header: EntryHeader) -> str:
        entry = self.load(header.id)
        if not isinstance(entry, PruneEntry):
            return "prune"
        freed = wording.tokens(entry.tokens_freed)
        return f"{entry.effect} · {freed} tokens freed"

    def _fold(self, line: TreeLine) -> str:
        segment = line.segment
        hidden = segment.count - (line.row.last - line.row.first + 1)
        facts = [wording.plural(hidden, "entry")]
        if inside := segment.headers.of_kinds(["compaction"]):
            facts.append(f"[{self._compaction(segment.headers[inside[-1]])}]")
        ends = 0
        stack = [segment]
        while stack:
            below = stack.pop().children
            ends += not below
            stack += below
        if ends > 1:
            facts.append(wording.plural(ends, "branch"))
        return f"⊞ {' · '.join(facts)}"

    def _calls(self, headers: Headers, room: int) -> list[StyledSpan]:
        """Return the tool calls of a group that fit in ``room`` cells, and the number of others."""
        results = headers.of_kinds(["tool_result"])
        spans: list[StyledSpan] = []
        for position, at in enumerate(results):
            between: list[StyledSpan] = []
            if spans:
                between = [(" · ", "faint")]
            sign = " · ● " if spans else "● "
            text = _call(sanitize.line(headers[at].preview))
            left = len(results) - position
            more = ""
            if spans:
                more = f" · {left} more"
            need = cells(sign) + cells(text) + (cells(f" · {left - 1} more") if left > 1 else 0)
            if spans and need > room:
                spans.append((crop(more, room), "faint"))
                break
            icon, style = self._icon(headers.ids[at])
            spans += [
                *between,
                (f"{icon} ", style),
                (crop(text, max(room - cells(sign), 0)), "aside"),
            ]
            room -= cells(sign) + cells(text)
        return spans


def _short_mention(found: re.Match[str]) -> str:
    return f"@{found[1] or found[2]}"


def _call(text: str) -> str:
    """Return a tool call's tool and title. If the title is a path, only the file's name is kept."""
    tool, _, title = text.partition(" ")
    found = _PATH.match(title)
    if found:
        return f"{tool} {found[1]}"
    return text


def short_time(created_ms: int, now: float) -> str:
    """Return a local time in six cells: ``12:04`` today, ``3 Nov`` this year, else ``2025``.

    ``created_ms`` is in milliseconds since the epoch, and ``now`` in seconds.
    """
    then = datetime.fromtimestamp(created_ms / 1000)  # noqa: DTZ006 - local time
    today = datetime.fromtimestamp(now)  # noqa: DTZ006 - local time
    if then.date() == today.date():
        return f"{then:%H:%M}".rjust(6)
    if then.year == today.year:
        return f"{then.day} {then:%b}".rjust(6)
    return f"{then:%Y}".rjust(6)


def split_at_words(text: str, words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Split a text at the search words. Yield each piece, and whether it is a search word.

    Search words are found anywhere in the text, even inside other words. Case is ignored.
    """
    wanted = [word for word in words if word]
    if not wanted:
        yield text, False
        return
    pattern = re.compile(
        "|".join(map(re.escape, sorted(wanted, key=len, reverse=True))), re.IGNORECASE
    )
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        if match[0]:
            yield match[0], True
        end = match.end()
    if end < len(text):
        yield text[end:], False
