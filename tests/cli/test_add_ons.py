"""Add-ons: wheels that bring tools of their own."""

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import Run
from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer
from tui_agent.tools.functions import add_ons
from tui_agent.tools.functions.add_ons import declared_add_ons
from tui_agent.tools.functions.tool_files import installed_add_ons

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "add_on"
GROUP = "tui_agent.add_ons"
SHOUT = "def shout(text: str) -> str:\n    'Shout a text.'\n    return text.upper()\n"
REGISTER = "def register(add_on):\n    add_on.tool(shout)\n"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what puts a distribution with one module where Python finds it, as pip does."""
    place = tmp_path / "site-packages"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setattr(sys, "stdout", sys.stdout)

    def installed(name: str, source: str, value: str = "") -> None:
        # Modules stay imported, so each test has names of its own.
        module = f"{name}_{abs(hash(tmp_path))}"
        (place / f"{module}.py").write_text(source)
        info = place / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        points = f"[console_scripts]\nx = y:z\n\n[{GROUP}]\na = {value or module + ':register'}\n"
        (info / "entry_points.txt").write_text(points)

    return installed


def results(server: ModelServer) -> list[str]:
    messages = server.calls[-1].json["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_tool_is_called_once_it_is_allowed(
    install: Install, tui_agent: Run, server: ModelServer
) -> None:
    noisy = SHOUT.replace("    return", "    print('from the tool')\n    return")
    install("loud", f"print('from the import')\n{noisy}{REGISTER}")
    server.play(Turn(tool_calls=[Call("shout", '{"text": "hey"}')]), Turn("It says HEY."))

    done = tui_agent("-p", "shout", "--json", "--allow", "tool:shout")

    assert done.code == 0, done.err
    assert results(server) == ["HEY"]
    for line in done.out.splitlines():
        json.loads(line)
    assert "from the import" in done.err
    assert "from the tool" in done.err


def test_a_tool_is_not_called_without_permission(
    install: Install, tui_agent: Run, server: ModelServer
) -> None:
    install("loud", SHOUT + REGISTER)
    server.play(Turn(tool_calls=[Call("shout", '{"text": "hey"}')]), Turn("No."))

    tui_agent("-p", "shout")

    assert "HEY" not in results(server)[0]


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("KeyError(text)", "KeyError: 'hey'"),
        ("SystemExit(4)", "shout called sys.exit(4)"),
        ("KeyboardInterrupt()", "shout raised KeyboardInterrupt"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_error_of_a_tool_is_its_result(
    install: Install, tui_agent: Run, server: ModelServer, kind: str, raised: str, told: str
) -> None:
    source = SHOUT.replace("return text.upper()", f"raise {raised}").replace("def", kind)
    install("loud", source + REGISTER)
    server.play(Turn(tool_calls=[Call("shout", '{"text": "hey"}')]), Turn("It failed."))

    done = tui_agent("-p", "shout", "--allow", "tool:shout")

    assert done.code == 0, done.err
    assert results(server) == [told]


def test_an_iterator_that_has_ended_ends_the_call(
    install: Install, tui_agent: Run, server: ModelServer
) -> None:
    install("loud", SHOUT.replace("return text.upper()", "return next(iter(()))") + REGISTER)
    server.play(Turn(tool_calls=[Call("shout", '{"text": "hey"}')]), Turn("It failed."))

    assert tui_agent("-p", "shout", "--allow", "tool:shout").code == 0
    assert results(server) == ["RuntimeError: StopIteration"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("import nothing_like_it\n", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("def register(\n", "SyntaxError"),
        ("register = 3\n", "'int' object is not callable"),
        ("other = 3\n", "AttributeError"),
        ("def register(add_on):\n    add_on.tool(3)\n", "3 is not a function"),
        ("def register(add_on):\n    add_on.tool(lambda x: x)\n", "<lambda>"),
        ("def register():\n    pass\n", "TypeError"),
        ("def register(add_on):\n    1 / 0\n", "ZeroDivisionError"),
        (f"{SHOUT}{REGISTER}    add_on.tool(shout)\n", "two functions are called shout"),
        (f"{SHOUT.replace('shout', 'read')}{REGISTER.replace('shout', 'read')}", "the program has"),
    ],
)
def test_a_broken_add_on_is_named_with_the_reason(install: Install, source: str, why: str) -> None:
    install("broken", source)

    found = installed_add_ons(())

    assert len(found.problems) == 1
    assert found.problems[0].startswith("Add-on broken 1.0")
    assert why in found.problems[0]


def test_an_add_on_whose_import_hangs_is_named_and_the_next_one_is_loaded(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add_ons, "LOAD_SECONDS", 1.0)
    install("endless", "import threading\nthreading.Event().wait()\n")
    install("loud_two", SHOUT + REGISTER)

    found = installed_add_ons(())

    assert [tool.name for tool in found.tools] == ["shout"]
    [problem] = found.problems
    assert problem.startswith("Add-on endless 1.0 could not be loaded: its import took longer")


def test_a_broken_add_on_stops_nothing_and_is_told_once(
    install: Install, tui_agent: Run, server: ModelServer
) -> None:
    install("broken", "import nothing_like_it\n")
    server.play(Turn("Hello."))

    done = tui_agent("-p", "hello")

    assert done.code == 0
    assert done.err.count("Add-on broken 1.0 could not be loaded") == 1


def test_of_two_add_ons_with_a_tool_of_one_name_the_first_by_name_counts(install: Install) -> None:
    install("second", SHOUT + REGISTER)
    install("first", SHOUT + REGISTER)

    found = installed_add_ons(())

    assert [tool.shown for tool in found.tools] == ["Add-on first 1.0"]
    assert "Add-on second 1.0: its tool shout is left out" in found.problems[0]


def test_an_add_on_that_is_left_out_is_not_imported(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("loud_one", f"print('imported')\n{SHOUT}{REGISTER}")

    assert not installed_add_ons(["Loud-One"]).tools
    assert not installed_add_ons(["*"]).tools
    assert "imported" not in capsys.readouterr().err


def test_tools_and_doctor_name_the_add_on(install: Install, tui_agent: Run) -> None:
    install("loud", SHOUT + REGISTER)

    assert "Add-on loud 1.0: shout" in tui_agent("doctor").out
    listed = tui_agent("-p", "/tools").out
    assert "Add-on loud 1.0" in listed
    assert "outside the sandbox" in listed


def test_an_add_on_installed_while_the_program_runs_is_found_by_the_next_turn(
    install: Install,
) -> None:
    install("loud", SHOUT + REGISTER)
    assert [row.distribution for row in declared_add_ons()] == ["loud"]

    install("quiet", SHOUT + REGISTER)

    assert [row.distribution for row in declared_add_ons()] == ["loud", "quiet"]


def test_a_distribution_in_the_working_directory_is_no_add_on(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("loud", SHOUT + REGISTER)
    monkeypatch.chdir(tmp_path / "site-packages")

    assert not declared_add_ons()


def test_the_example_of_the_docs_is_an_add_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site-packages"
    copy = shutil.copytree(EXAMPLE, tmp_path / "example")
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "-q"]
    made = subprocess.run(
        [*command, "--no-build-isolation", "--target", place, copy],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    if made.returncode and "hatchling" in made.stderr:
        pytest.skip("no hatchling to build a wheel with")
    assert made.returncode == 0, made.stderr
    monkeypatch.syspath_prepend(str(place))

    found = installed_add_ons(())

    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    assert project["name"] == "agent-words"
    assert [tool.name for tool in found.tools] == ["count_words"]
    assert not found.problems
