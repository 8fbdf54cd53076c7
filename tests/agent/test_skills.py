"""Skills: which are found, how they are listed and loaded, and that nothing takes a loaded one out of view."""

import json
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.knowledge import EXAMPLES, knowledge, skill, write
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.knowledge.knowledge import list_skills
from tui_agent.agent.preparing import prepare_command
from tui_agent.context.files import FileOperations, file_operations
from tui_agent.context.preserved import SKILL_LEFT_OUT, Budgets, Summarised, carry
from tui_agent.context.request import request_bytes
from tui_agent.errors import CommandError
from tui_agent.session.entries import (
    AssistantEntry,
    FilePart,
    SummaryDetails,
    SystemEntry,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.tools.registry import builtin_tools, tool_traits
from tui_agent.tools.skill import Skill, SkillTool


def count(text: str) -> int:
    return len(text) // 4


def agent_with(tmp_path: Path, *replies: Reply, **arguments):
    loaded = knowledge(tmp_path)
    tools = (*builtin_tools(), SkillTool(lambda: loaded.skills, lambda: loaded.offers_skills))
    client = ScriptedClient(list(replies) or [Reply("Yes.")])
    return make_agent(tmp_path, client, knowledge=loaded, tools=tools, **arguments), client


def test_skills_of_project_and_user_are_found_and_the_nearest_wins(tmp_path: Path) -> None:
    skill(tmp_path / "project/.agents/skills", "one", body="project one")
    skill(tmp_path / "project/.claude/skills", "two")
    skill(tmp_path / "project/a/.tui-agent/skills", "two", body="nearest two")
    skill(tmp_path / "config/skills", "one", body="user's one")
    skill(tmp_path / "config/skills", "three")
    skill(tmp_path / "home/.agents/skills", "four")
    skill(tmp_path / "home/.claude/skills", "five")
    found = knowledge(tmp_path, cwd="a").skills
    assert list(found) == ["five", "four", "one", "three", "two"]
    assert found["one"].body == "project one"
    assert found["two"].body == "nearest two"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\nname: x\n---\nbody", "needs a description"),
        ("---\ndescription: d\n---\n", "nothing below"),
        ("---\ndescription: d\nbody", "has no end"),
        ("---\n- a\n- b\n---\nbody", "no keys"),
        ("---\nname: no/thing\ndescription: d\n---\nbody", "lower-case"),
        ("---\n[broken\n---\nbody", "not valid YAML"),
        ("body only", "needs a description"),
    ],
)
def test_a_bad_file_is_reported_once_and_the_others_work(
    tmp_path: Path, text: str, reason: str
) -> None:
    write(tmp_path / "project/.agents/skills/bad/SKILL.md", text)
    skill(tmp_path / "project/.agents/skills", "good")
    loaded = knowledge(tmp_path)
    assert list(loaded.skills) == ["good"]
    problem = loaded.take_problems()
    assert ".agents/skills/bad/SKILL.md" in problem
    assert reason in problem
    loaded.load()
    assert loaded.take_problems() is None


def test_front_matter_with_a_colon_in_a_value_is_read_all_the_same(tmp_path: Path) -> None:
    skill(tmp_path / "config/skills", "pdf", "Use when: the user has a PDF")
    assert knowledge(tmp_path).skills["pdf"].description == "Use when: the user has a PDF"


@pytest.mark.parametrize("number", [3, 30, 300])
@pytest.mark.parametrize("budget", [60, 240, 2_000])
def test_the_list_stays_within_its_budget(number: int, budget: int) -> None:
    rows = [Skill(f"skill-{index:03}", "word " * 200, Path("/s"), "b") for index in range(number)]
    text = list_skills(rows, "Intro.", budget, count)
    assert count(text) <= budget
    assert text.count("\n- ") == number or "are not listed" in text
    assert "- skill-000: word" in text or number * 8 > budget


async def test_skills_that_come_and_go_wait_for_the_next_cache_break(tmp_path: Path) -> None:
    harness, client = agent_with(tmp_path)
    await harness.say("hi")
    path = skill(tmp_path / "project/.agents/skills")
    await harness.say("again")
    harness.agent.change_model("test/other")
    await harness.say("now")
    path.unlink()
    await harness.say("gone")
    has = [any(tool.name == "skill" for tool in request.tools) for request in client.requests]
    assert has == [False, False, True, True]
    assert harness.kinds().count("system") == 2


async def test_the_model_loads_a_skill_and_gets_its_text_and_where_its_files_are(
    tmp_path: Path,
) -> None:
    folder = skill(tmp_path / "project/.agents/skills", body="Bump the version.").parent
    write(folder / "scripts/bump.py", "print()")
    call = Reply(calls=(Call("skill", json.dumps({"name": "release"})),))
    unknown = Reply(calls=(Call("skill", '{"name": "releese"}'),))
    harness, client = agent_with(tmp_path, call, unknown, Reply("Done."))
    await harness.say("release it")
    assert "- release: Use it to release." in request_bytes(client.requests[0]).decode()
    result, error = harness.results()
    assert error.status is ToolStatus.ERROR
    assert "release." in error.output
    assert result.status is ToolStatus.COMPLETED
    assert result.title == "release"
    assert result.output.startswith("Bump the version.")
    assert f"relative to {folder}" in result.output
    assert "scripts/bump.py" in result.output


async def test_the_model_uses_claude_codes_commands_as_skills_unless_they_say_no(
    tmp_path: Path,
) -> None:
    commands = tmp_path / "home/.claude/commands"
    write(commands / "git/fix.md", "---\ndescription: Fix an issue\n---\nFix $0 in $1.")
    write(commands / "plain.md", "Tidy up.")
    write(commands / "own.md", "---\ndisable-model-invocation: true\n---\nDeploy.")
    calls = [
        Reply(calls=(Call("skill", json.dumps({"name": name, "arguments": words})),))
        for name, words in (("git:fix", "12 src"), ("plain", "now"), ("own", ""))
    ]
    harness, client = agent_with(tmp_path, *calls, Reply("Done."))
    await harness.say("go")
    listed = request_bytes(client.requests[0]).decode()
    assert "- git:fix: Fix an issue" in listed
    assert "- plain: Tidy up." in listed
    assert "Deploy" not in listed
    outputs = [result.output for result in harness.results()]
    assert outputs[:2] == ["Fix 12 in src.", "Tidy up.\n\nnow"]
    assert all(result.status is ToolStatus.ERROR for result in harness.results()[2:])


async def test_the_user_has_a_skill_used_with_its_text_beside_the_request(tmp_path: Path) -> None:
    skill(tmp_path / "project/.agents/skills", body="Bump the version.")
    made = make_agent(tmp_path, [Reply("k")], knowledge=knowledge(tmp_path)).agent
    used = await prepare_command("skill:release", "as 2.0", made.session, made.ports)
    assert isinstance(used.parts[1], FilePart)
    assert (used.parts[0].text, used.parts[1].path) == ("as 2.0", "skill:release")
    assert "Bump the version." in used.parts[1].text
    asked = await prepare_command("skill:release", "", made.session, made.ports)
    assert asked.parts[0].text == "Use the skill “release”."
    assert await prepare_command("skill:other", "", made.session, made.ports) is None


async def test_commands_in_a_skill_run_when_the_user_starts_it_and_a_projects_wait_for_trust(
    tmp_path: Path,
) -> None:
    skill(tmp_path / "home/.claude/skills", "mine", body='Branch: !`printf "%s" "$1"`')
    skill(tmp_path / "home/.claude/skills", "parts", body="Ticket $1\n!`echo hi`\nBranch $1 $2")
    skill(tmp_path / "project/.claude/skills", "theirs", body="!`touch made`")
    untrusting = knowledge(tmp_path, trusted=lambda: False)
    made = make_agent(tmp_path, [Reply("k")], knowledge=untrusting).agent
    used = await prepare_command("skill:mine", "main", made.session, made.ports)
    assert used.parts[1].text.startswith("Branch: main")
    used = await prepare_command("skill:parts", "T-1 main", made.session, made.ports)
    assert "Branch main" in used.parts[1].text
    with pytest.raises(CommandError, match="Trust the project first"):
        await prepare_command("skill:theirs", "", made.session, made.ports)
    assert not (tmp_path / "project/made").exists()


def carried(*entries, state: int = 1_000) -> list[tuple[str, str, str]]:
    budgets = Budgets(user_messages=100, anchors=100, files=100, state=state)
    details = carry(
        Summarised(list(entries), FileOperations(), tool_traits()), SummaryDetails(), budgets, count
    )
    return [(item.tool, item.name, item.text) for item in details.state]


def test_a_skill_goes_through_a_compaction_however_it_was_loaded() -> None:
    by_user = UserEntry(
        id=1,
        parts=(TextPart(text="go"), FilePart(path="skill:pdf", text="How to PDF")),
        created_at=1,
    )
    asked = AssistantEntry(id=2, parts=(), model="m")
    by_model = ToolResultEntry(
        id=3,
        call_id="c",
        tool="skill",
        status=ToolStatus.COMPLETED,
        output="How to release",
        title="release",
    )
    assert carried(by_user, asked, by_model) == [
        ("skill", "pdf", "How to PDF"),
        ("skill", "release", "How to release"),
    ]


def test_a_skill_over_the_budget_leaves_its_name_and_how_to_get_it_back() -> None:
    loaded = UserEntry(id=1, parts=(FilePart(path="skill:pdf", text="word " * 2_000),))
    assert carried(loaded, state=100) == [("skill", "pdf", SKILL_LEFT_OUT)]


def test_skills_and_entries_in_a_message_are_no_files_that_were_read() -> None:
    parts = tuple(FilePart(path=path, text="x") for path in ("skill:pdf", "#12", "src/a.py"))
    assert file_operations([UserEntry(id=1, parts=parts)], tool_traits()).read == ("src/a.py",)


async def test_the_example_skill_works(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/skills").symlink_to(EXAMPLES / "skills")
    call = Reply(calls=(Call("skill", '{"name": "release-notes"}'),))
    harness, _client = agent_with(tmp_path, call, Reply("Done."))
    await harness.say("announce 2.0")
    (head,) = harness.entries(SystemEntry)
    assert "- release-notes: Writes the notes of a release" in head.opening
    (result,) = harness.results()
    assert "git describe --tags" in result.output
    assert "template.md" in result.output
