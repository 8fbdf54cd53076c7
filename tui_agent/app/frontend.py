"""How the controller speaks with a person: questions, pages, and the three ways to show them."""

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
"""A key, a label for it, and the action of the screen it runs."""

Answer_co = TypeVar("Answer_co", covariant=True)

MAX_DIFF_CHARS = 100_000
"""Characters of a diff that are printed where there is no screen."""


class Shown:
    """A question or a page."""

    @property
    def identity(self) -> object:
        """What only the same one has: it is not opened over itself."""
        return self


class Question(Shown, Generic[Answer_co]):
    """Something a person is asked. Its answer is None when they went back."""


@frozen
class Choice(Question[str]):
    """One of a few answers; each is a key and its text."""

    question: str
    answers: Sequence[tuple[str, str]]
    details: str = ""
    at: str | None = None
    """The answer the cursor begins on, the first by default."""
    numbered: bool = False
    """Whether a digit chooses an answer, as its key does where that is a letter."""
    why: str = ""
    """Why it is asked, in one line."""
    files: Sequence[ChangedFile] = ()
    """Changes of files that it is about."""
    inline: bool = False
    """It stands over the prompt, where the conversation stays readable and typing goes on."""
    by_tab: bool = False
    """An inline one that takes keys only after Tab or a click: until then all that is typed is
    text."""
    comes_first: bool = False
    """An inline one without whose answer nothing can be sent: it stays when a message is."""
    wide: bool = False
    """Its details are rows, which may be longer than a line of text is."""
    unasked: str | None = None
    """The answer where nobody can be asked; None: the asking command can't be used there."""

    @property
    def keys(self) -> list[str]:
        """The keys of the answers: their names where those are letters, else their numbers."""
        keys = []
        for number, (name, _text) in enumerate(self.answers, 1):
            is_letter = len(name) == 1 and name.isalpha()
            keys.append(name if is_letter else str(number))
        return keys


@frozen
class PickRow:
    """One of many answers. ``text`` is one line, in which one searches; ``facts`` stand at its end.

    ``details`` are lines shown while it is highlighted.
    """

    key: str
    text: str
    facts: str = ""
    details: str = ""


@frozen
class Pick(Question[str]):
    """One of many rows, found by typing.

    Answered with its key. ``confirm`` is the action of Enter, in a word.
    """

    question: str
    rows: Sequence[PickRow]
    confirm: str = "choose"


@frozen
class TextLine(Question[str]):
    """One line of text.

    ``confirm`` is the action of Enter, in a word; a ``hidden`` one is never shown or kept.
    """

    question: str
    text: str = ""
    confirm: str = "keep"
    details: str = ""
    hidden: bool = False


@frozen
class LongText(Question[str]):
    """A text of many lines to be changed. ``confirm`` is the action of keeping it, in a word."""

    question: str
    text: str
    confirm: str = "keep"


@frozen
class EditedText(Question[str]):
    """A text as the user makes it in their editor.

    ``name`` is the file's: its suffix says the type to editors.
    """

    text: str
    name: str = "text.md"


@frozen
class ModelPick:
    """A model that was picked. With ``server``, a base URL, it is to be set up there first."""

    model: str
    server: str = ""
    only_here: bool = False
    """Whether it is for this session, and not for the next start too."""


@frozen
class ModelChoice(Question[ModelPick]):
    """A model of the catalog, or any id. ``switches`` asks whether it is for this session only."""

    current: str
    switches: bool = False


@frozen
class SessionChoice(Question["OpenRequest"]):
    """A session to open."""

    current: str | None


@frozen
class ThemeChoice(Question[str]):
    """A theme."""


class Heading(str):
    """A line of a report that stands over others."""

    __slots__ = ()


class Page(Shown):
    """Something that is shown and left again. Only a screen can show most of them."""

    title: str
    fence: ClassVar[str | None] = ""
    """The language that its words are fenced with in Markdown; None: they are Markdown."""

    def words(self) -> str | None:
        """Return what it says where there is no screen, None where it needs one."""
        return None


class LinedPage(Page):
    """A page whose ``lines`` say it."""

    lines: Sequence[str]

    def words(self) -> str:
        return "\n".join(self.lines)


@frozen
class Report(Page):
    """Lines to read, from the heading ``at`` on."""

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
    """All of a long output."""

    title: str
    text: str

    def words(self) -> str:
        return self.text


@frozen
class TreePage(LinedPage):
    """All branches of the session, the cursor at an entry or at the leaf; ``lines`` where there is no screen."""

    at: int | None = None
    lines: Sequence[str] = ()
    title: str = "The session tree"


@frozen
class ContextPage(LinedPage):
    """The next request, block by block. ``lines`` are for where there is no screen."""

    lines: Sequence[str] = ()
    title: str = "The context map"


@frozen
class CompactPage(Page):
    """A compaction that is looked at and edited before it counts.

    ``boundary`` is where the summarised part ends.
    """

    boundary: int | None = None
    title: str = "The compaction preview"


@frozen
class SettingsPage(Page):
    """Every setting, those found that a text names."""

    query: str = ""
    title: str = "The settings"


@frozen
class HelpPage(Page):
    """The keys of the conversation, and every command, key and setting; without the former the list alone."""

    with_keys: bool = True
    title: str = "Help"


@frozen
class EquipmentLine:
    """A line of the page; choosing it switches to ``agent``, "" to nothing."""

    text: str
    agent: str = ""


@frozen
class EquipmentPage(Page):
    """Agents, skills, tools and, below these lines, MCP servers.

    The cursor is on the line below the heading ``at``.
    """

    lines: Sequence[EquipmentLine] = ()
    at: str = ""
    title: str = "The page of MCP servers"


@frozen
class MemoryPage(LinedPage):
    """The project's memory and what is proposed for it; ``lines`` are a diff for where there is no screen."""

    view: MemoryView = field(compare=False)
    lines: Sequence[str] = ()
    title: str = "The memory"


@frozen
class PermissionsPage(Page):
    """Every permission rule with its origin."""

    title: str = "The permission rules"


@frozen
class SubagentPage(Page):
    """A subagent's session; ``watched`` is the agent at work, or a session that is over."""

    watched: Agent | FinishedSubagent
    close: Callable[[], None] = field(default=lambda: None)
    title: str = "What a subagent did"

    @property
    def identity(self) -> object:
        session = self.watched.session
        return (session.id, session.leaf)


@frozen
class RacePage(LinedPage):
    """A race: the one that goes on, with its runners at work, or the entry of one that is over.

    ``lines`` say it.
    """

    race: Race | RaceEntry
    lines: Sequence[str] = ()
    title: str = "The race"
    fence = None


@frozen
class RunnerPage(Page):
    """A runner of a race: ``watched`` is its agent, or a session that ends where it did; ``race`` is a ``RaceView``."""

    watched: Agent | FinishedSubagent = field(compare=False)
    race: Any = field(compare=False)
    number: int
    title: str = "A runner of the race"


@frozen
class DiffPage(Page):
    """How files differ, one by one."""

    title: str
    files: Sequence[ChangedFile]
    fence = "diff"

    def words(self) -> str:
        return diff_text(self.files)


@frozen
class FindPage(Page):
    """The places of the conversation that hold a text; an empty one is still to be typed."""

    query: str = ""
    title: str = "Searching the conversation"


@frozen
class JobsPage(Page):
    """The background jobs, their output as it comes."""

    title: str = "The background jobs"


def file_lines(files: Sequence[ChangedFile]) -> list[str]:
    width = max((len(visible(file.path)) for file in files), default=0)
    return [f"{file.mark}  {visible(file.path):<{width}}  {file.facts}".rstrip() for file in files]


def diff_text(files: Sequence[ChangedFile]) -> str:
    return "\n".join([*file_lines(files), "", *(file.diff for file in files if file.diff)])


class Frontend:
    """A screen, an editor, or a run without either: shows the controller's messages and answers its questions.

    The methods here suit a frontend that has only words, which has to ``say`` and ``ask``: those
    for a screen print text or do nothing.
    """

    has_screen = False
    """Whether it can show every page and ask every question."""
    keeps_asides = False
    """Whether a session that works goes on when another one is opened, instead of being stopped."""
    is_attended = True
    """Whether a person is there to be asked."""
    keymap: Mapping[str, str] = MappingProxyType({})
    """The user's own keys, by the name of their action."""

    def command_begins(self) -> None:
        """Note that the user gave a command now."""

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        """Show one sentence, which stays until something new begins."""
        raise NotImplementedError

    def announce(self, message: str, severity: Severity = "information") -> None:
        """Show one sentence that does not wait to be read, whatever page is open."""
        self.say(message, severity)

    def warn(self, message: str) -> None:
        """Show one sentence that a run which begins now does not take away."""
        self.say(message, "warning")

    async def ask(self, question: Question[Answer_co]) -> Answer_co | None:
        """Ask a person and return the answer; None when they went back, or where nobody can be asked."""
        raise NotImplementedError

    async def fill_in(
        self,
        asked: ModelQuestions,  # noqa: ARG002 - as overridden
        former: Mapping[str, Value],  # noqa: ARG002 - as overridden
    ) -> Answer | None:
        """Ask all of the model's questions as one form; None where there are no forms."""
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
        """Take note that another session is about to be opened."""

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        """Show that another session is open, at an entry if one is named."""

    @property
    def progress(self) -> RunState:
        """What the open session's agent is at."""
        return RunState()

    def show_asides(self, asides: Sequence[Aside]) -> None:
        """Show how the sessions off the screen stand."""

    def call_to_aside(self, aside: Aside, sentence: str) -> None:
        """Call the user to a session off the screen."""
        del aside
        self.announce(sentence)

    def refresh_facts(self) -> None:
        """Show title, leaf, model, mode, size and cost as they are now."""

    def apply_settings(self, config: Config) -> None:
        """Apply the settings that concern looks and keys."""

    def copy(self, text: str) -> None:
        """Put a text into the clipboard."""
        self.say(text)

    def open_page(self, url: str) -> None:
        """Open an address in the user's browser, which may be on another machine."""
        self.say(url)

    def leave(self) -> None:
        """End the program."""

    def go_to(self, request: OpenRequest) -> None:
        """Open a session; where it is open already, go to the entry that is asked for."""
        raise NotImplementedError

    def jump_to(self, entry_id: int) -> bool:
        """Show an entry of the conversation; False when it is not on this branch."""
        del entry_id
        return False

    def use_theme(self, name: str) -> bool:
        """Use a theme; False when there is none of that name."""
        del name
        return False

    def toggle_view(self) -> bool:
        """Show only the part of the conversation the model sees, or all of it.

        Return whether it is the former now.
        """
        return False

    def toggle_panel(self) -> None:
        """Show or hide the side panel."""

    def clear_notice(self) -> None:
        """Remove the last message of ``say``."""

    def warnings_read(self) -> None:
        """Take note that the user has seen every warning."""

    # -- the prompt

    @property
    def draft(self) -> str:
        """The prompt's text, pasted parts included."""
        return ""

    def set_draft(self, text: str) -> None:
        """Replace the prompt's text."""

    def rewrite_typed(self, clean: Callable[[str], str]) -> None:
        """Replace the texts that were typed and are kept in memory by what ``clean`` makes of them."""

    def put_back(self, text: str) -> None:
        """Put a message back into the prompt, before the text that is there."""
        self.say(f"Not sent: {text}", "warning")

    def restore_message(self, text: str) -> None:
        """Put a message that was taken back into the prompt, in place of the one before; "" only takes that out.

        The user's text stays there, after it. ``withdraw_message`` takes it out again.
        """
        if text:
            self.say(f"The message was: {text}")

    def withdraw_message(self, text: str) -> None:
        """Leave in the prompt, of messages that were taken back, only ``text``."""
