"""Reads small text files again and again: from memory while they are unchanged.

And takes their front matter apart.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tui_agent.agent.knowledge.folders import Folder
from tui_agent.files.inside import OutsideError, read_file, read_inside
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_inside
from tui_agent.text_files.encodings import user_text

FRONT_MATTER_CHARS = 16_384
"""Front matter longer than this is taken for a mistake."""
FRONT = LazyPattern(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
"""Front matter, from the file's first line."""

_MAX_VALUES = 20_000
_MAX_DEPTH = 20
_PAIR = LazyPattern(r"([A-Za-z][\w-]*):[ \t]*(.*)")

T = TypeVar("T")


class DocumentError(Exception):
    """A file cannot be used; the message says which and why, for a person."""


class LeftOutError(DocumentError):
    """A file of the project is a link out of it, or is in a linked directory."""


@frozen
class DocumentText:
    """A file's text, at most the limit's bytes of it. ``size`` is the whole file's in bytes."""

    text: str
    size: int
    cut: bool


@frozen
class Document:
    """A Markdown file: the values of its front matter and the text below it."""

    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    body: str = ""

    def text(self, key: str) -> str:
        value = self.fields.get(key)
        if value is None:
            return ""
        return " ".join(str(value).split())

    def is_true(self, key: str) -> bool:
        return self.text(key).lower() == "true"

    def purpose(self) -> str:
        """Return what it is for, and when to use it."""
        return " - ".join(filter(None, [self.text("description"), self.text("when_to_use")]))

    def model(self, whose: str) -> str | None:
        """Return the model's name.

        Other programs' short ones (``sonnet``, ``inherit``) mean nothing here.
        """
        name = self.text("model")
        return name if name and ("/" in name or not whose) else None

    def unused(self, acting: frozenset[str]) -> tuple[str, ...]:
        """Return the fields that are none of ``acting``."""
        return tuple(key for key in self.fields if key not in acting)


class FileCache:
    """Texts of files by path; a file is read again when its time or size changed.

    A path in ``project`` by its name is read only if it really is in there, with every link
    followed: the user did not write it.
    """

    def __init__(self, project: Path | None = None) -> None:
        self._project = project
        self._known: dict[Path, tuple[tuple[int, int, int], DocumentText]] = {}
        self._documents: dict[Path, tuple[DocumentText, Document | DocumentError]] = {}

    def document(self, path: Path, limit: int) -> tuple[Document, DocumentText] | None:
        """Return a Markdown file taken apart, None when there is no such file.

        Raises DocumentError.
        """
        file = self.read(path, limit)
        if file is None:
            return None
        known = self._documents.get(path)
        if known is None or known[0] is not file:
            try:
                known = (file, parse_document(file.text))
            except DocumentError as error:
                known = (file, error)
            self._documents[path] = known
        if isinstance(known[1], DocumentError):
            raise known[1]
        return known[1], file

    def read(self, path: Path, limit: int) -> DocumentText | None:
        """Return a file's text, None when there is no such file.

        Raises DocumentError, LeftOutError if forbidden.
        """
        try:
            status = path.stat()
            state = (status.st_mtime_ns, status.st_size, limit)
            known = self._known.get(path)
            if known is not None and known[0] == state:
                return known[1]
            if not stat.S_ISREG(status.st_mode):
                return None
            data, status = self._open(path, limit)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OutsideError as error:
            raise LeftOutError(f"left out, as {error.strerror}") from None
        except OSError as error:
            raise DocumentError(f"{path} cannot be read: {error.strerror or error}.") from None
        cut = status.st_size > len(data)
        found = DocumentText(
            user_text(data, whole=not cut).replace("\r\n", "\n"), status.st_size, cut
        )
        self._known[path] = (state, found)
        return found

    def _open(self, path: Path, limit: int) -> tuple[bytes, os.stat_result]:
        if self._project is not None and path.is_relative_to(self._project):
            real = os.path.realpath(path)
            if is_sensitive(real) and is_inside(self._project, path):
                name = os.path.basename(real)  # noqa: PTH119 - a text
                raise LeftOutError(f"left out, as it leads to {name}, which usually holds secrets")
            return read_inside(self._project, path, limit)
        return read_file(path, limit)


def load_all(
    kind: str,
    make: Callable[[Path, Folder], T | None],
    found: Iterable[tuple[Path, Folder]],
    problems: list[str],
) -> Iterator[T]:
    """Yield the objects made from files of a kind; unusable files are reported in ``problems``."""
    for path, folder in found:
        try:
            made = make(path, folder)
        except DocumentError as error:
            problems.append(f"{kind} {folder.shown_file(path)}: {error}.")
        else:
            if made is not None:
                yield made


def parse_document(text: str) -> Document:
    """Take a Markdown text with optional front matter apart; raises DocumentError.

    Front matter that is no valid YAML only because a value holds a colon is read line by line.
    """
    if not re.match(r"---[ \t]*\n", text):
        return Document(body=text.strip())
    found = FRONT.match(text)
    if found is None or len(found[1]) > FRONT_MATTER_CHARS:
        raise DocumentError(
            "the front matter has no end: it begins and ends with a line of three dashes"
        )
    return Document(MappingProxyType(_fields(found[1])), text[found.end() :].strip())


def _fields(text: str) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except RecursionError:
        raise DocumentError("the front matter is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        pairs = [_PAIR.fullmatch(line.rstrip()) for line in text.split("\n") if line.strip()]
        if not pairs or None in pairs:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None)
            where = ""
            if mark is not None:
                where = f" in line {mark.line + 2}"
            raise DocumentError(
                f"the front matter is not valid YAML: {problem or 'it cannot be read'}{where}"
            ) from None
        return {pair[1]: pair[2].strip().strip("\"'") for pair in pairs if pair is not None}
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise DocumentError("the front matter holds no keys; write each as “key: value”")
    if _is_too_large(values):
        raise DocumentError("the front matter repeats or nests its values too often")
    return {str(key): value for key, value in values.items()}


def _is_too_large(values: object) -> bool:
    """Whether values are too many once each that is named again is written out, or contain themselves."""
    pending = [(values, 0)]
    count = 0
    while pending:
        value, depth = pending.pop()
        count += 1
        if count > _MAX_VALUES or depth > _MAX_DEPTH:
            return True
        if isinstance(value, dict):
            pending += ((item, depth + 1) for pair in value.items() for item in pair)
        elif isinstance(value, list | tuple | set):
            pending += ((item, depth + 1) for item in value)
    return False
