"""The memory on disk and its changes: each can be undone, and several programs may write."""

import contextlib
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tui_agent.files.memory import (
    MAX_CHARS,
    MAX_PROPOSED,
    Memory,
    MemoryLine,
    MemoryState,
    NotKeptError,
    Proposal,
    line_of,
)

TOPICS = st.sampled_from(["build", "tests", "ports", "deploy"])
LINES = st.builds(MemoryLine, topic=TOPICS, text=st.text("abc ", min_size=1, max_size=6))
PROPOSALS = st.lists(st.builds(Proposal, line=LINES, removes=st.booleans()), max_size=6)
ANSWERS = st.lists(st.tuples(st.sampled_from("tdkx"), LINES), max_size=8)


def answered(state: MemoryState, key: str, line: MemoryLine) -> MemoryState:
    """Return the memory after a key on the page: take, decline, keep a line, drop one."""
    proposal = state.proposal(line.topic)
    kept = state.line(line.topic)
    if key == "k":
        return state.with_line(line)
    if key == "x" and kept is not None:
        return state.without_line(kept)
    if key == "d" and proposal is not None:
        return state.without_proposal(proposal)
    if key == "t" and proposal is not None and proposal.removes:
        return state.without_line(proposal.line, answers=proposal)
    if key == "t" and proposal is not None:
        return state.with_line(proposal.line, answers=proposal)
    return state


@settings(max_examples=examples(300))
@given(PROPOSALS, ANSWERS)
def test_every_answer_can_be_undone(proposals: list[Proposal], answers: list[object]) -> None:
    state = begun = MemoryState().with_proposals(proposals)
    for key, line in answers:  # type: ignore[misc]
        state = answered(state, key, line)
        assert len({one.topic for one in state.lines}) == len(state.lines)
        assert len({one.line.topic for one in state.proposed}) == len(state.proposed)
    for _change in state.changes:
        state = state.undone()
    assert state.lines == begun.lines
    by_topic = {one.line.topic: one for one in state.proposed}
    assert by_topic == {one.line.topic: one for one in begun.proposed}
    assert state.declined == begun.declined


def test_what_was_declined_is_not_proposed_again_and_the_oldest_make_room() -> None:
    many = [Proposal(line=MemoryLine(topic=f"t{n}", text=f"line {n}")) for n in range(20)]
    state = MemoryState().with_proposals(many)
    assert [one.line.topic for one in state.proposed] == [
        f"t{n}" for n in range(20 - MAX_PROPOSED, 20)
    ]
    state = state.without_proposal(state.proposed[-1])
    again = Proposal(line=MemoryLine(topic="other", text="LINE 19."))
    assert state.with_proposals([again]).proposed == state.proposed


@pytest.mark.parametrize(
    ("text", "topic", "line"),
    [
        ("build: use pnpm", "build", "use pnpm"),
        ("Use  pnpm here.", "", "Use pnpm here."),
        ("see https://example.com/x", "", "see https://example.com/x"),
        ("a\x1b[31mb", "", "a␛[31mb"),
        ("ä: ö", "ä", "ö"),
    ],
)
def test_a_text_becomes_a_topic_and_a_line(text: str, topic: str, line: str) -> None:
    made = line_of(text)
    assert made.text == line
    assert made.topic == topic


@pytest.mark.parametrize("text", ["", " \n ", "x" * (MAX_CHARS + 1)])
def test_what_can_be_no_line_is_refused(text: str) -> None:
    with pytest.raises(NotKeptError):
        line_of(text)


def test_lines_of_several_writers_all_stay_and_none_replaces_another(tmp_path: Path) -> None:
    memory = Memory(tmp_path, tmp_path)

    def write(name: str) -> None:
        for number in range(5):
            Memory(tmp_path, tmp_path).add(f"note: {name} {number}", 1)

    threads = [threading.Thread(target=write, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({line.topic for line in memory.read().lines}) == 10
    with pytest.raises(NotKeptError, match="already"):
        memory.add("note: a 0", 1)


@settings(max_examples=examples(60))
@given(st.binary(max_size=60))
def test_an_odd_file_is_an_error_or_a_memory(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        memory = Memory(Path(place), Path(place))
        memory.path.write_bytes(data)
        with contextlib.suppress(NotKeptError):
            assert isinstance(memory.read(), MemoryState)
        assert memory.path.read_bytes() == data


def test_worktrees_share_a_memory_and_a_checkout_cannot_name_another(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(main)]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "side")], check=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text((tmp_path / "side" / ".git").read_text())
    paths = [Memory(tmp_path, tmp_path / name).path for name in ("main", "side", "other")]
    assert paths[0] == paths[1]
    assert paths[0] != paths[2]


def test_foreign_proposals_make_room_first() -> None:
    mine = Proposal(line=MemoryLine(topic="mine", text="my words"))
    flood = [
        Proposal(line=MemoryLine(topic=f"t{n}", text=f"line {n}", origin="webfetch evil.example"))
        for n in range(50)
    ]
    state = MemoryState().with_proposals([mine, *flood])
    assert len(state.proposed) == MAX_PROPOSED
    assert state.proposal("mine") == mine


def test_a_line_nobody_was_shown_is_never_replaced(tmp_path: Path) -> None:
    memory = Memory(tmp_path, tmp_path)
    first = memory.add("Use pnpm here.", 1)
    assert first.topic == "pnpm"
    state = memory.read()
    derived = Proposal(line=line_of("Always run pnpm audit."))
    named = Proposal(line=line_of("pnpm: Use pnpm 9."))
    proposed = state.with_proposals([derived]).proposed
    assert [one.line.topic for one in proposed] == ["pnpm 2"], "it is a line of its own"
    assert state.with_proposals([named]).proposal("pnpm") == named, "it corrects the line"
    answered = proposed[0].line.model_copy(update={"topic": "pnpm"})
    kept = state.with_line(answered, answers=proposed[0])
    assert {line.text for line in kept.lines} == {first.text, answered.text}


def test_a_removal_is_proposed_once_and_takes_no_correction_away() -> None:
    line = MemoryLine(topic="ports", text="The server listens on 8081.")
    state = MemoryState(lines=(line,))
    correction = Proposal(line=MemoryLine(topic="ports", text="It listens on 9090."))
    removal = Proposal(line=line, removes=True)
    assert state.with_proposals([correction, removal]).proposed == (correction,)
    later = removal.model_copy(update={"line": line.model_copy(update={"kept_at": 9})})
    assert state.with_proposals([removal, later]).proposed == (removal,)
