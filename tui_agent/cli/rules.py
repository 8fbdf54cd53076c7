"""Keeps permission rules in the user's configuration and takes them out again."""

from pathlib import Path

from tui_agent.agent.permissions import STORED, Rule
from tui_agent.config import ConfigError, config_path, read_table, set_value


def keep_rule(rule: Rule, path: Path | None = None) -> str | None:
    """Add a rule to the user's file; returns why that can't be done."""
    pattern = _as_glob(rule)
    try:
        set_value(
            f'permissions."{rule.permission}"', {**_patterns(rule.permission, path), pattern: rule.action.value}, path
        )
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def forget_rule(rule: Rule, path: Path | None = None) -> str | None:
    """Take a rule out of where it is kept; returns why that can't be done.

    Rules of a session and of the command line are kept nowhere: there is nothing to do.
    """
    if rule.source == "project":
        return f"It is kept in {STORED['project']}: edit that file, and the project is asked about again."
    if rule.source != "user":
        return None
    try:
        patterns = _patterns(rule.permission, path)
        if rule.pattern not in patterns:
            return f"It is not in {path or config_path()} (a variable of the environment sets it)."
        del patterns[rule.pattern]
        set_value(f'permissions."{rule.permission}"', patterns or None, path)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def _patterns(permission: str, path: Path | None) -> dict[str, str]:
    """Return the patterns of a permission in the file; a plain action is one for everything."""
    table = read_table(path or config_path()).get("permissions", {})
    found = table.get(permission, {}) if isinstance(table, dict) else {}
    return dict(found) if isinstance(found, dict) else {"*": str(found)}


def _as_glob(rule: Rule) -> str:
    """Return a pattern that means in a file what the rule means."""
    from tui_agent.tools.shell.families import escaped

    return escaped(rule.pattern) if rule.literal else rule.pattern
