"""Decides whether a call may run: rules, their precedence, modes, and the rules that an answer creates. Pure."""

from tui_agent.agent.permissions.always import edited, session_rules
from tui_agent.agent.permissions.decisions import decide, is_named, reason_for, reasons_for, refusal_of_tool
from tui_agent.agent.permissions.modes import (
    CYCLE,
    MODE_HELP,
    PLAN_REFUSAL,
    PLAN_RULE,
    Mode,
    decide_in_mode,
    next_mode,
    resumed_mode,
    view_in_mode,
)
from tui_agent.agent.permissions.rules import (
    DEFAULT_RULES,
    STORED,
    Action,
    Rule,
    RuleError,
    Source,
    in_words,
    parse_rule,
    rules_from_table,
)

__all__ = [
    "CYCLE",
    "DEFAULT_RULES",
    "MODE_HELP",
    "PLAN_REFUSAL",
    "PLAN_RULE",
    "STORED",
    "Action",
    "Mode",
    "Rule",
    "RuleError",
    "Source",
    "decide",
    "decide_in_mode",
    "edited",
    "in_words",
    "is_named",
    "next_mode",
    "parse_rule",
    "reason_for",
    "reasons_for",
    "refusal_of_tool",
    "resumed_mode",
    "rules_from_table",
    "session_rules",
    "view_in_mode",
]
