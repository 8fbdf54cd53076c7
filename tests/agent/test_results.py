"""The result of a session: a patch that gives the same bytes in a fresh clone, or a commit on a branch of its own."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.agent.test_rewind import bash, rewinding, tree
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.app.results import ResultError, SessionResult
from tui_agent.files.git_writing import GitWriteError, make_patch

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")


def git(place: Path, *arguments: str, text: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=place, input=text, capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    files = {
        "plain.txt": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n",
        "crlf.txt": b"a\r\nb\r\nc\r\n",
        "ünïcödé/日本.txt": b"text\n",
        'quo"te\\d\ttab': b"odd name\n",
        "-dash": b"begins with a dash\n",
        "picture.bin": bytes(range(256)) * 20,
        "run.sh": b"#!/bin/sh\n",
        "gone.txt": b"goes\n",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    for name in ("link", "old link"):
        (root / name).symlink_to("plain.txt")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


ODD = (
    "sed -i 's/four/FOUR/' plain.txt; printf 'd\\r\\n' >> crlf.txt; printf more >> 'quo\"te\\d\ttab'; "
    "printf more >> ünïcödé/日本.txt; printf 'new\\n' > 'ünïcödé/new – file.txt'; mv plain.txt renamed.txt; "
    "printf more >> ./-dash; printf '\\000\\001' >> picture.bin; chmod +x run.sh; rm gone.txt; "
    "rm 'old link'; ln -sfn renamed.txt link; ln -s nowhere 'ünïcödé/new link'; ln -sf run.sh ./-dash"
)


async def result_of(tmp_path: Path, project: Path, *commands: str) -> SessionResult:
    harness = rewinding(tmp_path, *((bash(command),) for command in commands))
    for _ in commands:
        await harness.say("do it")
    await harness.agent.files.settle()
    return SessionResult.of(harness.session, harness.agent.ports.checkpoints)


async def test_a_commit_touches_neither_index_nor_working_tree(
    tmp_path: Path, project: Path
) -> None:
    result = await result_of(tmp_path, project, ODD)
    status, head = git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")
    hook = project / ".git/hooks/reference-transaction"
    hook.write_text("#!/bin/sh\ntouch ../hooked\n")
    hook.chmod(0o755)
    said = result.write("branch:agent/work")
    assert "to agent/work" in said
    assert (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")) == (
        status,
        head,
    )
    assert not (tmp_path / "hooked").exists()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-b", "agent/work", "project", "clone")
    assert tree(clone) == tree(project)
    message = git(clone, "log", "-1", "--format=%B")
    assert message.splitlines()[0]
    assert f"Tui-Agent-Session: {result.session.id}#" in message
    with pytest.raises(GitWriteError, match="can't be created"):
        result.write("branch:agent/work")
    with pytest.raises(GitWriteError, match="not a valid branch name"):
        result.write("branch:a..b")


async def test_what_the_user_changed_is_not_in_it(tmp_path: Path, project: Path) -> None:
    (project / "plain.txt").write_bytes((project / "plain.txt").read_bytes() + b"uncommitted\n")
    harness = rewinding(
        tmp_path, (bash("sed -i 's/one/ONE/' plain.txt"),), (bash("sed -i 's/six/SIX/' plain.txt"),)
    )
    await harness.say("first")
    text = (project / "plain.txt").read_text()
    (project / "plain.txt").write_text(text.replace("four", "mine"))
    await harness.say("second")
    await harness.agent.files.settle()
    result = SessionResult.of(harness.session, harness.agent.ports.checkpoints)
    patch = make_patch(result.files).decode()
    changed = [
        line for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}
    ]
    assert changed == ["-one", "+ONE", "-six", "+SIX"]
    result.write("branch:work")
    committed = git(project, "show", "work:plain.txt")
    assert "mine" not in committed
    assert "uncommitted" not in committed
    assert "ONE" in committed
    assert "SIX" in committed
    assert not result.remarks()


async def test_changes_on_the_same_lines_are_said_to_be_in_it(
    tmp_path: Path, project: Path
) -> None:
    (project / "plain.txt").write_bytes((project / "plain.txt").read_bytes() + b"uncommitted\n")
    result = await result_of(tmp_path, project, "sed -i 's/eight/EIGHT/' plain.txt")
    assert (
        "Others changed the same lines, so their changes are included: plain.txt."
        in result.write("branch:work")
    )


async def test_line_ends_are_committed_as_git_keeps_them(tmp_path: Path, project: Path) -> None:
    (project / ".gitattributes").write_bytes(b"*.txt text eol=crlf\n*.bin filter=lfs\n")
    git(project, "add", ".gitattributes")
    git(project, "add", "--renormalize", ".")
    git(project, "commit", "-qm", "attributes")
    result = await result_of(
        tmp_path, project, "printf 'd\\r\\n' >> crlf.txt; printf x >> picture.bin"
    )
    said = result.write("branch:work")
    assert "picture.bin (it needs git's filter “lfs”)" in said
    raw = subprocess.run(
        ["git", "cat-file", "blob", "work:crlf.txt"], cwd=project, capture_output=True, check=True
    )
    assert raw.stdout == b"a\nb\nc\nd\n"


async def test_a_patch_names_what_git_would_not_take_from_it(tmp_path: Path, project: Path) -> None:
    (project / ".gitattributes").write_bytes(b"*.bin filter=lfs\n")
    git(
        project,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(project, 'rev-parse', 'HEAD').strip()},sub",
    )
    git(project, "add", ".gitattributes")
    git(project, "commit", "-qm", "attributes")
    command = "printf x >> picture.bin; mkdir -p sub; printf x > sub/new.txt; printf y >> plain.txt"
    result = await result_of(tmp_path, project, command)
    said = result.write(str(tmp_path / "x.patch"))
    assert "picture.bin (it needs git's filter “lfs”)" in said
    assert "sub/new.txt (it is in a submodule)" in said
    assert [file.path for file in result.files] == ["plain.txt"]


async def test_a_session_that_changed_nothing_has_no_result(tmp_path: Path, project: Path) -> None:
    result = await result_of(tmp_path, project, "true")
    assert not result
    with pytest.raises(ResultError, match="changed no file"):
        result.write(str(tmp_path / "x.patch"))
    assert make_patch(result.files) == b""


async def test_an_image_that_was_dropped_is_named(tmp_path: Path, project: Path) -> None:
    result = await result_of(tmp_path, project, "printf x > new.txt; printf y >> plain.txt")
    (project / "new.txt").write_text("changed since")
    store = SnapshotStore(lambda data: "", lambda _digest: None)
    lost = SessionResult.of(result.session, store)
    assert "Left out:" in lost.remarks()
    assert not any(file.path == "new.txt" for file in lost.files)


LINES = "seq 1 40 > a"
ROWS = {  # name: what makes the project, what the session runs
    "a new file": ("", "mkdir -p d/e/f; echo x > d/e/f/new"),
    "a new binary file": ("", r"printf '\000\001\377' > new"),
    "a deleted file": (LINES, "rm a"),
    "a deleted empty file": (": > a", "rm a"),
    "a file that becomes empty": (LINES, ": > a"),
    "text that becomes binary": (LINES, r"printf '\000' >> a"),
    "the executable bit set": ("touch b; " + LINES, "chmod 755 a b; echo x >> b"),
    "a rename with a change": (LINES, "mv a b; echo x >> b"),
    "a rename to an executable": (LINES, "mv a b; chmod 755 b"),
    "two files that change names": ("seq 30 > a; seq 50 90 > b", "mv a c; mv b a; mv c b"),
    "a rename that only changes case": (LINES, "mv a A"),
    "a file that becomes a directory": (LINES, "rm a; mkdir a; echo x > a/b"),
    "CRLF lines": (r"printf 'a\r\nb\r\n' > a", r"printf 'c\r\n' >> a"),
    "CRLF that becomes LF": (r"printf 'a\r\nb\r\n' > a", r"printf 'a\nb\n' > a"),
    "unicode names": ("mkdir ünï; echo x > ünï/日本.txt", "echo y >> ünï/日本.txt; echo z > 'ünï/é – ☃'"),
    "composed and decomposed names": (r"""echo x > $'e\u0301'""", r"""echo y > $'\u00e9'; echo z >> $'e\u0301'"""),
    "quotes, tabs and backslashes": (r"""echo x > $'a "b"\t\\c'""", r"""echo y >> $'a "b"\t\\c'; echo z > "'q'" """),
    "a newline in a name": (r"""echo x > $'a\nb'""", r"""echo y >> $'a\nb'; echo z > $'c\nd'"""),
    "names like options": ("echo x > ./-rf; echo x > '*'", "echo y >> ./-rf; echo z > ':(x)'"),
    "lines like those of a patch": (
        "printf 'diff --git a/x b/x\n--- a\n+++ b\n' > a",
        "printf -- '-- \n@@ -1 +1 @@\n' >> a",
    ),
    "ignored files stay out": ("echo out/ > .gitignore", "mkdir out; echo x > out/a; echo y > b; rm -r out"),
    "attributes": ("printf 'a eol=lf\n*.bin binary\n' > .gitattributes; echo x > a", "echo y > a; echo z > b.bin"),
    "a change that is taken back": (LINES, "cp a /tmp/$$; echo x > a; cp /tmp/$$ a; rm /tmp/$$; echo y > b"),
    "many files": ("for n in {1..300}; do echo $n > f$n; done", "for n in {1..300}; do echo x >> f$n; done"),
}  # fmt: skip


def repository(root: Path, script: str) -> Path:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    bash_in(root, f"echo kept > kept; {script}")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def bash_in(root: Path, script: str) -> None:
    subprocess.run(["bash", "-c", f"set -e; {script}"], cwd=root, check=True)


async def applied(tmp_path: Path, project: Path, command: str, remarks: str = "") -> Path:
    git(tmp_path, "clone", "-q", "--no-local", "project", "clone")
    result = await result_of(tmp_path, project, f"bash -c {shlex.quote(command)}")
    assert result.remarks() == remarks
    git(tmp_path / "clone", "apply", "--index", "-", text=make_patch(result.files))
    return tmp_path / "clone"


@pytest.mark.parametrize("name", ROWS)
async def test_a_clone_gets_the_same_bytes(tmp_path: Path, name: str) -> None:
    before, command = ROWS[name]
    project = repository(tmp_path / "project", before)
    assert tree(await applied(tmp_path, project, command)) == tree(project)


async def test_files_of_a_nested_repository_are_named_and_left_out(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", "")
    repository(project / "inner", "")
    command = "echo x >> inner/kept; echo y > inner/new; echo z >> kept; git init -q other; echo x > other/new"
    names = ("inner/kept", "inner"), ("inner/new", "inner"), ("other/new", "other")
    told = ", ".join(f"{path} (of the repository {repository})" for path, repository in names)
    clone = await applied(tmp_path, project, command, f" Left out: {told}.")
    assert set(tree(clone)) == {"kept"}
    assert (clone / "kept").read_text() == "kept\nz\n"
