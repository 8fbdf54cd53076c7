"""Which instruction files there are, how they get into the head, and when the head follows them."""

from pathlib import Path

from tests.support.agents import make_agent
from tests.support.knowledge import folders, knowledge, write
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.knowledge.instructions import FILE_BYTES
from tui_agent.context.budget import head_parts
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import CompactionEntry, SystemEntry, UserEntry


def names(tmp_path: Path, *instructions: str, cwd: str = "") -> list[str]:
    return [item.name for item in knowledge(tmp_path, *instructions, cwd=cwd).instructions]


def heads(harness) -> list[SystemEntry]:
    return [entry for entry in harness.path() if isinstance(entry, SystemEntry)]


# -- which files ------------------------------------------------------------------------------------------------


def test_files_from_the_user_then_from_the_root_down_to_where_one_works(tmp_path: Path) -> None:
    for path in ("project/AGENTS.md", "project/a/CLAUDE.md", "project/a/b/CONTEXT.md", "config/AGENTS.md", "AGENTS.md"):
        write(tmp_path / path, path)
    write(tmp_path / "home/.claude/CLAUDE.md", "from home")
    assert names(tmp_path, cwd="a/b") == [
        (tmp_path / "config/AGENTS.md").as_posix(),
        "~/.claude/CLAUDE.md",
        "AGENTS.md",
        "a/CLAUDE.md",
        "a/b/CONTEXT.md",
    ]


def test_one_file_per_directory_and_no_text_twice(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "same")
    write(tmp_path / "project/CLAUDE.md", "other")
    write(tmp_path / "project/a/CLAUDE.md", "same")
    write(tmp_path / "project/a/b/AGENTS.md", "  \n")
    assert names(tmp_path, cwd="a/b") == ["AGENTS.md"]


def test_the_setting_adds_files_and_globs_and_says_what_matches_nothing(tmp_path: Path) -> None:
    write(tmp_path / "project/docs/style.md", "style")
    write(tmp_path / "project/docs/deep/tests.md", "tests")
    outside = write(tmp_path / "shared/team.md", "team")
    loaded = knowledge(tmp_path, "docs/**/*.md", str(outside), "missing.md")
    assert [item.name for item in loaded.instructions] == ["docs/deep/tests.md", "docs/style.md", outside.as_posix()]
    assert loaded.take_problems() == "instructions: nothing matches missing.md."
    loaded.load()
    assert loaded.take_problems() is None


def test_a_long_file_is_cut_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "ä" * FILE_BYTES)
    (item,) = knowledge(tmp_path).instructions
    assert item.text.startswith("ää")
    assert item.text.endswith(f"[The first 32 KiB of {2 * FILE_BYTES:,} bytes; read the file for the rest.]")
    assert "\ufffd" not in item.text
    assert len(item.text.encode()) < FILE_BYTES + 200


def test_a_file_cannot_end_its_section(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "one</instructions>two")
    (item,) = knowledge(tmp_path).instructions
    assert item.section.count("</instructions>") == 1


# -- the head ---------------------------------------------------------------------------------------------------


async def test_instructions_stand_in_the_opening_and_the_context_map_names_them(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "Use tabs.")
    client = ScriptedClient([Reply("Yes.")])
    harness = make_agent(tmp_path, client, knowledge=knowledge(tmp_path))
    await harness.say("hi")
    (head,) = heads(harness)
    assert '<instructions path="AGENTS.md">\nUse tabs.\n</instructions>' in head.opening
    labels = [part.label for part in head_parts(head, TokenCounter("test/model"))]
    assert labels[-3:] == ["agent prompt", "environment", "AGENTS.md"]
    assert "Use tabs." in client.requests[0].messages[1].text or "Use tabs." in client.requests[0].messages[0].text


async def test_a_change_is_told_once_and_taken_in_at_the_next_cache_break(tmp_path: Path) -> None:
    path = write(tmp_path / "project/AGENTS.md", "Use tabs.")
    client = ScriptedClient([Reply("Yes.")])
    harness = make_agent(tmp_path, client, knowledge=knowledge(tmp_path))
    await harness.say("hi")
    write(path, "Use spaces.")
    await harness.say("again")
    await harness.say("and again")
    assert len(heads(harness)) == 1
    told = [text for text in harness.notices() if "AGENTS.md changed" in text]
    assert len(told) == 1
    harness.agent.change_model("test/other")
    await harness.say("now?")
    assert "Use spaces." in heads(harness)[-1].opening
    await harness.say("still?")
    assert len(heads(harness)) == 2


async def test_a_compaction_takes_changes_in_and_nothing_changes_without_one(tmp_path: Path) -> None:
    path = write(tmp_path / "project/AGENTS.md", "Use tabs.")
    harness = make_agent(tmp_path, ScriptedClient([Reply("Yes.")]), knowledge=knowledge(tmp_path))
    await harness.say("hi")
    write(path, "Use spaces.")
    leaf = harness.session.leaf
    harness.session.append(
        CompactionEntry(summary="s", first_kept_id=leaf, tokens_before=9, tokens_after=5, trigger="manual")
    )
    await harness.say("go on")
    assert "Use spaces." in heads(harness)[-1].opening
    assert len(heads(harness)) == 2


# -- nearby -----------------------------------------------------------------------------------------------------


def attached(harness) -> list[list[str]]:
    return [
        [part.path for part in entry.parts if part.type == "file"]
        for entry in harness.path()
        if isinstance(entry, UserEntry) and entry.synthetic == "instructions"
    ]


def read(*paths: str) -> Reply:
    return Reply(calls=tuple(Call("read", f'{{"path": "{path}"}}') for path in paths))


async def test_nearby_instructions_are_attached_once_when_a_file_below_is_read(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "root")
    write(tmp_path / "project/web/AGENTS.md", "web rules")
    write(tmp_path / "project/web/ui/CLAUDE.md", "ui rules")
    write(tmp_path / "project/web/ui/a.ts", "1")
    write(tmp_path / "project/web/ui/b.ts", "2")
    client = ScriptedClient([read("web/ui/a.ts"), read("web/ui/b.ts"), Reply("Done."), read("web/ui/a.ts"), Reply("k")])
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


async def test_after_a_compaction_they_are_attached_again_when_needed(tmp_path: Path) -> None:
    write(tmp_path / "project/web/AGENTS.md", "web rules")
    write(tmp_path / "project/web/a.ts", "1")
    client = ScriptedClient([read("web/a.ts"), Reply("Done."), Reply("No need."), read("web/a.ts"), Reply("Done.")])
    harness = make_agent(tmp_path, client, knowledge=knowledge(tmp_path))
    await harness.say("look")
    leaf = harness.session.leaf
    harness.session.append(
        CompactionEntry(summary="s", first_kept_id=leaf, tokens_before=9, tokens_after=5, trigger="manual")
    )
    await harness.say("say something")
    assert len(attached(harness)) == 1
    await harness.say("look again")
    assert attached(harness) == [["web/AGENTS.md"], ["web/AGENTS.md"]]


def test_no_instructions_of_other_peoples_code_or_outside_or_just_read(tmp_path: Path) -> None:
    project = folders(tmp_path).project
    for path in ("node_modules/x/AGENTS.md", "build/AGENTS.md", "web/AGENTS.md"):
        write(project / path, path)
    write(project / ".gitignore", "build/\n")
    write(tmp_path / "elsewhere/AGENTS.md", "not ours")
    loaded = knowledge(tmp_path)
    paths = ["node_modules/x/i.js", "build/o.js", "../elsewhere/a.py", str(tmp_path / "elsewhere/b.py"), "gone/a/b.py"]
    assert loaded.nearby(paths, set()) == ()
    assert [item.name for item in loaded.nearby(["web/new.ts"], set())] == ["web/AGENTS.md"]
    assert loaded.nearby(["web/new.ts"], {"web/AGENTS.md"}) == ()
