"""Bodies cut into events, however the bytes were cut on their way."""

import json

import pytest

from tui_agent.model.wires.http import DocumentDecoder, EventDecoder

BODY = (
    ': a comment\n\nevent: first\ndata: {"a": "größe 👋"}\n\nid: 7\nretry: 5\ndata:no space\n\n'
    "data: two\ndata: lines\n\nevent: lost\n\ndata: last\n\n"
)
EVENTS = [("first", '{"a": "größe 👋"}'), ("", "no space"), ("", "two\nlines"), ("", "last")]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_events_are_the_same_however_bytes_and_lines_are_cut(ends: str, size: int) -> None:
    body = BODY.replace("\n", ends).encode()
    decoder = EventDecoder()
    events = [event for at in range(0, len(body), size) for event in decoder.feed(body[at : at + size])]

    assert events + decoder.end() == EVENTS


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"a": 1}\n{"a": "\xc3\xb6"}\n\n{"a": 3}', 3),
        (b'{"a": 1}', 1),
        (json.dumps({"a": {"b": 1}, "c": [{}]}, indent=2).encode(), 1),
    ],
)
def test_documents_by_line_and_over_lines(body: bytes, count: int, size: int) -> None:
    decoder = DocumentDecoder()
    found = [text for at in range(0, len(body), size) for _name, text in decoder.feed(body[at : at + size])]
    found += [text for _name, text in decoder.end()]

    assert len([json.loads(text) for text in found]) == count
