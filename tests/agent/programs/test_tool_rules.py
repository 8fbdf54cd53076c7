"""Claude Code's rules and lists of tools decide here as its documents say."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.knowledge import folders, knowledge, skill, write
from tests.support.thoroughness import examples
from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide, refusal_of_tool
from tui_agent.agent.programs.tool_rules import (
    Anchor,
    ForeignRuleError,
    allowed_tools,
    rules_of,
)
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.resources import prompt
from tui_agent.tools.registry import BUILTIN

ANCHOR = Anchor(folder="web", settings="", project="/srv/app", home="/home/ann")


def is_denied(rule: str, permission: str, pattern: str, tool: str = "") -> bool:
    rules = (*DEFAULT_RULES, *rules_of(rule, Action.DENY, "user", ANCHOR))
    need = PermissionNeed(Permission(permission), pattern)
    return (
        decide(need, rules, tool).action is Action.DENY or refusal_of_tool(tool, rules) is not None
    )


@pytest.mark.parametrize(
    ("rule", "permission", "pattern", "matches"),
    [
        ("Bash", "bash", "make", True),
        ("Bash(*)", "bash", "make", True),
        ("Bash(npm run build)", "bash", "npm run build", True),
        ("Bash(npm run build)", "bash", "npm run build --watch", False),
        ("Bash(npm run *)", "bash", "npm run test", True),
        ("Bash(npm run *)", "bash", "npm run", True),
        ("Bash(npm run *)", "bash", "npm runner", False),
        ("Bash(npm run:*)", "bash", "npm run test", True),
        ("Bash(npm run:*)", "bash", "npm runner", False),
        ("Bash(ls*)", "bash", "lsof", True),
        ("Bash(ls *)", "bash", "lsof", False),
        ("Bash(git * main)", "bash", "git push origin main", True),
        ("Bash(git * main)", "bash", "git push origin dev", False),
        ("Bash(* --help *)", "bash", "npm --help x", True),
        ("Bash(cat [a]?)", "bash", "cat ab", False),
        ("Bash(cat [a]?)", "bash", "cat [a]?", True),
        ("Read", "read", "a.py", True),
        ("Read(./secrets/**)", "read", "web/secrets/a/b.txt", True),
        ("Read(./secrets/**)", "read", "secrets/a.txt", False),
        ("Read(secrets/**)", "read", "web/secrets/a.txt", True),
        ("Read(/secrets/**)", "read", "secrets/a.txt", True),
        ("Read(/secrets/**)", "read", "web/secrets/a.txt", False),
        ("Read(*.env)", "read", "web/deep/x.env", True),
        ("Read(.env)", "read", "web/.env", True),
        ("Read(.env)", "read", ".env", False),
        ("Read(//etc/**)", "read", "/etc/passwd", True),
        ("Read(//etc/**)", "read", "etc/passwd", False),
        ("Read(//srv/app/config/*)", "read", "config/prod.json", True),
        ("Read(~/.ssh/**)", "read", "/home/ann/.ssh/id_rsa", True),
        ("Read(src/*.py)", "read", "web/src/a.py", True),
        ("Read(src/*.py)", "read", "web/src/deep/a.py", False),
        ("Edit(/docs/**)", "edit", "docs/a.md", True),
        ("Write(/docs/**)", "edit", "docs/a.md", True),
        ("Edit", "edit", "any.py", True),
        ("WebFetch(domain:example.com)", "webfetch", "https://example.com/a?b", True),
        ("WebFetch(domain:example.com)", "webfetch", "http://example.com:8080", True),
        ("WebFetch(domain:example.com)", "webfetch", "https://sub.example.com/", False),
        ("WebFetch(domain:example.com)", "webfetch", "https://evil.test/example.com", False),
        ("WebFetch(domain:*.example.com)", "webfetch", "https://sub.example.com/", True),
        ("mcp__git__push", "mcp", "git_push", True),
        ("mcp__git__push", "mcp", "git_pull", False),
        ("mcp__git", "mcp", "git_pull", True),
        ("mcp__git__*", "mcp", "git_pull", True),
        ("mcp__git__get_*", "mcp", "git_get_log", True),
        ("mcp__git__get_*", "mcp", "git_set", False),
        ("mcp__git", "mcp", "github_push", False),
        ("Agent(deploy)", "task", "deploy", True),
        ("Agent(deploy)", "task", "explore", False),
        ("Task", "task", "explore", True),
        ("Skill(release)", "skill", "release", True),
        ("Skill(release *)", "skill", "release", True),
        ("Skill(release)", "skill", "other", False),
        ("WebSearch", "websearch", "trees", True),
    ],
)  # fmt: skip
def test_a_rule_matches_what_its_author_meant(
    rule: str, permission: str, pattern: str, matches: bool
) -> None:
    assert is_denied(rule, permission, pattern) is matches


@pytest.mark.parametrize(
    ("rule", "tool"), [("Task", "task"), ("TodoWrite", "todo"), ("Grep", "grep")]
)
def test_a_tool_alone_is_denied_by_its_name(rule: str, tool: str) -> None:
    assert is_denied(rule, "task", "explore", tool)


@pytest.mark.parametrize(
    "rule",
    ["Bash(", "Unknown(x)", "*", "Read Grep", "WebFetch(example.com)", "TodoWrite(x)", "mcp__"],
)
def test_what_means_nothing_is_refused_by_name(rule: str) -> None:
    with pytest.raises(ForeignRuleError) as refused:
        rules_of(rule, Action.DENY, "user", ANCHOR)
    assert str(refused.value)


# -- lists of tools ------------------------------------------------------------------------------------------


def agent(
    tmp_path: Path, front: str, place: str = "home/.claude/agents/reader.md"
) -> tuple[AgentSpec, list[str]]:
    write(tmp_path / place, f"---\nname: reader\ndescription: reads\n{front}\n---\nprompt")
    problems: list[str] = []
    found = load_specs(folders(tmp_path), prompt, problems=problems)
    return next(spec for spec in found if spec.name == "reader"), problems


def test_a_list_with_parentheses_gives_the_named_tools_and_no_others(tmp_path: Path) -> None:
    reader, problems = agent(tmp_path, "tools: Read, Grep, Bash(git * main)")
    assert [name for name in BUILTIN if reader.allows(name)] == ["read", "bash", "grep"]
    assert problems == []
    rules = (*DEFAULT_RULES, *reader.rules)
    assert decide(PermissionNeed(Permission.BASH, "rm -r x"), rules).action is Action.DENY
    assert decide(PermissionNeed(Permission.BASH, "git log main"), rules).action is not Action.DENY
    unclear = PermissionNeed(Permission.BASH, "git $(x) main", unclear="it can't be parsed")
    assert decide(unclear, rules).action is Action.DENY


def test_a_denied_part_of_a_tool_leaves_the_rest(tmp_path: Path) -> None:
    reader, problems = agent(tmp_path, "disallowedTools: Bash(git * --force), Write")
    assert [name for name in BUILTIN if not reader.allows(name)] == ["write"]
    assert problems == []
    rules = (*DEFAULT_RULES, *reader.rules)
    assert decide(PermissionNeed(Permission.BASH, "git push --force"), rules).action is Action.DENY
    assert decide(PermissionNeed(Permission.BASH, "git push"), rules).action is not Action.DENY


def test_agents_in_folders_count_and_a_servers_tool_is_taken_by_its_name(tmp_path: Path) -> None:
    reader, problems = agent(
        tmp_path, "tools: [mcp__git__log, Nonsense]", "home/.claude/agents/team/reader.md"
    )
    assert reader.allows("git_log")
    assert not reader.allows("git_push")
    assert not any(reader.allows(name) for name in BUILTIN)
    assert "Nonsense" in problems[0]


def test_fields_without_an_effect_are_known(tmp_path: Path) -> None:
    reader, _problems = agent(
        tmp_path, "maxTurns: 4\npermissionMode: acceptEdits\nmemory: user\nmodel: haiku"
    )
    assert reader.max_steps == 4
    assert reader.unused == ("memory", "model", "permissionMode")


def test_an_agent_has_the_skills_that_its_file_names_and_may_be_held_to_planning(
    tmp_path: Path,
) -> None:
    skill(tmp_path / "home/.claude/skills", "release", body="Bump it.")
    write(
        tmp_path / "home/.claude/agents/shipper.md",
        "---\ndescription: d\nskills: release, gone\npermissionMode: plan\n---\nYou ship.",
    )
    loaded = knowledge(tmp_path)
    shipper = next(spec for spec in loaded.specs if spec.name == "shipper")
    assert shipper.prompt is not None
    assert shipper.prompt.startswith("You ship.\n\nBump it.")
    assert shipper.plans_only
    assert loaded.problems == ("Agent shipper: there is no skill gone.",)


READING = (
    "Read",
    "Grep",
    "Glob",
    "LS",
    "Bash(git log *)",
    "Read(src/**)",
    "mcp__docs__search",
    "Skill(a b)",
    "TodoWrite",
)
DEBRIS = st.text(alphabet="*?[](){},| abRW:/.\\-_", max_size=12).filter(
    lambda text: not any(word in text.lower() for word in ("edit", "write"))
)


@settings(max_examples=examples(300))
@given(
    st.lists(st.one_of(st.sampled_from(READING), DEBRIS), max_size=6),
    st.sampled_from([", ", " ", ",", "\t"]),
)
def test_no_list_without_a_writing_tool_gives_one(pieces: list[str], separator: str) -> None:
    for value in (separator.join(pieces), pieces):
        found = allowed_tools(value, "user", own=False)
        spec = AgentSpec("reader", "reads", tools=found.names, rules=found.rules)
        assert not {"edit", "write"} & {name for name in BUILTIN if spec.allows(name)}
