"""Files go back with the conversation: what tools and commands did is undone, what the user did is kept."""

import asyncio
import os
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, call
from tests.support.thoroughness import examples
from tui_agent.agent.checkpoints import manifest, plan, recorder
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.checkpoints.restoring import ChangeAmount
from tui_agent.agent.events import Notice
from tui_agent.app.moves import files_phrase
from tui_agent.session.entries import CheckpointEntry
from tui_agent.session.errors import StoreError


def bash(command: str) -> Call:
    return call("bash", command=command)


def turns(*steps: tuple[Call, ...]) -> list[Reply]:
    """Return a turn per step: its calls, then an answer."""
    return [reply for calls in steps for reply in (Reply("", calls), Reply("Done."))]


def rewinding(tmp_path: Path, *steps: tuple[Call, ...], **ports: Any) -> Harness:
    return make_agent(tmp_path, turns(*steps), keeps_files=True, **ports)


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file below a directory: bytes and permission bits, of links the target and 0."""
    found = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if ".git" in path.parts:
            continue
        if path.is_symlink():
            found[name] = (os.fsencode(path.readlink()), 0)
        elif path.is_file():
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o7777)
    return found


def directories(root: Path) -> dict[str, int]:
    """Return every directory below a directory, with its permission bits."""
    return {
        str(path.relative_to(root)): path.stat().st_mode & 0o7777
        for path in root.rglob("*")
        if path.is_dir() and ".git" not in path.parts
    }


def checkpoints(harness: Harness) -> list[CheckpointEntry]:
    return harness.entries(CheckpointEntry)


async def restore(harness: Harness, target: int | None) -> Any:
    wanted = await harness.agent.files.plan(target)
    await harness.agent.navigator.go(target)
    return await harness.agent.files.restore(wanted)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_bytes(b"one\r\ntwo\r\n")
    (root / "run.sh").write_bytes(b"#!/bin/sh\necho hi\n")
    (root / "run.sh").chmod(0o755)
    (root / "latin.txt").write_bytes("grün\n".encode("latin-1"))
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "x.txt").write_bytes(b"x\0y")
    (root / "links" / "deep").mkdir(parents=True)
    for name, target in LINKS.items():
        (root / "links" / name).symlink_to(target)
    return root


LINKS = {
    "file": "../a.py",
    "folder": "../deep",
    "deep/up": "../..",
    "gone": "nowhere",
    "out": "/etc/hosts",
}

COMMANDS = (
    "sed -i s/one/ONE/ a.py",
    "mv a.py moved.py",
    "rm run.sh",
    "chmod 600 run.sh",
    "mkdir -p gen/erated && seq 1 50 > gen/erated/numbers && cp a.py gen/",
    "rm -r deep && echo file > deep",
    "printf '\\377\\376' >> latin.txt",
    "rm -r links",
    "rm links/deep/up links/gone",
    "mv links moved",
    "ln -sfn ../run.sh links/file",
    "rm links/file && cp a.py links/file",
    "cp -P links/file new && ln -sf a.py run.sh",
    "rm -r deep && ln -s links deep",
    "rm links/folder && mkdir links/folder && cp a.py links/folder/",
    "echo more >> links/file",
    "rm links/folder && mkdir -p links/folder/er && cp a.py links/folder/er/x.txt",
    "mkdir -p new/er && cp a.py new/er/x.txt && rm -r deep && ln -s new deep",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("repository", ["git", "plain"])
async def test_what_a_command_did_is_undone_byte_by_byte(
    tmp_path: Path, project: Path, command: str, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if repository == "git":
        monkeypatch.setattr("tui_agent.agent.checkpoints.preimages.MAX_UNCHECKED_FILES", 0)
        commit(project)
    before = tree(project)
    harness = rewinding(tmp_path, (bash(command),))
    await harness.say("do it")
    after = tree(project)
    assert after != before
    leaf = harness.session.leaf
    done = await restore(harness, None)
    assert not done.failed
    assert tree(project) == before
    # And forth again.
    done = await restore(harness, leaf)
    assert not done.failed
    assert tree(project) == after
    await harness.agent.aclose()


@pytest.mark.parametrize(
    "calls",
    [
        (
            call("write", path="keep/x.txt", content="x"),
            call("write", path="keep2/sub/deep/x.txt", content="x"),
        ),
        (bash("touch keep/x.txt; mkdir keep2/sub/deep; touch keep2/sub/deep/x.txt"),),
        (bash("mkdir -p emptied keep2/empty/in; chmod 750 emptied"),),
        (bash("mkdir gone"), bash("rmdir gone keep keep2/sub && touch keep2/sub")),
        (bash("mv keep kept && rm run.sh && mkdir -p run.sh/in"),),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
async def test_only_directories_that_the_turn_made_are_removed(
    tmp_path: Path, project: Path, calls: tuple[Call, ...], *, in_place: bool
) -> None:
    (project / "keep").mkdir(mode=0o700)
    (project / "keep2" / "sub").mkdir(parents=True)
    before = tree(project), directories(project)
    harness = rewinding(tmp_path, *[(one,) for one in calls], (bash("true"),))
    for _ in calls:
        await harness.say("do it")
    after = tree(project), directories(project)
    assert after != before
    leaf = harness.session.leaf
    if in_place:
        await harness.agent.files.restore_in_place(await harness.agent.files.plan(None), None)
    else:
        await restore(harness, None)
    assert (tree(project), directories(project)) == before
    await restore(harness, leaf)
    assert (tree(project), directories(project)) == after
    await harness.agent.aclose()


@pytest.mark.parametrize("command", ["mkdir -p new/er", "mkdir -p new/er; touch new/er/x.txt"])
async def test_a_directory_that_the_user_filled_stays(
    tmp_path: Path, project: Path, command: str
) -> None:
    harness = rewinding(tmp_path, (bash(command),))
    await harness.say("do it")
    (project / "new" / "mine").mkdir()
    await restore(harness, None)
    assert directories(project).keys() & {"new", "new/er", "new/mine"} == {"new", "new/mine"}
    await harness.agent.aclose()


async def test_a_repository_without_files_of_its_own_stays_whole(
    tmp_path: Path, project: Path
) -> None:
    harness = rewinding(tmp_path, (bash("git init -q --bare store.git; git init -q sub"),))
    await harness.say("do it")
    before = sorted((project / "store.git").rglob("*"))
    await restore(harness, None)
    assert sorted((project / "store.git").rglob("*")) == before
    assert (project / "sub" / ".git" / "refs" / "heads").is_dir()
    await harness.agent.aclose()


async def test_a_removed_empty_directory_is_named(tmp_path: Path, project: Path) -> None:
    harness = rewinding(tmp_path, (bash("mkdir -p emptied gen; touch gen/x"),))
    await harness.say("do it")
    leaf = harness.session.leaf
    wanted = await harness.agent.files.plan(None)
    done = await harness.agent.files.restore(wanted)
    assert files_phrase(wanted, done) == "gen/x deleted, emptied/ removed"
    await harness.agent.navigator.go(None)
    wanted = await harness.agent.files.plan(leaf)
    done = await harness.agent.files.restore(wanted)
    assert files_phrase(wanted, done) == "gen/x restored, emptied/ created"
    await harness.agent.aclose()


async def test_in_a_project_of_too_many_directories_none_is_removed_for_a_command(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_DIRECTORIES", 1)
    harness = rewinding(tmp_path, (bash("mkdir new; touch new/x.txt"),))
    await harness.say("do it")
    await restore(harness, None)
    assert list((project / "new").iterdir()) == []
    await harness.agent.aclose()


def commit(project: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        known = ["-c", "user.name=n", "-c", "user.email=e@x"]
        subprocess.run(["git", *known, *words], cwd=project, check=True)


async def test_room_for_copies_is_used_again(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.checkpoints.preimages.MAX_PREIMAGE_BYTES", 20_000)
    digits = range(8)
    harness = rewinding(tmp_path, *[(bash("echo >> a.py"),)] * len(digits))
    for digit in digits:
        (project / "a.py").write_text(f"{digit}" * 5_000)
        await harness.say("do it")
    assert [change.no_before for entry in checkpoints(harness) for change in entry.files] == [
        ""
    ] * len(digits)
    await harness.agent.aclose()


async def test_how_much_changed_since_an_entry_is_counted(tmp_path: Path, project: Path) -> None:
    (project / "a.py").write_text("one\ntwo\n")
    harness = rewinding(
        tmp_path,
        (
            bash("seq 1 5 > a.py; echo hi > new.txt; rm run.sh"),
            bash("mv latin.txt b"),
            bash("mv b latin.txt"),
        ),
    )
    await harness.say("do it")
    assert len(checkpoints(harness)[0].files) == 3, "what is back before the step ends is no change"
    amounts = await harness.agent.files.amounts([None, harness.session.leaf])
    assert amounts == [ChangeAmount(files=3, additions=6, deletions=4), ChangeAmount()]
    changed = await harness.agent.files.diff(None)
    assert {file.path: (file.mark, file.diff.partition("\n")[0]) for file in changed} == {
        "a.py": ("M", "--- a/a.py"),
        "new.txt": ("A", "--- /dev/null"),
        "run.sh": ("D", "--- a/run.sh"),
    }
    await harness.agent.aclose()


async def test_a_command_that_changed_very_many_files_is_taken_back_whole_where_git_has_them(
    tmp_path: Path, project: Path
) -> None:
    for number in range(1_500):
        (project / f"{number}.txt").write_text(f"line of {number}\n" * 20)
    commit(project)
    (project / "a.py").write_text("not as git has it\n")
    (project / "new.txt").write_text("git has not seen it\n")
    before = tree(project)
    harness = rewinding(
        tmp_path, (bash("for f in *.txt a.py; do echo more >> $f; done; rm 7.txt; touch made.txt"),)
    )
    await harness.say("do it")
    after, leaf = tree(project), harness.session.leaf
    [entry] = checkpoints(harness)
    assert (len(entry.files), entry.omitted) == (1_504, 0)
    stored = harness.store.path.stat().st_size
    assert not any(
        harness.store.blob(change.before) for change in entry.files if change.path == "8.txt"
    )
    done = await restore(harness, None)
    assert not done.failed
    assert tree(project) == before
    done = await restore(harness, leaf)
    assert not done.failed
    assert tree(project) == after, "taking it back can be taken back"
    assert stored < 5_000_000
    await harness.agent.aclose()


async def test_what_the_user_changed_since_stays(tmp_path: Path, project: Path) -> None:
    harness = rewinding(
        tmp_path, (bash("sed -i s/one/ONE/ a.py; echo new > new.py; echo hi >> run.sh"),)
    )
    await harness.say("do it")
    (project / "a.py").write_text("mine\n")
    (project / "other.py").write_text("mine too\n")
    wanted = await harness.agent.files.plan(None)
    assert {step.path: step.what for step in wanted.steps} == {
        "new.py": "delete",
        "run.sh": "change",
    }
    assert wanted.conflicts == (plan.Conflict("a.py", plan.CHANGED_SINCE),)
    done = await restore(harness, None)
    assert (project / "a.py").read_text() == "mine\n"
    assert (project / "other.py").read_text() == "mine too\n"
    assert not (project / "new.py").exists()
    assert (
        files_phrase(wanted, done) == "new.py deleted, run.sh restored, a.py stays (changed since)"
    )


async def test_a_command_that_only_reads_is_not_watched(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(manifest, "manifest_of", looked.append)
    harness = rewinding(tmp_path, (bash("cat a.py | wc -l"), call("read", path="a.py")))
    harness.agent.files.get_ready = lambda: None  # type: ignore[method-assign]
    await harness.say("look")
    assert looked == []
    assert checkpoints(harness) == []


async def test_what_the_users_own_commands_change_is_the_users(
    tmp_path: Path, project: Path
) -> None:
    harness = rewinding(tmp_path, (bash("echo agent > made.py; echo more >> a.py"),))
    await harness.say("do it")
    await harness.agent.run_shell("echo mine > mine.txt; echo mine >> a.py; rm made.py")
    await harness.agent.files.settle()
    wanted = await harness.agent.files.plan(None)
    assert wanted.steps == ()
    assert wanted.conflicts == (plan.Conflict("a.py", plan.CHANGED_SINCE),)
    await restore(harness, None)
    assert (project / "mine.txt").read_text() == "mine\n"
    assert (project / "a.py").read_text().endswith("mine\n")
    assert not (project / "made.py").exists()


async def test_ignored_files_caches_links_and_places_outside_are_never_touched(
    tmp_path: Path, project: Path
) -> None:
    (project / ".gitignore").write_text("build/\n")
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    (project / "link.txt").symlink_to(outside)
    command = (
        "mkdir -p build deep/__pycache__ node_modules/x; touch deep/__pycache__/a.pyc node_modules/x/i.js; "
        "echo b > build/out; echo more >> link.txt; ln -s /etc build/there; echo x > kept.txt"
    )
    harness = rewinding(tmp_path)
    await harness.agent.run_shell(command, restorable=True)
    assert [change.path for change in checkpoints(harness)[0].files] == ["kept.txt"]
    (project / "kept.txt").unlink()
    (project / "kept.txt").symlink_to(outside)
    wanted = await harness.agent.files.plan(None)
    assert [conflict.reason for conflict in wanted.conflicts] == [plan.CHANGED_SINCE]
    await restore(harness, None)
    assert outside.read_text() == "outside\nmore\n"


async def test_a_directory_that_became_a_link_is_not_followed(
    tmp_path: Path, project: Path
) -> None:
    harness = rewinding(tmp_path, (bash("echo more >> deep/er/x.txt"),))
    await harness.say("do it")
    (project / "deep").rename(tmp_path / "elsewhere")
    (project / "deep").symlink_to(tmp_path / "elsewhere")
    wanted = await harness.agent.files.plan(None)
    assert [conflict.reason for conflict in wanted.conflicts] == ["it leads out of the project"]


@pytest.mark.parametrize(
    ("limits", "most", "why"),
    [
        (("file_snapshots.MAX_FILE_BYTES", "preimages.MAX_FILE_BYTES"), 1_000, "larger than 5 MB"),
        (("recorder.MAX_BYTES",), 3_000, "too much changed at once"),
    ],
)
async def test_what_is_too_large_is_listed_and_stays(
    tmp_path: Path,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: tuple[str, ...],
    most: int,
    why: str,
) -> None:
    for limit in limits:
        monkeypatch.setattr(f"tui_agent.agent.checkpoints.{limit}", most)
    (project / "big.bin").write_bytes(b"x" * 2_000)
    harness = rewinding(tmp_path, (bash("echo y >> a.py; echo y >> big.bin"),))
    await harness.say("do it")
    wanted = await harness.agent.files.plan(None)
    assert [step.path for step in wanted.steps] == ["a.py"]
    [conflict] = wanted.conflicts
    assert conflict.path == "big.bin"
    assert why in conflict.reason


async def test_a_disk_that_is_full_costs_the_images_and_not_the_work(
    tmp_path: Path, project: Path
) -> None:
    def full(_data: bytes) -> str:
        raise StoreError("The disk is full.")

    command = bash("echo y >> a.py")
    harness = rewinding(
        tmp_path,
        (command,),
        (bash("echo z >> a.py"),),
        checkpoints=SnapshotStore(full, lambda _digest: None),
    )
    await harness.say("do it")
    await harness.say("again")
    assert (project / "a.py").read_text().endswith("y\nz\n")
    warnings = [notice.message for notice in harness.of(Notice)]
    assert warnings == [
        "Can't store snapshots of changed files, so they can't be restored: The disk is full."
    ]
    wanted = await harness.agent.files.plan(None)
    assert [conflict.path for conflict in wanted.conflicts] == ["a.py"]


async def test_a_file_that_can_not_be_read_is_no_obstacle(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Any, *rest: Any, **more: Any) -> int:
        if str(path).endswith("a.py"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **more)

    monkeypatch.setattr("tui_agent.agent.checkpoints.file_snapshots.os.open", refuse)
    harness = rewinding(tmp_path, (bash("echo y >> a.py; echo y >> run.sh"),))
    ended = await harness.say("do it")
    assert ended.reason == "done"
    wanted = await harness.agent.files.plan(None)
    assert [step.path for step in wanted.steps] == ["run.sh"]
    assert [conflict.path for conflict in wanted.conflicts] == ["a.py"]


async def test_a_huge_project_is_not_watched_and_says_so_once(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_FILES", 3)
    edit = call("edit", path="a.py", edits=[{"old": "one", "new": "1"}])
    harness = rewinding(
        tmp_path, (bash("touch more"),), (call("read", path="a.py"), edit), (bash("touch again"),)
    )
    for text in ("one", "two", "three"):
        await harness.say(text)
    assert [notice.message for notice in harness.of(Notice)] == [
        "This project has more than 3 files: edits can be undone in it, but changes by shell commands can't."
    ]
    assert [change.path for entry in checkpoints(harness) for change in entry.files] == ["a.py"]


async def test_more_changes_than_are_read_are_counted_and_told_after_restoring(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_CHANGES", 3)
    harness = rewinding(tmp_path, (bash("touch n1 n2 n3 n4 n5"),))
    await harness.say("do it")
    (entry,) = checkpoints(harness)
    assert (len(entry.files), entry.omitted) == (3, 2)
    wanted = await harness.agent.files.plan(None)
    done = await restore(harness, None)
    assert files_phrase(wanted, done) == (
        "n1, n2 and n3 deleted, 2 more files changed and stay: there were too many to record"
    )


async def test_an_edit_during_a_command_in_an_empty_project_is_recorded_once(
    tmp_path: Path,
) -> None:
    write = call("write", path="made.py", content="made\n")
    harness = rewinding(tmp_path, (write,))
    watch = harness.agent.files.recorder
    async with watch.around(None):
        await harness.say("write it")
    await harness.agent.files.plan(None)
    assert [change.path for entry in checkpoints(harness) for change in entry.files] == ["made.py"]
    await harness.agent.aclose()


async def test_images_dropped_for_room_can_not_be_restored(tmp_path: Path, project: Path) -> None:
    (project / "a.py").write_bytes(os.urandom(5_000))
    harness = rewinding(tmp_path, (bash("echo y >> a.py"),), (bash("echo 1 > b.py"),))
    await harness.say("do it")
    await harness.say("again")
    assert harness.store.trim_file_images(20_000) == 0
    assert harness.store.trim_file_images(1_000) == 2
    wanted = await harness.agent.files.plan(None)
    assert [step.path for step in wanted.steps] == ["b.py"]
    assert wanted.conflicts == (plan.Conflict("a.py", plan.DROPPED),)


async def test_an_interrupted_command_is_recorded_when_it_has_ended(
    tmp_path: Path, project: Path
) -> None:
    before = tree(project)
    harness = rewinding(tmp_path, (bash("echo y >> a.py; touch started; sleep 60"),))
    harness.agent.submit("do it")
    await harness.until((project / "started").exists)
    harness.agent.interrupt()
    await harness.ended()
    await restore(harness, None)
    assert tree(project) == before


async def test_what_changes_beside_a_background_job_is_told_and_stays(
    tmp_path: Path, project: Path
) -> None:
    job = call(
        "bash",
        command="while [ ! -e stop ]; do sleep 0.02; done; echo job > job.txt",
        background=True,
    )
    harness = rewinding(tmp_path, (job,), (bash("touch other"),))
    await harness.say("start it")
    (project / "stop").touch()
    await harness.until(lambda: (project / "job.txt").exists() and not harness.agent.jobs.running)
    await harness.say("go on")
    wanted = await harness.agent.files.plan(None)
    assert [step.path for step in wanted.steps] == ["other"]
    assert {conflict.path: conflict.reason for conflict in wanted.conflicts} == {
        "job.txt": plan.BESIDE_JOB,
        "stop": plan.BESIDE_JOB,
    }
    await harness.agent.aclose()


async def test_files_let_in_by_a_changed_ignore_file_are_not_deleted(
    tmp_path: Path, project: Path
) -> None:
    (project / ".gitignore").write_text("secret.txt\n")
    (project / "secret.txt").write_text("mine\n")
    harness = rewinding(tmp_path, (bash("echo > .gitignore"),))
    await harness.say("do it")
    await restore(harness, None)
    assert (project / "secret.txt").read_text() == "mine\n"


NAMES = ("a.py", "run.sh", "new.txt", "deep/er/x.txt", "deep/y")
ACTIONS = st.tuples(
    st.sampled_from(("append", "rewrite", "delete", "move", "mode", "user")),
    st.sampled_from(NAMES),
    st.integers(0, 9),
)


def shell_of(action: str, name: str, number: int) -> str:
    make = f"mkdir -p $(dirname {name}); "
    match action:
        # Never the same in two files: what equals another's former content may have been moved, and stays.
        case "append":
            return f"{make}echo {name} {number} >> {name}"
        case "rewrite":
            return f"{make}echo {name} {number} > {name}"
        case "delete":
            return f"rm -f {name}"
        case "mode":
            return f"[ ! -e {name} ] || chmod {'755' if number % 2 else '644'} {name}"
        case _:
            return f"[ ! -e {name} ] || mv {name} {name}.{number}"


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.lists(ACTIONS, min_size=1, max_size=3), min_size=1, max_size=4))
@example(
    [[("append", "deep/er/x.txt", 0)], [("move", "deep/er/x.txt", 0), ("user", "deep/er/x.txt", 0)]]
)
def test_random_work_goes_back_and_what_the_user_did_stays(
    tmp_path_factory: pytest.TempPathFactory, work: list[list[tuple[str, str, int]]]
) -> None:
    asyncio.run(_random_work(tmp_path_factory.mktemp("work"), work))


async def _random_work(tmp_path: Path, work: list[list[tuple[str, str, int]]]) -> None:
    root = tmp_path / "project"
    (root / "deep" / "er").mkdir(parents=True)
    for name in NAMES[:2]:
        (root / name).write_text(f"{name}\n")
    commands = [
        tuple(bash(shell_of(*action)) for action in turn if action[0] != "user") or (bash("true"),)
        for turn in work
    ]
    harness = rewinding(tmp_path, *commands)
    states, leaves = [tree(root)], [harness.session.leaf]
    touched: set[str] = set()
    numbers = count()
    for turn in work:
        for action, name, number in turn:
            if action == "user":
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                # Never twice the same: what equals a state that the session left is the session's to change.
                (root / name).write_text(f"the user's {next(numbers)} {number}\n")
                touched.add(name)
        await harness.say("go on")
        states.append(tree(root))
        leaves.append(harness.session.leaf)
    last = states[-1]
    users = {
        name: content for name, content in last.items() if content[0].startswith(b"the user's")
    }
    for index in (0, len(work), len(work) // 2, len(work)):
        await restore(harness, leaves[index])
        now = tree(root)
        for name in states[index].keys() | now.keys():
            if not any(name.startswith(user) for user in touched):
                assert now.get(name) == states[index].get(name)
        for name, content in users.items():
            if content[0][-1:] == b"\n" and content[0].count(b"\n") == 1:
                assert any(content[0] == other for other, _ in now.values()), name
    assert tree(root) == last
    await harness.agent.aclose()
    harness.store.close()
