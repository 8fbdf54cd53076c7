"""Reads the settings of Claude Code, Codex, OpenCode and Pi that take effect in this program.

Each program's module converts its files and decides what needs trust; this module applies the
user's exclusions (the setting ``leave_out``). Hooks, MCP servers, agents and commands of these
programs are read elsewhere.
"""

from dataclasses import replace

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.programs.claude_code import read_claude_code
from tui_agent.agent.programs.codex import read_codex
from tui_agent.agent.programs.found import ForeignSettings, joined
from tui_agent.agent.programs.opencode import read_opencode
from tui_agent.agent.programs.pi import read_pi
from tui_agent.places import LeftOut


def read_programs(folders: Folders, *, trusted: bool) -> ForeignSettings:
    """Return the settings from Claude Code, Codex, OpenCode and Pi that the user doesn't exclude.

    ``items`` still contains the excluded settings.
    """
    return joined(
        [
            _without("Claude Code", read_claude_code(folders, trusted=trusted), folders.left_out),
            _without("Codex", read_codex(folders), folders.left_out),
            _without("OpenCode", read_opencode(folders), folders.left_out),
            read_pi(folders),
        ]
    )


def _without(program: str, found: ForeignSettings, left_out: LeftOut) -> ForeignSettings:
    """Return a program's settings without the groups of settings that the user excludes."""
    if left_out.covers(program, "permissions"):
        found = replace(found, rules=())
    if left_out.covers(program, "environment"):
        found = replace(found, environment={})
    if left_out.covers(program, "instructions"):
        found = replace(found, instructions=())
    return found
