"""The policies under test: each drives its own path with what it appends to it, and is measured the same way."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.fidelity.traces import COUNTER
from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction import CompactionPlan, PlanOptions, plan_compaction
from tui_agent.context.compaction_policy import is_due
from tui_agent.context.cuts import find_cut
from tui_agent.context.digest import digest
from tui_agent.context.estimate import Asked, estimate_path
from tui_agent.context.files import file_operations
from tui_agent.context.ladder import Commit, Measures, plan_commit, provisional
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.pruning import Moment, Occasion, PruneRules, occasion, plan_prune
from tui_agent.context.request import Message
from tui_agent.context.settings import ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.truncation import limits_for, truncate
from tui_agent.context.view import EntryState, is_message, resolve
from tui_agent.context.weights import ViewWeights
from tui_agent.resources import prompt
from tui_agent.session.entries import (
    CompactionEntry,
    Entry,
    PruneEntry,
    SummaryDetails,
    ToolMetadata,
    ToolResultEntry,
    UserEntry,
)

FIXED = 2_000
"""Tokens of head and tools, the same for all."""
MAX_OUTPUT = 32_000
_MODEL = "gpt-4o"
_TRAITS = ModelTraits(_MODEL)
_ASKED = Asked(_MODEL)
_ADDRESS = re.compile(r"#(\d+)")
_NO_SUMMARY = "-"
"""Stands for a summary that says nothing; without any, this product would write one by rule."""
_READING = frozenset({"read", "grep", "glob", "ls"})


@dataclass(slots=True)
class Health:
    """What a policy did to its context, summed over a replay. Sizes are tokens of history with the fixed part."""

    requests: int = 0
    sent: int = 0
    kept_prefix: int = 0
    could_keep: int = 0
    over_window: int = 0
    compactions: int = 0
    prunes: int = 0
    violations: int = 0
    breaks: int = 0
    summarised: int = 0
    """Tokens a summariser would have to read."""


class Policy(ABC):
    """One way to manage the context. ``summaries`` is whether compactions get a summary made by rule."""

    name: str
    templates = Templates.load(prompt)

    def __init__(self, window: int, *, summaries: bool) -> None:
        self.window = window
        self.summaries = summaries
        self.path: list[Entry] = []
        self.history = 0
        self.health = Health()
        self._last_sent = 0

    @property
    def cost(self) -> float:
        """Tokens sent as a provider charges them, in uncached ones: read from its cache 0.1, written to it 1.25."""
        health = self.health
        return 0.1 * health.kept_prefix + 1.25 * (health.sent - health.kept_prefix) + health.summarised

    @property
    def budget(self) -> int:
        """The history budget H as this product counts it, so that all are held to the same postcondition."""
        reserve = ContextSettings().compaction.reserve(self.window, MAX_OUTPUT)
        return max(1, self.window - reserve - FIXED)

    def append(self, entry: Entry) -> None:
        """Take one recorded entry."""
        self.path.append(self.admit(entry))
        self.history += self.path[-1].tokens

    def request(self) -> None:
        """Do what the policy does before a request, then send it."""
        self.before_request()
        health = self.health
        size = FIXED + self.history
        health.requests += 1
        health.sent += size
        health.over_window += size > self.window - 1_024
        health.could_keep += self._last_sent
        health.kept_prefix += min(self._last_sent, size)
        self._last_sent = size

    def admit(self, entry: Entry) -> Entry:
        """Return the entry as it gets into the context; tools may show less than all."""
        return entry

    @abstractmethod
    def before_request(self) -> None:
        """Prune or compact if it is time to."""

    @abstractmethod
    def recalled(self, text: str) -> Iterable[int]:
        """Return the entries one tool call brings back from what the view says."""

    def view_text(self) -> str:
        """Return all text the model is shown."""
        return "\n".join(_text_of(message) for message in self._messages(self.path))

    def change(self, entries: Sequence[Entry]) -> None:
        """Append entries that change the view, and count what that costs."""
        before = self._messages(self.path)
        self.path = provisional(self.path, [_counted(entry, self.templates) for entry in entries])
        after = self._messages(self.path)
        same = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(after))
        kept = FIXED + sum(COUNTER.message(message) for message in after[:same])
        self._last_sent_lost(kept)
        size = estimate_path(self.path, replace(COUNTER, templates=self.templates), _ASKED).history
        if any(isinstance(entry, CompactionEntry) for entry in entries):
            self.health.compactions += 1
            self.health.violations += size > 0.9 * self.history or size > 0.6 * self.budget
        else:
            self.health.prunes += 1
        self.history = size

    def _last_sent_lost(self, kept: int) -> None:
        """A changed view keeps only ``kept`` tokens of the last request's prefix."""
        if kept < self._last_sent:
            self.health.breaks += 1
            self.health.could_keep += self._last_sent - kept
            self._last_sent = kept

    def _messages(self, path: Sequence[Entry]) -> tuple[Message, ...]:
        return project(path, _TRAITS, self.templates).messages


class AppendOnly(Policy):
    """Nothing is ever taken out: the ceiling of recall, over the window sooner or later."""

    name = "append-only"

    def before_request(self) -> None:
        """Do nothing."""

    def recalled(self, text: str) -> Iterable[int]:  # noqa: ARG002
        """Nothing is gone."""
        return ()


@dataclass(frozen=True, slots=True)
class Ratio:
    """A rival's own number of tokens, and the share of the window it is held to where that is smaller.

    Their real programs do not scale: below about 40k they compact without end. Held to a share, what they keep can
    be compared at every window.
    """

    tokens: int
    share: float

    def of(self, whole: int) -> int:
        """Return the tokens."""
        return min(self.tokens, round(whole * self.share))


class OpenCodeLike(Policy):
    """Outputs beyond the newest 40k are cleared after a run; over the limit a summary replaces everything."""

    name = "OpenCode-like"
    templates = replace(Policy.templates, placeholder_pruned="[Old tool result content cleared]")
    reserve, protect, minimum = Ratio(20_000, 0.25), Ratio(40_000, 0.25), Ratio(20_000, 0.12)

    def before_request(self) -> None:
        """Prune when the user has just written, which is when a run has ended; compact over the limit."""
        if isinstance(self.path[-1], UserEntry):
            self._prune()
        if self.history + FIXED > self.window - self.reserve.of(self.window):
            last = self.path[-1] if isinstance(self.path[-1], UserEntry) else None
            told = [entry for entry in self.path if entry is not last]
            self.change([_summary(self, told, last.id if last else None)])

    def recalled(self, text: str) -> Iterable[int]:  # noqa: ARG002
        """A cleared output of a reading tool whose call is still in view can be had by reading again."""
        view = resolve(self.path)
        for row in view.results.values():
            for result in row:
                if result and result.tool in _READING and view.state(result.id) is EntryState.PRUNED:
                    yield result.id

    def _prune(self) -> None:
        view = resolve(self.path)
        turns = seen = freed = 0
        targets: list[int] = []
        for entry in reversed(view.entries):
            turns += isinstance(entry, UserEntry)
            if turns < 2 or not isinstance(entry, ToolResultEntry) or entry.tool == "skill":
                continue
            if view.state(entry.id) is EntryState.PRUNED:
                break
            seen += entry.tokens
            if seen > self.protect.of(self.budget):
                freed += entry.tokens
                targets.append(entry.id)
        if freed > self.minimum.of(self.budget):
            self.change([PruneEntry(targets=tuple(targets), tokens_freed=freed, reason="run_end")])


class PiLike(Policy):
    """Over the limit, everything but the newest 20k is summarised; files are listed."""

    name = "Pi-like"
    reserve, keep = Ratio(16_384, 0.25), Ratio(20_000, 0.25)

    def before_request(self) -> None:
        """Compact over the limit."""
        if self.history + FIXED <= self.window - self.reserve.of(self.window):
            return
        view = resolve(self.path)
        shown = ViewWeights(view).all()
        cut, _ = find_cut(view, shown, self.keep.of(self.budget))
        if any(shown[:cut]):
            earlier = view.compaction.details if view.compaction else None
            files = file_operations(view.entries[:cut], earlier)
            details = SummaryDetails(read_files=files.read, modified_files=files.modified)
            first = view.entries[cut].id
            self.change([_summary(self, view.entries[:cut], first).model_copy(update={"details": details})])

    def recalled(self, text: str) -> Iterable[int]:  # noqa: ARG002
        """What was summarised is out of reach."""
        return ()


class OpenCodeLiteral(OpenCodeLike):
    """With its own constants at every window."""

    name = "OpenCode-like, own constants"
    reserve, protect, minimum = Ratio(20_000, 1), Ratio(40_000, 9), Ratio(20_000, 9)


class PiLiteral(PiLike):
    """With its own constants at every window."""

    name = "Pi-like, own constants"
    reserve, keep = Ratio(16_384, 1), Ratio(20_000, 9)


class Ours(Policy):
    """This product's rules as they are. ``fullness`` lowers the threshold, to compare at a rival's size."""

    name = "tui-agent"
    fullness = 1.0
    defaults = ContextSettings()

    def __init__(self, window: int, *, summaries: bool) -> None:
        super().__init__(window, summaries=summaries)
        compaction = self.defaults.compaction
        if self.fullness < 1:
            highest = window - compaction.reserve(window, MAX_OUTPUT)
            compaction = compaction.model_copy(update={"threshold": round(highest * self.fullness)})
        self.settings = self.defaults.model_copy(update={"compaction": compaction})
        self._limits = limits_for(window, self.settings.truncation)
        self._born_cut: set[int] = set()

    def admit(self, entry: Entry) -> Entry:
        """Truncate an output when it is born."""
        if not isinstance(entry, ToolResultEntry):
            return entry
        keep: Literal["ends", "head"] = "ends" if entry.tool == "bash" else "head"
        born = truncate(entry.output, keep, self._limits)
        if born.truncation is None:
            return entry
        self._born_cut.add(entry.id)
        metadata = ToolMetadata(**(entry.metadata.model_dump() | {"truncation": born.truncation}))
        shorter = entry.model_copy(update={"output": born.text, "metadata": metadata, "tokens": 0})
        return shorter.model_copy(update={"tokens": COUNTER.entry(shorter)})

    def before_request(self) -> None:
        """Prune under pressure, then compact over the threshold."""
        size = self._size()
        if (why := occasion(self.settings.prune, size, Moment())) is not None:
            self._prune(size, why)
            size = self._size()
        if is_due(size):
            self._compact(size)

    def recalled(self, text: str) -> Iterable[int]:
        """Whatever has its ``#id`` in view, and outputs in view that were cut when they were born."""
        yield from (int(number) for number in _ADDRESS.findall(text))
        yield from (entry.id for entry in resolve(self.path).entries if entry.id in self._born_cut)

    def _size(self) -> ContextSize:
        reserve = self.settings.compaction.reserve(self.window, MAX_OUTPUT)
        threshold = self.settings.compaction.threshold_at(self.window, reserve)
        total = FIXED + self.history
        return ContextSize(FIXED, self.history, total, self.window, reserve, threshold, None, estimated=True)

    def _prune(self, size: ContextSize, why: Occasion) -> None:
        rules = PruneRules(self.settings.prune, size.budget, pressure=why is Occasion.PRESSURE)
        plan = plan_prune(resolve(self.path), rules, why)
        if plan is not None:
            self.change([plan.entry()])

    def _compact(self, size: ContextSize) -> None:
        plan = plan_compaction(self.path, self.settings, size, PlanOptions())
        if not isinstance(plan, CompactionPlan):
            if plan.prune is not None:
                self.change([plan.prune.entry()])
            return
        self.health.summarised += plan.tokens_summarised
        told = (*plan.history, *plan.turn_prefix)
        summary = extract(plan.previous_summary, told, plan.summary_tokens) if self.summaries else ""
        measures = Measures(self._history_of, COUNTER.text, templates=self.templates)
        commit = plan_commit(self.path, plan, summary or _NO_SUMMARY, measures, size)
        if isinstance(commit, Commit):
            self.change(commit.entries)

    def _history_of(self, path: Sequence[Entry]) -> int:
        return estimate_path(path, replace(COUNTER, templates=self.templates), _ASKED).history


POLICIES: tuple[type[Policy], ...] = (AppendOnly, OpenCodeLike, PiLike, Ours)
"""What is compared."""
LITERAL: tuple[type[Policy], ...] = (OpenCodeLiteral, PiLiteral)
"""The rivals with the constants of their programs, which fit large windows only."""


def _leaner(percent: int) -> type[Ours]:
    class Leaner(Ours):
        name = f"tui-agent at {percent} %"
        fullness = percent / 100

    return Leaner


LEANER = tuple(_leaner(percent) for percent in (95, 90, 80, 70))
"""This product held to a smaller part of the window."""


def extract(previous: str, entries: Sequence[Entry], budget: int) -> str:
    """Summarise by rule, the same way for every policy: a line per step after what was said before, newest kept."""
    lines = [*previous.splitlines(), *digest(entries, budget, COUNTER.text).splitlines()]
    chosen: list[str] = []
    for line in reversed(lines):
        budget -= COUNTER.text(line) + 1
        if budget < 0:
            break
        chosen.append(line)
    return "\n".join(reversed(chosen))


def _summary(policy: Policy, entries: Sequence[Entry], first_kept_id: int | None) -> CompactionEntry:
    view = resolve(policy.path)
    previous, weights = view.compaction, ViewWeights(view)
    policy.health.summarised += sum(map(weights.of, entries))
    told = [entry for entry in entries if is_message(entry) and entry.kind != "compaction"]
    budget = ContextSettings().compaction.summary_tokens(policy.budget)
    summary = extract(previous.summary if previous else "", told, budget) if policy.summaries else ""
    return CompactionEntry(
        summary=_ADDRESS.sub("", summary),
        first_kept_id=first_kept_id,
        tokens_before=policy.history,
        tokens_after=0,
        trigger="threshold",
    )


def _counted(entry: Entry, templates: Templates) -> Entry:
    return entry.model_copy(update={"tokens": replace(COUNTER, templates=templates).estimate(entry)})


def _text_of(message: Message) -> str:
    return "\n".join([message.text, *(call.arguments for call in message.tool_calls)])
