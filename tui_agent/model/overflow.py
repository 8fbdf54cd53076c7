"""Recognises context overflows in error messages, and reads the sizes of request and window.

The patterns are from the providers' documentation and from public reports; the tests have an
example of each.
"""

import re

from tui_agent.lazy import LazyPattern, frozen

_NUMBER = r"(\d[\d,_]{0,20})"

_TEXTS = (
    (r"prompt is too long", "Anthropic; Fireworks"),
    (r"exceed context limit", "Anthropic, with the answer: stackblitz/bolt.new#7418"),
    (r"prompt too long", "Ollama"),
    (r"input is too long", "Bedrock; Kiro: hank9999/kiro.rs#67"),
    (
        r"exceeds? (?:the |this |its )?(?:model'?s )?(?:maximum )?context (?:window|length|limit|size)",
        "OpenAI",
    ),
    (r"exceeds the available context size|exceed_context_size", "llama.cpp"),
    (r"context[_ ](?:length|window)[_ ]exceed", "OpenAI's code; MiniMax"),
    (r"context size has been exceeded|greater than the context length", "LM Studio"),
    (r"input token count.{0,40}exceeds", "Google: arkavo-org/arkavo-edge#371"),
    (
        r"maximum (?:prompt|context|input|model) (?:length|window|size|limit)",
        "xAI; OpenAI; OpenRouter; vLLM",
    ),
    (r"context length is only \d+", "vLLM: agentscope-ai/AgentTeams#346"),
    (r"maximum allowed input length", "GLM's hosts: mario-andreschak/FLUJO#291"),
    (r"input length \d+ exceeds the maximum length", "Volcengine Ark: langgenius/dify#32221"),
    (r"range of input length should be", "DashScope: QwenLM/qwen-code#98"),
    (r"reduce the length of (?:the|your) (?:messages|prompt|input)", "Groq"),
    (r"reduce the length of either one", "OpenRouter"),
    (r"longer than the model'?s context", "Ollama"),
    (r"too large for model with \d", "Mistral"),
    (r"exceed(?:s|ed) (?:the )?model token limit", "Kimi"),
    (r"(?:prompt|input) tokens? exceed", "Azure"),
    (r"token count of \d+ exceeds the limit", "GitHub Copilot"),
    (r"prompt exceeds max", "Z.ai"),
    (
        r"`?inputs`? tokens \+ `?max_new_tokens|`?inputs`? must have less than",
        "Together; Hugging Face",
    ),
    (r"current length is \d+ while limit is", "Cerebras"),
    (r"too many (?:input )?tokens", "Cohere; Bedrock's throttle begins alike"),
    (r"token limit exceeded", "Kimi"),
    (r"model_context_window_exceeded", "Anthropic; Z.ai"),
    (
        r"request_too_large|request (?:entity )?too large|payload too large|content too large",
        "Anthropic; RFC 9110, 413",
    ),
)
"""Patterns of error messages about an overflow. Each is listed with the providers or reports that
it comes from."""

_OVERFLOW = LazyPattern("|".join(text for text, _source in _TEXTS), re.IGNORECASE)

_RATE = LazyPattern(
    r"rate.?limit|per.?minute|per.?day|\bTP[MD]\b|\bquota\b|too many requests|throttl|wait before|try again later"
    r"|(?:try again|retry) (?:in|after) \d",
    re.IGNORECASE,
)

_PER_MINUTE = LazyPattern(
    rf"limit:? {_NUMBER}.{{0,40}}?requested:? {_NUMBER}", re.IGNORECASE | re.DOTALL
)

_WINDOW = tuple(
    LazyPattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"> {_NUMBER} maximum",
        rf"exceed context limit: [\d,_]+ \+ [\d,_]+ > {_NUMBER}",
        rf"maximum number of tokens allowed \(?{_NUMBER}",
        rf"maximum (?:context|prompt|model|input) (?:length|window|size)\D{{0,12}}{_NUMBER}",
        rf"too large for model with {_NUMBER}",
        rf"must be <= {_NUMBER}",
        rf"must have less than {_NUMBER}",
        rf"n_ctx\W+{_NUMBER}",
        rf"context size \({_NUMBER} tokens",
        rf"cannot exceed {_NUMBER}",
        rf"while limit is {_NUMBER}",
        rf"token limit:? {_NUMBER}",
        rf"exceeds the limit of {_NUMBER}",
        rf"configured limit of {_NUMBER}",
        rf"range of input length should be \[\d+, ?{_NUMBER}\]",
        rf"exceeds the maximum (?:length|allowed input length of) {_NUMBER}",
        rf"context length is only {_NUMBER}",
    )
)

_SENT = tuple(
    LazyPattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"\({_NUMBER} (?:in the messages|of text input|in your prompt)",
        rf"{_NUMBER} tokens > \d",
        rf"exceed context limit: {_NUMBER} \+",
        rf"token count \(?{_NUMBER}",
        rf"(?:prompt|request) contains {_NUMBER}",
        rf"request \({_NUMBER} tokens",
        rf"n_keep\W+{_NUMBER}",
        rf"n_prompt_tokens\W+{_NUMBER}",
        rf"has {_NUMBER} input tokens",
        rf"{_NUMBER} tokens from the input",
        rf"given: {_NUMBER}",
        rf"received {_NUMBER}",
        rf"current length is {_NUMBER}",
        rf"requested: {_NUMBER}",
        rf"token count of {_NUMBER}",
        rf"input length {_NUMBER} exceeds",
        rf"too long: {_NUMBER}",
        rf"resulted in {_NUMBER}",
        rf"requested (?:about )?{_NUMBER}",
    )
)

_ANSWER = LazyPattern(
    rf"{_NUMBER} (?:in the (?:completion|output)|of (?:the )?output)|max_(?:new_)?tokens\W+{_NUMBER}",
    re.IGNORECASE,
)
"""Matches the answer's limit, which some providers include in the number of requested tokens."""
_TOOLS = LazyPattern(rf"{_NUMBER} of tool input", re.IGNORECASE)

_MAX_DIGITS = 15
"""Maximum number of digits of a number that is read from a message. A longer number can't be a
size."""
_SMALLEST_WINDOW = 256
"""Smallest number of tokens that counts as the size of a window. Smaller numbers in messages may
state by how much the window was exceeded."""


@frozen
class Overflow:
    """A request that is too long.

    ``window`` is the size of the context window and ``sent`` that of the request, both in tokens;
    they are None if the error doesn't state them. ``per_minute`` is the account's limit in tokens
    per minute, if the request alone exceeds it.
    """

    window: int | None = None
    sent: int | None = None
    per_minute: int | None = None


def find_overflow(text: str, status: int | None, *, throttled: bool = False) -> Overflow | None:
    """Return the overflow that an error message describes; None for any other error.

    ``throttled`` says that the error's status or code is that of a rate limit. Such an error is an
    overflow only if the request alone exceeds the limit per minute.
    """
    if throttled or status == 429 or _RATE.search(text):
        match = _PER_MINUTE.search(text)
        if match is None:
            return None
        limit = _int(match[1])
        requested = _int(match[2])
        if limit and requested > limit:
            return Overflow(None, requested, limit)
        return None
    if not _OVERFLOW.search(text):
        # Compaction also helps if a request has too many bytes, which are mostly images.
        if status == 413:
            return Overflow()
        return None
    sizes = (_int(match[1]) for pattern in _WINDOW if (match := pattern.search(text)))
    window = next(sizes, None)
    return Overflow(window if window and window >= _SMALLEST_WINDOW else None, _sent(text))


def _sent(text: str) -> int | None:
    """Return the request's stated size in tokens, excluding the answer; None if none is stated."""
    for place, pattern in enumerate(_SENT):
        if match := pattern.search(text):
            sent = _int(match[1])
            if place == 0:
                tools = _TOOLS.search(text)
                return sent + (_int(tools[1]) if tools else 0)
            answer = None
            if "requested" in match[0].lower():
                answer = _ANSWER.search(text)
            if answer:
                return sent - _int(answer[1] or answer[2])
            return sent
    return None


def _int(text: str) -> int:
    return int(text.replace(",", "").replace("_", "")[:_MAX_DIGITS])
