"""Races of real agents with a scripted model, for tests."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.agents import YES, Harness, make_agent
from tests.support.processes import git
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.race.race import Race, RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.context.request import ModelRequest
from tui_agent.session.entries import TextPart

ALLOW = tuple(
    Rule(name, "*", Action.ALLOW, "flag")
    for name in ("bash", "edit", "external_directory", "doom_loop")
)
Replies = Callable[[int, int], Reply]
"""What a runner says: by its number, counted as they come from 1, and its step from 0."""


class RacingClient(ScriptedClient):
    """Plays ``replies`` for each runner: runners are told apart by what they answered first."""

    def __init__(self, replies: Replies) -> None:
        super().__init__(self._reply)
        self.replies = replies
        self._begun = 0

    def _reply(self, request: ModelRequest) -> Reply:
        text = "".join(repr(message) for message in request.messages if message.role == "assistant")
        step = text.count("I am runner ")
        if not step:
            self._begun += 1
            number = self._begun
        else:
            number = int(text.split("I am runner ", 1)[1].split(".", 1)[0])
        reply = self.replies(number, step)
        return Reply(f"I am runner {number}. {reply.text}", reply.calls, error=reply.error, hang=reply.hang,
                     cost=reply.cost)  # fmt: skip


def writes(path: str, content: str) -> Call:
    return Call("write", json.dumps({"path": path, "content": content}))


def runs(command: str) -> Call:
    return Call("bash", json.dumps({"command": command}))


def make_project(project: Path, *, files: int = 5) -> None:
    """Make a repository with a commit, an uncommitted change, an untracked and an ignored file."""
    project.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (project / f"f{number}.txt").write_text(f"file {number}\n")
    (project / ".gitignore").write_text("*.log\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    (project / "f1.txt").write_text("changed by the user\n")
    (project / "new.txt").write_text("untracked\n")
    (project / "run.log").write_text("ignored\n")


def state_of(project: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file of a project with its bits and bytes, the repository's own included."""
    return {name: (path.stat().st_mode, path.read_bytes()) for name, path in _files(project)}


def _files(project: Path) -> Iterator[tuple[str, Path]]:
    for directory, _directories, names in os.walk(project):
        for name in names:
            path = Path(directory) / name
            yield path.relative_to(project).as_posix(), path


def racing_agent(tmp_path: Path, client: ScriptedClient, **more: Any) -> Harness:
    if not (tmp_path / "project").exists():
        make_project(tmp_path / "project")
    more.setdefault("rules", ALLOW)
    return make_agent(
        tmp_path,
        client,
        keeps_files=True,
        copies=tmp_path / "races",
        answer=more.pop("answer", YES),
        **more,
    )


async def begin(
    harness: Harness,
    runners: int | tuple[RunnerSpec, ...] = 2,
    prompt: str = "Do it.",
    **order: Any,
) -> Race:
    specs = (RunnerSpec(),) * runners if isinstance(runners, int) else runners
    order.setdefault("start", harness.session.leaf)
    order.setdefault("parts", (TextPart(text=prompt),))
    return await Race.begin(harness.agent, RaceOrder(prompt, specs=specs, **order))
