"""The questions and pages of the controller, and the `Frontend` that shows them to the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from tui_agent.app.format import visible
from tui_agent.app.run_state import RunState
from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    # Only for annotations: this module is there before the first paint.
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

Severity = Literal["information", "warning", "error"]
Remedy = tuple[str, str, str]
"""What a message offers to do: a key, its label, and the screen action it runs."""

Answer_co = TypeVar("Answer_co", covariant=True)

MAX_DIFF_CHARS = 100_000
"""Maximum characters of a diff printed where there is no screen."""


class Shown:
    """A question or a page."""

    @property
    def identity(self) -> object:
        """Equal for two that show the same: one is not opened over the other."""
        return self


class Question(Shown, Generic[Answer_co]):
    """Something the user is asked. The answer is None if they cancel."""


@frozen
class Choice(Question[str]):
    """A question with a few answers, each a key and its text."""

    question: str
    answers: Sequence[tuple[str, str]]
    details: str = ""
    at: str | None = None
    """The answer that the cursor starts on; None: the first."""
    numbered: bool = False
    """Whether digits choose answers; keys that are letters always do."""
    why: str = ""
    """Reason for the question, in one line."""
    files: Sequence[ChangedFile] = ()
    """Changed files that the question is about."""
    inline: bool = False
    """Whether it is shown above the prompt, where the conversation and the prompt stay usable."""
    by_tab: bool = False
    """Whether an inline question takes keys only after Tab or a click; typing is text until then."""
    comes_first: bool = False
    """Whether an inline question stays when a message is sent: nothing can be sent unanswered."""
    wide: bool = False
    """Whether the details are table rows, which may be wider than running text."""
    unasked: str | None = None
    """The answer used where nobody can be asked; None: the command fails there."""

    @property
    def keys(self) -> list[str]:
        """The key of each answer: its name if that is a letter, otherwise its number."""
        keys = []
        for number, (name, _text) in enumerate(self.answers, 1):
            is_letter = len(name) == 1 and name.isalpha()
            keys.append(name if is_letter else str(number))
        return keys


@frozen
class PickRow:
    """A row of a `Pick`. ``text`` is one line, which is searched; ``facts`` are shown at its end.

    ``details`` are lines shown while the row is highlighted.
    """

    key: str
    text: str
    facts: str = ""
    details: str = ""


@frozen
class Pick(Question[str]):
    """A question with many answers, found by typing.

    The answer is the key of a row. ``confirm`` is the label of Enter.
    """

    question: str
    rows: Sequence[PickRow]
    confirm: str = "choose"


@frozen
class TextLine(Question[str]):
    """Asks for one line of text.

    ``confirm`` is the label of Enter; a ``hidden`` text is never shown or kept.
    """

    question: str
    text: str = ""
    confirm: str = "keep"
    details: str = ""
    hidden: bool = False


@frozen
class LongText(Question[str]):
    """A text of several lines to edit. ``confirm`` is the label of the key that keeps it."""

    question: str
    text: str
    confirm: str = "keep"


@frozen
class EditedText(Question[str]):
    """A text to edit in the user's own editor.

    ``name`` is the file's name, whose suffix tells editors the type.
    """

    text: str
    name: str = "text.md"


@frozen
class ModelPick:
    """The chosen model. With ``server`` (a base URL), it is to be set up there first."""

    model: str
    server: str = ""
    only_here: bool = False
    """Whether it is for this session only, not for later starts too."""


@frozen
class ModelChoice(Question[ModelPick]):
    """Asks for a model; with ``switches`` also whether it is for this session only."""

    current: str
    switches: bool = False


@frozen
class SessionChoice(Question["OpenRequest"]):
    """Asks for a session to open; ``current`` is the id of the open one."""

    current: str | None


@frozen
class ThemeChoice(Question[str]):
    """Asks for a theme."""


class Heading(str):
    """A line of a report that is a heading."""

    __slots__ = ()


class Page(Shown):
    """Something that is shown and left again. Most pages need a screen."""

    title: str
    fence: ClassVar[str | None] = ""
    """Language of the Markdown fence around its text; None: the text is Markdown itself."""

    def words(self) -> str | None:
        """Return the page as text, for where there is no screen; None if it needs one."""
        return None


class LinedPage(Page):
    """A page whose text is its ``lines``."""

    lines: Sequence[str]

    def words(self) -> str:
        return "\n".join(self.lines)


@frozen
class Report(Page):
    """Lines to read; the page opens at the heading ``at``."""

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
    """A long output, complete."""

    title: str
    text: str

    def words(self) -> str:
        return self.text


@frozen
class TreePage(LinedPage):
    """All branches of the session, the cursor ``at`` an entry or the leaf. ``lines``: without a screen."""

    at: int | None = None
    lines: Sequence[str] = ()
    title: str = "The session tree"


@frozen
class ContextPage(LinedPage):
    """The next request, block by block. ``lines``: without a screen."""

    lines: Sequence[str] = ()
    title: str = "The context map"


@frozen
class CompactPage(Page):
    """A compaction to look at and edit before it is applied.

    ``boundary`` is the entry that the summarised part ends before; None: chosen by the program.
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
    """Every command, key and setting; ``with_keys``: below the keys of the conversation."""

    with_keys: bool = True
    title: str = "Help"


@frozen
class EquipmentLine:
    """A line of the equipment page. Choosing it switches to ``agent``; "" does nothing."""

    text: str
    agent: str = ""


@frozen
class EquipmentPage(Page):
    """Agents, skills and tools as ``lines``, and the MCP servers below them.

    The cursor starts on the line below the heading ``at``.
    """

    lines: Sequence[EquipmentLine] = ()
    at: str = ""
    title: str = "The page of MCP servers"


@frozen
class MemoryPage(LinedPage):
    """The project's memory and the proposals for it. ``lines``: a diff, without a screen."""

    view: MemoryView = field(compare=False)
    lines: Sequence[str] = ()
    title: str = "The memory"


@frozen
class PermissionsPage(Page):
    """Every permission rule with its origin."""

    title: str = "The permission rules"


@frozen
class SubagentPage(Page):
    """A subagent's session; ``watched`` is the agent at work, or the session it has finished."""

    watched: Agent | FinishedSubagent
    close: Callable[[], None] = field(default=lambda: None)
    title: str = "What a subagent did"

    @property
    def identity(self) -> object:
        session = self.watched.session
        return (session.id, session.leaf)


@frozen
class RacePage(LinedPage):
    """A running race, or the entry of a finished one. ``lines``: its text."""

    race: Race | RaceEntry
    lines: Sequence[str] = ()
    title: str = "The race"
    fence = None


@frozen
class RunnerPage(Page):
    """A runner of a race, by its agent or its finished session. ``race`` is a ``RaceView``."""

    watched: Agent | FinishedSubagent = field(compare=False)
    race: Any = field(compare=False)
    number: int
    title: str = "A runner of the race"


@frozen
class DiffPage(Page):
    """The differences of files, one by one."""

    title: str
    files: Sequence[ChangedFile]
    fence = "diff"

    def words(self) -> str:
        return diff_text(self.files)


@frozen
class FindPage(Page):
    """The occurrences of a text in the conversation; with "" the user types it there."""

    query: str = ""
    title: str = "Searching the conversation"


@frozen
class JobsPage(Page):
    """The background jobs with their output, live."""

    title: str = "The background jobs"


def file_lines(files: Sequence[ChangedFile]) -> list[str]:
    width = max((len(visible(file.path)) for file in files), default=0)
    return [f"{file.mark}  {visible(file.path):<{width}}  {file.facts}".rstrip() for file in files]


def diff_text(files: Sequence[ChangedFile]) -> str:
    return "\n".join([*file_lines(files), "", *(file.diff for file in files if file.diff)])


class Frontend:
    """Shows the controller's messages and asks its questions: a screen, an editor or a plain run.

    A frontend that has only text implements ``say`` and ``ask``; the other methods print text here
    or do nothing.
    """

    has_screen = False
    """Whether it can show every page and ask every question."""
    keeps_asides = False
    """Whether a busy session goes on when another one is opened, instead of being stopped."""
    is_attended = True
    """Whether a user is there to answer."""
    keymap: Mapping[str, str] = MappingProxyType({})
    """The user's own keys, by name of the action."""

    def command_begins(self) -> None:
        """Note that the user gave a command just now."""

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        """Show one sentence until something new begins; ``remedy`` is what it offers."""
        raise NotImplementedError

    def announce(self, message: str, severity: Severity = "information") -> None:
        """Show one sentence at once, whatever page is open."""
        self.say(message, severity)

    def warn(self, message: str) -> None:
        """Show a warning that stays even if a run begins now."""
        self.say(message, "warning")

    async def ask(self, question: Question[Answer_co]) -> Answer_co | None:
        """Ask the user and return the answer; None if they cancel or nobody can be asked."""
        raise NotImplementedError

    async def fill_in(
        self,
        asked: ModelQuestions,  # noqa: ARG002 - as overridden
        former: Mapping[str, Value],  # noqa: ARG002 - as overridden
    ) -> Answer | None:
        """Ask the model's questions as one form, ``former`` answers filled in; None: no forms here."""
        return None

    def show(self, page: Page) -> None:
        words = page.words()
        if words is None:
            needs = "that needs the full-screen program. Run tui-agent in a terminal."
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
        """Note that another session is about to be opened."""

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        """Show the session that was opened, at ``entry`` if given."""

    @property
    def progress(self) -> RunState:
        """What the open session's agent is doing."""
        return RunState()

    def show_asides(self, asides: Sequence[Aside]) -> None:
        """Show the state of the sessions off the screen."""

    def call_to_aside(self, aside: Aside, sentence: str) -> None:
        """Tell the user news of a session off the screen."""
        del aside
        self.announce(sentence)

    def refresh_facts(self) -> None:
        """Update the shown title, leaf, model, mode, size and cost."""

    def apply_settings(self, config: Config) -> None:
        """Apply the settings of looks and keys."""

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard."""
        self.say(text)

    def open_page(self, url: str) -> None:
        """Open an address in the user's browser, which may be on another machine."""
        self.say(url)

    def leave(self) -> None:
        """End the program."""

    def go_to(self, request: OpenRequest) -> None:
        """Open a session; if it is open already, go to the requested entry."""
        raise NotImplementedError

    def jump_to(self, entry_id: int) -> bool:
        """Scroll to an entry of the conversation; False if it is not on this branch."""
        del entry_id
        return False

    def use_theme(self, name: str) -> bool:
        """Switch to a theme; False if there is none of that name."""
        del name
        return False

    def toggle_view(self) -> bool:
        """Switch between what the model sees and all; return True if the former is shown now."""
        return False

    def toggle_panel(self) -> None:
        """Show or hide the side panel."""

    def clear_notice(self) -> None:
        """Remove the last message of ``say``."""

    def warnings_read(self) -> None:
        """Note that the user has seen every warning."""

    # -- the prompt

    @property
    def draft(self) -> str:
        """The prompt's text, pasted parts included."""
        return ""

    def set_draft(self, text: str) -> None:
        """Replace the prompt's text."""

    def rewrite_typed(self, clean: Callable[[str], str]) -> None:
        """Replace typed texts that are kept in memory by what ``clean`` returns for each."""

    def put_back(self, text: str) -> None:
        """Put a message back into the prompt, before the text that is there."""
        self.say(f"Not sent: {text}", "warning")

    def restore_message(self, text: str) -> None:
        """Put an undone message into the prompt, in place of a previously restored one ("": only remove that).

        The user's own text stays after it. ``withdraw_message`` removes it again.
        """
        if text:
            self.say(f"The message was: {text}")

    def withdraw_message(self, text: str) -> None:
        """Remove restored messages from the prompt, except for ``text``."""
