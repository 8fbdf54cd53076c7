"""A conversation goes on in a new process, after a kill too, with what was sent before, byte for byte."""

import itertools

import pytest

from tests.support.knowledge import write
from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import MODEL, Place
from tests.support.wire_blocks import blocks

CLAUDE = "anthropic/claude-sonnet-4-5"


@pytest.mark.parametrize("model", [CLAUDE, pytest.param(MODEL, marks=pytest.mark.nightly)])
def test_each_process_goes_on_with_the_bytes_of_the_one_before(
    place: Place, warm_server: ModelServer, model: str
) -> None:
    place.configure(
        warm_server.openai_url,
        more=f'[models."{CLAUDE}"]\nbase_url = "{warm_server.url}"\napi_key = "sk-of-the-test"\n',
    )
    write(place.project / "AGENTS.md", "Be careful.")
    write(place.project / "sub" / "AGENTS.md", "Be very careful here.")
    write(place.project / "sub" / "file.txt", "text\n")
    warm_server.play(
        Turn(text="I look.", reasoning="Where?", tool_calls=(Call("read", {"path": "sub/file.txt"}),)),
        Turn(text="First."),
        Turn(text="Second, it goes on and on.", fault=Fault("stall", after=6)),
        Turn(tool_calls=(Call("bash", {"command": "echo it runs; sleep 9"}),)),
        Turn(text="Third."),
        Turn(text="Fourth."),
    )
    common = ("--allow", "bash", "-m", model)
    assert place.run("-p", "the first", *common).returncode == 0
    write(place.project / "AGENTS.md", "Be careful, from now on.")
    place.killed("answer_delta", "-c", "-p", "the second", *common)
    place.killed("tool_output", "-c", "-p", "the third", *common)
    assert place.run("-c", "-p", "the fourth", *common).returncode == 0
    assert place.run("-c", "-p", "the fifth", *common).returncode == 0
    sent = [blocks(request.json) for request in warm_server.calls]
    assert len(sent) == 6
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before
    whole = "\n".join(sent[-1])
    assert "Be careful." in whole
    assert "interrupted" in whole
    assert "the fifth" in sent[-1][-1]
