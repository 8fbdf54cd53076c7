"""A place for tools to run in: a project on disk, blobs in memory, live output collected."""

import json
import os
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tui_agent.context.truncation import OutputLimits
from tui_agent.permission import Permission
from tui_agent.processes.environment import SafeEnvironment
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.view import View
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import Tool, ToolContext, ToolResult
from tui_agent.tools.reads import FileReads


@dataclass
class Workspace:
    """A project directory and what tools left behind outside of it."""

    root: Path
    blobs: dict[str, bytes] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    reads: FileReads = field(default_factory=FileReads)
    limits: OutputLimits = field(default_factory=OutputLimits)
    vision: bool = True
    document_pages: int = 0
    environ: dict[str, str] = field(default_factory=dict)
    jobs: Jobs | None = None
    sandbox: Sandbox | None = None
    notices: list[str] = field(default_factory=list)
    allowed: frozenset[tuple[Permission, str]] | None = None
    view: View = field(default_factory=View)

    def file(self, name: str, content: str | bytes = "") -> Path:
        """Write a file, its directories too."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def context(self, cwd: str = ".") -> ToolContext:
        """Return a context for one call."""
        return ToolContext(
            cwd=(self.root / cwd).resolve(),
            project=self.root,
            limits=self.limits,
            reads=self.reads,
            put_blob=self.put_blob,
            report=self.live.append,
            environment=SafeEnvironment(self.environ),
            vision=self.vision,
            document_pages=self.document_pages,
            jobs=self.jobs,
            sandbox=self.sandbox,
            notify=self.notices.append,
            allowed=self.allowed,
            view=self.view,
        )

    def put_blob(self, data: bytes) -> str:
        """Store bytes as the session's store does."""
        digest = sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    async def call(self, tool: Tool[Any], **arguments: Any) -> ToolResult:
        """Run a call as the loop does: arguments through JSON, needs asked for first."""
        context = self.context()
        parsed = parse_arguments(tool, json.dumps(arguments))
        tool.needs(parsed, context)
        return await tool.run(parsed, context)


async def shell_from(root: Path, held: bool) -> None:
    """Run a command as a session does, and print what it said."""
    from tui_agent.sandbox.settings import SandboxSettings
    from tui_agent.tools.bash import BashInput, BashTool

    sandbox = (
        Sandbox(SandboxSettings(), cache=root.parent / "cache", project=root) if held else None
    )
    space = Workspace(root, environ=dict(os.environ), sandbox=sandbox)
    result = await BashTool().run(BashInput(command="echo ran"), space.context())
    sys.stdout.write(result.output + "\n")
    if sandbox is not None:
        await sandbox.aclose()
