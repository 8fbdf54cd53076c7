"""The controller's dependencies: the store, ways to open sessions and make agents, and the command line's options."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tui_agent.lazy import frozen

if TYPE_CHECKING:
    # Only for annotations: this module is there before the first paint, and entries take long to
    # import .
    from collections.abc import Awaitable, Callable, Mapping, Sequence

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


class AppServices(Protocol):
    """Everything the application is given."""

    store: Store
    cwd: Path
    """Where the program was started."""
    config_path: Path
    state_dir: Path
    """Where copies that no clipboard took are saved."""
    own_places: Sequence[Path]
    """The directories that the program keeps files in, those of the settings left out."""
    warnings: Sequence[str] = ()
    """Oddities of the settings and arguments, to be shown at the start."""
    logins: LoginController
    """The keys a user enters in the program."""

    clock: Callable[[], float]
    """Returns the seconds since the epoch."""
    on_ready: Callable[[], None]
    """Starts the slow parts; called once after the first paint."""

    # -- sessions

    open_session: Callable[[OpenRequest], Session]
    """Opens or creates a session.

    Raises:
        SessionHeld: another live program has it, and the request doesn't say what to do then.
        StoreError: it can't be opened.
    """
    make_agent: Callable[[Session], Agent]
    close_session: Callable[[Session], None]
    show_agent: Callable[[Agent], None]
    """Takes note that an agent made earlier is the one on the screen again."""
    let_terminals_go: Callable[[], bool]
    """Takes a detached run off the terminals that show it; False where this is no detached run."""
    detached_run: Callable[[str], str]
    """Returns the name of the detached run that has a session open, "" where none has."""
    go_on_detached: Callable[[Session, bool], None]
    """Has a session go on in a detached run once this program has ended.

    The second argument says whether its run is to be taken up again.
    """

    # -- settings

    config: Callable[[], Config]
    save_setting: Callable[[str, object], object]
    """Keeps a setting (``ui.theme``, ``model``) in the user's configuration file."""
    settings_rows: Callable[[], Sequence[SettingRow]]
    """Returns every setting as it is in the file and the environment now."""
    reread_settings: Callable[[], Sequence[str]]
    """Reads the settings again, applies them to the open session's agent and returns the keys of those that changed.

    Raises:
        ConfigError: they can't be used; everything stays as it was.
    """
    doctor: Callable[[], Sequence[str]]
    """Returns the lines of ``tui-agent doctor``; call it in a thread."""
    trust_question: Callable[[], ProjectState | None]
    """Returns the project's trust state, when the user has not answered yet whether it may act."""
    project_state: Callable[[], ProjectState]
    """Looks at what the project brings along, and whether it may act; call it in a thread."""
    answer_trust: Callable[[TrustDecision | None], None]
    """Takes the answer for what was looked at last."""
    forget_rule: Callable[[Rule], str | None]
    """Removes a permission rule from where it is kept; returns why that can't be done."""
    keep_rule: Callable[[Rule], str | None]
    """Keeps a permission rule in the user's configuration; returns why that can't be done."""
    check_command: Callable[[Path], str]
    """Returns the command that checks the work in a project, "" when none is remembered."""
    keep_check: Callable[[Path, str], None]
    """Remembers the command for a project, in the user's file.

    Raises:
        ConfigError, OSError: it can't be written.
    """

    # -- models

    models: Callable[[], Sequence[ModelRow]]
    """Lists the models of the catalog, those that can be used first; call it in a thread."""
    ask_servers: Callable[[str | None], Awaitable[Sequence[str]]]
    """Asks the servers whose models the catalog can't know for them, or only the one of a model.

    One model's server is asked when nothing is known of it or that is a day old. Returns how it went, a line each.
    """
    judge_model: Callable[[str], NameVerdict | None]
    """Returns a verdict on a model's name; call it in a thread."""
    reread_cost: Callable[[str, int], float | None]
    """Returns the extra cost of a model's reading tokens without the provider's cache, in US
    dollars."""
    price: Callable[[str, Reported], float | None]
    provider_keys: Callable[[], Mapping[str, str]]
    """Returns where the key of each provider that can be used comes from, by the provider's
    name."""
    find_servers: Callable[[], Awaitable[Sequence[str]]]
    """Looks for model servers on the ports of this machine where they usually listen; `models` then
    has theirs. Returns a line for each that answered."""

    # -- files

    list_files: Callable[[Path], Awaitable[Sequence[str]]]
    branch: Callable[[Path], Awaitable[str | None]]
    """Names the branch checked out, with ``*`` after it when tracked files are changed; None
    outside of git."""


@frozen
class FirstView:
    """The application's first screen.

    ``prompt`` is sent at once when ``screen`` is "main". "welcome" and "sessions" lie over the main
    screen.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
