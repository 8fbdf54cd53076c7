"""Two programs on one session: nothing is lost, and a lost race is a branch."""

import subprocess
import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from tests.support.texts import said
from tui_agent.session.records import children
from tui_agent.session.session import Session
from tui_agent.session.store import Store

ROOT = Path(__file__).parents[2]
BATCHES, BATCH = 50, 10

WRITER = f"""
import sys
from pathlib import Path
from tests.support.texts import said
from tui_agent.session.session import Session
from tui_agent.session.store import Store

session = Session(Store(Path(sys.argv[1])), sys.argv[2], estimate=lambda entry: 1)
if sys.argv[3] == "a":
    session.hold()
print("open", flush=True)
for batch, _go in enumerate(sys.stdin):
    ids = [session.append(said(f"{{sys.argv[3]}} {{batch * {BATCH} + at}}")).id for at in range({BATCH})]
    print(session.leaf, flush=True)
"""


def test_a_thousand_interleaved_appends_of_two_programs(session: Session, store: Store) -> None:
    root = session.append(said("root"))
    leaves = {"a": 0, "b": 0}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(store.path), session.id, name],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in leaves
        }
        for writer in writers.values():
            assert writer.stdout.readline() == "open\n"
        for _ in range(BATCHES):
            for writer in writers.values():
                writer.stdin.write("go\n")
                writer.stdin.flush()
            for name, writer in writers.items():
                leaves[name] = int(writer.stdout.readline())
        for writer in writers.values():
            writer.stdin.close()
    headers = {header.id: header for header in session.skeleton()}
    assert sorted(headers) == list(range(1, 2 + 2 * BATCHES * BATCH))
    for name, leaf in leaves.items():
        line = session.reader.parting(leaf, None).left
        previews = [headers[entry.id].preview for entry in line]
        assert previews == ["root", *(f"{name} {n}" for n in range(BATCHES * BATCH))]
    assert [parent for parent, ids in children(headers.values()).items() if len(ids) > 1] == [root.id]
    owners = [headers[i].preview[0] for i in range(2, len(headers) + 1)]
    assert sum(left != right for left, right in pairwise(owners)) >= BATCHES - 1
    assert (session.leaf, session.reader.damaged) == (root.id, 0)
    assert Session(store, session.id, estimate=lambda _entry: 1).leaf in leaves.values()
