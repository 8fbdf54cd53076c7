"""The page about permissions says what is so: its examples are parsed, and its claims decided."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bypass_project import make_project
from tui_agent.agent.permissions import (
    DEFAULT_RULES,
    MODE_HELP,
    Action,
    Rule,
    decide_in_mode,
    rules_from_table,
    view_in_mode,
)
from tui_agent.config import Config
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.shell.needs import command_needs

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join(
    (DOCS / name).read_text(encoding="utf-8") for name in ("sandbox.md", "permissions.md")
)
EXAMPLES = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("page"))


def verdict(
    command: str,
    project: Path,
    rules: tuple[Rule, ...] = (),
    *,
    boxed: bool = False,
    mode: str = "build",
) -> Action:
    """Return what becomes of a command line: the strictest of what its parts need."""
    needs = [replace(need, sandboxed=boxed) for need in command_needs(command, project, project)]
    if boxed:
        # Places are the view's to say, and asked about where it does not have them.
        needs = [need for need in needs if need.permission is Permission.BASH]
    found = {decide_in_mode(need, (*DEFAULT_RULES, *rules), mode, "bash").action for need in needs}
    return next((action for action in (Action.DENY, Action.ASK) if action in found), Action.ALLOW)


def test_every_example_is_a_configuration() -> None:
    assert len(EXAMPLES) == 3
    for example in EXAMPLES:
        config = Config.model_validate(example)
        assert set(example) <= set(Config.model_fields)
        rules_from_table(config.permissions, "user")
    assert Config.model_validate(EXAMPLES[0]).sandbox.read == (".env.test", "~/.npmrc")


def test_the_first_example_does_what_it_reads_like(project: Path) -> None:
    [table] = [example["permissions"] for example in EXAMPLES if "permissions" in example]
    rules = rules_from_table(table, "user")
    assert verdict("git commit -m x", project, rules) is Action.ALLOW
    assert verdict("npm run deploy", project, rules) is Action.DENY
    assert verdict("ls && rm README.md", project, rules, mode="yolo") is Action.DENY
    page = PermissionNeed(Permission.WEBFETCH, "https://docs.python.org/3/")
    notes = PermissionNeed(Permission.EXTERNAL_DIRECTORY, str(Path.home() / "notes"))
    for need in (page, notes, PermissionNeed(Permission.EDIT, "src/app.py")):
        assert decide_in_mode(need, (*DEFAULT_RULES, *rules), "build").action is Action.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "ruff format src", "make", "rm -rf build", "python3 -c 'print(1)'", "npm install", "uv run x", "curl x; $Y",
        "./a.sh > b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["build", "auto-edit", "plan"])
def test_in_the_sandbox_any_command_runs_unasked(project: Path, command: str, mode: str) -> None:
    assert verdict(command, project, boxed=True, mode=mode) is Action.ALLOW
    assert verdict(command, project, mode=mode) is not Action.ALLOW


def test_who_allows_edits_lets_commands_edit(project: Path) -> None:
    rules = rules_from_table({"edit": "allow"}, "user")
    assert verdict("ruff format src", project, rules, boxed=True) is Action.ALLOW
    assert view_in_mode((*DEFAULT_RULES, *rules), "build").changes_sources
    assert not view_in_mode(DEFAULT_RULES, "build").changes_sources


def test_the_page_names_every_permission_and_mode() -> None:
    assert [name for name in (*Permission, *MODE_HELP) if f"`{name.value}`" not in PAGE] == []
