"""How many tokens a text, an image or an entry takes, as well as it can be known without asking the provider.

Text is counted with OpenAI's byte-pair encodings, which are shipped as files: the network is never
touched. A ``Count`` remembers which of its tokens are outside ASCII, by class, and a model's
``Calibration`` has a size for each: the one its tokenizer's relatives are known to need, corrected
by the provider's reports. An entry's own ``tokens`` and ``scripts`` hold the count without them, so
that it never goes stale when they move.
"""

import json
import math
import re
import sys
import threading
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.context.calibration import Calibration, count_of, rough_count
from tui_agent.context.projection import ModelTraits, head_messages, messages_of
from tui_agent.context.request import ContentText, ImageRef, Message, wire_tool
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, resolve
from tui_agent.lazy import dataclass
from tui_agent.session.counting import Count
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ImagePart,
    SystemEntry,
    ToolResultEntry,
    ToolSchema,
    UserEntry,
)

if TYPE_CHECKING:
    import tiktoken

MESSAGE_TOKENS = 4
"""Tokens around each message: start, role, separator, end (OpenAI cookbook, "How to count tokens
with tiktoken")."""
CALL_TOKENS = 8
"""Tokens around each tool call: its id, its place in the message."""
REQUEST_TOKENS = 3
"""Tokens that open the answer (same source)."""
TOOLS_TOKENS = 12
"""Tokens around the list of tools."""
UNKNOWN_IMAGE_TOKENS = 1_100
"""An image of unknown size: between the smallest and the largest of the usual providers."""

CHUNK_CHARS = 32_768
"""Text is encoded in pieces: a single run without spaces costs more than its length."""
EXACT_CHARS = 262_144
"""Longer texts are sampled; nothing this long gets into a request whole."""
SAMPLES = 64

ROUGH_CHARS = 16_384
"""Longest text that is counted by a rule of thumb where that will do."""

ENCODING_FOLDER = Path(__file__).with_name("encodings")
"""Holds the encodings' files; ``scripts/model_data.py`` makes them and documents their format."""
_COUNTS = {"o200k_base": 199_998, "cl100k_base": 100_256}
"""Tokens of each encoding."""
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_PATTERNS = {
    # How each encoding splits text before merging bytes: part of its definition
    # (tiktoken_ext/openai_public.py).
    "o200k_base": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_CONTRACTIONS}",
            rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_CONTRACTIONS}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ),
}
_CL100K_MODEL = re.compile(r"(?:^|/)(?:gpt-4(?![.o\d])(?!-?5)|gpt-3\.5|gpt-35|text-embedding)")
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")

_ALONE = resolve(())


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts in a model's tokens. ``calibration`` corrects the encoding to the provider's reports.

    Every method returns corrected tokens, but for those that return a ``Count``. Without ``exact``,
    texts of up to ``rough_chars`` are counted by a rule of thumb until someone loads the encoding:
    a run of one short answer is over in the time.
    """

    model: str
    calibration: Calibration = Calibration()
    templates: Templates = Templates()
    exact: bool = True
    rough_chars: int = ROUGH_CHARS

    def text(self, text: str) -> int:
        return self.calibrated(self._text(text))

    def message(self, message: Message) -> int:
        """Return the tokens of a message of a request; images, of which it knows no size, count as usual ones."""
        images = sum(isinstance(part, ImageRef) for part in message.content)
        return self.calibrated(self._message(message) + images * UNKNOWN_IMAGE_TOKENS)

    def schema(self, tool: ToolSchema) -> int:
        """Return the tokens of one tool in the request's list."""
        return self.calibrated(self._schema(tool))

    def entry(self, entry: Entry) -> int:
        """Return the tokens an entry takes in a request while nothing hides it.

        Costs nothing for a stored entry: its count was stored when it was appended.
        """
        return self.calibrated(self.stored(entry))

    def stored(self, entry: Entry) -> int:
        """Return the uncorrected tokens an entry was stored with, counted now where it has none."""
        if not entry.tokens:
            return self.estimate(entry)
        if entry.scripts:
            return Count.of(entry.tokens, entry.scripts)
        return entry.tokens

    def estimate(self, entry: Entry) -> int:
        """Return the uncorrected tokens of an entry, which its ``tokens`` and ``scripts`` hold."""
        if isinstance(entry, SystemEntry):
            return self.head(entry)
        messages = self.told(
            entry, _ALONE if isinstance(entry, ToolResultEntry) else resolve((entry,))
        )
        # Text up to an answer is reported with it, so that nobody waits for 45 MB at the end of a
        # long one.
        counter = self
        if isinstance(entry, AssistantEntry):
            counter = replace(self, rough_chars=sys.maxsize)
        count = counter.messages(messages) + self.images(entry)
        if isinstance(entry, AssistantEntry) and entry.usage and any(m.reasoning for m in messages):
            # An encrypted blob says nothing of its size; the provider's report does, as far as the
            # blob can hold it.
            blobs = [blob for message in messages for blob in message.reasoning]
            hidden = entry.usage.reasoning - sum(self._text(_readable(blob)) for blob in blobs)
            count += max(0, min(hidden, sum(map(len, blobs))))
        return count

    def told(
        self, entry: Entry, view: ContextView, *, model: str | None = None, vision: bool = True
    ) -> list[Message]:
        """Return the messages that come from an entry of a view, without stand-ins for missing results.

        ``model`` is the one that is asked; without it, the one that made the entry.
        """
        if model is None:
            if isinstance(entry, AssistantEntry):
                model = entry.model
            else:
                model = self.model
        messages = messages_of(entry, view, ModelTraits(model, vision=vision), self.templates)
        if isinstance(entry, ToolResultEntry):
            return messages
        return [message for message in messages if message.role != "tool"]

    def head(self, system: SystemEntry) -> int:
        """Return the uncorrected tokens of a request's head: its messages and tools."""
        blocks = sum(self._message(message) for message in head_messages(system))
        tools = sum(map(self._schema, system.tools))
        return blocks + tools + (TOOLS_TOKENS if system.tools else 0)

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the uncorrected tokens of messages, images apart."""
        return sum(map(self._message, messages))

    def images(self, entry: Entry, sent: Collection[str] | None = None) -> int:
        """Return the tokens of an entry's images; ``sent`` are the blobs that count, None for all."""
        return sum(
            image_tokens(image.width, image.height, self.model)
            for image in images_of(entry)
            if sent is None or image.blob in sent
        )

    def calibrated(self, tokens: int) -> int:
        """Return uncorrected tokens as the model's."""
        return round(self.calibration.apply(tokens))

    def learn(self, counted: int, reported: int) -> "TokenCounter":
        """Return the counter with its sizes improved; see ``Calibration.learn``."""
        return replace(self, calibration=self.calibration.learn(counted, reported))

    def warm(self) -> None:
        """Load the encoding now (about 0.2 s, on any thread) instead of with the first count."""
        ENCODINGS.get(encoding_name(self.model))

    @property
    def is_rough(self) -> bool:
        """Whether short texts are counted by a rule of thumb now."""
        return not self.exact and encoding_name(self.model) not in ENCODINGS.loaded

    def _text(self, text: str) -> int:
        if not text:
            return 0
        if len(text) <= self.rough_chars and self.is_rough:
            return rough_count(text)
        return count_text(text, encoding_name(self.model))

    def _message(self, message: Message) -> int:
        count = MESSAGE_TOKENS
        for part in message.content:
            if isinstance(part, ContentText):
                count += self._text(part.text)
        for call in message.tool_calls:
            count += CALL_TOKENS + self._text(call.tool) + self._text(call.arguments)
        for blob in message.reasoning:
            count += self._text(_readable(blob))
        return count

    def _schema(self, tool: ToolSchema) -> int:
        return self._text(json.dumps(wire_tool(tool), ensure_ascii=False))


def encoding_name(model: str) -> str:
    if _CL100K_MODEL.search(model):
        return "cl100k_base"
    return "o200k_base"


def count_text(text: str, encoding: str = "o200k_base") -> int:
    """Return the tokens of a text in an encoding; linear in time, and never more than about 0.2 s."""
    if len(text) <= EXACT_CHARS:
        return sum(_count(piece, encoding) for piece in _pieces(text))
    step = len(text) / SAMPLES
    size = EXACT_CHARS // SAMPLES
    sampled = Count(0)
    for i in range(SAMPLES):
        sampled += _count(text[round(i * step) : round(i * step) + size], encoding)
    scale = len(text) / (size * SAMPLES)
    return Count.of(
        round(sampled * scale),
        ((script, round(number * scale)) for script, number in sampled.scripts),
    )


def image_tokens(width: int, height: int, model: str) -> int:
    """Return the tokens of an image by the provider's published rule.

    Claude: patches of 28 pixels after fitting the long edge to 1,568 pixels (2,576 from 4.7 on)
    (https://platform.claude.com/docs/en/build-with-claude/vision). OpenAI: patches of 32 pixels, or
    85 + 170 per tile of 512 after fitting into 2,048 and the short side to 768
    (https://platform.openai.com/docs/guides/images-vision). Gemini: about 1,100 for any size
    (https://ai.google.dev/gemini-api/docs/media-resolution). Others: as Claude.
    """
    if width <= 0 or height <= 0:
        return UNKNOWN_IMAGE_TOKENS
    if "gemini" in model:
        return 1_100
    if re.search(r"gpt-4o|gpt-4\.1(?!-)|gpt-4\.5|gpt-4-turbo|(?:^|/)o[13]", model):
        scale = min(1.0, 2_048 / max(width, height))
        scale *= min(1.0, 768 / (min(width, height) * scale))
        return 85 + 170 * _patches(width * scale, height * scale, 512)
    if "gpt-" in model:
        return min(round(_patches(width, height, 32) * 1.2), 3_000)
    claude = _CLAUDE.search(model)
    modern = claude is not None and (int(claude[1]), int(claude[2] or 0)) >= (4, 7)
    edge, most = (2_576, 4_784) if modern else (1_568, 1_568)
    scale = min(1.0, edge / max(width, height))
    return min(_patches(width * scale, height * scale, 28), most)


def _patches(width: float, height: float, size: int) -> int:
    return math.ceil(width / size) * math.ceil(height / size)


def images_of(entry: Entry) -> Sequence[ImagePart]:
    match entry:
        case UserEntry():
            return [part for part in entry.parts if isinstance(part, ImagePart)]
        case ToolResultEntry():
            return entry.attachments
        case _:
            return ()


def _readable(blob: str) -> str:
    """Return the text within a provider's reasoning blob; signatures and encrypted parts are not read as text."""
    try:
        value = json.loads(blob)
    except (ValueError, RecursionError):
        return ""
    texts: list[str] = []
    _collect(value, texts)
    return "\n".join(texts)


def _collect(value: Any, texts: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _collect(item, texts)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str) and key in (
                "thinking",
                "text",
                "reasoning",
                "reasoning_content",
            ):
                texts.append(item)
            elif not isinstance(item, str):
                _collect(item, texts)


def _pieces(text: str) -> Iterable[str]:
    start = 0
    while len(text) - start > CHUNK_CHARS:
        end = text.rfind("\n", start + CHUNK_CHARS // 2, start + CHUNK_CHARS) + 1
        if end <= start:
            end = start + CHUNK_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def _count(text: str, name: str) -> int:
    known = ENCODINGS.get(name)
    if known is None:
        return rough_count(text)
    tokens = known.encoding.encode_ordinary(text)
    if text.isascii():
        outside = 0
    else:
        outside = sum(map(known.outside.__getitem__, tokens))
    return count_of(len(tokens), outside, text)


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding, and for each of its tokens whether it holds a byte outside ASCII (1) or not (0)."""

    encoding: "tiktoken.Encoding"
    outside: bytes


class Encodings:
    """The encodings that were loaded, each with the first count that needs it.

    May be used from any thread.
    """

    def __init__(self) -> None:
        self.loaded: dict[str, Encoding | None] = {}
        """None stands for one that was looked for in vain."""
        # So that a thread that warms an encoding and one that counts don't both load it.
        self._lock = threading.Lock()

    def get(self, name: str) -> Encoding | None:
        """Return an encoding, or None when its files are not there; counts are rougher then."""
        with self._lock:
            if name not in self.loaded:
                self.loaded[name] = _load(name)
            return self.loaded[name]


ENCODINGS = Encodings()
"""Those of this program."""


def _load(name: str) -> Encoding | None:
    try:
        import tiktoken

        data = zlib.decompress((ENCODING_FOLDER / f"{name}.bin").read_bytes())
        count = _COUNTS[name]
        ranks: dict[bytes, int] = {}
        outside = bytearray(count)
        # The lengths of the tokens come first, then the tokens.
        start = count
        for rank in range(count):
            token = data[start : (start := start + data[rank])]
            ranks[token] = rank
            outside[rank] = not token.isascii()
        encoding = tiktoken.Encoding(
            name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={}
        )
    except (ImportError, OSError, zlib.error):
        return None
    # It has made a copy of its own, and the ones kept here would only take 30 MB.
    ranks.clear()
    return Encoding(encoding, bytes(outside))
