"""The parts between the model host and the program: lines, the way out."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model.hosted import lines
from tui_agent.model.hosted.host import Outlet
from tui_agent.model.hosted.lines import WINDOW, LineReader, encode, size_of


@given(st.lists(st.text(max_size=40), max_size=8), st.data())
def test_lines_survive_any_cutting(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(encode([1, [[lines.CHUNK, text]]]) for text in texts)
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


async def test_the_sender_waits_for_a_slow_reader() -> None:
    writer = SlowWriter()
    outlet = Outlet(writer)
    running = asyncio.create_task(outlet.run())
    channel = outlet.open(1)
    channel.send([lines.CHUNK, "first"])
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    sent = 0
    while True:
        channel.send([lines.CHUNK, "x" * 1000])
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

    assert writer.events() == [[lines.CHUNK, "first"], *[[lines.CHUNK, "x" * 1000]] * sent]


async def test_a_reader_that_does_not_acknowledge_gets_a_window_and_not_more() -> None:
    writer = SlowWriter()
    writer.open.set()
    outlet = Outlet(writer)
    running = asyncio.create_task(outlet.run())
    slow, other = outlet.open(1), outlet.open(2)

    for _ in range(40):
        slow.send([lines.CHUNK, "x" * (WINDOW // 8)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    other.send([lines.CHUNK, "y"])
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    taken = sum(size_of(event) for event in writer.events())
    assert taken <= WINDOW * 1.2
    assert [lines.CHUNK, "y"] in writer.events()

    outlet.acknowledge(1, taken)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    assert sum(size_of(event) for event in writer.events()) > taken
