"""The memory in the real program: proposed by a small model of each wire, taken by a key, sent later."""

import json

import pytest

from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer, Recorded
from tests.support.place import MODEL, Place
from tests.support.terminal import ask

LINE = "build: Run make services before the tests."
LOOKS = (
    Call("ls", {"path": "."}),
    Call("glob", {"pattern": "*.py"}),
    Call("glob", {"pattern": "*.md"}),
)
CLAUDE = "anthropic/claude-sonnet-4-5"
GEMINI = "gemini/gemini-2.5-flash"


def answer(recorded: Recorded) -> Turn:
    """Return what the model says to a request: the small one to one for lines or a title, else the other."""
    body = recorded.body.decode()
    if "You propose what a coding agent" in body:
        return Turn(text=f"#2 {LINE}")
    if "Write a title" in body:
        return Turn(text="Looking around")
    if "tool_call_id" not in body:
        return Turn(tool_calls=LOOKS)
    return Turn(text="Looked around.")


@pytest.mark.parametrize(
    "small",
    [
        CLAUDE,
        pytest.param(MODEL, marks=pytest.mark.nightly),
        pytest.param(GEMINI, marks=pytest.mark.nightly),
    ],
)
def test_a_small_model_proposes_a_key_takes_and_the_next_session_knows(
    place: Place, warm_server: ModelServer, small: str
) -> None:
    place.move_to_new_project()
    own = f'[models."{small}"]\nbase_url = "{warm_server.url}"\napi_key = "sk-of-the-test"\n'
    place.configure(warm_server.openai_url, more=own if small != MODEL else "")
    config = place.root / "config" / "config.toml"
    config.write_text(f'small_model = "{small}"\n{config.read_text()}')
    warm_server.play_function(answer)
    terminal = place.start(size=(80, 24))
    ask(terminal, "Always run make services before the tests. Look around.")
    terminal.wait_for("Proposed for the memory: 1 line. Decide with /memory.")
    ask(terminal, "/memory")
    terminal.wait_for(f"+ {LINE}")
    terminal.wait_for("#2 here · your words")
    terminal.press("t")
    terminal.wait_for("Press u to undo it")
    terminal.press("escape")
    terminal.wait_gone("Memory of this project")
    terminal.press("ctrl+q")
    assert terminal.wait_exit() == 0
    warm_server.play(Turn(text="Hello."))
    assert place.run("-p", "hi").returncode == 0
    assert f"- {LINE}" in json.dumps(json.loads(warm_server.calls[-1].body)["messages"])


def test_a_run_without_a_screen_asks_the_small_model_only_with_the_setting(
    place: Place, warm_server: ModelServer
) -> None:
    place.move_to_new_project()
    place.configure(warm_server.openai_url)
    config = place.root / "config" / "config.toml"
    config.write_text(f'small_model = "{MODEL}"\n{config.read_text()}')
    warm_server.play_function(answer)
    assert "proposed" not in place.run("-p", "Look around.").stderr
    config.write_text(f'{config.read_text()}\n[memory]\npropose = "always"\n')
    assert (
        "Proposed for the memory: 1 line. Decide with /memory."
        in place.run("-p", "Look around.").stderr
    )
