"""What failures mean: kinds, sentences, waits, windows."""

import pytest

from tests.support.model_server import OVERFLOWS, Overflow
from tui_agent.model.errors import (
    Failure,
    Target,
    classify,
    concerns_reasoning,
    concerns_roles,
    missing_key,
    plain_text,
)
from tui_agent.model.overflow import find_overflow
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.waits import retry_after, span, spoken

NOW = 1_800_000_000.0
TARGET = Target("anthropic/claude", "Anthropic", "api.example", "set ANTHROPIC_API_KEY")


@pytest.mark.parametrize("overflow", OVERFLOWS, ids=lambda overflow: overflow.provider)
def test_overflow_texts_give_window_and_size(overflow: Overflow) -> None:
    found = find_overflow(overflow.message, overflow.status)

    assert found is not None
    assert (found.window, found.sent) == (overflow.window, overflow.sent)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Wait."),
        (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute."),
        (429, "Too many tokens, please wait before trying again."),
        (400, "Invalid 'max_tokens': integer above maximum value."),
        (400, "messages: at least one message is required"),
        (401, "Incorrect API key provided"),
        (None, "Connection error."),
    ],
)  # fmt: skip
def test_other_texts_are_no_overflow(status: int | None, text: str) -> None:
    assert find_overflow(text, status) is None


def test_a_request_over_the_tokens_per_minute_never_passes_by_waiting() -> None:
    text = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7012, please reduce it."

    error = classify(Failure(text, 413), TARGET, now=NOW)

    assert (error.kind, error.sent, error.window) == (ErrorKind.CONTEXT_OVERFLOW, 7012, None)
    assert "6,000 tokens per minute" in error.message


def test_an_empty_body_is_an_overflow_only_where_the_provider_says_it_so() -> None:
    cerebras = Target("cerebras/x", "Cerebras", empty_body_is_overflow=True)

    assert classify(Failure("", 400), cerebras, now=NOW).kind is ErrorKind.CONTEXT_OVERFLOW
    assert classify(Failure("", 400), TARGET, now=NOW).kind is ErrorKind.INVALID_REQUEST


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (429, "You exceeded your current quota, please check your plan and billing details.", ErrorKind.QUOTA),
        (429, "You exceeded your current quota. Please retry in 34.07s.", ErrorKind.RATE_LIMIT),
        (429, '{"error": {"code": 429, "message": "Quota exceeded for quota metric"}}', ErrorKind.RATE_LIMIT),
        (400, "Your credit balance is too low to access the Anthropic API.", ErrorKind.QUOTA),
        (402, "Insufficient Balance", ErrorKind.QUOTA),
        (400, "API key not valid. Please pass a valid API key.", ErrorKind.AUTH),
        (401, "x", ErrorKind.AUTH),
        (403, "Your organization has been disabled.", ErrorKind.AUTH),
        (404, "x", ErrorKind.NOT_FOUND),
        (400, "The model `gpt-9` does not exist", ErrorKind.NOT_FOUND),
        (400, "litellm.BadRequestError: LLM Provider NOT provided. You passed model=x", ErrorKind.NOT_FOUND),
        (400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
         ErrorKind.CONTENT_FILTER),
        (500, "internal", ErrorKind.OVERLOADED),
        (529, "Overloaded", ErrorKind.OVERLOADED),
        (None, "AnthropicError - Overloaded", ErrorKind.OVERLOADED),
        (504, "upstream", ErrorKind.NETWORK),
        (422, "unprocessable", ErrorKind.INVALID_REQUEST),
        (None, "something else", ErrorKind.UNKNOWN),
    ],
)  # fmt: skip
def test_kinds(status: int | None, text: str, kind: ErrorKind) -> None:
    assert classify(Failure(text, status), TARGET, now=NOW).kind is kind


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("refused", "Nothing answers at api.example: check that the server runs"),
        ("unresolved", "can't be found"),
        ("certificate", "SSL_CERT_FILE"),
        ("connect_timeout", "could not be reached within 20 s"),
        ("timeout", "Anthropic did not begin to answer within 20 s"),
        ("stalled", "stopped in the middle"),
        ("closed", "broke before the answer was complete"),
        ("broken", "can't be read"),
    ],
)
def test_broken_connections_say_what_to_check(cause: str, words: str) -> None:
    error = classify(Failure("x", cause=cause, seconds=20), TARGET, now=NOW)  # type: ignore[arg-type]

    assert error.kind is ErrorKind.NETWORK
    assert words in error.message


def test_messages_are_one_plain_sentence_with_the_providers_words() -> None:
    text = (
        'litellm.BadRequestError: AnthropicException - b\'{"type": "error", "error": {"message": "No.\\\\nNot so."}}\''
    )

    error = classify(Failure(text, 400), TARGET, now=NOW)

    assert error.message == "Anthropic refused the request: No. Not so."


def test_long_words_of_a_provider_are_cut() -> None:
    assert len(classify(Failure("word " * 500, 400), TARGET, now=NOW).message) < 400


def test_a_wait_is_named_in_the_message() -> None:
    error = classify(Failure("slow down", 429, {"retry-after": "7500"}), TARGET, now=NOW)

    assert error.retry_after == 7500
    assert "It asks to wait 2 h 5 min." in error.message


def test_a_wait_beside_the_message_is_found() -> None:
    body = '{"error": {"message": "Quota exceeded", "details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}'

    assert classify(Failure(body, 429), TARGET, now=NOW).retry_after == 34


def test_a_missing_key_names_its_variable() -> None:
    assert missing_key(TARGET).message == "Anthropic needs a key: set ANTHROPIC_API_KEY."


def test_only_refused_reasoning_concerns_reasoning() -> None:
    refused = classify(Failure("messages.1.content.0: Invalid `signature` in `thinking` block", 400), TARGET, now=NOW)
    other = classify(Failure("max_tokens: too small", 400), TARGET, now=NOW)

    assert concerns_reasoning(refused)
    assert not concerns_reasoning(other)


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    "text",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "After the optional system message, conversation roles must alternate user and assistant roles.",
        "roles must alternate between user and assistant, but found multiple user roles in a row",
    ],
)
def test_a_template_that_wants_alternating_roles_is_not_asked_the_same_again(text: str, status: int) -> None:
    error = classify(Failure(text, status), TARGET, now=NOW)

    assert error.kind is ErrorKind.INVALID_REQUEST
    assert concerns_roles(error)
    assert not concerns_roles(classify(Failure("max_tokens: too small", 400), TARGET, now=NOW))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - boo", "boo"),
        ('{"error": {"message": "boo", "code": "bad"}}', "boo (bad)"),
        ('[{"error": {"code": 400, "message": "boo", "status": "INVALID_ARGUMENT"}}]', "boo (INVALID_ARGUMENT)"),
        (
            '{"error": {"message": "Provider returned error", "metadata": {"raw": "boo"}}}',
            "Provider returned error boo",
        ),
        ('{"detail": "boo"}', "boo"),
        ('{"error": "boo"}', "boo"),
        ("{not json", "{not json"),
        ("", ""),
    ],
)
def test_the_innermost_words_are_found(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@pytest.mark.parametrize(
    ("headers", "text", "wait"),
    [
        ({"Retry-After": "12"}, "", 12.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, "", 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:00 GMT"}, "", 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, "", 360.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, "", 0.12),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "8s"}, "", None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000042000"}, "", 42.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000042"}, "", 42.0),
        (
            {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2027-01-15T08:01:00Z"},
            "",
            60.0,
        ),
        ({"retry-after": "soon"}, "", None),
        ({}, "Please try again in 1m30.5s.", 90.5),
        ({}, "Please retry after 20 seconds.", 20.0),
        ({}, '"retryDelay": "34s"', 34.0),
        ({}, "try again in 2 minutes", 120.0),
        ({}, "no hint", None),
    ],
)
def test_waits_in_every_form(headers: dict[str, str], text: str, wait: float | None) -> None:
    assert retry_after(headers, text, now=NOW) == (None if wait is None else pytest.approx(wait))


def test_spans_and_how_they_are_spoken() -> None:
    assert span("1h2m3s", now=NOW) == 3723
    assert span(None, now=NOW) is None
    assert [spoken(seconds) for seconds in (0.2, 45, 600, 7500, 300_000)] == [
        "1 s",
        "45 s",
        "10 min",
        "2 h 5 min",
        "3 days",
    ]
