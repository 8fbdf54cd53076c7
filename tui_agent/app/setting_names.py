"""Labels, groups and values of settings, in the words of the settings page."""

from collections.abc import Mapping, Sequence
from typing import Final

from tui_agent.setting_rows import UNSET, SettingRow

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Model and limits": (
        "model",
        "small_model",
        "fallback_models",
        "effort",
        "max_",
        "budget",
        "timeout",
        "models",
        "providers",
        "retry",
        "host",
    ),
    "What runs without asking": ("mode", "permissions", "projects", "sandbox", "hooks"),
    "What the model sees": (
        "compaction",
        "prune",
        "truncation",
        "images",
        "cache",
        "instructions",
        "instructions_order",
        "memory",
        "other_programs",
    ),
    "Screen and keys": ("ui", "keys"),
    "Tools and servers": (
        "mcp",
        "webfetch",
        "websearch",
        "diagnostics",
        "code",
        "parallel_calls",
        "add_ons",
    ),
    "Files": ("checkpoints",),
}
"""The settings in each group, as keys, tables, and prefixes of keys (which end with ``_``)."""

OTHERS: Final = "Others"
"""Name of the group for settings that are in no other group."""

_SENTENCES: Final[Mapping[str, str]] = {
    "model": "Model",
    "small_model": "Cheap model for titles and other short questions",
    "fallback_models": "Models to fall back to",
    "effort": "Thinking",
    "max_steps": "Maximum requests for one message",
    "max_cost": "Maximum dollars for one message",
    "max_tokens": "Maximum tokens for one message",
    "budget.session": "Budget of a session",
    "budget.day": "Budget of a day",
    "timeout": "Maximum seconds for one message",
    "models": "Models set up by hand",
    "providers": "Providers set up by hand",
    "retry.attempts": "Maximum attempts at a request",
    "retry.max_delay": "Longest delay between two tries (s)",
    "retry.max_retry_after": "Longest wait a provider can ask for (s)",
    "host.connect_timeout": "Seconds to connect",
    "host.first_byte_timeout": "Seconds until an answer begins",
    "host.stall_timeout": "Seconds an answer may pause",
    "mode": "Permission mode of a new session",
    "permissions": "Permission rules",
    "projects": "Rules for one project",
    "sandbox.mode": "Run commands in a sandbox",
    "sandbox.write": "Other paths commands may change",
    "sandbox.read": "Other paths commands may read",
    "sandbox.env": "Secret variables for commands",
    "sandbox.mask": "Credentials commands use without seeing them",
    "sandbox.exclude": "Commands outside the sandbox",
    "hooks": "Hooks",
    "compaction.auto": "Compact automatically",
    "compaction.threshold": "Size at which to compact",
    "compaction.effective_window": "Compact larger windows at",
    "compaction.reserved": "Tokens kept free for the answer",
    "compaction.keep_recent": "Newest tokens that stay as they are",
    "compaction.keep_turns": "Newest turns that stay as they are",
    "compaction.resume": "Continue after a compaction",
    "compaction.branch_summaries": "Summarise a branch when leaving it",
    "compaction.model": "Model that writes summaries",
    "compaction.style": "Who writes summaries",
    "compaction.input": "What the summariser reads",
    "prune.when": "Clear old outputs",
    "prune.protect_tokens": "Newest output to keep (tokens)",
    "prune.protected_tools": "Tools that are never cleared",
    "prune.minimum_tokens": "Minimum tokens worth clearing",
    "truncation.lines": "Lines of one output",
    "truncation.bytes": "Bytes of one output",
    "truncation.line_chars": "Characters of one line",
    "truncation.window_share": "Share of the window for one output",
    "truncation.short_rereads": "Shorten a file that is read again",
    "images.max_count": "Images in one request",
    "cache.ttl": "Keep the prompt cache for",
    "cache.ttl_seconds": "Seconds the prompt cache lasts",
    "cache.warn_tokens": "Uncached tokens that cause a warning",
    "instructions": "More instruction files",
    "instructions_order": "Preferred instruction files",
    "memory.propose": "Propose lines for the memory",
    "memory.tokens": "Tokens of the memory",
    "add_ons.leave_out": "Add-ons left out",
    "other_programs.leave_out": "Other programs' files left out",
    "ui.theme": "Theme",
    "ui.reduced_motion": "No animations",
    "ui.closed_terminal": "When the terminal closes",
    "ui.fold_turns": "Fold finished turns",
    "ui.tree_filter": "First filter of the tree",
    "ui.plain": "Plain lines, for screen readers",
    "ui.cursor_blink": "Blinking cursor",
    "ui.permission_grace": "Seconds before a question takes keys",
    "ui.typing_pause": "Typing pause before a question (s)",
    "ui.vim": "vi keys in the prompt",
    "ui.copy_on_select": "Copy what the mouse selects",
    "ui.status_line": "Custom status line",
    "ui.notify": "Notifications",
    "ui.notify_command": "Notification command",
    "keys": "Custom key bindings",
    "mcp": "MCP servers",
    "webfetch.timeout": "Seconds for a web page",
    "webfetch.max_bytes": "Bytes of a web page",
    "webfetch.private": "Private hosts that may be read",
    "websearch.service": "Service that searches the web",
    "websearch.api_key": "API key of the search service",
    "websearch.address": "Address of a SearXNG server",
    "diagnostics.enabled": "Check edited files",
    "diagnostics.wait": "Seconds to wait for checks",
    "diagnostics.timeout": "Seconds until a check is ended",
    "diagnostics.commands": "Commands that check files",
    "code.enabled": "Offer code navigation",
    "code.timeout": "Seconds for a language server's answer",
    "code.servers": "Language servers for files",
    "parallel_calls": "Maximum parallel tool calls",
    "checkpoints.enabled": "Restore files with the conversation",
    "checkpoints.megabytes": "Megabytes of file snapshots",
}

_VALUES: Final[Mapping[str, str]] = {"true": "on", "false": "off", UNSET: "–"}


def sentence_of(row: SettingRow) -> str:
    """Return the label of a setting: its text in `_SENTENCES`, or else the words of its key."""
    if row.table:
        words = f"{row.table}: {row.words}"
    else:
        words = row.words
    return _SENTENCES.get(row.key) or f"{words[:1].upper()}{words[1:]}"


def value_of(row: SettingRow) -> str:
    """Return a setting's value for the page.

    This is "on" or "off" for true or false, and "–" if the setting has no value.
    """
    return _VALUES.get(row.value, row.value.replace("_", " ") if row.choices else row.value)


def group_of(key: str) -> str:
    """Return the name of the group in which the settings page shows a setting."""
    for name, begins in GROUPS.items():
        if any(_is_covered(key, begin) for begin in begins):
            return name
    return OTHERS


def _is_covered(key: str, begin: str) -> bool:
    """Return True if the setting ``key`` belongs to ``begin``, an item of `GROUPS`.

    Such an item is a key, a table or a prefix.
    """
    return key == begin or key.startswith(begin if begin.endswith("_") else f"{begin}.")


def sorted_by_group(rows: Sequence[SettingRow]) -> dict[str, list[SettingRow]]:
    """Return the settings sorted by the groups in which the settings page shows them.

    Within a group, the settings in `_SENTENCES` come first, in that order. Empty groups are left
    out.
    """
    places = {key: place for place, key in enumerate(_SENTENCES)}
    found: dict[str, list[SettingRow]] = {name: [] for name in (*GROUPS, OTHERS)}
    for row in sorted(rows, key=lambda row: places.get(row.key, len(places))):
        found[group_of(row.key)].append(row)
    return {name: listed for name, listed in found.items() if listed}
