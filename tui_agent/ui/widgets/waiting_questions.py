"""Questions shown above the prompt, as data: text, reason, details, and answers with their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tui_agent.agent.checkpoints.restoring import ChangedFile
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionRequest
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice, DiffPage, Output, Page
from tui_agent.app.permission_text import (
    Answer,
    answers,
    asked_parts,
    change_mark,
    first_answers,
    is_risky,
    question,
    why,
)
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, body_lines
from tui_agent.ui.widgets.transcript.line_view import diff_lines
from tui_agent.ui.widgets.transcript.lines import Line, crop_spans

LOOP_RESULTS = 3
"""Maximum results of a repeated call that are shown."""
LOOP_LINES = 3
"""Maximum lines shown of each result of a repeated call."""

MAX_FIRST = 7
"""Maximum answers of a choice shown at first; of more answers, one fewer is shown, and “more…”."""


class WaitingQuestion:
    """Base of the questions that can wait above the prompt for an answer."""

    key: str
    """Identifies the question among the waiting ones."""
    what: str
    """The question, in one line."""
    why: str
    """Why the question is asked, in one line; may be empty."""
    at: str | None
    """Name of the answer that the cursor begins on."""
    ticks: Sequence[str] = ()
    """Names of the answers with a tick box, which Space chooses at the cursor."""
    after_digits: str | None = None
    """Name of the answer that the cursor begins on if the user ticked by a digit just before."""
    rules: Sequence[str] = ()
    """Rules that the user may change before answering, such as ``allow bash: git *``."""
    takes_words = False
    """Whether a text sent from the prompt answers the question."""
    takes_keys = True
    """Whether the question takes the keyboard focus without a Tab or a click."""
    is_awaited = False
    """Whether the user asked for the question and waits for it: it takes keys at once."""
    comes_first = False
    """Whether the question has to be answered before a message can be sent."""

    def lines(self, width: int) -> Iterator[Line]:
        """Return the details of the question as lines for a width in cells."""
        raise NotImplementedError

    def answers(self, rules: Sequence[str]) -> list[Answer]:
        """Return all answers. ``rules``: the question's rules, with the edits made by the user."""
        raise NotImplementedError

    def first(self) -> Sequence[str]:
        """Return the names of the answers shown before the user asks for more."""
        raise NotImplementedError

    def page(self) -> Page | None:
        """Return the page with all details of the question; None (the default) if there is none."""
        return None

    def settle(self, name: str, words: str = "", patterns: tuple[str, ...] = ()) -> None:
        """Answer the question with the answer called ``name``.

        ``words`` is a note by the user. ``patterns`` are the patterns of all rules, in order, if
        the user changed any of them.
        """
        raise NotImplementedError

    def leave(self) -> bool:
        """Settle the question with no answer; return False, and do nothing, if it needs an answer.

        By default, a question needs an answer.
        """
        return False


class ToolCallQuestion(WaitingQuestion):
    """The question whether a tool call may run, because it needs permission or repeats itself."""

    takes_words = True

    def __init__(
        self, request: PermissionRequest, settle: Callable[[PermissionAnswer], None]
    ) -> None:
        self.request = request
        self.key = request.call_id
        self.what = question(request)
        self.why = why(request)
        self.rules = request.rules
        self.at = "deny" if is_risky(request) else "once"
        self._settle = settle

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the details of the call as lines; which ones depends on why permission is asked.

        In a doom loop, these are the results of the repeated calls. Else the command with its parts
        that need permission; else the diffs, commands and other texts that need it.
        """
        request = self.request
        if request.loop:
            yield from _loop_lines(request, width)
            return
        if asked := asked_parts(request):
            yield from _text_lines(request.command.strip(), "strong", width)
            for text in asked:
                yield Line(crop_spans([("asks for  ", "muted"), (text, "text")], width))
            return
        details = [(need.detail or need.pattern, need.detail_kind) for need in request.needs]
        for text, kind in dict.fromkeys(details):
            if text and kind == "diff":
                yield from diff_lines(text, width)
            elif text and text not in self.what:
                yield from _text_lines(text, "strong" if kind == "command" else "text", width)

    def answers(self, rules: Sequence[str]) -> list[Answer]:
        return answers(self.request, rules)

    def first(self) -> Sequence[str]:
        return first_answers(self.request)

    def page(self) -> Page | None:
        request = self.request
        if diffs := [need for need in request.needs if need.detail_kind == "diff"]:
            files = []
            for need in diffs:
                mark = change_mark(need.detail)
                files.append(ChangedFile(mark, need.pattern, "", need.detail))
            return DiffPage(self.what, files)
        parts = [
            request.command,
            *(need.detail or need.pattern for need in request.needs),
            *request.loop,
        ]
        return Output(self.what, "\n\n".join(dict.fromkeys(filter(None, parts))))

    def settle(self, name: str, words: str = "", patterns: tuple[str, ...] = ()) -> None:
        if name == "note":
            decision = Decision.DENY
        else:
            decision = Decision(name)
        self._settle(PermissionAnswer(decision, words, patterns=patterns))


class ChoiceQuestion(WaitingQuestion):
    """A question with a few answers; ``settle`` gets the answer's name, None for no answer."""

    def __init__(self, choice: Choice, settle: Callable[[str | None], None]) -> None:
        self.key = f"choice-{id(self)}"
        self.choice = choice
        self.what = choice.question
        self.why = choice.why
        self.takes_keys = not choice.by_tab
        self.comes_first = choice.comes_first
        self._settle = settle
        self._names = [name for name, _text in choice.answers]
        self.ticks = self._names[: choice.ticks]
        if choice.goes_on:
            self.after_digits = self._names[choice.ticks]
        if choice.at in self._names:
            self.at = choice.at
        else:
            self.at = self._names[0]

    def lines(self, width: int) -> Iterator[Line]:
        if self.choice.details:
            yield from _text_lines(self.choice.details, "text", width)
        for file in self.choice.files:
            if file.diff:
                yield from diff_lines(file.diff, width)

    def answers(self, rules: Sequence[str]) -> list[Answer]:  # noqa: ARG002 - as inherited
        return [
            Answer(name, key, text)
            for (name, text), key in zip(self.choice.answers, self.choice.keys, strict=True)
        ]

    def first(self) -> Sequence[str]:
        shows_all = self.choice.by_tab or len(self._names) <= MAX_FIRST
        if shows_all:
            return self._names
        return self._names[: MAX_FIRST - 1]

    def page(self) -> Page | None:
        if self.choice.files:
            return DiffPage(self.what, self.choice.files)
        if self.choice.details:
            return Output(self.what, self.choice.details)
        return None

    def settle(self, name: str, words: str = "", patterns: tuple[str, ...] = ()) -> None:
        del words, patterns
        self._settle(name)

    def leave(self) -> bool:
        self._settle(None)
        return True


def _text_lines(text: str, style: str, width: int) -> Iterable[Line]:
    return body_lines(TextBody(visible(text), style, ""), width)


def _loop_lines(request: PermissionRequest, width: int) -> Iterator[Line]:
    yield from _text_lines(one_line(f"{request.tool} {request.title}", 400), "strong", width)
    # For an answer that repeats itself, ``loop`` holds its text twice.
    if request.question:
        first = len(request.loop) - 1
    else:
        first = max(0, len(request.loop) - LOOP_RESULTS)
    for number, result in enumerate(request.loop[first:], first + 1):
        kept = visible(result).strip().splitlines()
        more = ""
        if len(kept) > LOOP_LINES:
            more = f"  … {len(kept) - LOOP_LINES} more lines"
        if request.question:
            name = "repeated text"
        else:
            name = f"result {number} of {len(request.loop)}"
        yield Line([(f"{name}{more}", "muted")])
        for text in kept[:LOOP_LINES] or ["(nothing)"]:
            yield Line(
                crop_spans([(one_line(text), "text")], width - len(INDENT)),
                prefix=((INDENT, "text"),),
            )
