"""How many tokens a text, an image or an entry takes, as well as it can be known without asking the provider.

Text is counted with OpenAI's byte-pair encodings (``vocabulary.py``): the network is never touched.
A ``Count`` remembers which of its tokens are outside ASCII, by class, and a model's
``Calibration`` has a size for each: the one its tokenizer's relatives are known to need, corrected
by the provider's reports. An entry's own ``tokens`` and ``scripts`` hold the count without them, so
that it never goes stale when they move.
"""

import json
import math
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from tui_agent.context.calibration import Calibration, count_of
from tui_agent.context.projection import ModelTraits, head_messages, messages_of
from tui_agent.context.request import ContentText, ImageRef, Message, wire_tool
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, resolve
from tui_agent.context.vocabulary import vocabulary
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.pictures import Picture
from tui_agent.session.counting import Count
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ImagePart,
    SystemEntry,
    ToolResultEntry,
    ToolSchema,
)

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
PAGE_TOKENS = 2_500
"""A page of a PDF: 1,000 to 2,000 of text and about 1,000 of its image."""

EXACT_WORK = 65_536
"""Most characters that are counted one by one, about 15 ms; longer texts are sampled. See
``_work`` for those outside ASCII."""
SAMPLES = 128
_OUTSIDE_WORK = 8

_CL100K_MODEL = LazyPattern(r"(?:^|/)(?:gpt-4(?![.o\d])(?!-?5)|gpt-3\.5|gpt-35|text-embedding)")
_CLAUDE = LazyPattern(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")

_ALONE = resolve(())
_AS_SENT = (",", ":")
"""What stands between the parts of JSON in a request."""


@frozen
class TokenCounter:
    """Counts in a model's tokens. ``calibration`` corrects the encoding to the provider's reports.

    Every method returns corrected tokens, but for those that return a ``Count``.
    """

    model: str
    calibration: Calibration = Calibration()
    templates: Templates = Templates()

    def text(self, text: str) -> int:
        return self.calibrated(self._text(text))

    def message(self, message: Message) -> int:
        """Return the tokens of a message of a request.

        Images, of which it knows no size, count as usual ones.
        """
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
        view = _ALONE if isinstance(entry, ToolResultEntry) else resolve((entry,))
        messages = self.told(entry, view)
        count = self.messages(messages) + self.images(entry)
        if isinstance(entry, AssistantEntry) and entry.usage:
            # An encrypted blob says nothing of its size; the provider's report does, as far as the
            # blob can hold it.
            hidden = entry.usage.reasoning
            most = 0
            for message in messages:
                for blob in message.reasoning:
                    hidden -= self._text(_readable(blob))
                    most += len(blob)
            count += max(0, min(hidden, most))
        return count

    def told(
        self, entry: Entry, view: ContextView, asked: ModelTraits | None = None
    ) -> list[Message]:
        """Return the messages that come from an entry of a view, without stand-ins for missing results.

        ``asked`` is the model that is sent them; without it, the one that made the entry.
        """
        if asked is None:
            model = entry.model if isinstance(entry, AssistantEntry) else self.model
            asked = ModelTraits(model, documents=True)
        messages = messages_of(entry, view, asked, self.templates)
        if isinstance(entry, ToolResultEntry):
            return messages
        return [message for message in messages if message.role != "tool"]

    def head(self, system: SystemEntry) -> int:
        """Return the uncorrected tokens of a request's head: its messages and tools."""
        tokens = self.messages(head_messages(system)) + sum(map(self._schema, system.tools))
        if system.tools:
            tokens += TOOLS_TOKENS
        return tokens

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the uncorrected tokens of messages, images apart."""
        return sum(map(self._message, messages))

    def images(self, entry: Entry, sent: Collection[str] | None = None) -> int:
        """Return the tokens of an entry's images.

        ``sent`` are the blobs that count, None for all.
        """
        return sum(
            picture_tokens(image, self.model)
            for image in entry.images
            if sent is None or image.blob in sent
        )

    def calibrated(self, tokens: int) -> int:
        """Return uncorrected tokens as the model's."""
        return round(self.calibration.apply(tokens))

    def learn(self, counted: int, reported: int) -> "TokenCounter":
        """Return the counter with its sizes improved; see ``Calibration.learn``."""
        return replace(self, calibration=self.calibration.learn(counted, reported))

    def _text(self, text: str) -> int:
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
        return self._text(json.dumps(wire_tool(tool), ensure_ascii=False, separators=_AS_SENT))


def encoding_name(model: str) -> str:
    if _CL100K_MODEL.search(model):
        return "cl100k_base"
    return "o200k_base"


def count_text(text: str, encoding: str = "o200k_base") -> int:
    """Return the tokens of a text in an encoding; takes about 0.05 s at most, whatever the text."""
    work = _work(text)
    if work <= EXACT_WORK:
        return _count(text, encoding)
    step = math.ceil(len(text) / SAMPLES)
    size = max(1, step * EXACT_WORK // work)
    samples = "".join(text[start : start + size] for start in range(0, len(text), step))
    sampled = _count(samples, encoding)
    scale = len(text) / len(samples)
    scripts = sampled.scripts if isinstance(sampled, Count) else ()
    return Count.of(
        round(sampled * scale), ((script, round(number * scale)) for script, number in scripts)
    )


def _count(text: str, encoding: str) -> int:
    tokens, outside = vocabulary(encoding).count(text)
    return count_of(tokens, outside, text)


def _work(text: str) -> int:
    """Return how much there is to count in a text, in characters of ASCII.

    Scripts without spaces have long pieces, hardly any of which come twice.
    """
    if text.isascii():
        return len(text)
    outside = len(text.encode("utf-8", "replace")) - len(text)
    return len(text) + _OUTSIDE_WORK * outside


def picture_tokens(picture: ImagePart | Picture, model: str) -> int:
    """Return the tokens of an image, or of a PDF.

    A page of a PDF is read as text and as an image, by Gemini as an image of 258 tokens
    (https://platform.claude.com/docs/en/build-with-claude/pdf-support,
    https://ai.google.dev/gemini-api/docs/document-processing).
    """
    if not picture.pages:
        return image_tokens(picture.width, picture.height, model)
    if "gemini" in model:
        return picture.pages * 258
    return picture.pages * PAGE_TOKENS


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


def _readable(blob: str) -> str:
    """Return the text within a provider's reasoning blob.

    Signatures and encrypted parts are not read as text.
    """
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
