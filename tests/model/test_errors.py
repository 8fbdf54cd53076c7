"""What failures mean: kinds, sentences, waits, windows; and which are tried again, and when."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.recordings import Recording, recordings
from tui_agent.model.error_body import read_body
from tui_agent.model.error_facts import failure_facts
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.overflow import find_overflow
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.settings import RetrySettings
from tui_agent.model.waits import retry_after, retry_delay, span, spoken

NOW = 1_800_000_000.0
TARGET = Target("anthropic/claude", "Anthropic", "api.example", "set ANTHROPIC_API_KEY")


@pytest.mark.parametrize(
    ("text", "window", "sent"),
    [
        # OpenAI, by chat completions and by Responses; Azure.
        (("This model's maximum context length is 128000 tokens. However, your messages resulted in 135123 tokens. "
         "Please reduce the length of the messages."), 128000, 135123),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
        (("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301004 tokens. "
         "Please reduce the length of the messages."), 272000, 301004),
        # Anthropic.
        ("prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462),
        (("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
         "`max_tokens` and try again"), 200000, 190000),
        # Google, Mistral, Groq, DeepSeek, OpenRouter, Together.
        ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1048575, 1196265),
        ("Prompt contains 40231 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
         32768, 40231),
        ("Please reduce the length of the messages or completion.", None, None),
        (("This model's maximum context length is 65536 tokens. However, you requested 70000 tokens "
         "(66000 in the messages, 4000 in the completion)."), 65536, 66000),
        (("This endpoint's maximum context length is 32768 tokens. However, you requested about 41122 tokens "
         "(33122 of text input, 8000 in the output). Please reduce the length of either one."), 32768, 33122),
        (("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. "
         "Given: 9000 `inputs` tokens and 512 `max_new_tokens`"), 8193, 9000),
        # xAI, llama.cpp without and with numbers, LM Studio, vLLM, Bedrock, Cohere, Ollama, Cerebras.
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
        ("the request exceeds the available context size, try increasing it", None, None),
        ("request (9012 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192, 9012),
        (("The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 6021>= "
         "n_ctx: 4096). Try to load the model with a larger context length"), 4096, 6021),
        (("'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 "
         "tokens and your request has 5120 input tokens (4096 > 8192 - 5120)."), 8192, 5120),
        # SGLang.
        (("Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of "
         "135000 tokens: 130000 tokens from the input messages and 5000 tokens for the completion."), 131072, 130000),
        ("Input is too long for requested model.", None, None),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4610.", 4081, 4610),
        ("prompt too long; exceeded max context length by 1210 tokens", None, None),
        ("Current length is 9211 while limit is 8192", 8192, 9211),
        # Kimi, MiniMax, Copilot, Fireworks, Z.ai, Hugging Face.
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 270001)", 262144, 270001),
        ("invalid params, context window exceeds limit (2013)", None, None),
        ("prompt token count of 131500 exceeds the limit of 128000", 128000, 131500),
        ("The prompt is too long: 140201, model maximum context length: 131071", 131071, 140201),
        ("Prompt exceeds max length", None, None),
        ("Input validation error: `inputs` must have less than 4096 tokens. Given: 5001", 4096, 5001),
    ],
)  # fmt: skip
def test_overflow_texts_give_window_and_size(
    text: str, window: int | None, sent: int | None
) -> None:
    found = find_overflow(text, 400)

    assert found is not None
    assert (found.window, found.sent) == (window, sent)


def test_a_request_over_the_tokens_per_minute_never_passes_by_waiting() -> None:
    text = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7012, please reduce it."

    error = classify(Failure(text, 413), TARGET, now=NOW)

    assert (error.kind, error.sent, error.window) == (ErrorKind.CONTEXT_OVERFLOW, 7012, None)
    assert "6,000 tokens per minute" in error.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prompt is too long: 213462 tokens > 200000 maximum", "(213,462 tokens of 200,000)"),
        ("This model's maximum context length is 65536 tokens.", "(at most 65,536 tokens)"),
        ("Prompt exceeds max length", "accepts. Compact"),
    ],
)
def test_an_overflow_says_which_of_two_sizes_it_names(text: str, told: str) -> None:
    error = classify(Failure(text, 400), TARGET, now=NOW)
    assert error.kind is ErrorKind.CONTEXT_OVERFLOW
    assert told in error.message


def test_an_empty_body_is_an_overflow_only_where_the_provider_says_it_so() -> None:
    cerebras = Target("cerebras/x", "Cerebras", empty_body_is_overflow=True)

    assert classify(Failure("", 400), cerebras, now=NOW).kind is ErrorKind.CONTEXT_OVERFLOW
    assert classify(Failure("", 400), TARGET, now=NOW).kind is ErrorKind.INVALID_REQUEST


BEDROCK_THROTTLE = "Too many tokens, please wait before trying again."
AZURE_THROTTLE = (
    "Requests have exceeded token rate limit of your current S0 pricing tier. Please "
    "retry after 6 seconds."
)
OPENAI_THROTTLE = (
    '{"error": {"message": "Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, '
    'Used 29000, Requested 2000. Please try again in 3.2s.", "type": "tokens", "param": null, '
    '"code": "rate_limit_exceeded"}}'
)
IN_STREAM_THROTTLE = (
    '{"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": '
    '{"code": "rate_limit_exceeded", "message": "Rate limit reached for gpt-5. Please try again in 3.2s."}}}'
)


@pytest.mark.parametrize(
    "text",
    [
        '{"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}',
        '{"error": "Model Qwen/Qwen3-8B is currently loading", "estimated_time": 20.0}',
    ],
)
def test_a_server_that_loads_its_model_says_so(text: str) -> None:
    error = classify(Failure(text, 503), TARGET, now=NOW)
    assert error.kind is ErrorKind.LOADING
    assert error.message == f"{TARGET.provider} is loading the model."


@pytest.mark.parametrize(
    ("text", "status", "wait"),
    [
        (BEDROCK_THROTTLE, 503, None),
        (BEDROCK_THROTTLE, None, None),
        ('{"message": "Too many tokens per day, please wait before trying again."}', 429, None),
        (AZURE_THROTTLE, 400, 6.0),
        (OPENAI_THROTTLE, 429, 3.2),
        (IN_STREAM_THROTTLE, None, 3.2),
        ('{"__type": "ThrottlingException", "message": "Too many input tokens."}', 400, None),
        (
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
            429,
            None,
        ),
    ],
)
def test_a_throttle_is_waited_for_and_no_full_window(
    text: str, status: int | None, wait: float | None
) -> None:
    error = classify(Failure(text, status), TARGET, now=NOW)

    assert error.kind in {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED}
    assert error.retry_after == wait
    assert retry_delay(RetrySettings(), 1, error, lambda: 0.5) is not None


@pytest.mark.parametrize(
    ("text", "status", "window"),
    [
        ("Range of input length should be [1, 30720]", 400, 30_720),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", None, 129_024),
        ("{'error': {'code': 'InvalidParameter', 'message': 'Input length 203743 exceeds the maximum length 202752'}}",
         400, 202_752),
        ('{"error": {"code": "context_length_exceeded", "message": "No."}}', 400, None),
        ('{"type": "error", "error": {"type": "request_too_large", "message": "Too big."}}', 413, None),
        ("model_context_window_exceeded", None, None),
        ('{"error": {"code": "context_length_exceeded", "message": "Too long.", "type": "server_error"}}', None, None),
    ],
)  # fmt: skip
def test_a_full_window_is_told_by_code_or_words(
    text: str, status: int | None, window: int | None
) -> None:
    error = classify(Failure(text, status), TARGET, now=NOW)

    assert (error.kind, error.window) == (ErrorKind.CONTEXT_OVERFLOW, window)


def error_of(message: str, status: int | None = None, **codes: object) -> Failure:
    return Failure(json.dumps({"error": {"message": message, **codes}}), status)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure("You exceeded your current quota, please check your plan and billing details.", 429), ErrorKind.QUOTA),
        (Failure("You exceeded your current quota. Please retry in 34.07s.", 429), ErrorKind.RATE_LIMIT),
        (Failure('{"error": {"code": 429, "message": "Quota exceeded for quota metric"}}', 429), ErrorKind.RATE_LIMIT),
        (Failure("Your credit balance is too low to access the Anthropic API.", 400), ErrorKind.QUOTA),
        (Failure("API key not valid. Please pass a valid API key.", 400), ErrorKind.AUTH),
        (Failure("Your organization has been disabled.", 403), ErrorKind.AUTH),
        (Failure("The model `gpt-9` does not exist", 400), ErrorKind.NOT_FOUND),
        (Failure("litellm.BadRequestError: LLM Provider NOT provided. You passed model=x", 400), ErrorKind.NOT_FOUND),
        (Failure("The response was filtered: the prompt triggers Azure OpenAI's content management policy.", 400),
         ErrorKind.CONTENT_FILTER),
        (Failure("AnthropicError - Overloaded", None), ErrorKind.OVERLOADED),
        (Failure("upstream", 504), ErrorKind.NETWORK),
        (Failure("something else", None), ErrorKind.UNKNOWN),
        (error_of("Provider said no", code="server_error"), ErrorKind.OVERLOADED),
        (Failure('{"error": {"message": "Rate limited", "code": 429}}', 200), ErrorKind.RATE_LIMIT),
        (error_of("The model gpt-x: parameter top_p is not supported.", 400, code="unsupported_parameter"),
         ErrorKind.INVALID_REQUEST),
        (error_of("The team doesn't have any credits yet.", 403, code="permission_denied"), ErrorKind.QUOTA),
        (error_of("Slow", 400, type="server_error"), ErrorKind.INVALID_REQUEST),
        (Failure('{"code": "The caller does not have permission to execute the specified operation", "error": '
                 '"Your newly created team doesn\'t have any credits yet. You can purchase credits on x.ai."}', 403),
         ErrorKind.QUOTA),
        (Failure('{"message": "The provided model identifier is invalid."}', 400), ErrorKind.NOT_FOUND),
        (error_of("Item with id 'rs_68c' not found. Items are not persisted.", 404), ErrorKind.INVALID_REQUEST),
        (error_of("Flagged", code="invalid_prompt"), ErrorKind.CONTENT_FILTER),
    ],
)  # fmt: skip
def test_words_status_and_a_providers_own_name_for_an_error_tell_its_kind(
    failure: Failure, kind: ErrorKind
) -> None:
    assert classify(failure, TARGET, now=NOW).kind is kind


def test_a_provider_that_litellm_lacks_is_told_in_our_words() -> None:
    error = classify(
        Failure("LLM Provider NOT provided. Pass in the LLM provider", 400), TARGET, now=NOW
    )

    assert error.message == (
        'litellm can\'t call anthropic/claude. Set wire = "chat" for the model or its provider in config.toml.'
    )


def test_a_server_that_refuses_access_without_a_key_says_so() -> None:
    keyless = replace(TARGET, has_key=False, key="set ANTHROPIC_API_KEY")
    error = classify(error_of("Not allowed", 403), keyless, now=NOW)

    assert error.message == (
        "Anthropic refuses access (403): Not allowed. No key was sent. What to do: set ANTHROPIC_API_KEY."
    )


def test_a_call_that_groq_cannot_read_is_asked_for_again() -> None:
    failure = error_of(
        "Tool call validation failed: x", type="invalid_request_error", code="tool_use_failed"
    )
    error = classify(failure, TARGET, now=NOW)

    assert retry_delay(RetrySettings(), 1, error, lambda: 0.5) is not None
    assert error.message.startswith(
        "Anthropic could not parse the output of anthropic/claude: Tool call validation failed"
    )


def test_a_failure_is_what_the_provider_said_and_not_what_litellm_made_of_it() -> None:
    made = type("Made", (Exception,), {"status_code": 500, "__module__": "litellm.exceptions"})
    error = made("down\nTraceback (most recent call last)\n  File")
    error.__cause__ = type("Adapter", (Exception,), {"status_code": 529})("x")

    assert failure_facts(error) == {"status": 529, "headers": {}, "text": "down"}


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("refused", "Nothing answers at api.example. Check that the server is running"),
        ("unresolved", "Can't reach"),
        ("certificate", "SSL_CERT_FILE"),
        ("timeout", "Anthropic did not begin to answer within 20 s"),
        ("closed", "broke before the answer was complete"),
        ("ended", "ended the answer early"),
    ],
)
def test_broken_connections_say_what_to_check(cause: str, words: str) -> None:
    error = classify(Failure("x", cause=cause, seconds=20), TARGET, now=NOW)  # type: ignore[arg-type]

    assert error.kind is ErrorKind.NETWORK
    assert words in error.message


def test_messages_are_one_plain_sentence_with_the_providers_words() -> None:
    text = 'litellm.BadRequestError: AnthropicException - b\'{"error": {"message": "No.\\\\nNot so."}}\''

    assert (
        classify(Failure(text, 400), TARGET, now=NOW).message
        == "Anthropic refused the request: No. Not so."
    )


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - boo", "boo"),
        ('{"error": {"message": "boo", "code": "bad"}}', "boo (bad)"),
        (
            '[{"error": {"code": 400, "message": "boo", "status": "INVALID_ARGUMENT"}}]',
            "boo (INVALID_ARGUMENT)",
        ),
        (
            '{"error": {"message": "Provider failed", "metadata": {"raw": "boo"}}}',
            "Provider failed boo",
        ),
        ('{"error": "boo"}', "boo"),
        ('{"success": false, "errors": [{"code": 7003, "message": "boo"}]}', "boo"),
        ("{not json", "{not json"),
        ("<html><body><h1>502 Bad Gateway</h1></body></html>", "502 Bad Gateway"),
        ("", ""),
    ],
)
def test_the_innermost_words_are_found(text: str, plain: str) -> None:
    assert read_body(text).words == plain


@pytest.mark.parametrize(
    ("headers", "text", "wait"),
    [
        ({"Retry-After": "12"}, "", 12.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, "", 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:00 GMT"}, "", 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, "", 360.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, "", 0.12),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "8s"}, "", None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000042000"}, "", 42.0),
        ({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2027-01-15T08:01:00Z"}, "",
         60.0),
        ({"retry-after": "soon"}, "", None),
        ({}, "Please try again in 1m30.5s.", 90.5),
        ({}, '"retryDelay": "34s"', 34.0),
        ({}, "try again in 2 minutes", 120.0),
        ({}, "Try again in 1 hour, 2 mins and 3 Seconds.", 3723.0),
        ({}, "retry after 500 ms", 0.5),
        ({}, "resets in 2 hrs", 7200.0),
        ({}, "resets at 10 December", None),
        ({}, "try again in 20s, 5 requests are left", 20.0),
        ({}, "no hint", None),
        ({"retry-after": "Fri, 15 Jan 99999999999999999999 08:00:30 GMT"}, "", None),
        ({"retry-after": "9" * 400 + "s"}, "", None),
    ],
)  # fmt: skip
def test_waits_in_every_form(headers: dict[str, str], text: str, wait: float | None) -> None:
    assert retry_after(headers, text, now=NOW) == (None if wait is None else pytest.approx(wait))


@given(
    st.text()
    | st.from_regex(
        r"(?:Fri, )?\d{1,30} Jan \d{1,30} \d{1,9}:\d\d:\d\d [+-]\d{1,9}", fullmatch=True
    )
    | st.from_regex(r"[1-9]\d{0,400}(?:ms|s|m|h|d)?", fullmatch=True)
)
def test_whatever_a_header_says_is_a_wait_that_can_be_spoken_or_none(value: str) -> None:
    wait = span(value, now=NOW)
    assert wait is None or (wait >= 0 and spoken(wait))


def test_a_size_of_thousands_of_digits_ends_nothing() -> None:
    text = "maximum context length is " + "9" * 5_000
    assert find_overflow(text, 400) is not None


def test_spans_and_how_they_are_spoken() -> None:
    assert span("1h2m3s", now=NOW) == 3723
    assert span(None, now=NOW) is None
    words = [spoken(seconds) for seconds in (0.2, 45, 600, 7500, 300_000)]
    assert words == ["1 s", "45 s", "10 min", "2 h 5 min", "3 days"]


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
    expected = next(
        (kind for words, kind in MEANT.items() if words in text), ErrorKind.INVALID_REQUEST
    )

    error = classify(Failure(text, recording.status, recording.headers), TARGET, now=0.0)

    assert error.kind is expected
    assert "{" not in error.message.partition("Supported models")[0]


SETTINGS = RetrySettings()


def error(kind: ErrorKind = ErrorKind.NETWORK, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, "x", retry_after=retry_after)


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_only_what_may_pass_by_itself_is_tried_again(kind: ErrorKind) -> None:
    again = kind in {ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.HOST}

    assert (retry_delay(SETTINGS, 1, error(kind), lambda: 0.5) is not None) is again


def test_delays_double_up_to_a_cap_with_full_jitter() -> None:
    settings = RetrySettings(attempts=50)

    longest = [
        retry_delay(settings, attempt, error(), lambda: 1.0) for attempt in (1, 2, 3, 6, 7, 49)
    ]

    assert longest == [1, 2, 4, 32, 60, 60]
    assert retry_delay(settings, 3, error(), lambda: 0.0) == 0


@pytest.mark.parametrize(
    ("kind", "status"),
    [(ErrorKind.OVERLOADED, 500), (ErrorKind.OVERLOADED, None), (ErrorKind.RATE_LIMIT, 429)],
)
def test_a_busy_server_is_given_about_a_minute(kind: ErrorKind, status: int | None) -> None:
    busy = ModelError(kind, "x", status=status)
    for jitter, waits in ((0.0, [0.5, 2, 8, 30, None]), (1.0, [1, 4, 16, 60, None])):
        found = [
            retry_delay(SETTINGS, attempt, busy, lambda: jitter)  # noqa: B023 - called at once
            for attempt in range(1, 6)
        ]
        assert found == waits
    assert retry_delay(RetrySettings(attempts=50), 40, busy, lambda: 1.0) == 60
    unusable = ModelError(ErrorKind.OVERLOADED, "x", status=400)
    assert retry_delay(SETTINGS, 1, unusable, lambda: 0.0) == 0


def test_a_named_wait_is_kept_to_and_one_that_is_too_long_ends_the_retrying() -> None:
    waits = [(30, 0.0), (30, 1.0), (600, 0.0), (601, 0.0)]
    delays = [
        retry_delay(SETTINGS, 1, error(ErrorKind.RATE_LIMIT, wait), lambda: jitter)  # noqa: B023 - called at once
        for wait, jitter in waits
    ]

    assert delays == [30, 31, 600, None]
