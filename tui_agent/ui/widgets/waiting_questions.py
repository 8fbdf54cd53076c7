"""The questions that can wait above the prompt: their text, reason, details and answers.

`QuestionPrompt` shows the questions, and lets the user choose an answer. Each question passes its
answer to the code that asked it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tui_agent.agent.checkpoints.restoring import ChangedFile
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionRequest
from tui_agent.app.format import one_line, plural, visible
from tui_agent.app.frontend import Choice, DiffPage, Output, Page
from tui_agent.app.permission_text import (
    YES_AND,
    Answer,
    answers,
    asked_parts,
    change_mark,
    details_of,
    first_answers,
    is_risky,
    note_hint,
    question,
    why,
)
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, body_lines
from tui_agent.ui.widgets.transcript.line_view import diff_lines
from tui_agent.ui.widgets.transcript.lines import Line, crop_spans

LOOP_RESULTS = 3
"""Maximum number of results shown for a repeated tool call."""
LOOP_LINES = 3
"""Maximum number of lines shown of each result when a tool call is repeated."""

MAX_FIRST = 7
"""Maximum number of rows that a choice lists at first.

If there are more answers, the last of these rows is “more…”.
"""


class WaitingQuestion:
    """Base class of the questions that wait above the prompt for the user's answer."""

    key: str
    """Identifies the question. Two questions with the same key can't wait at the same time."""
    what: str
    """The text of the question, in one line."""
    why: str
    """The reason why the question is asked, in one line. May be empty."""
    at: str | None
    """Name of the answer that is highlighted first, or None for the first answer."""
    ticks: Sequence[str] = ()
    """Names of the answers with a tick box.

    Space chooses such an answer while it is highlighted.
    """
    after_digits: str | None = None
    """Name of the answer that is highlighted first if the user answered the last question by key.

    A key is the answer's letter or number. If the value is None, ``at`` is used in this case, too.
    """
    rules: Sequence[str] = ()
    """The rules that the user may edit before answering, such as ``allow bash: git *``."""
    takes_words = False
    """Whether any text sent from the prompt answers the question."""
    takes_keys = True
    """Whether the question receives the focus on its own, without Tab or a click.

    Keys then answer the question.
    """
    is_awaited = False
    """Whether the user is waiting for the question. If so, it may receive the focus immediately."""
    comes_first = False
    """Whether the question must be answered before a message can be sent."""

    def lines(self, width: int) -> Iterator[Line]:
        """Return the details of the question as lines of at most ``width`` cells."""
        raise NotImplementedError

    def answers(self, rules: Sequence[str]) -> list[Answer]:
        """Return all answers. ``rules`` are the question's rules, perhaps edited by the user."""
        raise NotImplementedError

    def first(self) -> Sequence[str]:
        """Return the names of the answers that are listed before the user chooses “more…”."""
        raise NotImplementedError

    def page(self) -> Page | None:
        """Return a screen with all details of the question.

        Returns None, the default, if there is no such screen.
        """
        return None

    def settle(self, name: str, words: str = "", patterns: tuple[str, ...] = ()) -> None:
        """Answer the question with the answer whose name is ``name``.

        ``words`` is the user's note. If the answer stores rules and the user has changed a rule,
        ``patterns`` contains the patterns of all rules, in order. Otherwise, ``patterns`` is empty.
        """
        raise NotImplementedError

    def note_hint(self, name: str) -> str:  # noqa: ARG002 - for those that take one
        """Return the placeholder of the field for a note to the answer ``name``.

        Returns "" if this answer takes no note.
        """
        return ""

    def dismiss(self) -> bool:
        """Dismiss the question without an answer. Return False if it can't be dismissed.

        In this base class, the method does nothing and returns False.
        """
        return False


class ToolCallQuestion(WaitingQuestion):
    """Asks whether a tool call that needs permission may run, or a doom loop may continue.

    In a doom loop, the model repeats the same tool call. ``settle`` is called with the user's
    answer.
    """

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
        """Yield the details of the call as lines.

        For a doom loop, in which the model repeats the same call, these are the results of the
        repeated calls. For a command, they are the whole command and those of its parts that need
        permission and are not named in the reason. For any other call, they are the diffs and texts
        that need permission.
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
        for text, kind in details_of(request):
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

    def note_hint(self, name: str) -> str:
        return note_hint(name)


class ChoiceQuestion(WaitingQuestion):
    """Asks the user to choose one of several answers.

    ``settle`` is called with the name of the answer, followed by a space and the user's note if
    there is one. If the user dismisses the question, ``settle`` is called with None.
    """

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
        del patterns
        self._settle(f"{name} {words}".strip())

    def note_hint(self, name: str) -> str:
        if name in self.choice.noted:
            return YES_AND
        return ""

    def dismiss(self) -> bool:
        self._settle(None)
        return True


def _text_lines(text: str, style: str, width: int) -> Iterable[Line]:
    return body_lines(TextBody(visible(text), style, ""), width)


def _loop_lines(request: PermissionRequest, width: int) -> Iterator[Line]:
    yield from _text_lines(one_line(f"{request.tool} {request.title}", 400), "strong", width)
    # If the model repeats itself within a text, ``loop`` contains the repeated text twice, so that
    # it is enough to show the last one.
    if request.question:
        first = len(request.loop) - 1
    else:
        first = max(0, len(request.loop) - LOOP_RESULTS)
    for number, result in enumerate(request.loop[first:], first + 1):
        kept = visible(result).strip().splitlines()
        more = ""
        if len(kept) > LOOP_LINES:
            more = f"  … {plural(len(kept) - LOOP_LINES, 'more line')}"
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
