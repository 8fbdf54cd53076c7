"""Directories with links, ignored files and outputs are removed whole or not at all."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.contained import OUTPUTS, PROJECT, Contained, Ran
from tests.support.thoroughness import examples
from tui_agent.sandbox import Grants, View

IGNORED = "*.db\ndata/\nnode_modules/\n"
PARTS = {
    "f": "text\n",
    "deep/er/f": "text\n",
    "local.db": "ignored\n",
    "data/a": "ignored\n",
    "node_modules/x/i.js": "made again\n",
    "in": "-> f",
    "deep/up": "-> ../f",
    "gone": "-> nowhere",
    "folder": "-> deep",
    "only/links": "-> ../f",
    "data/link": "-> a",
    "out": "-> /etc/passwd",
    "bin/python": "-> /usr/bin/python3",
    "ignored-link.db": "-> local.db",
}
"""What a directory may contain; links with where they lead."""
EMPTY = {".gitignore": IGNORED, "kept": "kept\n"}


@pytest.fixture
def box(plain: Contained) -> Contained:
    plain.file(".gitignore", IGNORED)
    plain.file("kept", "kept\n")
    return plain


def fill(box: Contained, names: list[str]) -> dict[str, str]:
    """Make a directory ``d`` with some of the parts; returns the project's files."""
    for name in names:
        target = PARTS[name].removeprefix("-> ")
        if target == PARTS[name]:
            box.file(f"d/{name}", target)
            continue
        link = box.root / "d" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    return box.tree()


async def allowed(box: Contained, command: str, view: View) -> tuple[list[Ran], dict[str, str]]:
    """Run a command, again with what it lacked while it lacks anything; returns all runs.

    The second item is the project's files before the last run.
    """
    runs: list[Ran] = []
    while True:
        before = box.tree()
        ran = await box.run(command, view)
        runs.append(ran)
        assert len(runs) < 5
        if ran.outcome.wanted is None:
            return runs, before
        view = view.opened(ran.outcome.wanted)


@pytest.mark.parametrize("view", [OUTPUTS, PROJECT], ids=["build", "auto-edit"])
@pytest.mark.parametrize(
    "names",
    [
        ["f", "in"],
        ["only/links"],
        ["gone"],
        ["f", "folder", "deep/up", "deep/er/f"],
        ["bin/python", "f"],
        ["out"],
    ],
    ids="-".join,
)
async def test_a_directory_with_links_is_removed_as_one_with_files_is(
    box: Contained, names: list[str], view: View
) -> None:
    there = fill(box, names)
    runs, before = await allowed(box, "rm -rf d", view)
    assert [ran.output for ran in runs] == [""] * len(runs)
    assert [ran.outcome.wanted for ran in runs] == (
        [None] if view is PROJECT else [Grants(sources=True), None]
    )
    notes = [ran.outcome.note for ran in runs]
    assert notes[-1] == ""
    for note in notes[:-1]:
        assert note.startswith("[Not kept, the files are as they were: d/")
        assert note.endswith(". The command may not change these files.]")
        assert note.count("[") == 1
    assert before == there
    assert box.tree() == EMPTY
    assert not (box.root / "d").exists()


@pytest.mark.parametrize("view", [OUTPUTS, PROJECT], ids=["build", "auto-edit"])
@pytest.mark.parametrize(
    "names",
    [
        ["local.db"],
        ["f", "local.db"],
        ["data/a", "data/link"],
        ["f", "data/a", "deep/er/f", "in", "node_modules/x/i.js"],
        ["f", "ignored-link.db"],
        ["data/link"],
    ],
    ids="-".join,
)
async def test_what_undo_cannot_bring_back_is_removed_with_its_directory_or_not_at_all(
    box: Contained, names: list[str], view: View
) -> None:
    there = fill(box, names)
    first = await box.run("rm -rf d", view)
    assert first.outcome.wanted is not None
    assert first.outcome.wanted.write
    assert "/undo can't restore" in first.outcome.note
    assert box.tree() == there
    runs, before = await allowed(box, "rm -rf d", view)
    assert [ran.output for ran in runs] == [""] * len(runs)
    assert before == there
    assert box.tree() == EMPTY
    assert not (box.root / "d").exists()


@pytest.mark.parametrize("view", [OUTPUTS, PROJECT], ids=["build", "auto-edit"])
@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("rm d/large.bin", {"f", "local.db"}),
        ("rm -rf d", set()),
        (": > d/large.bin", {"f", "local.db"}),
        ("rm d/local.db", {"f", "large.bin"}),
    ],
)
async def test_files_that_undo_cannot_bring_back_are_removed_after_yes(
    box: Contained, command: str, left: set[str], view: View
) -> None:
    fill(box, ["f", "local.db"])
    box.file("d/large.bin", b"\1" * 5_000_001)
    runs, _before = await allowed(box, command, view)
    assert (runs[-1].output, runs[-1].outcome.note) == ("", "")
    assert {path.name for path in (box.root / "d").glob("*") if path.stat().st_size} == left


@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    names=st.lists(st.sampled_from(sorted(PARTS)), min_size=1, unique=True),
    command=st.sampled_from(["rm -rf d", "rm -rf d; cp kept d", "rm -rf d; ln -s kept d"]),
)
@example(names=list(PARTS), command="rm -rf d")
async def test_any_directory_goes_after_yes_and_stays_before(
    box: Contained, names: list[str], command: str
) -> None:
    there = fill(box, names)
    runs, before = await allowed(box, command, OUTPUTS)
    assert [ran.output for ran in runs] == [""] * len(runs)
    assert before == there
    now = box.tree()
    assert not any(name.startswith("d/") for name in now)
    assert now.pop("d", "kept\n") in {"-> kept", "kept\n"}
    await box.run("rm -rf d", View().opened(Grants(sources=True, write=frozenset({box.root}))))
    assert box.tree() == EMPTY


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ln -s /etc/passwd new", "lead out of the project"),
        ("ln -s /etc/passwd d/new", "lead out of the project"),
        ("ln -sf /etc/passwd kept", "lead out of the project"),
        ("ln -s ../../.. d/new", "lead out of the project"),
        ("mkfifo new", "pipes"),
        ("cp /bin/true new; chmod 4755 new", "pipes"),
    ],
)
@pytest.mark.parametrize("view", [OUTPUTS, PROJECT], ids=["build", "auto-edit"])
async def test_what_is_never_kept_is_not_asked_about_and_the_note_says_why(
    box: Contained, command: str, reason: str, view: View
) -> None:
    there = fill(box, ["f"])
    ran = await box.run(command, view)
    assert ran.outcome.wanted is None
    assert "Not kept" in ran.outcome.note
    assert reason in ran.outcome.note
    assert box.tree() == there


@pytest.fixture
def repository(plain: Contained) -> Contained:
    plain.git("init", "-q", "-b", "main")
    plain.file("calc.py", "1\n")
    plain.git("add", ".")
    plain.git("commit", "-qm", "without links")
    plain.git("checkout", "-qb", "links")
    for name, target in (("tq/in", "../calc.py"), ("deep/er/gone", "nowhere"), ("top", "calc.py")):
        link = plain.root / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    plain.git("add", ".")
    plain.git("commit", "-qm", "with links")
    return plain


@pytest.mark.parametrize("command", ["git rm -rq tq deep top", "git checkout -q main"])
@pytest.mark.parametrize("view", [OUTPUTS, PROJECT], ids=["build", "auto-edit"])
async def test_git_removes_directories_that_contain_only_links(
    repository: Contained, command: str, view: View
) -> None:
    ran = await repository.run(command, view.opened(Grants(repository=True)))
    assert (ran.output, ran.code) == ("", 0)
    left = {name for name in repository.tree() if not name.startswith(".git/")}
    assert left == {"calc.py"}
    assert not (repository.root / "deep").exists()


async def test_git_may_remove_a_granted_directory_itself(repository: Contained) -> None:
    repository.file(".gitignore", "data/\n")
    data = repository.file("data/a", "ignored\n").parent
    (data / "link").symlink_to("a")
    command = "git status --short; rm -rf data"
    view = OUTPUTS.opened(Grants(repository=True))
    ran = await repository.run(command, view)
    assert ran.code == 1
    assert (data / "a").exists()
    ran = await repository.run(command, view.opened(Grants(write=frozenset({data}))))
    assert (ran.output, ran.code) == ("?? .gitignore\n", 0)
    assert not data.exists()


@pytest.mark.parametrize("name", [".envrc", "deep/data"])
async def test_a_granted_path_that_is_a_link_stops_no_command(
    repository: Contained, name: str
) -> None:
    repository.file(".gitignore", "deep/data\n")
    link = repository.root / name
    link.symlink_to(repository.root / "calc.py")
    opened = frozenset({link})
    for grants in (Grants(protected=opened), Grants(write=opened), Grants(read=opened)):
        ran = await repository.run("cat calc.py", OUTPUTS.opened(grants | Grants(repository=True)))
        assert (ran.output, ran.code) == ("1\n", 0)
