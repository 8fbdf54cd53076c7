"""The sandbox: its command lines everywhere, its walls where the system has one."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.processes import alive, eventually
from tests.support.tooling import Workspace
from tui_agent.config import Config
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.errors import ToolError
from tui_agent.tools.jobs import Jobs
from tui_agent.tools.permission import Permission
from tui_agent.tools.sandbox import Sandbox, SandboxState, find_sandbox
from tui_agent.tools.sandbox.layout import Layout, bubblewrap_command, seatbelt_profile
from tui_agent.tools.settings import SandboxSettings

BASH = BashTool()
BWRAP = SandboxState("bubblewrap", "bwrap")
NONE = SandboxState(None, reason="bubblewrap is not installed")

works = pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason=f"no sandbox: {find_sandbox().reason}")


def layout(**fields: object) -> Layout:
    given = {
        "cwd": Path("/p"), "temporary": Path("/t"), "empty": Path("/e"), "writable": (Path("/p"),), **fields,
    }  # fmt: skip
    return Layout(**given)  # type: ignore[arg-type]


def position(words: tuple[str, ...], *part: str) -> int:
    """Return where words stand together."""
    found = [at for at in range(len(words)) if words[at : at + len(part)] == part]
    assert len(found) == 1, (part, words)
    return found[0]


# -- the command line -----------------------------------------------------------------------------------------


def test_everything_is_read_only_but_the_project_and_a_private_tmp() -> None:
    words = bubblewrap_command("bwrap", layout(), ["bash", "-c", "x"])
    assert words[0] == "bwrap"
    assert words[-4:] == ("--", "bash", "-c", "x")
    root, tmp = position(words, "--ro-bind", "/", "/"), position(words, "--bind", "/t", "/tmp")
    assert root < tmp < position(words, "--bind", "/p", "/p")
    position(words, "--chdir", "/p")
    position(words, "--ro-bind-try", "/proc/sys", "/proc/sys")
    for flag in ("--unshare-pid", "--unshare-net", "--die-with-parent", "--unshare-ipc"):
        assert flag in words
    position(words, "--cap-drop", "ALL")


def test_the_network_is_there_when_asked_for() -> None:
    assert "--unshare-net" not in bubblewrap_command("bwrap", layout(network=True), ["x"])
    assert "(deny network*)" in seatbelt_profile(layout())
    assert "(deny network*)" not in seatbelt_profile(layout(network=True))


def test_what_lies_deeper_counts() -> None:
    """A project in a hidden directory can be seen; a secret in a writable project can't."""
    words = bubblewrap_command(
        "bwrap",
        layout(
            writable=(Path("/h"), Path("/h/.data/demo")),
            read_only=(Path("/h/.git/hooks"),),
            hidden_directories=(Path("/h/.data"), Path("/h/.ssh")),
            hidden_files=(Path("/h/.netrc"),),
        ),
        ["x"],
    )
    home = position(words, "--bind", "/h", "/h")
    data = position(words, "--tmpfs", "/h/.data")
    assert home < data < position(words, "--bind", "/h/.data/demo", "/h/.data/demo")
    assert home < position(words, "--tmpfs", "/h/.ssh")
    assert home < position(words, "--ro-bind", "/h/.git/hooks", "/h/.git/hooks")
    assert home < position(words, "--ro-bind", "/e", "/h/.netrc")


def test_the_profile_for_macos() -> None:
    profile = seatbelt_profile(
        layout(
            writable=(Path('/Users/me/a "b"'),),
            read_only=(Path('/Users/me/a "b"/.git/hooks'),),
            hidden_directories=(Path("/Users/me/.ssh"),),
        )
    ).split("\n")
    assert profile[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    project = profile.index('(allow file-write* (subpath "/Users/me/a \\"b\\""))')
    assert project < profile.index('(deny file-write* (subpath "/Users/me/a \\"b\\"/.git/hooks"))')
    assert '(deny file-read* (subpath "/Users/me/.ssh"))' in profile


# -- what is laid out -----------------------------------------------------------------------------------------


@pytest.fixture
def home() -> Iterator[Path]:
    """A home directory outside of /tmp, which is another one inside."""
    home = Path(tempfile.mkdtemp(prefix="tui-agent-test-", dir="/var/tmp")).resolve()
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("my private key")
    (home / ".netrc").write_text("my password")
    (home / "notes.txt").write_text("mine")
    yield home
    shutil.rmtree(home)


def sandbox(space: Workspace, home: Path, find: SandboxState | None = None, **settings: object) -> Sandbox:
    made = Sandbox(
        SandboxSettings(**settings),  # type: ignore[arg-type]
        private=(space.root.parent / "data",),
        cache=space.root.parent / "data" / "cache",
        home=home,
        find=find_sandbox if find is None else lambda: find,
    )
    space.sandbox = made
    return made


def wrapped(space: Workspace, made: Sandbox, network: bool = False) -> tuple[str, ...]:
    return made.wrap(["x"], space.root, space.root, network=network)


def test_secrets_that_are_there_are_hidden(space: Workspace, home: Path) -> None:
    (space.root.parent / "data").mkdir()
    words = wrapped(space, sandbox(space, home, BWRAP))
    position(words, "--tmpfs", str(home / ".ssh"))
    assert str(home / ".netrc") in words
    assert str(home / ".aws") not in words
    hidden = position(words, "--tmpfs", str(space.root.parent / "data"))
    (cache,) = (space.root.parent / "data" / "cache").iterdir()
    assert hidden < position(words, "--bind", str(cache), str(cache))


def test_each_project_has_caches_of_its_own(space: Workspace, home: Path) -> None:
    """What the tests of one put there must not be built into another."""
    made = sandbox(space, home, BWRAP)
    places = [made.environment({}, project)["PIP_CACHE_DIR"] for project in (space.root, home, space.root)]
    assert places[0] == places[2] != places[1]
    assert places[0].startswith(str(space.root.parent / "data" / "cache"))


def test_the_user_may_show_and_open_more(space: Workspace, home: Path) -> None:
    (home / "out").mkdir()
    words = wrapped(space, sandbox(space, home, BWRAP, readable=("~/.ssh",), writable=("~/out", "~/missing")))
    assert str(home / ".ssh") not in words
    position(words, "--bind", str(home / "out"), str(home / "out"))
    assert str(home / "missing") not in words


def test_a_git_file_that_names_any_directory_opens_nothing(space: Workspace, home: Path) -> None:
    """A command could write it to get at a directory in the next one."""
    (space.root / ".git").rmdir()
    space.file(".git", f"gitdir: {home}\n")
    (home / "commondir").write_text(".\n")
    (home / "gitdir").write_text("/elsewhere/.git\n")
    assert ("--bind", str(home)) not in pairwise(wrapped(space, sandbox(space, home, BWRAP)))
    (space.root / ".git").unlink()
    (space.root / ".git").symlink_to(home)
    assert ("--bind", str(home)) not in pairwise(wrapped(space, sandbox(space, home, BWRAP)))


def test_a_linked_worktree_reaches_its_repository(space: Workspace, home: Path) -> None:
    repository = space.root.parent / "main" / ".git"
    tree = repository / "worktrees" / "w"
    tree.mkdir(parents=True)
    (repository / "hooks").mkdir()
    (tree / "gitdir").write_text(f"{space.root}/.git\n")
    (tree / "commondir").write_text("../..\n")
    (space.root / ".git").rmdir()
    space.file(".git", f"gitdir: {tree}\n")
    words = wrapped(space, sandbox(space, home, BWRAP))
    position(words, "--bind", str(repository), str(repository))
    position(words, "--ro-bind", str(repository / "hooks"), str(repository / "hooks"))


# -- permissions and falling back -----------------------------------------------------------------------------


def test_needs_say_that_the_command_is_in_a_sandbox(space: Workspace, home: Path) -> None:
    sandbox(space, home, BWRAP)
    (need,) = BASH.needs(BashInput(command="make"), space.context())
    assert need.sandboxed
    command, network = BASH.needs(BashInput(command="make", network=True), space.context())
    assert (command.sandboxed, network.permission, network.pattern) == (True, Permission.NETWORK, "make")


@pytest.mark.parametrize("command", ["git push", "  git   push origin x", "docker run x", "gh pr create"])
def test_what_cannot_work_inside_runs_outside_and_says_so(space: Workspace, home: Path, command: str) -> None:
    sandbox(space, home, BWRAP)
    (need,) = BASH.needs(BashInput(command=command, network=True), space.context())
    assert not need.sandboxed


@pytest.mark.parametrize(("mode", "state"), [("off", BWRAP), ("auto", NONE)])
def test_without_a_sandbox_needs_do_not_claim_one(space: Workspace, home: Path, mode: str, state: SandboxState) -> None:
    sandbox(space, home, state, mode=mode)
    (need,) = BASH.needs(BashInput(command="make", network=True), space.context())
    assert not need.sandboxed


async def test_what_is_not_protected_is_told_once(space: Workspace, home: Path) -> None:
    sandbox(space, home, NONE)
    for _ in range(2):
        assert (await space.call(BASH, command="echo hi")).output == "hi"
    (notice,) = space.notices
    assert notice.startswith(
        "Commands run without a sandbox: bubblewrap is not installed. A command that is allowed can"
    )


async def test_nothing_is_told_when_it_is_switched_off(space: Workspace, home: Path) -> None:
    sandbox(space, home, BWRAP, mode="off")
    assert (await space.call(BASH, command="echo hi")).output == "hi"
    assert space.notices == []


async def test_a_required_sandbox_that_is_missing_stops_every_command(space: Workspace, home: Path) -> None:
    sandbox(space, home, NONE, mode="required")
    with pytest.raises(ToolError, match=r"only run in a sandbox .* bubblewrap is not installed"):
        await space.call(BASH, command="echo hi")
    with pytest.raises(ToolError, match="only run in a sandbox"):
        await BASH.run(BashInput(command="echo hi"), space.context())


def test_the_setting_is_a_word_or_a_table() -> None:
    assert Config.model_validate({"sandbox": "required"}).sandbox.mode == "required"
    assert Config.model_validate({"sandbox": {"mode": "off", "writable": ["~/x"]}}).sandbox.writable == ("~/x",)
    assert Config().sandbox.mode == "auto"


# -- the walls ------------------------------------------------------------------------------------------------


@pytest.fixture
async def walls(space: Workspace, home: Path) -> AsyncIterator[Workspace]:
    (space.root.parent / "data").mkdir()
    (space.root.parent / "data" / "sessions.db").write_text("all my talks")
    for name in ("hooks", "objects"):
        (space.root / ".git" / name).mkdir()
    (space.root / ".git" / "config").write_text("[core]\n")
    sandbox(space, home)
    space.jobs = jobs = Jobs()
    yield space
    await jobs.aclose()


@works
async def test_the_project_can_be_changed(walls: Workspace) -> None:
    result = await walls.call(BASH, command="mkdir -p d && echo new > d/f && cat d/f && pwd")
    assert result.output == f"new\n{walls.root}"
    assert (walls.root / "d" / "f").read_text() == "new\n"


@works
@pytest.mark.parametrize(
    "command",
    [
        "echo x > {home}/notes.txt", "rm {home}/notes.txt", "touch {home}/new", ": >> /etc/hosts",
        "echo x > {root}/.git/hooks/pre-commit", "echo '[alias]' >> {root}/.git/config",
        "rm -f {root}/.git/config && echo x > {root}/.git/config",
        "mv {root}/.git {root}/old && mkdir -p {root}/.git/hooks && echo x > {root}/.git/hooks/pre-commit",
        "mount -o remount,rw / && touch {home}/new", "ln -s {home} link && echo x > link/notes.txt",
        # Only opened for writing: without the sandbox nothing must come to harm.
        ": >> /proc/sys/kernel/core_pattern",
    ],
)  # fmt: skip
async def test_nothing_else_can_be_changed(walls: Workspace, home: Path, command: str) -> None:
    result = await walls.call(BASH, command=command.format(home=home, root=walls.root))
    assert result.is_error
    assert (home / "notes.txt").read_text() == "mine"
    assert not (home / "new").exists()
    assert not (walls.root / ".git" / "hooks" / "pre-commit").exists()
    assert (walls.root / ".git" / "config").read_text() == "[core]\n"


@works
async def test_a_repository_is_not_given_another_configuration(walls: Workspace) -> None:
    result = await walls.call(BASH, command="mkdir evil && echo ../evil > .git/commondir; ls .git")
    assert "commondir was removed" in result.output
    assert not (walls.root / ".git" / "commondir").exists()
    (walls.root / ".git" / "commondir").write_text("../evil\n")  # what a job may have left
    assert "commondir" not in (await walls.call(BASH, command="ls .git")).output


@works
async def test_secrets_are_not_there(walls: Workspace, home: Path) -> None:
    data = walls.root.parent / "data"
    look = f"cat {home}/.ssh/id_ed25519 {home}/.netrc {data}/sessions.db; ls {home}/.ssh {data}; cat {home}/notes.txt"
    result = await walls.call(BASH, command=look)
    assert "private key" not in result.output
    assert "password" not in result.output
    assert "all my talks" not in result.output
    assert result.output.splitlines()[-1] == "mine"


@works
async def test_other_processes_are_not_there(walls: Workspace) -> None:
    """Their environments hold keys."""
    result = await walls.call(
        BASH, command=f"ls /proc/{os.getpid()}; ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()}"
    )
    assert "No such file" in result.output
    assert "No such process" in result.output
    assert int(result.output.splitlines()[1]) < 10


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


@works
async def test_the_network_is_asked_for(walls: Workspace, listener: int) -> None:
    command = f"exec 3<>/dev/tcp/127.0.0.1/{listener} && echo connected"
    result = await walls.call(BASH, command=command)
    assert "connected" not in result.output
    assert "The sandbox has no network" in result.output
    assert (await walls.call(BASH, command=command, network=True)).output == "connected"


@works
async def test_tmp_is_private_and_stays_for_the_session(walls: Workspace) -> None:
    await walls.call(BASH, command="echo kept > /tmp/tui-agent-test-file")
    assert not Path("/tmp/tui-agent-test-file").exists()
    assert (await walls.call(BASH, command="cat /tmp/tui-agent-test-file; ls /tmp | wc -l")).output.startswith("kept\n")


@works
async def test_failures_say_that_it_is_the_sandbox(walls: Workspace, home: Path) -> None:
    result = await walls.call(BASH, command=f"touch {home}/new")
    assert "[In the sandbox only the project and /tmp can be changed" in result.output


@works
async def test_exit_codes_and_output_pass_through(walls: Workspace) -> None:
    result = await walls.call(BASH, command="echo out; echo err >&2; exit 3")
    assert result.output == "out\nerr\n[Exit code 3.]"


@works
async def test_git_works_inside(walls: Workspace) -> None:
    command = (
        "mkdir r && cd r && git init -q . && git config user.email a@b && git config user.name n && touch f && "
        "git add f && git commit -qm one && git log --oneline | wc -l"
    )
    assert (await walls.call(BASH, command=command)).output.strip() == "1"


@works
async def test_nothing_is_left_behind(walls: Workspace) -> None:
    """Neither after the time limit nor of what was left in the background."""
    stubborn = "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & while :; do sleep 0.05; done # {mark}"
    result = await walls.call(BASH, command=stubborn.format(mark="sandbox-left-1"), timeout=0.5)
    assert "Stopped after 0.5 s" in result.output
    await walls.call(BASH, command="(while :; do sleep 0.05; done) & echo started # sandbox-left-2")
    await eventually(lambda: not running("sandbox-left-"), "something goes on")


@works
async def test_a_job_in_the_sandbox_is_stopped_whole(walls: Workspace) -> None:
    await walls.call(
        BASH,
        command="trap '' TERM; (setsid sleep 300) & while :; do sleep 0.05; done # sandbox-left-3",
        background=True,
    )
    assert walls.jobs is not None
    (state,) = walls.jobs
    assert alive(state.pid)
    await asyncio.wait_for(walls.jobs.stop(state.id), 20)
    await eventually(lambda: not running("sandbox-left-3"), "something goes on")


# -- what runs unasked ----------------------------------------------------------------------------------------


@pytest.fixture
def held(walls: Workspace) -> Workspace:
    walls.file(".env", "KEY=mine\n")
    walls.file("certs/server.key", "PRIVATE\n")
    walls.file("show.py", "import sys\nfor name in sys.argv[1:]: print(open(name).read().strip() or 'nothing')\n")
    walls.file("run.sh", 'eval "$*"\n')
    return walls


@works
async def test_the_secrets_of_the_project_are_hidden_from_what_runs_unasked(held: Workspace) -> None:
    assert (await held.call(BASH, command="python3 show.py certs/../show.py")).output.startswith("import sys")
    shown = await held.call(BASH, command="bash run.sh cat '.e*' 'certs/server.k*' ';' mv certs c2 ';' cat 'c2/*'")
    assert shown.output == "[No output.]"
    held.file(".envrc", "new")
    failed = await held.call(BASH, command="bash run.sh cat .envr?; python3 run.sh KeyError")
    assert "Hidden from what runs unasked" in failed.output
    assert ".env" in failed.output


@works
async def test_a_secret_that_is_named_was_asked_about_and_is_there(held: Workspace) -> None:
    assert (await held.call(BASH, command="python3 show.py .env certs/server.key")).output == "KEY=mine\nPRIVATE"
    assert (await held.call(BASH, command="echo KEY=other > .env")).output == "[No output.]"
    assert (held.root / ".env").read_text() == "KEY=other\n"


@works
async def test_settings_open_a_secret(held: Workspace, home: Path) -> None:
    sandbox(held, home, readable=(".env", "certs/*.key"))
    assert (await held.call(BASH, command="bash run.sh cat '.e*' 'certs/*'")).output == "KEY=mine\nPRIVATE"


@works
@pytest.mark.parametrize(
    "tried",
    [
        "touch .git/objects/x", "mv .git old", "rm -rf .git/objects", "mkdir .git/info", "rm .git/config",
        "touch .husky/post-merge", "mv .husky old && mkdir .husky", "echo '{}' '>' .vscode/tasks.json",
    ],
)  # fmt: skip
async def test_what_runs_unasked_leaves_alone_what_others_run(held: Workspace, tried: str) -> None:
    held.file(".husky/_", "")
    held.file(".vscode/tasks.json", "mine")
    result = await held.call(BASH, command=f"bash run.sh {tried}")
    assert result.is_error
    assert sorted(path.name for path in (held.root / ".git").iterdir()) == ["config", "hooks", "objects"]
    assert [path.name for path in (held.root / ".husky").iterdir()] == ["_"]
    assert (held.root / ".vscode" / "tasks.json").read_text() == "mine"


@works
async def test_it_makes_no_repository_where_there_is_none(space: Workspace, home: Path) -> None:
    """Whoever looks at the project next would obey its settings."""
    (space.root / ".git").rmdir()
    sandbox(space, home)
    space.file("run.sh", 'eval "$*"\n')
    assert (await space.call(BASH, command="bash run.sh touch here")).output == "[No output.]"
    result = await space.call(BASH, command="bash run.sh echo x '>' .git/config")
    assert result.is_error
    assert list((space.root / ".git").iterdir()) == []
    assert (space.root / "here").exists()


@works
def test_the_place_that_was_kept_clear_is_gone_with_the_program(tmp_path: Path) -> None:
    program = """
import subprocess, sys
from pathlib import Path
from tui_agent.tools.sandbox import Held, Sandbox
from tui_agent.tools.settings import SandboxSettings
project = Path(sys.argv[1])
sandbox = Sandbox(SandboxSettings())
subprocess.run(sandbox.wrap(["touch", "made"], project, project, held=Held()), check=True)
print((project / ".git").is_dir())
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@works
async def test_what_is_asked_about_may_write_to_the_repository(held: Workspace) -> None:
    assert not (await held.call(BASH, command="git init -q r && touch .git/objects/x")).is_error


@works
async def test_without_the_network_sockets_of_other_programs_are_not_there(held: Workspace) -> None:
    """A database takes orders from whoever finds its socket."""
    kept = {"current-system", "booted-system", "opengl-driver", "opengl-driver-32", "wrappers", "host", "lock"}
    shown = await held.call(BASH, command="find /run -mindepth 2 -not -path '/run/lock*'")
    assert [
        line for line in shown.output.splitlines() if line.startswith("/run/") and line.split("/")[2] not in kept
    ] == []


def running(mark: str) -> list[str]:
    """Return the command lines of processes that hold a text, this one's excluded."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            try:
                line = (directory / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if mark in line and "pytest" not in line:
                found.append(line)
    return found
