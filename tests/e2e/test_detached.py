"""Runs that go on without a terminal: attached to, shown twice, killed, asked, stopped."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from tests.support.model_script import Call, Fault, Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import Terminal, ask
from tui_agent.session.entries import INTERRUPTED_OUTPUT

STEPS = 5
LOOKS = 300
"""Times a program is started to see how a run stands, before it is given up."""


@pytest.fixture
def home(own_place: Place, server: ModelServer) -> Iterator[Place]:
    own_place.configure(server.openai_url)
    yield own_place
    for row in rows(own_place):
        own_place.run("stop", row["name"])


def rows(home: Place) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(home.run("ps", "--json").stdout)
    return found


def begin(home: Place, *words: str) -> str:
    done = home.run("run", "--detach", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[2].rstrip(".")


def wait_for_state(home: Place, name: str, *states: str) -> None:
    for _ in range(LOOKS):
        found = [row for row in rows(home) if row["name"] == name]
        if found and found[0]["state"] in states:
            return
    pytest.fail(f"{name} never was {states}: {rows(home)}")


def attach(home: Place, name: str, size: tuple[int, int] = (100, 30)) -> Terminal:
    return home.start("attach", name, size=size)


def test_it_goes_on_and_two_terminals_see_the_same(home: Place, server: ModelServer) -> None:
    call = Call("write", {"path": "new.py", "content": "x = 1\n"})
    server.play(Turn(text="I look.", tool_calls=[call]), Turn(text="It is done."))
    name = begin(home, "please deploy it")
    wait_for_state(home, name, "needs you")

    first = attach(home, name)
    second = attach(home, name, size=(90, 28))
    for terminal in (first, second):
        terminal.wait_for("yes, once")
        terminal.wait_for("please deploy it")
    first.read_for(2.0)  # a question takes keys when it has stood a moment
    first.press("n")
    for terminal in (first, second):
        terminal.wait_for("It is done.")
    second.hang_up()
    first.wait_quiet()
    ask(first, "/detach")
    assert first.wait_exit() == 0
    assert f"Detached. To attach again: tui-agent attach {name}" in first.text
    assert not first.modes.get(1049)
    assert rows(home)[0]["attached"] == 0

    assert "It is done." in home.run("logs", name).stdout
    stopped = home.run("stop", name)
    assert stopped.returncode == 0, stopped.stderr
    assert rows(home) == []


def test_a_terminal_that_comes_later_draws_as_one_that_was_there(
    home: Place, server: ModelServer
) -> None:
    server.play(Turn(text="The lighthouse stands."))
    name = begin(home, "remember the lighthouse")
    wait_for_state(home, name, "idle", "done")
    terminal = attach(home, name)
    terminal.wait_for("The lighthouse stands.")
    assert terminal.modes[1049]
    assert terminal.modes[2004], "pasted text is told from typed keys"
    terminal.type("and one more word")
    terminal.wait_for("and one more word")
    terminal.press("ctrl+u")
    terminal.send(b"\x1c")
    assert terminal.wait_exit() == 0
    assert "Detached." in terminal.text


@pytest.mark.parametrize("setting", ["stop", "detach"])
def test_an_agent_at_work_goes_on_when_its_terminal_is_closed_if_that_is_wanted(
    home: Place, server: ModelServer, setting: str
) -> None:
    home.configure(server.openai_url, more=f'closed_terminal = "{setting}"\n')
    server.play(
        Turn(text="One two three four.", fault=Fault("stall", after=3)), Turn(text="It is done.")
    )
    terminal = home.start()
    ask(terminal, "please deploy it")
    terminal.wait_for("One two")
    terminal.hang_up()
    terminal.wait_exit()
    if setting == "stop":
        assert rows(home) == []
        return
    (row,) = rows(home)
    name = str(row["name"])
    for _ in range(LOOKS):
        if "It is done." in home.run("logs", name).stdout:
            return
    pytest.fail("it never went on")


def test_what_the_program_does_not_read_yet_holds_nobody_up(home: Place) -> None:
    name = begin(home)
    terminal = attach(home, name)
    terminal.wait_for(PROMPT_HINT)
    [program] = psutil.Process(int(str(rows(home)[0]["pid"]))).children()
    program.suspend()
    terminal.send(b"x" * 100_000)
    assert [rows(home)[0]["attached"] for _ in range(2)] == [1, 1]
    program.kill()
    terminal.wait_exit()
    assert rows(home) == []


def test_a_killed_run_is_continued(home: Place, server: ModelServer) -> None:
    server.play(Turn(text="half of a long answer " * 200, delay=0.05))
    name = begin(home, "tell me everything")
    wait_for_state(home, name, "working")
    host = int(str(rows(home)[0]["pid"]))
    terminal = attach(home, name)
    terminal.wait_for("half of a long")
    for process in psutil.Process(host).children(recursive=True):
        process.kill()
    terminal.wait_exit()
    assert rows(home) == []
    again = home.start("-c")
    again.wait_for("half of a long")
    again.wait_for("tell me everything")


def said(request: Recorded) -> list[str]:
    """What a request holds of the conversation: answers, calls, results, the user's messages after the opening."""
    _system, _opening, *rest = request.json["messages"]
    return [
        f"{one['role']} {one.get('content') or ''} {[call['id'] for call in one.get('tool_calls') or ()]}"
        for one in rest
    ]


def work(request: Recorded) -> Turn:
    """Write five files, one in each step, slowly; then say so."""
    results = [one for one in request.json["messages"] if one["role"] == "tool"]
    # A call that was cut off is made again: the model was told that nobody knows how far it came.
    step = sum(INTERRUPTED_OUTPUT not in str(result["content"]) for result in results)
    if "tools" not in request.json:
        return Turn(text="Five files")
    if step >= STEPS:
        return Turn(text="All five are there.")
    call = Call(
        "write", {"path": f"{step}.txt", "content": f"{step}\n"}, call_id=f"call-{len(results)}"
    )
    return Turn(text=f"Now comes file {step}.", tool_calls=[call], delay=0.05)


@pytest.mark.parametrize(
    ("requests", "wait"),
    [
        pytest.param(
            requests, wait, marks=() if (requests, wait) == (3, 0.15) else pytest.mark.nightly
        )
        for requests in range(1, STEPS + 1)
        for wait in (0.01, 0.15, 0.3, 0.45)
    ],
)
def test_a_run_that_is_killed_anywhere_goes_on(
    home: Place, server: ModelServer, requests: int, wait: float
) -> None:
    server.play_function(work)
    name = begin(home, "--allow", "edit", "write five files")
    host = psutil.Process(int(str(rows(home)[0]["pid"])))
    processes = [host, *host.children(recursive=True)]

    def asked() -> list[Recorded]:
        return [request for request in server.calls if "tools" in request.json]

    assert server.wait(lambda _: len(asked()) >= requests, timeout=60)
    with suppress(psutil.TimeoutExpired):
        host.wait(wait)
    for process in [*processes, *host.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=60)
    before = asked()
    assert rows(home) == [], f"{name} is gone"

    done = home.run("-c", "-p", "go on", "--allow", "edit")

    assert done.returncode == 0, done.stderr
    assert "All five are there." in done.stdout
    after = asked()[len(before)]
    assert said(after)[: len(said(before[-1]))] == said(before[-1]), "nothing is lost"
    assert said(after)[-1].startswith("user go on")
    there = {path.name: path.read_text() for path in home.project.iterdir()}
    assert there == {f"{step}.txt": f"{step}\n" for step in range(STEPS)}


def test_a_host_that_is_killed_leaves_nothing_running(home: Place, server: ModelServer) -> None:
    server.play(Turn(text="Hello."))
    name = begin(home, "hello")
    wait_for_state(home, name, "idle", "done")
    host = psutil.Process(int(str(rows(home)[0]["pid"])))
    program = host.children()[0]
    terminal = attach(home, name)
    terminal.wait_for("Hello.")
    os.kill(host.pid, signal.SIGKILL)
    assert terminal.wait_exit() == 1
    assert f"The run {name} is gone." in terminal.text
    assert not terminal.modes.get(1049)
    program.wait(60)
    assert rows(home) == []


@pytest.mark.parametrize("how", ["deny", "stop"])
def test_questions_can_be_answered_by_nobody(home: Place, server: ModelServer, how: str) -> None:
    call = Call("write", {"path": "new.py", "content": "x = 1\n"})
    server.play(Turn(text="", tool_calls=[call]), Turn(text="Then I do without."))
    name = begin(home, "--on-question", how, "deploy")
    said = ""
    for _ in range(LOOKS):
        said = home.run("logs", name).stdout
        if "new.py" in said:
            break
    wait_for_state(home, name, "idle", "done")
    said = home.run("logs", name).stdout
    assert ("Then I do without." in said) is (how == "deny")
    assert not (home.project / "new.py").exists()


def test_a_session_on_the_screen_is_detached(home: Place, server: ModelServer) -> None:
    server.play_function(lambda asked: Turn(text=f"Answer {len(asked.json['messages'])}."))
    terminal = home.start()
    ask(terminal, "one")
    terminal.wait_for("Answer 3.")
    terminal.wait_gone("esc interrupt")
    ask(terminal, "/detach")
    assert terminal.wait_exit() == 0
    assert "Detached as" in terminal.text
    back = attach(home, "")
    back.wait_for("Answer 3.")
    ask(back, "two")
    back.wait_for("Answer 5.")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("attach", "nope"), "There are no detached runs."),
        (("stop",), "There are no detached runs."),
        (("run", "--detach", "-p", "x"), "--detach can't be used with -p"),
    ],
)
def test_what_can_not_be_is_said(home: Place, words: tuple[str, ...], why: str) -> None:
    done = home.run(*words)
    assert done.returncode != 0
    assert why in done.stderr
