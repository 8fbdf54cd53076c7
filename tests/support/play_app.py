"""The application with a fake agent that acts out a run, to look at it: ``python -m tests.support.play_app``."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.support.fake_agent import FakeAgent
from tests.support.ui_app import Stage, make_stage
from tests.support.ui_scenes import conversation, question_bash, question_edit
from tui_agent.agent.events import (
    AnswerDelta,
    PermissionAsked,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.app.services import FirstView
from tui_agent.config import UiSettings
from tui_agent.session.entries import AssistantEntry, TextPart, ToolMetadata

ANSWER = "Here is what I found in **src/auth**:\n\n- the redirect drops `next`\n- no test covers it\n\n" * 6


class Actor:
    """Answers every message with a small play."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, text: str) -> None:
        """Begin to act."""
        task = asyncio.get_running_loop().create_task(self._act(self._stage.agent, text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _act(self, agent: FakeAgent, text: str) -> None:
        agent.emit(RequestStarted(1, agent.model))
        await asyncio.sleep(1.2)
        if "retry" in text:
            agent.emit(RetryScheduled(1, 4, 3.0, "the provider is busy"))
            await asyncio.sleep(3)
        if "fail" in text:
            agent.emit(RunEnded("error", "The provider refused the key: set ANTHROPIC_API_KEY, or use /model."))
            return
        if "ask" in text:
            agent.emit(PermissionAsked(question_edit() if "edit" in text else question_bash()))
            while agent.question is not None:
                await asyncio.sleep(0.05)
            agent.emit(ToolStarted("c1", "bash", "make", "{}"))
            for number in range(20):
                agent.emit(ToolOutput("c1", f"compiling {number}\n"))
                await asyncio.sleep(0.1)
            agent.emit(ToolFinished("c1", "bash", "completed", ToolMetadata(exit_code=0), 2.0))
        for start in range(0, len(ANSWER), 5):
            if not agent.running:
                return
            agent.emit(AnswerDelta(ANSWER[start : start + 5]))
            await asyncio.sleep(0.01)
        agent.append(AssistantEntry(parts=(TextPart(text=ANSWER),), model=agent.model, cost=0.01))
        agent.emit(RunEnded("done"))


def main() -> None:
    """Run it in this terminal."""
    start = FirstView(screen="welcome") if "--welcome" in sys.argv else FirstView()
    with tempfile.TemporaryDirectory() as directory:
        stage = make_stage(
            Path(directory), settings=UiSettings(), clock=time.time, cwd=Path.cwd(), start=start, branch=_branch
        )
        actor = Actor(stage)
        make_agent = stage.services.make_agent

        def acting(session: object) -> FakeAgent:
            agent = make_agent(session)  # type: ignore[arg-type]
            assert isinstance(agent, FakeAgent)
            agent.on_submit = actor.start
            if "--full" in sys.argv:
                for _ in range(200):
                    agent.append(*conversation())
            return agent

        stage.services.make_agent = acting
        stage.app.run()


async def _branch(_root: Path) -> str | None:
    return "main"


if __name__ == "__main__":
    main()
