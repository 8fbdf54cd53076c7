"""Options, modes and subcommands of other programs, and what to use here instead.

The programs are Claude Code, Codex, OpenCode and Pi.
"""

from collections.abc import Mapping

_JSON = "--json prints one event per line"
_MODE = "use --mode plan, --mode auto-edit or --mode yolo"
_RULE = "use --allow RULE, such as 'bash:make *'"
_PLACES = "set read and write of [sandbox] in config.toml"

_TOOLS = "list the tools in an agent's file, agents/NAME.md, and use --mode NAME"
_NO_TOOL = "use --deny RULE"

_PICTURE = "name the picture in the prompt: @picture.png"
_COPIES = "--race works in copies of the project"
_ANSWER = "-p prints only the answer: send it to a file with > FILE"
_SANDBOX = "set sandbox.mode in config.toml"

_PROFILE = "use options for what changes from run to run, and config.toml for the rest"
_RUN = 'tui-agent -p "…" runs without a screen'
_RESUME = "tui-agent -c continues the last session, -r picks one"
_CONTINUED_RUN = (
    'tui-agent -c -p "…" continues the last session without a screen, -r ID continues another one'
)
_EVENTS_OF_RUN = 'tui-agent -p "…" --json prints one event per line'
_ANSWER_OF_RUN = 'tui-agent -p "…" > FILE writes the answer to a file'
_REVIEW = "/review lets the model review changes: tui-agent -p /review"
_PLUGINS = "tui-agent plugin add FOLDER or GIT-URL adds a plugin, list and remove manage them"
_SESSIONS = "tui-agent sessions list, export, import and delete manage sessions"
_SERVER_PROGRAM = "editors connect with tui-agent acp, scripts use tui-agent -p --json"
_LOCAL = "everything runs on this machine; tui-agent run --detach works without this terminal"
_GIT = "the agent runs git and gh as commands: ask for it in the prompt"
_SETTINGS = "tui-agent config get lists the settings"
_CHECK = "tui-agent doctor checks the setup, --debug logs more"
_LOGIN = "tui-agent login asks for an API key"
_KEPT = "sessions are kept until you delete them with tui-agent sessions delete"

OPTIONS: Mapping[str, str] = {
    "-C": "use --cwd DIR",
    "-a": _MODE,
    "-i": _PICTURE,
    "-o": _ANSWER,
    "-s": _SANDBOX,
    "-w": _COPIES,
    "--add-dir": _PLACES,
    "--agents": "agents are Markdown files in .tui-agent/agents",
    "--allowed-tools": _RULE,
    "--allowedTools": _RULE,
    "--append-system-prompt": "write it into AGENTS.md",
    "--approve": "--trust uses this project's settings and commands",
    "--ask-for-approval": _MODE,
    "--bare": "-p prints only the answer",
    "--cd": "use --cwd DIR",
    "--color": "set NO_COLOR to switch colours off",
    "--config": "tui-agent config set KEY VALUE saves a setting, and TUI_AGENT_KEY sets it for one run",
    "--dangerously-bypass-approvals-and-sandbox": _MODE,
    "--dangerously-bypass-hook-trust": "--trust uses this project's settings and commands",
    "--dangerously-skip-permissions": _MODE,
    "--disable": _SETTINGS,
    "--disallowed-tools": "use --deny RULE",
    "--disallowedTools": "use --deny RULE",
    "--enable": _SETTINGS,
    "--ephemeral": "use --no-session",
    "--exclude-tools": _NO_TOOL,
    "--export": "tui-agent sessions export writes a session to a file",
    "--fallback-model": "set fallback_models in config.toml",
    "--file": "name the file in the prompt: @FILE",
    "--fork-session": "use --fork ID",
    "--format": _JSON,
    "--full-auto": _MODE,
    "--image": _PICTURE,
    "--input-format": "pipe the prompt in; editors connect with tui-agent acp",
    "--json-schema": "use --output-schema FILE",
    "--last": "use -c",
    "--list-models": "tui-agent models lists them",
    "--local-provider": "name a model of your own server, such as -m ollama/NAME; tui-agent models lists them",
    "--max-budget-usd": "use --max-cost USD",
    "--max-turns": "use --max-steps N",
    "--mcp-config": "tui-agent mcp add adds a server",
    "--models": "/next-model switches between the models that you used recently",
    "--name": "/rename names the open session",
    "--no-alt-screen": "set ui.plain: tui-agent config set ui.plain true",
    "--no-approve": "a project is not trusted unless you say so",
    "--no-builtin-tools": _TOOLS,
    "--no-tools": _TOOLS,
    "--oss": "name a model on your server, such as -m ollama/NAME; tui-agent models lists them",
    "--output-last-message": _ANSWER,
    "--permission-mode": _MODE,
    "--profile": _PROFILE,
    "--prompt": 'the prompt is an argument: tui-agent "…"',
    "--provider": "name the provider with the model: --model openai/gpt-5",
    "--remote": _LOCAL,
    "--sandbox": _SANDBOX,
    "--search": "set websearch.service in config.toml",
    "--session": "use -r ID",
    "--session-id": "use -r ID",
    "--setting-sources": "--trust uses a project's settings; tui-agent adopt lists other programs' files",
    "--settings": "settings are in config.toml; TUI_AGENT_CONFIG_DIR names another directory",
    "--share": "tui-agent sessions export saves a session as one HTML file that you can send to others",
    "--skill": "skills are folders in .tui-agent/skills; skills of other programs are used, too",
    "--skip-git-repo-check": "no repository is needed",
    "--steps": "use --max-steps N",
    "--system-prompt": "write your own into prompts/system.md in the settings directory",
    "--thinking": "use --effort LEVEL",
    "--title": "/rename names the open session",
    "--tools": _TOOLS,
    "--verbose": _JSON,
    "--worktree": _COPIES,
    "--yolo": "use --mode yolo",
}
"""What to use here for each option that only other programs know."""

MODES: Mapping[str, str] = {
    "json": _JSON,
    "rpc": "editors connect with tui-agent acp",
    "text": "-p prints only the answer",
}
"""What to use here for each value of ``--mode`` that only other programs know."""

COMMANDS: Mapping[str, str] = {
    "agent": "agents are Markdown files in .tui-agent/agents; --mode NAME uses one",
    "agents": "tui-agent ps lists detached runs",
    "app": "there is no desktop program; " + _LOCAL,
    "app-server": _SERVER_PROGRAM,
    "apply": "the changes are in the project already; tui-agent result prints them as a patch",
    "archive": _KEPT,
    "auth": _LOGIN,
    "cloud": _LOCAL,
    "daemon": _LOCAL,
    "debug": _CHECK,
    "delete": _KEPT,
    "exec": _RUN,
    "exec --json": _EVENTS_OF_RUN,
    "exec --last": _CONTINUED_RUN,
    "exec --output-last-message": _ANSWER_OF_RUN,
    "exec -o": _ANSWER_OF_RUN,
    "exec resume": _CONTINUED_RUN,
    "exec review": _REVIEW,
    "exec-server": _SERVER_PROGRAM,
    "execpolicy": "rules are in [permissions] of config.toml, and /permissions shows them",
    "export": _SESSIONS,
    "features": _SETTINGS,
    "fork": "tui-agent --fork ID continues in a copy of a session",
    "github": _GIT,
    "import": _SESSIONS,
    "install": _PLUGINS,
    "list": _PLUGINS,
    "mcp-server": "this program is not an MCP server; " + _SERVER_PROGRAM,
    "plugins": _PLUGINS,
    "pr": _GIT,
    "project": _SESSIONS,
    "providers": _LOGIN,
    "purge": _KEPT,
    "queue": "a message that you send while the agent works waits for its turn; " + _LOCAL,
    "remote": _LOCAL,
    "remote-control": _LOCAL,
    "remove": _PLUGINS,
    "respawn": "tui-agent run --detach starts a run, attach shows it",
    "resume": _RESUME,
    "review": _REVIEW,
    "rm": "tui-agent stop ends a detached run; " + _KEPT,
    "sandbox": "commands run in the sandbox; /outside runs one without it, tui-agent doctor checks the sandbox",
    "serve": _SERVER_PROGRAM,
    "setup-token": _LOGIN,
    "stats": "tui-agent cost shows what a session has cost",
    "ultrareview": _REVIEW,
    "unarchive": _KEPT,
    "uninstall": _PLUGINS,
    "upgrade": "use tui-agent update",
    "web": _SERVER_PROGRAM,
}
"""What to use here for each subcommand that only other programs know.

A key of two words consists of a subcommand and the word or option that follows it.
"""

CONFIG_KEYS: Mapping[str, str] = {
    "approval_policy": _MODE,
    "features": _SETTINGS,
    "mcp_servers": "tui-agent mcp add adds a server",
    "model": "use -m PROVIDER/MODEL",
    "model_provider": "name the provider with the model: -m PROVIDER/MODEL",
    "model_providers": "write [providers.NAME] in config.toml",
    "model_reasoning_effort": "use --effort LEVEL",
    "profile": _PROFILE,
    "sandbox_mode": _SANDBOX,
}
"""What to use here instead of Codex's ``-c KEY=VALUE``, by the first part of the key."""

_SERVER = "use tui-agent mcp add NAME COMMAND … or NAME URL, or write [mcp.NAME] in config.toml"
MCP_ACTIONS: Mapping[str, str] = {
    "add-from-claude-desktop": "tui-agent adopt lists the MCP servers that it uses from other programs",
    "add-json": _SERVER,
    "disable": "set mcp.NAME.enabled to false: tui-agent config set mcp.NAME.enabled false",
    "enable": "set mcp.NAME.enabled to true: tui-agent config set mcp.NAME.enabled true",
    "get": "tui-agent mcp test NAME starts a server and shows what it offers",
    "login": "tui-agent mcp test NAME opens the page for signing in",
    "logout": "/mcp signs out of a server",
}
"""What to use here for each action of ``mcp`` that only other programs know."""
