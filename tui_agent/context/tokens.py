"""Estimates the tokens of texts, images, messages and entries without asking the provider.

Text is counted with OpenAI's byte-pair encodings (``vocabulary.py``). The result, a ``Count``, also
contains the number of tokens outside ASCII by class of characters. This count is called
*uncorrected*, because a model's ``Calibration`` still converts each class into the model's own
tokens. The calibration starts with the ratios known for the tokenizer's family and is corrected by
the usage that the provider reports. Entries store the uncorrected count in ``tokens`` and
``scripts``, which stay valid when the calibration changes.
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
"""Number of tokens of each message in addition to its text: start, role, separator and end (OpenAI
cookbook, "How to count tokens with tiktoken")."""
CALL_TOKENS = 8
"""Number of tokens of each tool call in addition to its name and arguments, that is, of its id and
markup."""
REQUEST_TOKENS = 3
"""Number of tokens at the end of each request that introduce the answer (source as above)."""
TOOLS_TOKENS = 12
"""Number of tokens of a request's list of tools in addition to the tools themselves."""
UNKNOWN_IMAGE_TOKENS = 1_100
"""Number of tokens assumed for an image of unknown size. It is between the providers' smallest and
largest."""
PAGE_TOKENS = 2_500
"""Number of tokens assumed for a page of a PDF: 1,000 to 2,000 for its text and about 1,000 for its
image."""

EXACT_WORK = 65_536
"""Length of the longest text that is counted as a whole (in about 15 ms), as measured by ``_work``.
Longer texts are sampled."""
SAMPLES = 128
"""Number of samples that are taken of a text too long to be counted whole."""
_OUTSIDE_WORK = 8
"""Number of ASCII characters whose counting takes as long as that of one byte of other
characters."""

_CL100K_MODEL = LazyPattern(r"(?:^|/)(?:gpt-4(?![.o\d])(?!-?5)|gpt-3\.5|gpt-35|text-embedding)")
_CLAUDE = LazyPattern(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")

_ALONE = resolve(())
_AS_SENT = (",", ":")
"""Separators of JSON without spaces, because requests are written without spaces."""


@frozen
class TokenCounter:
    """Counts texts, messages and entries in the tokens of one model.

    Methods whose docstring says "uncorrected" return tokens of the encoding, before they are
    converted by ``calibration``; all others return the model's tokens.
    """

    model: str
    calibration: Calibration = Calibration()
    templates: Templates = Templates()

    def text(self, text: str) -> int:
        return self.calibrated(self._text(text))

    def message(self, message: Message) -> int:
        """Return the tokens of a message, assuming a typical size for each of its images."""
        images = sum(isinstance(part, ImageRef) for part in message.content)
        return self.calibrated(self._message(message) + images * UNKNOWN_IMAGE_TOKENS)

    def schema(self, tool: ToolSchema) -> int:
        """Return how many tokens one tool takes in a request."""
        return self.calibrated(self._schema(tool))

    def entry(self, entry: Entry) -> int:
        """Return the tokens of an entry that is sent unchanged.

        If a count is stored with the entry, it is used.
        """
        return self.calibrated(self.stored(entry))

    def stored(self, entry: Entry) -> int:
        """Return the uncorrected tokens that are stored with an entry; if none are, count them."""
        if not entry.tokens:
            return self.estimate(entry)
        if entry.scripts:
            return Count.of(entry.tokens, entry.scripts)
        return entry.tokens

    def estimate(self, entry: Entry) -> int:
        """Count the uncorrected tokens of an entry, to be stored with the entry."""
        if isinstance(entry, SystemEntry):
            return self.head(entry)
        view = _ALONE if isinstance(entry, ToolResultEntry) else resolve((entry,))
        messages = self.messages_for(entry, view)
        count = self.messages(messages) + self.images(entry)
        if isinstance(entry, AssistantEntry) and entry.usage:
            # Encrypted reasoning can't be counted, so the provider's report is used, limited by the
            # blob's length.
            hidden = entry.usage.reasoning
            most = 0
            for message in messages:
                for blob in message.reasoning:
                    hidden -= self._text(_readable(blob))
                    most += len(blob)
            count += max(0, min(hidden, most))
        return count

    def messages_for(
        self, entry: Entry, view: ContextView, asked: ModelTraits | None = None
    ) -> list[Message]:
        """Return the messages that an entry of a view contributes to a request to a model.

        Placeholders for missing tool results are left out. ``asked`` is the model that receives the
        request; None means the model that made the entry or, if no model did, this counter's model.
        """
        if asked is None:
            model = entry.model if isinstance(entry, AssistantEntry) else self.model
            asked = ModelTraits(model, documents=True)
        messages = messages_of(entry, view, asked, self.templates)
        if isinstance(entry, ToolResultEntry):
            return messages
        return [message for message in messages if message.role != "tool"]

    def head(self, system: SystemEntry) -> int:
        """Return the uncorrected tokens of a request's first messages and of its tools."""
        tokens = self.messages(head_messages(system)) + sum(map(self._schema, system.tools))
        if system.tools:
            tokens += TOOLS_TOKENS
        return tokens

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the uncorrected tokens of messages. Their images are not counted."""
        return sum(map(self._message, messages))

    def images(self, entry: Entry, sent: Collection[str] | None = None) -> int:
        """Return the tokens of an entry's images, or only of those whose blobs are in ``sent``."""
        return sum(
            picture_tokens(image, self.model)
            for image in entry.images
            if sent is None or image.blob in sent
        )

    def calibrated(self, tokens: int) -> int:
        """Convert a number of uncorrected tokens into a number of the model's own tokens."""
        return round(self.calibration.apply(tokens))

    def learn(self, counted: int, reported: int) -> "TokenCounter":
        """Return a counter that is corrected by a provider's report; see ``Calibration.learn``."""
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
    """Count or estimate the uncorrected tokens of a text, in at most about 0.05 seconds.

    The result is a `Count` if some tokens are not of the class ``calibration.TEXT``. Long texts are
    estimated from samples.
    """
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
    """Return how long it takes to count a text's tokens, measured in ASCII characters.

    The result is the number of ASCII characters that take as long to count. Scripts without spaces
    take longer, because their pieces are long and rarely repeat.
    """
    if text.isascii():
        return len(text)
    outside = len(text.encode("utf-8", "replace")) - len(text)
    return len(text) + _OUTSIDE_WORK * outside


def picture_tokens(picture: ImagePart | Picture, model: str) -> int:
    """Return a model's tokens for an image or a PDF.

    Providers read each page of a PDF as text and as an image, Gemini only as an image of 258 tokens
    (https://platform.claude.com/docs/en/build-with-claude/pdf-support,
    https://ai.google.dev/gemini-api/docs/document-processing).
    """
    if not picture.pages:
        return image_tokens(picture.width, picture.height, model)
    if "gemini" in model:
        return picture.pages * 258
    return picture.pages * PAGE_TOKENS


def image_tokens(width: int, height: int, model: str) -> int:
    """Return a model's tokens for an image, by the provider's published rule.

    ``width`` and ``height`` are in pixels; if one is 0 (unknown), returns `UNKNOWN_IMAGE_TOKENS`.

    Claude: patches of 28 pixels after fitting the long edge to 1,568 pixels (2,576 from 4.7 on)
    (https://platform.claude.com/docs/en/build-with-claude/vision). OpenAI: patches of 32 pixels;
    for older models, 85 tokens and 170 for each tile of 512 pixels, after fitting the image into
    2,048 pixels and its short side into 768
    (https://platform.openai.com/docs/guides/images-vision). Gemini: about 1,100 for any size
    (https://ai.google.dev/gemini-api/docs/media-resolution). Others: like Claude.
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
    """Return the readable text in a provider's reasoning blob; "" if the blob isn't JSON."""
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
