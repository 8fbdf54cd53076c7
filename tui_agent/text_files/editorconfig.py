"""Finds the encoding that ``.editorconfig`` declares for a path (https://spec.editorconfig.org)."""

from collections.abc import Iterator
from pathlib import Path

from tui_agent.files.globs import compile_glob
from tui_agent.files.inside import read_regular
from tui_agent.lazy import LazyPattern
from tui_agent.text_files.encodings import user_text

_NAME = ".editorconfig"
_MAX_BYTES = 64 * 1024
_LINE = LazyPattern(
    r"[ \t]*(?:\[(?P<glob>.+)\]|(?P<key>[^#;=:\[]+?)[ \t]*[=:][ \t]*(?P<value>.*?))[ \t]*"
)


def declared_charset(path: Path) -> str:
    """Return the ``charset`` that ``.editorconfig`` declares for a path, "" for none or "unset".

    ``path`` is absolute. The nearest ``.editorconfig`` that gives a charset for the path decides,
    and in that file, the last matching section.
    """
    for folder in path.parents:
        data = read_regular(folder / _NAME, _MAX_BYTES)
        if data is None:
            continue
        is_root = False
        charset = ""
        for glob, key, value in _values(user_text(data)):
            is_root |= not glob and key == "root" and value == "true"
            if (
                key == "charset"
                and glob
                and compile_glob(glob).fullmatch(path.relative_to(folder).as_posix())
            ):
                charset = value
        if charset or is_root:
            return "" if charset == "unset" else charset
    return ""


def _values(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the section's glob, the key and the value for each line that contains a value.

    The glob is "" before the first section. Key and value are in lower case.
    """
    glob = ""
    for line in text.split("\n"):
        found = _LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            continue
        if found["glob"]:
            glob = found["glob"]
        else:
            yield glob, found["key"].lower(), found["value"].lower()
