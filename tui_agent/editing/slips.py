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
    matches = [match for line in lines if (match := _NUMBERED.match(line))]
    numbers = [int(match[1]) for match in matches]
    in_order = len(numbers) == len(lines) and numbers == list(
        range(numbers[0], numbers[0] + len(numbers))
    )
    if not in_order or len({match[2] for match in matches}) != 1:
        return None
    mark = re.compile(rf"^ *\d+{re.escape(matches[0][2])}", re.MULTILINE)
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
    """Undo one escaping too many, as in JSON or HTML; only of characters that are nowhere written plainly."""
    kinds = set(_ESCAPED.findall(old))
    rest = _ESCAPED.sub(lambda match: "" if match[0] in kinds else match[0], f"{old} {new}")
    if not kinds or any(_ESCAPES[kind] in rest for kind in kinds):
        return None
    plain = {kind: _ESCAPES[kind] for kind in kinds}
    bare_old, bare_new = (
        _ESCAPED.sub(lambda match: plain.get(match[0], match[0]), text) for text in (old, new)
    )
    return bare_old, bare_new
