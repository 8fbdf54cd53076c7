"""``tui-agent result``: prints or writes a session's file changes as a patch, or commits them."""

import sys
from argparse import Namespace
from pathlib import Path

from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.app.results import BRANCH, ResultError, SessionResult
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.output import say, say_bytes, say_json
from tui_agent.cli.sessions import named_or_last, open_store
from tui_agent.files.git_writing import make_patch
from tui_agent.session.session import session_to_read
from tui_agent.whole_numbers import whole_number


def run_result(arguments: Namespace) -> int:
    name, _, entry = arguments.id.partition("#")
    number = whole_number(entry)
    if entry and number is None:
        raise UsageError(
            f"“{arguments.id}” is not a session. Write ID, or ID#N for the branch that leads to entry N."
        )
    with open_store() as store:
        info = named_or_last(store, name, Path.cwd())
        session = session_to_read(store, info.id)
        snapshots = SnapshotStore(store.put_blob, store.blob)
        found = SessionResult.of(session, snapshots, number)
        if arguments.json:
            say_json(found.as_json())
            return 0
        if not arguments.branch and not arguments.output:
            if not found:
                raise ResultError(
                    f"This session changed no files in {found.project}.{found.remarks()}"
                )
            say_bytes(make_patch(found.files))
            if remarks := found.remarks().strip():
                say(remarks, file=sys.stderr)
            return 0
        if arguments.branch:
            target = f"{BRANCH}{arguments.branch}"
        else:
            target = str(arguments.output)
        say(found.write(target), file=sys.stderr)
    return 0
