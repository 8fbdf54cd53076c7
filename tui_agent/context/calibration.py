"""How many tokens of a model's own one counted token stands for: by script, first by its family, then as reported."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from tui_agent.lazy import dataclass
from tui_agent.session.counting import Count

ASCII = "ascii"
DIGITS = "digits"
"""Digits after the first of each token of numbers: o200k_base packs three, many tokenizers give each a token."""
_BLOCKS = (
    # Where each script begins in Unicode; up to the next line. Scripts that tokenizers treat alike share a name.
    (0x80, "latin"),
    (0x250, "symbols"),
    (0x370, "greek"),
    (0x400, "cyrillic"),
    (0x530, "armenian"),
    (0x590, "hebrew"),
    (0x600, "arabic"),
    (0x900, "devanagari"),
    (0x980, "indic"),
    (0xE00, "thai"),
    (0xE80, "southeast"),
    (0x10A0, "georgian"),
    (0x1100, "hangul"),
    (0x1200, "symbols"),
    (0x1780, "southeast"),
    (0x1800, "symbols"),
    (0x1E00, "vietnamese"),
    (0x1F00, "greek"),
    (0x2000, "symbols"),
    (0x2E80, "han"),
    (0x3040, "kana"),
    (0x3100, "han"),
    (0x3130, "hangul"),
    (0x3190, "han"),
    (0xAC00, "hangul"),
    (0xD800, "symbols"),
    (0xF900, "han"),
    (0xFB00, "symbols"),
    (0xFE30, "han"),
    (0xFE70, "arabic"),
    (0xFF00, "han"),
    (0x10000, "symbols"),
    (0x1F000, "emoji"),
    (0x1FB00, "symbols"),
    (0x20000, "han"),
    (0x30000, "symbols"),
)
_SCRIPTS = (
    "ascii",
    "latin",
    "vietnamese",
    "greek",
    "cyrillic",
    "armenian",
    "georgian",
    "hebrew",
    "arabic",
    "devanagari",
    "indic",
    "thai",
    "southeast",
    "han",
    "kana",
    "hangul",
    "symbols",
    "emoji",
)
_STARTS = [start for start, _ in _BLOCKS]

_FAMILIES: Mapping[str, Mapping[str, float]] = {
    # Tokens per token of o200k_base by script, in the order of _SCRIPTS, as the tokenizers' own files count the
    # translations of Django 5.2 and its source; Mistral's (tekken) and emoji on texts of ours. "other" is the geometric
    # mean of the open ones. Claude's file is Claude 2's; its ASCII is what later models report (1.07 to 1.32).
    family: dict(zip(_SCRIPTS, map(float, factors.split()), strict=True))
    for family, factors in {
        "qwen": "1.01 1.2 0.53 2.69 1.34 3.02 2.99 1.01 1.36 3.02 3.64 1.47 2.81 0.97 0.9 1.15 0.91 1.26",
        "gemma": "1.08 1.08 1.4 1.09 0.97 1.66 1.29 1.22 1.06 0.91 1.08 0.82 1.14 0.96 0.64 0.95 0.83 0.9",
        "deepseek": "1.03 1.22 1.4 1.41 1.14 1.76 2.19 1.19 1.24 1.88 1.82 0.89 1.98 0.84 0.93 1.15 1 1.2",
        "llama3": "1 1.17 0.5 1.1 1.09 4.86 5.56 2.66 1.19 1.68 4.24 1.19 3.34 1.04 0.89 1.08 0.97 1.25",
        "claude": "1.2 1.39 3.6 3.43 1.87 5.42 3.51 2.33 3.15 3.45 5.2 4.58 3.07 1.12 1.39 1.89 1.1 1.5",
        "mistral": "1.04 1.04 0.9 1.07 1.09 1.7 1.6 1.15 0.91 1.18 1.3 1.31 1.5 1.25 0.95 0.85 1.27 1.52",
        "other": "1.03 1.17 0.85 1.46 1.13 2.56 2.61 1.41 1.21 1.72 2.35 1.06 2.15 0.95 0.83 1.08 0.93 1.3",
    }.items()
}
_NUMBERS = re.compile(r"[0-9]{2,3}")
_DIGIT_TOKENS = {"": 0.0, "deepseek": 0.0, "llama3": 0.0, "claude": 0.0, "qwen": 1.0, "gemma": 1.0, "mistral": 0.95}
"""Tokens that each digit after the first of three takes: none where numbers are packed as in o200k_base."""
_UNKNOWN_DIGITS = 0.4
_OWN_ENCODING = re.compile(r"(?:^|/)(?:gpt-|chatgpt|o[1-9](?:$|-)|text-embedding)|gpt-oss|gpt-[345]")
_FAMILY_NAMES = (
    (re.compile(r"claude"), "claude"),
    (re.compile(r"gemini|gemma"), "gemma"),
    (re.compile(r"qwen|qwq"), "qwen"),
    (re.compile(r"deepseek"), "deepseek"),
    (re.compile(r"mi[sx]tral|codestral|devstral|magistral|pixtral|ministral"), "mistral"),
    (re.compile(r"llama-?_?3|llama3"), "llama3"),
)

_ROUGH_PER_CHAR = MappingProxyType(
    # Tokens per character; the rest is between hangul and han.
    dict.fromkeys(("greek", "cyrillic", "armenian", "georgian", "hebrew", "arabic", "devanagari", "indic", "thai"), 0.4)
)
_WORDS_AROUND = 10
"""Tokens for which an accent stands: the words around it are not English either."""
_ROUGH_WIDE = 0.7
_ROUGH_ASCII_CHARS = 3.6
"""ASCII characters per token of prose and code."""

PLAUSIBLE_RANGE = (0.25, 5.0)
"""Reported over estimated tokens outside which one of the two is wrong, and nothing is learnt."""
FACTOR_RANGE = (0.3, 8.0)
"""Limits of a factor."""
LEAST_TO_LEARN = 200
"""Tokens of a request below which the overhead's guess would drown what is to be learnt."""
_MEASURED = {"", "qwen", "gemma", "deepseek", "llama3", "mistral"}
_DOUBT, _DOUBT_UNMEASURED = (0.06, 0.15), (0.12, 0.4)
"""Shares by which ASCII's factor and the others may be off at first."""
OLD_FACTOR_DOUBT = 0.05
"""The same of a factor that was learnt for all scripts together."""
_NOISE = 0.01
"""Share by which a report may differ from the best factors."""
_LEAST_DOUBT = 0.015
"""How far a factor that was learnt well may still be off: text differs."""


def script_of(character: str) -> str:
    """Return the script of a character."""
    point = ord(character)
    return ASCII if point < _STARTS[0] else _BLOCKS[bisect_right(_STARTS, point) - 1][1]


def scripts_of(text: str) -> dict[str, int]:
    """Return the characters of a text outside ASCII by script."""
    found: dict[str, int] = {}
    if text.isascii():
        return found
    for character, number in Counter(text).items():
        if not character.isascii():
            script = script_of(character)
            found[script] = found.get(script, 0) + number
    return found


def count_of(tokens: int, outside: int, text: str) -> int:
    """Return the count of a text that has ``tokens``, ``outside`` of them outside ASCII."""
    packed = sum(len(number) - 1 for number in _NUMBERS.findall(text))
    if not outside and not packed:
        return tokens
    characters = scripts_of(text)
    total = sum(characters.values()) or 1
    scripts = {script: round(outside * number / total) for script, number in characters.items()}
    if "latin" in scripts:
        scripts["latin"] = min(scripts["latin"] * _WORDS_AROUND, tokens - sum(scripts.values()) + scripts["latin"])
    return Count.of(tokens, {**scripts, DIGITS: packed}.items())


def rough_count(text: str) -> int:
    """Return about how many tokens a text has, whatever the encoding; prose and code are within a fifth of it."""
    wide = {script: math.ceil(n * _ROUGH_PER_CHAR.get(script, _ROUGH_WIDE)) for script, n in scripts_of(text).items()}
    narrow = math.ceil(len(text.encode("ascii", "ignore")) / _ROUGH_ASCII_CHARS)
    return Count.of(narrow + sum(wide.values()), wide.items()) if wide else narrow


@dataclass(frozen=True, slots=True)
class Factor:
    """What one counted token of a script stands for, and how far that may be off (a standard deviation)."""

    value: float = 1.0
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """A model's factors: those of its family, and in ``learnt`` what reports made of them."""

    family: str = ""
    learnt: Mapping[str, Factor] = field(default_factory=dict)

    def factor(self, script: str) -> Factor:
        known = self.learnt.get(script)
        if known is not None:
            return known
        if script == DIGITS:
            value = _DIGIT_TOKENS.get(self.family, _UNKNOWN_DIGITS)
            return Factor(value, 0.0 if self.family in _DIGIT_TOKENS else _UNKNOWN_DIGITS)
        value = _FAMILIES.get(self.family, {}).get(script, 1.0)
        doubt = (_DOUBT if self.family in _MEASURED else _DOUBT_UNMEASURED)[script != ASCII]
        return Factor(value, value * doubt)

    def apply(self, counted: int) -> float:
        """Return counted tokens as the model's."""
        scripts = counted.scripts if isinstance(counted, Count) else ()
        narrow = int(counted) - sum(number for script, number in scripts if script != DIGITS)
        wide = sum(number * self.factor(script).value for script, number in scripts)
        return narrow * self.factor(ASCII).value + wide

    def learn(self, counted: int, reported: int) -> "Calibration":
        """Return the calibration after one report on a whole request; absurd and tiny ones change nothing.

        What the report differs by is shared out among the scripts in the request: most to the one that has most of
        it and is least known (a Kalman filter without the factors' correlations).
        """
        estimate = self.apply(counted)
        if min(estimate, reported) < LEAST_TO_LEARN:
            return self
        if not PLAUSIBLE_RANGE[0] <= reported / estimate <= PLAUSIBLE_RANGE[1]:
            return self
        scripts = dict(counted.scripts) if isinstance(counted, Count) else {}
        scripts[ASCII] = int(counted) - sum(number for script, number in scripts.items() if script != DIGITS)
        known = {script: self.factor(script) for script in scripts}
        weights = {script: number * known[script].doubt ** 2 for script, number in scripts.items()}
        spread = sum(weights[script] * number for script, number in scripts.items()) + (_NOISE * reported) ** 2
        learnt = dict(self.learnt)
        for script, number in scripts.items():
            gain = weights[script] / spread
            low, high = (0.0, 1.2) if script == DIGITS else FACTOR_RANGE
            value = min(max(known[script].value + gain * (reported - estimate), low), high)
            least = 0.0 if script == DIGITS else _LEAST_DOUBT
            doubt = max(known[script].doubt * math.sqrt(max(0.0, 1 - gain * number)), least)
            learnt[script] = Factor(value, doubt)
        return Calibration(self.family, learnt)


def first_calibration(model: str) -> Calibration:
    """Return the calibration of a model of which nothing was learnt yet."""
    name = model.lower()
    family = next((family for pattern, family in _FAMILY_NAMES if pattern.search(name)), "")
    return Calibration(family or ("" if _OWN_ENCODING.search(name) else "other"))
