"""Reads Markdown files with front matter, and keeps them in memory until they change.

A file of the project is read only if it is still inside the project after links are followed. Which
files are read is decided by the callers.
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
from tui_agent.text_files.encodings import detect, user_text

FRONT_MATTER_CHARS = 16_384
"""Maximum number of characters in front matter."""
FRONT = LazyPattern(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
"""Matches front matter, that is, the beginning of a text between two lines of three dashes."""

_MAX_VALUES = 20_000
"""Maximum number of values in front matter, after YAML's references are expanded."""
_MAX_DEPTH = 20
"""Maximum number of levels to which values in front matter may be nested."""
_PAIR = LazyPattern(r"([A-Za-z][\w-]*):[ \t]*(.*)")

T = TypeVar("T")


class DocumentError(Exception):
    """Raised if a file can't be used. The message tells the user why."""


class LeftOutError(DocumentError):
    """Raised if a project's file isn't read because of a link.

    The link leads out of the project or to a file with secrets.
    """


@frozen
class DocumentText:
    """The text that was read from a file, and the file's size in bytes.

    ``cut`` is True if the text doesn't contain the whole file.
    """

    text: str
    size: int
    cut: bool


@frozen
class Document:
    """A parsed Markdown file: the values of its front matter, and the text below it."""

    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    body: str = ""

    def text(self, key: str) -> str:
        """Return a field of the front matter as one line of text; "" if the field is missing."""
        value = self.fields.get(key)
        if value is None:
            return ""
        return " ".join(str(value).split())

    def is_true(self, key: str) -> bool:
        return self.text(key).lower() == "true"

    def purpose(self) -> str:
        """Return the fields ``description`` and ``when_to_use`` as one text; "" without both."""
        return " - ".join(filter(None, [self.text("description"), self.text("when_to_use")]))

    def model(self, whose: str) -> str | None:
        """Return the model that the front matter names; None if it names none.

        ``whose`` is the other program that the file is for, "" if it is for this one. In another
        program's file, a name without a slash (``sonnet``, ``inherit``) counts as none.
        """
        name = self.text("model")
        return name if name and ("/" in name or not whose) else None

    def unused(self, acting: frozenset[str]) -> tuple[str, ...]:
        """Return the names of the front matter fields that are not in ``acting``, in order."""
        return tuple(key for key in self.fields if key not in acting)


class FileCache:
    """Reads files, and rereads one only if its modification time or size has changed.

    A path below ``project`` is read only if it stays there after all links are followed, because a
    project may come from a stranger.
    """

    def __init__(self, project: Path | None = None) -> None:
        self._project = project
        self._known: dict[Path, tuple[tuple[int, int, int], DocumentText]] = {}
        self._documents: dict[Path, tuple[DocumentText, Document | DocumentError]] = {}

    def document(self, path: Path, limit: int) -> tuple[Document, DocumentText] | None:
        """Return a parsed Markdown file and its text; None if there is no such file.

        At most ``limit`` bytes are read. Raises DocumentError.
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
        """Return the first ``limit`` bytes of a file as text; None if there is no regular file.

        Raises DocumentError if the file can't be read, and LeftOutError if a link leads out of the
        project or to a file that usually holds secrets.
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
        if detect(data, whole=not cut) is None:
            raise DocumentError(f"{path} is left out: it is binary, not text.")
        found = DocumentText(
            user_text(data, whole=not cut).replace("\r\n", "\n"), status.st_size, cut
        )
        self._known[path] = (state, found)
        return found

    def _open(self, path: Path, limit: int) -> tuple[bytes, os.stat_result]:
        if self._project is not None and path.is_relative_to(self._project):
            real = os.path.realpath(path)
            if is_sensitive(real) and is_inside(self._project, path):
                name = os.path.basename(real)  # noqa: PTH119 - a str, not a Path
                raise LeftOutError(f"left out, as it leads to {name}, which usually holds secrets")
            return read_inside(self._project, path, limit)
        return read_file(path, limit)


def load_all(
    kind: str,
    make: Callable[[Path, Folder], T | None],
    found: Iterable[tuple[Path, Folder]],
    problems: list[str],
) -> Iterator[T]:
    """Yield the result of ``make`` for each file, and report unusable files in ``problems``.

    ``kind`` begins each report ("Skill"). ``make`` returns None to skip a file.
    """
    for path, folder in found:
        try:
            made = make(path, folder)
        except DocumentError as error:
            problems.append(f"{kind} {folder.shown_file(path)}: {error}.")
        else:
            if made is not None:
                yield made


def parse_document(text: str) -> Document:
    """Split a Markdown text into front matter and the rest. Raises DocumentError.

    The front matter may be missing. If it is not valid YAML, it is read line by line, provided that
    every line is ``key: value``.
    """
    if not re.match(r"---[ \t]*\n", text):
        return Document(body=text.strip())
    found = FRONT.match(text)
    if found is None:
        raise DocumentError("the front matter has no end: add a line of three dashes below it")
    if len(found[1]) > FRONT_MATTER_CHARS:
        raise DocumentError(
            f"the front matter is too long: at most {FRONT_MATTER_CHARS:,} characters are read"
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
                f"the front matter is not valid YAML: {problem or 'unreadable'}{where}"
            ) from None
        return {pair[1]: pair[2].strip().strip("\"'") for pair in pairs if pair is not None}
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise DocumentError("the front matter has no keys; write each as “key: value”")
    if _is_too_large(values):
        raise DocumentError("the front matter has too many values or nests them too deeply")
    return {str(key): value for key, value in values.items()}


def _is_too_large(values: object) -> bool:
    """Return True if, with references expanded, there are too many values or levels of nesting."""
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
