"""Commands in a terminal: what is typed, what the screen shows, and who may type."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.tooling import Workspace
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.gate import needs_of
from tui_agent.agent.permissions import Action, Rule
from tui_agent.errors import ToolError
from tui_agent.permission import Permission
from tui_agent.processes.jobs import Jobs
from tui_agent.processes.terminal import COLUMNS, KEYS, ROWS, Terminal, typed_text
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.bash import BashTool
from tui_agent.tools.job import JobTool

BASH, JOB = BashTool(), JobTool()
NO = PermissionAnswer(Decision.DENY)
PYTHON = f"{sys.executable} -I -q"

MENU = """
import curses
def main(screen):
    curses.curs_set(0)
    names, at = ["Small", "Whole", "Custom"], 0
    while True:
        screen.erase()
        screen.addstr(0, 0, "Install which parts?")
        for row, name in enumerate(names):
            screen.addstr(2 + row, 4, name, curses.A_REVERSE if row == at else 0)
        key = screen.getch()
        if key == curses.KEY_DOWN: at = min(at + 1, 2)
        elif key == curses.KEY_UP: at = max(at - 1, 0)
        elif key in (10, 13): return names[at]
print("chose", curses.wrapper(main))
"""


@pytest.fixture
async def running(space: Workspace) -> AsyncIterator[Jobs]:
    space.jobs = started = Jobs()
    yield started
    await started.aclose()


async def opened(space: Workspace, command: str) -> str:
    return (await space.call(BASH, command=command, terminal=True)).output


async def typed(space: Workspace, text: str, until: str = "", number: int = 1) -> str:
    return (await space.call(JOB, id=number, input=text, until=until, wait=30)).output


async def test_a_session_of_python(space: Workspace, running: Jobs) -> None:
    assert ">>>" in await opened(space, PYTHON)
    assert "\n42\n" in await typed(space, "6 * 7\n", until="^42")
    said = await typed(space, "for n in range(3):\n    print('n', n)\n\n", until="n 2")
    assert "n 0\nn 1\nn 2" in said
    assert "ZeroDivisionError" in await typed(space, "1 / 0<Enter>", until="ZeroDivision")
    assert "ended after" in await typed(space, "<C-d>")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no sqlite3")
async def test_a_session_of_sqlite(space: Workspace, running: Jobs) -> None:
    assert "sqlite>" in await opened(space, "sqlite3")
    await typed(space, "create table t(a); insert into t values (40), (2);\n")
    assert "\n42\n" in await typed(space, "select sum(a) from t;\n", until="^42")


async def test_a_password_is_asked_for_at_the_terminal(space: Workspace, running: Jobs) -> None:
    program = "import getpass; p = getpass.getpass('Password: '); print(len(p), 'characters')"
    command = f'{sys.executable} -I -c "{program}" < /dev/null'
    assert "Password:" in await opened(space, command)
    said = await typed(space, "hunter22\n", until="characters")
    assert "8 characters" in said
    assert "hunter22" not in said


async def test_a_menu_that_draws_on_the_whole_screen(space: Workspace, running: Jobs) -> None:
    space.file("menu.py", MENU)
    first = await opened(space, f"{sys.executable} -I menu.py")
    assert "Install which parts?" in first
    assert "[Highlighted: 'Small']" in first
    assert "[Highlighted: 'Custom']" in await typed(space, "<Down><Down>")
    assert "chose Custom" in await typed(space, "<Enter>", until="chose")


async def test_ctrl_c_ends_what_runs_in_the_foreground(space: Workspace, running: Jobs) -> None:
    await opened(space, "trap 'echo caught; exit 3' INT; echo ready; read line")
    said = await typed(space, "<C-c>", until="caught")
    assert "caught" in said
    assert "exit code 3" in said


async def test_it_waits_for_a_pattern_and_says_when_that_does_not_come(
    space: Workspace, running: Jobs
) -> None:
    await opened(space, PYTHON)
    said = (await space.call(JOB, id=1, input="1+1\n", until="never there", wait=1)).output
    assert "[The job has not ended after 1 s.]" in said
    assert "\n2\n" in said


async def test_a_choice_in_colours_is_named(space: Workspace, running: Jobs) -> None:
    items = ("30;47m Small", "37;41m Whole", "30;47m Custom")
    drawn = "".join(rf"\033[{row};5H\033[{item} " for row, item in enumerate(items, 5))
    command = rf"printf '\033[44m\033[2J{drawn}\033[0m'; read end"
    assert "[Highlighted: 'Whole']" in await opened(space, command)


async def test_the_model_waits_while_a_person_types(space: Workspace, running: Jobs) -> None:
    await opened(space, "read name; echo hello $name; read end")
    running.find(1).is_taken = True
    with pytest.raises(ToolError, match="The user is typing in this job's terminal"):
        await typed(space, "Bob<Enter>")
    running.find(1).type("Ada\n")
    assert "hello Ada" in (await space.call(JOB, id=1, until="hello", wait=30)).output


async def test_what_has_no_terminal_takes_no_input(space: Workspace, running: Jobs) -> None:
    await space.call(BASH, command="sleep 300", background=True)
    with pytest.raises(ToolError, match="without a terminal"):
        await typed(space, "yes\n")
    await opened(space, "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!; read line")
    with pytest.raises(ToolError, match="takes too long"):
        await typed(space, "x", until="(a|a)+$", number=2)
    with pytest.raises(ToolError, match="not a regular expression"):
        await space.call(JOB, id=1, until="(")


async def test_what_is_typed_is_judged_as_a_command(space: Workspace, running: Jobs) -> None:
    await opened(space, "bash --norc")
    typing = '{"id": 1, "input": "<Up>ls<Enter>git push --force\\n"}'
    needs = needs_of(JOB, parse_arguments(JOB, typing), space.context())
    assert {need.permission for need in needs} == {Permission.BASH}
    assert [need.pattern for need in needs[:2]] == ["ls", "git push --force"]
    assert "typed into a running program: bash --norc" in needs[-1].unclear
    assert JOB.needs(parse_arguments(JOB, '{"id": 1, "wait": 1}'), space.context()) == ()
    (enter,) = JOB.needs(parse_arguments(JOB, '{"id": 1, "input": "<Enter>"}'), space.context())
    assert enter.unclear


async def test_a_rule_for_one_command_allows_no_other_line_that_is_typed(tmp_path: Path) -> None:
    lines = Call("job", '{"id": 1, "input": "ls\\ntouch made\\n"}')
    script = [
        Reply(calls=(Call("bash", '{"command": "sh", "terminal": true}'),)),
        Reply(calls=(lines,)),
        Reply("Done."),
    ]
    rules = (Rule("bash", "sh", Action.ALLOW), Rule("bash", "ls *", Action.ALLOW))
    harness = make_agent(tmp_path, ScriptedClient(script), rules=rules, answer=NO)
    await harness.say("go")
    (asked,) = harness.of(PermissionAsked)
    assert asked.request.tool == "job"
    assert not list(tmp_path.rglob("made"))
    await harness.agent.aclose()


async def test_a_flood_of_output_leaves_its_end_on_the_screen(
    space: Workspace, running: Jobs
) -> None:
    await opened(space, "seq 300000; echo the end; read line")
    said = await typed(space, "x", until="the end")
    assert "300000\nthe end" in said
    assert len(said.splitlines()) <= ROWS + 3


@given(st.binary(max_size=2_000))
def test_no_output_breaks_the_screen(data: bytes) -> None:
    screen = Terminal()
    for part in (data[:100], data[100:], b"\x1b[?25h\x1b[2J\x1b[Hafterwards"):
        screen.feed(part)
    lines = screen.text().splitlines()
    assert len(lines) <= ROWS + 1
    assert all(len(line) <= COLUMNS for line in lines[:ROWS])


WITHOUT_A_CELL = "\u0947\u200b\u200d\u202e\ufe0f\ufeff\xad"


@given(st.text(alphabet="aé日न👩" + WITHOUT_A_CELL, max_size=40))
def test_no_character_hides_the_text_behind_it(text: str) -> None:
    screen = Terminal()
    screen.feed(text.encode())
    shown = screen.text()
    for character in "a日न👩":
        assert shown.count(character) == text.count(character)


@given(st.text(max_size=60))
def test_text_is_typed_as_it_is_but_for_keys(text: str) -> None:
    plain = text.replace("<", "(")
    sent = plain.replace("\r\n", "\r").replace("\n", "\r")
    assert typed_text(plain) == sent
    assert typed_text(f"<Up>{plain}<C-c>") == f"{KEYS['up']}{sent}\x03"
    assert typed_text("a <b> c <hello>") == "a <b> c <hello>"


async def test_the_terminal_runs_in_the_sandbox(tmp_path: Path) -> None:
    from tui_agent.sandbox import Sandbox
    from tui_agent.sandbox.settings import SandboxSettings

    project = tmp_path / "project"
    project.mkdir()
    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path / "home")
    if not await asyncio.to_thread(lambda: box.active):
        pytest.skip("there is no sandbox here")
    space = Workspace(project, sandbox=box, jobs=Jobs())
    assert space.jobs is not None
    try:
        await opened(space, "sh")
        said = await typed(space, "tty; echo hello > /dev/tty; ls ~ | wc -l\n", until="hello")
        assert "hello" in said
        arguments = parse_arguments(JOB, '{"id": 1, "input": "ls\\n"}')
        assert JOB.needs(arguments, space.context())[0].sandboxed
        assert "ended after" in await typed(space, "exit\n")
    finally:
        await space.jobs.aclose()
        await box.aclose()
