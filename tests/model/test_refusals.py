"""Which part of a request a provider refuses, in the words of each of them."""

import json
from pathlib import Path

import pytest

from tui_agent.model.error_body import is_error, read_body
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.refusals import Part, Refusal, Sent, find_refusal

BODIES = Path(__file__).with_name("refused_bodies.jsonl")
"""Error bodies of real servers, after their documentation and public reports."""
TARGET = Target("openai/m", "Here")
SENT = Sent(
    optional=(
        "stream_options",
        "reasoning.summary",
        "thinking",
        "max_tokens",
        "prompt_cache_key",
        "tool_choice",
    ),
    tools=("read", "srv_search", "srv_price"),
    blobs=frozenset({"a" * 64}),
    answer_tokens=32_000,
    can_change_format=False,
)
PREFIX = "Jinja Exception: " * 30
"""On a real llama.cpp what matters stands behind the three hundredth character."""


def refused(text: str, status: int | None = 400, sent: Sent = SENT) -> Refusal | None:
    return find_refusal(classify(Failure(text, status), TARGET, now=0), read_body(text), sent)


def said(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


WORDS = [
    # Chat templates, by llama.cpp, vLLM and others; Mistral, Anthropic, Perplexity, Google.
    (Part.ROLES, 500, said(f"{PREFIX}After the optional system message, conversation roles must alternate user and "
        "assistant roles except for tool calls and results. at row 189, column 164", code=500, type="server_error")),
    (Part.ROLES, 400, said("Conversation roles must alternate user/assistant/user/assistant/...")),
    (Part.ROLES, 500, said("roles must alternate between user and assistant", type="server_error")),
    (Part.ROLES, 400, said('messages: roles must alternate between "user" and "assistant", but found multiple '
        '"user" roles in a row', type="invalid_request_error")),
    (Part.ROLES, 400, '{"object":"error","message":"Unexpected role \'user\' after role \'tool\'","code":"3230"}'),
    (Part.ROLES, 400, said("After the (optional) system message(s), user or tool message(s) should alternate with "
        "assistant message(s).", type="invalid_message")),
    (Part.ROLES, None, '{"detail": "Conversation roles must alternate user/assistant"}'),
    (Part.CACHE_MARKS, 403, '{"message":"You do not have access to explicit prompt caching"}'),
    # Ollama, vLLM, llama.cpp, OpenRouter, Groq, Google, DeepSeek, Bedrock, Azure, LM Studio.
    (Part.TOOLS, 400, said("registry.ollama.ai/library/gemma:2b does not support tools")),
    (Part.TOOLS, 400, '{"error":"gemma3:4b does not support tools"}'),
    (Part.TOOLS, 400, said('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        type="BadRequestError", code=400)),
    (Part.TOOLS, 500, said("tools param requires --jinja flag", code=500, type="server_error")),
    (Part.TOOLS, 404, said("No endpoints found that support tool use. To learn more about provider routing, visit "
        "the documentation", code=404)),
    (Part.TOOLS, 400, said("`tool calling` is not supported with this model", type="invalid_request_error")),
    (Part.TOOLS, 400, said("Function calling is not enabled for models/gemma-3-27b-it", code=400)),
    (Part.TOOLS, 400, said("deepseek-reasoner does not support Function Calling")),
    (Part.TOOLS, 400, '{"message":"This model doesn\'t support tool use in streaming mode."}'),
    (Part.TOOLS, 400, said("tools is not supported in this model. For a list of supported models, refer to the docs")),
    (Part.TOOLS, 400, said("This model does not support function calls")),
    (Part.TOOLS, 400, said("tools are not supported by this model")),
    # OpenAI, Groq, vLLM, Google.
    (Part.TOOL_COUNT, 400, said("Invalid 'tools': array too long. Expected an array with maximum length 2, but got an "
        "array with length 3 instead.", param="tools", code="array_above_max_length")),
    (Part.TOOL_COUNT, 400, said("'tools' : maximum number of items is 2")),
    (Part.TOOL_COUNT, 400, said("tools: List should have at most 2 items after validation, not 3")),
    (Part.TOOL_COUNT, 400, said("Too many function declarations: at most 2 function declarations are allowed")),
    (Part.SYSTEM, 500, said("System role not supported", type="server_error")),
    (Part.SYSTEM, 400, said("Developer instruction is not enabled for models/gemma-3-27b-it", code=400)),
    (Part.SYSTEM, 400, said("Unsupported value: 'messages[0].role' does not support 'system' with this model.")),
    (Part.SYSTEM, 500, said("System message must be at the beginning. at row 20, column 40", type="server_error")),
    (Part.SYSTEM, 400, said("Unexpected role: developer")),
    (Part.SYSTEM, 400, said("Only user and assistant roles are supported!")),
    (Part.SYSTEM, 500, said("Only user, tool and assistant roles are supported! at row 20")),
    (Part.SYSTEM, 400, said("Only `user` and `assistant` roles are supported")),
    (Part.SYSTEM, None, json.dumps({"base_resp": {"status_code": 2013, "status_msg": "invalid params, invalid message "
        "role: system"}})),
    (Part.ROLES, 400, json.dumps({"error_code": 336006, "error_msg": "the role of message with even index in the "
        "messages must be assistant or function"})),
    # Pictures: the model takes none, or one of them is wrong.
    (Part.PICTURES, 404, said("No endpoints found that support image input", code=404)),
    (Part.PICTURES, 500, said("image input is not supported - hint: if this is unexpected, you may need to provide "
        "the mmproj", type="server_error")),
    (Part.PICTURES, 400, said("Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
        "`image_url`, expected `text`")),
    (Part.PICTURES, 400, said("Invalid content type. image_url is only supported by certain models.")),
    (Part.PICTURES, 400, said("This model does not support image inputs.")),
    (Part.PICTURES, 400, said("At most 0 image(s) may be provided in one request.")),
    (Part.PICTURE, 400, said("messages.1.content.1.image.source.base64: The image was specified using the image/png "
        "media type, but the image appears to be a image/jpeg image", type="invalid_request_error")),
    (Part.PICTURE, 400, said("Could not process image")),
    (Part.PICTURE, 400, said("messages.3.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > "
        "5242880 bytes")),
    (Part.PICTURE, 400, said("messages.0.content.1.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size: 8000 pixels")),
    (Part.PICTURE, 400, said("You uploaded an unsupported image. Please make sure your image is valid.",
        code="image_parse_error")),
    (Part.PICTURE, 400, said("Invalid image data", code="invalid_image")),
    (Part.PICTURE, 400, said("Unable to process input image. Please retry or report in", code=400)),
    (Part.PICTURE, 413, said("The image data you provided is too large")),
    (Part.PICTURE, 500, said("Failed to load image: cannot identify image file", type="server_error")),
    (Part.PICTURE, 400, said("Invalid base64 data")),
    (Part.PICTURES, 400, json.dumps({"code": 20041, "message": "The model is not a VLM (Vision Language Model). "
        "Please use text-only prompts.", "data": None})),
    (Part.PICTURES, 404, json.dumps({"error": "Only 'text' content type is supported."})),
    (Part.PICTURES, 400, said("'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : "
        "value must be a string)]")),
    (Part.PICTURES, 422, json.dumps({"detail": [
        {"loc": ["body", "messages", 1, "content", "str"], "msg": "Input should be a valid string"},
        {"loc": ["body", "messages", 1, "content", "list[Content]", 1, "type"], "msg": "Input should be 'text'"}]})),
    (Part.PICTURES, 400, said("messages.content.type is invalid, allowed values: ['text']", code="1210")),
    (Part.PICTURE, 500, json.dumps({"error": "failed to process inputs: image: unknown format"})),
    # Tools.
    (Part.TOOL, 400, said("Invalid schema for function 'srv_price': In context=('properties', 'arr'), array schema "
        "missing items.", code="invalid_function_parameters")),
    (Part.TOOL, 400, said("tools.1.custom.input_schema.properties: Property keys should match pattern "
        "'^[a-zA-Z0-9_.-]{1,64}$'")),
    (Part.TOOL, 400, said("* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[k].items: "
        "missing field.", code=400)),
    (Part.TOOL, 500, said("Unable to generate parser for this template: JSON schema conversion failed: Unrecognized "
        "schema", type="server_error")),
    # The rest.
    (Part.CACHE_MARKS, 400, said("messages.0.content.0.text.cache_control: Extra inputs are not permitted")),
    (Part.CACHE_MARKS, 400, said("A maximum of 4 blocks with cache_control may be provided. Found 5.")),
    (Part.CACHE_MARKS, 400, json.dumps({"message": "You invoked an unsupported model or your request did not allow "
        "prompt caching."})),
    (Part.CALL_IDS, 400, said("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum "
        "length 40, but got a string with length 46 instead.", code="string_above_max_length")),
    (Part.CALL_IDS, 400, said("Tool call id was chatcmpl-tool-x but must be a-z, A-Z, 0-9, with a length of 9.")),
    (Part.CALL_IDS, 400, said("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")),
    (Part.FIELD, 400, said("Unknown parameter: 'stream_options'.")),
    (Part.FIELD, 400, said("Your organization must be verified to generate reasoning summaries.",
        param="reasoning.summary")),
    (Part.FIELD, 422, json.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"],
        "msg": "Extra inputs are not permitted"}]})),
    (Part.FIELD, 422, json.dumps({"detail": [{"loc": ["body", "stream_options"],
        "msg": "extra fields not permitted", "type": "value_error.extra"}]})),
    (Part.FIELD, 400, json.dumps({"status": 400, "error": "Bad Request", "message": "JSON parse error: Unrecognized "
        'field "stream_options" (class com.x.Req), not marked as ignorable'})),
    (Part.REASONING, 400, said("messages.1.content.0: Invalid `signature` in `thinking` block")),
    (Part.REASONING, 404, said("Item with id 'rs_68c' not found.")),
    (Part.ROOM, 400, said("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")),
    (Part.ROOM, 400, said("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for x")),
    (Part.ROOM, 400, said("max_tokens is too large: 32000. This model supports at most 8192 completion tokens.")),
    (Part.ROOM, 400, json.dumps({"message": "The maximum tokens you requested exceeds the model limit of 4096. "
        "Try again with a maximum tokens value that is lower than 4096."})),
    (Part.ROOM, 400, said("This model's maximum context length is 4096 tokens. You requested 4420 tokens (3900 in the "
        "messages).")),
]  # fmt: skip
WORDS += [
    (Part[row["part"]], row["status"], row["body"])
    for row in map(json.loads, BODIES.read_text(encoding="utf-8").splitlines())
]


@pytest.mark.parametrize(
    ("part", "status", "text"), WORDS, ids=[f"{part} {at}" for at, (part, *_) in enumerate(WORDS)]
)
def test_the_words_name_the_part_whatever_the_status_is(
    part: Part, status: int | None, text: str
) -> None:
    found = refused(text, status)

    assert found is not None
    assert found.part is part


@pytest.mark.parametrize(
    ("part", "status", "text"), WORDS, ids=[f"{part} {at}" for at, (part, *_) in enumerate(WORDS)]
)
def test_a_refusal_under_status_200_names_the_same_part(
    part: Part, status: int | None, text: str
) -> None:
    if part is not Part.REASONING and status != 403:
        found = refused(text, None)
        assert found is not None
        assert found.part is part


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (said("Overloaded", type="overloaded_error"), 529),
        (said("Internal server error", type="server_error"), 500),
        (said("Rate limit reached for images"), 429),
        (said("Incorrect API key provided"), 401),
        (said("The model `gpt-9` does not exist"), 404),
        (said("temperature must be at most 2"), 400),
        (said("prompt is too long: 213462 tokens > 200000 maximum"), 400),
        (said("The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that "
              "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens. For image inputs, "
              "the number of image tokens depends on the number of images."), 400),
        (said("Your monthly usage limit is reached. Resets in 16 days."), 429),
    ],
)  # fmt: skip
def test_what_is_no_refusal_of_a_part_changes_nothing(text: str, status: int) -> None:
    assert refused(text, status) is None


def test_a_fault_of_the_server_that_sounds_like_a_part_is_tried_again_where_the_request_has_none() -> (
    None
):
    text = said("Internal error: schema cache is invalid", type="server_error")

    assert classify(Failure(text, 500), TARGET, now=0).kind is ErrorKind.OVERLOADED
    assert classify(Failure(text, 503), TARGET, now=0).kind is ErrorKind.OVERLOADED
    assert refused(text, 500, Sent()) is None
    assert refused(text, 503) is None


def test_the_refused_tool_is_named_by_name_or_by_place() -> None:
    assert refused(
        said("Invalid schema for function 'srv_price': array schema missing items")
    ) == Refusal(Part.TOOL, ("srv_price",))
    assert refused(said("tools.1.custom.input_schema: bad")) == Refusal(Part.TOOL, ("srv_search",))
    google = refused(
        said("* GenerateContentRequest.tools[0].function_declarations[2].parameters: missing")
    )
    assert google == Refusal(Part.TOOL, ("srv_price",))
    assert refused(said("failed to parse grammar")) == Refusal(Part.TOOL, SENT.tools)


def test_a_part_the_request_does_not_have_is_not_what_was_refused() -> None:
    assert refused(said("Could not process image"), sent=Sent()) is None
    assert refused(said("Invalid schema for function 'x'"), sent=Sent()) is None


@pytest.mark.parametrize(
    ("body", "words", "status", "kind"),
    [
        ({"code": 401, "msg": "token expired or incorrect", "success": False}, "token expired or incorrect", 401,
         ErrorKind.AUTH),
        ({"id": "x", "choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
         "insufficient balance", None, ErrorKind.QUOTA),
        ({"detail": "Not authenticated"}, "Not authenticated", None, ErrorKind.UNKNOWN),
        ({"detail": [{"loc": ["body", "messages"], "msg": "field required", "input": {"messages": "secret"}}]},
         "body.messages: field required", None, ErrorKind.UNKNOWN),
        ({"message": "Rate limit exceeded"}, "Rate limit exceeded", None, ErrorKind.RATE_LIMIT),
        ({"errorMessage": "Unauthorized"}, "Unauthorized", None, ErrorKind.AUTH),
        ({"error_code": 17, "error_msg": "Open api daily request limit reached"}, "daily request limit", None,
         ErrorKind.QUOTA),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded", 529,
         ErrorKind.OVERLOADED),
        ({"object": "error", "message": "boo", "code": 400}, "boo", 400, ErrorKind.INVALID_REQUEST),
        ({"error": {"message": "Slow down", "code": "429"}}, "Slow down", 429, ErrorKind.RATE_LIMIT),
    ],
)  # fmt: skip
def test_an_error_is_known_in_any_shape(
    body: dict[str, object], words: str, status: int | None, kind: ErrorKind
) -> None:
    text = json.dumps(body)
    read = read_body(text)

    assert is_error(body)
    assert words in read.words
    assert "secret" not in read.words
    assert read.status == status
    assert classify(Failure(text, 200), TARGET, now=0).kind is kind


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"delta": {"content": "error"}}]},
        {"id": "x", "object": "chat.completion.chunk", "error": None},
        {"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}},
        {"type": "message_start", "message": {"content": []}},
        {"type": "ping"},
        {"candidates": [{"content": {"parts": [{"text": "hi"}]}}]},
        {"message": {"role": "assistant", "content": "hi"}, "done": False},
        {"object": "response", "status": "completed", "error": None},
        {"usage": {"prompt_tokens": 3}},
        {},
    ],
)
def test_a_part_of_an_answer_is_no_error(value: dict[str, object]) -> None:
    assert not is_error(value)


@pytest.mark.parametrize(
    "words",
    [
        "Monthly usage limit reached. Resets in 16 days. To continue using this model now, enable usage from balance",
        "You have reached your weekly limit.",
        "usage_limit_reached",
        "You've hit your usage limit. Try again in 3 hours.",
        "5-hour limit reached, resets in 4 hours",
        "You exceeded your current plan quota, please check your billing",
    ],
)
def test_an_allowance_that_is_used_up_is_no_limit_of_the_rate(words: str) -> None:
    assert classify(Failure(said(words), 429), TARGET, now=0).kind is ErrorKind.QUOTA


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        "This model does not support parallel tool calls",
        "Thinking mode does not support this tool_choice",
        "tool_choice is not supported",
        "Invalid schema for function 'read': not supported",
        "strict tools are not available",
        "This model does not support strict tool calling",
        "tools[0].function.name: string too long. Expected a string with maximum length 64",
    ],
)
def test_what_only_mentions_tools_refuses_none(words: str) -> None:
    found = refused(said(words))
    assert found is None or found.part not in {Part.TOOLS, Part.TOOL_COUNT}


@pytest.mark.parametrize(
    ("words", "number"), [("maximum number of items is 2", 2), ("too many", 1)]
)
def test_the_number_of_tools_that_is_taken(words: str, number: int) -> None:
    assert refused(said(f"'tools': {words}")) == Refusal(Part.TOOL_COUNT, number=number)
