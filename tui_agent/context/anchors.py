"""Finds anchors, which are exact facts that a summary would lose, by patterns, without a model.

Anchors are file paths, commands with their exit codes, error lines, identifiers, hashes, numbers
with units, and sentences with "must", "never", "don't" or "always". Each anchor has the id of an
entry that contains it, for ``recall("#412")``. The same entries always give the same anchors; the
caches here only save time.
"""

import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import lru_cache, wraps
from itertools import islice
from threading import Lock
from typing import Literal, TypeVar, get_args

from tui_agent.context.arguments import parse_object, strings_in
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    ShellEntry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.tool_traits import TraitsByName

T = TypeVar("T")

AnchorKind = Literal["rule", "command", "error", "path", "name", "hash", "number"]
"""The kinds of anchors, the most important first. Anchors with equal scores are ranked in this
order."""

REMEMBERED = 600
"""Maximum number of anchors that a compaction stores for the next compaction. Far fewer are sent to
the model."""

_REMEMBERED_CHARS = 1_000_000
"""Facts are cached for texts of this total length, in characters. That is enough for the texts of a
few full context windows."""
_LINE_CHARS = 160
_COMMAND_CHARS = 120
_ERROR_LINES = 8

# A mention by the user or the model predicts later use far better than one in a tool's output.
_WEIGHTS = {"user": 3.0, "assistant": 2.0, "output": 0.1, "fact": 1.0}
"""The weight of a fact's mention by the user, by the model (``assistant``) or in a tool's output.
``fact`` is the weight of an error line in an output, or of a rule in the model's text."""

_TOKEN = LazyPattern(r"[A-Za-z0-9_$@~./\\:+-]{3,200}")
_PATH = LazyPattern(
    r"(?:~|\.{1,2})?/?(?:[\w.@+$-]+/)+[\w.@+$-]*\w(?::\d+)*|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}(?::\d+)*",
    re.ASCII,
)
_FILE = LazyPattern(
    r"\.(?:py|pyi|ts|tsx|js|jsx|mjs|cjs|json|jsonl|toml|ya?ml|md|mdx|rst|txt|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php"
    r"|swift|sh|zsh|sql|html|css|scss|tcss|vue|svelte|lock|cfg|ini|env|xml|csv|log|proto|gradle|tf|lua|ex|exs|zig)"
    r"(?::\d+)*$"
)
_TWO_WORDS = LazyPattern(r"[A-Za-z]+/[A-Za-z]+")
_HASH = LazyPattern(r"[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = LazyPattern(
    r"[a-z$_][a-z0-9$]*(?:[A-Z][a-z0-9$]*)+"  # camelCase
    r"|[A-Z][a-z0-9$]+[A-Z][A-Za-z0-9$]*"  # PascalCase
    r"|[A-Za-z$]*_[\w$]*[A-Za-z][\w$]*"  # snake_case, CONSTANT_CASE
    r"|--[a-z][a-z0-9]*(?:-[a-z0-9]+)*"  # --flag
    r"|[A-Z]{2,}[0-9]{2,}"  # TS2304
    r"|[a-z]{2,}(?:-[a-z0-9]{2,})+",  # kebab-case
)
_DOTTED = LazyPattern(r"[A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)+")
_NUMBER = LazyPattern(
    r"(?<![\w.-])\d[\d,]{0,30}(?:\.\d{1,30})?[ \t\u00a0\u202f]?"
    r"(?:ms|µs|ns|sec(?:onds)?|min(?:utes)?|[KMGT]i?B|kB|bytes|px|%|fps|Hz|tokens|lines)(?![\w-])"
)
_ERROR = LazyPattern(
    r"\b(?:\w*Error|\w*Exception|error|fatal|panic(?:ked)?|FAILED|FAIL|failed|Traceback|cannot|Cannot|not found"
    r"|No such file|undefined|ENOENT|EACCES|denied|refused|timed out)\b"
)
_RULE = LazyPattern(
    r"\b(?:must(?:n't)?|never|don'?t|do not|always|make sure|ensure|only use|avoid|should not|shouldn't|prefer)\b"
    r"|\b(?:muss|müssen|niemals|immer|darf nicht|auf keinen Fall)\b"
    r"|必须|必須|务必|務必|一定要|永远不|永遠不|绝不|絕不|不要|不能|不得|禁止|切勿|总是|總是|始终|始終|绝对",
    re.IGNORECASE,
)
_SENTENCE = LazyPattern(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_EXIT = LazyPattern(r"exit(?:ed with)?(?: code| status)?:? (\d{1,3})\b", re.IGNORECASE)
_ENCODED = LazyPattern(r"(\w+) ([\d.]+) (\d+) #(\d+) (.*)", re.DOTALL)

_KINDS: tuple[AnchorKind, ...] = get_args(AnchorKind)


@frozen
class Anchor:
    """One exact fact, such as a path or an error line, and how important it is.

    ``weight`` is the sum of the weights of the fact's mentions. ``seen`` is the id of the newest
    entry that mentions the fact; recalling the entry ``entry_id`` shows it. ``score`` estimates how
    likely the fact is to be used again: a high weight and a recent mention raise it.
    """

    kind: AnchorKind
    text: str
    entry_id: int
    weight: float
    seen: int
    score: float = field(default=0.0, compare=False)

    def encode(self) -> str:
        """Encode the anchor as one string, to be stored in ``SummaryDetails.remembered``."""
        return f"{self.kind} {self.weight:g} {self.seen} #{self.entry_id} {self.text}"

    @classmethod
    def decode(cls, text: str) -> "Anchor | None":
        """Parse a string made by `encode`; return None for any other text."""
        found = _ENCODED.fullmatch(text)
        if found is None or found[1] not in _KINDS:
            return None
        return cls(found[1], found[5], int(found[4]), float(found[2]), int(found[3]))


def find_anchors(
    entries: Iterable[Entry],
    tools: TraitsByName,
    earlier: Iterable[str] = (),
    *,
    most: int = REMEMBERED,
) -> tuple[Anchor, ...]:
    """Return at most ``most`` anchors from ``entries`` and an earlier summary, best first.

    ``earlier`` are the encoded anchors of that summary; other texts are skipped. Anchors are ranked
    by score: the best were mentioned often and recently, by the user or the model. Equal scores are
    ranked by kind, then by text.
    """
    finder = _Finder(tools)
    for text in earlier:
        anchor = Anchor.decode(text)
        if anchor is not None:
            finder.known[anchor.kind, anchor.text] = [anchor.weight, anchor.seen, anchor.entry_id]
    for entry in entries:
        finder.look_at(entry)
    return finder.ranked(most)


class _Finder:
    """Collects the facts mentioned in entries.

    ``known`` maps (kind, text) to [weight, id of the newest entry, id of the entry to recall].
    """

    def __init__(self, tools: TraitsByName) -> None:
        self._tools = tools
        self.known: dict[tuple[AnchorKind, str], list[float]] = {}
        self._commands: dict[str, str] = {}
        self._first = sys.maxsize

    def look_at(self, entry: Entry) -> None:
        self._first = min(self._first, entry.id)
        match entry:
            case UserEntry():
                self._refer_all(_facts(entry.text), entry.id, "user")
                self._rules(entry.text, entry.id, "user")
                for file in entry.attached:
                    facts = _facts(f"{file.path}\n{file.text}")
                    self._refer_all(facts, entry.id, "output")
            case AssistantEntry():
                self._refer_all(_facts(entry.text), entry.id, "assistant")
                self._rules(entry.text, entry.id, "fact")
                for call in entry.tool_calls:
                    self._call(call, entry.id)
            case ToolResultEntry():
                self._refer_all(_facts(entry.output), entry.id, "output")
                if entry.status is ToolStatus.ERROR or not self._tools[entry.tool].quotes:
                    self._refer_all(_error_lines(entry.output), entry.id, "fact")
                self._command_ended(entry)
            case ShellEntry():
                if not entry.excluded:
                    self._refer_all(_facts(f"{entry.command}\n{entry.output}"), entry.id, "output")
                    self._refer_all(_error_lines(entry.output), entry.id, "fact")
                    self._command(entry.command, entry.exit_code, "user", entry.id)
            case BranchSummaryEntry():
                self._refer_all(_facts(entry.summary), entry.id, "assistant")
            case CompactionEntry() | BookkeepingEntry():
                pass

    def ranked(self, most: int) -> tuple[Anchor, ...]:
        """Return at most ``most`` anchors, best first.

        An anchor's score is its weight divided by 1 + its age. The age is 0 for the anchor that was
        mentioned last, and 1 for an anchor last mentioned in the first entry.
        """
        newest = max((int(seen) for _, seen, _ in self.known.values()), default=0)
        span = max(1, newest - min(self._first, newest))
        ranked = [
            (-weight / (1 + (newest - seen) / span), _KINDS.index(kind), text)
            for (kind, text), (weight, seen, _) in self.known.items()
        ]
        best: list[Anchor] = []
        for minus_score, rank, text in sorted(ranked)[:most]:
            kind = _KINDS[rank]
            weight, seen, address = self.known[kind, text]
            anchor = Anchor(
                kind,
                text,
                entry_id=int(address),
                weight=round(weight, 2),
                seen=int(seen),
                score=-minus_score,
            )
            best.append(anchor)
        return tuple(best)

    def _refer(self, kind: AnchorKind, text: str, entry_id: int, weight: float) -> None:
        found = self.known.get((kind, text))
        if found is None:
            self.known[kind, text] = [weight, entry_id, entry_id]
        else:
            found[0] += weight
            found[1] = found[2] = entry_id

    def _refer_all(
        self, facts: Iterable[tuple[AnchorKind, str]], entry_id: int, source: str
    ) -> None:
        weight = _WEIGHTS[source]
        for kind, fact in facts:
            self._refer(kind, fact, entry_id, weight)

    def _call(self, call: ToolCallPart, entry_id: int) -> None:
        arguments = parse_object(call.arguments)
        if arguments is None:
            return
        self._refer_all(_facts("\n".join(strings_in(arguments))), entry_id, "assistant")
        command = arguments.get("command")
        if isinstance(command, str):
            self._commands[call.call_id] = command

    def _command_ended(self, entry: ToolResultEntry) -> None:
        command = self._commands.pop(entry.call_id, None)
        if command is None:
            return
        code = entry.metadata.exit_code
        if code is None and entry.status is ToolStatus.ERROR:
            found = _EXIT.search(entry.output[-200:])
            code = int(found[1]) if found else 1
        self._command(command, code or 0, "assistant", entry.id)

    def _command(self, command: str, code: int | None, source: str, entry_id: int) -> None:
        line = f"`{cut_line(command, _COMMAND_CHARS)}`"
        if code is not None:
            line = f"{line} → exit {code}"
        self._refer("command", line, entry_id, _WEIGHTS[source])

    def _rules(self, text: str, entry_id: int, source: str) -> None:
        if not _RULE.search(text):
            return
        for sentence in _SENTENCE.split(text):
            if sentence and len(sentence) <= 4 * _LINE_CHARS and _RULE.search(sentence):
                self._refer("rule", cut_line(sentence, 2 * _LINE_CHARS), entry_id, _WEIGHTS[source])


def _remembering(function: Callable[[str], T]) -> Callable[[str], T]:
    """Cache a function's results for the latest ``_REMEMBERED_CHARS`` characters of texts."""
    known: OrderedDict[str, T] = OrderedDict()
    lock = Lock()
    room = _REMEMBERED_CHARS

    @wraps(function)
    def remembered(text: str) -> T:
        nonlocal room
        with lock:
            if text in known:
                known.move_to_end(text)
                return known[text]
        found = function(text)
        with lock:
            if text not in known:
                known[text], room = found, room - len(text)
            while room < 0:
                room += len(known.popitem(last=False)[0])
        return found

    return remembered


def names_in(line: str) -> set[str]:
    """Return the paths, identifiers and hashes in a text of any length."""
    names: set[str] = set()
    for token in _TOKEN.findall(line):
        names.update(text for _kind, text in _classify(token))
    return names


@_remembering
def _facts(text: str) -> tuple[tuple[AnchorKind, str], ...]:
    """Return (kind, text) of each path, identifier, hash and number in a text, each only once.

    The results are cached, because entries never change and every plan examines all of them.
    """
    facts: list[tuple[AnchorKind, str]] = []
    for token in set(_TOKEN.findall(text)):
        facts += _classify(token)
    facts += [("number", number) for number in set(_NUMBER.findall(text))]
    return tuple(facts)


@_remembering
def _error_lines(text: str) -> tuple[tuple[AnchorKind, str], ...]:
    lines: list[tuple[AnchorKind, str]] = []
    for match in islice(_ERROR.finditer(text), _ERROR_LINES):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        lines.append(("error", cut_line(text[start : end if end >= 0 else len(text)], _LINE_CHARS)))
    return tuple(lines)


def cut_line(text: str, limit: int) -> str:
    """Return the beginning of a text as one line of at most ``limit`` characters.

    Runs of white space become one space. A cut line ends with "…". Only the first ``4 * limit``
    characters of the text are used; if they fit, there is no "…", even for a longer text.
    """
    line = " ".join(text[: limit * 4].split())
    if len(line) <= limit:
        return line
    return f"{line[: limit - 1]}…"


@lru_cache(maxsize=1 << 14)
def _classify(token: str) -> tuple[tuple[AnchorKind, str], ...]:
    """Return (kind, text) of each fact in a word without spaces; most words contain one or none."""
    word = token.strip(".,:;+\\").rstrip("/-@~").removeprefix("this.").removeprefix("self.")
    if len(word) < 4 or len(word) > 120:
        return ()
    if "/" in word or _FILE.search(word):
        is_path = (_PATH.fullmatch(word) and not _TWO_WORDS.fullmatch(word)) or "://" in word
        return (("path", word),) if is_path else ()
    if _HASH.fullmatch(word) and any(c.isdigit() for c in word) and any(c.isalpha() for c in word):
        return (("hash", word),)
    if _NAME.fullmatch(word):
        return (("name", word),)
    if _DOTTED.fullmatch(word):
        facts: list[tuple[AnchorKind, str]] = [("name", word)]
        for part in re.split(r"\.|::", word):
            if len(part) > 3 and _NAME.fullmatch(part):
                facts.append(("name", part))
        return tuple(facts)
    return ()
