"""What the program starts for its own sake runs nothing of a project, whatever the project's repository is like."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tui_agent
from tests.support.processes import git
from tui_agent.agent.checkpoints.manifest import manifest_of
from tui_agent.agent.checkpoints.preimages import PreimageStore
from tui_agent.cli.controller_wiring import ControllerWiring
from tui_agent.files.own_git import branch_of, find_project, is_modified, repository_of, run_git
from tui_agent.processes.own_programs import bare_environment, find_program

branch = ControllerWiring.__new__(ControllerWiring).branch
"""It asks nothing of the rest that a controller is given."""

SOURCE = Path(tui_agent.__file__).parent


class Attack:
    """A repository with a commit, and a script that leaves a trace wherever it is run from."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.trace = root / "trace"
        self.project.mkdir()
        git(self.project, "init", "-q", "-b", "main")
        self.write("a.txt", "one\n")
        self.commit()
        self.script = root / "run.sh"
        self.script.write_text(f"#!/bin/sh\nenv >> {self.trace}\ncat\n")
        self.script.chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self) -> None:
        git(self.project, "add", "-A")
        git(self.project, "commit", "-q", "-m", "c")

    def config(self, key: str, value: str) -> None:
        git(self.project, "config", key, value)

    def touch(self) -> None:
        """Make git compare contents, which is when filters and the like run."""
        path = self.project / "a.txt"
        path.write_text("two\n")
        os.utime(path, (1, 1))

    def embed(self) -> None:
        """Put a gitlink into the index and a repository with settings of its own into its place."""
        sub = self.project / "sub"
        sub.mkdir()
        git(sub, "init", "-q", "-b", "main")
        (sub / "b.txt").write_text("b")
        git(sub, "add", "-A")
        git(sub, "commit", "-q", "-m", "s")
        git(self.project, "add", "sub")
        git(self.project, "commit", "-q", "-m", "link")
        (sub / "b.txt").write_text("changed")

    @property
    def ran(self) -> str:
        return self.trace.read_text() if self.trace.exists() else ""


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attack:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-" + "ant-canary")
    return Attack(tmp_path)


SETTINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "fsmonitor": ({}, ("core.fsmonitor",)),
    "filters": (
        {".gitattributes": "* filter=evil\n"},
        tuple(f"filter.evil.{key}" for key in ("clean", "smudge", "process")),
    ),
    "diff": (
        {".gitattributes": "* diff=evil\n"},
        ("diff.external", "diff.evil.textconv", "diff.evil.command"),
    ),
    "pager": (
        {},
        (
            "core.pager",
            "pager.status",
            "pager.ls-files",
            "core.editor",
            "core.sshCommand",
            "credential.helper",
        ),
    ),
}
"""What a repository holds, and which settings name the script."""


def settings(name: str) -> Callable[[Attack], None]:
    def prepare(attack: Attack) -> None:
        files, keys = SETTINGS[name]
        for file, text in files.items():
            attack.write(file, text)
            attack.commit()
        for key in keys:
            attack.config(key, str(attack.script))

    return prepare


def included(attack: Attack) -> None:
    attack.write("more.cfg", f"[core]\n\tfsmonitor = {attack.script}\n")
    attack.config("include.path", "../more.cfg")


def hooks(attack: Attack) -> None:
    for name in ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout"):
        shutil.copy(attack.script, attack.project / ".git" / "hooks" / name)


def hooks_path(attack: Attack) -> None:
    shutil.copy(attack.script, attack.write("h/post-index-change", ""))
    attack.config("core.hooksPath", str(attack.project / "h"))


def embedded_repository(attack: Attack) -> None:
    attack.embed()
    (attack.project / "sub/.git/config").open("a").write(f"[core]\n\tfsmonitor = {attack.script}\n")


def rewritten_submodule(attack: Attack) -> None:
    attack.embed()
    evil = attack.project / "evilgit"
    (attack.project / "sub/.git").rename(evil)
    (evil / "config").open("a").write(
        f"[core]\n\tfsmonitor = {attack.script}\n\tworktree = ../sub\n"
    )
    attack.write("sub/.git", "gitdir: ../evilgit\n")


def missing_object(attack: Attack) -> None:
    """Leave the repository without the content of its file, and with a remote that is asked for it."""
    name = git(attack.project, "rev-parse", "HEAD:a.txt").strip()
    (attack.project / ".git/objects" / name[:2] / name[2:]).unlink()
    attack.config("core.repositoryformatversion", "1")
    attack.config("extensions.partialClone", "origin")
    attack.config("remote.origin.url", str(attack.project))
    attack.config("remote.origin.promisor", "true")
    attack.config("remote.origin.uploadpack", str(attack.script))


ATTACKS = (
    *map(settings, SETTINGS),
    included,
    hooks,
    hooks_path,
    embedded_repository,
    rewritten_submodule,
    missing_object,
)


@pytest.mark.parametrize("prepare", ATTACKS)
async def test_looking_at_a_repository_runs_nothing_of_it(
    attack: Attack, prepare: Callable[[Attack], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(attack)
    attack.touch()
    monkeypatch.setattr("tui_agent.agent.checkpoints.preimages.MAX_UNCHECKED_FILES", 0)
    attack.trace.unlink(missing_ok=True)
    assert await branch(attack.project) == "main*"
    preimages = PreimageStore(attack.project, lambda _digest: None)
    manifest = await manifest_of(attack.project)
    preimages.prepare(manifest)
    preimages.snapshots(list(manifest.items()))
    preimages.close()
    run_git(attack.project, "cat-file", "--batch-all-objects", "--batch-check")
    run_git(attack.project, "status", "--porcelain")
    run_git(attack.project, "diff-files", "-p")
    with pytest.raises(KeyError):
        run_git(attack.project, "fetch")
    if prepare is rewritten_submodule:
        assert await branch(attack.project / "sub") == "main*"
    assert attack.ran == ""


async def test_another_work_tree_in_the_settings_is_not_gone_to(attack: Attack) -> None:
    attack.config("core.worktree", "../..")
    (attack.project.parent / "a.txt").write_text("of somebody else")
    assert await branch(attack.project) == "main"
    names = run_git(attack.project, "ls-files", "--others", "--cached", "-z")
    assert names is not None
    assert set(names.split(b"\0")) - {b""} == {b"a.txt"}


async def test_git_in_the_project_is_not_the_git_that_is_run(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(attack.script, attack.project / "git")
    shutil.copy(attack.script, attack.project / "rg")
    monkeypatch.chdir(attack.project)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(attack.project), os.environ["PATH"]]))
    assert await branch(attack.project) == "main"
    assert attack.ran == ""
    assert Path(find_program("rg", outside=attack.project) or "/").is_absolute()
    # Neither does a link choose it, wherever it leads.
    (attack.project / "chosen").symlink_to("/bin/sh")
    beside = attack.project.parent / "beside"
    beside.mkdir()
    (beside / "led").symlink_to(attack.project / "git")
    monkeypatch.setenv("PATH", os.pathsep.join([str(attack.project), str(beside)]))
    assert find_program("chosen") is not None
    assert find_program("led") is not None
    assert find_program("chosen", outside=attack.project) is None
    assert find_program("led", outside=attack.project) is None


def test_git_is_told_no_key(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    shutil.copy(attack.script, bin_dir / "git")
    monkeypatch.setenv("PATH", f"{bin_dir}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_SSH_COMMAND", "evil")
    run_git(attack.project, "status")
    assert "GIT_DIR=" in attack.ran
    assert "canary" not in attack.ran
    assert "evil" not in attack.ran
    assert "canary" not in str(bare_environment())


async def test_branches_and_changes_are_told(attack: Attack, tmp_path: Path) -> None:
    assert await branch(attack.project) == "main"
    git(attack.project, "pack-refs", "--all")
    git(attack.project, "gc", "-q")
    git(attack.project, "update-index", "--split-index")
    assert await branch(attack.project) == "main"
    git(attack.project, "worktree", "add", "-q", "-b", "side/way", str(tmp_path / "tree"))
    assert await branch(tmp_path / "tree") == "side/way"
    (tmp_path / "tree/a.txt").write_text("two")
    assert await branch(tmp_path / "tree") == "side/way*"
    git(attack.project, "checkout", "-q", "--detach")
    assert await branch(attack.project) == git(attack.project, "rev-parse", "HEAD")[:9]
    git(attack.project, "checkout", "-q", "main")
    attack.touch()
    assert await branch(attack.project) == "main*"
    git(attack.project, "add", "-A")
    assert await branch(attack.project) == "main*"


async def test_a_repository_of_sha256_and_none(tmp_path: Path) -> None:
    assert await branch(tmp_path) is None
    git(tmp_path, "init", "-q", "-b", "trunk", "--object-format=sha256")
    assert await branch(tmp_path) == "trunk"
    (tmp_path / "f").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "c")
    assert await branch(tmp_path) == "trunk"
    (tmp_path / "f").write_text("two")
    assert await branch(tmp_path) == "trunk*"


def test_bits_that_a_repository_leaves_out_of_account(attack: Attack) -> None:
    (attack.project / "a.txt").chmod(0o755)
    assert is_modified(attack.project)
    attack.config("core.fileMode", "false")
    assert not is_modified(attack.project)


def test_a_head_that_is_no_reference_tells_nothing(attack: Attack, tmp_path: Path) -> None:
    """It is read without git, and may be anything: a link to a file of the user's, a pipe."""
    head = attack.project / ".git/HEAD"
    head.write_text("hunter2hunter2")
    assert branch_of(attack.project) is None
    head.unlink()
    (tmp_path / "secret").write_text("ref: refs/heads/of-somebody-else\n")
    head.symlink_to(tmp_path / "secret")
    assert branch_of(attack.project) is None
    head.unlink()
    os.mkfifo(head)
    assert branch_of(attack.project) is None
    shutil.rmtree(attack.project / ".git")
    os.mkfifo(attack.project / ".git")
    assert repository_of(find_project(attack.project)) is None


STARTERS = {
    "agent/race/copies.py": "the removal of a race's copies",
    "cli/update.py": "the installer that this program came by: uv, pipx, pip, or its own",
    "cli/detached/commands.py": "the holder of a detached run: this program's Python",
    "cli/detached/host.py": "this program on a terminal of its own",
    "isolation.py": "this program anew",
    "model/hosted/link.py": "the model host",
    "files/own_git.py": "git",
    "processes/process.py": "a command of the model or the user, a hook, and the watcher",
    "files/ripgrep.py": "ripgrep",
    "sandbox/detection.py": "the sandbox, to see whether it works",
    "sandbox/judging.py": "the judge of changes, in the sandbox",
    "sandbox/landlock_start.py": "becomes the command that it holds",
    "sandbox/open_ports.py": "this program's Python, in the network of the sandbox",
    "sandbox/network.py": "bubblewrap, with this program's Python in it",
    "processes/converters.py": "the converters of pages and documents",
    "ui/clipboard.py": "the clipboard's tool",
    "ui/terminal_suspend.py": "the user's editor",
}
"""Every module that may start a process, and what. Git is started by one of them alone."""

_STARTS = re.compile(
    r"\bsubprocess\.(?![A-Z]+\b|Process|\w+Error|\w+Expired)\w+\(|\b(?:create_)?subprocess_(?:exec|shell)\("
    r"|\bos\.(?:system|popen|fork|exec|spawn|posix_spawn)\w*\(|\b(?:pty|webbrowser)\.\w+\("
    r"|from (?:subprocess|os|pty|webbrowser) import .*"
    r"\b(?:run|Popen|system|popen|(?:call|check|get|open|exec|fork|spawn)\w*)\b"
)


def test_processes_are_started_in_a_few_places_only() -> None:
    """None of them looks a program up on its own: the project might bring it along."""
    texts = {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*.py")
    }
    starting = {name: text for name, text in texts.items() if _STARTS.search(text)}
    assert starting.keys() == STARTERS.keys()
    # The update of a checkout is only said.
    naming = {name for name, text in starting.items() if '"git"' in text}
    assert naming == {"files/own_git.py", "cli/update.py"}
    looking = {name for name, text in texts.items() if "shutil.which" in text}
    assert looking <= {"processes/own_programs.py", "shell/grammar.py"}
