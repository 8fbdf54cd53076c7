"""Finds ``@path`` imports in Markdown instructions, and removes HTML comments from them.

Imports and comments in code spans and code blocks are left alone. The caller reads the imported
files. Source: Claude Code's page on memory files.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.lazy import LazyPattern, frozen

if TYPE_CHECKING:
    from markdown_it.token import Token

_IMPORT = LazyPattern(r"(?:^|(?<=[\s(\[\"']))@(?P<path>(?:\\ |[^\s\\])+)")
_OUTSIDE = LazyPattern(r"(?:^|\s)@(?:~/|/|(?:[^\s/]+/)*\.\./)")
_COMMENT = LazyPattern(r"\s*(?><!--.*?-->\s*)+", re.DOTALL)
_ENDING = ".,;:!?)]\"'`"
"""Characters that are removed from the end of an import, because they are probably punctuation of
the sentence around it."""


@frozen
class Import:
    """An import in a Markdown text: the path after the ``@``, and its line, counted from 1."""

    path: str
    line: int

    @property
    def leads_out(self) -> bool:
        """Whether the import may lead out of the directory of the importing file.

        That is the case if the path is absolute, begins with ``~``, or contains ``..``.
        """
        return self.path.startswith(("/", "~")) or ".." in self.path.split("/")

    @property
    def looks_like_a_file(self) -> bool:
        """Whether the import looks like a file, because the last part of its path contains a dot.

        Names of people and packages after an ``@`` usually contain none.
        """
        name = self.path.rsplit("/", 1)[-1]
        return "." in name.strip(".")


def imports_of(text: str) -> Iterator[Import]:
    """Yield the ``@path`` imports in a Markdown text, in order of their position."""
    if "@" not in text:
        return
    for token in _tokens(text):
        line = (token.map or [0])[0] + 1
        for child in token.children or ():
            if child.type == "text":
                for found in _IMPORT.finditer(child.content):
                    yield Import(found["path"].replace("\\ ", " ").rstrip(_ENDING), line)
            elif child.type in {"softbreak", "hardbreak"}:
                line += 1


def may_import_from_outside(text: str) -> bool:
    """Return True if a text may import a file from outside the directory of the text.

    Such an import begins with ``~/`` or ``/``, or contains ``../``. To be fast, doesn't parse the
    text, so an import in code counts, too.
    """
    return _OUTSIDE.search(text) is not None


def without_comments(text: str) -> str:
    """Return a Markdown text without the HTML comments that take up whole lines."""
    if "<!--" not in text:
        return text
    lines = text.splitlines(keepends=True)
    for token in reversed(_tokens(text)):
        if (
            token.type == "html_block"
            and token.map is not None
            and _COMMENT.fullmatch(token.content)
        ):
            del lines[token.map[0] : token.map[1]]
    return "".join(lines).strip()


def _tokens(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").parse(text)
