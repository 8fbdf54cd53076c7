"""The ports of the controller: sessions, settings, trust, models and files, given by the command line."""

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
    """How to open a session that another program may have open."""

    OPEN = "open"
    READ_ONLY = "read_only"
    FORK = "fork"
    TAKE_OVER = "take_over"


@frozen
class OpenRequest:
    """Which session to open; without an id, a new one.

    ``demo``: in a scratch directory, with the scripted model.
    ``entry`` is shown once the session is open: in the conversation, or in the tree if it is on
    another branch.
    """

    session_id: str | None = None
    how: OpenHow = OpenHow.OPEN
    demo: bool = False
    entry: int | None = None


@frozen
class ModelRow:
    """A model as the picker shows it. Windows are in tokens, prices in US dollars per million tokens."""

    id: str
    provider: str
    window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    abilities: tuple[str, ...] = ()
    """Short words: tools, vision, reasoning, ..."""
    has_key: bool = False
    """Whether it can be used now: a key was found, or none is needed."""
    server: str = ""
    """Base URL of the user's server that offers it and has to be set up; "" if nothing has to be."""


@frozen
class Look:
    """The settings of ``[ui]`` that the first paint needs, before all settings are read."""

    theme: str | None = None
    """A Textual theme; None follows the terminal's background."""
    reduced_motion: bool = False


class SessionServices(Protocol):
    """Opens sessions and creates the agents that work in them."""

    store: Store

    def open_session(self, request: OpenRequest, /) -> Session:
        """Open or create a session.

        Raises:
            SessionHeld: another running program has it open, and ``request.how`` is OPEN.
            StoreError: it can't be opened.
        """

    def close_session(self, session: Session, /) -> None: ...

    def make_agent(self, session: Session, /) -> Agent: ...

    def show_agent(self, agent: Agent, /) -> None:
        """Note that an agent created earlier is on the screen again."""

    def let_terminals_go(self) -> bool:
        """Detach this run from the terminals that show it; False if it is not a detached run."""

    def detached_run(self, session_id: str, /) -> str:
        """Return the name of the detached run that has a session open; "" if none has."""

    def go_on_detached(self, session: Session, is_running: bool, /) -> None:  # noqa: FBT001 - one fact of the session
        """Continue a session in a detached run once this program has ended; ``is_running``: resume its run."""


class SettingServices(Protocol):
    """Reads and saves the user's settings and keys."""

    config_path: Path
    warnings: Sequence[str]
    """Problems of settings and arguments, to be shown at the start."""
    logins: LoginController
    """The provider keys that the user entered."""

    def config(self) -> Config: ...

    def save_setting(self, key: str, value: object, /) -> object:
        """Save a setting (``ui.theme``, ``model``) in the user's configuration file."""

    def settings_rows(self) -> Sequence[SettingRow]:
        """Return every setting as it is in the files and the environment now."""

    def reread_settings(self) -> Sequence[str]:
        """Read the settings again and apply them to the open session's agent.

        Returns the keys of those that changed.

        Raises:
            ConfigError: the settings are invalid; everything stays as it was.
        """

    def doctor(self) -> Sequence[str]:
        """Return the lines of ``tui-agent doctor``; call it in a thread."""


class TrustServices(Protocol):
    """Remembers what a project and its commands may do."""

    def trust_question(self) -> ProjectState | None:
        """Return the project's trust state if the user has yet to decide on it; otherwise None."""

    def project_state(self) -> ProjectState:
        """Return what the project brings along, and whether it may act; call it in a thread."""

    def answer_trust(self, answer: TrustDecision | None, /) -> None:
        """Save the user's decision about the project state that was returned last; None: not now."""

    def forget_rule(self, rule: Rule, /) -> str | None:
        """Remove a permission rule from its file; returns why it can't be removed, None if it was."""

    def keep_rule(self, rule: Rule, /) -> str | None:
        """Save a permission rule in the user's configuration; returns why it can't be, None if it was."""

    def check_command(self, project: Path, /) -> str:
        """Return the command that checks work in a project; "" if none is remembered."""

    def keep_check(self, project: Path, command: str, /) -> None:
        """Remember the check of a project in the user's configuration.

        Raises:
            ConfigError, OSError: it can't be written.
        """


class ModelServices(Protocol):
    """Finds models and their prices."""

    def models(self) -> Sequence[ModelRow]:
        """Return the models of the catalog, usable ones first; call it in a thread."""

    async def ask_servers(self, model: str | None, /) -> Sequence[str]:
        """Ask the user's servers for their models (None: all servers); return a line on each server.

        The server of one ``model`` is asked only if nothing is known of the model, or that is a day old.
        """

    async def find_servers(self) -> Sequence[str]:
        """Look for model servers on their usual ports of this machine; return a line for each found.

        ``models`` then includes theirs.
        """

    def judge_model(self, name: str, /) -> NameVerdict | None:
        """Return whether a model of that name exists, as far as known; call it in a thread."""

    def reread_cost(self, model: str, cached: int, /) -> float | None:
        """Return the extra US dollars of reading tokens that are no longer cached; None if unknown."""

    def price(self, model: str, usage: Reported, /) -> float | None:
        """Return the cost of a request in US dollars; None if unknown."""

    def provider_keys(self) -> Mapping[str, str]:
        """Return where each usable provider's key comes from, by the provider's name."""


class FileServices(Protocol):
    """Lists the project's files, and knows the program's own directories."""

    cwd: Path
    """Directory in which the program was started."""
    state_dir: Path
    """Directory for the program's small files: counts, pasted images, plugins."""
    own_places: Sequence[Path]
    """Directories that the program keeps files in, except those of the settings."""

    async def list_files(self, project: Path, /) -> Sequence[str]: ...

    async def branch(self, project: Path, /) -> str | None:
        """Return the checked-out branch, with ``*`` if tracked files are changed; None outside git."""


class AppServices(
    SessionServices, SettingServices, TrustServices, ModelServices, FileServices, Protocol
):
    """All ports of the application."""

    def clock(self) -> float:
        """Return the seconds since the epoch."""

    def on_ready(self) -> None:
        """Start what is slow; called once, after the first paint."""


@frozen
class FirstView:
    """What the application shows first.

    ``prompt`` is sent at once if ``screen`` is "main"; "welcome" and "sessions" open over the main
    screen.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
