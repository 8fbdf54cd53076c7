"""Renders the head of a session: the agent's prompt, the tools, the opening. Rendered once, kept as an entry."""

import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

from tui_agent.files.own_git import branch_of
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_there
from tui_agent.session.entries import SystemEntry
from tui_agent.tools.base import Tool


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where and when a session works. ``started_at`` is milliseconds; only its date is told to the model."""

    cwd: Path
    project: Path
    started_at: int


def render_head(
    prompt: Callable[[str], str],
    tools: Sequence[Tool[Any]],
    place: SessionPlace,
    *,
    model: str,
    mode: str,
    sections: Sequence[str] = (),
) -> SystemEntry:
    """Return the system entry for a session that goes on from here.

    The agent's prompt and the tools are the same bytes in every project, so that a provider's cache of them is shared
    even where a template puts the tools behind the prompt. What is particular to this session opens the conversation:
    the environment, the ``sections`` (skills, instructions), and what plan mode means while it is on.
    """
    started = datetime.fromtimestamp(place.started_at / 1000, tz=UTC).astimezone()
    environment = Template(prompt("environment")).safe_substitute(
        cwd=place.cwd,
        project=place.project,
        git=_git_state(place.project),
        model=model,
        platform=f"{platform.system()} {platform.machine()}",
        date=started.date().isoformat(),
    )
    told = [prompt("mode_plan")] if mode == "plan" else []
    return SystemEntry(
        blocks=(prompt("system"),),
        opening="\n\n".join([environment, *sections, *told]),
        tools=tuple(tool.schema() for tool in tools),
        model=model,
        mode=mode,
    )


def find_project(cwd: Path) -> Path:
    """Return the root of the repository ``cwd`` is in, or ``cwd`` itself outside one."""
    return next((folder for folder in (cwd, *cwd.parents) if is_there(folder / ".git")), cwd)


def _git_state(project: Path) -> str:
    branch = branch_of(project)
    return f"branch {branch}" if branch else "not a repository"
