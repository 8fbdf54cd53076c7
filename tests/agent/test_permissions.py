"""Rules decide as people read them."""

import pytest

from tui_agent.agent.permissions import (
    DEFAULT_RULES,
    Action,
    Rule,
    RuleError,
    decide,
    parse_rule,
    reason_for,
    rules_from_table,
    session_rules,
)
from tui_agent.tools.base import Permission, PermissionNeed


def need(permission: str, pattern: str) -> PermissionNeed:
    return PermissionNeed(Permission(permission), pattern)


def action(request: PermissionNeed, *rules: Rule) -> Action:
    return decide(request, (*DEFAULT_RULES, *rules)).action


def test_reading_in_the_project_is_free_and_everything_else_asks() -> None:
    assert action(need("read", "src/app.py")) is Action.ALLOW
    for request in (need("edit", "a.py"), need("bash", "ls"), need("external_directory", "/etc/*")):
        assert action(request) is Action.ASK


@pytest.mark.parametrize("path", [".env", "deploy/.env.production", "keys/server.pem", "home/id_rsa", "x/.NPMRC"])
def test_secret_files_ask_even_inside_the_project(path: str) -> None:
    request = need("read", path)
    assert action(request) is Action.ASK
    assert "secrets" in reason_for(request, decide(request, DEFAULT_RULES))
    assert action(request, Rule("read", path, Action.ALLOW, "user")) is Action.ALLOW


def test_the_last_match_of_a_source_wins_and_stronger_sources_overrule() -> None:
    table = rules_from_table({"bash": {"git status*": "allow", "rm *": "deny", "*": "ask"}}, "user")
    assert action(need("bash", "git status --short"), *table) is Action.ALLOW
    assert action(need("bash", "rm -rf /"), *table) is Action.DENY
    assert action(need("bash", "make"), *table) is Action.ASK
    flag = parse_rule("bash:rm *", Action.ALLOW)
    assert action(need("bash", "rm x"), flag, *table) is Action.ALLOW


def test_always_allows_the_command_as_it_stands_and_no_other() -> None:
    asked = need("bash", "rm *.tmp")
    (rule,) = session_rules([asked])
    assert action(asked, rule) is Action.ALLOW
    assert action(need("bash", "rm a.tmp"), rule) is Action.ASK
    assert str(rule) == "allow bash: rm *.tmp"


def test_always_for_an_edit_covers_the_project_but_not_files_outside() -> None:
    rules = session_rules([need("edit", "a.py")])
    assert action(need("edit", "b/c.py"), *rules) is Action.ALLOW
    assert action(need("external_directory", "/etc"), *rules) is Action.ASK


@pytest.mark.parametrize("text", ["bahs", "bash:", "reading:*"])
def test_a_wrong_rule_says_what_is_accepted(text: str) -> None:
    with pytest.raises(RuleError, match=r"use one of|empty pattern"):
        parse_rule(text, Action.ALLOW)


def test_a_wrong_action_is_named() -> None:
    with pytest.raises(RuleError, match="allow, ask or deny"):
        rules_from_table({"edit": "maybe"}, "user")
