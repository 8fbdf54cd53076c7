"""The examples of docs/automation.md: they can be read, and every flag, format and setting they use is there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tui_agent.cli.arguments import SUBCOMMANDS, parse
from tui_agent.cli.output import ExitCode

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/automation.md").read_text(encoding="utf-8")
EXAMPLES = [
    ("sh", path.read_text(encoding="utf-8").replace("\\\n", ""))
    for path in sorted((ROOT / "docs/examples/fleet").glob("*.sh"))
]
BLOCKS = [*re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL), *EXAMPLES]
FLEET = ROOT / "docs/examples/fleet"
YAML = [list(yaml.safe_load_all(text)) for kind, text in BLOCKS if kind == "yaml"]
JOB = list(yaml.safe_load_all((FLEET / "kubernetes.yaml").read_text(encoding="utf-8")))


def strings(value: Any) -> list[str]:
    """Return every text in a document."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def commands(text: str) -> list[list[str]]:
    """Return the arguments of each call of the program in shell text."""
    found = []
    for match in re.finditer(r"(?:^|[;&\s`])tui-agent ((?:-|[a-z]+\s?)[^;`\n|>]*)", text):
        line = match[1].split(" #")[0].split(" <")[0].strip()
        if line.startswith("-") or line.split(" ")[0] in SUBCOMMANDS:
            found.append(shlex.split(line))
    return found


CALLS = [
    *(words for kind, text in BLOCKS if kind == "sh" for words in commands(text)),
    *(
        words
        for documents in [*YAML, JOB]
        for text in strings(documents)
        for words in commands(text.replace("\n", " "))
    ),
    *(words for line in re.findall(r"`(tui-agent [^`]+)`", TEXT.replace("\n", " ")) for words in commands(f"{line}\n")),
]


def test_there_are_examples() -> None:
    assert len(YAML) == 1
    assert len(CALLS) >= 10
    assert any("--max-tokens" in words for words in CALLS)


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_every_call_is_one_that_the_program_takes(words: list[str], tmp_path: Path) -> None:
    here = [str(tmp_path) if word in {"/work/app", "/sessions", "session-…/", "$place/app"} else word for word in words]
    assert parse(here).command in {"run", *SUBCOMMANDS}


def test_the_workflow_is_one() -> None:
    (workflow,) = YAML[0]
    # YAML 1.1 reads the word "on" as true.
    assert "workflow_dispatch" in workflow[True]
    steps = workflow["jobs"]["work"]["steps"]
    assert all("uses" in step or "run" in step for step in steps)
    (work,) = [step for step in steps if "tui-agent -p" in step.get("run", "")]
    assert "${{" not in work["run"], "what somebody types must not be put into a script"
    (kept,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert "sessions.db*" in kept["with"]["path"]


def test_the_fleet_is_an_indexed_job() -> None:
    tasks, job = JOB
    spec = job["spec"]
    assert (job["kind"], spec["completionMode"]) == ("Job", "Indexed")
    assert spec["completions"] == len(tasks["data"]["tasks.txt"].strip().splitlines())
    (rule,) = spec["podFailurePolicy"]["rules"]
    own = {ExitCode.USAGE, ExitCode.STOPPED, ExitCode.BUDGET, ExitCode.TIMEOUT}
    assert set(rule["onExitCodes"]["values"]) == own
    pod = spec["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_what_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
