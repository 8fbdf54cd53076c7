"""The widget that shows questions above the prompt, and decides when keys answer them.

It owns the queue of questions that wait for an answer. The user can continue to write while a
question is shown. `WaitingQuestion.settle` passes the answer to the code that asked. An answered
question stays on the screen until `SessionView` removes it, once the agent or the command has
received the answer.
"""

from collections.abc import Callable

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui_agent.app.format import plural
from tui_agent.app.frontend import Page
from tui_agent.app.permission_text import Answer
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.transcript.line_view import LineView
from tui_agent.ui.widgets.waiting_questions import WaitingQuestion

KEY_HOLD_SECONDS = 0.2
"""Seconds until a pressed key counts as an answer.

If another key is pressed sooner, the user is typing, and both keys are inserted into the prompt.
"""
ENTER_GRACES = 2
"""Enter answers a question only after this many grace periods."""
OPEN = "open"
"""The choice for the key ``o``, which opens a screen with all details of the question."""
MORE = "more"
"""The choice for the key ``m``, which lists the remaining answers."""

WORDS_HINT = "enter answers “no, but …” with your text · tab: answer with a key"
KEYS_HINT = "tab: answer with a key"
LETTER_HINT = "type a letter and enter, or press tab · enter alone:"

PATTERN_HINT = "* matches anything. Enter accepts, Escape goes back"
"""The text shown instead of the question's reason while the user edits the pattern of a rule."""


class QuestionChoices(Options, can_focus=True):
    """The list of answers to a question.

    A printable key either chooses an answer or is inserted into the prompt as text.
    """

    FOCUS_ON_CLICK = False
    BINDINGS = [
        hidden("pageup", "scroll_details(-1)", "details up"),
        hidden("pagedown", "scroll_details(1)", "details down"),
        Binding("tab", "add_note", "add a note", id="question.note"),
    ]

    def __init__(self, question: "QuestionPrompt", *, hold: float) -> None:
        """``hold`` is the delay, in seconds, before a key counts as an answer.

        If it is 0, a key counts immediately.
        """
        super().__init__(compact=True)
        self._question = question
        self.hold = hold
        self._held = ""
        """A key that becomes an answer after the delay ``hold`` if no other key follows, or ""."""
        self.typed = False
        """Whether the user has typed text since the list received the focus.

        If so, further keys are text, too.
        """
        self.touched = False
        """Whether the user has moved the highlight or clicked.

        If so, Enter answers without a delay.
        """

    def forget_key(self) -> None:
        """Forget a key that was pressed for an earlier question."""
        self._held = ""

    def action_select(self) -> None:
        if self.touched or self._question.accepts_enter:
            super().action_select()

    async def _on_click(self, event: events.Click) -> None:  # noqa: ARG002 - as inherited
        self.touched = True

    async def _on_key(self, event: events.Key) -> None:
        character = None
        if event.is_printable:
            character = event.character
        if character is None:
            self.touched |= event.key in {"up", "down"}
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        if character == " " and not self.typed and self._question.ticks_at_cursor:
            self._question.tick_at_cursor()
            return
        is_text = not self._question.armed or self._question.meaning(character) is None
        if self.typed or self._held or is_text:
            self.typed = True
            held = self._held
            self._held = ""
            self._question.type_in_prompt(held + character)
        else:
            self._held = character
            if self.hold:
                self.set_timer(self.hold, self._take_held)
            else:
                self._take_held()

    def action_scroll_details(self, pages: int) -> None:
        self._question.scroll_details(pages)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - as inherited
        return action != "add_note" or self._question.takes_note

    def action_add_note(self) -> None:
        self._question.note_at_cursor()

    def _take_held(self) -> None:
        held = self._held
        self._held = ""
        if held and (meant := self._question.meaning(held)) is not None:
            self._question.choose_by_key(meant)


class QuestionPrompt(VerticalGroup):
    """Shows the question that has waited longest, and how many other questions wait.

    During a grace period, while the user is typing, and while the prompt contains text, keys go to
    the prompt as text. If the user sends this text, it answers a question about a tool call with
    “no, but …” and the text. Tab moves the focus to the question at any time. A second Tab opens a
    field for a note that is sent with the answer.
    """

    BINDINGS = [hidden("escape", "back", "back")]
    COMPONENT_CLASSES = {"question--what", "question--why"}

    class NoteSent(Message):
        """Posted when the user sends a note together with an answer."""

    armed: var[bool] = var(False, toggle_class="-armed")  # noqa: FBT003 - how Textual spells it
    """Whether the question has the keyboard focus, so that keys answer it."""

    def __init__(
        self,
        *,
        grace: float,
        typing_pause: float,
        prompt: Prompt,
        clock: Callable[[], float],
        show: Callable[[Page], None],
    ) -> None:
        """Create the widget, which shows no question at first.

        ``show`` is called to open a screen with all details of a question. ``grace`` and
        ``typing_pause`` are described in `set_delays`.
        """
        super().__init__()
        self._show_page = show
        self._prompt = prompt
        self._grace = grace
        self._typing_pause = typing_pause
        self._clock = clock
        self._waiting: list[WaitingQuestion] = []
        self._shown_at = 0.0
        self._details = LineView()
        self._title = PlainText(classes="question-title")
        self._scroll = VerticalScroll(self._details, can_focus=False)
        self._hint = PlainText(classes="question-hint")
        self._choices = QuestionChoices(self, hold=min(KEY_HOLD_SECONDS, grace))
        self._note = Input(compact=True)
        """The input field for the user's note to an answer."""
        self._noted = ""
        """Name of the answer to which the user is adding a note."""
        self._pattern = Input(compact=True, select_on_focus=False)
        """The input field for the pattern of a rule."""
        self._edited_rules: list[str] = []
        """The question's rules with the user's edits, such as ``allow bash: git commit *``."""
        self._edited_index = 0
        """Index of the suggested rule whose pattern the user is editing in the input field."""
        self._shows_all = False
        """Whether the list contains all answers, and not only the first ones."""
        self._is_scrolled = False
        self._chosen_by_key = False
        """Whether the user chose the last answer by key or number, not with Enter or a click."""
        self.display = False

    def set_delays(self, *, grace: float, typing_pause: float) -> None:
        """Set how many seconds a question waits before it receives the focus.

        ``grace`` is counted from when the question is shown, and ``typing_pause`` from when the
        user last typed.
        """
        self._grace = grace
        self._typing_pause = typing_pause
        self._choices.hold = min(KEY_HOLD_SECONDS, grace)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._scroll
        yield self._hint
        yield self._choices
        yield self._note
        yield self._pattern

    @property
    def asked(self) -> WaitingQuestion | None:
        """The question that is shown, which has waited longest. None if no question waits."""
        if self._waiting:
            return self._waiting[0]
        return None

    @property
    def accepts_enter(self) -> bool:
        """Whether pressing Enter in the list of answers may answer the question.

        This is False while the prompt contains text. It is also False while the user is typing and
        until `ENTER_GRACES` grace periods have passed, unless the user is waiting for the question.
        """
        if self.asked is not None and self.asked.is_awaited:
            return not self._prompt.text
        typed = self._prompt.last_typed + self._typing_pause
        return (
            self._clock() >= max(self._shown_at + ENTER_GRACES * self._grace, typed)
            and not self._prompt.text
        )

    def ask(self, asked: WaitingQuestion) -> None:
        """Add a question to the queue. It is shown once all earlier questions have been removed.

        Does nothing if a question with the same key is already waiting.
        """
        if any(waiting.key == asked.key for waiting in self._waiting):
            return
        self._waiting.append(asked)
        if len(self._waiting) == 1:
            self._show(asked)
        else:
            self._show_title()
        self.refresh_bindings()

    def remove_question(self, key: str) -> None:
        """Remove the question with ``key`` from the queue.

        If this question was shown, the next one in the queue is shown.
        """
        shown = self.asked
        self._waiting = [waiting for waiting in self._waiting if waiting.key != key]
        if (asked := self.asked) is None:
            self.display = self.armed = False
        elif asked is not shown:
            self._show(asked)
        else:
            self._show_title()
        self.refresh_bindings()

    @property
    def comes_first(self) -> bool:
        """Whether the shown question must be answered before the user can send a message."""
        return self.asked is not None and self.asked.comes_first

    def answer_in_words(self, text: str) -> bool:
        """Answer the question with text sent from the prompt. Return False if it isn't an answer.

        A question about a tool call is answered with “no, but …” and the text, unless its grace
        period isn't over yet. A question that receives the focus only with Tab is answered if the
        text is the key of an answer. Any other question is dismissed if possible, and False is
        returned.
        """
        asked = self.asked
        if asked is None:
            return False
        if not asked.takes_keys:
            return self._choose_by_letter(text)
        if not asked.takes_words:
            asked.dismiss()
            return False
        was_seen = self._clock() >= self._shown_at + self._grace
        if was_seen:
            self.armed = False
            asked.settle("note", text.strip())
        return was_seen

    def _choose_by_letter(self, text: str) -> bool:
        """Choose the answer whose key is ``text``. Return False if there is no such answer."""
        answer = self._letter(text)
        if answer is None:
            return False
        self.armed = True
        self.choose(answer.name)
        return True

    def _letter(self, text: str) -> Answer | None:
        """Return the available answer whose key is ``text``, or None if there is no such answer."""
        key = text.strip().lower()
        possible = (one for one in self._answers() if one.is_possible)
        for one in possible:
            if one.key == key:
                return one
        return None

    def draft_changed(self) -> None:
        """Update the hint after the prompt's text has changed.

        If the prompt is now empty, the question may receive the focus.
        """
        if self.asked is None or self._choices.has_focus:
            return
        self._show_hint()
        if not self._prompt.text:
            self._arm_or_wait()

    def restart_grace(self) -> None:
        """Start the question's grace period again when the user returns to the screen.

        Does nothing while the user is writing a note or editing a pattern.
        """
        if self.asked is not None and not self._is_field_focused:
            self._release()
            self._shown_at = self._clock()
            self.asked.is_awaited = False
            self._arm_or_wait()

    def choose_at_cursor(self) -> None:
        """Choose the highlighted answer of a question that receives the focus only with Tab.

        Does nothing for other questions, or before `ENTER_GRACES` grace periods have passed.
        """
        asked = self.asked
        row = self._choices.highlighted_option
        stood = self._clock() >= self._shown_at + ENTER_GRACES * self._grace
        if asked is not None and not asked.takes_keys and row is not None and row.id and stood:
            self.armed = True
            self.choose(row.id)

    def clear(self) -> None:
        """Remove all questions that receive the focus without Tab.

        A question about a tool call is only removed from the screen, and the agent still waits for
        its answer. Any other question that is removed is dismissed.
        """
        over = [asked for asked in self._waiting if asked.takes_keys]
        for asked in over:
            asked.dismiss()
            self.remove_question(asked.key)

    # -- showing

    def _release(self) -> None:
        """Move the focus from the list of answers to the prompt, so that keys are text again."""
        self.armed = False
        if self._choices.has_focus:
            self._prompt.focus()

    def _show(self, asked: WaitingQuestion) -> None:
        self._release()
        self._shown_at = self._clock()
        # Hide the scrollbar of the last question. Its width could wrap a line that would fit
        # without it.
        self._scroll.show_vertical_scrollbar = False
        self._details.show(asked.lines)
        self._is_scrolled = self._shows_all = False
        self.call_after_refresh(self._show_first_change)
        self._edited_rules = list(asked.rules)
        self._choices.touched = False
        self._choices.forget_key()
        at = asked.at
        if self._chosen_by_key and asked.after_digits is not None:
            at = asked.after_digits
        self._chosen_by_key = False
        self._show_answers(at)
        self._note.value = ""
        self._show_field(None)
        self.display = True
        self._arm_or_wait()

    def _answers(self) -> list[Answer]:
        if self.asked is not None:
            return self.asked.answers(self._edited_rules)
        return []

    def _show_answers(self, at: str | None) -> None:
        """List the answers with their keys, and highlight the answer named ``at``.

        If ``at`` isn't listed, the first answer is highlighted. Less common answers are listed only
        after the user has chosen “more…”.
        """
        if (asked := self.asked) is None:
            return
        known = self._answers()
        shown = []
        for answer in known:
            if self._shows_all or answer.name in asked.first():
                shown.append(answer)
        rows = [
            Option(Content(f"{one.key}  {one.text}"), id=one.name, disabled=not one.is_possible)
            for one in shown
        ]
        if len(shown) < len(known):
            rows.append(Option(Content("m  more…"), id=MORE))
        self._choices.set_options(rows)
        names = [row.id for row in rows]
        if at in names:
            self._choices.highlighted = names.index(at)
        else:
            self._choices.highlighted = 0

    def _show_title(self) -> None:
        if (asked := self.asked) is None:
            return
        more = ""
        if len(self._waiting) > 1:
            more = f"  ({len(self._waiting) - 1} more)"
        heading = asked.what
        why = asked.why
        if self._pattern.display:
            heading = f"{self._edited_rules[self._edited_index].partition(': ')[0]}:"
            why = PATTERN_HINT
        elif self._note.display:
            why = self._note_hint(self._noted)
        faint = ".question--why"
        strong = ".question--what"
        about = ""
        if why:
            about = f"  {why}"
        self._title.update(Content.assemble((heading, strong), (about, faint), (more, faint)))

    def _show_first_change(self) -> None:
        """Scroll to the top of the details, or further if a diff's first change would be hidden."""
        lines = enumerate(self._details.lines(self._details.size.width))
        rows = self._scroll.size.height
        first = next((at for at, line in lines if line.fill.startswith(("added", "removed"))), 0)
        self._scroll.scroll_to(y=first - rows // 3 if first >= rows - 1 else 0, animate=False)
        self._show_hint()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_hint if self._is_scrolled else self._show_first_change)

    def _show_hint(self) -> None:
        below = round(self._scroll.max_scroll_y - self._scroll.scroll_target_y)
        words = bool(self._prompt.text) and not self.armed
        self.set_class(words, "-words")
        hint = ""
        if words and self.asked is not None:
            hint = self._words_hint(self.asked)
        elif self.asked is not None and not (self.armed or self.asked.takes_keys):
            at = self._choices.highlighted_option
            hint = KEYS_HINT
            if at is not None and at.id:
                hint = f"{LETTER_HINT} {self._key_of(at.id)}"
        elif below > 0:
            opens = " · PgDn · o opens all" * self._choices.display
            hint = f"{plural(below, 'more line')}{opens}"
        self._hint.display = bool(hint)
        self._hint.update(hint)

    def _words_hint(self, asked: WaitingQuestion) -> str:
        """Return the hint to show while the prompt contains text.

        It says what Enter does, or how to answer the question.
        """
        if asked.takes_words:
            return WORDS_HINT
        answer = self._letter(self._prompt.text)
        if asked.takes_keys or answer is None:
            return KEYS_HINT
        return f"enter: {answer.text}"

    def _key_of(self, name: str) -> str:
        for answer in self._answers():
            if answer.name == name:
                return answer.key
        return name

    def _arm_or_wait(self) -> None:
        asked = self.asked
        if self._prompt.text or asked is None or self.armed or not asked.takes_keys:
            self._show_hint()
            return
        now = self._clock()
        ready = max(self._shown_at + self._grace, self._prompt.last_typed + self._typing_pause)
        if asked.is_awaited:
            ready = now
        if ready > now:
            self.set_timer(ready - now, self._arm_or_wait)
        elif (
            self.screen.focused is self._prompt
            or self.screen.focused is None
            or self.has_focus_within
        ):
            # Any other widget, such as the find bar, keeps the focus until the user leaves it.
            self.arm()

    def arm(self) -> None:
        """Move the focus to the list of answers. Keys then answer the question."""
        self.armed = True
        self._choices.typed = False
        self._choices.focus()
        self._show_hint()
        self.refresh_bindings()

    @property
    def _is_field_focused(self) -> bool:
        return self._note.has_focus or self._pattern.has_focus

    def on_descendant_blur(self) -> None:
        """Disarm the question when another widget is focused, so that keys don't answer it.

        The question stays armed when the terminal loses the focus.
        """
        if self.app.app_focus:
            self.call_later(self._disarm_if_unfocused)

    def _disarm_if_unfocused(self) -> None:
        if self.armed and not self.has_focus_within and self.screen.is_active:
            self.armed = False
            self._show_hint()

    # -- answering

    @on(OptionList.OptionSelected)
    def _option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id:
            self.choose(event.option_id)

    def meaning(self, character: str) -> str | None:
        """Return what a key chooses, which is the name of an answer, `OPEN` or `MORE`.

        Returns None if the key is text. An answer is chosen by its key, or by its number, counted
        from 1.
        """
        known = self._answers()
        names = {answer.key: answer.name for answer in known if answer.is_possible}
        numbers = {}
        for number, answer in enumerate(known, 1):
            if answer.is_possible:
                numbers[str(number)] = answer.name
        if (
            character == "m"
            and not self._shows_all
            and self.asked is not None
            and len(self.asked.first()) < len(known)
        ):
            return MORE
        if character == "o":
            return OPEN
        return names.get(character.lower()) or numbers.get(character)

    def type_in_prompt(self, text: str) -> None:
        """Move the focus back to the prompt, and insert ``text`` into it."""
        self.armed = False
        self._prompt.resume_typing(text)

    def scroll_details(self, pages: int) -> None:
        self._is_scrolled = True
        self._scroll.scroll_relative(y=pages * max(1, self._scroll.size.height - 1), animate=False)
        self._show_hint()

    @on(Input.Submitted)
    def _field_submitted(self, event: Input.Submitted) -> None:
        """Send the answer with the user's note, or store the edited pattern and edit the next rule.

        After the last rule, the list of answers is shown again.
        """
        event.stop()
        text = event.value.strip()
        if event.input is self._note:
            self.post_message(self.NoteSent())
            self._answer(self._noted, text)
            return
        if text:
            about, _, _ = self._edited_rules[self._edited_index].partition(": ")
            self._edited_rules[self._edited_index] = f"{about}: {text}"
        if self._edited_index + 1 < len(self._edited_rules):
            self._change_rule(self._edited_index + 1)
        else:
            self.action_back()

    def _show_field(self, field: Input | None) -> None:
        """Show an input field instead of the answers.

        If ``field`` is None, show the answers again.
        """
        for known in (self._note, self._pattern):
            known.display = known is field
        if field is not None:
            field.focus()
        self._choices.display = field is None
        self._show_title()
        self._show_hint()

    @property
    def takes_note(self) -> bool:
        """Whether the user can add a note to the highlighted answer."""
        return bool(self._note_hint(self._name_at_cursor))

    def note_at_cursor(self) -> None:
        self._write_note(self._name_at_cursor)

    @property
    def _name_at_cursor(self) -> str:
        row = self._choices.highlighted_option
        if row is None or row.id is None:
            return ""
        return row.id

    def _note_hint(self, name: str) -> str:
        if self.asked is None:
            return ""
        return self.asked.note_hint(name)

    def _write_note(self, name: str) -> None:
        self._noted = name
        self._note.placeholder = f"{self._note_hint(name)}  Enter sends, Escape goes back"
        self._show_field(self._note)

    def _change_rule(self, place: int) -> None:
        self._edited_index = place
        _, _, self._pattern.value = self._edited_rules[place].partition(": ")
        self._pattern.cursor_position = len(self._pattern.value)
        self._show_field(self._pattern)

    @property
    def can_go_back(self) -> bool:
        """Whether Escape (`action_back`) has something to close or dismiss."""
        asked = self.asked
        return asked is not None and (
            self._is_field_focused or self._shows_all or not asked.takes_words
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - as inherited
        return action != "back" or self.can_go_back

    def action_back(self) -> None:
        """Close the input field, shorten the list of answers, or dismiss the question.

        Only the first of these steps that is possible is taken. A question that needs an answer,
        such as one about a tool call, can't be dismissed.
        """
        is_field = self._note.display or self._pattern.display
        if is_field:
            is_rule = self._pattern.display
            self._show_field(None)
            self._show_answers("session" if is_rule else None)
            self._choices.focus()
        elif self._shows_all:
            self._shows_all = False
            self._show_answers(self.asked.at if self.asked is not None else None)
        elif self.asked is not None:
            self.armed = False
            self.asked.dismiss()
        self.refresh_bindings()

    @property
    def ticks_at_cursor(self) -> bool:
        """Whether the question is armed and the highlighted answer is one with a tick box."""
        row = self._choices.highlighted_option
        return (
            self.armed and self.asked is not None and row is not None and row.id in self.asked.ticks
        )

    def tick_at_cursor(self) -> None:
        row = self._choices.highlighted_option
        if row is not None and row.id:
            self.choose(row.id)

    def choose_by_key(self, name: str) -> None:
        """Act on a choice that the user made by key or number, in the same way as `choose`."""
        self._chosen_by_key = True
        self.choose(name)

    def choose(self, name: str) -> None:
        """Act on the user's choice. Does nothing unless the question is armed (takes answers).

        `OPEN` opens the screen with all details, and `MORE` lists all answers. The answers ``rule``
        and ``note`` open an input field. Any other ``name`` is the name of an answer, which is
        passed to the question.
        """
        asked = self.asked
        if asked is None or not self.armed:
            return
        match name:
            case "open":
                if (page := asked.page()) is not None:
                    self._show_page(page)
            case "more":
                self._shows_all = True
                rest = []
                for answer in self._answers():
                    if answer.name not in asked.first():
                        rest.append(answer.name)
                self._show_answers(rest[0])
                self._choices.touched = True
            case "rule":
                self._change_rule(0)
            case "note":
                self._write_note("note")
            case _:
                self._answer(name)

    def _answer(self, name: str, words: str = "") -> None:
        if (asked := self.asked) is None:
            return
        is_changed = self._edited_rules != list(asked.rules)
        if is_changed:
            patterns = tuple(rule.partition(": ")[2] for rule in self._edited_rules)
        else:
            patterns = ()
        self.armed = False
        asked.settle(name, words, patterns if name in {"session", "project"} else ())

    def on_click(self, event: events.Click) -> None:
        """Move the focus to the question when it is clicked, even if the user has just typed.

        Does nothing until the grace period is over.
        """
        if (
            self.asked is not None
            and not self.armed
            and self._clock() >= self._shown_at + self._grace
        ):
            event.stop()
            self.arm()
