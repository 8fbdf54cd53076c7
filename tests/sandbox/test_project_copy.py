"""The copy of a project that commands work on where the kernel makes no layers."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contained import OUTPUTS, PROJECT, Contained, state_of
from tui_agent.sandbox import Grants
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
