"""The controller's dependencies: the store, ways to open sessions and make agents, and the command line's options."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tui_agent.lazy import frozen

if TYPE_CHECKING:
    # Only for annotations: this module is there before the first paint, and entries take long to
    # import.
    from collections.abc import Mapping, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.permissions import Rule
    from tui_agent.app.logins import LoginController
    from tui_agent.config import Config
    from tui_agent.model.naming import NameVerdict
    from tui_agent.session.records import Reported
    from tui_agent.session.session import Session
    from tui_agent.session.store import Store
    from tui_agent.setting_rows import SettingRow
    from tui_agent.trust import ProjectState, TrustDecision


class OpenHow(StrEnum):
    """How to open a session that another program may hold."""

    OPEN = "open"
    READ_ONLY = "read_only"
    FORK = "fork"
    TAKE_OVER = "take_over"


@frozen
class OpenRequest:
    """Which session to open; no id: a new one.

    ``demo``: in a scratch directory, with the scripted model.

    ``entry`` is shown once it is open, in the conversation or, from another branch, in the tree.
    """

    session_id: str | None = None
    how: OpenHow = OpenHow.OPEN
    demo: bool = False
    entry: int | None = None


@frozen
class ModelRow:
    """A model as the picker shows it.

    The window is tokens, prices are US dollars per million tokens.
    """

    id: str
    provider: str
    window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    abilities: tuple[str, ...] = ()
    """Short words: tools, vision, reasoning, ..."""
    has_key: bool = False
    """Whether requests to it can be authorised now (a key was found, or none is needed)."""
    server: str = ""
    """The base URL of a server of the user's that named it; "" where its requests go there
    anyway."""


@frozen
class Look:
    """The settings of ``[ui]`` that the first paint needs, before the others are read."""

    theme: str | None = None
    """A Textual theme; None follows the terminal's background."""
    reduced_motion: bool = False


class SessionServices(Protocol):
    """Opens sessions, and makes the agents that work in them."""

    store: Store

    def open_session(self, request: OpenRequest, /) -> Session:
        """Open or create a session.

        Raises:
            SessionHeld: another live program has it, and the request doesn't say what to do then.
            StoreError: it can't be opened.
        """

    def close_session(self, session: Session, /) -> None: ...

    def make_agent(self, session: Session, /) -> Agent: ...

    def show_agent(self, agent: Agent, /) -> None:
        """Take note that an agent made earlier is the one on the screen again."""

    def let_terminals_go(self) -> bool:
        """Take a detached run off the terminals that show it; False where this is no detached run."""

    def detached_run(self, session_id: str, /) -> str:
        """Return the name of the detached run that has a session open, "" where none has."""

    def go_on_detached(self, session: Session, is_running: bool, /) -> None:  # noqa: FBT001 - one fact of the session
        """Have a session go on in a detached run once this program has ended.

        ``is_running`` says whether its run is to be taken up again.
        """


class SettingServices(Protocol):
    """Reads and keeps the user's settings and keys."""

    config_path: Path
    warnings: Sequence[str]
    """Oddities of the settings and arguments, to be shown at the start."""
    logins: LoginController
    """The keys a user enters in the program."""

    def config(self) -> Config: ...

    def save_setting(self, key: str, value: object, /) -> object:
        """Keep a setting (``ui.theme``, ``model``) in the user's configuration file."""

    def settings_rows(self) -> Sequence[SettingRow]:
        """Return every setting as it is in the file and the environment now."""

    def reread_settings(self) -> Sequence[str]:
        """Read the settings again and apply them to the open session's agent.

        Returns the keys of those that changed.

        Raises:
            ConfigError: they can't be used; everything stays as it was.
        """

    def doctor(self) -> Sequence[str]:
        """Return the lines of ``tui-agent doctor``; call it in a thread."""


class TrustServices(Protocol):
    """Asks and remembers what a project and its commands may do."""

    def trust_question(self) -> ProjectState | None:
        """Return the project's trust state, when the user has not answered yet whether it may act."""

    def project_state(self) -> ProjectState:
        """Look at what the project brings along, and whether it may act; call it in a thread."""

    def answer_trust(self, answer: TrustDecision | None, /) -> None:
        """Take the answer for what was looked at last."""

    def forget_rule(self, rule: Rule, /) -> str | None:
        """Remove a permission rule from where it is kept; returns why that can't be done."""

    def keep_rule(self, rule: Rule, /) -> str | None:
        """Keep a permission rule in the user's configuration; returns why that can't be done."""

    def check_command(self, project: Path, /) -> str:
        """Return the command that checks the work in a project, "" when none is remembered."""

    def keep_check(self, project: Path, command: str, /) -> None:
        """Remember the command for a project, in the user's file.

        Raises:
            ConfigError, OSError: it can't be written.
        """


class ModelServices(Protocol):
    """Finds models, and what they cost."""

    def models(self) -> Sequence[ModelRow]:
        """List the models of the catalog, those that can be used first; call it in a thread."""

    async def ask_servers(self, model: str | None, /) -> Sequence[str]:
        """Ask the servers whose models the catalog can't know for them, or only the one of a model.

        One model's server is asked when nothing is known of it or that is a day old. Returns how it
        went, a line each.
        """

    async def find_servers(self) -> Sequence[str]:
        """Look for model servers on the ports of this machine where they usually listen.

        `models` then has theirs. Returns a line for each that answered.
        """

    def judge_model(self, name: str, /) -> NameVerdict | None:
        """Return a verdict on a model's name; call it in a thread."""

    def reread_cost(self, model: str, cached: int, /) -> float | None:
        """Return the extra cost of reading tokens without the provider's cache, in US dollars."""

    def price(self, model: str, usage: Reported, /) -> float | None:
        """Return the cost of a request, in US dollars."""

    def provider_keys(self) -> Mapping[str, str]:
        """Return where the key of each provider that can be used comes from, by the provider's name."""


class FileServices(Protocol):
    """Looks at the project's files, and knows the program's own places."""

    cwd: Path
    """Where the program was started."""
    state_dir: Path
    """Where copies that no clipboard took are saved."""
    own_places: Sequence[Path]
    """The directories that the program keeps files in, those of the settings left out."""

    async def list_files(self, project: Path, /) -> Sequence[str]: ...

    async def branch(self, project: Path, /) -> str | None:
        """Name the branch checked out, with ``*`` after it when tracked files are changed.

        None outside of git.
        """


class AppServices(
    SessionServices, SettingServices, TrustServices, ModelServices, FileServices, Protocol
):
    """Everything the application is given."""

    def clock(self) -> float:
        """Return the seconds since the epoch."""

    def on_ready(self) -> None:
        """Start the slow parts; called once after the first paint."""


@frozen
class FirstView:
    """The application's first screen.

    ``prompt`` is sent at once when ``screen`` is "main". "welcome" and "sessions" lie over the main
    screen.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
