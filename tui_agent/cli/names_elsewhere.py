"""Options and subcommands of Claude Code, Codex, OpenCode and Pi and what to use instead."""

from collections.abc import Mapping

_JSON = "--json prints one event per line"
_MODE = "use --mode plan, --mode auto-edit or --mode yolo"
_RULE = "use --allow RULE, such as 'bash:make *'"
_PLACES = "set read and write of [sandbox] in config.toml"

OPTIONS: Mapping[str, str] = {
    "--add-dir": _PLACES,
    "--agents": "agents are Markdown files in .tui-agent/agents",
    "--allowedTools": _RULE,
    "--allowed-tools": _RULE,
    "--append-system-prompt": "write it into AGENTS.md",
    "--ask-for-approval": _MODE,
    "--dangerously-bypass-approvals-and-sandbox": _MODE,
    "--dangerously-skip-permissions": _MODE,
    "--disallowedTools": "use --deny RULE",
    "--disallowed-tools": "use --deny RULE",
    "--fallback-model": "set fallback_models in config.toml",
    "--fork-session": "use --fork ID",
    "--format": _JSON,
    "--full-auto": _MODE,
    "--image": "name the picture in the prompt: @picture.png",
    "--max-budget-usd": "use --max-cost USD",
    "--max-turns": "use --max-steps N",
    "--mcp-config": "tui-agent mcp add adds a server",
    "--output-format": _JSON,
    "--permission-mode": _MODE,
    "--provider": "a model is named with its provider: --model openai/gpt-5",
    "--sandbox": "set sandbox.mode in config.toml",
    "--search": "set websearch.service in config.toml",
    "--session": "use -r ID",
    "--session-id": "use -r ID",
    "--skip-git-repo-check": "no repository is needed",
    "--steps": "use --max-steps N",
    "--system-prompt": "prompts/system.md in your settings replaces it",
    "--thinking": "use --effort LEVEL",
    "--worktree": "--race works in copies of the project",
    "--yolo": "use --mode yolo",
}
"""Hints what to use instead of another program's option, by option."""

COMMANDS: Mapping[str, str] = {
    "agents": "tui-agent ps lists detached runs",
    "auth": "tui-agent login enters a key",
    "exec": 'tui-agent -p "…" runs without a screen',
    "fork": "tui-agent --fork ID continues in a copy of a session",
    "resume": "tui-agent -c continues the last session, -r picks one",
    "upgrade": "use tui-agent update",
}
"""Hints what to use instead of another program's subcommand, by subcommand."""
