"""The scripted provider as a program."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_runs_as_a_program_and_plays_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "one", "tool_calls": [{"tool": "ls"}]}, {"text": "two"}]))
    command = [sys.executable, "-m", "tests.support.model_server", "--port", "0", "--script", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        answers = []
        for _ in range(3):
            body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
            with urllib.request.urlopen(f"{url}/chat/completions", body, timeout=10) as answer:
                answers.append(json.load(answer)["choices"][0]["message"])
        process.terminate()

    assert [answer["content"] for answer in answers] == ["one", "two", "one"]
    assert answers[0]["tool_calls"][0]["function"]["name"] == "ls"
