"""Starts and manages detached runs: ``run --detach``, ``ps``, ``attach``, ``logs`` and ``stop``.

A run's `host` process does the work; the commands start this process, and talk to it over its
socket.
"""

import select
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.app.format import age, one_line, plural, short_path
from tui_agent.cli.detached.attach import attach
from tui_agent.cli.detached.frames import Kind
from tui_agent.cli.detached.runs import (
    DetachedError,
    DetachedState,
    Run,
    all_runs,
    ask,
    find,
    is_alive,
    new_name,
    session_of,
    tell,
)
from tui_agent.cli.output import say, say_json
from tui_agent.isolation import isolated_module
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    ShellEntry,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.errors import SessionNotFound
from tui_agent.session.ids import short_id
from tui_agent.text_files.encodings import user_text

if TYPE_CHECKING:
    from tui_agent.session.store import Store

READY_PATIENCE = 60.0
"""Maximum number of seconds to wait until terminals can attach to a new run."""
START_PATIENCE = 20.0
"""Maximum number of seconds to wait for a run's session, or for the errors of a failed run."""
STOP_PATIENCE = 15.0
"""Maximum number of seconds that ``stop`` waits until a run has ended."""
LOOK_SECONDS = 0.4
"""Seconds between two reads of a session whose entries are printed as they are added."""

_SIGNS = {"◐": "working", "?": "needs you", "✓": "done", "✗": "failed"}
"""State of a run for each first character of its terminal's title (see `ui.attention.Sign`)."""
IDLE = "idle"
SILENT = "does not answer"


def start(arguments: Sequence[str], *, prompt: str, cwd: Path) -> str:
    """Start a detached run of the program with ``arguments`` and return its name.

    ``prompt`` is only recorded, so that ``ps`` can show it.

    Raises:
        DetachedError: the run could not be started.
    """
    name = new_name()
    command = isolated_module("tui_agent.cli.detached.host", name, prompt, *arguments)
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    if not _is_ready(process):
        raise DetachedError(f"The run could not be started: {_why_not_ready(process)}")
    # Keep Popen from warning that the run, which outlives this process, was never waited for.
    process.returncode = 0
    return name


def _is_ready(process: subprocess.Popen[bytes]) -> bool:
    """Wait until a run prints that it is ready.

    Returns False if the run ends, prints something else, or takes longer than `READY_PATIENCE`.
    """
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    readable, _, _ = select.select([process.stdout], [], [], READY_PATIENCE)
    return bool(readable) and process.stdout.readline().strip() == b"ready"


def _why_not_ready(process: subprocess.Popen[bytes]) -> str:
    """End the process of a run that is not ready, and return the last line of its error output."""
    try:
        _out, errors = process.communicate(timeout=START_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "it did not answer."
    return one_line(user_text(errors).strip().rpartition("\n")[2], 200)


def run_detached(arguments: Namespace) -> int:
    """Start a detached run with the arguments of ``tui-agent run --detach``, and print its name."""
    given = [word for word in arguments.given if word != "--detach"]
    if arguments.json:
        given = [word for word in given if word != "--json"]
        say_json({"name": start(given, prompt=arguments.prompt or "", cwd=Path.cwd())})
        return 0
    start_and_say(given, prompt=arguments.prompt or "")
    return 0


def start_and_say(arguments: Sequence[str], *, prompt: str = "") -> None:
    """Start a detached run, and print its name and the command that attaches a terminal to it."""
    name = start(arguments, prompt=prompt, cwd=Path.cwd())
    say(f"Detached as {name}. tui-agent attach {name} shows it, tui-agent ps lists all runs.")


def run_ps(arguments: Namespace) -> int:
    rows = [(run, ask(run)) for run in all_runs().values()]
    if arguments.json:
        say_json([_facts(run, reported) for run, reported in rows])
        return 0
    if not rows:
        say("There are no detached runs. Start one: tui-agent run --detach PROMPT")
    for run, reported in rows:
        facts = _facts(run, reported)
        title = facts["title"] or one_line(run.prompt, 60) or "(no message yet)"
        where = short_path(run.cwd)
        shown = ""
        if reported is not None and reported.attached:
            shown = f" · shown on {plural(reported.attached, 'terminal')}"
        began = age(int(run.started * 1000), time.time())
        say(f"{run.name}  {facts['state']:<10} {began:<8} {title}  {where}{shown}")
    return 0


def _facts(run: Run, reported: DetachedState | None) -> dict[str, object]:
    if reported is None:
        reported = DetachedState(title="", attached=0, session=session_of(run.name))
        state = SILENT
        title = ""
    else:
        state, title = _read_title(reported.title)
    return {
        "name": run.name,
        "state": state,
        "title": title,
        "session": reported.session,
        "directory": run.cwd,
        "attached": reported.attached,
        "pid": run.pid,
        "started": run.started,
    }


def _read_title(title: str) -> tuple[str, str]:
    """Split the title of a run's terminal into the run's state and the title of its session."""
    state = _SIGNS.get(title[:1], IDLE)
    words = title if state is IDLE else title[1:]
    name = words.strip().removesuffix("tui-agent").strip(" ·")
    return state, one_line(name, 60)


def run_attach(arguments: Namespace) -> int:
    return attach(find(arguments.id))


def run_stop(arguments: Namespace) -> int:
    run = find(arguments.id)
    session = session_of(run.name)  # read it now, because the end of the run removes the file
    tell(run, Kind.STOP)
    until = time.monotonic() + STOP_PATIENCE
    while is_alive(run):
        if time.monotonic() > until:
            raise DetachedError(
                f"The run {run.name} is still saving its session. Check with: tui-agent ps"
            )
        time.sleep(0.1)
    way = f"tui-agent -r {short_id(session)}" if session else "tui-agent -c"
    say(f"Stopped {run.name}. Continue with: {way}")
    return 0


def run_logs(arguments: Namespace) -> int:
    """Print the entries of a detached run's session.

    With ``--follow``, keeps printing new entries until the run ends, also those of other sessions
    that the run opens.
    """
    from tui_agent.cli.sessions import open_store

    run = find(arguments.id)
    session_id = _wait_for_session(run)
    printed: dict[str, int] = {}
    with open_store() as store:
        while True:
            ends = not is_alive(run)
            next_id = session_of(run.name) or session_id
            printed[session_id] = _print_entries(store, session_id, printed.get(session_id, 0))
            sys.stdout.flush()
            if ends or not arguments.follow:
                return 0
            if next_id == session_id:
                time.sleep(LOOK_SECONDS)
            else:
                session_id = next_id
                say(f"\n— session {short_id(session_id)} —")


def _print_entries(store: "Store", session_id: str, last: int) -> int:
    """Print the entries of a session's active path whose ids are greater than ``last``.

    Returns the id of the last entry that has been printed. A session without entries may be missing
    in the store.
    """
    from tui_agent.session.session import session_to_read

    try:
        session = session_to_read(store, session_id)
    except SessionNotFound:
        return last
    for entry in session.active_path():
        if entry.id > last:
            last = entry.id
            for line in _lines(entry):
                say(line)
    return last


def _wait_for_session(run: Run) -> str:
    """Return the id of a run's session, once it has one.

    Raises DetachedError if the run ends without a session, or has none after `START_PATIENCE`
    seconds.
    """
    until = time.monotonic() + START_PATIENCE
    while not (session_id := session_of(run.name)):
        if time.monotonic() > until or not is_alive(run):
            raise DetachedError(f"The run {run.name} has not opened a session.")
        time.sleep(0.1)
    return session_id


def _lines(entry: Entry) -> Iterator[str]:
    """Yield the lines that ``logs`` prints for an entry of the session.

    There are none for branch summaries and for entries that only record the program's state.
    """
    match entry:
        case UserEntry():
            yield f"\n▌ {entry.text.strip()}"
        case AssistantEntry():
            if text := entry.text.strip():
                yield f"\n{text}"
        case ToolResultEntry():
            yield f"● {entry.tool} {one_line(entry.title, 120)}"
        case ShellEntry():
            yield f"! {one_line(entry.command, 120)}"
        case CompactionEntry():
            yield "— compacted —"
        case BranchSummaryEntry() | BookkeepingEntry():
            pass


def detach_terminals(name: str) -> None:
    """Detach every terminal that shows the run with this name, if there is such a run."""
    run = all_runs().get(name)
    if run is not None:
        with suppress(OSError, DetachedError):
            tell(run, Kind.LEAVE)
