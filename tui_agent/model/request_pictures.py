"""Converts a request's pictures to what its provider accepts, once for all requests."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest
from tui_agent.pictures import PDF, NoPicture, Picture, PictureLimits, fits, read_picture

_KEPT = 64
"""Maximum converted pictures kept in memory."""


class PictureFitter:
    """Scales and converts pictures that a provider doesn't accept unchanged."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, PictureLimits], Picture | NoPicture] = {}

    async def fit(
        self, request: ModelRequest, limits: PictureLimits
    ) -> tuple[ModelRequest, dict[str, str]]:
        """Return a request with pictures within limits, and why others can't be sent, by blob."""
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
    """Yield the pictures of a message."""
    return (part for part in message.content if isinstance(part, ImageRef))


def images_of(messages: Iterable[Message]) -> dict[str, ImageRef]:
    """Return the pictures of messages by blob, oldest first."""
    found: dict[str, ImageRef] = {}
    for message in messages:
        for image in images_in(message):
            found[image.blob] = image
    return found


def _with_pictures(request: ModelRequest, made: Mapping[str, Picture]) -> ModelRequest:
    """Return a request with the bytes and types of some pictures replaced, by blob."""
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
