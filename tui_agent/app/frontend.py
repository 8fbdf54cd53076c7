"""Data classes for the controller's questions and pages, and `Frontend`, which shows them.

The methods of `Frontend` suit frontends without a screen. The full-screen program overrides
them in ui/screens/session_frame.py and main.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from tui_agent.app.format import visible
from tui_agent.app.run_state import RunState
from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    # Only for annotations: this module is imported before the first frame is drawn.
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.checkpoints.restoring import ChangedFile
    from tui_agent.agent.race.race import Race
    from tui_agent.agent.subagents import FinishedSubagent
    from tui_agent.app.memory_view import MemoryView
    from tui_agent.app.services import OpenRequest
    from tui_agent.app.side_by_side import Aside
    from tui_agent.config import Config
    from tui_agent.session.entries import RaceEntry
    from tui_agent.tools.questions import Answer, ModelQuestions, Value

Opened = Literal["outputs", "thinking"]
"""Kinds of blocks in the conversation. One command opens or folds all blocks of a kind."""
Severity = Literal["information", "warning", "error"]
Remedy = tuple[str, str, str]
"""An action offered with a message: key, label, and the screen action that the key runs."""

Answer_co = TypeVar("Answer_co", covariant=True)

MAX_DIFF_CHARS = 100_000
"""Maximum number of characters of a diff that a frontend without a screen prints."""


UNREQUESTED = float("-inf")
"""Value of `requested_at` for questions that no command of the user caused."""
requested_at: ContextVar[float | None] = ContextVar("requested_at", default=None)
"""Time at which the user gave the command that runs in this task, in seconds since the epoch.

The value is None if the time is unknown, for example for keys pressed on a page.
"""


class Shown:
    """Base class of questions and pages."""

    @property
    def identity(self) -> object:
        """A value that identifies the content of a question or page.

        If several questions or pages have the same value, only one of them is shown.
        """
        return self


class Question(Shown, Generic[Answer_co]):
    """A question to the user. The answer is None if they cancel."""


@frozen
class Choice(Question[str]):
    """A question with a few answers, given as pairs of the name to return and the text to show."""

    question: str
    answers: Sequence[tuple[str, str]]
    details: str = ""
    at: str | None = None
    """Name of the answer that the cursor starts on; None means the first answer."""
    numbered: bool = False
    """Whether the user can also choose an answer by its number.

    A letter always chooses its answer.
    """
    why: str = ""
    """Why the user is asked, in one line."""
    files: Sequence[ChangedFile] = ()
    """The changed files that the question is about, so that their diffs can be shown."""
    inline: bool = False
    """Whether the question is shown above the prompt, so that the conversation stays usable."""
    by_tab: bool = False
    """Whether an inline question takes keys only after Tab or a click.

    Until then, the prompt takes them.
    """
    ticks: int = 0
    """Number of answers that have a tick box, counted from the first answer.

    Space ticks the answer at the cursor. After each tick, the question is asked again, with ``at``.
    The answer after those with a tick box ends the ticking.
    """
    comes_first: bool = False
    """Whether an inline question must be answered before any message can be sent."""
    wide: bool = False
    """Whether the question's details are rows of a table, which may be wider than running text."""
    noted: Sequence[str] = ()
    """Names of the answers to which the user can add a note, in the field above the prompt.

    The answer is then the name, a space and the note.
    """
    unasked: str | None = None
    """Name of the answer that is used in a run without a user.

    If it is None, the command fails in such a run.
    """

    @property
    def goes_on(self) -> bool:
        """Whether the user has only ticked an answer, so that the question must be asked again."""
        return self.ticks > 0 and self.at is not None

    @property
    def keys(self) -> list[str]:
        """The key for each answer: its name if the name is a letter, otherwise its number."""
        keys = []
        for number, (name, _text) in enumerate(self.answers, 1):
            is_letter = len(name) == 1 and name.isalpha()
            keys.append(name if is_letter else str(number))
        return keys


@frozen
class PickRow:
    """A row of a `Pick`. ``text`` is a single line, in which typed words are searched for.

    ``facts`` are shown at the line's end. ``key`` is returned if the row is chosen. ``details`` are
    lines shown while the row is highlighted.
    """

    key: str
    text: str
    facts: str = ""
    details: str = ""


@frozen
class Pick(Question[str]):
    """A question with many answers, which the user narrows down by typing.

    The answer is the key of a row. ``confirm`` is the label of the Enter key.
    """

    question: str
    rows: Sequence[PickRow]
    confirm: str = "choose"


@frozen
class TextLine(Question[str]):
    """A question that asks for one line of text.

    ``confirm`` is the label of Enter; a ``hidden`` text is never shown or stored.
    """

    question: str
    text: str = ""
    confirm: str = "save"
    details: str = ""
    hidden: bool = False


@frozen
class LongText(Question[str]):
    """A text of several lines to edit. ``confirm`` is the label of the key that saves it."""

    question: str
    text: str
    confirm: str = "save"


@frozen
class EditedText(Question[str]):
    """A text to edit in the user's editor program; the answer is the edited text.

    ``name`` is the name of the file; editors choose the file type by its suffix.
    """

    text: str
    name: str = "text.md"


@frozen
class ModelPick:
    """The answer to a `ModelChoice`: the model that the user chose.

    ``server`` is the base URL to save in the model's settings, "" if it needn't be saved.
    """

    model: str
    server: str = ""
    only_here: bool = False
    """Whether to use the model only in this session, without saving it for new sessions."""


@frozen
class ModelChoice(Question[ModelPick]):
    """A question that asks for a model; ``current`` is the id of the model in use.

    With ``switches``, the user can also choose a model for this session only. ``search`` is the
    text that filters the list at first.
    """

    current: str
    switches: bool = False
    search: str = ""


@frozen
class SessionChoice(Question["OpenRequest"]):
    """A question that asks for a session; ``current`` is the id of the open session, if any."""

    current: str | None


@frozen
class ThemeChoice(Question[str]):
    """A question that asks for a colour theme; the answer is the theme's name."""


class Heading(str):
    """A line of a report that is a heading."""

    __slots__ = ()


class Page(Shown):
    """Base class of pages, which the user looks at and closes. Most pages need the full screen."""

    title: str
    fence: ClassVar[str | None] = ""
    """Language of the Markdown fence around the page's text; None if the text is Markdown."""

    def words(self) -> str | None:
        """Return the page as text for frontends without a screen; None if it needs a screen."""
        return None


class LinedPage(Page):
    """A page that frontends without a screen show as the text ``lines``."""

    lines: Sequence[str]

    def words(self) -> str:
        return "\n".join(self.lines)


@frozen
class Report(Page):
    """A page of lines to read, which opens at the heading ``at``, or at the top if that is ""."""

    title: str
    lines: Sequence[str]
    at: str = ""
    fence = None

    def words(self) -> str:
        return "\n".join(
            f"**{line}**" if isinstance(line, Heading) else line for line in self.lines
        )


@frozen
class Output(Page):
    """A page that shows a long text in full."""

    title: str
    text: str

    def words(self) -> str:
        return self.text


@frozen
class TreePage(LinedPage):
    """The session tree page, which shows all branches of the session.

    The cursor starts on the entry ``at``, by default on the leaf. ``lines`` is the text for
    frontends without a screen.
    """

    at: int | None = None
    lines: Sequence[str] = ()
    title: str = "The session tree"


@frozen
class ContextPage(LinedPage):
    """The page that shows the next request block by block.

    ``lines`` is the text for frontends without a screen.
    """

    lines: Sequence[str] = ()
    title: str = "The context map"


@frozen
class CompactPage(Page):
    """The page on which the user can review and edit a compaction before it is applied.

    ``boundary`` is the number of the first entry that is kept; if None, the program chooses it.
    """

    boundary: int | None = None
    title: str = "The compaction preview"


@frozen
class SettingsPage(Page):
    """The settings page, with every setting that matches ``query``."""

    query: str = ""
    title: str = "The settings"


@frozen
class HelpPage(Page):
    """The help page, with every command, key and setting.

    With ``with_keys``, the keys of the conversation are shown above them. ``query`` is the text
    that filters the page at first, "" for none.
    """

    with_keys: bool = True
    query: str = ""
    title: str = "Help"


@frozen
class EquipmentLine:
    """A line of the equipment page. Choosing it switches to ``agent``, unless that is ""."""

    text: str
    agent: str = ""


@frozen
class EquipmentPage(Page):
    """The equipment page: agents, skills and tools as ``lines``, and below them the MCP servers.

    The cursor starts on the line below the heading ``at``.
    """

    lines: Sequence[EquipmentLine] = ()
    at: str = ""
    title: str = "The page of MCP servers"


@frozen
class MemoryPage(LinedPage):
    """The page with the project's memory and the proposals for it.

    ``lines`` is the text for frontends without a screen; it shows the proposals as a diff.
    """

    view: MemoryView = field(compare=False)
    lines: Sequence[str] = ()
    title: str = "The memory"


@frozen
class PermissionsPage(Page):
    """The page that lists every permission rule with its origin."""

    title: str = "The permission rules"


@frozen
class SubagentPage(Page):
    """The page that shows the session of a subagent.

    ``watched`` is the agent while it works, and afterwards its stored session. ``close`` is called
    when the page is left.
    """

    watched: Agent | FinishedSubagent
    close: Callable[[], None] = field(default=lambda: None)
    title: str = "What a subagent did"

    @property
    def identity(self) -> object:
        session = self.watched.session
        return (session.id, session.leaf)


@frozen
class RacePage(LinedPage):
    """The page of a running race, or of the entry of a finished race.

    Frontends without a screen show the text ``lines``.
    """

    race: Race | RaceEntry
    lines: Sequence[str] = ()
    title: str = "The race"
    fence = None


@frozen
class RunnerPage(Page):
    """The page that shows the session of runner ``number`` of a race.

    ``watched`` is the runner's agent or its finished session. ``race`` is a ``RaceView``.
    """

    watched: Agent | FinishedSubagent = field(compare=False)
    race: Any = field(compare=False)
    number: int
    title: str = "A runner of the race"


@frozen
class DiffPage(Page):
    """The page that shows the diffs of files one by one."""

    title: str
    files: Sequence[ChangedFile]
    fence = "diff"

    def words(self) -> str:
        return diff_text(self.files)


@frozen
class FindPage(Page):
    """The find bar, which searches the conversation for ``query`` until the user changes that."""

    query: str = ""
    title: str = "Searching the conversation"


@frozen
class JobsPage(Page):
    """The page that lists the background jobs with their current output."""

    title: str = "The background jobs"


def file_lines(files: Sequence[ChangedFile]) -> list[str]:
    """Return a line for each file: its mark (added, modified, …), path and facts."""
    width = max((len(visible(file.path)) for file in files), default=0)
    return [f"{file.mark}  {visible(file.path):<{width}}  {file.facts}".rstrip() for file in files]


def diff_text(files: Sequence[ChangedFile]) -> str:
    """Return the lines of `file_lines`, then the diffs of the files."""
    return "\n".join([*file_lines(files), "", *(file.diff for file in files if file.diff)])


class Frontend:
    """Shows the controller's messages and asks its questions, on a screen, in an editor or as text.

    A frontend that only shows text has to implement ``say``, ``ask`` and ``go_to``; the other
    methods here print text or do nothing.
    """

    has_screen = False
    """Whether the frontend can show every page and ask every question."""
    keeps_asides = False
    """Whether a busy session continues in the background when another session is opened."""
    opens_sessions = True
    """Whether commands can open another session in this frontend.

    If they can't, `go_to` tells the user what to do instead.
    """
    is_attended = True
    """Whether there is a user who can answer questions."""
    keymap: Mapping[str, str] = MappingProxyType({})
    """Keys that the user has set for commands, by command name."""

    @property
    def is_closed(self) -> bool:
        """Whether the program is ending, so that nothing can be shown or asked any more.

        By default, False.
        """
        return False

    def command_begins(self) -> None:
        """Called when the user gives a command; does nothing by default."""

    def files_changed(self) -> None:
        """Called when something other than a run of the agent may have changed the project's files.

        Does nothing by default.
        """

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        """Show a message, which stays until the next message or run; offer ``remedy`` if given."""
        raise NotImplementedError

    def announce(self, message: str, severity: Severity = "information") -> None:
        """Show a message at once, even if a page covers the conversation; by default, `say` it."""
        self.say(message, severity)

    def warn(self, message: str) -> None:
        """Show a warning, which stays even if a run begins now; by default, `say` it."""
        self.say(message, "warning")

    async def ask(self, question: Question[Answer_co]) -> Answer_co | None:
        """Ask the user a question and return the answer; None if they cancel or can't be asked."""
        raise NotImplementedError

    async def fill_in(
        self,
        asked: ModelQuestions,  # noqa: ARG002 - as overridden
        former: Mapping[str, Value],  # noqa: ARG002 - as overridden
    ) -> Answer | None:
        """Ask the model's questions in one form, in which the ``former`` answers are filled in.

        Returns None if the frontend has no forms, which is the default; the caller then asks each
        question separately.
        """
        return None

    def show(self, page: Page) -> None:
        """Show a page.

        By default, shows its text as Markdown with `say`, or says that it needs the full screen.
        """
        words = page.words()
        if words is None:
            needs = "only the full-screen program shows this. Run tui-agent in a terminal."
            self.say(f"{page.title}: {needs}", "warning")
            return
        if isinstance(page, DiffPage):
            words = words[:MAX_DIFF_CHARS]
        if page.fence is not None:
            words = f"```{page.fence}\n{words}\n```"
        if not isinstance(page, Output):
            words = f"**{page.title}**\n\n{words}"
        self.say(words)

    def opening(self) -> None:
        """Called before another session is opened; does nothing by default."""

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        """Show the opened session, scrolled to ``entry`` if given; does nothing by default."""

    @property
    def progress(self) -> RunState:
        """What the open session's agent is doing; by default, it is always idle."""
        return RunState()

    def show_asides(self, asides: Sequence[Aside]) -> None:
        """Show the state of the sessions in the background; does nothing by default."""

    def call_to_aside(self, aside: Aside, sentence: str) -> None:
        """Tell the user at once that the state of a background session has changed.

        By default, only shows ``sentence``.
        """
        del aside
        self.announce(sentence)

    def refresh_facts(self) -> None:
        """Redraw the session's title, leaf, model, mode, size and cost; does nothing by default."""

    def apply_settings(self, config: Config) -> None:
        """Apply the settings for appearance and keys; does nothing by default."""

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard; by default, only show it."""
        self.say(text)

    def open_page(self, url: str) -> None:
        """Open a URL in the user's browser.

        By default, only show it, because the browser may be on another machine.
        """
        self.say(url)

    def leave(self) -> None:
        """End the program; does nothing by default."""

    def go_to(self, request: OpenRequest) -> None:
        """Open the requested session; if it is open already, go to the requested entry."""
        raise NotImplementedError

    def jump_to(self, entry_id: int) -> bool:
        """Scroll to an entry of the conversation; return False if the entry is not on this branch.

        By default, return False.
        """
        del entry_id
        return False

    def use_theme(self, name: str) -> bool:
        """Switch to a theme; return False if no theme has this name. By default, return False."""
        del name
        return False

    def toggle_view(self) -> bool:
        """Switch between the whole conversation and the part of it that is sent to the model.

        Return True if the model's view is shown now. By default, do nothing and return False.
        """
        return False

    def toggle_open(self, what: Opened) -> bool:
        """Open all outputs or all thoughts of the conversation, or fold them again.

        Return True if they are open now. By default, do nothing and return False.
        """
        del what
        return False

    def toggle_panel(self) -> None:
        """Show or hide the side panel; does nothing by default."""

    def clear_notice(self) -> None:
        """Remove the message that ``say`` showed last; does nothing by default."""

    def warnings_read(self) -> None:
        """Mark every warning as read; does nothing by default."""

    # -- the prompt

    @property
    def draft(self) -> str:
        """The text in the prompt, including pasted parts; by default ""."""
        return ""

    @property
    def stashed(self) -> str:
        """Text that the user stashed, that is, took out of the prompt for later; by default "".

        It includes pasted parts.
        """
        return ""

    def forget_stash(self) -> None:
        """Drop the stashed text, which the user took out of the prompt; does nothing by default."""

    def set_draft(self, text: str) -> None:
        """Replace the prompt's text; does nothing by default."""

    def rewrite_typed(self, clean: Callable[[str], str]) -> None:
        """Replace each text that the user typed by what ``clean`` returns for it.

        These are the prompt's text and the texts in the prompt's history. Does nothing by default.
        """

    def put_back(self, text: str) -> None:
        """Insert an unsent message before the prompt's text; by default, only show it."""
        self.say(f"Not sent: {text}", "warning")

    def restore_message(self, text: str) -> None:
        """Put an undone message into the prompt, replacing the one that was restored before.

        Text that the user typed, and an earlier message that they changed, are kept after the new
        message. If ``text`` is "", only removes the earlier message. By default, only shows the
        message.
        """
        if text:
            self.say(f"The message was: {text}")

    def withdraw_message(self, text: str) -> None:
        """Remove the restored message from the prompt, unless the user changed it.

        ``text`` is an earlier message to put there instead, "" for none. Does nothing by default.
        """
