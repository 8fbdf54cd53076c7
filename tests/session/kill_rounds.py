"""Kills a busy writer again and again, and looks each time at what is left. Prints what it found as JSON.

Run as ``python -m tests.session.kill_rounds FILE ROUNDS SEED``, in a process of its own: the writer is forked, which
costs milliseconds where a new interpreter costs a second, and forking is safe only without threads.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from tests.support.texts import answered, said
from tui_agent.session.entries import AssistantEntry, ToolCallPart, ToolResultEntry, ToolStatus
from tui_agent.session.records import DraftText
from tui_agent.session.session import Session
from tui_agent.session.store import Store

WORDS = "streamed words of an answer that is being written "
LIVES = 40
"""Reports a writer lives for at most."""
AFTER = 0.002
"""Seconds at most between the last of them and its end."""


def work(path: Path, session_id: str, pipe: int) -> NoReturn:
    """Converse for ever and report everything only after it was committed, one line each."""
    session = Session(Store(path), session_id, estimate=lambda entry: len(entry.preview))
    session.hold()
    number = 0

    def report(*what: object) -> None:
        os.write(pipe, (json.dumps(what) + "\n").encode())

    while True:
        number += 1
        asked = session.append(said(f"message {number} of process {os.getpid()} " + "x" * (number % 7 * 900)))
        report("entry", asked.id, asked.preview)
        for count in range(1, 5):
            session.save_draft(DraftText(WORDS * count, calls=(_call(number),), model="test/model"))
            report("draft", asked.id, len(WORDS) * count)
        stored = session.append_many([answered(WORDS * 5, (f"c{number}", "read", "{}")), _result(number)])
        for entry in stored:
            report("entry", entry.id, entry.preview)
        if number % 5 == 0:
            target = max(1, asked.id - 7)
            session.move(target)
            report("leaf", target)


def _call(number: int) -> ToolCallPart:
    return ToolCallPart(call_id=f"c{number}", tool="read", arguments='{"path": "unfinish')


def _result(number: int) -> ToolResultEntry:
    return ToolResultEntry(
        call_id=f"c{number}", tool="read", status=ToolStatus.COMPLETED, output=f"output {number} " * 200
    )


def one_life(path: Path, session_id: str, chance: random.Random) -> list[list[object]]:
    """Let a writer work, kill it at a random moment, and return what it had reported."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        work(path, session_id, write_end)
    os.close(write_end)
    heard = b""
    lives = chance.randint(1, LIVES)
    while heard.count(b"\n") < lives:
        heard += os.read(read_end, 65_536)
    time.sleep(chance.uniform(0, AFTER))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while piece := os.read(read_end, 65_536):
        heard += piece
    os.close(read_end)
    return [json.loads(line) for line in heard.splitlines() if line.endswith(b"]")]


def faults(path: Path, session_id: str, reports: list[list[object]]) -> tuple[list[str], bool]:
    """Open what is left; return what is wrong with it and whether a draft was recovered."""
    wrong: list[str] = []
    with Store(path) as store:
        session = Session(store, session_id, estimate=lambda _entry: 1)
        headers = {header.id: header for header in session.skeleton()}
        before = session.leaf
        for kind, *values in reports:
            if kind == "entry" and (values[0] not in headers or headers[values[0]].preview != values[1]):
                wrong.append(f"entry {values} was reported and is not there")
        last = [values[0] for kind, *values in reports if kind in ("entry", "leaf")][-1]
        newer = [i for i in headers if i > max(values[0] for kind, *values in reports if kind == "entry")]
        if before not in (last, *newer) and not _moved_after(session, reports):
            wrong.append(f"the leaf is {before}, not {last} or one of {newer}")
        if any(header.parent_id is not None and header.parent_id >= i for i, header in headers.items()):
            wrong.append("a parent is younger than its child")
        if session.reader.damaged or [entry.id for entry in session.path()] != list(session.path_outline().ids):
            wrong.append("the path can't be read as a whole")
        session.hold()
        recovered = session.recover()
        wrong += _draft_faults(reports[-1], recovered, bool(newer))
    return wrong, recovered is not None


def _moved_after(session: Session, reports: list[list[object]]) -> bool:
    """Whether the writer was killed between a move and its report."""
    moves = session.moves()
    return bool(moves) and moves[-1].to_leaf == session.leaf and ["leaf", session.leaf] not in reports


def _draft_faults(last: list[object], recovered: AssistantEntry | None, superseded: bool) -> list[str]:
    if last[0] != "draft" or superseded:
        return []
    if recovered is None:
        return [f"the draft {last} was not recovered"]
    length, text = int(str(last[2])), recovered.text
    if recovered.parent_id != last[1] or len(text) < length or not (WORDS * 5).startswith(text):
        return [f"the draft {last} was recovered as {recovered!r}"]
    return [] if recovered.interrupted and not recovered.tool_calls else ["a recovered draft has unfinished calls"]


def main(path: Path, rounds: int, seed: int) -> None:
    """Run all rounds and print the outcome."""
    chance = random.Random(seed)
    with Store(path) as store:
        session_id = store.create_session("/").id
    wrong: list[str] = []
    drafts = reported = 0
    for number in range(rounds):
        reports = one_life(path, session_id, chance)
        reported += len(reports)
        found, recovered = faults(path, session_id, reports)
        drafts += recovered
        wrong += [f"round {number}: {fault}" for fault in found]
    print(json.dumps({"wrong": wrong, "rounds": rounds, "reports": reported, "drafts": drafts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
