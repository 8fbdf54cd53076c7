"""The controller's dependencies: the store, ways to open sessions and make agents, and the command line's options."""

from __future__ import annotations

import os
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory, is_there

if TYPE_CHECKING:
    # Only for annotations: this module is there before the first paint, and entries take long to import .
    from collections.abc import Awaitable, Callable, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.app.exporting import ExportOrder
    from tui_agent.app.logins import LoginController
    from tui_agent.config import Config
    from tui_agent.model.naming import NameVerdict
    from tui_agent.session.records import Reported
    from tui_agent.session.session import Session
    from tui_agent.session.store import Store
    from tui_agent.setting_rows import SettingRow


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
class LoginRow:
    """A provider one can enter a key of. ``source`` says where its key comes from now, "" when it has none."""

    id: str
    name: str
    variable: str
    """The environment variable its key is looked for in."""
    page: str = ""
    """Where its keys are made."""
    source: str = ""
    is_kept: bool = False
    """Whether a key was entered in the program."""
    missing: tuple[str, ...] = ()
    """Variables that it needs beside a key and that are not set."""
    ways: tuple[Literal["browser", "device"], ...] = ()
    """How one can sign in to it: in a browser that comes back, or with a code entered in one elsewhere."""
    note: str = ""
    """A sentence about signing in to it."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server on this machine, or one of the settings."""

    name: str
    base_url: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """The settings of ``[ui]`` that the first paint needs, before the others are read."""

    theme: str | None = None
    """A Textual theme; None follows the terminal's background."""
    reduced_motion: bool = False


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What an import did: lines for people, and the session to open when there was exactly one."""

    told: tuple[str, ...]
    session_id: str | None = None
    failed: int = 0


class FileTransfer:
    """Sessions of a store that leave and come in. Call it in a thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def text(self, order: ExportOrder) -> str:
        """Return what would be exported.

        Raises:
            StoreError: there is no such session.
        """
        from tui_agent.app.exporting import export_text

        return export_text(self._store, order, os.environ)

    def export(self, order: ExportOrder, target: Path) -> Path:
        """Write a session to a file, or into a directory under a name of its own; return the file.

        Raises:
            StoreError: there is no such session.
            FileExistsError: the file is there already.
            OSError: it can't be written.
        """
        from tui_agent.app.exporting import write_export

        if is_directory(target):
            info = self._store.session(order.session_id)
            target /= order.file_name(info.title or info.first_message, target)
        if is_there(target):
            raise FileExistsError(str(target))
        write_export(self._store, order, target, os.environ)
        return target

    def import_files(self, path: Path) -> ImportOutcome:
        """Take in the sessions of a file, or of all files of a directory.

        Raises:
            StoreError: there is no such file.
        """
        from tui_agent.app.importing import import_all

        told, imported, failed = import_all(self._store, path.expanduser())
        return ImportOutcome(told, imported[0].session_id if len(imported) == 1 else None, failed)


@dataclass(slots=True, eq=False, repr=False)
class AppServices:
    """Everything the application is given.

    ``open_session`` raises ``SessionHeld`` when another live program has the session, or another ``StoreError``.
    """

    store: Store
    open_session: Callable[[OpenRequest], Session]
    make_agent: Callable[[Session], Agent]
    cwd: Path
    """Where the program was started."""
    clock: Callable[[], float]
    """Seconds since the epoch."""
    close_session: Callable[[Session], None]
    """Lets go of a session, after its agent was closed."""
    config: Callable[[], Config]
    """Returns the settings as last read."""
    save_setting: Callable[[str, object], None]
    """Keeps a setting (``ui.theme``, ``model``) in the user's configuration file."""
    settings_rows: Callable[[], Sequence[SettingRow]]
    """Every setting as it is in the file and the environment now."""
    reread_settings: Callable[[], Sequence[str]]
    """Reads the settings again, applies them to the open session's agent and returns the keys of those that changed.

    Raises ``ConfigError`` if they can't be used."""
    warnings: Sequence[str]
    """What is odd about the settings and arguments, to be told at the start."""
    doctor: Callable[[], Sequence[str]]
    """The lines of ``tui-agent doctor``; called in a thread."""
    config_path: Path
    state_dir: Path
    """Where copies that no clipboard took are saved."""
    models: Callable[[], Sequence[ModelRow]]
    """The catalog; called in a thread."""
    ask_servers: Callable[[str | None], Awaitable[Sequence[str]]]
    """Asks the servers of the settings, or that of one model, what they have; returns how it went, a line each."""
    judge_model: Callable[[str], NameVerdict | None]
    """What can be said of a model's name; called in a thread."""
    reread_cost: Callable[[str, int], float | None]
    """What it costs more, in US dollars, when a model reads so many tokens anew instead of from its cache."""
    price: Callable[[str, Reported], float | None]
    """What a model takes for a request, in US dollars."""
    check_command: Callable[[Path], str]
    """The command that checks what runners did in a project, "" when none is remembered."""
    keep_check: Callable[[Path, str], None]
    """Remembers it for a project, in the user's settings."""
    provider_keys: Callable[[], Sequence[KeyStatus]]
    logins: LoginController
    """The keys a user enters in the program."""
    own_servers: Callable[[], Sequence[LocalServer]]
    """The servers of the settings; nobody is asked whether they run."""
    find_servers: Callable[[], Awaitable[Sequence[LocalServer]]]
    """Looks for model servers on their default ports and at the addresses of the settings; only ever called when the
    user asks."""
    use_server: Callable[[LocalServer, str], str]
    """Adds a server's model to the configuration and returns the model's id."""
    list_files: Callable[[Path], Awaitable[Sequence[str]]]
    """Lists the project's files, relative to the directory given, ignored ones left out."""
    branch: Callable[[Path], Awaitable[str | None]]
    """Names the branch checked out, with ``*`` after it when files are changed; None outside of a repository."""
    trust_question: Callable[[], Any]
    """What the project brings along that isn't trusted (``trust.ProjectState``), None when there is no question."""
    answer_trust: Callable[[str | None], None]
    """Takes the answer, ``trusted``, ``refused`` or None, before a session is opened."""
    forget_rule: Callable[[Any], str | None]
    """Removes a permission rule from where it is kept; returns why that can't be done."""
    keep_rule: Callable[[Any], str | None]
    """Keeps a permission rule in the user's configuration; returns why that can't be done."""
    transfer: FileTransfer
    """Writes sessions to files and takes them in."""
    on_ready: Callable[[], None]
    """Called once after the first paint: the moment to start what is slow."""


@dataclass(frozen=True, slots=True)
class FirstView:
    """What the application shows first.

    ``prompt`` is sent at once when ``screen`` is "main". "welcome" and "sessions" lie over the main screen.
    """

    request: OpenRequest = field(default_factory=OpenRequest)
    screen: Literal["main", "sessions", "welcome"] = "main"
    prompt: str = ""
