"""Formats values as short texts: token counts, money, durations, ages, paths, plurals, lower case.

The module also parses the counts and amounts that a user types.
"""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from tui_agent.safe_text import one_line, visible
from tui_agent.whole_numbers import plural, whole_number

__all__ = [
    "about_cost",
    "age",
    "amount_in",
    "changes_text",
    "count_in",
    "dollars_in",
    "dotted",
    "duration",
    "lines_text",
    "listed",
    "lower_case",
    "money",
    "named_jobs",
    "one_line",
    "plural",
    "retry_text",
    "seconds",
    "short_model",
    "short_path",
    "tokens",
    "visible",
]

_MINUTE = 60
_HOUR = 3600
_DAY = 86400


def tokens(count: int) -> str:
    """Return a number in abbreviated form: ``812``, ``84.2k``, ``1.5M``.

    Numbers below 100 million take at most six characters.
    """
    if count < 1_000:
        return str(count)
    if count < 999_950:
        return f"{count / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{count / 1_000_000:.2f}".rstrip("0").removesuffix(".") + "M"


def token_count(count: int) -> str:
    """Return a number of tokens with the noun: ``1 token``, ``84.2k tokens``."""
    if count == 1:
        return "1 token"
    return f"{tokens(count)} tokens"


def amount_in(text: str) -> float:
    """Parse a positive decimal number such as ``12`` or ``0.5``.

    Raises ValueError for anything else.
    """
    value = 0.0
    if text.isascii() and text.replace(".", "", 1).isdecimal():
        value = float(text)
    if not 0 < value < inf:
        raise ValueError(text)
    return value


def count_in(text: str) -> int:
    """Parse a positive whole number; raises ValueError for anything else."""
    count = whole_number(text)
    if not count:
        raise ValueError(text)
    return count


def dollars_in(text: str) -> float:
    """Parse a positive amount of US dollars: ``2.5`` or ``$2.5``.

    Raises ValueError for anything else.
    """
    return amount_in(text.removeprefix("$"))


def money(dollars: float) -> str:
    """Return US dollars with two decimals, or four below a cent: ``$1.25``, ``$0.0042``."""
    if dollars >= 0.01 or not dollars:
        return f"${dollars:.2f}"
    return f"${dollars:.4f}"


def seconds(duration: float) -> str:
    """Return whole seconds as text, with minutes if there are 60 or more: ``3 s``, ``2:07``."""
    whole = max(0, int(duration))
    if whole < _MINUTE:
        return f"{whole} s"
    return f"{whole // _MINUTE}:{whole % _MINUTE:02}"


def retry_text(reason: str, wait: float) -> str:
    """Return an error's ``reason`` with the time until the next try, which is ``wait`` in seconds."""
    if wait < 0.5:
        return f"{reason} Trying again now."
    return f"{reason} Trying again in {wait:.0f} s."


def duration(length: float) -> str:
    """Return a number of seconds as text, with a decimal below 10, and with minutes from 100 on.

    For example ``0.1 s``, ``12 s``, ``3:05``.
    """
    if length < 9.95:
        return f"{length:.1f} s"
    if length < 99.5:
        return f"{length:.0f} s"
    return seconds(length)


def age(then_ms: int, now: float) -> str:
    """Return how long ago a moment was, in the largest unit: ``5 min``; ``now`` below a minute.

    ``then_ms`` is in milliseconds since the epoch, ``now`` in seconds.
    """
    passed = max(0.0, now - then_ms / 1000)
    if passed < _MINUTE:
        return "now"
    if passed < _HOUR:
        return f"{int(passed // _MINUTE)} min"
    if passed < _DAY:
        return f"{int(passed // _HOUR)} h"
    days = int(passed // _DAY)
    if days < 365:
        return f"{days} d"
    return f"{days // 365} y"


def short_path(path: str | Path) -> str:
    """Return a path as printable text, with ``~`` for the home directory."""
    text = str(path)
    home = str(Path.home())
    if text == home or text.startswith(home.rstrip("/") + "/"):
        text = "~" + text[len(home) :]
    return visible(text)


def short_model(model: str) -> str:
    """Return what follows the last slash in a model's id: ``anthropic/claude-x`` → ``claude-x``."""
    return visible(model.rsplit("/", 1)[-1])


MAX_JOBS_NAMED = 3
"""Maximum number of background jobs that a sentence names; the others are counted."""


def named_jobs(commands: Sequence[str]) -> str:
    """Return the commands of background jobs, as words of a sentence."""
    shown = [f"“{one_line(command, 60)}”" for command in commands[:MAX_JOBS_NAMED]]
    if len(commands) > MAX_JOBS_NAMED:
        shown.append(f"{len(commands) - MAX_JOBS_NAMED} more")
    return ", ".join(shown)


def dotted(*facts: str | None) -> str:
    """Join the facts that are not empty into one line: ``12 s · 84.2k tokens``."""
    return " · ".join(filter(None, facts))


def listed(names: Sequence[str], most: int) -> str:
    """Return the first ``most`` names and the number of the others: ``a, b and 12 more``."""
    more = ""
    if len(names) > most:
        more = f" and {len(names) - most:,} more"
    return f"{', '.join(names[:most])}{more}"


def about_cost(dollars: float | None, words: str = "") -> str:
    """Return a cost and ``words`` to end a sentence: ``, about $0.25 more``; "" if unknown or 0."""
    if dollars:
        return f", about {money(dollars)}{words}"
    return ""


def lines_text(additions: int, deletions: int) -> str:
    """Return how many lines a change adds and removes: ``+3 −1``; "" if none."""
    if additions or deletions:
        return f"+{additions} −{deletions}"
    return ""


def changes_text(files: int, additions: int, deletions: int) -> str:
    """Return the size of a change: ``2 files +3 −1``; "" if no file changed."""
    if files:
        return f"{plural(files, 'file')} {lines_text(additions, deletions)}".rstrip()
    return ""


def lower_case(text: str) -> str:
    """Return a text in lower case, for searches; every character keeps its offset.

    ``İ``, the only character whose lower case is longer than itself, becomes ``i``.
    """
    return text.replace("İ", "i").lower()
