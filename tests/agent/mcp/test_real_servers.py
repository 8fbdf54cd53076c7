"""Servers that others wrote, from npm and PyPI: what they offer is offered, what they ask is asked."""

import pytest

from tests.support import neighbours
from tests.support.agents import make_agent
from tests.support.mcp_place import Place, until
from tests.support.scripted_client import Reply
from tui_agent.agent.mcp.records import ServerState
from tui_agent.tools.questions import Answer, ServerForm

pytestmark = pytest.mark.neighbours


async def start(place: Place, name: str, *args: str) -> None:
    path = neighbours.environment(place.directory)["PATH"]
    place.add(
        "it", command=neighbours.program(name), args=args, env={"PATH": path}, log_level="debug"
    )
    await place.hub.settle()
    await until(lambda: place.state("it") is not ServerState.STARTING)


@pytest.mark.parametrize(
    ("name", "args", "tool"),
    [
        ("mcp-server-filesystem", ("{directory}",), "it_list_allowed_directories"),
        ("mcp-server-memory", (), "it_read_graph"),
        ("mcp-server-sequential-thinking", (), "it_sequentialthinking"),
        ("mcp-server-git", (), "it_git_status"),
        ("mcp-server-time", (), "it_get_current_time"),
        ("mcp-server-fetch", (), "it_fetch"),
    ],
)
async def test_it_is_ready_and_its_tools_are_told_whole(place, name, args, tool):
    await start(place, name, *(text.format(directory=place.directory) for text in args))
    [row] = place.hub.status()
    assert (row.state, row.detail) == (ServerState.READY, "")
    assert tool in {one.name for one in place.hub.offered(10**9, lambda _schema: 1)}
    assert not any(one.omitted for one in row.tools)


async def test_the_filesystem_server_reads(place):
    (place.directory / "note.txt").write_text("It is there.")
    await start(place, "mcp-server-filesystem", str(place.directory))
    assert (
        "It is there."
        in (await place.call("it_read_text_file", path=str(place.directory / "note.txt"))).output
    )


async def test_everything_is_told_and_asked(place, tmp_path):
    asked = []

    async def answer(question):
        asked.append(question)
        if isinstance(question, ServerForm):
            return Answer(
                "accept",
                {
                    field.name: field.read(_typed(field))
                    for field in question.fields
                    if field.required
                },
            )
        return Answer("accept")

    harness = make_agent(tmp_path, [Reply("A haiku.")], mcp=place.hub)
    harness.agent.person.asker = answer
    await start(place, "mcp-server-everything")
    [row] = place.hub.status(count_text=len)
    assert row.instructions
    assert {template.uri for template in row.templates} >= {
        "demo://resource/dynamic/text/{resourceId}"
    }
    form = await place.call("it_trigger-elicitation-request")
    assert "User provided the requested information" in form.output, form.output
    assert isinstance(asked[0], ServerForm)
    assert {field.kind for field in asked[0].fields} >= {
        "text",
        "yes_no",
        "integer",
        "number",
        "choice",
        "choices",
    }
    assert place.directory.as_uri() in (await place.call("it_get-roots-list")).output
    await place.call("it_toggle-simulated-logging")
    await until(lambda: bool(place.hub.status()[0].messages))


def _typed(field) -> str:
    if field.options:
        return field.options[0][0]
    return {"yes_no": "yes", "integer": "3", "number": "3"}.get(field.kind, "Ann Able")
