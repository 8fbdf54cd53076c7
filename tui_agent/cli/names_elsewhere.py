"""Options, modes and subcommands of other programs, and what to use instead.

The programs are Claude Code, Codex, OpenCode and Pi.
"""

from collections.abc import Mapping

_JSON = "--json prints one event per line"
_MODE = "use --mode plan, --mode auto-edit or --mode yolo"
_RULE = "use --allow RULE, such as 'bash:make *'"
_PLACES = "set read and write of [sandbox] in config.toml"

_TOOLS = "list the tools in an agent's file, agents/NAME.md, and use --mode NAME"
_NO_TOOL = "use --deny RULE"

_SCHEMA = "describe the format of the answer in the prompt"
_PICTURE = "name the picture in the prompt: @picture.png"
_COPIES = "--race works in copies of the project"
_ANSWER = "-p prints only the answer: send it to a file with > FILE"
_SANDBOX = "set sandbox.mode in config.toml"

OPTIONS: Mapping[str, str] = {
    "-C": "use --cwd DIR",
    "-a": _MODE,
    "-i": _PICTURE,
    "-o": _ANSWER,
    "-s": _SANDBOX,
    "-w": _COPIES,
    "--add-dir": _PLACES,
    "--agents": "agents are Markdown files in .tui-agent/agents",
    "--allowedTools": _RULE,
    "--approve": "--trust uses this project's settings and commands",
    "--allowed-tools": _RULE,
    "--append-system-prompt": "write it into AGENTS.md",
    "--ask-for-approval": _MODE,
    "--cd": "use --cwd DIR",
    "--dangerously-bypass-approvals-and-sandbox": _MODE,
    "--dangerously-skip-permissions": _MODE,
    "--disallowedTools": "use --deny RULE",
    "--disallowed-tools": "use --deny RULE",
    "--exclude-tools": _NO_TOOL,
    "--export": "tui-agent sessions export writes a session to a file",
    "--fallback-model": "set fallback_models in config.toml",
    "--fork-session": "use --fork ID",
    "--format": _JSON,
    "--full-auto": _MODE,
    "--image": _PICTURE,
    "--json-schema": _SCHEMA,
    "--list-models": "tui-agent models lists them",
    "--max-budget-usd": "use --max-cost USD",
    "--max-turns": "use --max-steps N",
    "--mcp-config": "tui-agent mcp add adds a server",
    "--models": "/next-model switches between the models that you used recently",
    "--name": "/rename names the open session",
    "--no-approve": "a project is not trusted unless you say so",
    "--no-builtin-tools": _TOOLS,
    "--no-tools": _TOOLS,
    "--oss": "name a model on your server, such as -m ollama/NAME; tui-agent models lists them",
    "--output-last-message": _ANSWER,
    "--output-schema": _SCHEMA,
    "--permission-mode": _MODE,
    "--profile": "set what differs with options, and what is the same in config.toml",
    "--provider": "name the provider with the model: --model openai/gpt-5",
    "--sandbox": _SANDBOX,
    "--search": "set websearch.service in config.toml",
    "--session": "use -r ID",
    "--session-id": "use -r ID",
    "--skip-git-repo-check": "no repository is needed",
    "--skill": "skills are folders in .tui-agent/skills, and those of other programs are used",
    "--steps": "use --max-steps N",
    "--system-prompt": "write your own into prompts/system.md in the settings directory",
    "--tools": _TOOLS,
    "--thinking": "use --effort LEVEL",
    "--verbose": _JSON,
    "--worktree": _COPIES,
    "--yolo": "use --mode yolo",
}
"""What to use instead of another program's option, by option."""

MODES: Mapping[str, str] = {
    "json": _JSON,
    "rpc": "editors connect with tui-agent acp",
    "text": "-p prints only the answer",
}
"""What to use instead of another program's value of ``--mode``, by value."""

COMMANDS: Mapping[str, str] = {
    "agents": "tui-agent ps lists detached runs",
    "auth": "tui-agent login enters a key",
    "exec": 'tui-agent -p "…" runs without a screen',
    "fork": "tui-agent --fork ID continues in a copy of a session",
    "resume": "tui-agent -c continues the last session, -r picks one",
    "upgrade": "use tui-agent update",
}
"""What to use instead of another program's subcommand, by subcommand."""

_SERVER = "use tui-agent mcp add NAME COMMAND … or NAME URL, or write [mcp.NAME] in config.toml"
MCP_ACTIONS: Mapping[str, str] = {
    "add-from-claude-desktop": "tui-agent adopt lists the servers of other programs that are used",
    "add-json": _SERVER,
    "disable": "set mcp.NAME.enabled to false: tui-agent config set mcp.NAME.enabled false",
    "enable": "set mcp.NAME.enabled to true: tui-agent config set mcp.NAME.enabled true",
    "get": "tui-agent mcp test NAME starts a server and shows what it offers",
    "login": "tui-agent mcp test NAME opens the page for signing in",
    "logout": "/mcp signs out of a server",
}
"""What to use instead of another program's action of ``mcp``, by action."""
