"""The controller's dependencies: the store, ways to open sessions and make agents, and the command line's options."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tui_agent.lazy import dataclass

if TYPE_CHECKING:
    # Only for annotations: this module is there before the first paint, and entries take long to import .
    from collections.abc import Mapping, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.permissions import Rule
    from tui_agent.app.logins import LoginController
    from tui_agent.config import Config
    from tui_agent.model.naming import NameVerdict
    from tui_agent.model.served import LocalServer
    from tui_agent.session.records import Reported
    from tui_agent.session.session import Session
    from tui_agent.session.store import Store
    from tui_agent.setting_rows import SettingRow
    from tui_agent.trust import ProjectState


class OpenHow(StrEnum):
    """How to open a session somebody else may hold."""

    OPEN = "open"
    READ_ONLY = "read_only"
    FORK = "fork"
    TAKE_OVER = "take_over"


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Which session to open; no id: a new one. ``demo``: in a scratch directory, with the scripted model.

    ``entry`` is shown once it is open, in the conversation or, from another branch, in the tree.
    """

    session_id: str | None = None
    how: OpenHow = OpenHow.OPEN
    demo: bool = False
    entry: int | None = None


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model as the picker shows it. The window is tokens, prices are US dollars per million tokens."""

    id: str
    provider: str
    window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    abilities: tuple[str, ...] = ()
    """Short words: tools, vision, reasoning, ..."""
    has_key: bool = False
    """Whether requests to it can be authorised now (a key was found, or none is needed)."""


@dataclass(frozen=True, slots=True)
class Look:
    """The settings of ``[ui]`` that the first paint needs, before the others are read."""

    theme: str | None = None
    """A Textual theme; None follows the terminal's background."""
    reduced_motion: bool = False


class AppServices(Protocol):
    """Everything the application is given."""

    store: Store
    cwd: Path
    """Where the program was started."""
    config_path: Path
    state_dir: Path
    """Where copies that no clipboard took are saved."""
    warnings: Sequence[str] = ()
    """What is odd about the settings and arguments, to be told at the start."""
    logins: LoginController
    """The keys a user enters in the program."""

    def clock(self) -> float:
        """Return the seconds since the epoch."""

    def on_ready(self) -> None:
        """Start what is slow; called once after the first paint."""

    # -- sessions -------------------------------------------------------------------------------------------------

    def open_session(self, request: OpenRequest) -> Session:
        """Open what is asked for.

        Raises:
            SessionHeld: another live program has it, and the request doesn't say what to do then.
            StoreError: it can't be opened.
        """

    def make_agent(self, session: Session) -> Agent: ...

    def close_session(self, session: Session) -> None: ...

    # -- settings -------------------------------------------------------------------------------------------------

    def config(self) -> Config: ...

    def save_setting(self, key: str, value: object) -> None:
        """Keep a setting (``ui.theme``, ``model``) in the user's configuration file."""

    def settings_rows(self) -> Sequence[SettingRow]:
        """Return every setting as it is in the file and the environment now."""

    def reread_settings(self) -> Sequence[str]:
        """Read the settings again, apply them to the open session's agent and return the keys of those that changed.

        Raises:
            ConfigError: they can't be used; everything stays as it was.
        """

    def doctor(self) -> Sequence[str]:
        """Return the lines of ``tui-agent doctor``; call it in a thread."""

    def trust_question(self) -> ProjectState | None:
        """Return what the project brings along, when the user has not answered yet whether it may act."""

    def answer_trust(self, answer: str | None) -> None:
        """Take the answer, ``trusted``, ``refused`` or None, before a session is opened."""

    def forget_rule(self, rule: Rule) -> str | None:
        """Remove a permission rule from where it is kept; return why that can't be done."""

    def keep_rule(self, rule: Rule) -> str | None:
        """Keep a permission rule in the user's configuration; return why that can't be done."""

    def check_command(self, project: Path) -> str:
        """Return the command that checks what was done in a project, "" when none is remembered."""

    def keep_check(self, project: Path, command: str) -> None:
        """Remember the command for a project, in the user's file.

        Raises:
            ConfigError, OSError: it can't be written.
        """

    # -- models ---------------------------------------------------------------------------------------------------

    def models(self) -> Sequence[ModelRow]:
        """List the models of the catalog, those that can be used first; call it in a thread."""

    async def ask_servers(self, model: str | None = None) -> Sequence[str]:
        """Ask the servers that know what the catalog can't for their models, or only the one of a model.

        One model's server is asked when nothing is known of it or that is a day old. Returns how it went, a line each.
        """

    def judge_model(self, name: str) -> NameVerdict | None:
        """Return what can be said of a model's name; call it in a thread."""

    def reread_cost(self, model: str, tokens: int) -> float | None:
        """Return what reading tokens anew costs more than reading them from the provider's cache, in US dollars."""

    def price(self, model: str, usage: Reported) -> float | None: ...

    def provider_keys(self) -> Mapping[str, str]:
        """Return where the key of each provider that can be used comes from, by the provider's name."""

    def own_servers(self) -> Sequence[LocalServer]:
        """Return the servers of the settings with their models; nobody is asked whether they run."""

    async def find_servers(self) -> Sequence[LocalServer]:
        """Look for model servers on this machine and at the addresses of the settings; only when the user asks."""

    def use_server(self, server: LocalServer, model: str) -> str:
        """Put a server's model into the configuration and return its id; what the server says of it is no setting."""

    # -- files ----------------------------------------------------------------------------------------------------

    async def list_files(self, root: Path) -> Sequence[str]: ...

    async def branch(self, cwd: Path) -> str | None:
        """Name the branch checked out, with ``*`` after it when tracked files are changed; None outside of git."""


@dataclass(frozen=True, slots=True)
class FirstView:
    """What the application shows first.

    ``prompt`` is sent at once when ``screen`` is "main". "welcome" and "sessions" lie over the main screen.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
