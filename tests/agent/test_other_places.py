"""What other programs' files tell the agent: read in their places, listed with them, never allowed more than here."""

from pathlib import Path

import pytest

from tests.support.knowledge import folders, knowledge, skill, write
from tui_agent.agent.agent_specs import load_specs
from tui_agent.places import ACTING, PLACES, Place
from tui_agent.resources import prompt
from tui_agent.trust import TrustStore, project_state

OPENCODE = """---
description: reads
model: x/y
tools:
  edit: false
  bash: false
permission:
  webfetch: deny
  read: allow
---
Read."""
CLAUDE = "---\nname: rev\ndescription: reviews\ntools: Read, Grep\nmodel: sonnet\n---\nReview."


@pytest.mark.parametrize("place", [place for place in PLACES if place.kind in {"commands", "agents", "skills"}])
def test_every_place_of_the_table_is_read_and_listed(tmp_path: Path, place: Place) -> None:
    for base, folder in (("project", place.project), ("home", place.home)):
        if folder and place.kind == "skills":
            skill(tmp_path / base / folder, base)
        elif folder:
            write(tmp_path / base / folder / f"{base}.md", "---\ndescription: d\n---\ntext")
        else:
            continue
        loaded = knowledge(tmp_path, trusted=lambda: True)
        shown = folder if base == "project" else f"~/{folder}"
        origin = f"{shown}, of {place.whose}" if place.whose else shown
        origins = {
            "commands": {command.name: command.origin for command in loaded.commands},
            "agents": {spec.name: spec.origin for spec in loaded.specs},
            "skills": dict.fromkeys(loaded.skills, origin),
        }
        assert origins[place.kind][base] == origin


def test_the_trust_question_lists_what_acts_and_nothing_else(tmp_path: Path) -> None:
    project = folders(tmp_path).project
    for place in PLACES:
        if place.project and not place.project.endswith(".md"):
            write(project / place.project / "x.md", "text")
    expected = {
        (ACTING[place.kind], f"{place.project}/x.md")
        for place in PLACES
        if place.kind in ACTING and place.project and place.project != ".claude/hooks"
    }
    listed = {(item.kind, item.name) for item in project_state(project, TrustStore(tmp_path / "trust.json")).items}
    assert listed - expected == {("file", ".tui-agent/skills/x.md")}
    assert expected <= listed
    write(project / ".tui-agent/config.toml", "")
    again = {item.name for item in project_state(project, TrustStore(tmp_path / "trust.json")).items}
    assert ".claude/hooks/x.md" in again


def test_agents_of_other_programs_get_no_more_than_they_ask_for(tmp_path: Path) -> None:
    write(tmp_path / "project/.opencode/agent/reader.md", OPENCODE)
    write(tmp_path / "project/.opencode/agent/off.md", "---\ndescription: d\ndisable: true\n---\ntext")
    write(tmp_path / "project/.claude/agents/rev.md", CLAUDE)
    write(tmp_path / "home/.claude/agents/calm.md", "---\ndescription: d\ndisallowedTools: Bash, Write\n---\ntext")
    problems: list[str] = []
    found = {spec.name: spec for spec in load_specs(folders(tmp_path), prompt, problems=problems)}
    assert problems == []
    reader, rev, calm = found["reader"], found["rev"], found["calm"]
    assert reader.primary
    assert reader.subagent
    assert reader.model == "x/y"
    assert [reader.allows(tool) for tool in ("read", "edit", "bash")] == [True, False, False]
    assert [str(rule.permission) for rule in reader.rules] == ["webfetch"]
    assert (rev.model, rev.tools, rev.primary) == (None, ("read", "grep"), False)
    assert [calm.allows(tool) for tool in ("read", "write", "bash")] == [True, False, False]
    assert "off" not in found
    assert "rev" not in {spec.name for spec in load_specs(folders(tmp_path), prompt, trusted=lambda: False)}


def test_instructions_of_other_programs(tmp_path: Path) -> None:
    write(tmp_path / "project/GEMINI.md", "from gemini")
    write(tmp_path / "project/src/.github/copilot-instructions.md", "from copilot")
    rules = tmp_path / "project/.cursor/rules"
    write(rules / "always.mdc", "---\nalwaysApply: true\n---\nalways")
    write(rules / "web.mdc", "---\ndescription: d\nglobs: *.{ts,tsx}, web/**\nalwaysApply: false\n---\nfor the web")
    write(rules / "chosen.mdc", "---\ndescription: d\n---\nchosen")
    loaded = knowledge(tmp_path, cwd="src")
    assert [item.text for item in loaded.instructions] == ["from gemini", "from copilot", "always"]
    write(tmp_path / "project/src/a.tsx", "")
    for path in ("src/a.tsx", "web/x/y.css"):
        assert [item.text for item in loaded.nearby([path], set())] == ["for the web"]
    assert loaded.nearby(["src/a.py"], set()) == ()
    assert loaded.nearby(["src/a.tsx"], {".cursor/rules/web.mdc"}) == ()
    assert loaded.problems == ()
