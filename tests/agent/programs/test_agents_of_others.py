"""Agents, commands and output styles that other programs keep in forms of their own."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.knowledge import folders, knowledge, write
from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.knowledge.folders import TrustGate
from tui_agent.agent.permissions import Action, decide
from tui_agent.agent.programs.opencode import read_opencode
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.resources import prompt
from tui_agent.session.effort import Effort
from tui_agent.trust import TrustStore, project_state

CODEX = """\
name = "reader"
description = "reads"
developer_instructions = "Read well."
model = "gpt-5"
model_reasoning_effort = "xhigh"
sandbox_mode = "read-only"
nickname_candidates = ["a"]
"""
OPENCODE = {
    "agent": {
        "review": {
            "description": "reviews",
            "mode": "subagent",
            "prompt": "Review it.",
            "tools": {"write": False, "edit": False, "bash": False},
        },
        "wrong": 3,
    },
    "command": {"check": {"template": "Check $ARGUMENTS.", "description": "checks"}},
}


def specs(tmp_path: Path, problems: list[str] | None = None) -> dict[str, AgentSpec]:
    return {spec.name: spec for spec in load_specs(folders(tmp_path), prompt, problems=problems)}


def test_codex_agents_are_read_from_toml(tmp_path: Path) -> None:
    write(tmp_path / "project/.codex/agents/a.toml", CODEX)
    reader = specs(tmp_path)["reader"]
    assert (reader.prompt, reader.effort, reader.model) == ("Read well.", Effort.XHIGH, None)
    assert reader.plans_only
    assert reader.unused == ("nickname_candidates", "model")


@pytest.mark.parametrize("text", ["a = ", "developer_instructions = 3", "x = " + "[" * 5_000, ""])
def test_a_wrong_file_of_codex_is_named_and_takes_no_other_along(tmp_path: Path, text: str) -> None:
    write(tmp_path / "home/.codex/agents/bad.toml", text)
    write(tmp_path / "home/.codex/agents/good.toml", CODEX)
    problems: list[str] = []
    assert "reader" in specs(tmp_path, problems)
    assert [problem for problem in problems if "bad.toml" in problem]


def test_agents_and_commands_in_opencodes_settings_count_after_trust(tmp_path: Path) -> None:
    write(tmp_path / "project/opencode.json", json.dumps(OPENCODE))
    loaded = knowledge(tmp_path, trusted=lambda: True)
    review = next(spec for spec in loaded.specs if spec.name == "review")
    assert (review.prompt, review.origin) == ("Review it.", "opencode.json, of OpenCode")
    assert [review.allows(tool) for tool in ("read", "edit", "bash")] == [True, False, False]
    [check] = loaded.commands
    assert (check.name, check.template, check.of_project) == ("check", "Check $ARGUMENTS.", True)
    untrusted = load_specs(folders(tmp_path), prompt, gate=TrustGate(lambda: False))
    assert "review" not in {spec.name for spec in untrusted}


def test_the_trust_question_lists_agents_and_commands_in_opencodes_settings(tmp_path: Path) -> None:
    project = tmp_path / "project"
    file = write(project / "opencode.json", json.dumps(OPENCODE))
    store = TrustStore(tmp_path / "trust.json")
    state = project_state(project, store)
    assert [(item.kind, item.name, item.text) for item in state.items] == [
        ("agent", "review", "reviews"), ("agent", "wrong", ""), ("command", "check", "checks"),
    ]  # fmt: skip
    store.remember(project, state.digest, "trusted")
    assert project_state(project, store).trusted
    write(file, json.dumps({**OPENCODE, "command": {"check": {"template": "other"}}}))
    assert project_state(project, store).is_held_back


def test_the_users_agent_wins_over_the_projects_wherever_it_is_written(tmp_path: Path) -> None:
    inside = {"agent": {"a": {"description": "user's", "prompt": "user's"}}}
    write(tmp_path / "home/.config/opencode/opencode.json", json.dumps(inside))
    write(tmp_path / "project/.opencode/agents/a.md", "---\ndescription: d\n---\nproject's")
    assert specs(tmp_path)["a"].prompt == "user's"


def test_no_name_in_a_projects_settings_leads_to_another_file(tmp_path: Path) -> None:
    file = write(tmp_path / "home/.claude/agents/a.md", "---\ndescription: d\n---\nuser's")
    inside = {name: {"description": "d", "prompt": "project's"} for name in (str(file), "..", "")}
    write(tmp_path / "project/opencode.json", json.dumps({"agent": inside}))
    problems: list[str] = []
    assert specs(tmp_path, problems)["a"].prompt == "user's"
    assert len(problems) == len(inside)


def test_a_star_in_an_agents_permissions_denies_all_but_what_is_named_later(tmp_path: Path) -> None:
    permission = {"*": "deny", "read": "allow"}
    inside = {"agent": {"a": {"description": "d", "prompt": "p", "permission": permission}}}
    write(tmp_path / "project/opencode.json", json.dumps(inside))
    text = "---\ndescription: d\npermission:\n  '*': deny\n  read: allow\n---\np"
    write(tmp_path / "project/.opencode/agents/b.md", text)
    for name in ("a", "b"):
        denied = {rule.permission for rule in specs(tmp_path)[name].rules}
        assert {"edit", "bash", "webfetch", "task"} < denied
        assert "read" not in denied


def test_a_prompt_in_another_file_is_named_as_not_read(tmp_path: Path) -> None:
    inside = {"agent": {"a": {"description": "d", "prompt": "{file:./a.txt}"}}}
    write(tmp_path / "project/opencode.json", json.dumps(inside))
    made = specs(tmp_path)["a"]
    assert (made.prompt, made.unused) == (None, ("prompt {file:./a.txt}",))


def test_an_output_style_takes_the_place_of_the_programs_words_or_comes_after_them(
    tmp_path: Path,
) -> None:
    styles = tmp_path / "home/.claude/output-styles"
    write(styles / "Short Words.md", "---\ndescription: d\n---\nBe short.")
    write(styles / "b.md", "---\nname: Teach\nkeep-coding-instructions: true\n---\nTeach.")
    found = specs(tmp_path)
    assert (found["short-words"].prompt, found["short-words"].primary) == ("Be short.", True)
    assert found["teach"].prompt == f"{prompt('system')}\n\nTeach."
    assert found["teach"].is_style
    assert not found["explore"].is_style


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["*", "edit", "bash", "read", "webfetch", "odd"]),
            st.sampled_from(["allow", "ask", "deny"]),
        ),
        unique_by=lambda row: row[0],
    )
)
def test_of_opencodes_permissions_the_last_that_fits_counts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    place = folders(tmp_path_factory.mktemp("place"))
    write(place.project / "opencode.json", json.dumps({"permission": dict(rows)}))
    rules = read_opencode(place).rules
    for name in (Permission.EDIT, Permission.BASH, Permission.WEBFETCH):
        fitting = [action for key, action in rows if key in {"*", name}]
        denies = decide(PermissionNeed(name, "x"), rules).action is Action.DENY
        assert denies == (fitting[-1:] == ["deny"])
