"""Nothing slips past the rules: a corpus of attempts, each of which has to ask or be refused."""

from pathlib import Path

import pytest

from tests.support.bypass_project import blocks, make_project
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide_in_mode, parse_rule
from tui_agent.tools.shell.needs import command_needs

ATTEMPTS = blocks((Path(__file__).parent / "data" / "bypass.txt").read_bytes().decode())
RULES = (
    *DEFAULT_RULES,
    *(
        parse_rule(f"bash:{pattern}", Action.ALLOW, "user")
        for pattern in ("git status *", "ls *", "echo *", "npm test", "pytest *")
    ),
    parse_rule("bash:rm *", Action.DENY, "user"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("bypass"))


def actions(command: str, project: Path, mode: str = "build") -> set[Action]:
    return {decide_in_mode(need, RULES, mode, "bash").action for need in command_needs(command, project, project)}


@pytest.mark.parametrize("command", ATTEMPTS)
def test_an_attempt_asks_or_is_refused(command: str, project: Path) -> None:
    assert actions(command, project) & {Action.ASK, Action.DENY}


@pytest.mark.parametrize("command", [attempt for attempt in ATTEMPTS if attempt.rstrip().endswith("rm x")])
def test_what_is_denied_stays_denied_however_it_is_written(command: str, project: Path) -> None:
    assert Action.DENY in actions(command, project)


@pytest.mark.parametrize("command", ATTEMPTS)
def test_plan_mode_runs_none_of_them_unasked(command: str, project: Path) -> None:
    assert actions(command, project, "plan") & {Action.ASK, Action.DENY}


def test_the_corpus_is_large() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) >= 250


def test_a_bare_repository_below_the_project_makes_git_ask(project: Path) -> None:
    planted = project / "docs" / "planted"
    for name in ("objects", "refs"):
        (planted / name).mkdir(parents=True)
    (planted / "HEAD").write_text("ref: refs/heads/main\n")
    assert actions("git status", project) == {Action.ALLOW}
    for command in ("cd docs/planted && git diff", "git -C docs/planted diff"):
        assert Action.ASK in actions(command, project)


def test_files_whose_names_are_options_make_a_pattern_ask(project: Path) -> None:
    (project / "web" / "--pre=x").write_text("")
    assert Action.ASK in actions("cd web && rg foo *", project)
    assert actions("cd src && rg foo *", project) == {Action.ALLOW}
