"""Rules decide as people read them."""

import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.bypass_project import blocks, make_project
from tui_agent.agent.permissions import (
    DEFAULT_RULES,
    Action,
    FilesUnderRules,
    Mode,
    Rule,
    RuleError,
    also_relative,
    decide,
    decide_in_mode,
    edited,
    files_under_rules,
    is_named,
    next_mode,
    offered_rules,
    parse_rule,
    reason_for,
    reasons_for,
    refusal_of_tool,
    rule_of_reading,
    rules_from_table,
    view_in_mode,
)
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.sandbox.view import Writes
from tui_agent.shell.needs import command_needs


def need(permission: str, pattern: str) -> PermissionNeed:
    return PermissionNeed(Permission(permission), pattern)


def action(request: PermissionNeed, *rules: Rule) -> Action:
    return decide(request, (*DEFAULT_RULES, *rules)).action


@pytest.mark.parametrize(
    "path", [".env", "deploy/.env.production", "keys/server.pem", "home/id_rsa", "x/.NPMRC"]
)
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


def command(text: str, **more: Any) -> PermissionNeed:
    return PermissionNeed(Permission.BASH, text, detail=text, detail_kind="command", **more)


def always(*asked: PermissionNeed) -> tuple[Rule, ...]:
    return offered_rules([(request, decide(request, DEFAULT_RULES)) for request in asked])


GIT = [
    command(text) for text in ("git commit --amend", "git commit", "git commit-tree x", "git push")
]
OUTSIDE = [
    need("external_directory", path)
    for path in ("/srv/data", "/srv/data/x/y", "/srv", "/srv/database")
]


@pytest.mark.parametrize(
    ("request_", "rule", "allowed", "asked"),
    [
        (command("git commit -m x", always="git commit *"), "bash: git commit *", GIT[:2], GIT[2:]),
        # An exact command takes its stars as they stand.
        (
            command("rm *.tmp", always="rm [*].tmp"),
            "bash: rm [*].tmp",
            [command("rm *.tmp")],
            [command("rm a.tmp")],
        ),
        (
            PermissionNeed(Permission.EDIT, "a.py", detail_kind="diff"),
            "edit: *",
            [need("edit", "b/c.py")],
            [need("external_directory", "/etc")],
        ),
        (
            need("external_directory", "/srv/data"),
            "external_directory: /srv/data/*",
            OUTSIDE[:2],
            OUTSIDE[2:],
        ),
    ],
)
def test_always_allows_the_family_of_a_need_and_nothing_more(
    request_: PermissionNeed, rule: str, allowed: list[PermissionNeed], asked: list[PermissionNeed]
) -> None:
    (made,) = always(request_)
    assert str(made) == f"allow {rule}"
    assert {action(one, made) for one in allowed} == {Action.ALLOW}
    assert {action(one, made) for one in asked} == {Action.ASK}
    assert always(request_, command("$X", unclear="unknown")) == (), (
        "not offered for what cannot be understood"
    )


def test_only_a_rule_for_everything_covers_what_cannot_be_understood() -> None:
    unclear = command("git log $X", unclear="unknown")
    assert action(unclear, Rule("bash", "git log *", Action.ALLOW, "user")) is Action.ASK
    assert action(unclear, Rule("bash", "*", Action.ALLOW, "user")) is Action.ALLOW
    assert action(unclear, Rule("bash", "git log *", Action.DENY, "user")) is Action.DENY


def test_commands_that_only_read_are_free_unless_a_rule_names_them() -> None:
    reading = command("ls -l", harmless=True)
    assert action(reading) is Action.ALLOW
    assert action(reading, Rule("bash", "*", Action.ASK, "user")) is Action.ALLOW
    assert action(reading, Rule("bash", "ls *", Action.ASK, "user")) is Action.ASK
    assert action(reading, Rule("bash", "*", Action.DENY, "user")) is Action.DENY


def test_a_rule_against_a_command_matches_its_other_spellings_and_one_for_it_does_not() -> None:
    spelled = command("/bin/rm x", aliases=("rm x",))
    assert action(spelled, Rule("bash", "rm *", Action.DENY, "user")) is Action.DENY
    assert action(spelled, Rule("bash", "rm *", Action.ALLOW, "user")) is Action.ASK


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", "vendor/x/.git/config", ".tui-agent/config.toml", ".env", ".GIT/config",
        ".Husky/pre-push", ".husky/pre-commit", ".vscode/tasks.json", ".idea/workspace.xml", ".claude/settings.json",
        "sub/.envrc", ".MCP.json",
    ],
)  # fmt: skip
def test_files_that_rule_the_program_ask_even_where_edits_are_free(path: str) -> None:
    request = need("edit", path)
    assert action(request, *always(need("edit", "a.py"))) is Action.ASK
    assert decide_in_mode(request, DEFAULT_RULES, "auto-edit").action is Action.ASK
    assert action(request, Rule("edit", "*", Action.ALLOW, "project")) is Action.ASK
    assert action(request, Rule("edit", path, Action.ALLOW, "user")) is Action.ALLOW
    assert always(request) == (Rule("edit", path, Action.ALLOW, "session", syntax="literal"),)


def test_a_project_or_an_answer_never_lifts_what_the_user_denies_and_a_flag_does() -> None:
    denied = Rule("edit", "secret/*", Action.DENY, "user")
    request = need("edit", "secret/x")
    for source in ("project", "session"):
        assert action(request, denied, Rule("edit", "*", Action.ALLOW, source)) is Action.DENY
    assert action(request, denied, Rule("edit", "*", Action.ALLOW, "flag")) is Action.ALLOW
    assert action(
        request, Rule("edit", "*", Action.DENY, "project"), Rule("edit", "*", Action.ALLOW, "user")
    ) is (Action.DENY)


def test_a_rule_may_name_a_tool() -> None:
    rule = parse_rule("write:*.lock", Action.DENY)
    request = need("edit", "poetry.lock")
    assert decide(request, (*DEFAULT_RULES, rule), "write").action is Action.DENY
    assert decide(request, (*DEFAULT_RULES, rule), "edit").action is Action.ASK
    assert refusal_of_tool("recall", (parse_rule("recall", Action.DENY),)) is not None
    assert refusal_of_tool("recall", DEFAULT_RULES) is None
    allowed, denied = (
        parse_rule("recall", Action.ALLOW, "flag"),
        parse_rule("recall", Action.DENY, "user"),
    )
    assert refusal_of_tool("recall", (allowed, denied)) is None
    assert refusal_of_tool("recall", (denied, replace(allowed, source="here"))) == denied
    assert (
        refusal_of_tool("recall", (denied, parse_rule("recall", Action.ALLOW, "user"), denied))
        == denied
    )


def test_permissions_are_not_taken_for_tools_of_the_same_name() -> None:
    outside = need("external_directory", "/etc")
    assert decide(outside, DEFAULT_RULES, "read").action is Action.ASK
    only_git = rules_from_table({"bash": {"*": "deny", "git *": "allow"}}, "user")
    assert refusal_of_tool("bash", only_git) is None
    assert action(command("git push"), *only_git) is Action.ALLOW
    assert action(command("make"), *only_git) is Action.DENY


MODES = {
    "edit": (need("edit", "a.py"), "ask allow deny allow"),
    "make": (command("make"), "ask ask deny allow"),
    "ls": (command("ls", harmless=True), "allow allow allow allow"),
    "contained": (command("make", sandboxed=True), "allow allow allow allow"),
    "sources": (command("make", sandboxed=True, changes=("sources",)), "ask allow allow allow"),
    "data": (command("make", sandboxed=True, changes=("sources", "data")), "ask ask deny allow"),
    "loose": (command("make", changes=("sources",)), "ask ask deny allow"),
    "read": (need("read", "a.py"), "allow allow allow allow"),
    "secret": (need("read", ".env"), "ask ask ask allow"),
    "outside": (need("external_directory", "/etc"), "ask ask ask allow"),
    "web": (need("webfetch", "https://example.org/"), "ask ask ask allow"),
    "search": (need("websearch", "trees"), "ask ask ask allow"),
    "mcp": (need("mcp", "search"), "ask ask deny allow"),
    "tool": (need("tool", "go"), "ask ask deny allow"),
    "loop": (need("doom_loop", "x"), "ask ask ask ask"),
    "unclear": (command("$X", unclear="unknown"), "ask ask deny allow"),
}
"""What build, auto-edit, plan and yolo do with a need."""


@pytest.mark.parametrize(("request_", "expected"), MODES.values(), ids=MODES)
def test_what_a_mode_lets_run(request_: PermissionNeed, expected: str) -> None:
    modes = ("build", "auto-edit", "plan", "yolo")
    assert (
        " ".join(decide_in_mode(request_, DEFAULT_RULES, mode).action.value for mode in modes)
        == expected
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_no_mode_lifts_a_denial_and_no_rule_lifts_plan_mode(mode: Mode) -> None:
    denied = (*DEFAULT_RULES, Rule("edit", "*", Action.DENY, "user"))
    assert decide_in_mode(need("edit", "a.py"), denied, mode).action is Action.DENY
    allowed = (*DEFAULT_RULES, Rule("*", "*", Action.ALLOW, "flag"))
    expected = Action.DENY if mode is Mode.PLAN else Action.ALLOW
    assert decide_in_mode(command("make"), allowed, mode).action is expected


def test_the_key_goes_round_and_never_to_yolo() -> None:
    assert [next_mode(mode) for mode in ("build", "auto-edit", "plan", "yolo", "reviewer")] == [
        "auto-edit", "plan", "build", "build", "build",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["bahs", "bash:", "reading:*"])
def test_a_wrong_rule_says_what_is_accepted(text: str) -> None:
    with pytest.raises(RuleError, match=r"use one of|empty pattern"):
        parse_rule(text, Action.ALLOW)
    with pytest.raises(RuleError, match="allow, ask or deny"):
        rules_from_table({"edit": "maybe"}, "user")


def test_a_rule_names_a_tool_of_a_server_in_several_ways() -> None:
    def decided(text: str, action: Action, server: str = "my_tracker", tool: str = "add") -> Action:
        name = f"{server}_{tool}"
        need = PermissionNeed(Permission.MCP, name, aliases=(server,))
        return decide(need, (*DEFAULT_RULES, parse_rule(text, action)), name).action

    for text in (
        "mcp:my_tracker",
        "mcp:my_tracker_add",
        "mcp__my_tracker",
        "mcp__my_tracker__*",
        "mcp__my_tracker__add",
        "tool:my_tracker_add",
        "my_tracker_add",
        "mcp",
    ):
        for action in (Action.ALLOW, Action.DENY):
            assert decided(text, action) is action, text
            others = ("my_tracker", "addition") if "add" in text else ("other", "add")
            assert text == "mcp" or decided(text, action, *others) is Action.ASK, text
    for text in ("tool:*", "tool", "tool:my_tracker*", "mcp:my_track"):
        assert decided(text, Action.ALLOW) is Action.ASK, text
    for text in ("mcp__", "mcp__x__y:z", "mcp__x__y:", "mcp__x*"):
        with pytest.raises(RuleError, match="write mcp:"):
            parse_rule(text, Action.ALLOW)


def test_a_table_names_a_tool_of_a_server_as_a_flag_does() -> None:
    name = "mcp__tracker__search"
    tables: list[dict[str, str | dict[str, str]]] = [{name: "allow"}, {name: {"*": "allow"}}]
    for table in tables:
        assert rules_from_table(table, "flag") == (parse_rule(name, Action.ALLOW),)
    with pytest.raises(RuleError, match="takes no pattern"):
        rules_from_table({name: {"x": "allow"}}, "user")


def test_the_reason_for_a_question_about_a_servers_tool_is_a_sentence_unless_your_rule_asks() -> (
    None
):
    need = PermissionNeed(Permission.MCP, "tracker_search")
    assert reason_for(need, decide(need, DEFAULT_RULES)) == "it calls a tool of an MCP server"
    asks = Rule("mcp", "tracker_*", Action.ASK, "user")
    reason = reason_for(need, decide(need, (*DEFAULT_RULES, asks)))
    assert reason == "the rule “ask mcp: tracker_*” asks"


def test_what_undo_cannot_bring_back_is_named() -> None:
    need = PermissionNeed(Permission.EDIT, "scores.db", detail="make", changes=("data",))
    reason = reason_for(need, decide(need, DEFAULT_RULES))
    assert reason == "it changes scores.db, which /undo can't bring back"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (need("read", ".env"), ".env usually holds secrets"),
        (need("edit", ".env"), ".env usually holds secrets"),
        (
            PermissionNeed(Permission.READ, "src/a.py", secret=True),
            "src/a.py holds a secret",
        ),
        (
            need("edit", ".git/hooks/pre-commit"),
            ".git/hooks/pre-commit is a file that other programs run or read as settings",
        ),
    ],
)
def test_the_reason_names_the_danger_of_a_special_file(asked: PermissionNeed, reason: str) -> None:
    assert reason_for(asked, decide(asked, DEFAULT_RULES)) == reason


NO_EDITS = Rule("edit", "*", Action.DENY, "user")
ALL_EDITS = Rule("edit", "*", Action.ALLOW, "user")


@pytest.mark.parametrize(
    ("mode", "rules", "writes", "sources"),
    [
        (Mode.PLAN, (ALL_EDITS,), Writes.NOTHING, False),
        (Mode.BUILD, (), Writes.OUTPUTS, False),
        (Mode.BUILD, (ALL_EDITS,), Writes.OUTPUTS, True),
        (Mode.AUTO_EDIT, (), Writes.PROJECT, False),
        (Mode.AUTO_EDIT, (NO_EDITS,), Writes.OUTPUTS, False),
        (Mode.YOLO, (), Writes.PROJECT, False),
        (Mode.YOLO, (NO_EDITS,), Writes.OUTPUTS, False),
    ],
)
def test_what_commands_may_write_follows_the_mode_and_the_rules_on_edits(
    mode: Mode, rules: tuple[Rule, ...], writes: Writes, *, sources: bool
) -> None:
    view = view_in_mode((*DEFAULT_RULES, *rules), mode)
    assert (view.writes, view.grants.sources) == (writes, sources)


def test_a_tool_is_refused_by_a_rule_with_its_name_and_not_by_one_for_everything() -> None:
    everything = Rule("*", "*", Action.DENY, "user")
    by_name = Rule("recall", "*", Action.DENY, "user")
    assert refusal_of_tool("recall", [everything]) is None
    assert refusal_of_tool("recall", [by_name, everything]) is by_name


def test_the_user_may_change_the_patterns_that_are_offered() -> None:
    literal = Rule("bash", "rm [a]", Action.ALLOW, "session", "literal")
    rules = (literal, Rule("bash", "ls *", Action.ALLOW, "session"))
    assert edited(rules, ["rm [a]", "ls *"]) == rules
    assert edited(rules, ["rm *", "ls *"]) == (
        Rule("bash", "rm *", Action.ALLOW, "session", "glob"),
        rules[1],
    )
    assert edited(rules, ["rm *"]) == rules


def test_the_reason_of_a_chain_names_every_command() -> None:
    def reasons(*parts: PermissionNeed) -> str:
        decided = [(part, decide(part, DEFAULT_RULES)) for part in parts]
        return reasons_for([(part, rule) for part, rule in decided if rule.action is Action.ASK])

    commit = command("git commit -m x", changes=("repository",), sandboxed=True)
    fetch, shell = (
        command("curl https://example.com/x", sandboxed=True),
        command("sh", sandboxed=True),
    )
    assert reasons(commit, fetch, shell) == "changes the git repository (git commit)"
    removal, listing = command("rm -rf build"), command("ls", harmless=True)
    assert reasons(listing, removal, command("sh"), removal) == "it runs rm, and it runs sh"
    settings = PermissionNeed(Permission.EDIT, ".tool", detail="make")
    assert reasons(settings) == "it changes .tool"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("for i in 1 2; do echo x >> log$i.txt; done; rm -rf q", " (rm)"),
        ("FOO=1 BAR='a b' npm test; touch x.txt", " (npm test, touch)"),
        ("export A=1 && make", " (make)"),
        ("if [ -f a ]; then touch b; fi", ""),
        ("((i++)); touch b", ""),
    ],
)
def test_only_programs_are_named_as_what_changes_files(
    tmp_path: Path, line: str, names: str
) -> None:
    rule = Rule("*", "*", Action.ASK)
    needs: list[tuple[PermissionNeed, Rule]] = []
    parts: tuple[PermissionNeed, ...] = command_needs(line, tmp_path, tmp_path)
    for part in parts:
        if part.may_change_files:
            needs.append((replace(part, changes=("repository",)), rule))
    assert reasons_for(needs) == f"changes the git repository{names}"


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


def actions(
    command: str, project: Path, mode: str = "build", *, sandboxed: bool = False
) -> set[Action]:
    needs = (
        replace(need, sandboxed=sandboxed) for need in command_needs(command, project, project)
    )
    return {decide_in_mode(need, RULES, mode, "bash").action for need in needs}


@pytest.mark.parametrize("mode", ["build", "plan"])
def test_every_attempt_asks_or_is_refused(project: Path, mode: str) -> None:
    unasked = [
        attempt
        for attempt in ATTEMPTS
        if not actions(attempt, project, mode) & {Action.ASK, Action.DENY}
    ]
    assert unasked == []


@pytest.mark.parametrize("sandboxed", [False, True])
def test_what_is_denied_stays_denied_however_it_is_written(project: Path, sandboxed: bool) -> None:
    removing = [attempt for attempt in ATTEMPTS if attempt.rstrip().endswith("rm x")]
    assert removing
    assert [
        cmd for cmd in removing if Action.DENY not in actions(cmd, project, sandboxed=sandboxed)
    ] == []


def test_in_a_sandbox_what_cannot_be_told_from_a_denied_command_asks(project: Path) -> None:
    for command in ("$X", 'bash -c "$CMD"', 'eval "$X"'):
        assert actions(command, project, sandboxed=True) == {Action.ASK}


def test_the_corpus_is_large() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) >= 500


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("cat secrets/a.txt", True), ("head -n1 ./secrets/../secrets/b", True), ("grep x <secrets/a.txt", True),
        ("cp --from=secrets/a.txt /tmp", True), ("cat /srv/app/secrets/a.txt", True), ("cat src/secrets.py", False),
        ("ls", False),
    ],
)  # fmt: skip
def test_a_file_that_may_not_be_read_may_not_be_named_in_a_command_either(
    text: str, denied: bool
) -> None:
    rules = (
        Rule("read", "/secrets/**", Action.DENY, "other", "gitignore"),
        Rule("read", "*", Action.DENY, "user"),
    )
    reading = rule_of_reading(rules)
    assert reading is not None
    needs = files_under_rules(text, reading, Path("/srv/app"), Path("/srv/app")).needs
    assert bool(needs) is denied
    assert all(decide(need, rules).action is Action.DENY for need in needs)


def test_a_file_to_ask_about_that_a_command_names_is_asked_about_if_it_exists(
    tmp_path: Path,
) -> None:
    reading = rule_of_reading((*DEFAULT_RULES, Rule("read", "notes/*", Action.ASK, "user")))
    assert reading is not None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a").touch()
    line = "cat notes/a notes/missing src/b"
    (found,) = files_under_rules(line, reading, tmp_path, tmp_path).needs
    assert found == PermissionNeed(Permission.READ, "notes/a", detail=line, secret=True)


@pytest.mark.parametrize("rules", [(), (Rule("read", "*", Action.DENY, "user"),)])
def test_a_rule_for_every_file_hides_none_from_commands(rules: tuple[Rule, ...]) -> None:
    assert rule_of_reading((*DEFAULT_RULES, *rules)) is None


STRICTNESS = ["", "ask", "deny"]
"""Answers of the rules on reading, in rising strictness."""
READING = st.sampled_from(["read", "*", "r*", "re?d", "[qr]ead", "edit", "bash", "e*"])
NAMED_FILES = st.sampled_from(["secrets/a", "secrets/b.txt", "src/a", "a", "/srv/a"])
FILE_PATTERNS = NAMED_FILES | st.sampled_from(["*", "secrets/*", "*.txt", "**", "src/?", "//srv/*"])
ANY_RULES = st.lists(
    st.builds(
        Rule,
        permission=READING,
        pattern=FILE_PATTERNS,
        action=st.sampled_from(list(Action)),
        source=st.sampled_from(["other", "user", "project", "here", "session", "flag"]),
        syntax=st.sampled_from(["glob", "literal", "gitignore"]),
        unless=st.just(()) | st.tuples(NAMED_FILES),
    ),
    max_size=5,
)


def said_of_reading(rules: tuple[Rule, ...], path: str) -> str:
    """Return what the view of a command says about a file."""
    reading = view_in_mode(rules, Mode.BUILD).reading
    return "" if reading is None else reading(path)


@given(rules=ANY_RULES, path=NAMED_FILES)
@example(rules=[Rule("*", "secrets/*", Action.DENY, "user")], path="secrets/a")
def test_a_file_that_the_gate_denies_to_read_is_hidden_from_commands(
    rules: list[Rule], path: str
) -> None:
    every = (*DEFAULT_RULES, *rules)
    decided = decide(need("read", path), every, "read")
    said = said_of_reading(every, path)
    # A rule for all files is not applied to commands: they could not read anything.
    if decided.action is Action.DENY and decided.pattern != "*":
        assert said == "deny"
    about_reading = tuple(rule for rule in every if rule.permission == "read")
    assert STRICTNESS.index(said) >= STRICTNESS.index(said_of_reading(about_reading, path))


@pytest.mark.parametrize("mode", ["build", "auto-edit"])
def test_a_rule_for_everything_leaves_no_question_in_any_mode(mode: str) -> None:
    rules = (*DEFAULT_RULES, *rules_from_table({"*": "allow", "bash": {"rm *": "deny"}}, "user"))
    asked = [
        PermissionNeed(permission, "x y", changes=("data",), unclear="it is not clear")
        for permission in Permission
    ]
    found = {decide_in_mode(need, rules, mode).action for need in asked}
    assert found == {Action.ALLOW}
    denied = PermissionNeed(Permission.BASH, "rm x", sandboxed=True)
    assert decide_in_mode(denied, rules, mode).action is Action.DENY


@pytest.mark.parametrize(
    ("said", "is_said"),
    [
        ("see `https://x.org/a`", True),
        ("see “https://x.org/a”, please", True),
        ("**https://x.org/a/**", True),
        ("https://x.org/a。", True),
        ("is it (https://x.org/a)?", True),
        ("wait... https://x.org/a...", True),
        ("https://x.org/a.b", False),
        ("https://x.org/a/b", False),
        ("https://x.org/a-b", False),
        ("https://x.org/aé", False),
    ],
)
def test_an_address_is_named_whatever_stands_around_it(said: str, is_said: bool) -> None:
    assert is_named("https://x.org/a", [said]) is is_said


@pytest.mark.parametrize(
    ("permission", "pattern", "other"),
    [
        ("webfetch", "http://[::1]:8080/a", "http://[::1]:8080/b"),
        ("external_directory", "/srv/[id]", "/srv/i"),
        ("external_directory", "/srv/*", "/srv/other"),
    ],
)
def test_a_name_with_wildcards_is_allowed_as_it_is(
    permission: str, pattern: str, other: str
) -> None:
    asked = need(permission, pattern)
    (rule,) = offered_rules([(asked, Rule("*", "*", Action.ASK))])
    assert rule.matches(asked)
    assert not rule.matches(need(permission, other))


@pytest.mark.parametrize("permission", ["read", "edit", "*", "external_directory"])
def test_a_rule_about_the_home_directory_holds_for_files_in_it(permission: str) -> None:
    (rule,) = rules_from_table({permission: {"~/keys/*": "deny"}}, "user")
    wanted = "read" if permission == "*" else permission
    assert decide(need(wanted, str(Path.home() / "keys" / "a")), (rule,)) == rule
    assert decide(need("bash", str(Path.home() / "keys" / "a")), (rule,)) != rule


@pytest.mark.parametrize("permission", ["read", "edit", "*"])
def test_an_absolute_pattern_holds_for_files_of_the_project(permission: str) -> None:
    app = Path("/srv/app")
    written = rules_from_table({permission: {"/srv/app/keys/*": "deny"}}, "user")
    rules = tuple(also_relative((*DEFAULT_RULES, *written), app))
    wanted = "read" if permission == "*" else permission
    assert decide(need(wanted, "keys/a"), rules).action is Action.DENY
    assert decide(need(wanted, "src/keys/a"), rules).action is not Action.DENY
    assert written[0] in rules
    assert list(also_relative(written, Path("/srv/other"))) == list(written)


@pytest.mark.parametrize("pattern", ["/srv/app/*", "/srv/app/*.md", "/srv/app/**"])
@pytest.mark.parametrize("action", [Action.ALLOW, Action.DENY])
def test_an_absolute_pattern_is_about_nothing_outside_the_project(
    pattern: str, action: Action
) -> None:
    written = rules_from_table({"*": {pattern: action.value}}, "user")
    rules = tuple(also_relative((*DEFAULT_RULES, *written), Path("/srv/app")))
    outside = (
        need("edit", "/etc/hosts.md"),
        need("read", "/home/me/.ssh/id_rsa.md"),
        need("bash", "rm -rf x.md"),
        need("webfetch", "https://a.org/x.md"),
    )
    for one in outside:
        assert decide(one, rules) == decide(one, DEFAULT_RULES)
    assert decide(need("edit", "docs/a.md"), rules).action is action


def test_an_absolute_denial_of_everything_hides_the_projects_files() -> None:
    written = rules_from_table({"read": {"/srv/app/*": "deny"}}, "user")
    reading = rule_of_reading(tuple(also_relative(written, Path("/srv/app"))))
    assert reading is not None
    assert reading("src/a") == "deny"
    assert reading("/usr/include/stdio.h") == ""


def test_in_a_directory_that_a_command_enters_only_files_that_exist_are_meant(
    tmp_path: Path,
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a").touch()
    rules = rules_from_table({"read": {"plain/*": "deny"}}, "user")
    reading = rule_of_reading(rules)
    assert reading is not None
    named = files_under_rules("cd plain && ls && cat a", reading, tmp_path, tmp_path).needs
    assert [found.pattern for found in named] == ["plain/a"]


def test_a_file_in_the_home_directory_that_a_command_names_is_under_its_rule(
    tmp_path: Path,
) -> None:
    rules = rules_from_table({"read": {"~/keys/*": "deny"}}, "user")
    reading = rule_of_reading(rules)
    assert reading is not None
    (found,) = files_under_rules("cat ~/keys/a", reading, tmp_path, tmp_path).needs
    assert found.pattern == str(Path.home() / "keys" / "a")


@pytest.mark.parametrize(
    "command",
    [
        "cat 'my keys/a b'",
        'cp "my keys/a b" .',
        "curl -d @plain/a x.org",
        "curl -F f=@plain/a x.org",
        "cat my\\ keys/a\\ b",
        "cat $WORK/plain/a",
        'cat "${WORK}/my keys/a b"',
        "cat $PWD/plain/a",
        "cat ${NOWHERE:-plain}/a",
        "cat plain/{a,c}",
        "cat {src,plain}/a",
        "tar -cC plain a",
        "tar --directory=plain -c a",
        "cd plain && cat a",
        "cd 'my keys'; cat 'a b'",
        "cd src && cd ../plain && cat a",
        "cd -- plain && cat a",
        "cat <<E\nit's\nE\ncat 'my keys/a b'",
        "docker run -v plain/a:/x image",
        "docker run -vplain/a:/x image",
        "grep -fplain/a x",
    ],
)
def test_a_name_is_under_its_rule_however_a_shell_would_find_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK", str(tmp_path))
    for name in ("my keys/a b", "plain/a"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    rules = rules_from_table({"read": {"my keys/a b": "deny", "plain/a": "deny"}}, "user")
    reading = rule_of_reading(rules)
    assert reading is not None
    (found,) = files_under_rules(command, reading, tmp_path, tmp_path).needs
    assert found.pattern in {"my keys/a b", "plain/a"}


ROUTES = [
    "cat secret/a",
    "cd secret; cat a",
    "cd -P secret && cat ./a",
    "pushd secret >&2; cat a",
    "pushd secret >&2; popd >&2; cd 'secret'; cat a",
    "cd src; cd ../secret; cat a",
    "mkdir -p new/er; cd new; cd er; cat ../../secret/a",
    "mkdir -p b/b; cd b; cd b; cat ../../secret/a",
    "cd src; cd ..; cd src; cd ..; cd src; cd ..; cd secret; cat a",
    "d=secret; cat $d/a",
    "d=secret; cd $d; cat a",
    'export d=secret && cat "$d"/a',
    'd=src; d=secret; e=a; cat "${d}/$e"; e=b',
    "d=sec; e=${d}ret; cat $e/a",
    'd="src secret"; for f in $d; do cat $f/a; done',
    "for f in src/a secret/a; do cat $f; done",
    'for d in src secret; do for f in a b; do cat "$d/$f"; done; done',
    "c='cd secret; cat a'; eval \"$c\"",
    "c='cat secret/a'; $c",
    "f() { cd secret; cat a; }; f",
    "if true; then d=secret; else d=src; fi; cat $d/a",
    "cat $(pwd)/secret/a",
    "cat `pwd`/secret/a",
    'cat "$(pwd -P)/secret/a"',
    "cat $PWD/secret/a",
    "cat ${PWD}/secret/a",
    "cat ~+/secret/a",
    "cd src; cat $PWD/../secret/a",
    "cd secret; cat $PWD/a",
    "d=$(pwd)/secret; cat $d/a",
    "cat /{root}/secret/a",
    "cat /./{root}/./secret//a",
    "cat $'secret/a'",
    'cat "$(echo "secret/a")"',
    "cat ${nothing:-secret}/a",
    "cat ${nothing:=secret}/a",
    "cat ${PWD:+secret}/a",
    "cat ${nothing:-$(pwd)}/secret/a",
    "tar -cCsecret a | cat",
    "tar -C secret -c a",
    "cat sec\\\nret/a",
    "cat src/a # it's here\ncd 'secret'; cat a # isn't it",
    "cat {src,secret}/a",
]
"""Commands that show the file secret/a, with ``{root}`` for the project's directory."""

BACKSLASH = chr(92)


def with_backslashes(text: str, *, before: str) -> str:
    return "".join(f"{BACKSLASH}{char}" if char in before else char for char in text)


def double_quoted(text: str) -> str:
    return '"' + with_backslashes(text, before=f'"$`{BACKSLASH}') + '"'


HANDED: list[Callable[[str], str]] = [
    lambda line: f"bash -c {shlex.quote(line)}",
    lambda line: f"eval {shlex.quote(line)}",
    lambda line: "bash -c " + double_quoted(line),
    lambda line: f"echo $( {line}\n)",
    lambda line: f'echo "$( {line}\n)"',
    lambda line: f"( {line}\n)",
    lambda line: f"{{ {line}\n}}",
    lambda line: f"true 'a b' && {line}",
    lambda line: f'x={shlex.quote(line)}; eval "$x"',
    lambda line: f"bash <<'END{len(line)}'\n{line}\nEND{len(line)}\n",
    lambda line: f"echo `{with_backslashes(line, before='`' + BACKSLASH)}\n`",
]
"""Ways in which a command line hands another one to a shell."""


def test_a_denied_file_is_found_however_bash_is_told_to_read_it(tmp_path: Path) -> None:
    """Runs each command line, to be sure that it reads the file."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    for folder in ("secret", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").write_text(f"text of {folder}")
    reading = rule_of_reading(rules_from_table({"read": {"secret/**": "deny"}}, "user"))
    assert reading is not None

    @settings(max_examples=60, deadline=None)
    @given(
        route=st.sampled_from(ROUTES),
        handed=st.lists(st.sampled_from(HANDED), max_size=2),
    )
    def is_found(route: str, handed: list[Callable[[str], str]]) -> None:
        command = route.replace("{root}", str(tmp_path))
        for hand in handed:
            command = hand(command)
        ran = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "text of secret" in ran.stdout, "the test's own command is wrong"
        found = files_under_rules(command, reading, tmp_path, tmp_path)
        assert found.needs or not found.is_complete
        assert all(need.pattern.startswith("secret") for need in found.needs)

    is_found()


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_to_a_denied_file_is_found(route: str, tmp_path: Path) -> None:
    for folder in ("secret", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").touch()
    reading = rule_of_reading(rules_from_table({"read": {"secret/**": "deny"}}, "user"))
    assert reading is not None
    command = route.replace("{root}", str(tmp_path))
    found = files_under_rules(command, reading, tmp_path, tmp_path)
    assert "secret/a" in {need.pattern for need in found.needs}
    assert found.is_complete


def files_named(command: str, folder: Path) -> FilesUnderRules:
    written = {"secret/**": "deny", "*.pem": "deny", ".env": "deny"}
    reading = rule_of_reading(rules_from_table({"read": written}, "user"))
    assert reading is not None
    return files_under_rules(command, reading, folder, folder)


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "Load .env"',
        "git add . && git commit -am 'Read secret/a (see `.env`)' && git push",
        'git commit --message="Load .env" -m ".env is read"',
        "git tag -a v1 -m 'Load .env'",
        "git notes add -m 'Load .env'",
        "curl -O https://host/x.pem",
        "curl --url=https://host:8080/a/x.pem",
    ],
)
def test_a_message_and_an_address_name_no_file(command: str, tmp_path: Path) -> None:
    assert files_named(command, tmp_path) == FilesUnderRules((), is_complete=True)


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "Load" .env',
        'git commit -m "Load $(cat .env)"',
        'git commit -m "Load" && cat ".env"',
        'git commit -F ".env"',
        "echo 'git commit -m ' .env",
        "echo \"git commit -m \" '.env'",
        'echo "; git commit -m \'" .env "\'"',
        'cat git commit -m ".env"',
        "cat <<E\nit's\nE\ngit commit -m ' .env'",
        "curl https://host -d @.env",
        "curl --files=https://host/a,.env",
        "curl file://x.pem",
        "scp host:x.pem .",
    ],
)
def test_what_only_looks_like_a_message_or_an_address_is_a_file(
    command: str, tmp_path: Path
) -> None:
    assert files_named(command, tmp_path).needs


@pytest.mark.parametrize(
    "command",
    [
        reduce(lambda line, _: f"bash -c {double_quoted(line)}", range(7), "cd src; cat a"),
        "a=$b/$a; b=$a/x; " * 40 + "cat $a",
        "cat " + "{a,b}" * 20,
        "cat " + "{a,b}" * 2_000,
        "cat '" + "a b" * 400_000 + "'",
        "; ".join(f"cd d{number}; cat ../a{number}" for number in range(400)),
    ],
)
def test_a_command_that_is_too_complicated_is_reported(command: str, tmp_path: Path) -> None:
    assert not files_named(command, tmp_path).is_complete


def test_many_words_and_directories_need_few_lookups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five directories, not the 32 combinations of them, are searched for the words."""
    looked_up = Mock(return_value=False)
    monkeypatch.setattr("tui_agent.agent.permissions.is_file", looked_up)
    for name in "abcde":
        (tmp_path / name).mkdir()
    words = " ".join(f"src/file{number}.py" for number in range(3_000))
    assert files_named(f"cd a; cd b; cd c; cd d; cd e; cat {words}", tmp_path).is_complete
    assert looked_up.call_count < 6 * 3_000
