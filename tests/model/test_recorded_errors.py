"""Errors as providers really sent them: what each means."""

import pytest

from tests.support.recordings import Recording, recordings
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.protocol import ErrorKind

TARGET = Target("some/model", "Somebody", "api.example", "set SOME_KEY")

MEANT = {
    "is not found for API version": ErrorKind.NOT_FOUND,
    "does not exist": ErrorKind.NOT_FOUND,
    "model: claude-does-not-exist": ErrorKind.NOT_FOUND,
    "Model nonexistent is not supported": ErrorKind.NOT_FOUND,
    "model identifier is invalid": ErrorKind.NOT_FOUND,
    "temporarily rate-limited upstream": ErrorKind.RATE_LIMIT,
}
"""Words of a body and what they mean; every other recorded refusal is of a request that is wrong."""

REFUSALS = [recording for recording in recordings() if recording.wire is None]


@pytest.mark.skipif(not REFUSALS, reason="the recordings are not here")
@pytest.mark.parametrize("recording", REFUSALS, ids=lambda recording: recording.id)
def test_a_recorded_refusal_is_judged_right(recording: Recording) -> None:
    text = recording.body.decode()
    expected = next((kind for words, kind in MEANT.items() if words in text), ErrorKind.INVALID_REQUEST)

    error = classify(Failure(text, recording.status, recording.headers), TARGET, now=0.0)

    assert error.kind is expected
    assert "{" not in error.message.partition("Supported models")[0]
