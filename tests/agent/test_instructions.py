"""Which instruction files there are, how they get into the head, and when the head follows them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.knowledge import folders, knowledge, skill, write
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.agent_specs import load_specs
from tui_agent.agent.knowledge.folders import TrustGate
from tui_agent.agent.knowledge.instructions import FILE_BYTES
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.context.budget import head_parts
from tui_agent.context.tokens import TokenCounter
from tui_agent.files.notes import NOTES_FILE, NoteError, read_notes
from tui_agent.places import ACTING, PLACES, Place
from tui_agent.resources import prompt
from tui_agent.session.entries import CompactionEntry, SystemEntry, UserEntry
from tui_agent.trust import TrustStore, project_state


def names(tmp_path: Path, cwd: str) -> list[str]:
    return [item.name for item in knowledge(tmp_path, cwd=cwd).instructions]


def test_files_from_the_user_then_from_the_root_down_to_where_one_works(tmp_path: Path) -> None:
    for path in (
        "project/AGENTS.md",
        "project/a/CLAUDE.md",
        "project/a/b/CONTEXT.md",
        "config/AGENTS.md",
        "AGENTS.md",
    ):
        write(tmp_path / path, path)
    write(tmp_path / "home/.claude/CLAUDE.md", "from home")
    users = [(tmp_path / "config/AGENTS.md").as_posix(), "~/.claude/CLAUDE.md"]
    above = [(tmp_path / "AGENTS.md").as_posix()]
    assert names(tmp_path, "a/b") == [*users, *above, "AGENTS.md", "a/CLAUDE.md", "a/b/CONTEXT.md"]
    tmp_path.chmod(0o777)
    assert names(tmp_path, "a/b")[2] == "AGENTS.md"


def test_a_main_file_that_is_no_text_is_named_once(tmp_path: Path) -> None:
    write(tmp_path / "project/a/b/CLAUDE.md", "text")
    (tmp_path / "project/a/b/AGENTS.md").mkdir()
    (tmp_path / "project/a/AGENTS.md").symlink_to("nowhere.md")
    (tmp_path / "project/AGENTS.md").write_bytes(bytes(range(256)) * 40)
    loaded = knowledge(tmp_path, cwd="a/b")
    assert [item.name for item in loaded.instructions] == ["a/b/CLAUDE.md"]
    told = loaded.take_problems()
    assert told is not None
    assert "AGENTS.md is left out: it is binary, not text." in told
    assert "a/AGENTS.md is left out: it is a broken link." in told
    assert "a/b/AGENTS.md is left out: it is not a file." in told
    loaded.load()
    assert loaded.take_problems() is None


def test_one_file_per_directory_and_no_text_twice(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "same")
    write(tmp_path / "project/CLAUDE.md", "other")
    write(tmp_path / "project/a/CLAUDE.md", "same")
    write(tmp_path / "project/a/b/AGENTS.md", "  \n")
    assert names(tmp_path, "a/b") == ["AGENTS.md"]


def test_the_setting_adds_files_and_globs_and_says_what_matches_nothing(tmp_path: Path) -> None:
    write(tmp_path / "project/docs/style.md", "style")
    write(tmp_path / "project/docs/deep/tests.md", "tests")
    outside = write(tmp_path / "shared/team.md", "team")
    loaded = knowledge(tmp_path, "docs/**/*.md", str(outside), "missing.md")
    assert [item.name for item in loaded.instructions] == [
        "docs/deep/tests.md",
        "docs/style.md",
        outside.as_posix(),
    ]
    assert loaded.take_problems() == "instructions: nothing matches missing.md."
    loaded.load()
    assert loaded.take_problems() is None


def test_a_long_file_is_cut_and_says_so_and_none_can_end_its_section(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "</instructions>" + "ä" * FILE_BYTES)
    (item,) = knowledge(tmp_path).instructions
    assert item.text.endswith(
        f"[The first 32 KiB of {2 * FILE_BYTES + 15:,} bytes; read the file for the rest.]"
    )
    assert "\ufffd" not in item.text
    assert len(item.text.encode()) < FILE_BYTES + 200
    assert item.section.count("</instructions>") == 1


def compact(harness: Harness) -> None:
    entry = CompactionEntry(
        summary="s",
        first_kept_id=harness.session.leaf,
        tokens_before=9,
        tokens_after=5,
        trigger="manual",
    )
    harness.session.append(entry)


@pytest.mark.parametrize(
    "cache_break", [compact, lambda harness: harness.agent.change_model("test/other")]
)
async def test_a_change_is_told_once_and_taken_in_at_the_next_cache_break(
    tmp_path: Path, cache_break: Callable[[Harness], None]
) -> None:
    path = write(tmp_path / "project/AGENTS.md", "Use tabs.")
    harness = make_agent(tmp_path, [Reply("Yes.")], knowledge=knowledge(tmp_path))
    await harness.say("hi")
    (head,) = harness.entries(SystemEntry)
    assert '<instructions path="AGENTS.md">\nUse tabs.\n</instructions>' in head.opening
    labels = [part.label for part in head_parts(head, TokenCounter("test/model"))]
    assert labels[-3:] == ["agent prompt", "environment", "AGENTS.md"]
    write(path, "Use spaces.")
    await harness.say("again")
    await harness.say("and again")
    assert len(harness.entries(SystemEntry)) == 1
    assert len([text for text in harness.notices() if "AGENTS.md changed" in text]) == 1
    cache_break(harness)
    await harness.say("now?")
    await harness.say("still?")
    _old, new = harness.entries(SystemEntry)
    assert "Use spaces." in new.opening


def attached(harness: Harness) -> list[list[str]]:
    entries = (entry for entry in harness.entries(UserEntry) if entry.synthetic == "instructions")
    return [[part.path for part in entry.parts if part.type == "file"] for entry in entries]


def read(path: str) -> Reply:
    return Reply(calls=(Call("read", json.dumps({"path": path})),))


async def test_nearby_instructions_are_attached_when_a_file_below_is_read_and_again_after_a_compaction(
    tmp_path: Path,
) -> None:
    write(tmp_path / "project/AGENTS.md", "root")
    write(tmp_path / "project/web/AGENTS.md", "web rules")
    write(tmp_path / "project/web/ui/CLAUDE.md", "ui rules")
    write(tmp_path / "project/web/ui/a.ts", "1")
    write(tmp_path / "project/web/ui/b.ts", "2")
    look = read("web/ui/a.ts")
    client = ScriptedClient(
        [look, read("web/ui/b.ts"), Reply("Done."), look, Reply("k"), look, Reply("Done.")]
    )
    harness = make_agent(tmp_path, client, knowledge=knowledge(tmp_path))
    await harness.say("look")
    await harness.say("look again")
    assert attached(harness) == [["web/AGENTS.md", "web/ui/CLAUDE.md"]]
    for request in client.requests:
        validate(request)
    sent = client.requests[1].messages[-1]
    assert sent.role == "user"
    assert "web rules" in sent.text
    assert "<system-reminder>" in sent.text
    compact(harness)
    await harness.say("look again")
    assert attached(harness) == [["web/AGENTS.md", "web/ui/CLAUDE.md"]] * 2


def test_no_instructions_of_other_peoples_code_or_outside_or_just_read(tmp_path: Path) -> None:
    project = folders(tmp_path).project
    for path in ("node_modules/x/AGENTS.md", "build/AGENTS.md", "web/AGENTS.md"):
        write(project / path, path)
    write(project / ".gitignore", "build/\n")
    write(tmp_path / "elsewhere/AGENTS.md", "not ours")
    loaded = knowledge(tmp_path)
    paths = [
        "node_modules/x/i.js",
        "build/o.js",
        "../elsewhere/a.py",
        str(tmp_path / "elsewhere/b.py"),
        "gone/a/b.py",
    ]
    assert loaded.nearby(paths, set()) == ()
    assert [item.name for item in loaded.nearby(["web/new.ts"], set())] == ["web/AGENTS.md"]
    assert loaded.nearby(["web/new.ts"], {"web/AGENTS.md"}) == ()


def noted(tmp_path: Path, tokens: int = 2_000) -> Knowledge:
    return Knowledge(Sources(folders(tmp_path), (), tokens), trusted=lambda: True)


def write_notes(tmp_path: Path, *notes: str) -> Path:
    return write(
        tmp_path / "project" / NOTES_FILE, "# Notes\n" + "".join(f"- {note}\n" for note in notes)
    )


def test_of_many_notes_the_newest_are_shown_within_the_budget(tmp_path: Path) -> None:
    write_notes(tmp_path, *(f"note number {number}" for number in range(100)))
    known = noted(tmp_path, 50)
    known.load()
    (section,) = known.sections(100_000, lambda text: len(text.split()))
    assert "[90 more, used less recently, are only in the file.]" in section
    assert section.index("note number 98") < section.index("note number 99")
    assert noted(tmp_path, 0).sections(100_000, len) == ()


def test_notes_that_lead_out_of_the_project_are_left_out(tmp_path: Path) -> None:
    path = write_notes(tmp_path)
    path.unlink()
    path.symlink_to(write(tmp_path / "secret.md", "- a secret\n"))
    known = noted(tmp_path)
    known.load()
    assert known.sections(100_000, len) == ()
    assert "leads out of the project" in known.problems[0]
    with pytest.raises(NoteError):
        read_notes(tmp_path / "project")


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


@pytest.mark.parametrize(
    "place",
    [place for place in PLACES if place.kind in {"commands", "agents", "output-styles", "skills"}],
)
def test_every_place_of_the_table_is_read_and_listed(tmp_path: Path, place: Place) -> None:
    for base, folder in (("project", place.project), ("home", place.home)):
        if not folder:
            continue
        if place.kind == "skills":
            skill(tmp_path / base / folder, base)
        elif place.project == ".codex/agents":
            write(tmp_path / base / folder / f"{base}.toml", 'description = "d"\n')
        else:
            write(tmp_path / base / folder / f"{base}.md", "---\ndescription: d\n---\ntext")
        loaded = knowledge(tmp_path, trusted=lambda: True)
        shown = folder if base == "project" else f"~/{folder}"
        origin = f"{shown}, of {place.whose}" if place.whose else shown
        origins = {
            "commands": {command.name: command.origin for command in loaded.commands},
            "agents": {spec.name: spec.origin for spec in loaded.specs},
            "output-styles": {spec.name: spec.origin for spec in loaded.specs if spec.is_style},
            "skills": dict.fromkeys(loaded.skills, origin),
        }
        assert origins[place.kind][base] == origin


def test_the_trust_question_lists_what_acts_and_nothing_else(tmp_path: Path) -> None:
    def listed() -> set[tuple[str, str]]:
        items = project_state(project, TrustStore(tmp_path / "trust.json")).items
        return {(item.kind, item.name) for item in items}

    project = folders(tmp_path).project
    places = [place for place in PLACES if place.project and not place.project.endswith(".md")]
    acting = set()
    for place in places:
        name = "x/SKILL.md" if place.kind == "skills" else "x.md"
        write(project / place.project / name, "text")
        if place.kind in ACTING:
            acting.add((ACTING[place.kind], f"{place.project}/{name}"))
    hooks = {row for row in acting if row[1] == ".claude/hooks/x.md"}
    assert listed() == acting - hooks
    write(project / ".tui-agent/config.toml", "")
    assert hooks < listed()


def test_agents_of_other_programs_get_no_more_than_they_ask_for(tmp_path: Path) -> None:
    write(tmp_path / "project/.opencode/agent/reader.md", OPENCODE)
    write(
        tmp_path / "project/.opencode/agent/off.md", "---\ndescription: d\ndisable: true\n---\ntext"
    )
    write(tmp_path / "project/.claude/agents/rev.md", CLAUDE)
    write(
        tmp_path / "home/.claude/agents/calm.md",
        "---\ndescription: d\ndisallowedTools: Bash, Write\n---\ntext",
    )
    problems: list[str] = []
    found = {spec.name: spec for spec in load_specs(folders(tmp_path), prompt, problems=problems)}
    assert problems == []
    reader, rev, calm = found["reader"], found["rev"], found["calm"]
    assert (reader.primary, reader.subagent, reader.model) == (True, True, "x/y")
    assert [reader.allows(tool) for tool in ("read", "edit", "bash")] == [True, False, False]
    assert [str(rule.permission) for rule in reader.rules] == ["webfetch"]
    assert (rev.model, rev.tools, rev.primary) == (None, ("read", "grep"), False)
    assert [calm.allows(tool) for tool in ("read", "write", "bash")] == [True, False, False]
    assert "off" not in found
    assert "rev" not in {
        spec.name for spec in load_specs(folders(tmp_path), prompt, gate=TrustGate(lambda: False))
    }


def test_instructions_of_other_programs(tmp_path: Path) -> None:
    write(tmp_path / "project/GEMINI.md", "from gemini")
    write(tmp_path / "project/src/.github/copilot-instructions.md", "from copilot")
    rules = tmp_path / "project/.cursor/rules"
    write(rules / "always.mdc", "---\nalwaysApply: true\n---\nalways")
    write(
        rules / "web.mdc",
        "---\ndescription: d\nglobs: *.{ts,tsx}, web/**\nalwaysApply: false\n---\nfor the web",
    )
    write(rules / "chosen.mdc", "---\ndescription: d\n---\nchosen")
    loaded = knowledge(tmp_path, cwd="src")
    assert [item.text for item in loaded.instructions] == ["from gemini", "from copilot", "always"]
    write(tmp_path / "project/src/a.tsx", "")
    for path in ("src/a.tsx", "web/x/y.css"):
        assert [item.text for item in loaded.nearby([path], set())] == ["for the web"]
    assert loaded.nearby(["src/a.py"], set()) == ()
    assert loaded.nearby(["src/a.tsx"], {".cursor/rules/web.mdc"}) == ()
    assert loaded.problems == ()
