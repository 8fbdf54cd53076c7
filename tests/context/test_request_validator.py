"""The validator of the property tests refuses what providers refuse."""

import pytest

from tests.support.request_validator import InvalidRequestError, validate
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall


def say(role, text="hi", **fields):
    return Message(role, (ContentText(text),) if text else (), **fields)


def calling(*call_ids, arguments="{}", tool="read"):
    return Message("assistant", tool_calls=tuple(RequestToolCall(c, tool, arguments) for c in call_ids))


def answering(call_id, text="ok"):
    return say("tool", text, call_id=call_id)


IMAGE = ImageRef("a" * 64, "image/png")


@pytest.mark.parametrize(
    "messages",
    [
        (say("user"), say("system")),
        (say("system", "a"), say("system", "b"), say("system", "c"), say("user")),
        (say("assistant"),),
        (say("user", ""),),
        (say("user", "\ud800"),),
        (say("user"), say("assistant", "")),
        (say("user"), calling("a")),
        (say("user"), calling("a"), say("user"), answering("a")),
        (say("user"), calling("a"), answering("a"), answering("a")),
        (say("user"), answering("a")),
        (say("user"), calling("a", "a"), answering("a"), answering("a")),
        (say("user"), calling("a b"), answering("a b")),
        (say("user"), calling("a", arguments="[1]"), answering("a")),
        (say("user"), calling("a", tool="a.b"), answering("a")),
        (say("user"), calling("a"), Message("tool", (ContentText("x"), IMAGE), call_id="a")),
    ],
)
def test_an_unsound_request_is_refused(messages):
    with pytest.raises((InvalidRequestError, ValueError)):
        validate(ModelRequest("m", messages))
