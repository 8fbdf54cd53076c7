"""Adds permission rules to the user's settings file, and removes them.

A rule whose source is "here" is stored for its project only, and any other rule is stored for all
projects.
"""

import json
from pathlib import Path
from typing import Any

from tui_agent.agent.permissions import STORED, Rule
from tui_agent.config import ConfigError, config_path, read_table, set_value, split_key
from tui_agent.path_checks import real_path


def keep_rule(rule: Rule, project: Path) -> str | None:
    """Save a rule in the user's settings file; return why that failed, None on success."""
    try:
        table, patterns = _kept_rules(rule, project)
        patterns[_written_pattern(rule)] = rule.action.value
        set_value(f'{table}."{rule.permission}"', patterns)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def forget_rule(rule: Rule, project: Path) -> str | None:
    """Remove a rule from the user's settings file; return why that failed, None on success.

    Does nothing for rules that are not stored, such as those of the session or the command line. A
    rule in the project's settings can't be removed by this program.
    """
    if rule.source == "project":
        return f"The rule is in {STORED['project']}. Edit that file, then trust the project again."
    if not rule.is_in_users_file:
        return None
    pattern = _written_pattern(rule)
    try:
        table, patterns = _kept_rules(rule, project)
        if pattern not in patterns:
            return f"The rule is not in {config_path()}, because an environment variable sets it."
        del patterns[pattern]
        set_value(f'{table}."{rule.permission}"', patterns or None)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def _written_pattern(rule: Rule) -> str:
    """Return a rule's pattern as written in the file.

    In a literal pattern, wildcards are escaped.
    """
    from tui_agent.shell.families import escaped

    if rule.syntax == "literal":
        return escaped(rule.pattern)
    return rule.pattern


def _kept_rules(rule: Rule, project: Path) -> tuple[str, dict[str, Any]]:
    """Return the key of the settings table that stores a rule, and the actions stored there.

    The actions are those of the rule's permission.
    """
    table = "permissions"
    if rule.source == "here":
        table = f"projects.{json.dumps(str(real_path(project)), ensure_ascii=False)}.permissions"
    found: Any = read_table(config_path())
    for key in (*split_key(table), rule.permission):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    # An action without patterns applies to every pattern, so return it as the pattern "*".
    if not isinstance(found, dict):
        return table, {"*": str(found)}
    return table, dict(found)
