"""This product's rules as they are, driven by a recorded session."""

import re
from typing import Literal

from benchmarks.fidelity.policies import FIXED, MAX_OUTPUT, TTL_SECONDS, Policy, Summaries
from benchmarks.fidelity.traces import COUNTER
from tui_agent.agent.archive import entry_text
from tui_agent.context.budget import ContextSize
from tui_agent.context.commit_plan import Commit, Measures, plan_commit, plan_cuts
from tui_agent.context.compaction import CompactionPlan, PlanOptions, plan_compaction
from tui_agent.context.compaction_policy import is_due
from tui_agent.context.pruning import (
    Moment,
    Occasion,
    PruneRules,
    occasion,
    plan_prune,
    under_pressure,
)
from tui_agent.context.recalling import fits, names_in_use, outline, recall_limits
from tui_agent.context.settings import ContextSettings
from tui_agent.context.truncation import OutputLimits, limits_for, truncate
from tui_agent.context.view import resolve
from tui_agent.session.entries import Entry, ToolMetadata, ToolResultEntry
from tui_agent.tools.registry import tool_traits

_ADDRESS = re.compile(r"#(\d+)")
_NO_SUMMARY = "-"
"""Stands for a summary that says nothing; without any, this product would write one by rule."""


class Ours(Policy):
    """The rules with their defaults. ``fullness`` lowers the threshold, to compare at a rival's size."""

    name = "tui-agent"

    def __init__(
        self,
        window: int,
        summaries: Summaries = "extractive",
        *,
        fullness: float = 1.0,
        settings: ContextSettings | None = None,
    ) -> None:
        super().__init__(window, summaries)
        settings = settings or ContextSettings()
        compaction = settings.compaction
        if fullness < 1:
            highest = window - compaction.reserve(window, MAX_OUTPUT)
            compaction = compaction.model_copy(update={"threshold": round(highest * fullness)})
        self.settings = settings.model_copy(update={"compaction": compaction})
        self._born_cut: set[int] = set()
        self._texts: dict[int, str] = {}

    def admit(self, entry: Entry) -> Entry:
        """Truncate an output when it is born."""
        if not isinstance(entry, ToolResultEntry):
            return entry
        keep: Literal["ends", "head"] = "ends" if entry.tool == "bash" else "head"
        born = truncate(entry.output, keep, self._limits())
        if born.truncation is None:
            return entry
        self._born_cut.add(entry.id)
        metadata = ToolMetadata(**(entry.metadata.model_dump() | {"truncation": born.truncation}))
        return self._counted(entry.model_copy(update={"output": born.text, "metadata": metadata}))

    def before_request(self) -> None:
        """Prune when it is needed or free, then compact over the threshold."""
        size = self._size()
        why = occasion(self.settings.prune, size, Moment(cache_cold=self.idle > TTL_SECONDS[0]))
        if why is not None:
            self._prune(size, why)
            size = self._size()
        if is_due(size):
            self._compact(size)

    def recalled(self, text: str) -> str:
        """What a plain recall shows of all that has its ``#id`` in view or was cut when it was born."""
        view = resolve(self.path)
        addresses = {int(number) for number in _ADDRESS.findall(text)}
        addresses |= {entry.id for entry in view.entries if entry.id in self._born_cut}
        names = names_in_use(view, tool_traits())
        limits = recall_limits(self._limits())
        found = (self._texts[one] for one in sorted(addresses) if one in self._texts)
        told: list[str] = []
        for whole in found:
            lines = whole.split("\n")
            told += (
                lines if fits(lines, limits) else (row for _, row in outline(lines, names, limits))
            )
        return "\n".join(told)

    def append(self, entry: Entry) -> None:
        """Take one recorded entry, and remember all of it as the store does."""
        super().append(entry)
        whole = entry_text(entry)
        if whole is not None:
            self._texts[entry.id] = whole

    def _limits(self) -> OutputLimits:
        return limits_for(self.window, self._size().budget - self.history, self.settings.truncation)

    def _size(self) -> ContextSize:
        reserve = self.settings.compaction.reserve(self.window, MAX_OUTPUT)
        threshold = self.settings.compaction.threshold_at(self.window, reserve)
        total = FIXED + self.history
        return ContextSize(
            FIXED, self.history, total, self.window, reserve, threshold, None, estimated=True
        )

    def _prune(self, size: ContextSize, why: Occasion) -> None:
        rules = PruneRules(
            self.settings.prune,
            size.budget,
            tool_traits(),
            pressure=under_pressure(self.settings.prune, size),
            wanted=self.settings.prune.wanted_tokens(size.history, size.budget),
        )
        plan = plan_prune(resolve(self.path), rules, why)
        if plan is not None:
            self.change([plan.entry()])

    def _compact(self, size: ContextSize) -> None:
        plan = plan_compaction(self.path, self.settings, size, PlanOptions(tool_traits()))
        measures = Measures(self.measured, COUNTER.text, templates=self.templates)
        if not isinstance(plan, CompactionPlan):
            cuts = plan_cuts(self.path, plan, self.settings, measures, size)
            if isinstance(cuts, Commit):
                self.change(cuts.entries)
            return
        summarised = (*plan.history, *plan.turn_prefix)
        self.charge(summarised)
        summary = self.told(plan.previous_summary, summarised)
        commit = plan_commit(self.path, plan, summary or _NO_SUMMARY, measures, size)
        if isinstance(commit, Commit):
            self.change(commit.entries)
