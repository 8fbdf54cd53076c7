"""The copy of a project that commands work on where the kernel makes no layers."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contained import OUTPUTS, PROJECT, Contained, state_of
from tests.support.thoroughness import examples
from tui_agent.sandbox import Grants, View
from tui_agent.sandbox import project_copy as copy_module
from tui_agent.sandbox.layer import Layer, changes_in, keep
from tui_agent.sandbox.project_copy import ProjectCopy


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Contained]:
    box = Contained(tmp_path / "home", state=state_of("copy", tmp_path))
    box.git("init", "-q")
    box.file(".gitignore", "dist/\nnode_modules/\ndata/\n")
    box.file("src/app.py", "one\n")
    box.file("dist/old.js", "old\n")
    box.file(".env", "KEY=canary\n")
    box.git("add", "src")
    yield box
    await box.sandbox.aclose()


def copies(box: Contained) -> list[Path]:
    """Return the copies that commands worked on."""
    found = (launch.layer for launch in box.sandbox.launches)
    return list({layer.upper: None for layer in found if layer is not None and layer.is_copy})


async def test_the_next_command_has_the_project_and_nothing_of_the_last_one(box: Contained) -> None:
    await box.run("echo two > src/app.py; echo x > left; rm .gitignore; mkdir -m 0 closed", OUTPUTS)
    assert box.tree()["src/app.py"] == "one\n"
    box.file("src/app.py", "three\n")
    box.file("src/new.py", "new\n")
    (box.root / "dist/old.js").unlink()
    ran = await box.run("cat src/*; ls -A . dist", OUTPUTS)
    assert ran.output.split() == [
        "three", "new", ".:", ".env", ".git", ".gitignore", "dist", "src", "dist:",
    ]  # fmt: skip
    assert len(copies(box)) == 1


async def test_a_copy_has_no_secret_and_shares_no_file(box: Contained) -> None:
    for view in (OUTPUTS, OUTPUTS.opened(Grants(secrets=frozenset({box.root / ".env"}))), OUTPUTS):
        ran = await box.run("cat .env", view)
        assert ran.output == ("KEY=canary\n" if view.grants.secrets else "")
    (copy,) = copies(box)
    assert (copy / ".env").read_bytes() == b""
    assert not (copy / "src/app.py").samefile(box.root / "src/app.py")
    assert [row.name for row in (copy / ".git").iterdir()] == []


async def test_commands_beside_each_other_have_copies_of_their_own(box: Contained) -> None:
    first = await box.laid_out("true", PROJECT)
    await box.run("echo two > src/app.py", PROJECT)
    await box.sandbox.finish(first, "", 0)
    await box.run("true", PROJECT)
    assert box.tree()["src/app.py"] == "two\n"
    assert len(copies(box)) == 2


async def test_a_session_leaves_no_copy(box: Contained) -> None:
    await box.run("mkdir -p a/b; chmod 0 a/b a", OUTPUTS)
    (copy,) = copies(box)
    await box.sandbox.aclose()
    box.reset()
    assert not copy.exists()


async def test_what_is_too_large_for_a_copy_is_read_only_until_it_is_opened(
    box: Contained,
) -> None:
    for place in ("node_modules", "data"):
        with box.file(f"{place}/large.bin").open("wb") as file:
            file.truncate(copy_module.MAX_BYTES + 1)
        ran = await box.run(f"ls {place} && echo x > {place}/new", OUTPUTS)
        assert ran.output.startswith("large.bin\n")
        assert ran.outcome.wanted == Grants(write=frozenset({box.root / place}))
        await box.run(f"echo x > {place}/new", OUTPUTS.opened(ran.outcome.wanted))
        assert (box.root / place / "new").read_text() == "x\n"
        (copy,) = copies(box)
        assert list((copy / place).iterdir()) == []


NAMES = st.sampled_from(["a", "b", "c", "dist"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENT = st.sampled_from(["", "one", "two"])
MAKE = st.tuples(st.just("file"), PATHS, CONTENT)
CHANGES = st.lists(
    MAKE | st.tuples(st.sampled_from(["link", "directory", "gone", "mode"]), PATHS, st.just("")),
    max_size=8,
)


def change(root: Path, do: str, path: str, text: str) -> None:
    """Do one thing to a tree, as far as that can be done."""
    place = root / path
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        match do:
            case "file":
                place.write_text(text)
            case "link":
                place.symlink_to("elsewhere")
            case "directory":
                place.mkdir()
            case "mode":
                place.chmod(0o600 if place.is_file() else 0o711)
            case _ if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            case _:
                place.unlink()
    except OSError:
        return


def tree(root: Path) -> dict[str, tuple[int, str]]:
    """Return the files and links of a tree; of directories that they are there."""
    found = {}
    for path in root.rglob("*"):
        state = path.lstat()
        text = ""
        if path.is_symlink():
            text = str(path.readlink())
        elif path.is_file():
            text = path.read_text()
        mode = state.st_mode
        if path.is_dir():
            mode = 0
        found[path.relative_to(root).as_posix()] = (mode, text)
    return found


@settings(deadline=None)
@given(CHANGES, CHANGES, CHANGES, st.sampled_from([frozenset[str](), frozenset({"dist"})]))
def test_what_is_kept_of_all_changes_is_the_copy_and_a_refreshed_copy_is_the_project(
    project: list[tuple[str, str, str]],
    command: list[tuple[str, str, str]],
    user: list[tuple[str, str, str]],
    outputs: frozenset[str],
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        layer = Layer(Path(scratch, "project"), Path(scratch, "layer"), is_copy=True)
        for place in (layer.project, layer.upper):
            place.mkdir(parents=True)
        copy = ProjectCopy(layer)
        for one in project:
            change(layer.project, *one)
        copy.refresh(None, (), ())
        assert tree(layer.upper) == tree(layer.project)
        assert changes_in(layer, outputs, made=copy.made) == []
        for one in command:
            change(layer.upper, *one)
        wanted = tree(layer.upper)
        kept = [
            one
            for one in changes_in(layer, outputs, made=copy.made)
            if not one.inside or one.special
        ]
        assert keep(layer, kept) == []
        assert tree(layer.project) == wanted
        for one in user:
            change(layer.project, *one)
        copy.refresh(None, (), ())
        assert tree(layer.upper) == tree(layer.project)


def files_of(root: Path) -> dict[str, object]:
    """Return what each path of a tree is: a text, a link's target, or None for a directory."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = path.readlink().as_posix()
        elif path.is_dir():
            found[name] = None
        else:
            found[name] = path.read_text()
    return found


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(MAKE, max_size=8), CHANGES, CHANGES)
def test_what_somebody_changed_while_a_command_ran_is_theirs(
    at_first: list[tuple[str, str, str]],
    theirs: list[tuple[str, str, str]],
    of_command: list[tuple[str, str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        project.mkdir()
        layer = Layer(project, Path(place, "layer"), is_copy=True)
        layer.upper.mkdir(parents=True)
        for step in at_first:
            change(project, *step)
        copy = ProjectCopy(layer)
        copy.refresh(None, (), ())
        before = files_of(project)
        for step in theirs:
            change(project, *step)
        left = files_of(project)
        for step in of_command:
            change(layer.upper, *step)
        changes = changes_in(layer, frozenset({"dist"}), made=copy.made)
        lost = {one.path for one in copy.conflicts(changes)}
        keep(layer, [one for one in changes if one.path not in lost])
        after = files_of(project)
        touched = [name for name, what in left.items() if before.get(name, "") != what]
        assert {name: after.get(name) for name in touched} == {name: left[name] for name in touched}
        gone = [name for name in before if name not in left and before[name] is not None]
        assert [name for name in gone if name in after] == []


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/one/one/ src/app.py",
        "chmod +x src/app.py",
        "rm -r src",
        "mv src lib; mkdir src; cp lib/app.py src",
        "rm -r src; echo a file > src",
        "touch dist/old.js; rm dist/gone.js; echo x > dist/app.js",
    ],
)
@pytest.mark.parametrize("view", [OUTPUTS, PROJECT])
async def test_a_file_saved_while_a_command_runs_stays_as_it_was_saved(
    box: Contained, command: str, view: View
) -> None:
    box.file("dist/gone.js", "old\n")
    saved = {
        "src/app.py": "saved meanwhile\n",
        "src/new.py": "new\n",
        "dist/old.js": "newer\n",
        "dist/gone.js": "stays\n",
    }

    def save() -> None:
        for name, text in saved.items():
            (box.root / name).write_text(text)

    await box.run(command, view, meanwhile=save)
    assert {name: (box.root / name).read_text() for name in saved} == saved


async def test_files_that_run_as_their_owner_and_a_closed_root_stop_no_command(
    box: Contained,
) -> None:
    box.file("src/shared.py", "shared\n").chmod(0o2755)
    ran = await box.run("cat src/shared.py; chmod 0 .", OUTPUTS)
    assert ran.output == "shared\n"
    ran = await box.run("cat src/shared.py", OUTPUTS)
    assert ran.output == "shared\n"


async def test_a_directory_with_what_was_too_large_is_not_renamed(box: Contained) -> None:
    with box.file("src/large.bin").open("wb") as file:
        file.truncate(copy_module.MAX_FILE_BYTES + 1)
    box.git("add", "-f", "src/large.bin")
    await box.run("mv src lib", PROJECT)
    assert (box.root / "src/large.bin").stat().st_size == copy_module.MAX_FILE_BYTES + 1
    assert not (box.root / "lib/large.bin").exists()
