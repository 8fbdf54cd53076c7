"""Exports a session as text or to a file, in one of five formats, with or without secrets.

``session.formats`` contains a writer for each format. secret_detector.py decides what counts as a
secret in a text, and `holds_secret` decides which environment variables contain secrets.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.json_text import loads
from tui_agent.lazy import frozen
from tui_agent.model.redaction import redact
from tui_agent.path_checks import is_directory, is_there
from tui_agent.processes.environment import holds_secret
from tui_agent.resources import style_path
from tui_agent.safe_text import one_line
from tui_agent.secret_detector import REMOVED, find_secrets, remove_known
from tui_agent.session.entries import BookkeepingEntry, EntryAdapter
from tui_agent.session.formats import native
from tui_agent.session.formats.copies import SessionCopy, copies_of, copy_of
from tui_agent.session.formats.reading import END_OF_TIME
from tui_agent.session.rows import blobs_of
from tui_agent.session.store import Store
from tui_agent.text_files.encodings import detect

__all__ = [
    "ExportFormat",
    "ExportOrder",
    "Scrubber",
    "export_text",
    "format_of",
    "unknown_ending",
    "write_export",
]

_HOMES = re.compile(r"(?<![/\w])((?:/home|/Users|[A-Za-z]:\\+Users)[/\\]+)[^/\\\s\"':;,)]+")


_LEAST_START = 6
"""Minimum number of characters that must be left of a secret that a title's end cuts off.

If fewer are left, they could be the beginning of any word, and are kept.
"""
_ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".jsonl": "json",
    ".json": "json",
    ".claude.jsonl": "claude-code",
    ".codex.jsonl": "codex",
}
"""Export format for each file suffix. If several suffixes match, the longest one counts.

A new file receives the first suffix of its format.
"""


class NothingToExportError(UserFacingError):
    """Raised if an export for another program would contain no messages."""


class ExportFormat(StrEnum):
    """The file formats of an export."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"


_FOUND_BY_NAME = frozenset({ExportFormat.CLAUDE_CODE, ExportFormat.CODEX})
"""Formats of programs that find a session by its file's name."""


@frozen
class ExportOrder:
    """What to export, and in which form.

    ``leaf`` is the last entry of the branch, None for the session's leaf. ``whole`` says whether to
    export all branches. None means all branches for HTML and JSON without a ``leaf``, otherwise one
    branch. ``redacted`` says whether to remove secrets, and user names in paths.
    """

    session_id: str
    format: ExportFormat = ExportFormat.MARKDOWN
    whole: bool | None = None
    leaf: int | None = None
    redacted: bool = False

    @property
    def all_branches(self) -> bool:
        # By default, export only one branch in formats that are read from top to bottom.
        one = self.leaf is not None or self.format in {ExportFormat.MARKDOWN, *_FOUND_BY_NAME}
        if self.whole is not None:
            return self.whole
        return not one

    def file_name(self, title: str, directory: Path) -> str:
        """Return a file name made from the session's title that isn't used in ``directory`` yet.

        For Claude Code and Codex, returns the name by which those programs find the session, even
        if such a file exists.
        """
        if self.format is ExportFormat.CLAUDE_CODE:
            return f"{self.session_id}.jsonl"
        if self.format is ExportFormat.CODEX:
            # Limit the time in the id: the one in an imported session's id may be too large for a
            # datetime.
            at = min(UUID(self.session_id).int >> 80, END_OF_TIME)
            moment = datetime.fromtimestamp(at / 1_000, tz=UTC)
            return f"rollout-{moment:%Y-%m-%dT%H-%M-%S}-{self.session_id}.jsonl"
        words = re.sub(r"[^\w-]+", "-", title.lower())[:40].strip("-_") or "session"
        stem = f"{words}-{self.session_id[-8:]}"
        suffix = next(ending for ending, form in _ENDINGS.items() if form == self.format)
        name = f"{stem}{suffix}"
        number = 1
        while is_there(directory / name):
            number += 1
            name = f"{stem}-{number}{suffix}"
        return name


def format_of(path: str) -> ExportFormat | None:
    """Return the export format for a file's suffix; None if no format has this suffix."""
    name = Path(path).name.lower()
    fitting = [ending for ending in _ENDINGS if name.endswith(ending)]
    if fitting:
        return ExportFormat(_ENDINGS[max(fitting, key=len)])
    return None


def unknown_ending(path: str) -> str:
    """Return an error message if a path has a suffix that no export format has, otherwise ""."""
    ending = Path(path).suffix
    if not ending or format_of(path) is not None:
        return ""
    return f"“{one_line(ending)}” is not an export format. Use one of {', '.join(_ENDINGS)}."


def export_text(store: Store, order: ExportOrder, environ: Mapping[str, str] = os.environ) -> str:
    """Return the export as text.

    With ``order.redacted``, the text contains no recognised secrets, no secret values of
    ``environ`` and no user names in paths (see `Scrubber`).

    Raises:
        SessionNotFound: there is no such session.
        EntryNotFound: only one branch is exported, and the session has no entry ``order.leaf``.
        NothingToExportError: another program would have no message to continue from.
    """
    if order.format is ExportFormat.JSON and order.all_branches:
        copies = copies_of(store, order.session_id)
    else:
        copies = [copy_of(store, order.session_id, whole=order.all_branches, leaf=order.leaf)]
    if order.redacted:
        scrubber = Scrubber.of(environ, Path.home())
        copies = [scrubber.copy(copy) for copy in copies]
    text = StringIO()
    match order.format:
        case ExportFormat.JSON:
            native.write(copies, text.write)
        case ExportFormat.CLAUDE_CODE | ExportFormat.CODEX:
            from tui_agent.session.formats.linear_writers import write_claude_code, write_codex

            write_linear = write_claude_code
            if order.format is ExportFormat.CODEX:
                write_linear = write_codex
            write_linear(copies[0], text.write)
            has_messages = any(
                not isinstance(entry, BookkeepingEntry) for entry in copies[0].path()
            )
            if not has_messages or not text.getvalue():
                raise NothingToExportError("The session has no messages to continue from.")
        case ExportFormat.HTML:
            from tui_agent.session.formats import html

            css = style_path("export.css").read_text(encoding="utf-8")
            script = style_path("export.js").read_text(encoding="utf-8")
            html.write(copies[0], text.write, whole=order.all_branches, css=css, script=script)
        case _:
            from tui_agent.session.formats import markdown

            markdown.write(copies[0], text.write, whole=order.all_branches)
    return text.getvalue()


def write_export(
    store: Store, order: ExportOrder, path: Path, *, replaces: bool = False
) -> tuple[Path, int]:
    """Write an export to a file that only its owner can read; return its path and size in bytes.

    If ``path`` is a directory, `ExportOrder.file_name` names the file in it. Claude Code and Codex
    find a session only by that name, so for them a path without an export suffix means a directory,
    which is created if needed.

    Raises:
        SessionNotFound, EntryNotFound, NothingToExportError: as for `export_text`.
        FileExistsError: the file exists, and ``replaces`` is False.
        OSError: the file can't be written; no partial file is left.
    """
    if order.format in _FOUND_BY_NAME and format_of(path.name) is None:
        path.mkdir(parents=True, exist_ok=True)
    if is_directory(path):
        info = store.session(order.session_id)
        path /= order.file_name(info.title or info.first_message, path)
    if not replaces and is_there(path):
        raise FileExistsError(errno.EEXIST, "it already exists", str(path))
    if not is_directory(path.parent):
        raise FileNotFoundError(errno.ENOENT, "the directory does not exist", str(path))
    data = export_text(store, order).encode("utf-8", "replace")
    write_atomically(path, data, mode=0o600)
    return path, len(data)


class Scrubber:
    """Removes secrets, and user names in the paths of home directories, from a session.

    Secrets that are neither in ``secrets`` nor recognised by the secret detector stay.

    Args:
        secrets: values to remove wherever they occur.
        home: the user's home directory; it is replaced by ``~``.
    """

    def __init__(self, secrets: Iterable[str], home: Path) -> None:
        self._secrets = sorted(set(secrets), key=len, reverse=True)
        if len(home.parts) > 1:
            self._home = str(home)
        else:
            self._home = ""
        self._found: set[str] = set()

    @classmethod
    def of(cls, environ: Mapping[str, str], home: Path) -> "Scrubber":
        """Return a scrubber for the secret values in ``environ``."""
        secrets = []
        for name, value in environ.items():
            if len(value) > 7 and holds_secret(name, value):
                secrets.append(value)
        return cls(secrets, home)

    def text(self, text: str) -> str:
        """Return ``text`` without secrets, and without user names in paths.

        Also remembers the recognised secrets, so that ``copy`` can remove them from cut-off titles.
        """
        for secret in find_secrets(text):
            self._found.update(text[secret.start : secret.end].split("\n"))
        text = redact(text, self._secrets)
        if self._home:
            text = re.sub(re.escape(self._home) + r"(?![\w.-])", "~", text)
        return _HOMES.sub(r"\1[redacted]", text)

    def copy(self, copy: SessionCopy) -> SessionCopy:
        """Return a copy without the secrets in entries, labels, text blobs, title and directory.

        Blobs that are not text, such as images, stay unchanged.
        """
        needed = set()
        for entry in copy.entries:
            needed.update(blobs_of(entry))
        blobs = {}
        renamed = {}
        for digest in needed:
            content = copy.blob(digest)
            if content is not None:
                scrubbed = self._content(content)
                renamed[digest] = hashlib.sha256(scrubbed).hexdigest()
                blobs[renamed[digest]] = scrubbed
        dumped = [self._value(entry.model_dump(), renamed) for entry in copy.entries]
        cwd, title, first = map(
            self.text, (copy.info.cwd, copy.info.title, copy.info.first_message)
        )
        labels = {entry_id: self.text(label) for entry_id, label in copy.labels.items()}
        # Search titles for the secrets found elsewhere: a title joins several lines of a text, so
        # the patterns may not recognise a secret in it.
        shorten = partial(_shortened, secrets=sorted(self._found, key=len, reverse=True))
        for entry in dumped:
            for name in ("title", "preview"):
                if entry.get(name):
                    entry[name] = shorten(entry[name])
        entries = [EntryAdapter.validate_python(entry) for entry in dumped]
        info = replace(copy.info, cwd=cwd, title=shorten(title), first_message=shorten(first))
        labels = {entry_id: shorten(label) for entry_id, label in labels.items()}
        return replace(copy, info=info, entries=entries, labels=labels, blob=blobs.get)

    def _content(self, content: bytes) -> bytes:
        encoding = detect(content)
        text = ""
        if encoding is not None:
            text = encoding.decode(content)
        clean = self.text(text)
        if encoding is None or clean == text:
            return content
        try:
            return encoding.encode(clean)
        except (
            UnicodeEncodeError
        ):  # invalid bytes were decoded to characters that the encoding can't represent
            return clean.encode("utf-8", "replace")

    def _value(self, value: Any, renamed: Mapping[str, str]) -> Any:
        """Return a value of an entry without secrets; ``renamed`` maps old to new blob digests."""
        if isinstance(value, str):
            return renamed.get(value) or self.text(value)
        if isinstance(value, dict):
            # Keep reasoning unchanged: the provider signed it, and would reject a changed form.
            signed = value.get("type") == "reasoning"
            is_call = value.get("type") == "tool_call"
            found = {}
            for key, item in value.items():
                if not (signed and key == "blob"):
                    found[key] = self._value(item, renamed)
            if is_call:
                found["arguments"] = self._arguments(value["arguments"])
            return found
        if isinstance(value, list | tuple):
            return [self._value(item, renamed) for item in value]
        return value

    def _arguments(self, text: str) -> str:
        """Return a tool call's arguments without secrets.

        JSON is parsed first, because its escapes would hide line breaks.
        """
        try:
            arguments = loads(text)
        except ValueError:
            return self.text(text)
        scrubbed = self._value(arguments, {})
        if scrubbed == arguments:
            return text
        return json.dumps(scrubbed, ensure_ascii=False)


def _shortened(title: str, secrets: Sequence[str]) -> str:
    """Return a title without the given secrets, even if a secret is cut off at the title's end."""
    title = remove_known(title, secrets)
    bare = title.rstrip("… ")
    for secret in secrets:
        start = 0
        for n in range(len(secret), _LEAST_START - 1, -1):
            if bare.endswith(secret[:n]):
                start = n
                break
        if start:
            return f"{bare[:-start]}{REMOVED}"
    return title
