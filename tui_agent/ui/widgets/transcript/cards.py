"""Cards, the blocks that show a tool call, its progress and its result.

A card also decides how much of a result is shown at first. This module also contains the block for
a finished shell command that the user ran.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from tui_agent.app import format as wording
from tui_agent.context.context_status import Standing
from tui_agent.json_text import loads
from tui_agent.permission import reason_in
from tui_agent.session.entries import (
    ShellEntry,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    Truncation,
)
from tui_agent.tools.outputs import size_text
from tui_agent.tools.registry import tool_traits
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.blocks import (
    SPINNER,
    ActionName,
    Fold,
    FoldingBlock,
    ShiftedLine,
    head_line,
)
from tui_agent.ui.widgets.transcript.bodies import (
    INDENT,
    MAX_ROWS,
    OPEN_WHOLE_HINT,
    Body,
    Keep,
    MatchBody,
    NumberedBody,
    TextBody,
    TodoBody,
    body_lines,
)
from tui_agent.ui.widgets.transcript.diffs import DiffBody
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan, StyledSpans, crop
from tui_agent.ui.widgets.transcript.source import SizeOf, stored_size

RUNNING: Final = "running"
"""The status of a call that is running. A finished call has a ``ToolStatus`` as its status."""
WAITING: Final = "waiting"
"""The status of a call that has not started yet."""

_LIVE_CHARS: Final = 20_000
"""Maximum number of characters of a call's output that are kept until the result arrives."""

_DIFF_ROWS: Final = 20
_OUTPUT_ROWS: Final = 6
_SHELL_ROWS: Final = 12

ICONS: Final = {
    WAITING: ("○", "status-idle"),
    RUNNING: (SPINNER[0], "status-running"),
    ToolStatus.COMPLETED: ("●", "status-ok"),
    ToolStatus.ERROR: ("✗", "status-error"),
    ToolStatus.DENIED: ("⊘", "status-warning"),
    ToolStatus.INTERRUPTED: ("◌", "status-warning"),
}

_USER_COMMAND: Final = "$"
"""The tool name on the card of a running shell command that the user entered."""
_TITLE_ARGUMENTS: Final = ("command", "pattern", "path", "file_path", "url", "query", "description")
_TITLE_VALUE: Final = re.compile(
    r'"(' + "|".join(_TITLE_ARGUMENTS) + r')"\s*:\s*"((?:[^"\\]|\\.)*)'
)
_COUNT_IN_TITLE: Final = re.compile(r" · (\d[\d,]* [a-z]+)\Z")


class CardBlock(FoldingBlock):
    """Shows a tool call with its result, or with the output so far if there is no result yet."""

    kind = "card"
    tight = True
    opened_with = "outputs"

    def __init__(
        self,
        call: ToolCallPart,
        result: ToolResultEntry | None = None,
        size_of: SizeOf = stored_size,
    ) -> None:
        super().__init__(f"call:{call.call_id}")
        self._size_of = size_of
        self.call_id = call.call_id
        self.tool = sanitize.line(call.tool)
        self.traits = tool_traits()[self.tool]
        self.status: str = WAITING
        self.frame = 0

        self.arguments = call.arguments
        self._as_text = call.as_text
        self._title = ""
        self._live = ""
        self._result: ToolResultEntry | None = None
        self.metadata = ToolMetadata()
        self._seconds = 0.0
        self._began = 0.0
        self._elapsed = 0.0
        self.problems = 0
        """Number of new problems in files, such as errors, that the edits of this call caused."""
        self.is_outdated = False
        """Whether a later tool call has replaced the to-do list that this call wrote."""
        self._edited = False
        """Whether an edit or a prune changed what the model receives for this call."""
        self._content: Body | None = None
        self._is_fold_chosen = False
        """Whether the user has chosen how much of this card is shown."""
        self._all_opened = False
        """Whether the user has opened the outputs of all cards with a single command."""
        self._width = 0
        if result is not None:
            self.set_result(result)
        self.fold_by_default()

    @property
    def running(self) -> bool:
        return self.status == RUNNING

    @property
    def has_result(self) -> bool:
        return self._result is not None

    @property
    def icon(self) -> StyledSpan:
        icon, style = ICONS.get(self.status, ("●", "status-ok"))
        return (
            f"{SPINNER[self.frame % len(SPINNER)] if self.running else icon} ",
            f"{style} act:toggle",
        )

    @property
    def tokens(self) -> int:
        """Size of the whole result, in tokens of the current model. 0 if there is no result yet."""
        if self._result is not None:
            return self._size_of(self._result)
        return 0

    @property
    def elapsed(self) -> str:
        """How long the call has been running, as text.

        Empty if it has been running for less than a second, or isn't running.
        """
        if self.running and self._elapsed >= 1:
            return wording.seconds(self._elapsed)
        return ""

    # -- progress of a call

    def write(self, arguments: str) -> None:
        """Update the arguments of the call from JSON text, which may still be incomplete."""
        self.arguments = arguments
        self._content_changed()

    def start(self, title: str, arguments: str, now: float = 0.0) -> None:
        """Show the call as running.

        ``now`` is the start time, in seconds of the clock that `tick` uses. If ``arguments`` is
        empty, the card keeps the arguments that have been streamed so far.
        """
        self.status = RUNNING
        self._began = now
        self._elapsed = 0.0
        self._title = title
        self.arguments = arguments or self.arguments
        self._update_actions()
        self.fold_by_default()
        self._content_changed()

    def tick(self, now: float, *, moving: bool) -> None:
        """Update the elapsed time on the card. If ``moving`` is True, also advance the spinner.

        ``now`` is the current time in seconds.
        """
        before = self.elapsed
        self._elapsed = now - self._began
        self.frame += moving
        if moving or self.elapsed != before:
            self.invalidate()

    def outdate(self) -> None:
        """Fold the card and mark its to-do list as outdated, because a later list replaces it."""
        self.is_outdated = True
        self.fold_by_default()
        self.invalidate()

    @property
    def is_user_command(self) -> bool:
        """Whether this is a shell command that the user entered, not a call of the model."""
        return self.tool == _USER_COMMAND

    def is_shell(self, command: str) -> bool:
        """Return True if this is the card of the shell command ``command`` entered by the user."""
        return self.is_user_command and self._title == command

    def add_output(self, text: str) -> None:
        self._live = (self._live + text)[-_LIVE_CHARS:]
        self.fold_by_default()
        self._content_changed()

    def finish(self, status: str, metadata: ToolMetadata, seconds: float) -> None:
        """Show that the call has ended. Its streamed output stays until `set_result` is called."""
        self.status = status
        self.metadata = metadata
        self._seconds = seconds
        self._content_changed()

    def stop(self) -> None:
        """Show the call as interrupted if it is still unfinished, because no result will follow."""
        if self.status in {RUNNING, WAITING}:
            self.status = ToolStatus.INTERRUPTED
            self._content_changed()

    def set_result(self, result: ToolResultEntry) -> None:
        self._result = result
        self.is_openable = True
        self.entry = (result.id, result.kind)
        self.status = result.status
        self.metadata = result.metadata
        self._title = result.title or self._title
        if result.ended_at > result.started_at > 0:
            self._seconds = (result.ended_at - result.started_at) / 1000
        self._live = ""
        self._update_actions()
        self.fold_by_default()
        self._content_changed()

    def _update_actions(self) -> None:
        hidden = self._edited and self.standing is not Standing.PINNED
        entered = self.metadata.of_subagent or (self.traits.starts_agents and self.running)
        actions: list[ActionName] = []
        if hidden:
            actions.append("restore")
        if entered:
            actions.append("enter")
        self.actions = tuple(actions)

    def set_standing(self, standing: Standing | None, *, edited: bool = False) -> bool:
        if (standing, edited) == (self._standing, self._edited):
            return False
        self._standing = standing
        self._edited = edited
        self._update_actions()
        self._content_changed()
        return True

    # -- folding

    def choose_fold(self, fold: Fold) -> None:
        """Set the fold to the one that the user chose.

        After that, `fold_by_default` has no effect.
        """
        self.fold = fold
        self._is_fold_chosen = True

    def cycle(self) -> None:
        """Switch to the next of the card's folds.

        A card first shows a part of its body, then the whole body (if there is more), and then only
        its first line.
        """
        rows = self._row_limit()[0] or MAX_ROWS
        hidden = len(self._shown_body(self._width)) > rows + 1
        if self.fold is Fold.CLOSED:
            self.choose_fold(Fold.PART)
        elif self.fold is Fold.PART and hidden:
            self.choose_fold(Fold.FULL)
        else:
            self.choose_fold(Fold.CLOSED)

    def open_with_others(self, *, is_open: bool) -> None:
        self._all_opened = is_open
        self._is_fold_chosen = False
        self.fold_by_default()

    def fold_by_default(self) -> None:
        """Set the fold that suits the kind and status of the call.

        If the user has chosen a fold, that fold is kept.
        """
        if self._is_fold_chosen:
            return
        if self._all_opened:
            self.fold = Fold.FULL
            return
        prints = bool(self._live) and not self.traits.starts_agents
        is_log = self.traits.output == "log" or self.tool == _USER_COMMAND
        shows_list = (
            self.traits.state == "list" and self._result is not None and not self.is_outdated
        )
        shows_itself = (
            self.metadata.diff or is_log or prints or shows_list or self.status == ToolStatus.ERROR
        )
        denied = self.status in {ToolStatus.DENIED, ToolStatus.INTERRUPTED}
        self.fold = Fold.PART if shows_itself and not denied else Fold.CLOSED

    def invalidate(self) -> None:
        super().invalidate()
        if self.group is not None:
            self.group.invalidate()

    def _layout(self, width: int) -> Sequence[Line]:
        if self.group is None:
            return super()._layout(width)
        return list(map(ShiftedLine, super()._layout(max(width - len(INDENT), 1))))

    def _content_changed(self) -> None:
        self._content = None
        self.invalidate()

    # -- showing

    def copy_text(self) -> str:
        """Return the text to copy from the card.

        For a call that changed a file, this is the diff. For other calls, it is the output, or the
        arguments if there is no output.
        """
        if self.metadata.diff:
            return sanitize.text(self.metadata.diff)
        if self._result:
            text = self._result.output
        else:
            text = self._live
        if text:
            return sanitize.output(text)
        return sanitize.text(self.arguments)

    @property
    def title(self) -> str:
        """One line that says what the call acts on, such as a path.

        Until the call has a title of its own, the line is made from the arguments.
        """
        title = self._title
        if not title:
            # The argument that says most about the call. A regular expression finds it even if the
            # JSON is still incomplete.
            found: dict[str, str] = dict(_TITLE_VALUE.findall(self.arguments[:4_000]))
            argument = next(filter(None, map(found.get, _TITLE_ARGUMENTS)), "")
            title = argument.replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")[:200]
        return sanitize.line(_COUNT_IN_TITLE.sub("", title))

    def _head(self, width: int) -> Iterable[Line]:
        left: list[StyledSpan] = [
            self.icon,
            (self.tool, "tool act:toggle"),
            (f" {self.title}", "title act:toggle"),
        ]
        yield head_line(
            left, self._facts(width), ((f"  {self.chevron}", "muted act:toggle"),), width
        )

    def _failure_text(self, width: int) -> str:
        """Return the status of a failed call, such as “error”, to show on the card.

        If the call was denied, the reason is added, cut to fit.
        """
        if self._result is None or self.status != "denied":
            return self.status
        why = sanitize.line(reason_in(self._result.output))
        if not why:
            return self.status
        return f"{self.status}: {crop(why, max(12, width // 2 - len(self.status) - 6))}"

    def _facts(self, width: int) -> Sequence[StyledSpan]:
        metadata = self.metadata
        said = ("written as text" if self._as_text else "", self.elapsed)
        facts: list[StyledSpan] = [(text, "muted") for text in said if text]
        if self.status in {ToolStatus.ERROR, ToolStatus.DENIED, ToolStatus.INTERRUPTED}:
            facts.append((self._failure_text(width), ICONS[self.status][1]))
        if metadata.exit_code:
            facts.append((f"exit {metadata.exit_code}", "status-warning"))
        if lines := wording.lines_text(metadata.additions, metadata.deletions):
            facts.append((lines, "muted"))
        if self.problems:
            facts.append((wording.plural(self.problems, "new problem"), "status-warning"))
        if metadata.count is not None:
            facts.append((wording.plural(metadata.count, self.traits.counts or "line"), "muted"))
        if metadata.truncation is not None:
            facts.append((f"{_share_shown(metadata.truncation)} shown", "muted"))
        if self.status in {ToolStatus.COMPLETED, ToolStatus.ERROR} and self._seconds >= 0.05:
            facts.append((wording.duration(self._seconds), "muted"))
        if self._edited and self.standing is not None:
            facts.append((self.standing.value, "standing-label"))
            if "restore" in self.actions:
                if self.tokens:
                    facts.append((wording.token_count(self.tokens), "standing-label"))
                facts.append(("bring back", "action act:restore"))
        if "enter" in self.actions:
            facts.append(("enter", "action act:enter"))
        return facts

    def _body(self, width: int) -> Iterable[Line]:
        for row in self._argument_rows():
            yield from TextBody(row, "code-inline").row(0, width)
        self._width = width
        yield from body_lines(self._shown_body(width), width, *self._row_limit(), opens=True)
        if self._result is not None and self._result.full_output and self.fold is not Fold.CLOSED:
            # If the output wasn't cut, the full output is stored only if the text lacks some of its
            # bytes.
            what = "Some control characters or bytes are left out"
            if self.metadata.truncation is not None:
                share = _share_shown(self.metadata.truncation, lines=" lines")
                what = f"Output was cut, {share} shown"
            yield Line(prefix=((INDENT, "text"), (f"{what} · ", "muted"), OPEN_WHOLE_HINT))

    def _argument_rows(self) -> list[str]:
        """Return the rows of text with the arguments of the call, which are shown above the output.

        For a command with several lines, these are its lines, but only the first ones unless the
        card is fully unfolded. For other calls, these are the arguments as JSON, but only if the
        card is fully unfolded and its title doesn't show them. Otherwise, there are none.
        """
        try:
            arguments = loads(self.arguments)
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return []
        command = arguments.get("command")
        if isinstance(command, str) and "\n" in command.strip():
            rows = [f"$ {row}" for row in sanitize.text(command).strip().split("\n")]
            if self.fold is Fold.FULL:
                return rows
            return [*rows[:_OUTPUT_ROWS], *["…"][: len(rows) > _OUTPUT_ROWS]]
        if self.fold is Fold.FULL and not self.traits.says_arguments and arguments:
            return [sanitize.text(json.dumps(arguments, ensure_ascii=False))]
        return []

    def _row_limit(self) -> tuple[int | None, Keep]:
        """Return the arguments ``rows`` and ``keep`` to pass to `body_lines`."""
        if self.fold is Fold.FULL:
            return None, "head"
        if self.metadata.diff or self.traits.state == "list":
            return _DIFF_ROWS, "head"
        return (
            _OUTPUT_ROWS,
            "tail" if self.traits.output == "log" or self._result is None else "head",
        )

    def _shown_body(self, width: int) -> Body:
        if self._content is None:
            self._content = self._make_body()
        if isinstance(self._content, DiffBody):
            return self._content.for_width(width)
        return self._content

    def _make_body(self) -> Body:
        failed = self.status in {ToolStatus.ERROR, ToolStatus.DENIED}
        if self.metadata.diff and not failed:
            return DiffBody(sanitize.text(self.metadata.diff))
        output = sanitize.output(self._result.output if self._result else self._live)
        if failed:
            return TextBody(output)
        if self.traits.output == "numbered" and "\t" in output:
            return NumberedBody(output, self.metadata.path or self.title)
        if self.traits.state == "list":
            return TodoBody(output)
        if self.traits.output == "matches":
            return MatchBody(output)
        return TextBody(output)


class ShellBlock(FoldingBlock):
    """A finished shell command that the user ran with ``!``, with its output."""

    kind = "shell"
    is_openable = True
    opened_with = "outputs"

    def __init__(self, entry: ShellEntry) -> None:
        super().__init__("shell")
        self._entry = entry
        output = sanitize.output(entry.output)
        self.copied = output or entry.command
        self._rows = TextBody(output)
        self.foldable = len(self._rows) > 0
        self.fold = Fold.PART

    def open_with_others(self, *, is_open: bool) -> None:
        self.fold = Fold.FULL if is_open else Fold.PART

    def cycle(self) -> None:
        """Switch to the next of the card's folds.

        A card first shows the end of the output, then all of it (if there is more), and then only
        its first line.
        """
        if self.fold is Fold.PART and len(self._rows) <= _SHELL_ROWS + 1:
            self.fold = Fold.CLOSED
        else:
            self.fold = Fold((self.fold + 1) % len(Fold))

    def _head(self, width: int) -> Iterable[Line]:
        entry = self._entry
        left: list[StyledSpan] = [
            ("$ ", "user-bar act:toggle"),
            (sanitize.line(entry.command), "title act:toggle"),
        ]
        facts: list[StyledSpan] = []
        if entry.exit_code:
            facts.append((f"exit {entry.exit_code}", "status-warning"))
        if entry.excluded:
            facts.append(("not shown to the model", "muted"))
        end: StyledSpans = ()
        if self.foldable:
            end = ((f"  {self.chevron}", "muted act:toggle"),)
        yield head_line(left, facts, end, width)

    def _body(self, width: int) -> Iterable[Line]:
        return body_lines(
            self._rows, width, None if self.fold is Fold.FULL else _SHELL_ROWS, "tail"
        )


def _share_shown(truncation: Truncation, lines: str = "") -> str:
    """Return how much of an output is shown, for example "20 of 3,000".

    The numbers count lines, and the text ``lines`` is appended. If no whole line is missing, they
    count bytes.
    """
    if truncation.kept_lines < truncation.total_lines:
        return f"{truncation.kept_lines:,} of {truncation.total_lines:,}{lines}"
    return f"{size_text(truncation.kept_bytes)} of {size_text(truncation.total_bytes)}"
