"""Paths of instructions, rules, skills, commands, agents, hooks and tools, also of other programs.

This module only lists the paths of files and folders; other modules read them.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tui_agent.lazy import frozen

FOLDER = ".tui-agent"
"""This program's directory in a project. All files in it need the user's trust."""

MAX_DEPTH = 9
"""Maximum depth, in path components, at which files below a folder in `PLACES` are read. Trust
covers files down to the same depth."""

MANAGED = "/etc/claude-code"
"""Claude Code's directory with settings for all users of a machine."""
if sys.platform == "darwin":
    MANAGED = "/Library/Application Support/ClaudeCode"

Kind = Literal[
    "instructions", "rules", "skills", "commands", "agents", "output-styles", "hooks", "tools"
]
ACTING = {
    "skills": "skill",
    "commands": "command",
    "agents": "agent",
    "output-styles": "output style",
    "hooks": "hook",
    "tools": "tool",
}
"""The kinds of files that need the user's trust, because they run something or instruct the model.
Each value is the word for one such file. Instructions and rules are not included, because they are
ordinary texts, like a README."""
SKILL_FILE = "SKILL.md"
"""Name of a skill's main file. Other files in a skill's folder are ordinary files of the project."""


@frozen
class Place:
    """A file or folder that the program looks for in the project, the home directory, or both.

    ``project`` is relative to the project's directory or to one below it; ``home`` is relative to
    the home directory, or absolute. "" means that it is not looked for there.
    """

    kind: Kind
    project: str = ""
    home: str = ""
    whose: str = ""
    """Name of the other program that reads the file or folder; "" for this program, or for a
    convention that several programs share."""
    instead: tuple[str, ...] = ()
    """Files that, if they exist, are read instead of this file."""
    is_further: bool = False
    """Whether these instructions are read in addition to the directory's main instruction file, not
    instead of it."""


PLACES = (
    Place("instructions", "AGENTS.md", instead=("AGENTS.override.md",)),
    Place("instructions", "CLAUDE.md", ".claude/CLAUDE.md", "Claude Code"),
    Place("instructions", ".claude/CLAUDE.md", whose="Claude Code"),
    Place("instructions", "CONTEXT.md"),
    Place("instructions", "GEMINI.md", ".gemini/GEMINI.md", "Gemini CLI"),
    Place("instructions", ".github/copilot-instructions.md", whose="GitHub Copilot"),
    Place("instructions", "", ".codex/AGENTS.override.md", "Codex"),
    Place("instructions", "", ".codex/AGENTS.md", "Codex"),
    Place("instructions", "", ".config/opencode/AGENTS.md", "OpenCode"),
    Place("instructions", "", ".pi/agent/AGENTS.override.md", "Pi"),
    Place("instructions", "", ".pi/agent/AGENTS.md", "Pi"),
    Place("instructions", "", ".pi/agent/CLAUDE.md", "Pi"),
    Place("instructions", "", f"{MANAGED}/CLAUDE.md", "Claude Code", is_further=True),
    Place("instructions", "CLAUDE.local.md", whose="Claude Code", is_further=True),
    Place(
        "instructions", ".pi/APPEND_SYSTEM.md", ".pi/agent/APPEND_SYSTEM.md", "Pi", is_further=True
    ),
    Place("rules", ".claude/rules", ".claude/rules", "Claude Code"),
    Place("rules", ".cursor/rules", whose="Cursor"),
    Place("skills", f"{FOLDER}/skills", f"{FOLDER}/skills"),
    Place("skills", ".agents/skills", ".agents/skills"),
    Place("skills", ".claude/skills", ".claude/skills", "Claude Code"),
    Place("skills", ".codex/skills", ".codex/skills", "Codex"),
    Place("skills", ".opencode/skill", ".config/opencode/skill", "OpenCode"),
    Place("skills", ".opencode/skills", ".config/opencode/skills", "OpenCode"),
    Place("skills", "", ".opencode/skill", "OpenCode"),
    Place("skills", "", ".opencode/skills", "OpenCode"),
    Place("skills", ".pi/skills", ".pi/agent/skills", "Pi"),
    Place("commands", f"{FOLDER}/commands"),
    Place("commands", ".claude/commands", ".claude/commands", "Claude Code"),
    Place("commands", "", ".codex/prompts", "Codex"),
    Place("commands", ".opencode/command", ".config/opencode/command", "OpenCode"),
    Place("commands", ".opencode/commands", ".config/opencode/commands", "OpenCode"),
    Place("commands", "", ".opencode/command", "OpenCode"),
    Place("commands", "", ".opencode/commands", "OpenCode"),
    Place("commands", ".pi/prompts", ".pi/agent/prompts", "Pi"),
    Place("agents", f"{FOLDER}/agents"),
    Place("agents", ".claude/agents", ".claude/agents", "Claude Code"),
    Place("agents", ".opencode/agent", ".config/opencode/agent", "OpenCode"),
    Place("agents", ".opencode/agents", ".config/opencode/agents", "OpenCode"),
    Place("agents", "", ".opencode/agent", "OpenCode"),
    Place("agents", "", ".opencode/agents", "OpenCode"),
    Place("agents", ".codex/agents", ".codex/agents", "Codex"),
    Place("output-styles", f"{FOLDER}/output-styles"),
    Place("output-styles", ".claude/output-styles", ".claude/output-styles", "Claude Code"),
    Place("hooks", f"{FOLDER}/hooks"),
    Place("hooks", ".claude/hooks", whose="Claude Code"),
    Place("tools", f"{FOLDER}/tools"),
)
"""All files and folders in which the program looks for instructions, skills and the like, in the
order in which they are read."""

OPENCODE_FILES = (
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
)
"""OpenCode's settings files in a project. Later files override earlier files."""
OPENCODE_HOME_FILES = (
    ".config/opencode/config.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
)
"""OpenCode's settings files in the home directory. Later files override earlier files."""


class LeftOut(frozenset[str]):
    """The value of the setting ``leave_out``: other programs, or groups of their files, to ignore.

    A program is written ``Codex``, a group of its files ``Claude Code/hooks``. A group is a `Kind`,
    "permissions", "environment" or "servers".
    """

    def covers(self, program: str, group: str) -> bool:
        """Return True if the setting excludes the program, or this group of the program's files."""
        return bool(program) and not self.isdisjoint({program, f"{program}/{group}"})


_MOVED = {
    ".claude.json": ("CLAUDE_CONFIG_DIR", ".claude.json"),
    ".claude": ("CLAUDE_CONFIG_DIR", ""),
    ".codex": ("CODEX_HOME", ""),
    ".config/opencode": ("XDG_CONFIG_HOME", "opencode"),
    ".pi/agent": ("PI_CODING_AGENT_DIR", ""),
}
"""Directories of other programs that an environment variable can move, by their path below the home
directory. The value is the variable, and the path relative to the directory that the variable
names."""


def in_home(home: Path, name: str) -> Path:
    """Return the path of a file or folder of another program; ``name`` is its usual path below ``home``.

    An environment variable of that program, such as CODEX_HOME, may move it elsewhere.
    """
    for place, (variable, moved) in _MOVED.items():
        if not f"{name}/".startswith(f"{place}/"):
            continue
        if directory := os.environ.get(variable):
            below = name.removeprefix(place).lstrip("/")
            return Path(os.path.normpath(Path(directory, moved, below)))
    return home / name


def shown_in_home(home: Path, path: Path) -> str:
    """Return a path for display: ``~/…`` in the home directory, otherwise the whole path."""
    if path.is_relative_to(home):
        return f"~/{path.relative_to(home).as_posix()}"
    return path.as_posix()


def places_of(kind: Kind) -> Iterator[Place]:
    return (place for place in PLACES if place.kind == kind)
