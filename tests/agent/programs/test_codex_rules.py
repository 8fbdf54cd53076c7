"""Codex's rules: what they forbid is denied here, what they ask about is asked about, the rest is only listed."""

from pathlib import Path

import pytest

from tests.support.knowledge import folders, write
from tui_agent.agent.permissions import DEFAULT_RULES, Action, Rule, decide
from tui_agent.agent.programs.codex import read_codex
from tui_agent.agent.programs.found import ForeignSettings, ItemState
from tui_agent.permission import Permission, PermissionNeed

RULES = """
# What the team agreed on.
prefix_rule(
    pattern = ["git", ["push", "fetch"], "--force"],
    decision = "forbidden",
    justification = "use a pull request",
    match = [["git", "push", "--force"]],
)
prefix_rule(pattern=["rm"], decision="prompt")
prefix_rule(pattern=["make"], decision="allow")
prefix_rule(pattern=["what?*[x]"], decision="forbidden")
"""
PROVIDER = """
[model_providers.corp]
base_url = "https://llm.corp/v1"
env_key = "CORP"
http_headers = { x-team = "a b", Api-Key = "secret" }
query_params = { v = "1" }
"""
ALLOW = Rule("bash", "*", Action.ALLOW, "user")


def action(read: ForeignSettings, command: str) -> Action:
    need = PermissionNeed(Permission.BASH, command)
    return decide(need, (*DEFAULT_RULES, *read.rules, ALLOW)).action


@pytest.mark.parametrize("place", ["home", "project"])
def test_what_codex_forbids_is_denied_here(tmp_path: Path, place: str) -> None:
    write(tmp_path / place / ".codex/rules/default.rules", RULES)
    read = read_codex(folders(tmp_path))
    for command in ("git push --force", "git fetch --force origin", "what?*[x] a"):
        assert action(read, command) is Action.DENY
    for command in ("git push", "gitpush --force", "make", "whatever x"):
        assert action(read, command) is Action.ALLOW
    shown = "~/" if place == "home" else ""
    assert [rule.origin for rule in read.rules] == [
        f"{shown}.codex/rules/default.rules:{line}" for line in (3, 3, 9, 11)
    ]
    (asks,) = (rule for rule in read.rules if rule.action is Action.ASK)
    assert asks.pattern == "rm *"
    (allows,) = (item for item in read.items if item.state is ItemState.WITHOUT_EFFECT)
    assert allows.place.endswith(":10")


@pytest.mark.parametrize(
    "text",
    [
        "prefix_rule(",
        "x = 1",
        "prefix_rule(pattern=[], decision='forbidden')",
        "prefix_rule(pattern=['a', 3], decision='forbidden')",
        "prefix_rule(pattern=['a' + NAME], decision='forbidden')",
        "prefix_rule(pattern=[['a', 'b'], ['c'] * 9], **more)",
        f"prefix_rule(pattern=[{'[' * 500}{']' * 500}], decision='forbidden')",
        f"prefix_rule(pattern={[list('abcdefghijk')] * 8}, decision='forbidden')",
        f"prefix_rule(pattern={'(' * 50_000}, decision='forbidden')",
        "import os; os.system('touch /tmp/x')",
        "prefix_rule(pattern=['a'], decision=3)",
    ],
)
def test_what_can_not_be_read_is_named_and_takes_no_other_file_along(
    tmp_path: Path, text: str
) -> None:
    write(tmp_path / "home/.codex/rules/a.rules", text)
    write(tmp_path / "home/.codex/rules/b.rules", RULES)
    read = read_codex(folders(tmp_path))
    assert len(read.rules) == 4
    assert any("a.rules" in item.place for item in read.items)


def test_the_model_of_codex_is_named_with_the_command_that_sets_it(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.codex/config.toml",
        f'model = "gpt-5.5"\nmodel_provider = "corp"\n{PROVIDER}',
    )
    write(tmp_path / "project/.codex/config.toml", 'model = "other"\n')
    said = [(item.name, item.why) for item in read_codex(folders(tmp_path)).items]
    headers = 'headers = { "x-team" = "a b" }'
    provider = f'{{ base_url = "https://llm.corp/v1", api_key_env = "CORP", wire = "responses", {headers} }}'
    assert said == [
        (
            "model_provider",
            f"tui-agent config set providers.corp '{provider}'; not copied: query_params, http_headers.Api-Key",
        ),
        ("model_providers", ""),
        ("model", "tui-agent config set model corp/gpt-5.5"),
        ("model", "tui-agent config set model corp/other"),
    ]
