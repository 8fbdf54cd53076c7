"""Pieces of an answer that arrive together: one piece for litellm, with nothing else changed."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model.bursts import join


def event(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": more.pop("finish", None), **more.pop("choice", {})}
    return b"data: " + json.dumps({"id": "1", "choices": [choice], **more}).encode() + b"\n\n"


def events(read: bytes) -> list[Any]:
    return [json.loads(part[len(b"data: ") :]) for part in read.split(b"\n\n") if part.startswith(b"data: {")]


def texts(read: bytes) -> list[str]:
    return [one["choices"][0]["delta"].get("content", "") for one in events(read)]


def words(*texts: str) -> bytes:
    return b"".join(event({"content": text}) for text in texts)


def test_pieces_in_one_read_become_one_and_those_at_its_ends_stay() -> None:
    assert texts(join(words("a", "b", "c", "d", "e"))) == ["a", "bcde"]
    assert join(words("a", "b")) == words("a", "b")


def test_what_is_cut_at_either_end_stays_as_it_is() -> None:
    read = words("a", "b", "c", "d")
    cut = join(read[9:-7])

    assert cut.startswith(words("a")[9:])
    assert cut.endswith(words("d")[:-7])
    assert texts(cut[: -len(words("d")) + 7]) == ["bc"]


def test_whatever_is_more_than_text_is_left_alone() -> None:
    others = [
        event({"content": "x", "role": "assistant"}),
        event({"content": "x"}, finish="stop"),
        event({"content": "x"}, choice={"logprobs": {"content": [1]}}),
        event({"content": "x", "reasoning_content": "y"}),
        event({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}),
        event({"content": "x"}, model="another"),
        b'data: {"choices": [], "usage": {"prompt_tokens": 1}}\n\n',
        b'data: {"error": {"message": "no"}}\n\n',
        b"data: {broken\n\n",
        b"data: 5\n\n",
        b'event: x\ndata: {"choices": []}\n\n',
        b": keep-alive\n\n",
        b"data: [DONE]\n\n",
    ]
    for other in others:
        assert join(words("a", "b") + other + words("c")) == words("a", "b") + other + words("c")


def test_reasoning_and_padding() -> None:
    thoughts = [event({"reasoning_content": text}, obfuscation="x" * len(text)) for text in ("one", "t", "three")]
    (thought,) = events(join(words("a") + b"".join(thoughts)))[1:]

    assert thought["choices"][0]["delta"] == {"reasoning_content": "onetthree"}


@given(st.lists(st.text(min_size=1), max_size=8), st.lists(st.integers(1, 200), max_size=12))
def test_however_an_answer_is_cut_its_text_is_the_same(pieces: list[str], cuts: list[int]) -> None:
    answer, read = words(*pieces), b""
    for size in (*cuts, len(answer)):
        read += join(answer[:size])
        answer = answer[size:]

    assert "".join(texts(read)) == "".join(pieces)
