"""Tokens are counted as the model's own tokenizer would, offline, in bounded time."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken

from scripts.model_data import SOURCES, encoding
from tui_agent.context import tokens
from tui_agent.context.calibration import Calibration
from tui_agent.context.request import ContentText, ImageRef, Message, RequestToolCall
from tui_agent.context.tokens import (
    CALL_TOKENS,
    ENCODINGS,
    MESSAGE_TOKENS,
    Encodings,
    TokenCounter,
    count_text,
    encoding_name,
    image_tokens,
)
from tui_agent.session.entries import (
    AssistantEntry,
    ImagePart,
    ReasoningPart,
    SystemEntry,
    TextPart,
    ToolSchema,
    Usage,
    UserEntry,
)

MODEL = "openai/gpt-4o"
COUNTER = TokenCounter(MODEL)
SAMPLES = {
    "english": "The quick brown fox jumps over the lazy dog, and then it doesn't. " * 40,
    "code": "def measure(path: Sequence[Entry]) -> int:\n    return sum(entry.tokens for entry in path)\n" * 40,
    "json": '{"path": "src/app.py", "offset": 120, "matches": [1, 22, 333], "ok": true}\n' * 40,
    "cjk": "上下文窗口管理还有三层机制防止上下文溢出。日本語のテキストと 한국어 문장도 있다。" * 40,
}


def reference(text, name="o200k_base"):
    """Count with an encoding put together from the same files by other means."""
    found = ENCODINGS.get(name)
    return len(tiktoken.Encoding.encode(found.encoding, text, disallowed_special=()))


@pytest.mark.parametrize("kind", SAMPLES)
def test_text_is_counted_as_the_tokenizer_does(kind):
    assert COUNTER.text(SAMPLES[kind]) == reference(SAMPLES[kind])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "o200k_base"),
        ("anthropic/claude-sonnet-4-5", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("openrouter/openai/gpt-4-turbo", "cl100k_base"),
    ],
)
def test_the_encoding_follows_the_model(model, name):
    assert encoding_name(model) == name


def test_counting_loads_neither_litellm_nor_anything_that_could_reach_a_network():
    code = (
        "import sys\n"
        "from tui_agent.context.tokens import TokenCounter\n"
        "assert 'tiktoken' not in sys.modules\n"
        "assert TokenCounter('gpt-4o').text('hello world') == 2\n"
        "print([m for m in ('litellm', 'requests', 'httpx', 'urllib3') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["a" * 1_000_000, "\n" * 1_000_000, "字" * 2_000_000], ids=["a", "newlines", "han"])
def test_no_text_takes_long(text):
    """One that is looked at as a whole would take hours."""
    assert count_text(text) > 0


def test_long_texts_are_counted_in_pieces_and_huge_ones_sampled():
    text = "\n".join(SAMPLES.values()) * 8
    assert len(text) > tokens.CHUNK_CHARS * 2

    assert count_text(text) == pytest.approx(reference(text), rel=0.001)

    text = "".join(sample * 30 for sample in SAMPLES.values())
    assert len(text) > tokens.EXACT_CHARS

    assert count_text(text) == pytest.approx(reference(text), rel=0.03)

    assert COUNTER.text("<|endoftext|>") > 1


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_encoding_files_are_the_published_ones(name):
    assert (tokens.ENCODING_FOLDER / f"{name}.bin").read_bytes() == encoding(name)


def test_without_the_encoding_files_counts_are_rough_but_know_scripts(monkeypatch):
    monkeypatch.setattr(tokens, "ENCODING_FOLDER", Path("not there"))
    monkeypatch.setattr(tokens, "ENCODINGS", Encodings())
    for kind, text in SAMPLES.items():
        rough = count_text(text)
        assert rough > 0, kind
        assert 0.4 < rough / (len(text) / (1.4 if kind == "cjk" else 4)) < 2


def test_messages_and_tools_count_their_texts_and_what_is_around_them():
    message = Message(
        "assistant", (ContentText("hello world"),), tool_calls=(RequestToolCall("call_1", "read", '{"path": "a"}'),)
    )

    inside = sum(map(COUNTER.text, ("hello world", "read", '{"path": "a"}')))
    assert COUNTER.message(message) == inside + MESSAGE_TOKENS + CALL_TOKENS

    assert COUNTER.message(Message("user", (ImageRef("a", "image/png"),))) > 1_000

    tool = ToolSchema(name="read", description="Read a file", parameters={"type": "object"})
    function = '{"name": "read", "description": "Read a file", "parameters": {"type": "object"}}'
    sent = '{"type": "function", "function": ' + function + "}"

    assert COUNTER.schema(tool) == COUNTER.text(sent)

    tool = ToolSchema(name="read", description="Read a file", parameters={})
    head = SystemEntry(blocks=("You are an agent.",), tools=(tool,), model=MODEL)

    assert COUNTER.estimate(head) == COUNTER.text("You are an agent.") + MESSAGE_TOKENS + COUNTER.schema(tool) + 12


@pytest.mark.parametrize(
    ("model", "width", "height", "expected"),
    [
        ("gpt-4o", 1_024, 1_024, 765),
        ("claude-sonnet-4-5-20250929", 1_000, 1_000, 1_296),
        ("anthropic/claude-opus-4-8", 1_920, 1_080, 2_691),
        ("gpt-5.2", 1_024, 1_024, 1_229),
        ("gemini/gemini-3-pro", 4_000, 3_000, 1_100),
        ("gpt-4o", 0, 0, tokens.UNKNOWN_IMAGE_TOKENS),
    ],
)
def test_images_count_by_the_providers_rule(model, width, height, expected):
    assert image_tokens(width, height, model) == expected


def user(text, **fields):
    return UserEntry(parts=(TextPart(text=text),), **fields)


def test_an_entry_counts_its_images_and_a_stored_count_is_corrected():
    image = ImagePart(blob="a" * 64, mime="image/png", width=1_024, height=1_024)

    assert COUNTER.estimate(UserEntry(parts=(image,))) == 765 + MESSAGE_TOKENS

    corrected = TokenCounter(MODEL, Calibration(learnt={"text": 1.5}))
    assert corrected.entry(user("hello", tokens=1_000)) == 1_500
    assert (
        TokenCounter(MODEL, Calibration(learnt={"text": 1.5})).estimate(user("hello world", tokens=1_000))
        == 2 + MESSAGE_TOKENS
    )


@pytest.mark.parametrize(("reported", "counted"), [(800, 800), (90_000_000, 4_000)])
def test_encrypted_reasoning_counts_what_the_provider_reported_and_the_blob_can_hold(reported: int, counted: int):
    blob = '{"encrypted_content": "' + "A" * 3_975 + '"}'
    part = ReasoningPart(text="", blob=blob, model=MODEL)
    usage = Usage(input=9, output=reported + 100, reasoning=reported)
    entry = AssistantEntry(parts=(part, TextPart(text="so")), model=MODEL, usage=usage)

    assert COUNTER.estimate(entry) == counted + 1 + MESSAGE_TOKENS


def test_two_threads_load_an_encoding_once(monkeypatch):
    loads = []
    make = tiktoken.Encoding
    monkeypatch.setattr(tiktoken, "Encoding", lambda *given, **named: (loads.append(given), make(*given, **named))[1])
    monkeypatch.setattr(tokens, "ENCODINGS", Encodings())
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(TokenCounter("openai/gpt-5").text, "text") for _ in range(2)]:
            assert done.result() == 1
    assert len(loads) == 1
