"""Commands that run beside the conversation: moved to the background, and servers that a browser reaches."""

import urllib.request

import pytest

from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.terminal import ask
from tui_agent.sandbox import find_sandbox

SLOW = "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo made > made.txt"


def sent_to(server: ModelServer) -> str:
    """Return the messages of all requests so far, as text."""
    return "\n".join(str(call.json["messages"]) for call in server.calls)


def test_a_slow_command_moves_to_the_background_and_ends_there(
    place: Place, warm_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": SLOW}),)),
        Turn(text="I went on."),
        Turn(text="A title"),
        Turn(text="It has ended."),
    )
    # The command has to see the file "go".
    monkeypatch.setitem(place.variables, "TUI_AGENT_SANDBOX__MODE", "off")
    terminal = place.start("--mode", "yolo")
    ask(terminal, "make it")
    terminal.wait_for("ctrl+x ctrl+b: background")
    terminal.press("ctrl+x")
    terminal.press("ctrl+b")
    terminal.wait_for("I went on.")
    # Which request is the last depends on when the title is asked for.
    assert "moved the command to the background" in sent_to(warm_server)
    assert "begun" in sent_to(warm_server)
    assert "1 job" in terminal.text
    (place.project / "go").touch()
    terminal.wait_until((place.project / "made.txt").exists, "what it made")
    terminal.wait_until(lambda: "1 job" not in terminal.text, "the end of the job")
    ask(terminal, "how is it")
    terminal.wait_for("It has ended.")
    assert "Job 1 ended after" in sent_to(warm_server)


@pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="needs bubblewrap")
def test_a_browser_reaches_a_server_in_the_sandbox_once_its_port_is_opened(
    place: Place, warm_server: ModelServer
) -> None:
    (place.project / "page").write_text("from the server")
    serve = "exec python3 -m http.server --bind 127.0.0.1 8644"
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": serve, "background": True}),)),
        Turn(text="It serves."),
    )
    terminal = place.start()
    ask(terminal, "serve it")
    terminal.wait_for("listens on port 8644")
    terminal.wait_for("It serves.")
    ask(terminal, "/ports")
    terminal.wait_for("Open http://127.0.0.1:8644")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open("http://127.0.0.1:8644/page", timeout=20) as answer:
        assert answer.read() == b"from the server"
