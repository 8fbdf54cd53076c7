"""The ports of the user interface: everything it needs from outside, and nothing else.

The command line builds one ``AppServices`` from the real parts, tests build one from fakes. The protocols name
only what the interface uses, so any object that has it will do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    # Only for annotations: this module is there before the first paint, and entries take long to import .
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tui_agent.agent.events import AgentEvent, LiveAnswer, PermissionAnswer, PermissionRequest, QueueChanged
    from tui_agent.agent.navigator import Navigator
    from tui_agent.context.budget import ContextSize
    from tui_agent.context.effort import EffortInForce
    from tui_agent.model.naming import Verdict
    from tui_agent.session.effort import Effort
    from tui_agent.session.entries import Entry, UserPart
    from tui_agent.session.records import SessionInfo
    from tui_agent.setting_rows import SettingRow
    from tui_agent.ui.store_port import StorePort, TransferPort


class SessionPort(Protocol):
    """The open session, as far as the interface looks at it; ``session.session.Session`` is one."""

    @property
    def id(self) -> str:
        """Identifies the session."""
        ...

    @property
    def info(self) -> SessionInfo:
        """Title, directory and counts as they are now."""
        ...

    @property
    def leaf(self) -> int | None:
        """Entry the next one is appended to."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether changes are refused."""
        ...

    def look_for_take_over(self) -> bool:
        """Return whether another program took the session over; raises ``StoreError`` when it is gone."""
        ...

    def path(self) -> list[Entry]:
        """Return the entries from the root to the leaf: all of them, which may take long the first time."""
        ...

    def active_path(self) -> list[Entry]:
        """Return what a request needs: the last compaction and the entries around and after it."""
        ...

    def entry(self, entry_id: int) -> Entry:
        """Return one entry."""
        ...

    def set_title(self, title: str) -> None:
        """Give the session a title."""
        ...


class AgentPort(Protocol):
    """The agent of the open session; ``agent.agent.Agent`` is one."""

    @property
    def session(self) -> Any:
        """The session it works in (a ``SessionPort``, and whatever the transcript needs)."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        ...

    @property
    def live(self) -> LiveAnswer | None:
        """The answer being streamed."""
        ...

    @property
    def question(self) -> PermissionRequest | None:
        """The open permission question."""
        ...

    @property
    def queue(self) -> QueueChanged:
        """Messages that wait."""
        ...

    @property
    def model(self) -> str:
        """Model of the next request."""
        ...

    @property
    def effort(self) -> EffortInForce:
        """How much the model of the next request is to think."""
        ...

    @property
    def mode(self) -> str:
        """Mode of the next request."""
        ...

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Callable[[], None]:
        """Call ``callback`` with every event, on the event loop; the returned function ends it."""
        ...

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        """Start a run with the message, or queue it while one is going on."""
        ...

    def take_back(self) -> str | None:
        """Remove the newest queued message and return its text."""
        ...

    def interrupt(self) -> None:
        """Stop the run; an open question counts as denied."""
        ...

    def answer_permission(self, call_id: str, answer: PermissionAnswer) -> None:
        """Answer the open question."""
        ...

    def retry(self) -> None:
        """Send the request that failed again."""
        ...

    def run_shell(self, command: str, *, excluded: bool) -> Awaitable[object]:
        """Run a command of the user's; ``excluded`` keeps it out of the model's view."""
        ...

    def change_model(self, model: str) -> None:
        """Use another model from here on."""
        ...

    def change_effort(self, effort: Effort | None) -> None:
        """Have models think so much from here on; None: as the settings say."""
        ...

    def change_mode(self, mode: str) -> None:
        """Use another mode from here on."""
        ...

    @property
    def navigator(self) -> Navigator:
        """Moves about in the tree; refused during a run."""
        ...

    def context_size(self) -> ContextSize:
        """Measure the next request."""
        ...

    def session_cost(self) -> float | None:
        """Return US dollars spent in this session, None when no price is known."""
        ...

    async def aclose(self) -> None:
        """Stop everything and free it."""
        ...


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
class KeyStatus:
    """Whether a provider's key was found, and where it was looked for."""

    provider: str
    variable: str
    found: bool


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server on this machine, or one of the settings."""

    name: str
    base_url: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UiSettings:
    """Settings of the interface. Times are seconds."""

    theme: str | None = None
    """A Textual theme; None follows the terminal's background."""
    reduced_motion: bool = False
    permission_grace: float = 0.5
    """A permission question takes no key for this long after it appears."""
    typing_pause: float = 0.7
    """A permission question takes no key until the user has not typed for this long."""
    cursor_blink: bool = False
    """A blinking cursor wakes the program twice a second; without it an idle program sleeps."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The user's own keys, by the id of what they do."""


@dataclass(frozen=True, slots=True)
class Reread:
    """The settings were read anew: the interface's, and the keys of all that changed since they were read last."""

    ui: UiSettings
    changed: tuple[str, ...] = ()


async def _no_files(_root: Path) -> Sequence[str]:
    return ()


async def _no_branch(_root: Path) -> str | None:
    return None


async def _no_servers() -> Sequence[LocalServer]:
    return ()


def _no_own_servers() -> Sequence[LocalServer]:
    return ()


def _keep_nothing(_key: str, _value: object) -> None:
    """Settings are not kept."""


def _nothing_to_read() -> Reread | None:
    """There is no file."""
    return None


def _do_nothing() -> None:
    """Nothing waits for the first paint."""


def _keep_open(_session: SessionPort) -> None:
    """Nothing holds the session."""


def _no_trust_question() -> None:
    """Nothing has to be trusted."""


def _ignore_trust(_answer: str | None) -> None:
    """Nobody keeps the answer."""


def _keep_no_rule(_rule: object) -> str | None:
    return None


def _no_models() -> Sequence[ModelRow]:
    return ()


async def _ask_nobody(_model: str | None = None) -> Sequence[str]:
    return ()


def _no_verdict(_model: str) -> Verdict | None:
    """Every name will do."""
    return None


def _no_settings() -> Sequence[SettingRow]:
    return ()


def _no_report() -> Sequence[str]:
    return ()


def _no_keys() -> Sequence[KeyStatus]:
    return ()


def _no_cost(_model: str, _tokens: int) -> float | None:
    """No price is known."""
    return None


def _unconfigured(server: LocalServer, model: str) -> str:
    return f"{server.name}/{model}"


@dataclass(frozen=True, slots=True)
class AppServices:
    """Everything the application is given.

    ``open_session`` raises ``SessionHeld`` when another live program has the session, or another ``StoreError``.
    The functions with a default are optional: without them the feature shows nothing.
    """

    store: StorePort
    open_session: Callable[[OpenRequest], SessionPort]
    make_agent: Callable[[SessionPort], AgentPort]
    cwd: Path
    """Where the program was started."""
    clock: Callable[[], float]
    """Seconds since the epoch."""
    close_session: Callable[[SessionPort], None] = _keep_open
    """Lets go of a session, after its agent was closed."""
    settings: UiSettings = field(default_factory=UiSettings)
    save_setting: Callable[[str, object], None] = _keep_nothing
    """Keeps a setting (``ui.theme``, ``model``) in the user's configuration file."""
    settings_rows: Callable[[], Sequence[SettingRow]] = _no_settings
    """Every setting as it is in the file and the environment now."""
    reread_settings: Callable[[], Reread | None] = _nothing_to_read
    """Reads the settings anew and has the open session's agent follow them; what can't be read is a ``ConfigError``."""
    warnings: Sequence[str] = ()
    """What is odd about the settings and arguments, to be told at the start."""
    doctor: Callable[[], Sequence[str]] = _no_report
    """The lines of ``tui-agent doctor``; called in a thread."""
    config_path: Path = Path("config.toml")
    state_dir: Path | None = None
    """Where copies that no clipboard took are saved; None: the system's directory for temporary files."""
    models: Callable[[], Sequence[ModelRow]] = _no_models
    """The catalog; called in a thread."""
    ask_servers: Callable[[str | None], Awaitable[Sequence[str]]] = _ask_nobody
    """Asks the servers of the settings, or that of one model, what they have; returns how it went, a line each."""
    judge_model: Callable[[str], Verdict | None] = _no_verdict
    """What can be said of a model's name; called in a thread."""
    reread_cost: Callable[[str, int], float | None] = _no_cost
    """What it costs more, in US dollars, when a model reads so many tokens anew instead of from its cache."""
    provider_keys: Callable[[], Sequence[KeyStatus]] = _no_keys
    own_servers: Callable[[], Sequence[LocalServer]] = _no_own_servers
    """The servers of the settings; nobody is asked whether they run."""
    find_servers: Callable[[], Awaitable[Sequence[LocalServer]]] = _no_servers
    """Looks for model servers on their default ports and at the addresses of the settings; only ever called when the
    user asks."""
    use_server: Callable[[LocalServer, str], str] = _unconfigured
    """Adds a server's model to the configuration and returns the model's id."""
    list_files: Callable[[Path], Awaitable[Sequence[str]]] = _no_files
    """Lists the project's files, relative to the directory given, ignored ones left out."""
    branch: Callable[[Path], Awaitable[str | None]] = _no_branch
    """Names the branch checked out, with ``*`` after it when files are changed; None outside of a repository."""
    trust_question: Callable[[], Any] = _no_trust_question
    """What the project brings along that isn't trusted (``agent.trust.Untrusted``), None when there is no question."""
    answer_trust: Callable[[str | None], None] = _ignore_trust
    """Takes the answer, ``trusted``, ``refused`` or None, before a session is opened."""
    forget_rule: Callable[[Any], str | None] = _keep_no_rule
    """Removes a permission rule from where it is kept; returns why that can't be done."""
    keep_rule: Callable[[Any], str | None] = _keep_no_rule
    """Keeps a permission rule in the user's configuration; returns why that can't be done."""
    transfer: TransferPort | None = None
    """Writes sessions to files and takes them in; None where there are no files."""
    on_ready: Callable[[], None] = _do_nothing
    """Called once after the first paint: the moment to start what is slow."""


@dataclass(frozen=True, slots=True)
class Start:
    """What the application shows first.

    ``prompt`` is sent at once when ``screen`` is "main". "welcome" and "sessions" lie over the main screen.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
