"""The controller's questions and pages as data, and `Frontend`, the interface that shows them.

The methods of `Frontend` are defaults for frontends without a screen; the full screen's are in
ui/screens/session_frame.py and main.py.
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
"""The kinds of blocks in the conversation that one command opens all at once."""
Severity = Literal["information", "warning", "error"]
Remedy = tuple[str, str, str]
"""An action offered with a message: key, label, and the screen action that the key runs."""

Answer_co = TypeVar("Answer_co", covariant=True)

MAX_DIFF_CHARS = 100_000
"""Maximum characters of a diff that a frontend without a screen prints."""


UNREQUESTED = float("-inf")
"""Value of `requested_at` for a question that no command of the user caused, such as a server's."""
requested_at: ContextVar[float | None] = ContextVar("requested_at", default=None)
"""When the user gave the command that the current task carries out, in seconds since the epoch.

None if that is unknown, as for the keys of a page.
"""


class Shown:
    """Base of questions and pages."""

    @property
    def identity(self) -> object:
        """Equal for two questions or pages that show the same thing, so that none is opened twice."""
        return self


class Question(Shown, Generic[Answer_co]):
    """A question to the user. The answer is None if they cancel."""


@frozen
class Choice(Question[str]):
    """A question with a few answers: pairs of a name, which is returned, and the text to show."""

    question: str
    answers: Sequence[tuple[str, str]]
    details: str = ""
    at: str | None = None
    """Name of the answer that the cursor starts on; None: the first."""
    numbered: bool = False
    """Whether digits choose answers. Letters always choose the answers that they name."""
    why: str = ""
    """Reason for the question, in one line."""
    files: Sequence[ChangedFile] = ()
    """Changed files that the question is about."""
    inline: bool = False
    """Whether it is shown above the prompt, so that conversation and prompt stay usable."""
    by_tab: bool = False
    """Whether an inline question takes keys only after Tab or a click; until then, keys go to the prompt."""
    ticks: int = 0
    """Number of answers at the start that have a tick box; the answer after them ends the ticking.

    Space ticks the answer at the cursor. The question is asked again, with ``at``, after each tick.
    """
    comes_first: bool = False
    """Whether no message can be sent until an inline question is answered."""
    wide: bool = False
    """Whether the details are table rows, which may be wider than running text."""
    noted: Sequence[str] = ()
    """Names of the answers to which the user can add a note, in the field above the prompt.

    The answer is then the name, a space and the note.
    """
    unasked: str | None = None
    """Name of the answer used in a run without a user; None: the command fails there."""

    @property
    def goes_on(self) -> bool:
        """Whether it is asked again after a tick, while the user is still answering."""
        return self.ticks > 0 and self.at is not None

    @property
    def keys(self) -> list[str]:
        """The keyboard key of each answer: its name if that is a letter, otherwise its number."""
        keys = []
        for number, (name, _text) in enumerate(self.answers, 1):
            is_letter = len(name) == 1 and name.isalpha()
            keys.append(name if is_letter else str(number))
        return keys


@frozen
class PickRow:
    """A row of a `Pick`. ``text`` is one line, which is searched for the words that the user types.

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

    The answer is the key of a row. ``confirm`` is the label of Enter.
    """

    question: str
    rows: Sequence[PickRow]
    confirm: str = "choose"


@frozen
class TextLine(Question[str]):
    """Asks for one line of text.

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
    """The model that the user chose.

    ``server`` is the base URL to save in the model's settings, "" if it needn't be saved.
    """

    model: str
    server: str = ""
    only_here: bool = False
    """Whether the model is for this session only, and not also for later starts."""


@frozen
class ModelChoice(Question[ModelPick]):
    """Asks for a model; ``current`` is the id of the one in use.

    With ``switches``, the user can also choose a model for this session only. ``search`` is the text
    by which the list is filtered at first.
    """

    current: str
    switches: bool = False
    search: str = ""


@frozen
class SessionChoice(Question["OpenRequest"]):
    """Asks for a session to open; ``current`` is the id of the open one."""

    current: str | None


@frozen
class ThemeChoice(Question[str]):
    """Asks for a theme; the answer is its name."""


class Heading(str):
    """A line of a report that is a heading."""

    __slots__ = ()


class Page(Shown):
    """Something that the user looks at and closes. Most pages need the full screen."""

    title: str
    fence: ClassVar[str | None] = ""
    """Language of the Markdown fence around the page's text; None if the text is Markdown itself."""

    def words(self) -> str | None:
        """Return the page as text for frontends without a screen; None if it needs a screen."""
        return None


class LinedPage(Page):
    """A page with ``lines`` as the text for frontends without a screen."""

    lines: Sequence[str]

    def words(self) -> str:
        return "\n".join(self.lines)


@frozen
class Report(Page):
    """Lines to read; the page opens at the heading ``at``, or at the top if that is ""."""

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
    """A long text, shown in full."""

    title: str
    text: str

    def words(self) -> str:
        return self.text


@frozen
class TreePage(LinedPage):
    """All branches of the session. The cursor is ``at`` an entry, by default at the leaf.

    ``lines`` is the text without a screen.
    """

    at: int | None = None
    lines: Sequence[str] = ()
    title: str = "The session tree"


@frozen
class ContextPage(LinedPage):
    """The next request, block by block. ``lines`` is the text without a screen."""

    lines: Sequence[str] = ()
    title: str = "The context map"


@frozen
class CompactPage(Page):
    """A compaction that the user can look at and edit before it is applied.

    ``boundary`` is the number of the first entry that is kept; None: the program chooses it.
    """

    boundary: int | None = None
    title: str = "The compaction preview"


@frozen
class SettingsPage(Page):
    """Every setting, filtered by ``query``."""

    query: str = ""
    title: str = "The settings"


@frozen
class HelpPage(Page):
    """Every command, key and setting; ``with_keys`` shows the conversation's keys above them.

    ``query`` is the text by which the page is filtered at first, "" for none.
    """

    with_keys: bool = True
    query: str = ""
    title: str = "Help"


@frozen
class EquipmentLine:
    """A line of the equipment page. If ``agent`` is not "", choosing the line switches to that agent."""

    text: str
    agent: str = ""


@frozen
class EquipmentPage(Page):
    """Agents, skills and tools as ``lines``, and below them the MCP servers.

    The cursor starts on the line below the heading ``at``.
    """

    lines: Sequence[EquipmentLine] = ()
    at: str = ""
    title: str = "The page of MCP servers"


@frozen
class MemoryPage(LinedPage):
    """The project's memory and the proposals for it.

    ``lines`` is the text without a screen, in which the proposals are a diff.
    """

    view: MemoryView = field(compare=False)
    lines: Sequence[str] = ()
    title: str = "The memory"


@frozen
class PermissionsPage(Page):
    """Every permission rule with its origin."""

    title: str = "The permission rules"


@frozen
class SubagentPage(Page):
    """A subagent's session; ``watched`` is the working agent, or the stored session of a finished one.

    ``close`` is called when the page is left.
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
    """A running race, or the entry of a finished one. ``lines`` is the text without a screen."""

    race: Race | RaceEntry
    lines: Sequence[str] = ()
    title: str = "The race"
    fence = None


@frozen
class RunnerPage(Page):
    """The session of a race's runner ``number``; ``watched`` is its agent, or the finished session.

    ``race`` is a ``RaceView``.
    """

    watched: Agent | FinishedSubagent = field(compare=False)
    race: Any = field(compare=False)
    number: int
    title: str = "A runner of the race"


@frozen
class DiffPage(Page):
    """The diffs of files, one by one."""

    title: str
    files: Sequence[ChangedFile]
    fence = "diff"

    def words(self) -> str:
        return diff_text(self.files)


@frozen
class FindPage(Page):
    """The find bar, which searches the conversation for ``query``; the user can change the query."""

    query: str = ""
    title: str = "Searching the conversation"


@frozen
class JobsPage(Page):
    """The background jobs with their current output."""

    title: str = "The background jobs"


def file_lines(files: Sequence[ChangedFile]) -> list[str]:
    """Return a line for each file: its mark (added, modified, …), path and facts."""
    width = max((len(visible(file.path)) for file in files), default=0)
    return [f"{file.mark}  {visible(file.path):<{width}}  {file.facts}".rstrip() for file in files]


def diff_text(files: Sequence[ChangedFile]) -> str:
    """Return the lines of `file_lines`, then the diffs of the files."""
    return "\n".join([*file_lines(files), "", *(file.diff for file in files if file.diff)])


class Frontend:
    """Shows the controller's messages and asks its questions: a screen, an editor or a plain run.

    A frontend with only text has to implement ``say``, ``ask`` and ``go_to``; the other methods
    here print text or do nothing.
    """

    has_screen = False
    """Whether the frontend can show every page and ask every question."""
    keeps_asides = False
    """Whether a busy session continues when another one is opened, instead of being stopped."""
    opens_sessions = True
    """Whether a command can open another session here; `go_to` says what to do if it can't."""
    is_attended = True
    """Whether there is a user who can answer questions."""
    keymap: Mapping[str, str] = MappingProxyType({})
    """Keys that the user configured, by command name."""

    def command_begins(self) -> None:
        """Called when the user gives a command; does nothing by default."""

    def files_changed(self) -> None:
        """Called when the project's files may have changed without a run; does nothing by default."""

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        """Show a message until the next one, or until a run begins; ``remedy`` is an action to offer."""
        raise NotImplementedError

    def announce(self, message: str, severity: Severity = "information") -> None:
        """Show a message at once, even if a page covers the conversation; by default as ``say`` does."""
        self.say(message, severity)

    def warn(self, message: str) -> None:
        """Show a warning that stays even if a run begins now; by default as ``say`` does."""
        self.say(message, "warning")

    async def ask(self, question: Question[Answer_co]) -> Answer_co | None:
        """Ask the user and return the answer; None if they cancel or can't be asked."""
        raise NotImplementedError

    async def fill_in(
        self,
        asked: ModelQuestions,  # noqa: ARG002 - as overridden
        former: Mapping[str, Value],  # noqa: ARG002 - as overridden
    ) -> Answer | None:
        """Ask the user the model's questions in one form, with the ``former`` answers filled in.

        Returns None if the frontend has no forms, which is the default; the caller then asks each
        question separately.
        """
        return None

    def show(self, page: Page) -> None:
        """Show a page; by default as a Markdown message, or a message that it needs the full screen."""
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
        """Show the session that was opened, scrolled to ``entry`` if given; does nothing by default."""

    @property
    def progress(self) -> RunState:
        """What the open session's agent is doing; by default always idle."""
        return RunState()

    def show_asides(self, asides: Sequence[Aside]) -> None:
        """Show the state of the sessions that are off the screen; does nothing by default."""

    def call_to_aside(self, aside: Aside, sentence: str) -> None:
        """Show news at once about a session that is off the screen; by default, only ``sentence``."""
        del aside
        self.announce(sentence)

    def refresh_facts(self) -> None:
        """Redraw the title, leaf, model, mode, size and cost of the session; does nothing by default."""

    def apply_settings(self, config: Config) -> None:
        """Apply the settings for appearance and keys; does nothing by default."""

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard; by default, only show it."""
        self.say(text)

    def open_page(self, url: str) -> None:
        """Open a URL in the user's browser; by default, only show it, as the browser may be elsewhere."""
        self.say(url)

    def leave(self) -> None:
        """End the program; does nothing by default."""

    def go_to(self, request: OpenRequest) -> None:
        """Open a session; if it is open already, go to the requested entry."""
        raise NotImplementedError

    def jump_to(self, entry_id: int) -> bool:
        """Scroll to an entry of the conversation; return False if it is not on this branch.

        By default, return False.
        """
        del entry_id
        return False

    def use_theme(self, name: str) -> bool:
        """Switch to a theme; return False if no theme has this name. By default, return False."""
        del name
        return False

    def toggle_view(self) -> bool:
        """Switch between the whole conversation and the model's view of it.

        Return True if the model's view is shown now. By default, do nothing and return False.
        """
        return False

    def toggle_open(self, what: Opened) -> bool:
        """Open all outputs, or all thoughts, of the conversation; or fold them as usual again.

        Return True if they are open now. By default, do nothing and return False.
        """
        del what
        return False

    def toggle_panel(self) -> None:
        """Show or hide the side panel; does nothing by default."""

    def clear_notice(self) -> None:
        """Remove the last message of ``say``; does nothing by default."""

    def warnings_read(self) -> None:
        """Mark every warning as read; does nothing by default."""

    # -- the prompt

    @property
    def draft(self) -> str:
        """The prompt's text, pasted parts included; by default ""."""
        return ""

    @property
    def stashed(self) -> str:
        """A draft that the user put away, pasted parts included; by default ""."""
        return ""

    def forget_stash(self) -> None:
        """Drop the draft that was put away; does nothing by default."""

    def set_draft(self, text: str) -> None:
        """Replace the prompt's text; does nothing by default."""

    def rewrite_typed(self, clean: Callable[[str], str]) -> None:
        """Replace the draft and each text in the prompt's history by what ``clean`` returns for it.

        Does nothing by default.
        """

    def put_back(self, text: str) -> None:
        """Insert an unsent message in front of the prompt's text; by default, only show it."""
        self.say(f"Not sent: {text}", "warning")

    def restore_message(self, text: str) -> None:
        """Put an undone message into the prompt, in place of the message restored before.

        If the user changed that, or typed something else, the text stays after the message. With
        "", only removes the message restored before. By default, only shows the message.
        """
        if text:
            self.say(f"The message was: {text}")

    def withdraw_message(self, text: str) -> None:
        """Remove the restored message from the prompt, unless the user changed it.

        If ``text``, an earlier message, is not "", put that into the prompt instead. Does nothing by
        default.
        """
