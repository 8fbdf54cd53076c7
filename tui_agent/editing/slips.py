"""Removes what models add by mistake when they copy text: line numbers, escapes, blank lines. Pure.

Each function takes the text to find and its replacement, and returns both without the mistake; None
if ``old`` has no such mistake, or if the texts show that it may be intended.
"""

import re

Pair = tuple[str, str]

_NUMBERED = re.compile(r"^ *(\d{1,9})(\t|→|: | \| )")
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
    """Remove the line numbers that `read` and searches show before lines from both texts.

    Returns None unless each line of ``old`` begins with a number, in sequence and with the same
    separator.
    """
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
    """Remove the blank lines at the beginning and end of ``old`` from both texts.

    Returns None if ``old`` has no such lines, or is blank as a whole.
    """
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
    """Remove one level of JSON or HTML escapes from both texts.

    Returns None if ``old`` has no escapes, or if either text also has one of the escaped characters
    unescaped.
    """
    kinds = set(_ESCAPED.findall(old))
    rest = _ESCAPED.sub(lambda match: "" if match[0] in kinds else match[0], f"{old} {new}")
    if not kinds or any(_ESCAPES[kind] in rest for kind in kinds):
        return None

    def unescaped(match: re.Match[str]) -> str:
        return _ESCAPES[match[0]] if match[0] in kinds else match[0]

    return _ESCAPED.sub(unescaped, old), _ESCAPED.sub(unescaped, new)
