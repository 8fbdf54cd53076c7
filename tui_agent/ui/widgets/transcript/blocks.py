"""The blocks of the transcript: the units that the user can focus, fold, copy and act on.

A block has content, a fold (how much of the content is shown) and actions that the user can choose.
It lays out its own lines. The module build.py makes blocks from entries, and model.py stores them.
The blocks for tool calls and shell commands are in cards.py, the blocks for groups in groups.py,
and the blocks for finished turns in turns.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from tui_agent.app.format import plural
from tui_agent.context.context_status import Standing
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, body_lines
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.flows import MAX_TEXT_WIDTH
from tui_agent.ui.widgets.transcript.lines import (
    Line,
    StyledSpan,
    StyledSpans,
    cells,
    crop,
    crop_spans,
    spans_width,
    wrapped,
)

if TYPE_CHECKING:
    from tui_agent.app.frontend import Opened

ActionName = Literal["open", "retry", "undo", "restore", "jump", "enter", "edit", "compact"]

_LABELS: Final[Mapping[str, str]] = {"restore": "bring back"}
"""Labels of actions in the conversation. For all other actions, the label is the action's name."""

_SEPARATOR: Final = " · "
_READ: Final = "read"
_CLOSE: Final = "close"
_RULE_START: Final = "── "

SPINNER: Final = ("◐", "◓", "◑", "◒")

OPEN: Final = "▾"
CLOSED: Final = "▸"

_YOU: Final = "You  "

_LONG_MESSAGE: Final = 40
"""Maximum number of lines of a user's message that isn't folded at first."""
_PREVIEW_ROWS: Final = 24
"""Number of lines that are shown of a longer message while it is folded."""


class Fold(IntEnum):
    """How much of a block is shown: only its first line, a part of its body, or everything."""

    CLOSED = 0
    PART = 1
    FULL = 2


class Block:
    """A unit of the conversation that can be focused, such as an answer or a tool call.

    ``key`` identifies the block within its item. An item contains all blocks of one entry.
    """

    kind: ClassVar[str] = "block"

    tight: ClassVar[bool] = False
    """Whether closed blocks of this kind follow each other without empty lines."""

    foldable: bool = False

    left_out: bool = False
    """Whether the block is not shown, because its turn is folded or the model doesn't see it.

    The latter matters only if the user has chosen to see what the model sees.
    """

    group: "Block | None" = None
    """The group that contains this block. While the group is closed, the block is hidden.

    None if the block isn't in a group.
    """

    @property
    def hidden(self) -> bool:
        """Whether the block is not shown, because it is left out or is in a closed group."""
        return self.left_out or (self.group is not None and self.group.fold is Fold.CLOSED)

    actions: tuple[ActionName, ...] = ()
    """The actions that the user can choose on the block, most important first."""

    is_openable: bool = False
    """Whether the whole text of the block's entry can be opened on a separate screen."""

    entry: tuple[int, str] | None = None
    """Id and kind of the entry that the block shows. None if it is the same entry as the item's."""

    focusable: ClassVar[bool] = True
    """Whether the block can be focused."""

    document: MarkdownDocument | None = None
    """The block's Markdown text. None if the content of the block isn't Markdown."""

    copied: str = ""
    """The text to copy from the block if it has no `document`."""

    is_sendable: bool = True
    """Whether the block shows content that may be sent to the model.

    This is False for the program's own texts, such as an error message. The context status of such
    a block is ``UNSENT``.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.fold = Fold.FULL
        self._standing: Standing | None = None
        self._restores = False
        self._lines: Sequence[Line] = ()
        self._laid_out: tuple[int, Fold] | None = None

    @property
    def standing(self) -> Standing | None:
        """The block's context status, which says whether the model sees it.

        None if the status is unknown or not shown.
        """
        return self._standing

    def set_standing(self, standing: Standing | None, *, edited: bool = False) -> bool:
        """Set the block's context status. Return True if the block's lines have changed.

        The context status says whether the model receives the block's entry. ``standing`` is None
        if it is unknown. ``edited`` says that an edit or a prune caused the status. Unless the
        entry is pinned, the block then offers to bring the entry back (``restore``). In this base
        class, the lines never change.
        """
        self._standing = standing
        key_hints = self._restores
        self._restores = edited and standing is not Standing.PINNED
        if self._restores is not key_hints:
            kept = tuple(action for action in self.actions if action != "restore")
            if self._restores:
                self.actions = (*kept, "restore")
            else:
                self.actions = kept
        return False

    def lines(self, width: int) -> Sequence[Line]:
        """Return the lines of the block, laid out for a width in cells.

        The lines are cached until `invalidate` is called, or until the width or the fold changes.
        """
        if self._laid_out != (width, self.fold):
            self._lines = self._layout(width)
            self._laid_out = (width, self.fold)
        return self._lines

    def invalidate(self) -> None:
        """Drop the cached lines after the block's content has changed."""
        self._laid_out = None

    opened_with: "ClassVar[Opened | None]" = None
    """The kind of blocks that a single command opens together with this one.

    None if no such command opens this block.
    """

    def open_with_others(self, *, is_open: bool) -> None:
        """Unfold the block if ``is_open`` is True. Otherwise, restore its default fold.

        This is called when the user unfolds all blocks of one kind, `opened_with`, with a single
        command.
        """
        self.fold = Fold.FULL if is_open else Fold.CLOSED

    def choose_fold(self, fold: Fold) -> None:
        """Set the fold to the one that the user chose."""
        self.fold = fold

    def cycle(self) -> None:
        """Switch between the block's folds: show the whole block, or only its first line."""
        self.fold = Fold.CLOSED if self.fold is Fold.FULL else Fold.FULL

    def copy_text(self) -> str:
        """Return the sanitized text to copy from the block."""
        return sanitize.text(self.copied if self.document is None else self.document.source)

    def _layout(self, width: int) -> Sequence[Line]:
        raise NotImplementedError


class UserBlock(Block):
    """A message of the user: the text as typed, and the names of the attachments.

    ``note`` is shown before the text. If the user typed a command and another text was sent in its
    place, ``sent`` is that other text, which is folded at first.
    """

    kind = "user"
    is_openable = True

    def __init__(
        self, text: str, attachments: Sequence[str] = (), note: str = "", sent: str = ""
    ) -> None:
        super().__init__("user")
        self.starts_turn = True
        """Whether the message began a turn, that is, was sent while the agent wasn't running."""
        self.copied = sanitize.text(text)
        self._attachments = attachments
        self._note = note
        self._body = TextBody(self.copied, "user", " " * len(_YOU))
        self._sent: TextBody | None = None
        if sent:
            self._sent = TextBody(sanitize.text(sent), "muted")
        self.foldable = sent != "" or len(self._body) > _LONG_MESSAGE
        self.fold = Fold.PART if self.foldable else Fold.FULL

    def cycle(self) -> None:
        self.fold = Fold.PART if self.fold is Fold.FULL else Fold.FULL

    def _layout(self, width: int) -> Sequence[Line]:
        prefix = [(_YOU, "user-bar")]
        if self._note:
            prefix.append((f"{self._note} · ", "muted"))
        rows = None
        if self.fold is Fold.PART and len(self._body) > _LONG_MESSAGE:
            rows = _PREVIEW_ROWS
        text_width = min(width, MAX_TEXT_WIDTH)
        lines = list(body_lines(self._body, text_width, rows, "ends")) or [Line()]
        lines[0].prefix = tuple(prefix)
        if self._sent is not None:
            icon = OPEN if self.fold is Fold.FULL else CLOSED
            label = f"{icon} text sent for the command · {plural(len(self._sent), 'line')}"
            lines.append(
                Line(
                    crop_spans([(label, "marker act:toggle")], width - len(INDENT)),
                    prefix=((INDENT, "text"),),
                )
            )
            if self.fold is Fold.FULL:
                lines.extend(body_lines(self._sent, text_width))
        for name in self._attachments:
            spans = crop_spans([(sanitize.line(name), "muted")], width - len(INDENT))
            lines.append(Line(spans, prefix=((INDENT, "text"),)))
        return [_with_user_background(line) for line in lines]


def _with_user_background(line: Line) -> Line:
    """Return a copy of a line with the background color of the user's messages."""
    prefix = tuple((text, f"{style} user") for text, style in line.prefix)
    spans = [(text, f"{style} user") for text, style in line.content()]
    return Line(spans, prefix=prefix, join=line.join, lead=line.lead, fill="user")


class AnswerBlock(Block):
    """A part of the model's answer, in Markdown. More text may still arrive."""

    kind = "answer"
    is_openable = True
    document: MarkdownDocument

    def __init__(self, key: str, document: MarkdownDocument) -> None:
        super().__init__(key)
        self.document = document
        self.key_hints = ""
        """Hints for the keys that act on the answer, separated by “ · ”, most useful first."""

    def set_key_hints(self, keys: str) -> bool:
        """Set the key hints that follow the last line. Return True if they have changed.

        If ``keys`` is empty, the hints are removed. If not all hints fit in the line, the last ones
        are left out.
        """
        changed = keys != self.key_hints
        self.key_hints = keys
        if changed:
            self.invalidate()
        return changed

    def _layout(self, width: int) -> Sequence[Line]:
        if self.group is not None:
            return list(indented_lines(self.document, width))
        lines = self.document.lines(width)
        if not self.key_hints or not self.document.finished or not lines:
            return lines
        last = lines[-1]
        room = min(width, MAX_TEXT_WIDTH)
        left = room - spans_width(last.prefix) - spans_width(last.content()) - 2
        key_hints = self.key_hints
        while cells(key_hints) > left and key_hints:
            key_hints = key_hints.rpartition(" · ")[0]
        if not key_hints or last.tail or last.fill:
            return lines
        tail = ((key_hints, "muted"),)
        ended = Line(
            last.content(),
            prefix=last.prefix,
            tail=tail,
            join=last.join,
            lead=last.lead,
            extent=room,
        )
        return [*lines[:-1], ended]


class FoldingBlock(Block):
    """A block with a first line and a body. The body can be folded, and is folded at first."""

    foldable = True

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.fold = Fold.CLOSED

    def _head(self, width: int) -> Iterable[Line]:
        raise NotImplementedError

    def _body(self, width: int) -> Iterable[Line]:  # noqa: ARG002 - for subclasses
        return ()

    def _layout(self, width: int) -> Sequence[Line]:
        lines = list(self._head(width))
        if self.foldable and self.fold is not Fold.CLOSED:
            lines.extend(self._body(width))
        return lines

    @property
    def chevron(self) -> str:
        """The character that shows whether the block is open or closed."""
        return CLOSED if self.fold is Fold.CLOSED else OPEN


class ReasoningBlock(FoldingBlock):
    """A block that shows the model's reasoning."""

    kind = "reasoning"
    opened_with = "thinking"
    document: MarkdownDocument

    def __init__(self, key: str, document: MarkdownDocument) -> None:
        super().__init__(key)
        self.document = document

    def _head(self, width: int) -> Iterable[Line]:
        words = len(self.document.source.split())
        label = "Thought" if self.document.finished else "Thinking"
        spans = [
            (f"{self.chevron} ", "marker act:toggle"),
            (f"{label} · {plural(words, 'word')}", "marker act:toggle"),
        ]
        yield Line(prefix=crop_spans(spans, width))

    def _body(self, width: int) -> Iterable[Line]:
        return indented_lines(self.document, width)


class MarkerBlock(FoldingBlock):
    """A line about an event, such as a mode change, with optional actions and an optional body.

    If ``rule`` isn't empty, the line is drawn as a horizontal rule in the style ``rule``. The rule
    contains the text near its start and the actions at its end.
    """

    kind = "marker"
    tight = True

    def __init__(  # noqa: PLR0913 - the whole marker in one call
        self,
        key: str,
        text: str,
        *,
        icon: str = "",
        style: str = "marker",
        rule: str = "",
        actions: Sequence[ActionName] = (),
        body: Callable[[int], Iterable[Line]] | None = None,
        copied: str = "",
    ) -> None:
        super().__init__(key)
        self._text = sanitize.line(text)
        self._icon = icon
        self._style = style
        self._rule = rule
        self.actions = tuple(actions)
        self._labels = _LABELS
        self._make_body = body
        self.copied = copied or self._text
        self.foldable = body is not None

    def _head(self, width: int) -> Iterable[Line]:
        toggle = " act:toggle" if self.foldable else ""
        if self._rule:
            yield from self._rule_lines(width, toggle)
            return
        icon = self._icon or (self.chevron if self.foldable else "·")
        spans: list[StyledSpan] = [(self._text, f"{self._style}{toggle}")]
        for action in self.actions:
            spans += [(" · ", "muted"), (self._labels.get(action, action), f"action act:{action}")]
        first = ((f"{icon} ", f"{self._style}{toggle}"),)
        yield from wrapped(spans, max(width - 2, 1), first, ((INDENT, "text"),))

    def _rule_lines(self, width: int, toggle: str) -> Iterator[Line]:
        """Yield the lines of the horizontal rule, with its text and actions.

        If the actions don't fit, they are shown below the rule.
        """
        room = min(width, MAX_TEXT_WIDTH)
        offers: list[StyledSpan] = []
        if toggle:
            offers = [(_READ if self.fold is Fold.CLOSED else _CLOSE, "action act:toggle")]
        offers += [
            (self._labels.get(action, action), f"action act:{action}") for action in self.actions
        ]
        shown: list[StyledSpan] = []
        for offer in offers:
            if shown:
                shown.append((" · ", "muted"))
            shown.append(offer)
        start: StyledSpans = ((_RULE_START, self._rule + toggle),)
        taken = cells(_RULE_START) + cells(self._text) + spans_width(shown)
        fill = room - taken - (4 if shown else 1)
        if fill >= cells(_RULE_START):
            line: list[StyledSpan] = [(f" {'─' * (fill - 1)}", self._rule)]
            end: list[StyledSpan] = []
            if shown:
                end = [(" ", self._rule), *shown, (" ──", self._rule)]
            yield Line(
                [(self._text, self._rule + toggle)], prefix=start, tail=(*line, *end), extent=room
            )
            return
        indent = ("   ", "text")
        narrow = max(room - 3, 1)
        yield from wrapped([(self._text, self._rule + toggle)], narrow, start, (indent,))
        if shown:
            yield Line(prefix=(indent, *crop_spans(shown, narrow)))

    def _body(self, width: int) -> Iterable[Line]:
        if self._make_body is not None:
            return self._make_body(width)
        return ()


class CutOffBlock(MarkerBlock):
    """The text of a failed answer whose request was retried, and a line with the answer's id."""

    is_sendable = False

    def __init__(self, entry_id: int, said: str) -> None:
        """``said`` is the text of the answer.

        ``entry_id`` is the id of the answer's entry, which isn't on the path from the root to the
        leaf.
        """
        text = f"Cut off after {plural(len(said.split()), 'word')} · in the tree as #{entry_id}"
        body = partial(body_lines, TextBody(sanitize.text(said), "muted"))
        super().__init__("cut_off", text, icon="✗", style="muted", body=body, copied=said)
        self.fold = Fold.FULL

    def _layout(self, width: int) -> Sequence[Line]:
        if self.fold is Fold.CLOSED:
            return [*self._head(width)]
        return [*self._body(width), *self._head(width)]


class EndingBlock(MarkerBlock):
    """A line that says why an answer failed or was cut off. It is never sent to the model.

    ``retry`` is the key that retries the request, or "" if the user can't retry it. If
    ``may_be_retried`` is True, the line is muted until `fail` or `withdraw_retry` is called,
    because the program may still retry the request automatically.
    """

    is_sendable = False

    def __init__(
        self, text: str, *, icon: str, style: str, retry: str = "", may_be_retried: bool = False
    ) -> None:
        super().__init__(
            "ending", text, icon=icon, style=style, actions=("retry",) if retry else ()
        )
        if not retry.startswith("/"):
            self._labels = {**_LABELS, "retry": f"{retry} retry"}
        self._failure = icon, style, self.actions
        self._mending = may_be_retried
        if may_be_retried:
            self._icon = "·"
            self._style = "muted"
            self.actions = ()

    def fail(self) -> None:
        """Show the muted failure as an error, because no automatic retry has succeeded."""
        if self._mending:
            self._mending = False
            self._icon, self._style, self.actions = self._failure
            self.invalidate()

    def withdraw_retry(self, *, was_retried: bool) -> bool:
        """Remove the option to retry the request. Return True if the block has changed.

        If ``was_retried`` is True and the block shows an error, it then also says that the request
        was retried.
        """
        before = self._text, self._icon, self.actions
        self.fail()
        self.actions = ()
        if was_retried and self._icon == "✗":
            self._text = self.copied = f"Retried after an error: {self._text}"
            self._icon = "·"
            self._style = "muted"
        self.invalidate()
        return before != (self._text, self._icon, self.actions)


class ModelTextBlock(Block):
    """The text that the model receives in place of an entry.

    It is only shown if the user has chosen to see what the model sees.
    """

    kind = "model_text"

    def __init__(self, text: str, entry: tuple[int, str]) -> None:
        super().__init__(f"model-text:{entry[0]}")
        self.entry = entry
        self._body = TextBody(sanitize.text(text), "muted", "")

    def copy_text(self) -> str:
        return "\n".join(line.text for line in self._layout(MAX_TEXT_WIDTH))

    def _layout(self, width: int) -> Sequence[Line]:
        return list(body_lines(self._body, min(width, MAX_TEXT_WIDTH)))


class ActivityBlock(Block):
    """The last line of the conversation, which shows a spinner and what the agent is doing."""

    kind = "activity"
    focusable = False
    running = True

    def __init__(self, describe: Callable[[], str]) -> None:
        """``describe`` returns the text of the line, that is, what the agent is doing.

        It is called each time the line is laid out.
        """
        super().__init__("activity")
        self._describe = describe
        self._frame = 0

    def tick(self, now: float, *, moving: bool) -> None:  # noqa: ARG002 - it has a clock of its own
        self._frame += moving
        self.invalidate()

    def _layout(self, width: int) -> Sequence[Line]:
        icon = SPINNER[self._frame % len(SPINNER)]
        text = _fitting_parts(self._describe(), max(min(width, MAX_TEXT_WIDTH) - 2, 1))
        return [Line(prefix=((f"{icon} ", "status-running"), (text, "muted")))]


def _fitting_parts(text: str, width: int) -> str:
    """Return the first parts of a text, as many as fit in ``width`` cells.

    The parts are separated by ``·``. If even the first part doesn't fit, it is cut.
    """
    parts = sanitize.line(text).split(_SEPARATOR)
    while len(parts) > 1 and cells(_SEPARATOR.join(parts)) > width:
        parts.pop()
    return crop(_SEPARATOR.join(parts), width)


def indented_lines(document: MarkdownDocument, width: int) -> Iterable[Line]:
    """Return the lines of a Markdown document, indented by two cells.

    Including the indentation, a line is at most ``width`` cells wide.
    """
    return map(ShiftedLine, document.lines(max(width - len(INDENT), 1)))


class ShiftedLine(Line):
    """A copy of a line that is indented by two cells.

    The original line, which other code may share, stays unchanged.
    """

    __slots__ = ("_line",)

    def __init__(self, line: Line) -> None:
        super().__init__(
            prefix=((INDENT, "text"), *line.prefix),
            tail=line.tail,
            join=line.join,
            lead=line.lead,
            fill=line.fill,
            extent=line.extent + len(INDENT) if line.extent else 0,
        )
        self._line = line

    def content(self) -> Sequence[StyledSpan]:
        return self._line.content()


def head_line(
    left: Sequence[StyledSpan], facts: Sequence[StyledSpan], end: StyledSpans, width: int
) -> Line:
    """Return a block's first line: ``left`` at its start, and ``facts`` and ``end`` at its end.

    ``left`` consists of an icon and a text. If the line would be longer than ``width`` cells, facts
    are left out, beginning with the first. If that isn't enough, the text is cut.
    """
    width = min(width, MAX_TEXT_WIDTH)
    shown = [fact for fact in facts if fact[0]]
    while True:
        tail: list[StyledSpan] = []
        for fact in shown:
            if tail:
                tail.append((" · ", "muted"))
            tail.append(fact)
        needed = spans_width(tail) + spans_width(end) + 2
        if not shown or needed + min(spans_width(left), width // 2) <= width:
            break
        shown.pop(0)
    room = max(width - needed, 1)
    icon, *text = crop_spans(left, room)
    return Line(text, prefix=(icon,), tail=(*tail, *end), extent=width)
