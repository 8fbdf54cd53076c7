"""The fleet example of the docs on a real Ray cluster: every task is done once, though workers are killed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.model_script import Call, Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.neighbours import package, program

pytestmark = [pytest.mark.neighbours, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
TASKS = 30


def script(request: Recorded) -> Turn:
    messages = json.loads(request.body)["messages"]
    number = re.findall(r"write number (\d+)", json.dumps(messages))[-1]
    # A worker that was killed may have left the call without a result of its own.
    if any(
        message["role"] == "tool" and "interrupted" not in str(message["content"])
        for message in messages
    ):
        return Turn(text="Done.", first_delay=1.0)
    return Turn(
        tool_calls=(Call("write", {"path": "made.txt", "content": f"{number}\n"}),), first_delay=0.5
    )


def test_thirty_tasks_leave_thirty_patches_though_workers_are_killed(tmp_path: Path) -> None:
    package("ray")
    git = ("git", "-c", "user.name=n", "-c", "user.email=e@x")
    origin, home = tmp_path / "origin", tmp_path / "home"
    for place in (origin, home):
        place.mkdir()
    (origin / "README.md").write_text("Read.\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("".join(f"write number {number}\n" for number in range(TASKS)))
    with ModelServer(script) as server:
        (home / "config.toml").write_text(
            f'model = "openai/m"\n[models."openai/m"]\nbase_url = "{server.openai_url}"\napi_key_env = "KEY"\n'
        )
        done = subprocess.run(
            [program("python"), str(Path(__file__).parent / "ray_cluster.py"),
             str(ROOT / "docs/examples/fleet/ray_fleet.py"), str(tasks), str(origin), str(tmp_path / "shared")],
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(home),
                "KEY": "k",
                "TUI_AGENT_CONFIG_DIR": str(home),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=800,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.count("killed a worker") == 2
    patches = [path.read_text() for path in (tmp_path / "shared").glob("task-*/result.patch")]
    made = sorted(int(re.search(r"^\+(\d+)$", patch, re.MULTILINE)[1]) for patch in patches)  # type: ignore[index]
    assert made == list(range(TASKS))
