"""The user's own commands: which there are, how they are filled in, and what they may run."""

import subprocess
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.knowledge import EXAMPLES, knowledge, skill, write
from tests.support.scripted_client import Reply
from tui_agent.agent.agent import Agent
from tui_agent.agent.attachments import Prepared
from tui_agent.agent.preparing import prepare, prepare_command
from tui_agent.errors import CommandError
from tui_agent.session.entries import FilePart, TextPart, UserEntry, prompt_text, typed_text


def agent(tmp_path: Path, **arguments: object) -> Agent:
    return make_agent(tmp_path, [Reply("k")], knowledge=knowledge(tmp_path, **arguments)).agent


def text(prepared: Prepared | None) -> str:
    return prepared.parts[0].text


async def message_of(made: Agent, name: str, arguments: str = "") -> Prepared | None:
    return await prepare_command(name, arguments, made.session, made.ports)


async def filled(tmp_path: Path, template: str, arguments: str = "") -> str:
    write(tmp_path / "config/commands/try.md", template)
    return text(await message_of(agent(tmp_path), "try", arguments))


def test_commands_come_from_the_user_and_the_project_and_the_users_win(tmp_path: Path) -> None:
    write(
        tmp_path / "config/commands/review.md",
        "---\ndescription: mine\nargument-hint: [X]\n---\nmine",
    )
    write(tmp_path / "project/.claude/commands/review.md", "theirs")
    write(tmp_path / "project/.tui-agent/commands/git/commit.md", "Write a commit\nmessage.")
    skill(tmp_path / "project/.agents/skills")
    rows = agent(tmp_path).commands()
    assert [(row.name, row.description, row.argument) for row in rows] == [
        ("git:commit", "Write a commit message.", ""),
        ("review", "mine", "[X]"),
        ("skill:release", "Use it to release.", "[TASK]"),
    ]


def test_a_bad_file_is_said_and_left_out(tmp_path: Path) -> None:
    write(tmp_path / "config/commands/1st.md", "text")
    write(tmp_path / "config/commands/empty.md", "---\ndescription: d\n---\n")
    loaded = knowledge(tmp_path)
    assert loaded.commands == ()
    problem = loaded.take_problems()
    assert "1st.md" in problem
    assert "empty.md" in problem


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("Fix $ARGUMENTS now", "the bug", "Fix the bug now"),
        ("Compare $1 with $2, not $3", "'a b' c", "Compare a b with c, not"),
        ("No slot", "added at the end", "No slot\n\nadded at the end"),
        ("No slot", "", "No slot"),
        ("costs $10 or $1x", "a", "costs $10 or $1x\n\na"),
        ("unclosed $1", "it's fine", "unclosed it's"),
    ],
)
async def test_arguments(tmp_path: Path, template: str, arguments: str, expected: str) -> None:
    assert await filled(tmp_path, template, arguments) == expected


async def test_arguments_are_data_to_the_shell_and_never_a_command(tmp_path: Path) -> None:
    template = 'Got !`printf \'%s|\' "$1" "$ARGUMENTS"`'
    assert (
        await filled(tmp_path, template, "'$(touch x);a' b") == "Got $(touch x);a|'$(touch x);a' b|"
    )
    assert await filled(tmp_path, "$ARGUMENTS", "!`touch y`") == "!`touch y`"
    assert not (tmp_path / "project/x").exists()
    assert not (tmp_path / "project/y").exists()


async def test_files_are_attached_when_template_or_user_names_them_but_not_when_output_does(
    tmp_path: Path,
) -> None:
    for name in ("rules.md", "mine.md", "printed.md"):
        write(tmp_path / "project" / name, name)
    write(tmp_path / "config/commands/try.md", "By @rules.md: !`echo @printed.md` $1")
    prepared = await message_of(agent(tmp_path), "try", "@mine.md")
    assert [part.path for part in prepared.parts if isinstance(part, FilePart)] == [
        "rules.md",
        "mine.md",
    ]
    assert "@printed.md" in text(prepared)


async def test_model_and_agent_go_with_the_message(tmp_path: Path) -> None:
    write(
        tmp_path / "config/agents/reviewer.md",
        "---\ndescription: d\nmode: primary\n---\nYou review.",
    )
    write(tmp_path / "config/commands/try.md", "---\nmodel: openai/x\nagent: reviewer\n---\nGo")
    prepared = await message_of(agent(tmp_path), "try")
    assert prepared == Prepared((TextPart(text="Go", typed="/try"),), None, "openai/x", "reviewer")
    write(tmp_path / "config/commands/try.md", "---\nagent: nobody\n---\nGo")
    with pytest.raises(CommandError, match="agent “nobody”"):
        await message_of(agent(tmp_path), "try")


@pytest.mark.parametrize(
    ("template", "filled_in"), [("Ran !`touch ran; echo it`", "Ran it"), ("Just text", "Just text")]
)
async def test_a_projects_command_waits_for_trust(
    tmp_path: Path, template: str, filled_in: str
) -> None:
    write(tmp_path / "project/.tui-agent/commands/try.md", template)
    is_trusted = False
    made = agent(tmp_path, trusted=lambda: is_trusted)
    assert made.commands() == ()
    with pytest.raises(CommandError, match="Trust the project first"):
        await message_of(made, "try")
    assert not (tmp_path / "project/ran").exists()
    assert await message_of(made, "other") is None
    is_trusted = True
    assert text(await message_of(made, "try")) == filled_in


async def test_a_users_command_is_used_while_the_projects_of_its_name_waits(tmp_path: Path) -> None:
    skill(tmp_path / "project/.agents/skills", body="Theirs.")
    skill(tmp_path / "config/skills", body="Mine.")
    made = agent(tmp_path, trusted=lambda: False)
    used = await message_of(made, "skill:release")
    assert "Mine." in used.parts[1].text


async def test_a_message_that_begins_with_a_name_is_that_command(tmp_path: Path) -> None:
    write(tmp_path / "config/commands/try.md", "Try $ARGUMENTS")
    skill(tmp_path / "config/skills", body="Bump.")
    made = agent(tmp_path)
    assert (
        text(await prepare("/try this\nand that", made.session, made.ports)) == "Try this\nand that"
    )
    assert text(await prepare("/unknown this", made.session, made.ports)) == "/unknown this"
    assert text(await prepare("/usr/lib is full", made.session, made.ports)) == "/usr/lib is full"
    used = await prepare("/skill:release now", made.session, made.ports)
    assert [part.type for part in used.parts] == ["text", "file"]


async def test_the_model_gets_what_a_command_is_filled_in_with_and_the_user_keeps_the_line(
    tmp_path: Path,
) -> None:
    write(tmp_path / "config/commands/review.md", "Look for bugs in $1.")
    skill(tmp_path / "config/skills", body="Bump.")
    harness = make_agent(tmp_path, [Reply("k"), Reply("k")], knowledge=knowledge(tmp_path))
    made = harness.agent
    ready = [
        await prepare(line, made.session, made.ports)
        for line in ("/skill:release for v2", "/review app.py")
    ]
    for prepared in ready:
        made.submit(prepared.parts)
    assert made.queue.snapshot().steer == ("/skill:release for v2", "/review app.py")
    assert made.take_back() == "/review app.py"
    made.submit(ready[1].parts)
    assert made.session.info.title == "/skill:release for v2"
    await harness.ended()
    used, reviewed = (entry for entry in made.session.path() if isinstance(entry, UserEntry))
    assert (reviewed.text, typed_text(reviewed.parts)) == (
        "Look for bugs in app.py.",
        "/review app.py",
    )
    assert [used.preview, reviewed.preview] == ["/skill:release for v2", "/review app.py"]
    assert prompt_text(used.parts) == "/skill:release for v2"
    sent = str(harness.client.requests[-1].messages)
    assert "Look for bugs in app.py." in sent
    assert "/review" not in sent


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("init", "Write AGENTS.md for this project"),
        ("review", "Review a change of this project for defects."),
    ],
)
async def test_some_commands_are_messages_of_the_programs(
    tmp_path: Path, name: str, begins: str
) -> None:
    made = agent(tmp_path)
    asked = text(await prepare(f"/{name} mention the linter", made.session, made.ports))
    assert asked.startswith(begins)
    assert asked.endswith("\n\nmention the linter")


async def test_what_is_piped_in_is_added_and_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path / "config/commands/try.md", "Try $ARGUMENTS")
    write(tmp_path / "project/a.md", "a")
    made = agent(tmp_path)
    prepared = await prepare("/try it", made.session, made.ports, piped="+ @a.md !`ls`")
    assert prepared.parts == (TextPart(text="Try it\n\n+ @a.md !`ls`", typed="/try it"),)
    prepared = await prepare("see @a.md", made.session, made.ports, piped="#1")
    assert prepared.parts == (TextPart(text="see @a.md\n\n#1"), FilePart(path="a.md", text="a"))
    assert text(await prepare("", made.session, made.ports, piped="only this")) == "only this"


async def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "config/commands/try.md", "One")
    made = agent(tmp_path)
    assert text(await message_of(made, "try")) == "One"
    write(path, "Two now")
    assert text(await message_of(made, "try")) == "Two now"
    path.unlink()
    assert await message_of(made, "try") is None


async def test_the_example_command_works(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/commands").symlink_to(EXAMPLES / "commands")
    made = agent(tmp_path)
    project = write(tmp_path / "project/CONTRIBUTING.md", "Use tabs.").parent
    commit = "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm 1"
    subprocess.run(["sh", "-c", commit], cwd=project, check=True)
    write(project / "CONTRIBUTING.md", "Use spaces.")
    prepared = await message_of(made, "review")
    assert "1 file changed" in text(prepared)
    assert prepared.parts[1:] == (FilePart(path="CONTRIBUTING.md", text="Use spaces."),)
