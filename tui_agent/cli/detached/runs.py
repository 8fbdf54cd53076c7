"""Records and finds the detached runs of this user, and exchanges messages with them.

Each run has three files in a private directory. The run's `host` process creates and removes two of
them, a socket and a record of what was started. The program in the run writes the third file, with
the id of the session that it has open. `all_runs` removes the files of runs that have died.
"""

import json
import os
import secrets
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tui_agent.cli.detached.frames import BadFrameError, FrameReader, Kind, frame
from tui_agent.files.atomic import write_atomically
from tui_agent.paths import DATA_VARIABLE, data_dir
from tui_agent.text_files.encodings import user_text

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters from which the names of runs are made, none of them easily confused."""
_NAME_LENGTH = 4
_MAX_SOCKET_PATH = 100
"""Maximum length of a socket's path, in bytes, that every platform allows."""
_FALLBACK = Path(f"/tmp/tui-agent-{os.getuid()}")  # noqa: S108 - used only if it is private
_PATIENCE = 2.0
"""Maximum number of seconds to wait until a run has answered a request for its state."""


class DetachedError(Exception):
    """Raised if a detached run can't be started, found or reached; the message is for the user."""


@dataclass(frozen=True)
class Run:
    """A detached run, as recorded when it was started."""

    name: str
    pid: int
    """Id of the process that holds the run's pseudo-terminal."""
    cwd: str
    prompt: str
    started: float
    """Time at which the run was started, in seconds since the epoch."""

    @property
    def socket(self) -> Path:
        return runs_dir() / f"{self.name}.sock"


@dataclass(frozen=True)
class DetachedState:
    """The state of a detached run at this moment, as the run's process reports it."""

    title: str
    """Title of the terminal: a sign for the program's state, and the title of the session."""
    attached: int
    """Number of terminals that show the run."""
    session: str
    """Id of the session that the run has open; "" if no session is open yet."""


def runs_dir() -> Path:
    """Return the directory of this user's detached runs, which only the user can access.

    Creates the directory if needed.

    Raises:
        DetachedError: neither this directory nor the fallback in /tmp can be used as a private one.
    """
    if os.environ.get(DATA_VARIABLE):
        place = data_dir() / "run"
    elif os.environ.get("XDG_RUNTIME_DIR"):
        place = Path(os.environ["XDG_RUNTIME_DIR"]) / "tui-agent"
    else:
        place = _FALLBACK
    if not _make_private(place):
        place = _FALLBACK
    if not _make_private(place):
        raise DetachedError(
            f"{place} can't be used: it has to be a directory that only you can access."
        )
    return place


def _make_private(place: Path) -> bool:
    """Create a directory if it is missing; return whether it can hold private sockets.

    That is possible if no other user can access it, and its path is not too long for a socket.
    """
    if len(os.fsencode(place)) + _NAME_LENGTH + 8 > _MAX_SOCKET_PATH:
        return False
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        found = place.lstat()
    except OSError:
        return False
    is_private = not found.st_mode & 0o077
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and is_private


def new_name() -> str:
    """Return a random name that no other run has."""
    taken = {path.stem for path in runs_dir().glob("*.json")}
    while True:
        name = "".join(secrets.choice(_LETTERS) for _ in range(_NAME_LENGTH))
        if name not in taken:
            return name


def keep(run: Run) -> None:
    """Record a run, so that `all_runs` finds it."""
    record = json.dumps(asdict(run)).encode()
    write_atomically(runs_dir() / f"{run.name}.json", record, mode=0o600)


def forget(name: str) -> None:
    """Remove the files of a run that has ended."""
    for suffix in ("sock", "json", "session"):
        (runs_dir() / f"{name}.{suffix}").unlink(missing_ok=True)


def note_session(name: str, session_id: str) -> None:
    """Record the id of the session that a run has open."""
    write_atomically(runs_dir() / f"{name}.session", session_id.encode(), mode=0o600)


def session_of(name: str) -> str:
    """Return the id of the session that a run has open; "" if it has recorded none."""
    try:
        return user_text((runs_dir() / f"{name}.session").read_bytes()).strip()
    except OSError:
        return ""


def run_of(session_id: str) -> str:
    """Return the name of the live run that has this session open; "" if there is none."""
    try:
        runs = all_runs()
    except DetachedError:
        return ""
    return next((name for name in runs if session_of(name) == session_id), "")


def all_runs() -> dict[str, Run]:
    """Return the live runs by name, oldest first; also remove the files of runs that have died."""
    found = dict[str, Run]()
    for path in runs_dir().glob("*.json"):
        run = _read(path)
        if run is None or not is_alive(run):
            forget(path.stem)
            continue
        found[run.name] = run
    return dict(sorted(found.items(), key=lambda item: item[1].started))


def find(name: str) -> Run:
    """Return the run whose name begins with ``name``, or whose session id ends with ``name``.

    For "", returns the newest run.

    Raises:
        DetachedError: no run matches, or more than one.
    """
    runs = all_runs()
    if not runs:
        raise DetachedError("There are no detached runs. Start one: tui-agent run --detach PROMPT")
    if not name:
        return next(reversed(runs.values()))
    fitting = []
    for run in runs.values():
        if run.name.startswith(name) or session_of(run.name).endswith(name):
            fitting.append(run)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(run.name for run in fitting)
        raise DetachedError(f"“{name}” matches several runs: {names}.")
    raise DetachedError(f"There is no detached run “{name}”. Choose one of: {', '.join(runs)}.")


def connect(run: Run) -> socket.socket:
    """Return a socket connected to a run; raises `DetachedError` if the run doesn't answer."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(run.socket))
    except OSError as error:
        connection.close()
        raise DetachedError(f"The run {run.name} does not answer: {error.strerror}.") from None
    return connection


def tell(run: Run, kind: Kind) -> None:
    """Send a message to a run, without waiting for an answer; raises `DetachedError` or OSError."""
    with connect(run) as connection:
        connection.sendall(frame(kind))


def ask(run: Run) -> DetachedState | None:
    """Return the state of a run; None if no valid answer arrives within `_PATIENCE` seconds."""
    try:
        with connect(run) as connection:
            connection.settimeout(_PATIENCE)
            connection.sendall(frame(Kind.ASK))
            return _state_in(connection)
    except (DetachedError, OSError, BadFrameError, ValueError, TypeError):
        return None


def _state_in(connection: socket.socket) -> DetachedState | None:
    reader = FrameReader()
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and (data := connection.recv(65_536)):
        for kind, payload in reader.feed(data):
            if kind is Kind.ASK:
                return DetachedState(**json.loads(payload))
    return None


def _read(path: Path) -> Run | None:
    try:
        values: Mapping[str, object] = json.loads(path.read_bytes())
        return Run(**values)  # type: ignore[arg-type]  # the program's own file; wrong fields raise a TypeError
    except (OSError, ValueError, TypeError):
        return None


def is_alive(run: Run) -> bool:
    """Return whether a run accepts connections."""
    try:
        connect(run).close()
    except DetachedError:
        return False
    return True
