"""The pictures of requests as each provider takes them, made once and kept for the next request."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tui_agent.context.request import ImageRef, Message, ModelRequest
from tui_agent.pictures import PDF, NoPicture, Picture, PictureLimits, fits, read_picture

_KEPT = 64
"""Pictures made to fit that are kept."""


class PictureFitter:
    """Scales and converts pictures that a provider doesn't take as they are."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, PictureLimits], Picture | NoPicture] = {}

    async def fit(
        self, request: ModelRequest, limits: PictureLimits
    ) -> tuple[ModelRequest, dict[str, str]]:
        """Return a request with pictures within limits, and why others can't be sent, by blob."""
        if not request.blobs:
            return request, {}
        types = {
            image.blob: image.mime
            for message in request.messages
            for image in images_in(message)
            if image.mime != PDF
        }
        sent = {blob: data for blob, data in request.blobs.items() if blob in types}
        odd = {blob: data for blob, data in sent.items() if not fits(data, types[blob], limits)}
        made = {blob: await self._picture(blob, data, limits) for blob, data in odd.items()}
        unreadable = {
            blob: picture.reason for blob, picture in made.items() if isinstance(picture, NoPicture)
        }
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


def _with_pictures(request: ModelRequest, made: Mapping[str, Picture | NoPicture]) -> ModelRequest:
    """Return a request with other bytes and types of some pictures, by blob."""
    found = {blob: picture for blob, picture in made.items() if isinstance(picture, Picture)}
    if not found:
        return request
    blobs = {**request.blobs, **{blob: picture.data for blob, picture in found.items()}}
    return replace(
        request,
        messages=tuple(_retyped(message, found) for message in request.messages),
        blobs=blobs,
    )


def _retyped(message: Message, made: Mapping[str, Picture]) -> Message:
    if not any(image.blob in made for image in images_in(message)):
        return message
    parts = (
        ImageRef(part.blob, made[part.blob].mime)
        if isinstance(part, ImageRef) and part.blob in made
        else part
        for part in message.content
    )
    return replace(message, content=tuple(parts))
