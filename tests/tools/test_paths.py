"""Where paths lead and what they need."""

import json
from pathlib import Path

import pytest

from tests.support.tooling import Workspace
from tui_agent.errors import ToolError
from tui_agent.files.sensitive import is_sensitive
from tui_agent.permission import Permission
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.edit import EditTool
from tui_agent.tools.grep import GrepTool
from tui_agent.tools.ls import LsTool
from tui_agent.tools.paths import locate, path_needs
from tui_agent.tools.read import ReadTool

READ = ReadTool()


def patterns(space: Workspace, raw: str, cwd: str = ".") -> list[tuple[Permission, str]]:
    location = locate(raw, space.context(cwd))
    return [(need.permission, need.pattern) for need in path_needs(Permission.READ, location)]


def test_a_link_out_of_the_project_needs_the_directory(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.txt").write_text("s")
    (space.root / "link").symlink_to(tmp_path / "other")
    real = str(tmp_path.resolve() / "other")
    assert patterns(space, "link/secret.txt") == [
        (Permission.READ, "link/secret.txt"),
        (Permission.READ, f"{real}/secret.txt"),
        (Permission.EXTERNAL_DIRECTORY, real),
    ]


def test_leaving_through_a_link_and_dots(space: Workspace, tmp_path: Path) -> None:
    """``link/..`` is the parent of where the link leads, not the project."""
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (space.root / "link").symlink_to(tmp_path / "other" / "deep")
    assert (Permission.EXTERNAL_DIRECTORY, str(tmp_path.resolve() / "other")) in patterns(
        space, "link/../x.txt"
    )


def test_a_project_that_a_link_leads_to(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(space.root)
    context = space.context()
    context.project = context.cwd = tmp_path / "name"
    for raw in ("a.txt", str(space.root / "a.txt"), str(tmp_path / "name" / "a.txt")):
        location = locate(raw, context)
        assert (location.shown, location.pattern, location.inside) == ("a.txt", "a.txt", True)


def test_a_path_that_can_not_be_looked_at(space: Workspace) -> None:
    assert patterns(space, "x" * 5_000) == [(Permission.READ, "x" * 5_000)]
    assert patterns(space, "@" + "x" * 5_000)[0][0] is Permission.READ


def test_a_link_to_a_secret_is_asked_for_under_both_names(space: Workspace) -> None:
    space.file(".env", "KEY=1")
    (space.root / "notes.txt").symlink_to(space.root / ".env")
    assert patterns(space, "notes.txt") == [
        (Permission.READ, "notes.txt"),
        (Permission.READ, ".env"),
    ]


def test_home(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(space.root))
    space.file("a.txt")
    assert locate("~/a.txt", space.context()).pattern == "a.txt"


@pytest.mark.parametrize(
    "raw", ["`src/a b.txt`", '"src/a b.txt"', "<src/a b.txt>", "src\\a b.txt", "@src/a b.txt"]
)
def test_what_a_path_is_dressed_in_is_taken_off(space: Workspace, raw: str) -> None:
    space.file("src/a b.txt")
    assert locate(raw, space.context()).pattern == "src/a b.txt"
    assert locate(f"file://{space.root}/src/a%20b.txt", space.context()).pattern == "src/a b.txt"
    space.file(raw if "/" in raw else "plain")
    assert locate(raw, space.context()).pattern == (raw if "/" in raw else "src/a b.txt")


@pytest.mark.parametrize("raw", ["/workspace/src/main.py", "/src/main.py", "/main.py"])
def test_directories_that_a_model_makes_up_are_told_before_anybody_is_asked(
    space: Workspace, raw: str
) -> None:
    space.file("src/main.py")
    space.file("main.py")
    meant = "main.py" if raw == "/main.py" else "src/main.py"
    for tool in (READ, LsTool(), GrepTool(), EditTool()):
        arguments = {"edits": [{"old": "a", "new": "b"}]} if tool.name == "edit" else {}
        arguments |= {"pattern": "x"} if tool.name == "grep" else {}
        parsed = parse_arguments(tool, json.dumps(arguments | {"path": raw}))
        with pytest.raises(ToolError, match=f"^{raw} does not exist. Did you mean {meant}"):
            tool.needs(parsed, space.context())


@pytest.mark.parametrize("raw", ["", "  ", "a\0b"])
def test_no_path_at_all(space: Workspace, raw: str) -> None:
    with pytest.raises(ToolError):
        locate(raw, space.context())


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (".env", True),
        ("a/.env.local", True),
        (".env.example", False),
        ("keys/server.pem", True),
        ("ID_RSA", True),
        ("environment.py", False),
        ("monkey.py", False),
    ],
)
def test_names_that_hold_secrets(path: str, secret: bool) -> None:
    assert is_sensitive(path) is secret
