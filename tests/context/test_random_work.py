"""Work of any shape goes on in any window: nothing stops it, and no request is over the window.

Steps are drawn at random: calls in parallel, outputs of any size and script, files written, long messages and
commands of the user. Every night there are more of them.
"""

from random import Random

import pytest

from tests.support.request_validator import validate
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.budget import ContextSize, RequestModel, estimate_path
from tui_agent.context.commit_plan import Commit, Measures, plan_commit, plan_cuts, provisional
from tui_agent.context.compaction import CompactionPlan, PlanOptions, plan_compaction
from tui_agent.context.compaction_policy import is_due
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.pruning import Moment, PruneRules, occasion, plan_prune, under_pressure
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.truncation import limits_for, truncate
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.tools.registry import tool_traits

SETTINGS = ContextSettings()
COUNTER = TokenCounter("gpt-4o")
HEAD = 1_600
WORDS = {
    "english": "the cursor of load_config in src/app.py moves on to the next branch\n",
    "code": "    value = merge_token(cursor, limit=8123)  # see src/theme/cache.py\n",
    "chinese": "上下文窗口是有限的，所以旧的工具输出会被占位符代替。\n",
    "hex": "7f454c4602010100 0000000000000000 03003e0001000000 b010000000000000\n",
}


class Work:
    """A session in a window of so many tokens, driven as the agent drives it, without a model."""

    def __init__(self, window: int, seed: int = 0) -> None:
        self.window = window
        self.random = Random(seed)
        self.path: list[Entry] = []
        self.calls = 0
        self.stops: list[str] = []
        self.over: list[int] = []
        self.reserve = SETTINGS.compaction.reserve(window, 32_000)

    def size(self) -> ContextSize:
        used = self.measured(self.path)
        threshold = SETTINGS.compaction.threshold_at(self.window, self.reserve)
        return ContextSize(HEAD, used, HEAD + used, self.window, self.reserve, threshold, None, estimated=True)

    def measured(self, path) -> int:
        return estimate_path(path, COUNTER, RequestModel("gpt-4o")).history

    def add(self, *entries: Entry) -> None:
        counted = (entry.model_copy(update={"tokens": COUNTER.estimate(entry)}) for entry in entries)
        self.path = provisional(self.path, list(counted))

    def text(self, tokens: int, words: str | None = None) -> str:
        line = WORDS[words or self.random.choice(list(WORDS))]
        return line * max(1, tokens // max(1, COUNTER.text(line)))

    def step(self, parallel: int = 1, tokens: int | None = None, words: str | None = None) -> None:
        """Answer with calls in parallel, each with an output; it is truncated when it is born."""
        calls, rng = [], self.random
        for _ in range(parallel):
            self.calls += 1
            arguments = f'{{"path": "src/{self.calls}.py"}}'
            calls.append(ToolCallPart(call_id=f"call_{self.calls}", tool="read", arguments=arguments))
        said = self.text(rng.choice((5, 30, 200))) if rng.random() < 0.7 else ""
        parts = (*((TextPart(text=said),) if said else ()), *calls)
        self.add(AssistantEntry(parts=parts, model="gpt-4o", finish="tool_calls"))
        for call in calls:
            size = rng.choice((5, 50, 400, 1_500, 8_000, 40_000)) if tokens is None else tokens
            limits = limits_for(self.window, self.size().budget - self.size().history, SETTINGS.truncation)
            output = truncate(self.text(size, words), "ends", limits).text
            self.add(ToolResultEntry(call_id=call.call_id, tool="read", status=ToolStatus.COMPLETED, output=output))

    def anything(self) -> None:
        """Do one thing at random."""
        rng, chance = self.random, self.random.random()
        if chance < 0.12:
            self.add(UserEntry(parts=(TextPart(text=self.text(rng.choice((10, 100, 3_000, 27_000)))),)))
        elif chance < 0.17:
            self.add(ShellEntry(command="cat log", output=self.text(rng.choice((10, 2_000, 27_000))), exit_code=0))
        elif chance < 0.27:
            content = self.text(rng.choice((500, 4_000))).replace("\n", "\\n")
            call = ToolCallPart(call_id=f"w{len(self.path)}", tool="write", arguments=f'{{"content": "{content}"}}')
            self.add(AssistantEntry(parts=(call,), model="gpt-4o", finish="tool_calls"))
            self.add(
                ToolResultEntry(call_id=call.call_id, tool="write", status=ToolStatus.COMPLETED, output="Wrote it.")
            )
        elif chance < 0.4:
            self.step(parallel=rng.choice((2, 5, 12)))
        else:
            self.step()

    def request(self) -> None:
        """Make room as the agent does before a request, then look at what would be sent."""
        if not self.path:
            return
        size = self.size()
        why = occasion(SETTINGS.prune, size, Moment())
        if why is not None:
            pressure = under_pressure(SETTINGS.prune, size)
            wanted = SETTINGS.prune.wanted_tokens(size.history, size.budget)
            rules = PruneRules(SETTINGS.prune, size.budget, tool_traits(), pressure, wanted=wanted)
            plan = plan_prune(resolve(self.path), rules, why)
            if plan is not None:
                self.add(plan.entry())
        if is_due(self.size()):
            self.compact()
        sent = HEAD + self.measured(self.path)
        if sent > self.window - 256:
            self.over.append(sent)

    def compact(self) -> None:
        size = self.size()
        measures = Measures(self.measured, COUNTER.text, COUNTER.entry)
        plan = plan_compaction(self.path, SETTINGS, size, PlanOptions(tool_traits()))
        if isinstance(plan, CompactionPlan):
            commit = plan_commit(self.path, plan, "", measures, size)
        else:
            commit = plan_cuts(self.path, plan, SETTINGS, measures, size)
        if isinstance(commit, Commit):
            self.add(*commit.entries)
        else:
            self.stops.append(commit.message)


@pytest.mark.parametrize("window", [4_096, 8_192, 16_384, 32_768])
def test_no_work_stops_and_no_request_is_over_the_window(window):
    work = Work(window, seed=window)
    work.add(UserEntry(parts=(TextPart(text="Fix load_config. Never touch src/theme/cache.py."),)))
    for step in range(max(60, EXAMPLES // 4)):
        work.anything()
        work.request()
        if step % 20 == 0:
            validate(project(work.path, ModelTraits("gpt-4o")))
    assert work.stops == []
    assert work.over == []


@pytest.mark.parametrize(("window", "parallel"), [(16_384, 24), (32_768, 48), (8_192, 24), (4_096, 16)])
@pytest.mark.parametrize("words", ["code", "chinese", "hex"])
def test_many_outputs_of_the_newest_step_are_cut_until_they_fit(window, parallel, words):
    work = Work(window)
    work.add(UserEntry(parts=(TextPart(text="Read them all."),)))
    work.step(parallel=parallel, tokens=1_500, words=words)
    work.request()
    assert work.stops == []
    assert work.over == []
    validate(project(work.path, ModelTraits("gpt-4o")))


def test_a_long_output_of_the_users_own_command_does_not_become_the_whole_tail():
    work = Work(32_768)
    for _ in range(8):
        work.step(tokens=1_000)
    work.add(ShellEntry(command="cat log", output=work.text(27_000, "code"), exit_code=0))
    work.request()
    assert (work.stops, work.over) == ([], [])
    shown = project(work.path, ModelTraits("gpt-4o")).messages
    assert "characters left out" in shown[-1].text
    assert sum(COUNTER.message(message) for message in shown) < 0.7 * 32_768


@pytest.mark.parametrize(("window", "parallel"), [(32_768, 12), (131_072, 40)])
def test_what_no_answer_has_seen_fills_the_room_there_is(window, parallel):
    """A quarter of the history budget was left of it before."""
    work = Work(window)
    work.add(UserEntry(parts=(TextPart(text="Read them."),)))
    work.step(parallel=parallel, tokens=3_000 if window < 100_000 else 11_000, words="code")
    work.request()
    assert not work.over
    assert work.size().total > 0.45 * window
