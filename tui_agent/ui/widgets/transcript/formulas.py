r"""Converts TeX formulas to Unicode characters: ``\sum_i p_i`` becomes ∑ᵢ pᵢ.

Formulas that can't be expressed in Unicode characters are left unchanged.
"""

import re
from functools import lru_cache
from typing import Final

FORMULA: Final = re.compile(
    r"\$\$(?=\S)([^$]{1,1000}?)\$\$|\$(?=[^\s$])([^$\n]{1,400}?)(?<![\s\\])\$(?![\w$])"
    r"|\\\[(?=[^\n]{0,400}?\\\w)(.{1,1000}?)\\\]|\\\((?=[^\n]{0,400}?\\[\w,;:!])(.{1,400}?)\\\)",
    re.DOTALL,
)
"""Matches a formula between dollar signs, or between ``\\( \\)`` or ``\\[ \\]``.

A formula between ``\\( \\)`` or ``\\[ \\]`` must contain a TeX command.
"""

_SPACE: Final = re.compile(r"\\(?:[,;:! ]|quad\b|qquad\b)|~")
_NO_WIDTH: Final = re.compile(r"\\(?:left|right|big|Big|bigl|bigr|displaystyle|limits)\b\.?")
_WORDS: Final = re.compile(
    r"\\(?:text|textrm|textbf|textit|mathrm|operatorname|mathit)\s*\{([^{}]*)\}"
)
_NAMES: Final = re.compile(
    r"\\(log|ln|exp|sin|cos|tan|min|max|sup|inf|lim|det|dim|gcd|arg|Pr|mod|ker)(?![A-Za-z])"
)
_FRACTION: Final = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT: Final = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_UNDERSCORE: Final = "\ue000"
"""Placeholder for an underscore that doesn't begin a subscript."""

_MEANT: Final = {"\\{": "{", "\\}": "}", "\\\\": " ; ", _UNDERSCORE: "_"}
_SIGN: Final = re.compile(r"[\\^_=<>+]")
_ONE: Final = re.compile(r"[\w.']+")


@lru_cache(maxsize=2_000)
def readable_formula(written: str) -> str:
    """Return a TeX formula in Unicode characters, without its delimiters.

    ``written`` includes the delimiters. If it isn't a formula, or contains a command without a
    Unicode equivalent, the text is returned with its delimiters.
    """
    found = FORMULA.fullmatch(written)
    inside = ""
    if found is not None:
        inside = next(filter(None, found.groups()), "")
    if not inside or not _is_formula(inside):
        return written
    # Imported only when the first formula is shown.
    import unicodeit

    text = _NO_WIDTH.sub("", _WORDS.sub(r"\1", _SPACE.sub(" ", inside.replace("\\_", _UNDERSCORE))))
    text = _NAMES.sub(r"\1", text)
    text = _ROOT.sub(lambda root: f"√{_grouped(root[1])}", text)
    text = _FRACTION.sub(lambda parts: f"{_grouped(parts[1])}/{_grouped(parts[2])}", text)
    shown = str(unicodeit.replace(text))
    if _COMMAND.search(shown):
        return _SPACE.sub(" ", written)
    for name, meant in _MEANT.items():
        shown = shown.replace(name, meant)
    return " ".join(shown.split())


def _is_formula(inside: str) -> bool:
    """Return True if the text between delimiters is a formula, not prices or shell variables."""
    if "\\" in inside:
        return True
    if _WORD.search(inside):
        return False
    return _SIGN.search(inside) is not None or (inside.isalpha() and len(inside) < 3)


def _grouped(part: str) -> str:
    if _ONE.fullmatch(part):
        return part
    return f"({part})"
