"""Keeps permission rules in the user's configuration and takes them out again."""

import json
from pathlib import Path
from typing import Any

from tui_agent.agent.permissions import STORED, Rule
from tui_agent.config import ConfigError, config_path, read_table, set_value, split_key
from tui_agent.path_checks import real_path


def keep_rule(rule: Rule, path: Path | None = None, *, project: Path | None = None) -> str | None:
    """Add a rule to the user's file, where a project is given for that one; returns why that can't be done."""
    table = _table(project if rule.source == "here" else None)
    try:
        patterns = _patterns(table, rule.permission, path)
        set_value(f'{table}."{rule.permission}"', {**patterns, _as_glob(rule): rule.action.value}, path)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def forget_rule(rule: Rule, path: Path | None = None, *, project: Path | None = None) -> str | None:
    """Take a rule out of where it is kept; returns why that can't be done.

    Rules of a session and of the command line are kept nowhere: there is nothing to do.
    """
    if rule.source == "project":
        return f"It is kept in {STORED['project']}: edit that file, and the project is asked about again."
    if rule.source not in {"user", "here"}:
        return None
    table = _table(project if rule.source == "here" else None)
    try:
        patterns = _patterns(table, rule.permission, path)
        if _as_glob(rule) not in patterns:
            return f"It is not in {path or config_path()} (a variable of the environment sets it)."
        del patterns[_as_glob(rule)]
        set_value(f'{table}."{rule.permission}"', patterns or None, path)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def _table(project: Path | None) -> str:
    """Return the key of a table of rules: the user's for every project, or for one."""
    if project is None:
        return "permissions"
    named = json.dumps(str(real_path(project)), ensure_ascii=False)
    return f"projects.{named}.permissions"


def _patterns(table: str, permission: str, path: Path | None) -> dict[str, str]:
    """Return the patterns of a permission in the file; a plain action is one for everything."""
    found: Any = read_table(path or config_path())
    for key in (*split_key(table), permission):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return dict(found) if isinstance(found, dict) else {"*": str(found)}


def _as_glob(rule: Rule) -> str:
    from tui_agent.shell.families import escaped

    return escaped(rule.pattern) if rule.literal else rule.pattern
