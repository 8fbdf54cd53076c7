"""Three sessions of one program at work for minutes: requests, files, questions and titles stay with their session."""

import re

import psutil
import pytest

from tests.support.model_script import Call, Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.terminal import Terminal, ask
from tui_agent.session.session import Session
from tui_agent.session.store import Store

NAMES = ("alpha", "beta", "gamma")
TASK = re.compile(r"(alpha|beta|gamma) task (\d+)")
ROUNDS = 100
"""Tasks of each session; they take ten minutes."""
MAX_MEGABYTES = 25
"""Memory that a further session may take."""


def play(request: Recorded) -> Turn:
    """Write a file for each task and say when that is done, slowly enough to be left alone meanwhile."""
    messages = request.json["messages"]
    tasks = TASK.findall(str([said for said in messages if said["role"] == "user"]))
    name, number = tasks[-1]
    if "tools" not in request.json:
        return Turn(text=f"Title of {name}")
    if messages[-1]["role"] == "tool":
        return Turn(text=f"Done with {name} {number}.", delay=0.02)
    written = {"path": f"{name}_{number}.txt", "content": f"{name} {number}\n"}
    return Turn(text=f"I write {name}.", tool_calls=[Call("write", written)], delay=0.02)


ROW = re.compile(r"^(?:Title of (\w+)|(\w+) task 0)  ", re.MULTILINE)
"""A row of the list of sessions: a session has its title, or its first message before that is known."""


def go_to(terminal: Terminal, name: str) -> None:
    def listed() -> list[str]:
        rows = "\n".join(line.strip() for line in terminal.lines)
        return [title or first for title, first in ROW.findall(rows)]

    terminal.press("ctrl+s")
    terminal.wait_until(lambda: sorted(listed()) == sorted(NAMES), "the list of sessions")
    terminal.press(*["down"] * listed().index(name), "enter")
    shown = (f"Title of {name}", f"{name} task 0")
    terminal.wait_until(lambda: terminal.lines[0].strip().startswith(shown), f"session {name}")


def finish(terminal: Terminal, name: str, number: int, home: Place, made: set[str]) -> None:
    """Answer the question of the session on the screen and wait for the end of its task."""
    file = f"{name}_{number}.txt"
    terminal.wait_for("yes, once")
    assert made == {path.name for path in home.project.iterdir()}, "nothing is written unasked"
    terminal.press("y")
    terminal.wait_for(f"Done with {name} {number}.")
    made.add(file)
    assert made == {path.name for path in home.project.iterdir()}
    assert (home.project / file).read_text() == f"{name} {number}\n"


def megabytes(terminal: Terminal) -> float:
    return float(psutil.Process(terminal.process.pid).memory_info().rss / 1e6)


@pytest.mark.nightly
def test_nothing_is_mixed_in_ten_minutes(own_place: Place, server: ModelServer) -> None:
    home = own_place
    home.configure(server.openai_url)
    server.play_function(play)
    terminal = home.start(size=(110, 34))
    made: set[str] = set()
    sizes = []
    for name in NAMES:
        if name != NAMES[0]:
            ask(terminal, "/new")
            terminal.wait_gone("Done with")
        ask(terminal, f"{name} task 0")
        finish(terminal, name, 0, home, made)
        sizes.append(megabytes(terminal))
        ask(terminal, f"{name} task 1")
    for number in range(1, ROUNDS + 1):
        for name in NAMES:
            go_to(terminal, name)
            finish(terminal, name, number, home, made)
            ask(terminal, f"{name} task {number + 1}")
    terminal.close()

    assert sizes[-1] - sizes[0] < MAX_MEGABYTES * (len(NAMES) - 1)
    for request in server.calls:
        assert len({name for name, _ in TASK.findall(str(request.json["messages"]))}) == 1
    with Store(home.root / "data" / "sessions.db") as store:
        infos = store.sessions()
        assert sorted(info.title for info in infos) == [f"Title of {name}" for name in NAMES]
        for info in infos:
            session = Session(store, info.id, estimate=lambda _entry: 1)
            said = str([header.preview for header in session.skeleton()])
            assert {name for name in NAMES if name in said} == {info.title.split()[-1]}
