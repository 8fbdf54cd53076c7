"""Hooks as the settings name them, without the files they would be in."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tui_agent.agent.hooks.hooks import CommandHook, LoadedHooks
from tui_agent.agent.hooks.settings import HookSettings


def from_settings(
    settings: Iterable[HookSettings],
    cwd: Path,
    environment: Mapping[str, str],
    problem_of: Callable[[Path, str], str] = lambda _project, _command: "",
) -> LoadedHooks:
    handlers = [CommandHook(row, cwd, environment, problem_of=problem_of) for row in settings]
    return LoadedHooks(tuple(handlers))
