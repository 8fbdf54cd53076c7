"""``tui-agent sessions``: lists, searches and deletes stored sessions from the command line.

Exporting and importing are in ``tui_agent.cli.transfer``. For all other commands, this module opens
the store, and finds the session that was last used in a directory.
"""

import shutil
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from tui_agent.app.format import plural, short_path
from tui_agent.cli.output import say, say_json, when
from tui_agent.files.own_git import find_project
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.paths import DATA_VARIABLE, data_dir
from tui_agent.safe_text import one_line
from tui_agent.session.errors import StoreError, StoreUnavailable
from tui_agent.session.ids import short_id
from tui_agent.session.records import SessionInfo
from tui_agent.session.store import Store

DATABASE = "sessions.db"
"""Name of the file that contains the session store."""


def open_store() -> Store:
    """Open the store in the data directory, which is created if missing.

    Raises:
        StoreUnavailable: the directory or the store can't be used.
    """
    directory = data_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreUnavailable(
            f"Sessions can't be stored in {directory}: {error.strerror or error}. "
            f"Set {DATA_VARIABLE} to another directory, or add --no-session to store nothing."
        ) from None
    return Store(directory / DATABASE)


def named_or_last(store: Store, name: str, cwd: Path) -> SessionInfo:
    """Return the session with the id ``name``; for "", the session last used in ``cwd``.

    If ``cwd`` has no session, uses the nearest directory above it that has one, up to the project's
    root.

    Raises:
        StoreError: there is no such session.
    """
    if name:
        return store.session(name)
    project = find_project(cwd)
    for folder in (cwd, *cwd.parents):
        for info in store.sessions(cwd=folder, limit=1):
            return info
        if folder == project:
            break
    newest = next(iter(store.sessions(limit=1)), None)
    demo = ""
    if newest and newest.model == DEMO_MODEL:
        demo = " tui-agent --demo -c continues the last demo;"
    raise StoreError(
        f"There is no session in this directory yet.{demo} tui-agent -r lists all sessions."
    )


def run_sessions(arguments: Namespace) -> int:
    with open_store() as store:
        match arguments.action:
            case "list":
                return _list(store, arguments)
            case "search":
                hits = store.search(arguments.query)
                for hit in hits:
                    if arguments.json:
                        say_json(asdict(hit))
                    else:
                        place = f"{short_id(hit.session_id)}#{hit.entry_id}"
                        say(f"{place}  {when(hit.created_at)}  {hit.kind}: {hit.snippet}")
                if not hits and not arguments.json:
                    say(f"Nothing found for “{arguments.query}”.")
                return 0
            case "export" | "import" as action:
                from tui_agent.cli import transfer

                return {"export": transfer.run_export, "import": transfer.run_import}[action](
                    store, arguments
                )
            case _:
                return _delete(store, arguments)


def _list(store: Store, arguments: Namespace) -> int:
    found = store.sessions(cwd=Path.cwd() if arguments.here else None)
    if arguments.json:
        for info in found:
            say_json(asdict(info))
        return 0
    if not found:
        where = " in this directory" if arguments.here else ""
        say(f"There are no sessions{where} yet.")
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
    else:
        columns = None
    for info in found:
        say(session_row(info, columns))
    if found and sys.stdout.isatty():
        say(f"\nOpen one: tui-agent -r {short_id(found[0].id)}", file=sys.stderr)
    return 0


def session_row(info: SessionInfo, columns: int | None) -> str:
    """Return a session's line in a list, cut to ``columns`` cells unless ``columns`` is None."""
    about = (
        f"{short_id(info.id)}  {when(info.updated_at)}  {plural(info.entry_count, 'entry'):>14}  "
    )
    held = "  open elsewhere" if info.held_by else ""
    if info.model == DEMO_MODEL:
        where = "demo"
    else:
        where = one_line(short_path(info.cwd))
    name = one_line(_name(info))
    if columns is None:
        return f"{about}{where:<24}  {name}{held}"
    from rich.cells import cell_len, set_cell_size

    room = max(columns - len(about) - len(held) - 2, 0)
    cut = min(24, room // 2)
    if len(where) > cut:
        where = f"…{where[len(where) - cut + 1 :]}"  # show its end, which says more
    line = f"{about}{where:<{cut}}  {name}"
    if cell_len(line) > columns - len(held):
        line = f"{set_cell_size(line, columns - len(held) - 1).rstrip()}…"
    return f"{line}{held}"


def _delete(store: Store, arguments: Namespace) -> int:
    info = store.session(arguments.id)
    if not arguments.yes:
        if not sys.stdin.isatty():
            say("Deleting can't be undone. Add --yes to confirm.", file=sys.stderr)
            return 2
        entries = plural(info.entry_count, "entry")
        answer = input(f"Delete “{one_line(_name(info))}” with {entries} for good? [y/N] ")
        if answer.strip().lower() not in {"y", "yes"}:
            say("Nothing was deleted.")
            return 0
    store.delete(info.id)
    store.purge()
    say(f"Deleted “{one_line(_name(info))}”.")
    return 0


def _name(info: SessionInfo) -> str:
    return info.title or info.first_message[:60] or "(empty)"
