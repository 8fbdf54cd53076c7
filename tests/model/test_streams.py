"""The parts between litellm's chunks and the program: assembly, lines, the way out."""

import asyncio
import json
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model.hosted import lines
from tui_agent.model.hosted.assembly import Assembly
from tui_agent.model.hosted.flow_control import Outlet
from tui_agent.model.hosted.lines import WINDOW, LineReader, encode, size_of
from tui_agent.model.written_calls import CallIds, WrittenCalls


def chunk(finish: str | None = None, **delta: object) -> SimpleNamespace:
    return SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(**delta), finish_reason=finish)])


def call(index: int | None = None, call_id: str | None = None, **function: object) -> dict[str, object]:
    return {"index": index, "id": call_id, "function": function}


def test_arguments_given_as_an_object_become_text() -> None:
    assembly = Assembly(WrittenCalls(CallIds(())))
    assembly.take(chunk(tool_calls=[call(0, "a", name="read", arguments={"path": "ö"})]))

    assert assembly.end()[0] == [lines.CALL, "a", "read", '{"path": "ö"}']


def test_calls_without_index_begin_with_their_names() -> None:
    assembly = Assembly(WrittenCalls(CallIds((), iter(["x", "y"]).__next__)))
    for piece in (call(name="read", arguments='{"a"'), call(arguments=":1}"), call(name="ls", arguments="{}")):
        assembly.take(chunk(tool_calls=[piece]))

    assert assembly.end()[:2] == [[lines.CALL, "x", "read", '{"a":1}'], [lines.CALL, "y", "ls", "{}"]]


def test_a_name_in_pieces_is_joined() -> None:
    assembly = Assembly(WrittenCalls(CallIds(())))
    assembly.take(chunk(tool_calls=[call(0, "a", name="re")]))
    assembly.take(chunk(tool_calls=[call(0, name="ad", arguments="{}")]))

    assert assembly.end()[0] == [lines.CALL, "a", "read", "{}"]


def test_signed_blocks_are_kept_apart() -> None:
    assembly = Assembly(WrittenCalls(CallIds(())))
    for block in (
        {"type": "thinking", "thinking": "one "},
        {"type": "thinking", "thinking": "two"},
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "thinking", "thinking": "three", "signature": "s2"},
    ):
        assembly.take(chunk(thinking_blocks=[block]))

    blob = json.loads(assembly.end()[-1][2])

    assert blob == {
        "thinking_blocks": [
            {"type": "thinking", "thinking": "one two", "signature": "s1"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "thinking", "thinking": "three", "signature": "s2"},
        ]
    }


def test_reasoning_details_of_one_index_are_joined() -> None:
    assembly = Assembly(WrittenCalls(CallIds(())))
    for detail in (
        {"type": "reasoning.text", "index": 0, "text": "a", "signature": None},
        {"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "d"},
    ):
        assembly.take(chunk(provider_specific_fields={"reasoning_details": [detail]}))

    assert json.loads(assembly.end()[-1][2])["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "d"},
    ]


@given(st.lists(st.text(max_size=40), max_size=8), st.data())
def test_lines_survive_any_cutting(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(encode([1, [[lines.TEXT, text]]]) for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, found = LineReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])

    assert [events[0][1] for _number, events in found] == texts


class SlowWriter:
    """A reader that takes nothing until it is let."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.open = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drain(self) -> None:
        await self.open.wait()

    def events(self) -> list[list[object]]:
        return [event for line in self.written for event in json.loads(line)[1]]


async def test_text_for_a_slow_reader_is_joined_and_the_sender_waits() -> None:
    writer = SlowWriter()
    outlet = Outlet(writer)
    running = asyncio.create_task(outlet.run())
    channel = outlet.open(1)
    channel.send([lines.TEXT, "first"])
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    sent = 0
    while True:
        channel.send([lines.TEXT, "x" * 1000])
        sent += 1
        waiting = asyncio.create_task(channel.room())
        await asyncio.sleep(0)
        if not waiting.done():
            break

    assert sent < 300
    writer.open.set()
    await asyncio.wait_for(waiting, 60)
    await asyncio.sleep(0)
    running.cancel()

    assert writer.events() == [[lines.TEXT, "first"], [lines.TEXT, "x" * 1000 * sent]]


async def test_a_reader_that_does_not_acknowledge_gets_a_window_and_not_more() -> None:
    writer = SlowWriter()
    writer.open.set()
    outlet = Outlet(writer)
    running = asyncio.create_task(outlet.run())
    slow, other = outlet.open(1), outlet.open(2)

    for _ in range(40):
        slow.send([lines.TEXT, "x" * (WINDOW // 8)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    other.send([lines.TEXT, "y"])
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    taken = sum(size_of(event) for event in writer.events())
    assert taken <= WINDOW * 1.2
    assert [lines.TEXT, "y"] in writer.events()

    outlet.acknowledge(1, taken)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    assert sum(size_of(event) for event in writer.events()) > taken


async def test_different_calls_are_not_joined() -> None:
    writer = SlowWriter()
    writer.open.set()
    outlet = Outlet(writer)
    channel = outlet.open(1)
    for index, piece in ((0, "a"), (0, "b"), (1, "c")):
        channel.send([lines.CALL_DELTA, index, f"id{index}", "read", piece])
    running = asyncio.create_task(outlet.run())
    await asyncio.sleep(0)
    running.cancel()

    assert writer.events() == [
        [lines.CALL_DELTA, 0, "id0", "read", "ab"],
        [lines.CALL_DELTA, 1, "id1", "read", "c"],
    ]
