"""Going back never leaves a content nowhere: what could be the user's stays, what is cut short can be gone on with."""

import asyncio
import errno
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.test_rewind import bash, checkpoints, commit, restore, rewinding, tree
from tests.support.stores import unable_to_store
from tui_agent.agent.checkpoints import restoring
from tui_agent.agent.checkpoints.file_snapshots import ABSENT, Snapshot, digest_of, place_in
from tui_agent.agent.checkpoints.plan import (
    SAME_FILE,
    Conflict,
    Difference,
    RestoreStep,
    decide,
    in_order,
)
from tui_agent.agent.checkpoints.recorder import IS_OLDER, SnapshotStore
from tui_agent.agent.checkpoints.restoring import Restorer
from tui_agent.session.entries import CheckpointEntry
from tui_agent.text_files.replacing import replace_file

LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_bytes(b"one\n")
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "run.sh").chmod(0o700)
    return root


@pytest.mark.parametrize(
    "command",
    [
        "mv ../mine.txt y.txt",
        "mv notes.secret y.txt",
        "echo '!*.secret' > .ignore",
        "cp -p ../mine.txt y.txt",
    ],
)
async def test_what_was_there_before_where_nobody_looked_is_not_deleted(
    tmp_path: Path, project: Path, command: str
) -> None:
    (project / ".gitignore").write_text("*.secret\n")
    for place in (tmp_path / "mine.txt", project / "notes.secret"):
        place.write_text("precious\n")
        os.utime(place, LONG_AGO)
    harness = rewinding(tmp_path, (bash(f"{command}; echo new > made.txt"),))
    await harness.say("do it")
    wanted = await harness.agent.files.plan(None)
    assert [conflict.reason for conflict in wanted.conflicts] == [
        f"no snapshot of it is kept: {IS_OLDER}"
    ]
    await restore(harness, None)
    assert not (project / "made.txt").exists()
    assert "precious\n" in {
        (project / name).read_text()
        for name in ("y.txt", "notes.secret")
        if (project / name).exists()
    }
    await harness.agent.aclose()


async def test_a_moved_file_that_finds_no_room_stays_where_it_is(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    harness = rewinding(tmp_path, (bash("mv a.py moved.py"),))
    await harness.say("do it")
    monkeypatch.setattr(restoring, "replace_file", full)
    done = await restore(harness, None)
    assert {conflict.path for conflict in done.failed} == {"a.py", "moved.py"}
    assert (project / "moved.py").read_text() == "one\n"
    await harness.agent.aclose()


def test_files_are_made_before_others_are_deleted_unless_those_are_in_the_way() -> None:
    one = Snapshot("1", 0o644)
    made = [RestoreStep(path, ABSENT, one) for path in ("deep/er/x", "flat")]
    gone = [RestoreStep(path, one, ABSENT) for path in ("deep", "flat/y", "other", "deeper")]
    order = [step.path for step in in_order([*gone, *made])]
    assert order == ["deep", "flat/y", "deep/er/x", "flat", "other", "deeper"]


def test_a_name_in_another_case_may_be_the_same_file() -> None:
    one = Snapshot("1", 0o644)
    # As a file system without regard to case tells it after `mv readme.md README.md`.
    found = [Difference("README.md", one, ABSENT), Difference("readme.md", ABSENT, one)]
    assert decide(found, lambda _path: one, lambda _digest: True) == (
        (),
        (Conflict("README.md", SAME_FILE),),
    )


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree", ""])
async def test_what_git_has_otherwise_is_read_from_the_disk(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """It was told not to look at a file, or stores it with other line endings."""
    monkeypatch.setattr("tui_agent.agent.checkpoints.preimages.MAX_UNCHECKED_FILES", 0)
    (project / ".gitattributes").write_text("*.py text eol=crlf\n")
    (project / "a.py").write_bytes(b"one\r\n")
    os.utime(project / "a.py", LONG_AGO)
    commit(project)
    if flag:
        subprocess.run(["git", "update-index", flag, "a.py"], cwd=project, check=True)
        (project / "a.py").write_bytes(b"two\n")
    before = tree(project)
    harness = rewinding(tmp_path, (bash("echo gone > run.sh; mkdir d; mv a.py d/b.py"),))
    await harness.say("do it")
    await restore(harness, None)
    assert tree(project) == before, "an old file that was only moved too"
    await harness.agent.aclose()


async def test_what_the_user_wrote_and_a_command_moved_is_somewhere(
    tmp_path: Path, project: Path
) -> None:
    harness = rewinding(tmp_path, (bash("echo more >> a.py"),), (bash("mv a.py b.py"),))
    start = harness.session.leaf
    await harness.say("first")
    (project / "a.py").write_bytes(b"mine\n")
    await harness.say("second")
    await restore(harness, start)
    assert (project / "b.py").read_bytes() == b"mine\n"
    await harness.agent.aclose()


async def test_looking_runs_no_program_that_a_repository_names(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.checkpoints.preimages.MAX_UNCHECKED_FILES", 0)
    commit(project)
    (project / ".gitattributes").write_text("* filter=evil\n")
    for name, value in (
        ("filter.evil.clean", "touch ../ran; cat"),
        ("core.trustctime", "false"),
        ("core.checkStat", "minimal"),
    ):
        subprocess.run(["git", "config", name, value], cwd=project, check=True)
    # As old as the index is, so that git compares contents to be sure.
    index = (project / ".git" / "index").stat().st_mtime_ns
    os.utime(project / "a.py", ns=(index, index))
    harness = rewinding(tmp_path, (bash("echo gone > a.py"),))
    await harness.say("do it")
    assert not (tmp_path / "ran").exists()
    await restore(harness, None)
    assert (project / "a.py").read_bytes() == b"one\n"
    await harness.agent.aclose()


async def test_a_repository_without_files_of_its_own_is_left_alone(
    tmp_path: Path, project: Path
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", "server.git"], cwd=project, check=True)
    commit(project)
    harness = rewinding(
        tmp_path, (bash("git push -q server.git HEAD:refs/heads/main; echo y >> a.py"),)
    )
    await harness.say("do it")
    assert [change.path for entry in checkpoints(harness) for change in entry.files] == ["a.py"]
    await harness.agent.aclose()


async def test_the_store_of_a_project_that_is_a_home_is_no_file_of_it(
    tmp_path: Path, project: Path
) -> None:
    own = project / ".local" / "share"
    own.mkdir(parents=True)
    kept: dict[str, bytes] = {}
    trimmed, loop = asyncio.Event(), asyncio.get_running_loop()
    keeping = SnapshotStore(
        lambda data: kept.setdefault(digest := digest_of(data), data) and digest,
        kept.get,
        lambda: loop.call_soon_threadsafe(trimmed.set),
        apart=(own,),
    )
    harness = rewinding(
        tmp_path, (bash("echo x > .local/share/sessions.db; echo y >> a.py"),), checkpoints=keeping
    )
    await harness.say("do it")
    assert [change.path for entry in checkpoints(harness) for change in entry.files] == ["a.py"]
    assert Restorer(project, keeping).current(".local/share/sessions.db").snapshot.problem
    await harness.agent.files.plan(None)
    await asyncio.wait_for(trimmed.wait(), 60)
    await harness.agent.aclose()


@pytest.mark.parametrize(
    "path", [".GIT/hooks/x", "sub/.Git/config", ".g\u200cit/config", "git~1/config", ".git./config"]
)
def test_no_spelling_leads_into_a_repositorys_data(tmp_path: Path, path: str) -> None:
    assert place_in(tmp_path, path) is None
    assert place_in(tmp_path, ".gitignore") is not None


_RESTORE = """
import sys
from pathlib import Path
from tui_agent.agent.checkpoints.plan import changes_in, differences
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.checkpoints.restoring import Restorer
from tui_agent.session.session import Session
from tui_agent.session.store import Store

store = Store(Path(sys.argv[1]))
changes = changes_in(Session(store, sys.argv[2], estimate=lambda _entry: 1, read_only=True).path())
restorer = Restorer(Path(sys.argv[3]), SnapshotStore(store.put_blob, store.blob))
print("begun", flush=True)
restorer.carry_out(restorer.plan(differences(changes, ())))
print("ended", flush=True)
"""


@pytest.mark.parametrize("moments", [3, 40])
async def test_restoring_that_is_killed_leaves_whole_files_and_can_be_gone_on_with(
    tmp_path: Path, project: Path, moments: int
) -> None:
    for number in range(120):
        (project / f"f{number}").write_text(f"old {number}\n" * 1_000)
    before = tree(project)
    harness = rewinding(
        tmp_path,
        (bash("for f in f*; do echo new $f > $f; chmod 600 $f; done; mv a.py b.py; touch c.py"),),
    )
    await harness.say("do it")
    after = tree(project)
    await harness.agent.aclose()
    arguments = (str(tmp_path / "sessions.db"), harness.session.id, str(project))
    with subprocess.Popen(
        [sys.executable, "-c", _RESTORE, *arguments], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while process.poll() is None:
            if (
                sum(
                    (project / name).stat().st_mode & 0o7777 == 0o644
                    for name in before
                    if name[0] == "f"
                )
                >= moments
            ):
                process.kill()
                break
    for name, found in tree(project).items():
        assert found in (before.get(name), after.get(name)) or name.endswith(".tmp"), name
    # The content of the moved file is there under one of its names.
    assert (project / "a.py").exists() or (project / "b.py").exists()
    subprocess.run(
        [sys.executable, "-c", _RESTORE, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    assert {
        name: found for name, found in tree(project).items() if not name.endswith(".tmp")
    } == before


async def test_a_file_that_comes_back_never_has_other_permissions(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = rewinding(tmp_path, (bash("rm run.sh"),))
    await harness.say("do it")
    seen: list[int] = []
    replaced = os.replace

    def watch(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        seen.append(stat.S_IMODE(os.stat(source, dir_fd=src_dir_fd).st_mode))
        replaced(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr("tui_agent.text_files.replacing.os.replace", watch)
    await restore(harness, None)
    assert seen == [0o700]
    await harness.agent.aclose()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room can't be reserved here")
def test_a_file_with_two_names_is_whole_when_the_disk_is_full(tmp_path: Path) -> None:
    place = tmp_path / "one"
    place.write_text("old\n")
    os.link(place, tmp_path / "other")
    # A limit for files stands for the disk: it holds for this process alone.
    code = (
        "import pathlib, resource, signal, sys\n"
        "from tui_agent.text_files.replacing import replace_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))\n"
        "try:\n    replace_file(pathlib.Path(sys.argv[1]), b'x' * 100000)\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "OSError", done.stderr
    assert place.read_text() == "old\n"
    replace_file(place, b"n")
    assert (tmp_path / "other").read_text() == "n"


async def test_changes_whose_checkpoint_can_not_be_stored_are_in_the_next_one(
    tmp_path: Path, project: Path
) -> None:
    harness = rewinding(tmp_path, (bash("echo two >> a.py"),), ())
    with unable_to_store(harness.session, CheckpointEntry):
        assert (await harness.say("go")).error == "The disk is full."
    await harness.say("again")
    assert [change.path for change in checkpoints(harness)[0].files] == ["a.py"]
    await restore(harness, None)
    assert (project / "a.py").read_bytes() == b"one\n"


async def test_an_agent_whose_last_checkpoint_can_not_be_stored_is_closed_all_the_same(
    tmp_path: Path, project: Path
) -> None:
    harness = rewinding(tmp_path, (bash("echo two >> a.py"),))
    hub = harness.agent.ports.mcp
    with unable_to_store(harness.session, CheckpointEntry):
        await harness.say("go")
        await harness.agent.aclose()
    assert hub.sessions == []
