"""The judge of changes, attacked by the commands it judges: nothing outside of the project changes, nothing is lost."""

import asyncio
import contextlib
import os
import stat
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.contained import FORMS, OUTPUTS, PROJECT, Contained, state_of
from tui_agent.files.descriptors import DIRECTORY, descend, entries, using
from tui_agent.files.sensitive import steers_programs
from tui_agent.sandbox import Grants, View
from tui_agent.sandbox.layer import Layer, changes_in, keep, publish


@pytest.fixture(params=FORMS)
async def box(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Contained]:
    box = Contained(tmp_path / "home", state=state_of(request.param, tmp_path))
    box.git("init", "-q")
    box.file(".gitignore", "dist/\nbuild/\n")
    box.file("app.py", "one\n")
    box.file("dist/old.js", "old\n")
    box.file(".ssh/id_rsa", "canary", at=box.home)
    box.file(".claude/settings.json", "canary", at=box.home)
    for name in (".ssh", ".claude"):
        (box.home / name).chmod(0o700)
    (box.home / ".ssh/id_rsa").chmod(0o600)
    box.git("add", ".")
    yield box
    await box.sandbox.aclose()


VIEWS = {"build": OUTPUTS, "auto-edit": PROJECT, "allowed": PROJECT.opened(Grants(sources=True))}
every_view = pytest.mark.parametrize("view", list(VIEWS.values()), ids=list(VIEWS))


@pytest.mark.daily(1)
@every_view
async def test_a_directory_in_the_place_of_a_link_changes_nothing_where_it_led(
    box: Contained, view: View
) -> None:
    leads = {"sshdir": "../../.ssh", "build": "../../.ssh", "key": "../../.ssh/id_rsa"}
    for link, target in leads.items():
        (box.root / link).symlink_to(target)
    box.git("add", "-f", *leads)
    (box.root / "dist/link").symlink_to("../../../.ssh")
    before = box.outside()
    for place in (*leads, "dist/link"):
        await box.run(
            f"python3 -c \"import os; n = '{place}'; os.unlink(n); os.mkdir(n); os.chmod(n, 0o6777);"
            " open(n + '/x', 'w').close()\"", view,
        )  # fmt: skip
    assert box.outside() == before


def test_what_is_in_the_way_of_a_new_directory_is_not_followed(tmp_path: Path) -> None:
    layer = Layer(tmp_path / "project", tmp_path / "layer")
    (tmp_path / "outside").mkdir(mode=0o700)
    for place in (layer.project, layer.upper / "new"):
        place.mkdir(parents=True)
    (layer.upper / "new").chmod(0o777)
    changes = changes_in(layer, frozenset())
    (layer.project / "new").symlink_to("../outside")
    keep(layer, changes)
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o700


def test_a_file_is_kept_whose_path_is_longer_than_a_call_takes(tmp_path: Path) -> None:
    layer = Layer(tmp_path / "project", tmp_path / "layer")
    for place in (layer.project, layer.upper):
        place.mkdir(parents=True)
    folders = ["d" * 200] * 21
    root = os.open(layer.upper, DIRECTORY)
    with using(descend(root, folders, make=True)) as deepest:
        os.mknod("file", dir_fd=deepest)
    changes = changes_in(layer, frozenset())
    assert len(changes[-1].path) > 4096
    assert keep(layer, changes) == []
    root = os.open(layer.project, DIRECTORY)
    with using(descend(root, folders)) as deepest:
        assert [row.name for row in entries(deepest)] == ["file"]


def test_a_file_is_published_whose_name_is_as_long_as_possible(tmp_path: Path) -> None:
    layer = Layer(tmp_path / "project", tmp_path / "layer")
    for place in (layer.project, layer.upper):
        place.mkdir(parents=True)
    (layer.upper / ("長" * 85)).write_text("text")
    publish(layer, changes_in(layer, frozenset()))
    assert (layer.project / ("長" * 85)).read_text() == "text"


FIRES = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch {}; false\n"
REPOSITORIES = {
    "bare": "mkdir -p objects refs/heads; echo 'ref: refs/heads/main' > HEAD; cat {} > config",
    "common": (
        "mkdir -p y/objects y/refs/heads; cat {} > y/config; echo 'ref: refs/heads/main' > HEAD; echo y > commondir"
    ),
    "link": "mkdir -p objects refs/heads; ln -s refs/heads/main HEAD; cat {} > config",
    "later": "mkdir -p objects refs/heads; cat {} > config; sleep 0; cp config x; echo 'ref: refs/heads/main' > HEAD",
}


@pytest.mark.daily(2)
@pytest.mark.parametrize("kind", list(REPOSITORIES))
@every_view
async def test_nothing_is_made_a_repository(
    box: Contained, tmp_path: Path, kind: str, view: View
) -> None:
    mark = tmp_path / "mark"
    for name in (".git", ".gitignore"):
        subprocess.run(["rm", "-rf", str(box.root / name)], check=True)
    box.file("settings.txt", FIRES.format(mark))
    box.file("objects/mine.txt", "mine\n")
    command = REPOSITORIES[kind].format(box.root / "settings.txt")
    places = (".", "dist/deep/er", "sub")
    for part in (command.replace(";", "\n"), *command.split("; ")):
        await box.run(
            "\n".join(f"(mkdir -p {at}; cd {at} && {{ {part}\n}})" for at in places), view
        )
        for at in places:
            if (box.root / at).is_dir():
                subprocess.run(
                    ["git", "status", "--short"],
                    cwd=box.root / at,
                    check=False,
                    capture_output=True,
                )
        assert not mark.exists()
    assert (box.root / "objects/mine.txt").read_text() == "mine\n"
    assert (box.root / "app.py").read_text() == "one\n"
    assert (box.root / "dist/old.js").read_text() == "old\n"


async def test_the_command_lines_of_others_are_not_seen(box: Contained) -> None:
    other = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        ran = await box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    finally:
        other.kill()
        await other.wait()
    assert "sleep 60" not in ran.output


async def test_a_name_is_free_for_what_is_set_aside(box: Contained) -> None:
    names = [".envrc", f".envrc{'x' * 248}"]
    box.file(".envrc.not-kept", "mine")
    await box.run(
        "cd dist; touch .envrc .envrc.not-kept; for n in $(seq 1100); do : > .envrc.not-kept$n; done;"
        f" mkdir {names[1]}/ .git:{'x' * 250}"
    )
    assert not (box.root / "dist/.envrc").exists()
    left = [path.name for path in (box.root / "dist").iterdir()]
    assert list(filter(steers_programs, left)) == []


@pytest.mark.daily(1)
@pytest.mark.parametrize("granted", [Grants(), Grants(sources=True)], ids=["build", "allowed"])
async def test_the_names_of_a_repository_delete_nothing(box: Contained, granted: Grants) -> None:
    box.file("src/lib.py", "one\n")
    before = box.tree()
    for place in (".", "dist"):
        await box.run(f"cd {place}; mkdir -p HEAD objects refs", OUTPUTS.opened(granted))
    assert before.items() <= box.tree().items()


async def test_nothing_is_obeyed_inside_of_what_was_set_aside(box: Contained) -> None:
    deep = "dist/" + "/".join(f".claude/{number}/.vscode" for number in range(5))
    await box.run(
        f"mkdir -p {deep}/.git {deep}/bare; (cd {deep}/bare; mkdir objects refs; echo x > HEAD);"
        f" echo x > {deep}/.envrc; ln -s / {deep}/out; mkfifo {deep}/pipe"
    )
    await box.run("truncate -s 1T dist/holes")
    names = [path.name for path in (box.root / "dist").rglob("*")]
    assert not any(name.count("not-kept") > 1 for name in names)
    left = list(filter(steers_programs, names))
    assert left == []
    odd = [
        path.name
        for path in (box.root / "dist").rglob("*")
        if not (path.is_dir() or path.is_file())
    ]
    assert odd == []
    assert not list((box.root / "dist").rglob("out"))
    assert not list((box.root / "dist").rglob("bare/HEAD"))


FLIPS = """
import os, sys, time
os.chdir("dist")
while True:
    try:
        os.makedirs("a/.claude", exist_ok=True)
        time.sleep(.01)
        os.rename("a", "r")
        os.symlink("../../..", "a")
        time.sleep(.01)
        os.unlink("a")
        os.rename("r", "a")
    except OSError:
        os.system("rm -rf a r")
    print(time.time(), flush=True)
"""
PIPES = """
import os
os.chdir("dist")
os.mkfifo("pipe")
while True:
    try:
        open("file", "w").write("x" * 100)
        os.rename("file", "place")
        os.link("pipe", "again")
        os.rename("again", "place")
    except OSError:
        os.path.lexists("pipe") or os.mkfifo("pipe")
"""


@pytest.mark.daily(1)
@pytest.mark.parametrize("attack", [FLIPS, PIPES], ids=["links", "pipes"])
async def test_a_look_at_a_job_that_changes_everything_harms_nothing(
    box: Contained, attack: str
) -> None:
    box.file("attack.txt", attack)
    before = box.outside()
    launch = await box.sandbox.launch(
        ["python3", "attack.txt"], box.root, box.root, OUTPUTS, box.environment(), live=True
    )
    process = await asyncio.create_subprocess_exec(
        *launch.arguments, cwd=box.root, env=launch.environment, pass_fds=launch.descriptors,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            for _ in range(40):
                await box.sandbox.publish_outputs(launch, process.pid)
                assert box.outside() == before
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await box.sandbox.finish(launch, "", None)
    assert box.outside() == before


ACTING = (
    ".newagent/settings.json", ".newrc", "newagent.json", "new.config.js", "sub/.newagent/x", ".tool.yml", "newrc",
    "agent.toml",
)  # fmt: skip
INERT = (
    "new.py",
    "docs/page.md",
    ".gitignore",
    "sub/data.json",
    "package-lock.json",
    "sub/.gitkeep",
    ".coverage",
)


async def test_new_settings_are_asked_about_in_one_question(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    box.git("init", "-q")
    command = "; ".join(
        f"mkdir -p $(dirname {name}); echo x > {name}" for name in (*ACTING, *INERT)
    )
    ran = await box.run(command, PROJECT)
    assert {name for name in (*ACTING, *INERT) if (box.root / name).exists()} == set(INERT)
    wanted = ran.outcome.wanted
    assert wanted is not None
    kept = {
        ".newagent",
        ".newrc",
        "newagent.json",
        "new.config.js",
        "sub/.newagent",
        ".tool.yml",
        "newrc",
        "agent.toml",
    }
    assert wanted == Grants(protected=frozenset(box.root / name for name in kept))
    await box.run(command, PROJECT.opened(wanted))
    assert all((box.root / name).is_file() for name in ACTING)
    await box.sandbox.aclose()


async def test_a_new_directory_is_output_only_where_git_ignores_it(tmp_path: Path) -> None:
    names = ("out", "target", "venv", "coverage", "sub/dist")
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    box.git("init", "-q")
    command = "; ".join(f"mkdir -p {name}/x; echo x > {name}/x/build.rs" for name in names)
    await box.run(command, OUTPUTS)
    assert [name for name in names if (box.root / name).exists()] == []
    box.file(".gitignore", "".join(f"{name}/\n" for name in names))
    await box.run(command, OUTPUTS)
    assert [name for name in names if not (box.root / name / "x/build.rs").is_file()] == []
    await box.sandbox.aclose()


async def test_a_directory_of_output_runs_nothing_as_its_owner(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    box.git("init", "-q")
    box.file(".gitignore", "dist/\n")
    box.file("dist/old/x", "")
    await box.run(
        "mkdir -p dist/new/in; chmod 6777 dist/new dist/new/in dist/old; mkdir 'dist/.git::$INDEX_ALLOCATION'"
    )
    modes = [path.lstat().st_mode for path in (box.root / "dist").rglob("*")]
    assert len(modes) == 4
    assert not any(mode & 0o6000 for mode in modes)
    await box.sandbox.aclose()


async def test_what_a_look_sets_aside_is_told_at_the_end(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home", state=state_of("landlock", tmp_path))
    box.file("dist/app.js", "")
    box.file(".gitignore", "dist/\n")
    box.git("init", "-q")
    box.git("add", ".")
    script = "mkdir dist/.vscode; echo {} > dist/.vscode/tasks.json; echo made; read go"
    launch = await box.sandbox.launch(
        ["sh", "-c", script], box.root, box.root, OUTPUTS, box.environment(), live=True
    )
    process = await asyncio.create_subprocess_exec(
        *launch.arguments, cwd=box.root, env=launch.environment, pass_fds=launch.descriptors,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"made\n"
    await box.sandbox.publish_outputs(launch, process.pid)
    assert not (box.root / "dist/.vscode/tasks.json").exists()
    await process.communicate(b"\n")
    outcome = await box.sandbox.finish(launch, "", 0)
    assert "Renamed or removed" in outcome.note
    assert "dist/.vscode" in outcome.note
