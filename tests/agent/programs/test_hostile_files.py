"""Files of other programs may hold anything: nothing raises or hangs, and an untrusted project lets nothing act."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.knowledge import folders, write
from tests.support.thoroughness import examples
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide
from tui_agent.agent.programs.hooks import foreign_hooks
from tui_agent.agent.programs.settings import read_programs
from tui_agent.agent.programs.tool_rules import allowed_tools
from tui_agent.foreign_servers import (
    mark_disabled,
    servers_of_project,
    servers_of_user,
)
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.places import LeftOut
from tui_agent.trust import TrustStore, project_state

FILES = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".mcp.json",
    ".pi/mcp.json",
    "opencode.json",
    ".opencode/opencode.jsonc",
)
WORDS = (
    "permissions", "permission", "allow", "ask", "deny", "additionalDirectories", "env", "hooks", "PreToolUse",
    "matcher", "command", "timeout", "if", "mcp", "mcpServers", "mcp_servers", "args", "url", "headers", "http_headers",
    "environment", "instructions", "bash", "read", "edit", "Read(x)", "Bash(git *)", "Read(\\)", "Read(//)", "~x/y",
    "type", "prompt", "disabledMcpjsonServers", "project_doc_fallback_filenames", "agent", "command", "enabled",
    "*", "", "a", ".", "**x", "\ud800", "\0",
)  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.just(10**400)
    | st.sampled_from(WORDS)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)
TABLES = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=4)
HOOKS = st.builds(
    lambda row: {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [row]}]}},
    st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=4),
)
SERVERS = st.builds(
    lambda key, row: {key: {"a": row}},
    st.sampled_from(("mcp", "mcpServers", "mcp_servers")),
    st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=5),
)
CONTENTS = TABLES | VALUES | HOOKS | SERVERS


def read_all(tmp_path: Path, *, trusted: bool = False) -> None:
    """Read everything as a start below the root does, and ask the rules."""
    (tmp_path / "project/sub").mkdir(parents=True, exist_ok=True)
    places = folders(tmp_path, cwd="sub")
    project_state(places.project, TrustStore(tmp_path / "trust.json"))
    read = read_programs(places, trusted=trusted)
    for permission, pattern in (
        ("read", "a/x"),
        ("bash", "git x"),
        ("webfetch", "https://a.test/"),
        ("edit", "x"),
    ):
        decide(PermissionNeed(Permission(permission), pattern), (*DEFAULT_RULES, *read.rules))
    hooks = list(foreign_hooks(places.project, places.home, LeftOut(), trusted=trusted))
    found = servers_of_project(places.project, places.upward())
    list(mark_disabled(found, places.home, places.project))
    list(servers_of_user(places.home, places.project))
    if not trusted:
        assert not [rule for rule in read.rules if rule.action is Action.ALLOW]
        assert not read.environment
        assert not hooks


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FILES), CONTENTS)
def test_no_value_raises_or_lets_an_untrusted_project_act(name: str, value: object) -> None:
    with tempfile.TemporaryDirectory() as place:
        write(Path(place) / "project" / name, json.dumps(value))
        read_all(Path(place))
        read_all(Path(place), trusted=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".codex/config.toml", "[mcp_servers.a]\ncommand = 'x'\nargs = 3\nhttp_headers = 3\n"),
        (".codex/config.toml", f"a = {'[' * 5_000}{']' * 5_000}"),
        (".tui-agent/config.toml", f"{'a.' * 5_000}a = 1"),
        (".mcp.json", '{"mcpServers": {"a": {"command": "x", "args": 3}}}'),
        (".mcp.json", "[" * 100_000),
        ("opencode.json", "/* " * 80_000),
        ("opencode.json", '\\"' * 100_000),
        ("opencode.json", '\\"' * 100_000 + "\\"),
        (
            ".claude/settings.json",
            json.dumps({"permissions": {"deny": [f"x{i}" for i in range(200_000)]}}),
        ),
        (
            ".claude/settings.json",
            json.dumps({"permissions": {"deny": [f"Read({'*a' * 20}*b)", "Read(a\\)"]}}),
        ),
        (
            ".claude/settings.json",
            json.dumps({"permissions": {"deny": [f"Read({'**/a/' * 20}b)"]}}),
        ),
        ("CLAUDE.md", f" @../x\n{'*a _b `c [d](e) ' * 200_000}"),
    ],
    ids=[
        "types",
        "deep-toml",
        "dotted-toml",
        "arguments",
        "deep-json",
        "comments",
        "quotes",
        "backslash",
        "rules",
        "stars",
        "double-stars",
        "markdown",
    ],
)
def test_large_deep_and_odd_files_are_read_at_once(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / "project" / name, text)
    read_all(tmp_path)
    decide_long = PermissionNeed(Permission.READ, "a" * 200)
    decide(decide_long, (*DEFAULT_RULES, *read_programs(folders(tmp_path), trusted=False).rules))


def loaded(tmp_path: Path, *instructions: str) -> Knowledge:
    knowledge = Knowledge(
        Sources(folders(tmp_path), instructions=instructions), trusted=lambda: True
    )
    knowledge.load()
    return knowledge


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{letter}: &{letter} [{','.join([f'*{before}'] * 9)}]\n"
    for before, letter in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    "fields",
    [f"{BOMB}description: *j", f"description: {'[' * 4_000}{']' * 4_000}", "description: &a [*a]"],
)
def test_front_matter_that_grows_is_refused_and_named(tmp_path: Path, fields: str) -> None:
    write(tmp_path / "project/.claude/skills/x/SKILL.md", f"---\n{fields}\n---\nDo it.")
    knowledge = loaded(tmp_path)
    assert not knowledge.skills
    assert "too many values" in knowledge.problems[0]


def test_a_date_that_there_is_not_is_a_text(tmp_path: Path) -> None:
    write(
        tmp_path / "project/.claude/skills/x/SKILL.md", "---\ndescription: 2020-99-99\n---\nDo it."
    )
    assert loaded(tmp_path).skills["x"].description == "2020-99-99"


def test_comments_without_end_take_no_time(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", f"{'<!---->' * 2_000}x")
    assert loaded(tmp_path).instructions[0].text.endswith("x")


def test_a_pattern_of_a_rule_with_many_stars_is_named(tmp_path: Path) -> None:
    write(tmp_path / "project/.claude/rules/x.md", f"---\npaths: '{'*a' * 20}b'\n---\nHi.")
    assert "too many asterisks" in loaded(tmp_path).problems[0]


def test_instructions_are_looked_for_without_following_links_in_circles(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project / "docs/deep/a.md", "A.")
    write(project / "docs/.hidden/b.md", "B.")
    for name in "xyz":
        (project / name).symlink_to(".")
    assert [item.name for item in loaded(tmp_path, "**/*.md").instructions] == ["docs/deep/a.md"]
    assert "nothing matches" in loaded(tmp_path, "**/none.md").problems[0]


def test_commands_deeper_than_trust_looks_are_not_read(tmp_path: Path) -> None:
    """What is not part of what the user trusted would change unasked."""
    commands = tmp_path / "project/.claude/commands"
    write(commands / "/".join("abcdefgh") / "known.md", "Do it.")
    write(commands / "/".join("abcdefghij") / "deep.md", "Do it.")
    assert [command.name for command in loaded(tmp_path).commands] == ["a:b:c:d:e:f:g:h:known"]
    state = project_state(tmp_path / "project", TrustStore(tmp_path / "trust.json"))
    assert [item.name.rpartition("/")[2] for item in state.items] == ["known.md"]


def test_another_programs_question_does_not_overrule_a_denial(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.claude/settings.json",
        json.dumps({"permissions": {"deny": ["Bash(curl *)"]}}),
    )
    write(tmp_path / "project/opencode.json", json.dumps({"permission": {"bash": "ask"}}))
    rules = read_programs(folders(tmp_path), trusted=False).rules
    assert (
        decide(PermissionNeed(Permission.BASH, "curl x"), (*DEFAULT_RULES, *rules)).action
        is Action.DENY
    )


@pytest.mark.parametrize(
    ("table", "command", "action"),
    [
        ({"git *": "allow", "git push *": "deny"}, "git push x", Action.DENY),
        ({"git push *": "deny", "git *": "allow"}, "git push x", Action.ASK),
        ({"*": "deny", "git *": "ask"}, "git push x", Action.ASK),
        ({"*": "deny", "git *": "ask"}, "curl x", Action.DENY),
        ({"git *": "ask", "git push *": "deny"}, "git push x", Action.DENY),
    ],
)
def test_of_opencodes_patterns_the_last_that_matches_counts(
    tmp_path: Path, table: dict[str, str], command: str, action: Action
) -> None:
    write(
        tmp_path / "home/.config/opencode/opencode.json",
        json.dumps({"permission": {"bash": table}}),
    )
    rules = read_programs(folders(tmp_path), trusted=False).rules
    assert (
        decide(PermissionNeed(Permission.BASH, command), (*DEFAULT_RULES, *rules)).action is action
    )


def test_the_question_for_trust_names_what_codexs_hooks_run(tmp_path: Path) -> None:
    table = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "touch gone"}]}]}}
    write(tmp_path / "project/.codex/hooks.json", json.dumps(table))
    state = project_state(tmp_path / "project", TrustStore(tmp_path / "trust.json"))
    assert [(item.kind, item.text) for item in state.items] == [("hook", "runs touch gone")]


def test_a_wrong_row_of_opencodes_table_takes_no_other_along(tmp_path: Path) -> None:
    table = {"": "ask", "curl *": "deny", "x": ["deny"]}
    write(tmp_path / "project/opencode.json", json.dumps({"permission": {"bash": table}}))
    read = read_programs(folders(tmp_path), trusted=False)
    assert (
        decide(PermissionNeed(Permission.BASH, "curl x"), (*DEFAULT_RULES, *read.rules)).action
        is Action.DENY
    )
    assert len([item for item in read.items if item.why]) == 2


def test_a_long_name_of_an_import_is_told_in_one_short_line(tmp_path: Path) -> None:
    write(tmp_path / "project/CLAUDE.md", f"@{'a/' * 3_000}x.md")
    assert len(loaded(tmp_path).problems[0]) < 200


@pytest.mark.parametrize("piece", ["WebFetch(x)", "Read(a\\)", f"Edit({'*a' * 20})"])
def test_a_list_of_tools_leaves_out_a_piece_that_means_nothing(piece: str) -> None:
    found = allowed_tools(f"Grep, {piece}", "other", own=False)
    assert found.names == ("grep",)
    assert found.rules == ()
    assert "left out" in found.problems[0]


def test_an_address_among_the_instructions_is_named(tmp_path: Path) -> None:
    """OpenCode reads them; here only files are."""
    (problem,) = loaded(tmp_path, "https://example.com/rules.md").problems
    assert (
        problem
        == "instructions: web addresses are not read; save https://example.com/rules.md as a file."
    )
