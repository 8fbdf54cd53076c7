"""Finds standing rules in the user's messages: "never touch vendor", "always run the tests".

A compaction copies them verbatim, newest first, as far as its budget allows (`carried`). A rule is
recognised only by its form (`binds`): an order such as "never …" or "only …", or a sentence with
"must", "is forbidden" and the like.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import Entry, TextPart, is_by_user
from tui_agent.whole_numbers import whole_number

MAX_CHARS = 400
"""Maximum characters of a sentence that counts as a standing rule."""
MIN_WORDS = 3
"""Minimum number of words that a sentence must have to count as a standing rule."""
BUDGET_SHARE = 0.4
"""Largest share of a summary's budget for the user's messages that standing rules may take."""
LEAST_BUDGET = 160
"""Number of tokens that standing rules may take even if ``BUDGET_SHARE`` allows fewer."""

_SENTENCE = LazyPattern(r"(?<=[.!?;])\s+|\n+")
_FENCE = LazyPattern(
    r"^\s*(?:```|~~~).*?(?:^\s*(?:```|~~~)|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
_MARKS = " \t-*•>#0123456789.)"
"""Characters of list markers, stripped from the beginning of a line."""

_ORDER = LazyPattern(
    r"(?:^|[,:;–—(]\s*|\b(?:and|but|so|then|please|and please)\s+)"
    r"(?:never\b|always\b|do\s+not\b|don['’]?t\b|only\b|under no circumstances\b|at no time\b"
    r"|from now on\b|make sure\b|be sure to\b|ensure\b|avoid\b|stick to\b|no matter what\b"
    r"|whatever (?:you do|happens)\b|in every case\b|without exception\b)",
    re.IGNORECASE,
)
_DUTY = LazyPattern(
    r"\b(?:must(?:\s+not|n['’]t)?|may\s+not|shall(?:\s+not)?|has\s+to|have\s+to|should\s+(?:never|always|only|not)"
    r"|(?:is|are)\s+(?:not\s+allowed|forbidden|off[ -]limits|required|mandatory)|is\s+a\s+must"
    r"|you\s+(?:never|always|only)|we\s+(?:never|always|only)|use\s+only|nothing\s+but)\b",
    re.IGNORECASE,
)
_NO_ORDER = LazyPattern(
    r"^(?:i|it|this|that|they|he|she|there)\b(?!.{0,40}\b(?:must|never|always|has to|have to)\b)"
    r"|^(?:don['’]?t|do not)\s+(?:worry|bother|you|we|they|i|know|think|have)\b|^only\s+(?:one|two|a|the)\b.*\bleft\b",
    re.IGNORECASE,
)


@frozen
class StandingRule:
    """A standing rule, in the user's words, and the id of the message that states it."""

    entry_id: int
    text: str

    @property
    def line(self) -> str:
        """The rule in the form that a summary contains, such as ``#34 Never touch vendor``."""
        return f"#{self.entry_id} {self.text}"


def rules_in(text: str) -> Iterator[str]:
    """Yield the sentences of a text that are standing rules, verbatim; code blocks are skipped."""
    for line in _SENTENCE.split(_FENCE.sub("", text)):
        sentence = line.strip().lstrip(_MARKS).strip()
        if binds(sentence):
            yield sentence


def binds(sentence: str) -> bool:
    """Return True if a sentence is a standing rule.

    A rule is an order or a duty, not too long, and not a question.
    """
    if len(sentence) > MAX_CHARS or sentence.endswith("?"):
        return False
    if len(sentence.split()) < MIN_WORDS or _NO_ORDER.search(sentence):
        return False
    return bool(_ORDER.search(sentence) or _DUTY.search(sentence))


def rules_of(entries: Iterable[Entry]) -> list[StandingRule]:
    """Return the rules in the user's messages, oldest first.

    A repeated rule is returned once, with the newest message that states it.
    """
    found: dict[str, StandingRule] = {}
    for entry in entries:
        if not is_by_user(entry):
            continue
        for part in entry.parts:
            if not isinstance(part, TextPart):
                continue
            for text in rules_in(part.text):
                found.pop(text, None)
                found[text] = StandingRule(entry.id, text)
    return list(found.values())


def read_rules(lines: Iterable[str]) -> Iterator[StandingRule]:
    """Parse rules from the lines of a summary, such as ``#34 Never touch vendor``.

    Other lines are skipped.
    """
    for line in lines:
        address, _space, text = line.removeprefix("#").partition(" ")
        number = whole_number(address)
        if number is not None and text:
            yield StandingRule(number, text)


def carried(
    rules: Sequence[StandingRule], shown: str, budget: int, count: Callable[[str], int]
) -> tuple[tuple[str, ...], int]:
    """Return the lines of the rules to copy into a summary, and how many rules don't fit.

    Rules that the text ``shown`` contains are left out. The newest rules are chosen first; one that
    doesn't fit the rest of ``budget`` tokens is skipped, and an older, shorter one may still fit.
    The lines are in the order of ``rules``.
    """
    lines: list[str] = []
    lost = 0
    for rule in reversed(rules):
        if rule.text in shown:
            continue
        cost = count(rule.line) + 1
        if cost > budget:
            lost += 1
            continue
        budget -= cost
        lines.append(rule.line)
    return tuple(reversed(lines)), lost
