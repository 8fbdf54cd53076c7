"""Rules in the user's own file: added and removed, for every project or one.

A rule of the kind "here" is kept under its project.
"""

import json
from pathlib import Path
from typing import Any

from tui_agent.agent.permissions import STORED, Rule
from tui_agent.config import ConfigError, config_path, read_table, set_value, split_key
from tui_agent.path_checks import real_path


def keep_rule(rule: Rule, project: Path) -> str | None:
    """Add a rule to the user's file, one of the kind "here" for a project.

    Return why that can't be done.
    """
    try:
        table, patterns = _kept_rules(rule, project)
        patterns[_written_pattern(rule)] = rule.action.value
        set_value(f'{table}."{rule.permission}"', patterns)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def forget_rule(rule: Rule, project: Path) -> str | None:
    """Remove a rule from the user's file; return why that can't be done.

    Rules of a session and of the command line are kept nowhere: there is nothing to remove.
    """
    if rule.source == "project":
        return f"It is kept in {STORED['project']}: edit that file, and the project is asked about again."
    if rule.source not in {"user", "here"}:
        return None
    pattern = _written_pattern(rule)
    try:
        table, patterns = _kept_rules(rule, project)
        if pattern not in patterns:
            return f"It is not in {config_path()} (a variable of the environment sets it)."
        del patterns[pattern]
        set_value(f'{table}."{rule.permission}"', patterns or None)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def _written_pattern(rule: Rule) -> str:
    from tui_agent.shell.families import escaped

    if rule.syntax == "literal":
        return escaped(rule.pattern)
    return rule.pattern


def _kept_rules(rule: Rule, project: Path) -> tuple[str, dict[str, Any]]:
    """Return the table of the user's file that a rule belongs in, and its patterns for the rule's permission."""
    table = "permissions"
    if rule.source == "here":
        table = f"projects.{json.dumps(str(real_path(project)), ensure_ascii=False)}.permissions"
    found: Any = read_table(config_path())
    for key in (*split_key(table), rule.permission):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    # A plain action is one for everything.
    if not isinstance(found, dict):
        return table, {"*": str(found)}
    return table, dict(found)
