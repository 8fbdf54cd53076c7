"""Landlock, which takes over where user namespaces are refused: what it can express of a view, it enforces."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.contained import NOTHING, OUTPUTS, PROJECT, Contained
from tui_agent.sandbox import Grants, SandboxState
from tui_agent.sandbox import detection as finding_module
from tui_agent.sandbox.detection import find_sandbox
from tui_agent.sandbox.layout import MIN_LANDLOCK, landlock_version

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux'")

SOURCES = OUTPUTS.opened(Grants(sources=True))


@pytest.fixture
def box(tmp_path: Path) -> Contained:
    assert landlock_version() >= MIN_LANDLOCK, (
        "the kernel of whoever runs these tests has no Landlock"
    )
    box = Contained(tmp_path / "home", state=SandboxState("landlock", "version 3"))
    box.git("init", "-q")
    box.file(".gitignore", "build/\ndata/\n")
    box.file("src/app.py", "print('app')\n")
    box.file("README.md", "text\n")
    box.file("build/old", "old\n")
    box.file("data/rows", "1\n")
    box.file(".env", "KEY=canary\n")
    box.file(".vscode/tasks.json", "{}")
    box.file(".ssh/id_rsa", "canary", at=box.home)
    box.file("other/.env", "canary", at=box.home)
    return box


async def test_nothing_that_was_not_named_can_be_read(box: Contained) -> None:
    ran = await box.run(
        f"cat {box.home}/.ssh/id_rsa {box.home}/other/.env .env; cat src/app.py; ls {box.home}"
    )
    assert "canary" not in ran.output
    assert "print('app')" in ran.output
    assert "Permission denied" in ran.output


async def test_plan_mode_changes_nothing_and_has_a_place_for_temporary_files(
    box: Contained,
) -> None:
    before = box.tree()
    commands = "echo x > README.md; rm -rf build; touch new; mkdir d; chmod 0 src; touch -d 2001-01-01 README.md"
    ran = await box.run(
        f"{commands}; f=$(mktemp) && echo kept > $f && cat $f; echo x > ~/x && cat ~/x", NOTHING
    )
    assert box.tree() == before
    assert (box.root / "README.md").stat().st_mtime > 1_500_000_000
    assert ran.output.endswith("kept\nx\n")
    assert not (box.home / "x").exists()


async def test_build_output_can_be_written_and_sources_cannot(box: Contained) -> None:
    before = box.tree()
    ran = await box.run("echo new > build/new; echo x > README.md; rm -rf data .git src; ls build")
    assert ran.output.endswith("new\nold\n")
    assert {name: text for name, text in box.tree().items() if name != "build/new"} == before


async def test_auto_edit_changes_sources_and_spares_what_cannot_be_taken_back(
    box: Contained,
) -> None:
    before = box.tree()
    await box.run(
        "echo x > README.md; echo y > src/new.py; rm -rf data .vscode .git; echo x > .git/config",
        SOURCES,
    )
    after = box.tree()
    assert (after.pop("README.md"), after.pop("src/new.py")) == ("x\n", "y\n")
    assert after == {name: text for name, text in before.items() if name != "README.md"}


async def test_instructions_for_agents_are_changed_only_with_a_grant_of_their_own(
    box: Contained,
) -> None:
    box.file("AGENTS.md", "old\n")
    box.file("src/AGENTS.md", "old\n")
    line = "echo x > AGENTS.md; echo x > CLAUDE.md; echo x > src/CLAUDE.md; echo x > src/new.py"
    ran = await box.run(line, SOURCES)
    assert box.tree()["AGENTS.md"] == "old\n"
    assert not (box.root / "CLAUDE.md").exists()
    assert not (box.root / "src/CLAUDE.md").exists()
    assert (box.root / "src/new.py").read_text() == "x\n"
    assert "src/CLAUDE.md" in ran.outcome.note
    opened = OUTPUTS.opened(Grants(sources=True, protected=frozenset({box.root / "AGENTS.md"})))
    await box.run("echo x > AGENTS.md", opened)
    assert box.tree()["AGENTS.md"] == "x\n"


async def test_permissions_change_where_a_command_may_write_and_nowhere_else(
    box: Contained,
) -> None:
    key = box.home / ".ssh/id_rsa"
    key.chmod(0o600)
    script = (
        "import os\nos.chmod('a', 0o711); os.fchmod(os.open('b', os.O_RDWR), 0o640)\n"
        "os.chmod('c', 0o600, dir_fd=os.open('.', os.O_RDONLY))\n"
    )
    box.file("build/try.py", script)
    ran = await box.run(
        f"cd build && touch a b c d && python3 try.py; chmod 755 . d; chmod 777 ../README.md .. {key} {box.home};"
        f" ln -s {key} link; chmod 777 link; chmod 777 /proc/self/root{key} missing; rm link try.py"
    )
    modes = {path.name: path.stat().st_mode & 0o777 for path in (box.root / "build").iterdir()}
    assert modes == {"a": 0o711, "b": 0o640, "c": 0o600, "d": 0o755, "old": 0o644}
    assert key.stat().st_mode & 0o777 == 0o600
    assert [
        path.stat().st_mode & 0o022 for path in (box.root, box.home, box.root / "README.md")
    ] == [0, 0, 0]
    assert "'missing': No such file" in ran.output
    assert (await box.run("chmod 600 build/a", NOTHING)).code == 1


async def test_times_change_where_a_command_may_write_and_nowhere_else(box: Contained) -> None:
    key = box.home / ".ssh/id_rsa"
    ran = await box.run(
        f"cd build && touch a && touch -d 2001-01-01 a && ln -s {key} l && touch -h -d 2001-01-01 l && touch old"
        f" && cp -p old copy && echo done; touch -d 2001-01-01 {key} l ../README.md; rm l"
    )
    assert ran.output.startswith("done\n")
    assert (
        (box.root / "build/a").stat().st_mtime
        < 1_000_000_000
        < (box.root / "build/old").stat().st_mtime
    )
    assert (box.root / "build/copy").stat().st_mtime_ns == (
        box.root / "build/old"
    ).stat().st_mtime_ns
    assert all(path.stat().st_mtime > 1_500_000_000 for path in (key, box.root / "README.md"))


async def test_a_command_ends_as_it_would_outside(box: Contained) -> None:
    assert (await box.run("exit 7")).code == 7
    assert (await box.run("kill -9 $$")).code == -9
    assert (await box.run("yes | head -1")).output == "y\n"
    assert (
        await box.run("trap 'echo cleaned; exit 3' TERM; kill -TERM 0; sleep 5")
    ).output == "cleaned\n"


async def test_nothing_of_a_command_goes_on_after_it(box: Contained) -> None:
    loop = "while :; do mkdir -p build/.git; done"
    ran = await box.run(
        f"(setsid sh -c '{loop}' &) & nohup env -i sh -c '{loop}' >/dev/null 2>&1 & sleep 0.2; echo end"
    )
    assert ran.output.endswith("end\n")
    assert not (box.root / "build/.git").exists()
    await box.run("true")
    assert not (box.root / "build/.git").exists()


async def test_no_network_of_any_kind(box: Contained) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        program = (
            "import socket\n"
            "for kind in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):\n"
            " for way in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
            "  try: socket.socket(kind, way); print('made')\n"
            "  except OSError: pass\n"
            "socket.socketpair(); print('pair')\n"
        )
        box.file("try.py", program)
        assert (await box.run("python3 try.py")).output == "pair\n"


async def test_other_processes_are_neither_looked_into_nor_ended(box: Contained) -> None:
    ran = await box.run(f"cat /proc/{os.getpid()}/environ; kill -0 {os.getpid()} && echo reached")
    assert "PATH=" not in ran.output
    assert "reached" not in ran.output


def test_what_it_cannot_express_it_says(box: Contained) -> None:
    assert box.sandbox.why_unsupported(PROJECT) == ""
    assert "repository" in box.sandbox.why_unsupported(OUTPUTS.opened(Grants(repository=True)))
    assert "network" in box.sandbox.why_unsupported(
        OUTPUTS.opened(Grants(hosts=frozenset({"example.org"})))
    )


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A bubblewrap that is there and may not make user namespaces."""
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(finding_module, "bubblewraps", lambda _outside: iter([str(program)]))
    find_sandbox.cache_clear()
    yield program
    find_sandbox.cache_clear()


def test_it_takes_over_where_bubblewrap_is_refused(
    no_bubblewrap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restricted = no_bubblewrap.with_name("restricted")
    restricted.write_text("1\n")
    monkeypatch.setattr(finding_module, "_RESTRICTED", restricted)
    state = find_sandbox()
    assert state.kind == "landlock"
    assert (
        state.reason
        == "bubblewrap does not work here (bwrap: setting up uid map: Permission denied)"
    )
    assert [line.split(" ", 3)[-1].split()[0] for line in state.advice.splitlines()[1:]]
    assert state.advice.count("sudo") == 2
    assert str(no_bubblewrap) in state.advice
