"""The question before a branch is left or merged: summarise it or not, with the summary growing in sight."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import ClassVar, Protocol

from textual import events, getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from tui_agent.agent.checkpoints.plan import RestorePlan
from tui_agent.agent.navigator import NavigationError
from tui_agent.app.format import plural
from tui_agent.app.rewind_files import files_text
from tui_agent.session.errors import StoreError
from tui_agent.ui.screens.dialogs import Dialog
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.transcript import sanitize

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_SECONDS = 0.12
TAIL = 8
"""Lines of the growing summary that are shown."""


class BranchChoice(StrEnum):
    """What can be done with a branch."""

    NOTHING = "No summary"
    SUMMARISE = "Summarise"
    FOCUS = "Summarise with focus…"


class Work(Protocol):
    """Does what was asked for; raises ``NavigationError`` or ``StoreError`` when that fails."""

    async def __call__(self, focus: str | None, progress: Callable[[str], None]) -> None:
        """Work; ``focus`` None is without a summary."""
        ...


class SummaryDialog(Dialog[bool]):
    """Dismissed with whether the work was done. Escape cancels it at any time, and then nothing has changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number + 1), f"answer({number})", show=False) for number in range(3)),
        Binding("space", "files", "files", show=False),
    ]

    options = getters.query_one(Options)
    field = getters.query_one(Input)
    growing = getters.query_one("#growing", Static)
    files = getters.query_one("#files", Static)
    problem = getters.query_one("#problem", Static)

    class Ended(Message):
        """The work is over; ``problem`` says why it failed."""

        def __init__(self, problem: str = "") -> None:
            super().__init__()
            self.problem = problem

    def __init__(
        self,
        question: str,
        about: str,
        answers: tuple[BranchChoice, ...],
        doing: Work,
        files: RestorePlan | None = None,
    ) -> None:
        """Make the dialog; ``files`` is what could be restored, None where nothing is asked about files."""
        super().__init__(question, about)
        self._files = files or RestorePlan()
        self.restores = False
        """Whether files are to be restored; they are kept until the user says otherwise."""
        self._answers = answers
        self._do_work = doing
        self._working: Worker[None] | None = None
        self._spinner: Timer | None = None
        self._frame = 0
        self._written = ""

    def body(self) -> ComposeResult:
        rows = (Option(Content(f"{number}  {answer}")) for number, answer in enumerate(self._answers, 1))
        yield Options(*rows, compact=True)
        yield Input(placeholder="What should the summary keep?", compact=True)
        yield Static(id="files", markup=False)
        yield Static(id="growing", markup=False)
        yield Static(id="problem", markup=False)

    def on_mount(self) -> None:
        self._ask()

    def _ask(self, problem: str = "") -> None:
        files = "  space files" if self._files.steps else ""
        self._show(options=True, problem=problem, keys=f"1-{len(self._answers)} choose{files}  esc back")
        self._show_files()
        self.options.focus()

    def _show(
        self, *, options: bool = False, field: bool = False, growing: bool = False, problem: str = "", keys: str
    ) -> None:
        self.options.display, self.field.display, self.growing.display = options, field, growing
        self.files.display = options and bool(self._files)
        self.problem.display = bool(problem)
        self.problem.update(sanitize.line(problem))
        self.keys.show(keys)

    def _show_files(self) -> None:
        if not self._files.steps:
            self.files.update(files_text(self._files))
            return
        marks = ("( )", "(•)") if self.restores else ("(•)", "( )")
        choice = f"{marks[0]} keep files   {marks[1]} restore {plural(len(self._files.steps), 'file')}"
        self.files.update(f"{choice}\n{files_text(self._files)}")

    def action_files(self) -> None:
        if self._files.steps:
            self.restores = not self.restores
            self._show_files()

    # -- answering --------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.action_answer(event.option_index)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Take digits only while there is a choice."""
        if action == "files":
            return self.is_mounted and bool(self.options.display)
        if action == "answer":
            return self.is_mounted and bool(self.options.display) and int(str(parameters[0])) < len(self._answers)
        return True

    def action_answer(self, number: int) -> None:
        """Do what an answer says; the focus is asked for first."""
        match self._answers[number]:
            case BranchChoice.FOCUS:
                self._show(field=True, keys="enter summarise  esc back")
                self.field.focus()
            case answer:
                self._begin(None if answer is BranchChoice.NOTHING else "")

    @on(Input.Submitted)
    def _focus_given(self, event: Input.Submitted) -> None:
        self._begin(event.value.strip())

    def action_back(self) -> None:
        if self._working is not None:
            self._working.cancel()
            self._stop()
            self.dismiss(False)  # noqa: FBT003 - the screen's result
        elif self.field.display:
            self._ask()
        else:
            self.dismiss(False)  # noqa: FBT003 - the screen's result

    def on_click(self, event: events.Click) -> None:
        """A click beside the dialog leaves it, unless it works; one on the files changes what happens to them."""
        if event.widget is self.files:
            self.action_files()
        if event.widget is self and self._working is None:
            self.dismiss(False)  # noqa: FBT003 - the screen's result

    # -- working ----------------------------------------------------------------------------------------------

    def _begin(self, focus: str | None) -> None:
        self._written = ""
        self._show(growing=True, keys="esc back, nothing changes")
        self.set_focus(None)
        self._paint()
        if self.app.animation_level != "none":
            self._spinner = self.set_interval(SPINNER_SECONDS, self._spin)
        self._working = self._do(focus)

    @work(group="summary")
    async def _do(self, focus: str | None) -> None:
        try:
            await self._do_work(focus, self._progress)
        except (NavigationError, StoreError) as error:
            self.post_message(self.Ended(str(error) or "It did not work."))
        else:
            self.post_message(self.Ended())

    def on_summary_dialog_ended(self, message: Ended) -> None:
        self._stop()
        if message.problem:
            self._ask(message.problem)
        else:
            self.dismiss(True)  # noqa: FBT003 - the screen's result

    def _stop(self) -> None:
        self._working = None
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def _progress(self, delta: str) -> None:
        self._written += delta
        if self._spinner is None:
            self._paint()

    def _spin(self) -> None:
        self._frame += 1
        self._paint()

    def _paint(self) -> None:
        lines = sanitize.text(self._written[-4_000:]).strip().split("\n")[-TAIL:]
        sign = SPINNER[self._frame % len(SPINNER)] if self._spinner is not None else "…"
        with suppress(NoMatches):
            self.growing.update("\n".join([f"{sign} Summarising", *(line for line in lines if line)]))
