"""Finds hooks in Claude Code's and Codex's files, and decides which of them are used.

The decision depends on the settings, and on whether the user trusts the project.
``hooks.claude_hooks`` parses the hooks; ``cli.extensions`` creates hooks of this program from those
that `foreign_hooks` yields.
"""

from collections.abc import Iterator
from pathlib import Path

from tui_agent.agent.hooks.claude_hooks import FoundHook, UnusableHook, hooks_in
from tui_agent.claude_settings import project_settings, user_settings
from tui_agent.files.own_git import find_project
from tui_agent.foreign_file import ForeignFile, read_foreign, read_of_user
from tui_agent.places import LeftOut
from tui_agent.trust import CODEX_HOOKS


def hook_files(project: Path, home: Path) -> Iterator[tuple[str, ForeignFile]]:
    """Yield (program, file) for each file that may contain hooks.

    The files are in the order in which their hooks run.
    """
    for own in user_settings(home):
        yield "Claude Code", own.file
    if (own_of_codex := read_of_user(home, CODEX_HOOKS)) is not None:
        yield "Codex", own_of_codex
    for settings in project_settings(project, project):
        yield "Claude Code", settings.file
    if (of_codex := read_foreign(project / CODEX_HOOKS, CODEX_HOOKS, project)) is not None:
        yield "Codex", of_codex


def found_hooks(
    project: Path, home: Path
) -> Iterator[tuple[str, ForeignFile, FoundHook | UnusableHook]]:
    """Yield (program, file, hook) for every hook, including unusable ones."""
    for program, file in hook_files(project, home):
        for hook in hooks_in(file):
            yield program, file, hook


def foreign_hooks(
    cwd: Path, home: Path, left_out: LeftOut, *, trusted: bool
) -> Iterator[tuple[FoundHook, bool]]:
    """Yield each usable hook of other programs, and whether it comes from the project's files.

    The project is the one that contains ``cwd``; its hooks are left out unless it is ``trusted``.
    Hooks that the settings ``left_out`` exclude are left out, too.
    """
    for program, file, hook in found_hooks(find_project(cwd), home):
        if isinstance(hook, UnusableHook) or left_out.covers(program, "hooks"):
            continue
        if trusted or not file.of_project:
            yield hook, file.of_project
