"""Strips Markdown markup from a line of the model's text, for lists with one line per entry.

The module also shortens the tool calls in an entry's preview.
"""

import html
import json
import re
from typing import Final

from tui_agent.lazy import LazyPattern

_LEAD: Final = LazyPattern(r"^(?:#{1,6}\s+|>\s+|[-*+]\s+(?:\[[ xX]\]\s+)?)+")
_FENCE: Final = LazyPattern(r"```\w*\s*|~~~\w*\s*")
_HEADING: Final = LazyPattern(r"(?<=\s)#{2,6}\s+(?=\S)")
_LINK: Final = LazyPattern(r"!?\[([^\]\n]*)\]\([^()\s]*\)")
_STRONG: Final = LazyPattern(r"(\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS: Final = LazyPattern(r"(?<![\w*/])([*_])(?=\w)([^*_]+?)(?<=[\w.,;:!?)])\1(?![\w*/])")
_OPEN: Final = LazyPattern(r"(?<!\S)\*\*(?=\w)")
_CODE: Final = LazyPattern(r"(`+)(.+?)\1")
_RULE: Final = LazyPattern(r"\|(?:\s*:?-{2,}:?\s*\|?)+")
_BORDERS: Final = LazyPattern(r"(?:\s*(?<!\\)\|)+\s*")
_ENTITY: Final = LazyPattern(r"&(?:#\w{1,8}|\w{2,31});")
_ESCAPED: Final = LazyPattern(r"\\([!-/:-@\[-`{-~])")
_CALL: Final = LazyPattern(
    r'(^| · )(\w+) \{(?=["}])(?:"\w+": "((?:[^"\\]|\\.)*))?.*?(?="?\}(?: · |$)|$)"?\}?'
)


def plain(text: str) -> str:
    """Return a line of Markdown without its markup; `` · `` separates the cells of a table's row.

    From text in backticks, only the backticks are removed.
    """
    text = _FENCE.sub("", _LEAD.sub("", text.strip()))
    if _RULE.search(text):
        prose = _tabular
    else:
        prose = _prose
    parts: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        parts += [prose(text[at : code.start()]), code[2].strip()]
        at = code.end()
    joined = "".join([*parts, prose(text[at:])])
    has_marks_in_code = "**" in "".join(parts[1::2])
    if not has_marks_in_code:
        # Bold text that contains code was split at the code, so its marks are removed here.
        joined = _STRONG.sub(r"\2", joined)
    return joined.strip(" ·")


def plain_preview(kind: str, text: str) -> str:
    """Return an entry's preview as plain text: without Markdown markup, if a model wrote it.

    ``kind`` is the entry's kind. Tool calls are shortened to the tool and its first argument:
    ``read views.py``.
    """
    match kind:
        case "assistant" if " {" in text:
            if _CALL.match(text):
                return _CALL.sub(_call_words, text)
            return plain(text)
        case "assistant" | "compaction" | "branch_summary":
            return plain(text)
        case _:
            return text


def _call_words(call: re.Match[str]) -> str:
    """Return a shortened tool call: the tool and its first argument, without JSON escapes.

    It replaces a match of `_CALL`.
    """
    written = call[3] or ""
    # The preview may be cut off in the middle of an escape sequence.
    argument = json_string(written) or json_string(written.rpartition("\\")[0])
    return f"{call[1]}{call[2]} {' '.join(argument.split())}".rstrip()


def json_string(written: str) -> str:
    """Decode the text between the quotes of a JSON string; "" if it is not valid."""
    try:
        return str(json.loads(f'"{written}"', strict=False))
    except ValueError:
        return ""


def _tabular(text: str) -> str:
    return _unescaped(_BORDERS.sub(" · ", _RULE.sub("|", _unmarked(text))))


def _prose(text: str) -> str:
    return _unescaped(_unmarked(text))


def _unescaped(text: str) -> str:
    """Return a text with backslash escapes and HTML entities replaced by their characters."""
    return _ENTITY.sub(_character, _ESCAPED.sub(r"\1", text))


def _character(entity: re.Match[str]) -> str:
    """Return an entity's character; the entity itself if there is none that can be printed."""
    character = html.unescape(entity[0])
    if len(character) == 1 and character.isprintable():
        return character
    return entity[0]


def _unmarked(text: str) -> str:
    text = _LINK.sub(r"\1", _HEADING.sub("", text))
    text = _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", text))
    return _OPEN.sub("", text)
