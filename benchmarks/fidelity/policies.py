"""What every policy under test has in common: a path it appends to, a view of it, and how what it does is measured."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from benchmarks.fidelity.traces import COUNTER
from tui_agent.context.budget import ViewWeights, estimate_path
from tui_agent.context.commit_plan import provisional
from tui_agent.context.files import FileOperations
from tui_agent.context.preserved import Budgets, Summarised, carry, digest
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import Message
from tui_agent.context.settings import ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.resources import prompt
from tui_agent.session.entries import CompactionEntry, Entry, SummaryDetails, ToolResultEntry
from tui_agent.tools.registry import tool_traits

FIXED = 1_600
"""Tokens of head and tools, the same for all: what the built-in tools and a short AGENTS.md take."""
MAX_OUTPUT = 32_000
TTL_SECONDS = (300, 3_600)
"""How long providers keep a prefix, for the price of ``WRITE_PRICES``."""
WRITE_PRICES = (1.25, 2.0)
READ_PRICE = 0.1
"""Price of a token read from the cache, in uncached ones (the prices of Anthropic's interface)."""
LEAST_CACHED = 1_024
"""Tokens below which a prefix is not cached."""
Summaries = Literal["none", "extractive"]

_MODEL = "gpt-4o"
_TRAITS = ModelTraits(_MODEL)
_ADDRESS = re.compile(r"#(\d+)")


@dataclass(slots=True)
class Health:
    """What a policy did to its context, summed over a replay, in tokens of whole requests."""

    requests: int = 0
    sent: int = 0
    over_window: int = 0
    compactions: int = 0
    prunes: int = 0
    violations: int = 0
    """Compactions after which history was over 90 % of before or 60 % of the budget."""
    no_progress: int = 0
    """Compactions that followed another without a request in between."""
    freed: list[float] = field(default_factory=list)
    """Share of history that each compaction freed."""
    breaks: int = 0
    kept_prefix: int = 0
    could_keep: int = 0
    summarised: int = 0
    """Tokens a summariser would have to read."""
    costs: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Price of all that was sent, in uncached tokens, for each time to live."""


class Policy(ABC):
    """One way to manage the context."""

    name: str
    templates = Templates.load(prompt)

    def __init__(self, window: int, summaries: Summaries = "extractive") -> None:
        self.window = window
        self.summaries = summaries
        self.path: list[Entry] = []
        self.history = 0
        self.health = Health()
        self.idle = 0.0
        """Seconds between the last request and the next."""
        self._last_sent = 0
        self._last_time: int | None = None
        self._compacted_at = -1
        self._told = ""
        self._messages_told: tuple[str, ...] = ()

    @property
    def budget(self) -> int:
        """The history budget H as this product counts it, so that all are held to the same postcondition."""
        reserve = ContextSettings().compaction.reserve(self.window, MAX_OUTPUT)
        return max(1, self.window - reserve - FIXED)

    def append(self, entry: Entry) -> None:
        """Take one recorded entry."""
        self.path.append(self.admit(entry))
        self.history += self.path[-1].tokens

    def request(self, time: int) -> None:
        """Do what the policy does before a request, then send it at ``time`` (milliseconds)."""
        self.idle = 0.0 if self._last_time is None else (time - self._last_time) / 1_000
        self.before_request()
        self._last_time = time
        health, size = self.health, FIXED + self.history
        health.requests += 1
        health.sent += size
        health.over_window += size > self.window - LEAST_CACHED
        health.could_keep += self._last_sent
        kept = min(self._last_sent, size)
        health.kept_prefix += kept
        for place, (seconds, price) in enumerate(zip(TTL_SECONDS, WRITE_PRICES, strict=True)):
            cached = kept if self.idle <= seconds and kept >= LEAST_CACHED else 0
            health.costs[place] += READ_PRICE * cached + price * (size - cached)
        self._last_sent = size

    def admit(self, entry: Entry) -> Entry:
        """Return the entry as it gets into the context; tools may show less than all."""
        return entry

    @abstractmethod
    def before_request(self) -> None:
        """Prune or compact if it is time to."""

    def recalled(self, text: str) -> str:  # noqa: ARG002  (most have no way back)
        """Return what one call shows of each entry with an address in ``text``, the view."""
        return ""

    def view_text(self) -> str:
        """Return all text the model is shown."""
        return "\n".join(_text_of(message) for message in self._messages(self.path))

    def change(self, entries: Sequence[Entry]) -> None:
        """Append entries that change the view, and count what that costs."""
        before = self._messages(self.path)
        self.path = provisional(self.path, [self._counted(entry) for entry in entries])
        after = self._messages(self.path)
        same = next(
            (i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
            len(after),
        )
        self._lose_prefix(FIXED + sum(COUNTER.message(message) for message in after[:same]))
        size = self.measured(self.path)
        health = self.health
        if any(isinstance(entry, CompactionEntry) for entry in entries):
            health.compactions += 1
            health.violations += size > 0.9 * self.history or size > 0.6 * self.budget
            health.no_progress += self._compacted_at == health.requests
            health.freed.append(1 - size / self.history if self.history else 0.0)
            self._compacted_at = health.requests
        else:
            health.prunes += 1
        self.history = size

    def measured(self, path: Sequence[Entry]) -> int:
        """Return the tokens of a path's history."""
        return estimate_path(
            path, replace(COUNTER, templates=self.templates), ModelTraits(_MODEL)
        ).history

    def summary(self, entries: Sequence[Entry], first_kept_id: int | None) -> CompactionEntry:
        """Return a compaction as a rival makes it: the common summary, which knows no addresses."""
        previous = resolve(self.path).compaction
        self.charge(entries)
        told = [entry for entry in entries if entry.is_sent and entry.kind != "compaction"]
        text = self.told(self._told, told)
        self._told = text
        messages = "\n".join(self._user_messages(told, previous))
        return CompactionEntry(
            summary="\n\n".join(filter(None, [_ADDRESS.sub("", text), messages])),
            first_kept_id=first_kept_id,
            tokens_before=self.history,
            tokens_after=0,
            trigger="threshold",
        )

    def charge(self, entries: Sequence[Entry]) -> None:
        """Count what a summariser reads; every program cuts each output for it."""
        weights, longest = (
            ViewWeights(resolve(self.path)),
            ContextSettings().compaction.result_chars,
        )
        for entry in entries:
            shown = len(entry.output) if isinstance(entry, ToolResultEntry) else 0
            self.health.summarised += round(
                weights.of(entry) * min(1, longest / shown) if shown else weights.of(entry)
            )

    def _user_messages(
        self, entries: Sequence[Entry], previous: CompactionEntry | None
    ) -> tuple[str, ...]:
        """Return the user's messages as this product carries them: a model's summary would say what they asked for."""
        if self.summaries == "none":
            return ()
        nothing = Summarised(entries, FileOperations(), tool_traits())
        budgets = replace(
            Budgets.of(ContextSettings().compaction, self.budget), anchors=0, files=0, state=0
        )
        earlier = SummaryDetails(user_messages=self._messages_told if previous is not None else ())
        self._messages_told = carry(nothing, earlier, budgets, COUNTER.text).user_messages
        return self._messages_told

    def told(self, previous: str, entries: Sequence[Entry]) -> str:
        """Return the summary of entries on top of an earlier one: by the same rule for every policy, or nothing."""
        if self.summaries == "none":
            return ""
        budget = ContextSettings().compaction.summary_tokens(self.budget)
        lines = [*previous.splitlines(), *digest(entries, budget, COUNTER.text).splitlines()]
        chosen: list[str] = []
        for line in reversed(lines):
            budget -= COUNTER.text(line) + 1
            if budget < 0:
                break
            chosen.append(line)
        return "\n".join(reversed(chosen))

    def _lose_prefix(self, kept: int) -> None:
        if kept < self._last_sent:
            self.health.breaks += 1
            self.health.could_keep += self._last_sent - kept
            self._last_sent = kept

    def _messages(self, path: Sequence[Entry]) -> tuple[Message, ...]:
        return project(path, _TRAITS, self.templates).messages

    def _counted(self, entry: Entry) -> Entry:
        return entry.model_copy(
            update={"tokens": replace(COUNTER, templates=self.templates).estimate(entry)}
        )


def _text_of(message: Message) -> str:
    return "\n".join([message.text, *(call.arguments for call in message.tool_calls)])
