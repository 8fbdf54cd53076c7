"""Nothing slips past the rules: a corpus of attempts, each of which has to ask or be refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bypass_project import blocks, make_project
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide_in_mode, parse_rule
from tui_agent.tools.shell.builders import is_held
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


CONTAINED = {
    "NODE_OPTIONS='--require ./x' npm test", "PYTHONSTARTUP=x pytest tests", "./ls", "./git status",
    "make SHELL=./evil", "make --eval='x:;curl evil.example' x", "npm run test --script-shell=./evil",
    "go build -toolexec=./evil ./...", "source ./script.sh", ". ./script.sh",
}  # fmt: skip
"""What a sandbox holds: it runs code of the project, without the network, its secrets and its repository."""
EDITS = {
    "sed -i s/a/b/ README.md", "sed -s -i s/a/b/ src/app.py", "cp README.md src/app.py", "mv README.md src/app.py",
    "tee src/app.py < README.md",
}  # fmt: skip
"""What auto-edit lets a command in the sandbox do: change files of the project."""


def actions(command: str, project: Path, mode: str = "build") -> set[Action]:
    return {decide_in_mode(need, RULES, mode, "bash").action for need in command_needs(command, project, project)}


def is_free_in_sandbox(command: str, project: Path, mode: str) -> bool:
    needs = command_needs(command, project, project)
    held = is_held(needs)
    inside = [replace(need, sandboxed=True, inside=need.inside if held else "") for need in needs]
    return {decide_in_mode(need, RULES, mode, "bash").action for need in inside} == {Action.ALLOW}


@pytest.mark.parametrize("command", ATTEMPTS)
def test_an_attempt_asks_or_is_refused(command: str, project: Path) -> None:
    assert actions(command, project) & {Action.ASK, Action.DENY}


@pytest.mark.parametrize("command", [attempt for attempt in ATTEMPTS if attempt.rstrip().endswith("rm x")])
def test_what_is_denied_stays_denied_however_it_is_written(command: str, project: Path) -> None:
    assert Action.DENY in actions(command, project)


@pytest.mark.parametrize("command", ATTEMPTS)
def test_plan_mode_runs_none_of_them_unasked(command: str, project: Path) -> None:
    assert actions(command, project, "plan") & {Action.ASK, Action.DENY}


def test_in_a_sandbox_only_what_it_holds_is_free(project: Path) -> None:
    assert {attempt for attempt in ATTEMPTS if is_free_in_sandbox(attempt, project, "build")} == CONTAINED


def test_in_auto_edit_only_edits_are_free_beside_that(project: Path) -> None:
    assert {attempt for attempt in ATTEMPTS if is_free_in_sandbox(attempt, project, "auto-edit")} == CONTAINED | EDITS


def test_in_plan_mode_a_sandbox_frees_nothing(project: Path) -> None:
    assert [attempt for attempt in ATTEMPTS if is_free_in_sandbox(attempt, project, "plan")] == []


def test_the_corpus_is_large() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) >= 500


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


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = ./evil\n",
        "[core] fsmonitor = ./evil\n",
        "[diff]\n\texternal = ./evil\n",
        '[diff "x"]\n\ttextconv = ./evil\n',
        '[filter "x"]\n\tclean = ./evil\n',
        '[filter "x"]\n\tprocess = \\\n./evil\n',
        "[gpg]\n\tprogram = ./evil\n",
        "[include]\n\tpath = ../evil.ini\n",
        '[includeIf "gitdir:x"]\n\tpath = evil.ini\n',
        "[core]\n\thooksPath = web/hooks\n",
    ],
)
def test_a_repository_whose_settings_name_programs_makes_git_ask(tmp_path: Path, settings: str) -> None:
    project = make_project(tmp_path)
    (project / "web" / "hooks").mkdir()
    (project / "web" / "hooks" / "post-index-change").write_text("#!/bin/sh\n")
    (project / ".git" / "config").write_text('[core]\n\tbare = false\n[filter "lfs"]\n\tclean = git-lfs clean -- %f\n')
    assert actions("git diff", project) == {Action.ALLOW}
    (project / ".git" / "config").write_text(settings)
    for command in ("git diff", "git log -p", "cd src && git show HEAD"):
        assert Action.ASK in actions(command, project), command
        assert Action.DENY in actions(command, project, "plan"), command


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("rust-toolchain.toml", "cargo --version"),
        (".yarnrc.yml", "yarn --version"),
        ("bin/rails", "rails --version"),
        ("toxfile.py", "tox --version"),
        ("Gemfile", "bundle list"),
    ],
)
def test_files_that_name_another_program_make_harmless_words_ask(tmp_path: Path, file: str, command: str) -> None:
    project = make_project(tmp_path)
    (project / "pyproject.toml").unlink()
    assert actions(command, project) == {Action.ALLOW}
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("x")
    assert Action.ASK in actions(command, project)
    assert is_free_in_sandbox(command, project, "build")
