"""Many turns with many subagents in one session: how large the file and an export become, and what a turn costs.

``python -m scripts.faults.subagents --turns 1500 --subagents 200`` prints a row for every tenth of the turns. Half of
the subagents go on from the conversation, the others begin with nothing.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.support.agents import make_agent
from tests.support.races import ALLOW
from tests.support.real_stage import SUMMARY
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.context.request import ModelRequest
from tui_agent.session.formats import native
from tui_agent.session.formats.copies import copies_of
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool

EXPLORE = AgentSpec(
    "explore", "finds and reads", prompt="You explore.", tools=("read", "grep", "ls")
)
WINDOW = 32_000


def _replies(chance: random.Random, wanted: list[str]) -> Callable[[ModelRequest], Reply]:
    def answer(request: ModelRequest) -> Reply:
        if not request.tools:
            return Reply(SUMMARY)
        if wanted:
            arguments = {"agent": "explore", "task": "Look around.", "context": wanted.pop()}
            return Reply("I ask.", (Call("task", json.dumps(arguments)),))
        if request.messages[-1].role == "tool" and chance.random() < 0.5:
            return Reply("It does what was asked for. " * chance.randrange(1, 20))
        name = f"file{chance.randrange(30)}.txt"
        if chance.random() < 0.5:
            return Reply(
                "", (Call("read", json.dumps({"path": name, "offset": 1 + chance.randrange(50)})),)
            )
        return Reply(
            "I look.",
            (Call("grep", json.dumps({"pattern": f"line {chance.randrange(99)}", "path": name})),),
        )

    return answer


async def _live(root: Path, turns: int, subagents: int) -> None:
    chance, wanted, process = random.Random(1), list[str](), psutil.Process()
    asked = set(chance.sample(range(turns), subagents))
    client = ScriptedClient(_replies(chance, wanted))
    project = root / "project"
    project.mkdir()
    for number in range(30):
        text = "".join(f"line {line} of file {number}\n" for line in range(200))
        (project / f"file{number}.txt").write_text(text)
    tools = (*builtin_tools(), TaskTool())
    harness = make_agent(root, client, window=WINDOW, tools=tools, agents=(EXPLORE,), rules=ALLOW)
    used, every = time.process_time(), max(1, turns // 10)
    for number in range(turns):
        if number in asked:
            wanted.append("conversation" if number % 2 else "task")
        await harness.say(
            f"Turn {number}: look at something. "
            + "It matters because of the redirect. " * (number % 9)
        )
        client.requests.clear()
        harness.events.clear()
        harness.directory.learnt.clear()
        if (number + 1) % every == 0:
            spent, used = time.process_time() - used, time.process_time()
            held = process.memory_full_info().pss / 1e6
            size = (root / "sessions.db").stat().st_size / 1e6
            print(
                f"{number + 1:>6} turns {spent / every * 1e3:>7.1f} ms {held:>7.1f} MB {size:>7.1f} MB in the file"
            )
            used = time.process_time()
    begun = time.perf_counter()
    with (root / "export.jsonl").open("w", encoding="utf-8", errors="surrogatepass") as file:
        native.write(copies_of(harness.store, harness.session.id), file.write)
    seconds = time.perf_counter() - begun
    entries = harness.session.info.entry_count
    print(
        f"{entries} entries; export {(root / 'export.jsonl').stat().st_size / 1e6:.1f} MB in {seconds:.1f} s"
    )
    await harness.agent.aclose()


def main() -> None:
    """Live through it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--subagents", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(_live(Path(directory), arguments.turns, arguments.subagents))


if __name__ == "__main__":
    main()
