"""Converts counted tokens into a model's own tokens, using a ratio for each class of characters.

The ratios start from known values for the tokenizer's family, and are corrected by the usage that
providers report. This module has no state: ``model.directory`` keeps and stores learnt ratios.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import field

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.counting import Count

TEXT = "text"
"""Class of ASCII tokens: letters, signs, spaces, and numbers as counted by o200k_base."""
DIGITS = "digits"
"""Class of the second and third digit in each token of digits. Counting them separately is needed
because o200k_base puts up to three digits into one token, and many tokenizers only one."""
ALPHABETS = "alphabets"
INDIC = "indic"
CJK = "cjk"
SIGNS = "signs"
"""Classes of characters outside ASCII, by the first byte of the character in UTF-8. ``ALPHABETS``
contains accented letters, Greek, Cyrillic, Hebrew, Arabic and similar alphabets; ``INDIC`` the
scripts of India and Southeast Asia, and Georgian; ``CJK`` Chinese, Japanese and Korean; ``SIGNS``
emoji, arrows and box-drawing characters."""
_NAMES = {b"a": ALPHABETS, b"i": INDIC, b"c": CJK, b"s": SIGNS}
_FIRST_BYTES = b"-" * 0xC2 + b"a" * 0x1E + b"ii" + b"s" + b"c" * 0x0D + b"s" * 0x10
"""Table for ``bytes.translate``. It turns the first byte of a character into the key of its class in
``_NAMES``, and ASCII and continuation bytes into ``-``."""
_FORMER = {
    # Class names that earlier versions stored; any other stored name was the name of an alphabet.
    **dict.fromkeys(("devanagari", "indic", "thai", "southeast", "georgian", "vietnamese"), INDIC),
    **dict.fromkeys(("han", "kana", "hangul"), CJK),
    **dict.fromkeys(("symbols", "emoji"), SIGNS),
}
_CLASSES = (TEXT, DIGITS, ALPHABETS, INDIC, CJK, SIGNS)
_SIZES: Mapping[str, Mapping[str, float]] = {
    # Tokens per token of o200k_base, by class. The ratios were fitted on Django's translations and
    # source, tables, logs and hex dumps, counted with the tokenizer files of Qwen 2.5 and 3.5,
    # Gemma 3, DeepSeek V3, Llama 3 and Mistral's tekken. The ratios of "other" lie between theirs.
    # Claude's ratios come from the tokenizer file of Claude 2, except for ASCII: later models
    # report 1.07 to 1.32.
    family: dict(zip(_CLASSES, sizes, strict=True))
    for family, sizes in {
        "": (1, 0, 1, 1, 1, 1),
        "qwen": (1.02, 0.97, 1.2, 1.25, 0.91, 0.9),
        "gemma": (1.12, 0.86, 1.08, 1, 0.9, 0.58),
        "deepseek": (1.03, 0, 1.23, 1.27, 0.96, 0.96),
        "llama3": (1, 0, 1.14, 1.3, 1.01, 1.29),
        "claude": (1.2, 0, 2.3, 3.4, 1.5, 1.25),
        "mistral": (1.04, 0.93, 1.04, 1.21, 1.05, 1.6),
        "other": (1.04, 0.5, 1.15, 1.2, 0.97, 1),
    }.items()
}
_DOUBTS = dict(zip(_CLASSES, (0.06, 0.5, 0.7, 0.6, 0.4, 0.4), strict=True))
"""Expected relative error of each class's initial ratio. The larger the error is, the more a report
changes the ratio."""
_NUMBERS = LazyPattern(r"[0-9]{2,3}")
_OWN_ENCODING = LazyPattern(
    r"(?:^|/)(?:gpt-|chatgpt|o[1-9](?:$|-)|text-embedding)|gpt-oss|gpt-[345]"
)
_FAMILY_NAMES = (
    (re.compile(r"claude"), "claude"),
    (re.compile(r"gemini|gemma"), "gemma"),
    (re.compile(r"qwen|qwq"), "qwen"),
    (re.compile(r"deepseek"), "deepseek"),
    (re.compile(r"mi[sx]tral|codestral|devstral|magistral|pixtral|ministral"), "mistral"),
    (re.compile(r"llama-?_?3|llama3"), "llama3"),
)

_ROUGH_PER_CHAR = {ALPHABETS: 0.4, INDIC: 0.4, CJK: 0.7, SIGNS: 0.7}
_ROUGH_ASCII_CHARS = 3.6
"""Number of ASCII characters that are assumed for a token of prose or code."""

PLAUSIBLE_RANGE = (0.25, 5.0)
"""Lowest and highest ratio of reported to estimated tokens from which the calibration learns."""
SIZE_RANGE = (0.0, 8.0)
"""Lowest and highest ratio that the calibration can learn for a class of characters, in the model's
own tokens per counted token."""
LEAST_TO_LEARN = 200
"""Smallest request, in tokens, that the calibration learns from. The overhead of a request is only
guessed, and it is too large a part of a smaller request."""


def characters_of(text: str) -> dict[str, int]:
    """Count a text's non-ASCII characters by class. Classes without characters are left out."""
    if text.isascii():
        return {}
    marks = text.encode("utf-8", "replace").translate(_FIRST_BYTES)
    found: dict[str, int] = {}
    for mark, name in _NAMES.items():
        if number := marks.count(mark):
            found[name] = number
    return found


def count_of(tokens: int, outside: int, text: str) -> int:
    """Divide the tokens of a text among the classes of its characters, and return the `Count`.

    ``tokens`` is the number of tokens of the whole text. If all of them are of the class TEXT, this
    number is returned unchanged. ``outside`` is how many of the tokens have bytes outside ASCII.
    """
    packed = sum(len(number) - 1 for number in _NUMBERS.findall(text))
    if not outside and not packed:
        return tokens
    characters = characters_of(text)
    total = sum(characters.values()) or 1
    classes = {name: round(outside * number / total) for name, number in characters.items()}
    return Count.of(tokens, {**classes, DIGITS: packed}.items())


def rough_count(text: str) -> int:
    """Estimate a text's uncorrected tokens from its characters, without an encoding.

    For prose and code, the estimate differs from the exact count by about a fifth.
    """
    wide: dict[str, int] = {}
    for name, number in characters_of(text).items():
        wide[name] = math.ceil(number * _ROUGH_PER_CHAR[name])
    narrow = math.ceil(len(text.encode("ascii", "ignore")) / _ROUGH_ASCII_CHARS)
    if wide:
        return Count.of(narrow + sum(wide.values()), wide.items())
    return narrow


@frozen
class Calibration:
    """The number of a model's tokens per counted token, by class of characters.

    ``learnt`` ratios replace those of the tokenizer's ``family``, a key of ``_SIZES``.
    """

    family: str = ""
    learnt: Mapping[str, float] = field(default_factory=dict)

    def size(self, name: str) -> float:
        """Return the number of the model's tokens per counted token of the class ``name``."""
        return self.learnt.get(name, _SIZES[self.family][name])

    def apply(self, counted: int) -> float:
        return sum(number * self.size(name) for name, number in _classes(counted).items())

    def learn(self, counted: int, reported: int) -> "Calibration":
        """Return the calibration corrected by the number of tokens reported for a whole request.

        ``counted`` is the request's uncorrected count. Implausible reports and small requests
        change nothing. Otherwise the ratios change so that the request's estimate equals the
        report, unless a ratio would leave ``SIZE_RANGE``. A ratio changes most if it is uncertain
        and its class has many tokens.
        """
        estimate = self.apply(counted)
        if min(estimate, reported) < LEAST_TO_LEARN:
            return self
        if not PLAUSIBLE_RANGE[0] <= reported / estimate <= PLAUSIBLE_RANGE[1]:
            return self
        gains: dict[str, float] = {}
        total = 0.0
        for name, number in _classes(counted).items():
            gains[name] = number * (_DOUBTS[name] * self.size(name)) ** 2
            total += gains[name] * number
        step = (reported - estimate) / total
        low, high = SIZE_RANGE
        learnt = dict(self.learnt)
        for name, gain in gains.items():
            learnt[name] = min(max(self.size(name) + gain * step, low), high)
        return Calibration(self.family, learnt)


def _classes(counted: int) -> dict[str, int]:
    found = {TEXT: int(counted)}
    for name, number in counted.scripts if isinstance(counted, Count) else ():
        if name in _CLASSES:
            kind = name
        else:
            kind = _FORMER.get(name, ALPHABETS)
        found[kind] = found.get(kind, 0) + number
        if kind != DIGITS:
            found[TEXT] -= number
    return found


def first_calibration(model: str) -> Calibration:
    """Return the calibration that a model starts with, before anything is learnt about it."""
    name = model.lower()
    family = next((family for pattern, family in _FAMILY_NAMES if pattern.search(name)), "")
    return Calibration(family or ("" if _OWN_ENCODING.search(name) else "other"))
