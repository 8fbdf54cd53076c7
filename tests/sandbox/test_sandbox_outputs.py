"""Directories of output: what a command may do in them, and what it may not leave there for others."""

import os
from pathlib import Path

import pytest

from tests.support.contained import OUTPUTS, PROJECT, Contained, needs_layer
from tui_agent.sandbox import Grants, View, Writes
from tui_agent.sandbox.layer import Layer, changes_in

pytestmark = [needs_layer, pytest.mark.daily(2, any_of=("plain",))]


@pytest.fixture
def box(plain: Contained) -> Contained:
    plain.git("init", "-q")
    plain.file(".gitignore", "node_modules/\nbuild/\ncoverage/\n_build/\nout/\n.venv/\n*.log\n")
    plain.file("src/app.py", "print('app')\n")
    plain.git("add", ".")
    plain.file("node_modules/m/own.js", "one\n")
    plain.file("build/old.txt", "old\n")
    return plain


async def test_changes_in_outputs_stay(box: Contained) -> None:
    # A file of a package manager's store outside has a second name in the project.
    store = box.file("store/pkg.js", "good\n", at=box.home)
    os.link(store, box.root / "node_modules/m/pkg.js")
    await box.run("touch -d 2031-01-01 build/old.txt")
    # Make goes by it: it would build again for ever.
    assert (box.root / "build/old.txt").stat().st_mtime > 1.9e9
    assert (box.root / "build/old.txt").read_text() == "old\n"
    await box.run(
        "echo two > node_modules/m/own.js; rm build/old.txt; mkdir -p build/new/in; echo x > build/new/in/f"
    )
    assert (box.root / "node_modules/m/own.js").read_text() == "two\n"
    assert not (box.root / "build/old.txt").exists()
    assert (box.root / "build/new/in/f").read_text() == "x\n"
    await box.run("echo own >> node_modules/m/pkg.js")
    assert (box.root / "node_modules/m/pkg.js").read_text() == "good\nown\n"
    assert store.read_text() == "good\n"


def test_a_file_is_compared_again_though_its_size_and_time_are_those_of_the_last_look(
    tmp_path: Path,
) -> None:
    layer = Layer(tmp_path / "project", tmp_path / "layer")
    for place in (layer.project, layer.upper):
        place.mkdir(parents=True)
        (place / "app.py").write_text("one")
    os.utime(layer.upper / "app.py", (1, 1))
    assert changes_in(layer, frozenset()) == []
    (layer.upper / "app.py").write_text("two")
    os.utime(layer.upper / "app.py", (1, 1))
    assert [change.path for change in changes_in(layer, frozenset())] == ["app.py"]


async def test_a_directory_that_is_made_anew_has_nothing_of_the_old_one(box: Contained) -> None:
    box.file("node_modules/m/deep/old.js", "old\n")
    box.file("src/sub/deep/old.py", "old\n")
    await box.run(
        "rm -rf node_modules && mkdir -p node_modules/m/deep && echo new > node_modules/m/deep/new.js"
    )
    assert [path.name for path in (box.root / "node_modules").rglob("*.js")] == ["new.js"]
    await box.run(
        "rm -rf src/sub && mkdir -p src/sub/deep && echo new > src/sub/deep/new.py", PROJECT
    )
    assert [path.name for path in (box.root / "src/sub").rglob("*.py")] == ["new.py"]


PLANTED = (
    ".git/config", "a/.hg/hgrc", ".husky/pre-commit", "a/b/.vscode/tasks.json", ".envrc", "a/.mcp.json", ".GIT/hooks/x",
    ".sl/config", ".helix/languages.toml",
)  # fmt: skip


@pytest.mark.daily(1, any_of=("plain",))
@pytest.mark.parametrize("view", [OUTPUTS, PROJECT], ids=["build", "auto-edit"])
@pytest.mark.parametrize(
    "directory", ["coverage", "_build", "build", "build/new", "node_modules/new", "src/out"]
)
@pytest.mark.parametrize("planted", PLANTED)
async def test_what_programs_obey_is_thrown_away_at_any_depth(
    box: Contained, view: View, directory: str, planted: str
) -> None:
    place = Path(directory) / planted
    ran = await box.run(
        f"mkdir -p {place.parent}; echo evil > {place}; echo kept > {directory}/kept", view
    )
    assert (box.root / directory / "kept").read_text() == "kept\n"
    assert not (box.root / place).exists()
    assert f"{directory}/{planted.rpartition('/.')[0]}".rstrip("/") in ran.outcome.note


async def test_what_was_opened_stays_in_a_new_directory_of_output(box: Contained) -> None:
    opened = View(Writes.OUTPUTS, Grants(protected=frozenset({box.root / "coverage/.husky"})))
    await box.run("mkdir -p coverage/.husky; echo x > coverage/.husky/pre-commit", opened)
    assert (box.root / "coverage/.husky/pre-commit").read_text() == "x\n"


@pytest.mark.parametrize("place", ["build/x", "build/new/x", "coverage/x", "x.log"])
@pytest.mark.parametrize(
    "make", ["mkfifo {}", "ln -s {home}/.bashrc {}", "ln -s {up}../x {}", "ln -s a/../../../.. {}"]
)
async def test_pipes_and_links_that_lead_outside_are_not_kept(
    box: Contained, place: str, make: str
) -> None:
    up = "../" * place.count("/")
    make = make.format(place, home=box.home, up=up)
    ran = await box.run(f"mkdir -p {Path(place).parent}; {make}")
    assert not os.path.lexists(box.root / place)
    assert f"Not kept, the files are as they were: {place}." in ran.outcome.note


async def test_links_inside_and_to_programs_are_kept(box: Contained) -> None:
    await box.run(
        "mkdir -p build/bin .venv/bin; ln -s ../old.txt build/bin/old; ln -s ../../src build/bin/src;"
        f"ln -s {box.root}/src/app.py build/app; ln -s /usr/bin/env .venv/bin/python; ln -s python .venv/bin/python3"
    )
    assert (box.root / "build/bin/old").read_text() == "old\n"
    assert (box.root / "build/bin/src/app.py").is_file()
    assert (box.root / "build/app").is_file()
    assert (box.root / ".venv/bin/python3").resolve() == Path("/usr/bin/env").resolve()


async def test_a_directory_that_nobody_may_look_into_is_looked_into(box: Contained) -> None:
    ran = await box.run(
        "mkdir -p coverage/a/.git; echo evil > coverage/a/.git/config; chmod 0 coverage/a"
    )
    assert "coverage/a/.git" in ran.outcome.note
    assert not (box.root / "coverage/a/.git").exists()
    assert (box.root / "coverage/a").stat().st_mode & 0o700 == 0o700
