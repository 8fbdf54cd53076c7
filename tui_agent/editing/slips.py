"""Slips of models in a text they copy: line numbers, escapes, blank lines around it; pure.

Each function takes the text to find and the text to put in its place, and returns both without the
slip; None where there is none, or where it is not the same in both, so that it may be meant.
"""

import re

Pair = tuple[str, str]

_NUMBERED = re.compile(r"^ *(\d+)(\t|→|: | \| )")
_FIRST_BLANKS = re.compile(r"\A(?:[ \t]*\r?\n)+")
_LAST_BLANKS = re.compile(r"(?:\r?\n[ \t]*)+\Z")

_ESCAPES = {
    "\\\\": "\\",
    "\\n": "\n",
    "\\t": "\t",
    '\\"': '"',
    "\\'": "'",
    "\\`": "`",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#39;": "'",
    "&amp;": "&",
}
_ESCAPED = re.compile("|".join(map(re.escape, _ESCAPES)))


def without_line_numbers(old: str, new: str) -> Pair | None:
    """Take off the numbers that `read` and searches put in front of lines."""
    lines = old.removesuffix("\n").split("\n")
    first = _NUMBERED.match(lines[0])
    if first is None:
        return None
    for number, line in enumerate(lines, int(first[1])):
        match = _NUMBERED.match(line)
        if match is None or int(match[1]) != number or match[2] != first[2]:
            return None
    mark = re.compile(rf"^ *\d+{re.escape(first[2])}", re.MULTILINE)
    return mark.sub("", old), mark.sub("", new)


def without_blank_ends(old: str, new: str) -> Pair | None:
    if not old.strip():
        return None
    bare_old = old
    bare_new = new
    for blanks in (_FIRST_BLANKS, _LAST_BLANKS):
        if blanks.search(bare_old):
            bare_old = blanks.sub("", bare_old)
            bare_new = blanks.sub("", bare_new)
    if bare_old == old:
        return None
    return (bare_old, bare_new)


def without_escapes(old: str, new: str) -> Pair | None:
    """Undo one escaping too many (JSON, HTML) of characters that are nowhere written plainly."""
    kinds = set(_ESCAPED.findall(old))
    rest = _ESCAPED.sub(lambda match: "" if match[0] in kinds else match[0], f"{old} {new}")
    if not kinds or any(_ESCAPES[kind] in rest for kind in kinds):
        return None

    def unescaped(match: re.Match[str]) -> str:
        return _ESCAPES[match[0]] if match[0] in kinds else match[0]

    return _ESCAPED.sub(unescaped, old), _ESCAPED.sub(unescaped, new)
