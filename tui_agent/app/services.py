"""Interfaces to what the controller and the screens need: sessions, settings, trust, models, files.

The command line implements them (``cli/controller_wiring.py``). This module also defines the
requests that they take and the rows that they return.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tui_agent.lazy import frozen

if TYPE_CHECKING:
    # Only for annotations: this module is imported before the first frame is drawn, and importing
    # entries takes long.
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
    """Ways to open a session, for the case that another program has it open."""

    OPEN = "open"
    READ_ONLY = "read_only"
    FORK = "fork"
    TAKE_OVER = "take_over"


@frozen
class OpenRequest:
    """A request to open a session or, if it contains no id, to create one.

    With ``demo``, the new session is in a scratch directory and uses the scripted model. ``entry``
    is shown once the session is open: in the conversation, or in the tree if it is on another
    branch.
    """

    session_id: str | None = None
    how: OpenHow = OpenHow.OPEN
    demo: bool = False
    entry: int | None = None


@frozen
class ModelRow:
    """A model in the list of models.

    Its context window is in tokens, and its prices are in US dollars per million tokens.
    """

    id: str
    provider: str
    window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    abilities: tuple[str, ...] = ()
    """What the model can do, in short words: tools, vision, reasoning, ..."""
    has_key: bool = False
    """Whether the model can be used now: its API key was found, or it needs no key."""
    own_host: str = ""
    """Host and port of the address that the user set for the model; "" for the provider's own."""
    server: str = ""
    """Base URL of the user's server that offers the model, if it still has to be saved; else ""."""


@frozen
class Look:
    """Settings of ``[ui]`` for the first frame, which is drawn before all settings are read."""

    theme: str | None = None
    """Name of a Textual theme; None follows the terminal's background."""
    reduced_motion: bool = False


class SessionServices(Protocol):
    """Opens sessions and creates the agents that work in them."""

    store: Store
    detached_as: str
    """Name of this detached run; "" if the program isn't a detached run."""

    def open_session(self, request: OpenRequest, /) -> Session:
        """Open or create a session.

        Raises:
            SessionHeld: another running program has the session open, and ``request.how`` is OPEN.
            StoreError: the session can't be opened.
        """

    def close_session(self, session: Session, /) -> None:
        """Release a session, whose agent has been closed, so that other programs can open it."""

    def make_agent(self, session: Session, /) -> Agent:
        """Return a new agent for a newly opened session, set up by the arguments and settings."""

    def show_agent(self, agent: Agent, /) -> None:
        """Called when an agent that was created earlier is back on the screen."""

    def detach_terminals(self) -> bool:
        """Detach the terminals that show this run; return False if this isn't a detached run."""

    def detached_run(self, session_id: str, /) -> str:
        """Return the name of the detached run that has a session open; "" if none has."""

    def go_on_detached(self, session: Session, is_running: bool, /) -> None:  # noqa: FBT001 - one fact of the session
        """Continue a session in a detached run once this program has ended.

        With ``is_running``, the agent's run, which this program interrupts, continues there, too.
        """


class SettingServices(Protocol):
    """Reads and saves the user's settings and API keys."""

    config_path: Path
    warnings: Sequence[str]
    """Problems with settings and arguments, which the user is told about at the start."""
    logins: LoginController
    """Tries, saves and removes the API keys that the user enters for providers."""

    def config(self) -> Config: ...

    def save_setting(self, key: str, value: object, /) -> object:
        """Save a setting (``ui.theme``, ``model``) in the user's configuration file."""

    def settings_rows(self) -> Sequence[SettingRow]:
        """Return every setting with its current value in the files and the environment."""

    def reread_settings(self) -> Sequence[str]:
        """Read the settings again and apply them to the agents of this controller's open sessions.

        Returns the keys of the settings that changed.

        Raises:
            ConfigError: the settings are invalid, so none of them was applied.
        """

    def doctor(self) -> Sequence[str]:
        """Return the report of ``tui-agent doctor`` as lines; call it in a thread."""


class TrustServices(Protocol):
    """Reads and saves whether a project is trusted, its permission rules and its check command."""

    def trust_question(self) -> ProjectState | None:
        """Return the project's trust state; None if the user needn't be asked about it.

        There is nothing to ask if nothing in the project needs trust, if the user trusts the
        project, or if they answered "never".
        """

    def project_state(self) -> ProjectState:
        """Return the project's items that need trust, and whether the project is trusted.

        Reads the project's files, so call it in a thread.
        """

    def answer_trust(self, answer: TrustDecision | None, /) -> None:
        """Apply and save the user's decision about the project state that was returned last.

        None means "not now", so that nothing is saved.
        """

    def problem_of_command(self, cwd: Path, command: str, /) -> str:
        """Return a clause that says why a configured command must not run in ``cwd``; "" if it may.

        A command must not run files of an untrusted project. Reads the project's files, so call
        this in a thread.
        """

    def forget_rule(self, rule: Rule, /) -> str | None:
        """Remove a permission rule from its file; return None, or why that is impossible."""

    def keep_rule(self, rule: Rule, /) -> str | None:
        """Save a permission rule in the user's settings; return None, or why that is impossible."""

    def check_command(self, project: Path, /) -> str:
        """Return the command that is saved for checking the agent's work in the project.

        Returns "" if none is saved.
        """

    def keep_check(self, project: Path, command: str, /) -> None:
        """Save a project's check, a command that checks the agent's work, in the user's settings.

        Raises:
            ConfigError, OSError: the settings can't be written.
        """


class ModelServices(Protocol):
    """Finds models, and what requests to them cost."""

    def models(self) -> Sequence[ModelRow]:
        """Return the models of the catalog, usable ones first; call it in a thread."""

    async def ask_servers(self, model: str | None, /) -> Sequence[str]:
        """Ask the user's model servers for their models; return a line about each server asked.

        With ``model``, asks only the server of this model, and only if it has not answered for a
        day; with None, asks all servers.
        """

    async def find_servers(self) -> Sequence[str]:
        """Look for model servers on this machine's usual ports; return a line about each one found.

        Afterwards, ``models`` includes the models of these servers.
        """

    def judge_model(self, name: str, /) -> NameVerdict:
        """Return whether a model's name is known, unknown or impossible; call it in a thread."""

    def cache_miss_cost(self, model: str, cached: int, /) -> float | None:
        """Return the extra cost (US dollars) of reading cached tokens uncached; None if unknown."""

    def price(self, model: str, usage: Reported, /) -> float | None:
        """Return the cost of a request in US dollars; None if unknown."""

    def provider_keys(self) -> Mapping[str, str]:
        """Return the source of each provider's API key, such as a variable, by provider."""


class FileServices(Protocol):
    """Lists the project's files, and provides the paths of the program's own directories."""

    cwd: Path
    """The directory in which the program was started."""
    state_dir: Path
    """Directory for the program's small files: counts, pasted images, plugins."""
    own_places: Sequence[Path]
    """Directories in which the program keeps files, except the settings directory."""

    async def list_files(self, project: Path, /) -> Sequence[str]: ...

    async def branch(self, project: Path, /) -> str | None:
        """Return the checked-out Git branch, with ``*`` if tracked files are changed.

        If no branch is checked out, returns the beginning of the commit's id. Returns None outside
        a repository.
        """


class AppServices(
    SessionServices, SettingServices, TrustServices, ModelServices, FileServices, Protocol
):
    """All services that the controller needs."""

    def clock(self) -> float:
        """Return the seconds since the epoch."""

    def on_ready(self) -> None:
        """Called after the first frame, to start loading slow parts in the background."""


@frozen
class FirstView:
    """The session and the screen that the application opens at the start.

    "welcome" and "sessions" open over the main screen. ``prompt`` is sent at once if ``screen`` is
    "main"; otherwise, it is put into the prompt after the welcome or the list of sessions.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
