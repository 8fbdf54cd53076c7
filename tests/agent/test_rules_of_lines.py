"""What a rule about one command lets the other commands and the redirections of its line change."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agent.test_sandboxed_agent import NO, ONCE, command, make_held, requests, works
from tests.support.agents import Harness, make_agent
from tests.support.hooks import from_settings
from tests.support.scripted_client import Reply
from tests.support.tooling import Workspace
from tui_agent.agent.events import Decision, PermissionAnswer
from tui_agent.agent.gate import Gate, needs_of
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.permissions import (
    DEFAULT_RULES,
    Action,
    Rule,
    decide,
    in_words,
    parse_rule,
)
from tui_agent.app.permission_text import details_of
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.sandbox import Sandbox, SandboxState
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.sandbox.view import Grants
from tui_agent.session.entries import ToolStatus
from tui_agent.tools.bash import BashInput, BashTool

ALWAYS = PermissionAnswer(Decision.SESSION)
WRITES_README = "python3 -c \"open('README.md', 'w').write('x')\""


def allowed(*texts: str) -> tuple[Rule, ...]:
    """Return the built-in rules and rules of the command line that allow something."""
    return (*DEFAULT_RULES, *(parse_rule(text, Action.ALLOW) for text in texts))


def read(harness: Harness, name: str) -> str | None:
    """Return the text of a file of the session's project; None if there is no such file."""
    path = Path(harness.session.info.cwd) / name
    return path.read_text() if path.exists() else None


async def run(tmp_path: Path, *lines: str, **given: Any) -> Harness:
    harness = make_held(tmp_path, *lines, **given)
    await harness.say("go")
    return harness


# -- one command for all ------------------------------------------------------------------------------------

OTHERS = (
    "echo y; rm README.md",
    f"echo y; {WRITES_README}",
    "echo y && tee README.md < src/app.py",
    "echo y | tee README.md",
    "echo README.md | xargs rm; echo y",
    "echo y | xargs rm README.md",
    "echo y; (echo x) > README.md",
    "echo y > README.md",
    "echo y >> README.md; echo y",
    "echo y; echo y 2> README.md",
    "echo y | sort -o README.md",
    "echo y; cat > README.md <<EOF\nx\nEOF",
    "if echo y; then cp src/app.py README.md; fi",
    "echo y; echo $(rm README.md)",
)


@works
@pytest.mark.parametrize("line", OTHERS)
async def test_a_rule_for_one_command_lets_the_rest_of_its_line_change_nothing(
    tmp_path: Path, line: str
) -> None:
    harness = await run(tmp_path, line, answer=NO, rules=allowed("bash:echo y"))
    assert read(harness, "README.md") == "Read.\n"
    (request,) = requests(harness)
    assert "README.md" in request.reason
    assert all("echo y" not in rule for rule in request.rules)


@works
async def test_rules_for_all_commands_of_a_line_let_it_change_files(tmp_path: Path) -> None:
    rules = allowed("bash:tee *", "bash:sed *", "edit:new.txt")
    line = "cd src && echo y | tee ../README.md; sed -i s/1/2/ app.py; cd .. && cat src/app.py > new.txt"
    harness = await run(tmp_path, line, answer=NO, rules=rules)
    assert requests(harness) == [] or "new.txt" in str(requests(harness)[0].rules)
    harness = await run(
        tmp_path / "b", line.replace("cd .. && cat src/", "cat "), answer=NO, rules=allowed(*RULES)
    )
    assert requests(harness) == []
    assert [read(harness, name) for name in ("README.md", "src/app.py", "src/new.txt")] == [
        "y\n",
        "x = 2\n",
        "x = 2\n",
    ]


RULES = ("bash:tee *", "bash:sed *", "edit:*new.txt")


@works
@pytest.mark.parametrize("rule", ["bash", "bash:*", "*"])
async def test_a_rule_for_all_commands_covers_redirections(tmp_path: Path, rule: str) -> None:
    line = "echo y > README.md; tee src/app.py < README.md"
    harness = await run(tmp_path, line, answer=NO, rules=allowed(rule))
    assert requests(harness) == []
    assert read(harness, "src/app.py") == "y\n"


@works
async def test_a_rule_for_git_opens_the_repository_to_no_other_command(tmp_path: Path) -> None:
    harness = await run(
        tmp_path,
        "git checkout -q -- src; rm README.md",
        "rm .git/refs/heads/m*; git add -A",
        answer=NO,
        rules=allowed("bash:git *"),
    )
    assert read(harness, "README.md") == "Read.\n"
    assert [request.rules for request in requests(harness)] == [
        ("allow bash: rm README.md",),
        ("allow bash: rm .git/refs/heads/m[*]",),
    ]


@works
async def test_git_commands_that_only_report_need_no_rule_beside_others(tmp_path: Path) -> None:
    harness = await run(
        tmp_path,
        "git status && git diff HEAD && git add -A && git commit -q -m x && git log --oneline -1",
        "git diff --outp=README.md HEAD~1; git add -A",
        answer=NO,
        rules=allowed("bash:git add *", "bash:git commit *"),
    )
    assert [request.rules for request in requests(harness)] == [
        ("allow bash: git diff --outp=README.md HEAD~1",)
    ]
    assert read(harness, "README.md") == "Read.\n"


@works
async def test_a_hook_that_allows_a_call_allows_no_changes(tmp_path: Path) -> None:
    allow = HookSettings(event="before_tool", command='echo \'{"decision": "allow"}\'')
    hooks = Hooks(lambda: from_settings([allow], tmp_path, os.environ))
    line = "echo y > README.md; rm src/app.py"
    harness = await run(tmp_path, line, answer=NO, hooks=hooks, rules=allowed("bash:echo y"))
    (request,) = requests(harness)
    assert request.reason == "changes README.md, src/app.py (rm)"
    assert read(harness, "README.md") == "Read.\n"


@works
async def test_a_rule_about_a_secret_file_lets_nothing_else_of_the_line_change(
    tmp_path: Path,
) -> None:
    harness = await run(
        tmp_path, f"echo A=1 >> .env; {WRITES_README}", answer=NO, rules=allowed("edit:.env")
    )
    assert read(harness, "README.md") == "Read.\n"
    assert requests(harness)


def test_a_rule_with_a_command_opens_the_network_only_if_it_matches_all_commands() -> None:
    rules = allowed("network:npm install *")

    def action(*commands: str) -> Action:
        line = "; ".join(commands)
        need = PermissionNeed(
            Permission.NETWORK, "example.org", detail=line, aliases=(line,), commands=commands
        )
        return decide(need, rules).action

    assert action("npm install a") is Action.ALLOW
    assert action("npm install a", "npm install b") is Action.ALLOW
    assert action("npm install a", "curl http://example.org") is Action.ASK
    assert action("npm install a; curl http://example.org") is Action.ALLOW  # one command
    assert action() is Action.ASK


@works
async def test_a_command_that_reaches_the_network_needs_a_rule_of_its_own(tmp_path: Path) -> None:
    line = "npm --version; curl -sSf http://example.org/"
    harness = await run(tmp_path, line, answer=NO, rules=allowed("network:npm *"))
    (request,) = requests(harness)
    assert [need.pattern for need in request.needs] == ["example.org"]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return make_agent(tmp_path, []).agent.tools.gate


COMMANDS = (
    "echo y",
    "cat a.txt",
    "rm a.txt",
    "tee a.txt",
    "python3 x.py",
    "git commit -m x",
    "git checkout a.txt",
    "echo y > a.txt",
    "echo y >> b.txt",
    "cat a.txt > AGENTS.md",
    "cd sub",
    "make",
)
ALLOWING = (
    "bash:echo *",
    "bash:rm *",
    "bash:tee a.txt",
    "bash:python3 *",
    "bash:git commit *",
    "bash:git *",
    "bash:xargs *",
    "bash:make",
    "edit:a.txt",
    "edit:sub/a.txt",
    "edit:AGENTS.md",
)
LINES = st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=4)
JOINS = st.lists(
    st.sampled_from(["; ", " && ", " | ", " || ", "\n", " | xargs "]), min_size=3, max_size=3
)


@given(commands=LINES, joins=JOINS, texts=st.sets(st.sampled_from(ALLOWING)))
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_line_runs_unasked_and_changes_files_only_if_each_command_does_alone(
    tmp_path: Path, gate: Gate, commands: list[str], joins: list[str], texts: set[str]
) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True, exist_ok=True)
    (tmp_path / "project" / "a.txt").write_text("a")
    sandbox = Sandbox(SandboxSettings(), find=lambda: SandboxState("bubblewrap", "bwrap"))
    context = Workspace(tmp_path / "project", sandbox=sandbox).context()
    gate.session_rules[:] = allowed(*sorted(texts))
    line = commands[0]
    alone = [commands[0]]
    for join, text in zip(joins, commands[1:], strict=False):
        line = f"{line}{join}{text}"
        alone.append(f"xargs {text}" if "xargs" in join else text)

    def needed(text: str) -> tuple[PermissionNeed, ...]:
        return needs_of(BashTool(), BashInput(command=text), context)

    def is_unasked(needs: tuple[PermissionNeed, ...]) -> bool:
        return all(gate.decide(need, "bash").action is Action.ALLOW for need in needs)

    def opened(needs: tuple[PermissionNeed, ...]) -> Grants:
        return gate.opened_by(needs, tmp_path / "project", "bash")

    needs = needed(line)
    if not is_unasked(needs):
        return
    grants = opened(needs)
    for part in map(needed, alone):
        assert is_unasked(part)
        changing = {need.permission for need in part if need.may_change_files}
        if grants.sources and changing:
            assert opened(part).sources
        if grants.repository and Permission.BASH in changing:
            assert opened(part).sources or opened(part).repository


# -- always -------------------------------------------------------------------------------------------------

REDIRECTIONS = (
    "echo x > README.md",
    "echo x >> README.md",
    "echo x >| README.md",
    "echo x &> README.md",
    "(echo x; echo y) > README.md",
    "{ echo x; } > README.md",
    "cat src/app.py | sort > README.md",
    "cat > README.md <<'EOF'\nx\nEOF",
    "ls no-such-file 2> README.md; true",
    "cd src && echo x > ../README.md",
    ": > README.md",
)


@works
@pytest.mark.parametrize("line", REDIRECTIONS)
async def test_always_for_a_redirection_covers_only_its_file(tmp_path: Path, line: str) -> None:
    harness = make_held(
        tmp_path,
        line,
        line.replace("README.md", "new.txt"),
        line.replace("README.md", "AGENTS.md"),
        f"echo x > README.md; {WRITES_README}",
        "echo x | tee README.md",
        line,
        answer=ALWAYS,
    )
    first, *others = await _asked(harness)
    assert first.again
    assert first.reason == "changes README.md"
    assert first.rules == ("allow edit: README.md",)
    assert details_of(first) == [(line, "command")]
    reasons = [request.reason for request in others]
    assert len(reasons) == 4, reasons
    assert reasons[0] == "changes new.txt"
    assert "AGENTS.md is a file of instructions that agents follow" in reasons[1]
    assert reasons[2:] == ["changes README.md (python3)", "changes README.md (tee)"]


async def _asked(harness: Harness) -> list[Any]:
    await harness.say("go")
    return [request for request in requests(harness) if not request.loop]


@works
@pytest.mark.parametrize(
    ("line", "rule", "others"),
    [
        (
            "sed -i s/Read/x/ README.md",
            "bash: sed -i s/Read/x/ README.md",
            ("sed -i s/1/2/ src/app.py", "sed -i s/Read/x/ README.md > src/app.py"),
        ),
        (
            "tee README.md < src/app.py",
            "bash: tee README.md",
            ("tee src/app.py < .gitignore", "echo z > src/app.py; tee README.md < src/app.py"),
        ),
        (
            "cp src/app.py README.md",
            "bash: cp src/app.py README.md",
            ("cp .gitignore src/app.py", "cp src/app.py README.md; rm src/app.py"),
        ),
        (
            "echo x | sort -o README.md",
            "bash: sort -o README.md",
            ("echo x | sort -o src/app.py", "echo x | sort -o README.md > src/app.py"),
        ),
    ],
)
async def test_always_for_a_command_covers_no_other_file(
    tmp_path: Path, line: str, rule: str, others: tuple[str, ...]
) -> None:
    harness = make_held(tmp_path, line, line, *others, answer=ALWAYS)
    first, *rest = await _asked(harness)
    assert first.rules == (f"allow {rule}",)
    assert "README.md" in first.reason
    assert len(rest) == len(others)
    assert all("src/app.py" in request.reason for request in rest)


@works
async def test_a_rule_kept_for_the_project_names_the_file(tmp_path: Path) -> None:
    kept: list[Rule] = []
    harness = make_held(
        tmp_path,
        "echo x > README.md",
        "echo y > README.md",
        answer=PermissionAnswer(Decision.PROJECT),
        keep_here=kept.append,
    )
    assert len(await _asked(harness)) == 1
    assert [str(rule) for rule in kept] == ["allow edit: README.md"]
    assert read(harness, "README.md") == "y\n"


async def test_without_a_sandbox_always_for_a_redirection_names_the_file(tmp_path: Path) -> None:
    off = Sandbox(SandboxSettings.model_validate("off"))
    harness = make_agent(
        tmp_path,
        [*map(command, ("echo x > a.txt", "echo x > b.txt")), Reply("Done.")],
        answer=ALWAYS,
        sandbox=off,
    )
    first, second = await _asked(harness)
    assert [in_words(rule) for rule in first.rules] == ["edits of a.txt", "the command “echo x”"]
    assert second.reason == "it changes b.txt"


@works
async def test_a_question_names_the_files_that_the_command_changed(tmp_path: Path) -> None:
    many = "; ".join(f"echo x > new{number}.txt" for number in range(7))
    harness = make_held(
        tmp_path,
        "python3 -c \"open('README.md', 'w'); open('src/app.py', 'w')\"",
        f"sh -c '{many}'",
        answer=NO,
    )
    first, second = await _asked(harness)
    assert first.reason == "changes README.md, src/app.py (python3)"
    assert second.reason == (
        "changes new0.txt, new1.txt, new2.txt, new3.txt, new4.txt, other files (sh)"
    )


@works
@pytest.mark.parametrize("mode", ["plan", "auto-edit"])
async def test_redirections_are_asked_about_in_neither_plan_nor_auto_edit(
    tmp_path: Path, mode: str
) -> None:
    harness = make_held(tmp_path, "echo x > README.md; rm src/app.py", answer=NO, mode=mode)
    assert await _asked(harness) == []
    assert read(harness, "README.md") == ("Read.\n" if mode == "plan" else "x\n")


@works
async def test_rules_that_deny_files_hold_for_redirections(tmp_path: Path) -> None:
    rules = (*DEFAULT_RULES, Rule("edit", "src/*", Action.DENY, "user"))
    harness = make_held(
        tmp_path,
        "echo x > src/app.py",
        "cd src; echo x > app.py",
        "echo x > README.md",
        answer=ONCE,
        rules=rules,
        mode="auto-edit",
    )
    await _asked(harness)
    assert [entry.status for entry in harness.results()] == [
        ToolStatus.DENIED,
        ToolStatus.DENIED,
        ToolStatus.COMPLETED,
    ]
    assert read(harness, "src/app.py") == "x = 1\n"


@works
async def test_a_rule_that_denies_all_edits_lets_commands_write_output(tmp_path: Path) -> None:
    rules = (*DEFAULT_RULES, Rule("edit", "*", Action.DENY, "user"))
    line = "mkdir -p build; echo x > build/log; echo x > README.md; cat README.md"
    harness = make_held(tmp_path, line, answer=ONCE, rules=rules)
    assert await _asked(harness) == []
    assert "x" in harness.results()[0].output
    assert "Denied by the rule" in harness.results()[0].output
    assert read(harness, "README.md") == "Read.\n"
    assert read(harness, "build/log") == "x\n"


# -- files that steer agents --------------------------------------------------------------------------------

STEERING = (
    "AGENTS.md",
    "CLAUDE.md",
    "src/AGENTS.md",
    "CLAUDE.local.md",
    ".tui-agent/config.toml",
    ".claude/settings.json",
    ".mcp.json",
    ".husky/pre-commit",
    ".git/hooks/pre-commit",
)


@works
@pytest.mark.parametrize("name", STEERING)
@pytest.mark.parametrize("mode", ["build", "auto-edit"])
async def test_rules_about_something_else_let_no_command_steer_the_agent(
    tmp_path: Path, name: str, mode: str
) -> None:
    writes = f"import os; os.makedirs(os.path.dirname('./{name}'), exist_ok=True); open('{name}', 'w').write('x')"
    lines = (
        f"mkdir -p ./{Path(name).parent}; echo x > {name}",
        f'python3 -c "{writes}"',
        f'cp README.md x.txt; python3 -c "{writes}"',
    )
    rules = (
        *DEFAULT_RULES,
        *(
            Rule("bash", pattern, Action.ALLOW, "here")
            for pattern in ("mkdir *", "python3 *", "cp *")
        ),
        Rule("edit", "*", Action.ALLOW, "session"),
    )
    harness = make_held(tmp_path, *lines, answer=NO, rules=rules, mode=mode)
    await _asked(harness)
    assert read(harness, name) != "x"
    assert read(harness, name) != "x\n"
    if not name.startswith(".git/"):
        assert len(requests(harness)) == 3


@works
async def test_a_rule_that_names_an_instruction_file_lets_commands_write_it(tmp_path: Path) -> None:
    harness = make_held(
        tmp_path,
        "echo x > AGENTS.md",
        "python3 -c \"open('AGENTS.md', 'a').write('y')\"",
        answer=NO,
        rules=allowed("edit:AGENTS.md"),
    )
    assert await _asked(harness) == []
    assert read(harness, "AGENTS.md") == "x\ny"


@works
async def test_git_checks_out_instructions_that_it_may_check_out(tmp_path: Path) -> None:
    harness = make_held(tmp_path, "git stash -u -q", "git stash pop -q", answer=ALWAYS)
    (Path(harness.session.info.cwd) / "AGENTS.md").write_text("Be brief.\n")
    requests_made = await _asked(harness)
    assert not any("AGENTS.md" in request.reason for request in requests_made)
    assert read(harness, "AGENTS.md") == "Be brief.\n"
