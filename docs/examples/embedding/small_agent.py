"""An agent on the context engine alone: it remembers in a tree, and makes room when it has to."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tui_agent.core import (
    AssistantEntry,
    CompactionPlan,
    ContextSettings,
    Entry,
    Measures,
    Meter,
    ModelLimits,
    ModelRequest,
    ModelTraits,
    PlanOptions,
    Refusal,
    Session,
    Store,
    SystemEntry,
    TextPart,
    TokenCounter,
    TraitsByName,
    UserEntry,
    plan_commit,
    plan_compaction,
    project,
    serialise,
)

MODEL = "example/echo"
COUNTER = TokenCounter(MODEL)
SETTINGS = ContextSettings()


class SmallAgent:
    """Asks ``model`` for answers; ``summarise`` makes one text of a conversation's earlier part."""

    def __init__(
        self,
        session: Session,
        model: Callable[[ModelRequest], str],
        summarise: Callable[[str], str],
        window: int = 32_000,
    ) -> None:
        self.session = session
        self._model = model
        self._summarise = summarise
        self.meter = Meter(ModelLimits(MODEL, window), SETTINGS, COUNTER)

    def ask(self, text: str) -> str:
        self.session.append(UserEntry(parts=(TextPart(text=text),)))
        answer = self._model(project(self.session.path(), ModelTraits(MODEL)))
        self.session.append(AssistantEntry(parts=(TextPart(text=answer),), model=MODEL))
        return answer

    def compact(self, keep_recent: int) -> str:
        """Replace all but the newest tokens by a summary; returns why that can't be done, or ""."""
        path = self.session.path()
        size = self.meter.measure(path)
        options = PlanOptions(TraitsByName({}), trigger="manual", keep_recent=keep_recent)
        plan = plan_compaction(path, SETTINGS, size, options)
        if isinstance(plan, Refusal):
            return plan.message
        measures = Measures(self._history_tokens, COUNTER.text, COUNTER.entry)
        commit = plan_commit(path, plan, self._summary(plan), measures, size)
        if isinstance(commit, Refusal):
            return commit.message
        self.session.append_many(commit.entries)
        return ""

    def _summary(self, plan: CompactionPlan) -> str:
        return self._summarise("\n\n".join(serialise([*plan.history, *plan.turn_prefix])))

    def _history_tokens(self, path: Sequence[Entry]) -> int:
        return self.meter.measure(path).history


def main(file: str) -> None:
    store = Store(Path(file))
    session = Session(store, store.create_session(Path.cwd()).id, estimate=COUNTER.stored)
    session.append(SystemEntry(blocks=("You repeat what you hear.",), model=MODEL))
    agent = SmallAgent(session, lambda request: request.messages[-1].text, lambda text: text[:200])
    for number in range(40):
        agent.ask(f"Question {number}: " + "why is the sky blue, and the sea? " * 20)
    print("before:", agent.meter.measure(session.path()).total)
    print(agent.compact(keep_recent=2_000) or "compacted")
    print("after:", agent.meter.measure(session.path()).total)
    session.undo()
    print("taken back:", agent.meter.measure(session.path()).total)
    session.move(2)
    print("moved to:", session.path()[-1].id)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1])
