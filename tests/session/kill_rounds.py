"""Kills a busy writer again and again, and looks each time at what is left. Prints what it found as JSON.

Run as ``python -m tests.session.kill_rounds FILE ROUNDS SEED``, in a process of its own: the writer is forked, which
costs milliseconds where a new interpreter costs a second, and forking is safe only without threads.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from scripts.faults.kills import in_process
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


def work(path: Path, session_id: str, report: Callable[..., None]) -> NoReturn:
    """Converse for ever and report everything only after it was committed."""
    session = Session(Store(path), session_id, estimate=lambda entry: len(entry.preview))
    session.hold()
    for number in count(1):
        asked = session.append(
            said(f"message {number} of process {os.getpid()} " + "x" * (number % 7 * 900))
        )
        report("entry", asked.id, asked.preview)
        unfinished = ToolCallPart(call_id=f"c{number}", tool="read", arguments='{"path": "unfinish')
        for times in range(1, 5):
            session.save_draft(DraftText(WORDS * times, calls=(unfinished,), model="test/model"))
            report("draft", asked.id, len(WORDS) * times)
        output = f"output {number} " * 200
        result = ToolResultEntry(
            call_id=f"c{number}", tool="read", status=ToolStatus.COMPLETED, output=output
        )
        for entry in session.append_many(
            [answered(WORDS * 5, (f"c{number}", "read", "{}")), result]
        ):
            report("entry", entry.id, entry.preview)
        if number % 5 == 0:
            target = max(1, asked.id - 7)
            session.move(target)
            report("leaf", target)
    raise AssertionError


def one_life(path: Path, session_id: str, chance: random.Random) -> list[list[Any]]:
    """Let a writer work, kill it at a random moment, and return what it had reported."""
    life, after = chance.randint(1, LIVES), chance.uniform(0, AFTER)
    ends: list[float] = []

    def until(told: list[list[Any]]) -> float | None:
        if len(told) >= life and not ends:
            ends.append(time.monotonic() + after)
        return ends[0] if ends else None

    return in_process(lambda report: work(path, session_id, report), until)


def faults(path: Path, session_id: str, reports: list[list[Any]]) -> tuple[list[str], bool]:
    """Open what is left; return what is wrong with it and whether a draft was recovered."""
    wrong: list[str] = []
    with Store(path) as store:
        session = Session(store, session_id, estimate=lambda _entry: 1)
        headers = {header.id: header for header in session.skeleton()}
        entries = [values for kind, *values in reports if kind == "entry"]
        for entry_id, preview in entries:
            if entry_id not in headers or headers[entry_id].preview != preview:
                wrong.append(f"entry {entry_id} was reported and is not there")
        last = [values[0] for kind, *values in reports if kind in ("entry", "leaf")][-1]
        newer = [i for i in headers if i > max(entry_id for entry_id, _preview in entries)]
        # It may have been killed between a move and its report.
        moved = [move.to_leaf for move in session.moves()[-1:]]
        if session.leaf not in (last, *newer, *moved):
            wrong.append(f"the leaf is {session.leaf}, not {last} or one of {newer}")
        if any(
            header.parent_id is not None and header.parent_id >= i for i, header in headers.items()
        ):
            wrong.append("a parent is younger than its child")
        if session.reader.damaged or [entry.id for entry in session.path()] != list(
            session.path_outline().ids
        ):
            wrong.append("the path can't be read as a whole")
        session.hold()
        recovered = session.recover()
        if reports[-1][0] == "draft" and not newer:
            wrong += _draft_faults(reports[-1], recovered)
    return wrong, recovered is not None


def _draft_faults(last: list[Any], recovered: AssistantEntry | None) -> list[str]:
    if recovered is None:
        return [f"the draft {last} was not recovered"]
    _kind, parent, length = last
    if (
        recovered.parent_id != parent
        or len(recovered.text) < length
        or not (WORDS * 5).startswith(recovered.text)
    ):
        return [f"the draft {last} was recovered as {recovered!r}"]
    return (
        []
        if recovered.interrupted and not recovered.tool_calls
        else ["a recovered draft has unfinished calls"]
    )


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
