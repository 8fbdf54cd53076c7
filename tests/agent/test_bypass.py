"""Nothing slips past the rules without a sandbox: a corpus of attempts, each of which has to ask or be refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bypass_project import blocks, make_project
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide_in_mode, parse_rule
from tui_agent.shell.needs import command_needs

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


def actions(command: str, project: Path, mode: str = "build", *, sandboxed: bool = False) -> set[Action]:
    needs = (replace(need, sandboxed=sandboxed) for need in command_needs(command, project, project))
    return {decide_in_mode(need, RULES, mode, "bash").action for need in needs}


@pytest.mark.parametrize("mode", ["build", "plan"])
def test_every_attempt_asks_or_is_refused(project: Path, mode: str) -> None:
    unasked = [attempt for attempt in ATTEMPTS if not actions(attempt, project, mode) & {Action.ASK, Action.DENY}]
    assert unasked == []


@pytest.mark.parametrize("sandboxed", [False, True])
def test_what_is_denied_stays_denied_however_it_is_written(project: Path, sandboxed: bool) -> None:
    removing = [attempt for attempt in ATTEMPTS if attempt.rstrip().endswith("rm x")]
    assert removing
    assert [cmd for cmd in removing if Action.DENY not in actions(cmd, project, sandboxed=sandboxed)] == []


def test_in_a_sandbox_what_cannot_be_told_from_a_denied_command_asks(project: Path) -> None:
    for command in ("$X", 'bash -c "$CMD"', 'eval "$X"'):
        assert actions(command, project, sandboxed=True) == {Action.ASK}


def test_the_corpus_is_large() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) >= 500
