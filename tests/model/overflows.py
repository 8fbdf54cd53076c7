"""How providers say that a request does not fit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Overflow:
    """How a provider says that the request does not fit; ``window`` and ``sent`` are what its text names."""

    provider: str
    status: int
    message: str
    window: int | None = None
    sent: int | None = None
    code: str | None = None


OVERFLOWS = (
    Overflow(
        "openai",
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 135123 tokens. "
        "Please reduce the length of the messages.",
        128000,
        135123,
        "context_length_exceeded",
    ),
    Overflow(
        "openai-responses",
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    Overflow("anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462),
    Overflow(
        "anthropic-output",
        400,
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        200000,
        190000,
    ),
    Overflow(
        "google",
        400,
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1048575,
        1196265,
    ),
    Overflow(
        "mistral",
        400,
        "Prompt contains 40231 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40231,
    ),
    Overflow("groq", 400, "Please reduce the length of the messages or completion.", code="context_length_exceeded"),
    Overflow(
        "deepseek",
        400,
        "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens "
        "(66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        65536,
        66000,
    ),
    Overflow(
        "openrouter",
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 41122 tokens "
        "(33122 of text input, 8000 in the output). Please reduce the length of either one.",
        32768,
        33122,
    ),
    Overflow(
        "together",
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. "
        "Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
        8193,
        9000,
    ),
    Overflow(
        "xai",
        400,
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131072,
        537812,
    ),
    Overflow(
        "llama.cpp",
        400,
        "the request exceeds the available context size, try increasing it",
        code="exceed_context_size_error",
    ),
    Overflow(
        "llama.cpp-numbers",
        400,
        "request (9012 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
        9012,
        "exceed_context_size_error",
    ),
    Overflow(
        "lmstudio",
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 6021>= "
        "n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input",
        4096,
        6021,
    ),
    Overflow(
        "vllm",
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 "
        "tokens and your request has 5120 input tokens (4096 > 8192 - 5120).",
        8192,
        5120,
    ),
    Overflow("bedrock", 400, "Input is too long for requested model."),
    Overflow(
        "cohere",
        400,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4610. Try using a "
        "shorter prompt",
        4081,
        4610,
    ),
    Overflow("ollama", 400, "prompt too long; exceeded max context length by 1210 tokens"),
    Overflow("cerebras", 400, "Current length is 9211 while limit is 8192", 8192, 9211, "context_length_exceeded"),
    Overflow(
        "kimi",
        400,
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 270001)",
        262144,
        270001,
    ),
    Overflow("minimax", 400, "invalid params, context window exceeds limit (2013)"),
    Overflow("copilot", 400, "prompt token count of 131500 exceeds the limit of 128000", 128000, 131500),
    Overflow("fireworks", 400, "The prompt is too long: 140201, model maximum context length: 131071", 131071, 140201),
    Overflow(
        "azure",
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301004 tokens. "
        "Please reduce the length of the messages.",
        272000,
        301004,
        "context_length_exceeded",
    ),
    Overflow("zai", 400, "Prompt exceeds max length", code="1261"),
    Overflow(
        "huggingface", 422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5001", 4096, 5001
    ),
)
