"""Which failures are tried again, and when."""

import pytest

from tui_agent.model.errors import retry_delay
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.settings import RetrySettings

SETTINGS = RetrySettings()


def error(kind: ErrorKind = ErrorKind.NETWORK, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, "x", retry_after=retry_after)


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_only_what_may_pass_by_itself_is_tried_again(kind: ErrorKind) -> None:
    again = kind in {ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.HOST}

    assert (retry_delay(SETTINGS, 1, error(kind), lambda: 0.5) is not None) is again


def test_delays_double_up_to_a_cap_with_full_jitter() -> None:
    settings = RetrySettings(attempts=50)

    longest = [retry_delay(settings, attempt, error(), lambda: 1.0) for attempt in (1, 2, 3, 6, 7, 49)]

    assert longest == [1, 2, 4, 32, 60, 60]
    assert retry_delay(settings, 3, error(), lambda: 0.0) == 0


def test_a_named_wait_is_kept_to_and_one_that_is_too_long_ends_the_retrying() -> None:
    waits = [(30, 0.0), (30, 1.0), (600, 0.0), (601, 0.0)]
    delays = [retry_delay(SETTINGS, 1, error(ErrorKind.RATE_LIMIT, wait), lambda: jitter) for wait, jitter in waits]  # noqa: B023

    assert delays == [30, 31, 600, None]
