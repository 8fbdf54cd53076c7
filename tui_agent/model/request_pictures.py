"""Converts a request's pictures to types and sizes that its provider accepts."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest
from tui_agent.pictures import PDF, NoPicture, Picture, PictureLimits, fits, read_picture

_KEPT = 64
"""Maximum number of converted pictures kept in memory."""


class PictureFitter:
    """Scales and converts the pictures that a provider doesn't accept as they are.

    The results are cached.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[str, PictureLimits], Picture | NoPicture] = {}

    async def fit(
        self, request: ModelRequest, limits: PictureLimits
    ) -> tuple[ModelRequest, dict[str, str]]:
        """Convert the pictures of a request that don't fit the limits of its provider.

        Returns the request and the unreadable pictures. Pictures that fit already, PDFs and lost
        blobs stay unchanged. The second value maps the blob of each picture that can't be converted
        to the reason, such as "a web page".
        """
        if not request.blobs:
            return request, {}
        made: dict[str, Picture] = {}
        unreadable: dict[str, str] = {}
        for blob, image in images_of(request.messages).items():
            data = request.blobs.get(blob)
            if data is None or image.mime == PDF or fits(data, image.mime, limits):
                continue
            picture = await self._picture(blob, data, limits)
            if isinstance(picture, NoPicture):
                unreadable[blob] = picture.reason
            else:
                made[blob] = picture
        return _with_pictures(request, made), unreadable

    async def _picture(self, blob: str, data: bytes, limits: PictureLimits) -> Picture | NoPicture:
        known = self._made.get((blob, limits))
        if known is not None:
            return known
        while len(self._made) >= _KEPT:
            self._made.pop(next(iter(self._made)))
        made = self._made[blob, limits] = await asyncio.to_thread(read_picture, data, limits)
        return made


def images_in(message: Message) -> Iterator[ImageRef]:
    """Yield the pictures and PDFs of a message, in order."""
    return (part for part in message.content if isinstance(part, ImageRef))


def images_of(messages: Iterable[Message]) -> dict[str, ImageRef]:
    """Return the pictures and PDFs of messages by blob, in the order of their first use."""
    found: dict[str, ImageRef] = {}
    for message in messages:
        for image in images_in(message):
            found[image.blob] = image
    return found


def _with_pictures(request: ModelRequest, made: Mapping[str, Picture]) -> ModelRequest:
    """Return the request with the pictures in ``made``, which is keyed by the original blobs."""
    if not made:
        return request
    blobs = request.blobs | {blob: picture.data for blob, picture in made.items()}
    messages = [_retyped(message, made) for message in request.messages]
    return replace(request, messages=tuple(messages), blobs=blobs)


def _retyped(message: Message, made: Mapping[str, Picture]) -> Message:
    if made.keys().isdisjoint(images_of([message])):
        return message
    parts: list[ContentText | ImageRef] = []
    for part in message.content:
        if isinstance(part, ImageRef) and part.blob in made:
            parts.append(ImageRef(part.blob, made[part.blob].mime))
        else:
            parts.append(part)
    return replace(message, content=tuple(parts))
