"""A model that uses every tool once, on files of each kind, and what the result of each call has to say."""

import io
import json
import re
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from tests.support.pdfs import pdf
from tests.tools.test_webfetch import WebServer, answer, web_server
from tests.tools.test_webfetch import tool as fetch_tool
from tests.tools.test_websearch import ANSWERS, PATHS
from tests.tools.test_websearch import tool as search_tool
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.permissions import Action, Rule
from tui_agent.files.memory import Memory
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool

SPECS = (AgentSpec("explore", "finds and reads", prompt="You explore.", tools=("read",)),)
ALLOW_ALL = (Rule("*", "*", Action.ALLOW, "flag"),)
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "source": "x = 1",
            "metadata": {},
            "outputs": [],
            "execution_count": 1,
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 4,
}
GOES_ON = -1
"""Stands for the number at the end of a subagent's report."""
QUESTION = {"question": "Which colour?", "options": ["*Green: calm", "Red: loud"]}


@dataclass(frozen=True)
class Use:
    """A call, and what its result says."""

    tool: str
    arguments: dict[str, Any]
    says: str

    def told(self, said: str) -> dict[str, Any]:
        """Return the arguments, with the number of the newest report in what was said so far."""
        if self.arguments.get("continue") != GOES_ON:
            return self.arguments
        number = re.findall(r"continue: (\d+)\]", said)[-1]
        return self.arguments | {"continue": int(number)}


def uses(port: int) -> list[Use]:
    page = f"http://docs.example.org:{port}/page"
    return [
        Use("read", {"path": "a.txt"}, "1\tfirst line"),
        Use("read", {"path": "a.pdf"}, "Second words"),
        Use("read", {"path": "a.ipynb"}, "x = 1"),
        Use("read", {"path": "a.zip"}, "inner.txt"),
        Use("read", {"path": "a.png"}, "4x3 pixels"),
        Use("read", {"path": "."}, "a.txt"),
        Use("ls", {}, "a.txt"),
        Use("edit", {"path": "a.txt", "edits": [{"old": "first", "new": "1st"}]}, "1st line"),
        Use("edit", {"path": "a.ipynb", "edits": [{"old": "x = 1", "new": "x = 2"}]}, "x = 2"),
        Use("write", {"path": "b.txt", "content": "made"}, "b.txt"),
        Use("grep", {"pattern": "1st"}, "a.txt:1"),
        Use("glob", {"pattern": "*.txt"}, "b.txt"),
        Use("bash", {"command": "echo out of bash"}, "out of bash"),
        Use("bash", {"command": "printf 'ready> '; cat", "terminal": True}, "ready>"),
        Use("job", {"id": 1, "input": "typed<Enter>", "until": "typed", "wait": 20}, "typed"),
        Use("job", {"id": 1, "stop": True}, "stopped"),
        Use("todo", {"todos": "[>] look\n[ ] mend"}, "look"),
        Use("ask", {"questions": [QUESTION]}, "Green"),
        Use("recall", {"what": "out of bash"}, "#"),
        Use("task", {"agent": "explore", "task": "look around"}, "continue: "),
        Use("task", {"agent": "explore", "task": "go on", "continue": GOES_ON}, "Nothing there"),
        Use("remember", {"note": "tests: make test"}, "/memory"),
        Use("websearch", {"query": "trees"}, "docs.example.org"),
        Use("webfetch", {"url": page, "find": "needle"}, "the needle"),
        Use("webfetch", {"url": f"{page}.pdf", "offset": 3}, "Second words"),
    ]


def files_in(project: Path) -> None:
    (project / "a.txt").write_text("first line\n")
    (project / "a.pdf").write_bytes(pdf("First words", "Second words"))
    (project / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    with zipfile.ZipFile(project / "a.zip", "w") as archive:
        archive.writestr("inner.txt", "x")
    drawn = io.BytesIO()
    Image.new("RGB", (4, 3)).save(drawn, "PNG")
    (project / "a.png").write_bytes(drawn.getvalue())


@asynccontextmanager
async def web() -> AsyncIterator[WebServer]:
    """Serve a page, a PDF and a search service."""
    async with web_server() as running:
        running.answers[PATHS["tavily"]] = answer(json.dumps(ANSWERS["tavily"]), "application/json")
        lines = "\n".join(["hay"] * 50 + ["the needle"] + ["hay"] * 50)
        running.answers["/page"] = answer(lines, "text/plain")
        running.answers["/page.pdf"] = answer(pdf("First words", "Second words"), "application/pdf")
        yield running


def ports(server: WebServer, place: Path) -> dict[str, Any]:
    """Return what an agent with every tool is given, whose project is in a place."""
    memory = Memory(place / "data", place / "project")
    tools = builtin_tools(search_tool(server), fetch_tool())
    return {
        "tools": (*tools, TaskTool()),
        "agents": SPECS,
        "rules": ALLOW_ALL,
        "memory": memory,
    }
