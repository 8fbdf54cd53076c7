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
    session_rules,
)
from tui_agent.config import Config
from tui_agent.tools.permission import Permission, PermissionNeed
from tui_agent.tools.shell.builders import is_held
from tui_agent.tools.shell.needs import command_needs

PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text(encoding="utf-8")
EXAMPLES = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("page"))


def verdict(
    command: str, project: Path, rules: tuple[Rule, ...] = (), *, boxed: bool = False, mode: str = "build"
) -> Action:
    """Return what becomes of a command line: the strictest of what its parts need."""
    needs = command_needs(command, project, project)
    held = boxed and is_held(needs)
    needs = tuple(replace(need, sandboxed=boxed, inside=need.inside if held else "") for need in needs)
    found = {decide_in_mode(need, (*DEFAULT_RULES, *rules), mode, "bash").action for need in needs}
    return next((action for action in (Action.DENY, Action.ASK) if action in found), Action.ALLOW)


def test_every_example_is_a_configuration() -> None:
    assert len(EXAMPLES) == 3
    for example in EXAMPLES:
        config = Config.model_validate(example)
        assert set(example) <= set(Config.model_fields)
        rules_from_table(config.permissions, "user")
    assert Config.model_validate(EXAMPLES[2]).sandbox.readable == (".env.test", "~/.npmrc")


def test_the_first_example_does_what_it_reads_like(project: Path) -> None:
    rules = rules_from_table(EXAMPLES[0]["permissions"], "user")
    assert verdict("git commit -m x", project, rules) is Action.ALLOW
    assert verdict("npm run deploy", project, rules) is Action.DENY
    assert verdict("ls && rm README.md", project, rules, mode="yolo") is Action.DENY
    page = PermissionNeed(Permission.WEBFETCH, "https://docs.python.org/3/")
    notes = PermissionNeed(Permission.EXTERNAL_DIRECTORY, str(Path.home() / "notes"))
    for need in (page, notes, PermissionNeed(Permission.EDIT, "src/app.py")):
        assert decide_in_mode(need, (*DEFAULT_RULES, *rules), "build").action is Action.ALLOW


def test_asking_about_every_command_is_stronger_than_the_sandbox(project: Path) -> None:
    rules = rules_from_table(EXAMPLES[1]["permissions"], "user")
    assert verdict("pytest -q", project, boxed=True) is Action.ALLOW
    assert verdict("pytest -q", project, rules, boxed=True) is Action.ASK
    assert verdict("git diff", project, rules, boxed=True) is Action.ALLOW


FREE_IN_SANDBOX = [
    "pytest -q", "npm test", "cargo build", "make", "ruff check src", "python3 scripts/run.py", "scripts/run.sh",
    "PYTHONPATH=src pytest", "uv run pytest -x", "npx tsc --noEmit", "cd src && make test 2>&1 | tail -5",
    "node --test", "source .venv/bin/activate && pytest -q", "bash -x scripts/run.sh",
    "go vet ./...", "python3 -m unittest", ".venv/bin/pytest",
]  # fmt: skip
ASK_IN_SANDBOX = [
    "rm -rf build", "git add . && pytest", "git reset --hard", "git commit -m x", "npm install", "npm run db:reset",
    "make deploy", "python3 -c 'print(1)'", "python3 manage.py flush", "pytest --env-file .env", "pytest > .env",
    "pytest /etc", "pytest; curl x", "bash -c 'git push'", "echo x > .git/hooks/pre-commit", "touch .tui-agent/x",
    "python3 - <<'EOF'\nprint(1)\nEOF", "uv run rm x", "black src",
    "source .env && pytest", "source scripts/run.sh && git commit -m x", ". /dev/stdin",
    "cp src/app.py src/b.py", "sed -i s/a/b/ src/app.py",
]  # fmt: skip


@pytest.mark.parametrize("command", FREE_IN_SANDBOX)
def test_what_builds_and_tests_is_free_in_a_sandbox_only(project: Path, command: str) -> None:
    assert verdict(command, project) is Action.ASK
    assert verdict(command, project, boxed=True) is Action.ALLOW
    assert verdict(command, project, boxed=True, mode="plan") is Action.DENY


@pytest.mark.parametrize("command", ASK_IN_SANDBOX)
def test_what_does_more_asks_there_too(project: Path, command: str) -> None:
    assert verdict(command, project, boxed=True) is Action.ASK


@pytest.mark.parametrize("command", ["black src", "cp src/app.py src/b.py", "sed -i s/a/b/ src/app.py", "ruff format"])
def test_auto_edit_frees_edits_in_a_sandbox(project: Path, command: str) -> None:
    assert verdict(command, project, boxed=True, mode="auto-edit") is Action.ALLOW
    assert verdict(command, project, mode="auto-edit") is Action.ASK


@pytest.mark.parametrize("command", ["sed -i '1e id' src/app.py", "cp x .git/hooks/y", "mv .env x", "cp -f a b"])
def test_but_not_those_of_what_rules_programs_or_holds_secrets(project: Path, command: str) -> None:
    assert verdict(command, project, boxed=True, mode="auto-edit") is Action.ASK


@pytest.mark.parametrize(
    ("command", "offered"),
    [("git commit -m x", "git commit *"), ("rm build", "rm build"), ("curl https://a.b", "curl https://a.b")],
)
def test_always_offers_what_the_page_says(project: Path, command: str, offered: str) -> None:
    asked = [(need, Rule("*", "*", Action.ASK)) for need in command_needs(command, project, project)]
    assert offered in [rule.pattern for rule in session_rules(asked)]


def test_the_page_names_every_permission_and_mode() -> None:
    assert [name for name in (*Permission, *MODE_HELP) if f"`{name.value}`" not in PAGE] == []
