"""Converts entries to rows of the database and back, and fills in computed fields."""

import json
from collections.abc import Callable
from contextlib import suppress

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from tui_agent.safe_text import valid, valid_texts
from tui_agent.session.counting import Count
from tui_agent.session.entries import (
    CheckpointEntry,
    Entry,
    EntryAdapter,
    SystemEntry,
    ToolResultEntry,
)
from tui_agent.session.previews import preview_of

_HEADER = {"id", "parent_id", "kind", "created_at", "preview", "tokens"}
"""Fields of an entry that are columns of the table ``entries``, so that they are left out of the
entry's body."""


_NUL = "\\u0000"
"""A NUL character as JSON writes it. An escaped backslash before ``u0000`` also matches, which does
no harm."""


class BodyError(Exception):
    """Raised if the body that is stored for an entry isn't the JSON of an entry."""


def essence_of(entry: Entry) -> Entry:
    """Return an entry without its time and the fields that the store computes.

    If the results for two entries are equal, the entries have the same content, even if they are in
    different stores.
    """
    plain: dict[str, object] = {"created_at": 0, "tokens": 0, "scripts": (), "preview": ""}
    if isinstance(entry, ToolResultEntry) and entry.metadata.session is not None:
        # Earlier versions imported the results of subagents' calls without the subagents' sessions,
        # so the links to these sessions aren't compared.
        plain["metadata"] = entry.metadata.model_copy(update={"session": None})
    return entry.model_copy(update=plain)


def completed(
    entry: Entry, entry_id: int, parent: int | None, at: int, estimate: Callable[[Entry], int]
) -> Entry:
    """Return an entry with the fields needed to store it: id, parent, preview, time and tokens.

    ``at`` (in milliseconds since the epoch) is used if the entry has no time, and ``estimate`` if
    it has no tokens. Characters that can't be stored are replaced.
    """
    entry = sound(entry)
    tokens = entry.tokens or estimate(entry)
    return entry.model_copy(
        update={
            "id": entry_id,
            "parent_id": parent,
            "created_at": entry.created_at or at,
            "tokens": int(tokens),
            "scripts": tokens.scripts if isinstance(tokens, Count) else entry.scripts,
            "preview": valid(preview_of(entry)),
        }
    )


def sound(entry: Entry) -> Entry:
    """Return an entry with NULs and lone surrogates in its texts replaced with U+FFFD.

    Returns the same object if the entry contains no such characters.
    """
    try:
        if _NUL not in body_of(entry):
            return entry
    except PydanticSerializationError:  # A surrogate can't be encoded as UTF-8.
        pass
    return EntryAdapter.validate_python(valid_texts(entry.model_dump(mode="python")))


def body_of(entry: Entry) -> str:
    """Return the JSON of all fields that aren't columns; the entry must come from `sound`."""
    return entry.model_dump_json(exclude=_HEADER)


def entry_from(row: tuple[int, int | None, str, str, int, int, str | None]) -> Entry:
    """Return the entry stored in a row (id, parent_id, kind, preview, tokens, created_at, body).

    Raises BodyError if the body is missing or isn't valid for this kind of entry.
    """
    entry_id, parent_id, kind, preview, tokens, created_at, body = row
    if not isinstance(body, str) or not body.startswith("{"):
        raise BodyError
    head = json.dumps(
        {
            "id": entry_id,
            "parent_id": parent_id,
            "kind": kind,
            "preview": preview,
            "tokens": tokens,
            "created_at": created_at,
        }
    )
    # The JSON is joined as text, so that the body is parsed only once, by pydantic.
    text = f"{head[:-1]},{body[1:]}"
    if _NUL not in body:
        with suppress(ValidationError):
            return EntryAdapter.validate_json(text)
    # Older versions stored NUL characters and lone surrogates as escapes, which are replaced here.
    try:
        return EntryAdapter.validate_python(valid_texts(json.loads(text)))
    except ValueError as error:  # The errors of json and pydantic are subclasses of ValueError.
        raise BodyError from error


def text_of(entry: Entry) -> str:
    """Return the text of an entry in which searches look, a line for each of its texts and names.

    Records of the program, such as the system prompt, contribute only their preview; checkpoints
    contribute the paths of their files.
    """
    pieces: list[str] = []
    for said in entry.said():
        pieces += (said.name, said.text)
    return "\n".join(filter(None, pieces))


def size_of(entry: Entry) -> int:
    """Return the number of characters of an entry that the conversation shows, including diffs."""
    if isinstance(entry, SystemEntry):
        return sum(map(len, entry.blocks)) + len(entry.opening)
    size = 0
    if isinstance(entry, ToolResultEntry):
        size = len(entry.metadata.diff or "")
    for said in entry.said():
        size += len(said.name) + len(said.text)
    return size


def blobs_of(entry: Entry) -> set[str]:
    found: list[str | None] = [image.blob for image in entry.images]
    if isinstance(entry, ToolResultEntry):
        found.append(entry.full_output)
    if isinstance(entry, CheckpointEntry):
        for change in entry.files:
            found += (change.before, change.after)
    return {digest for digest in found if digest}
