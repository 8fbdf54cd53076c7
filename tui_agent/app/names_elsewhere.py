"""Slash commands of other programs that don't exist here, and what to use instead.

The programs are Claude Code, Codex, OpenCode and Pi.
"""

from collections.abc import Mapping

from tui_agent.permission import NEVER_ASK

_LOCAL = (
    "Everything runs on this machine. /detach lets the agent continue without this terminal, "
    "/export writes a session to a file."
)
_ACCOUNT = "The provider's page shows the account and its plan; /cost shows what was spent here."
_REPORT = (
    "tui-agent doctor prints what a bug report needs, and /export writes the session to a file."
)
_REVIEW = "/review lets the model review uncommitted changes, a branch or a commit."
_SCHEDULE = "/loop sends a message again and again; cron can run tui-agent -p."
_SUBAGENTS = (
    "o on a subagent's tool call shows what the subagent does; /agent chooses the main agent."
)
_DIRECTORY = "/status shows the directory, which a session can't change. To work in another one, start tui-agent there."
_VOICE = "There is no voice input, but your system's dictation can type into the prompt."
_NO_DECORATION = "tui-agent has nothing like that. /theme changes the colours."

ELSEWHERE: Mapping[str, str] = {
    "add-dir": "Add the directory to [sandbox] read or write in config.toml, so that commands can use it.",
    "advisor": "/model picks the model, and /btw asks it a side question.",
    "allowed-tools": "/permissions shows what is allowed, asked and denied.",
    "android": _LOCAL,
    "app": _LOCAL,
    "apps": "/mcp shows MCP servers, /plugin manages plugins.",
    "archive": "/sessions lists sessions: xx deletes one, u restores it.",
    "autocompact": "/settings compaction changes when the history is summarised.",
    "bashes": "/jobs lists the background jobs and stops them.",
    "batch": "/race runs one prompt several times at once in copies of the project.",
    "browser": "An MCP server can drive a browser: /mcp add.",
    "bug": _REPORT,
    "cd": "A session can't change its directory. To work in another one, start tui-agent there.",
    "changelog": "The program's CHANGELOG.md lists what changed.",
    "chrome": "An MCP server can drive a browser: /mcp add.",
    "collab": "/mode changes what the agent may do, /agent chooses an agent.",
    "color": "/theme changes the colours, /rename gives the session a title.",
    "connect": "/login asks for a provider's API key, /model picks a model.",
    "continue": "/sessions opens another session.",
    "daemon": "/detach lets the agent continue without this terminal; tui-agent ps lists such runs.",
    "debug": "/doctor checks the setup and shows warnings; tui-agent --debug logs more.",
    "debug-config": "/settings shows every setting and where it is set.",
    "delete": "/sessions lists sessions: xx deletes one, u restores it.",
    "desktop": _LOCAL,
    "details": "/outputs opens or folds the outputs of all tool calls.",
    "dir": _DIRECTORY,
    "editor": "Ctrl+X Ctrl+E opens the prompt in your editor.",
    "experimental": "/settings shows every setting; none is experimental.",
    "extra-usage": _ACCOUNT,
    "fast": "/effort changes how much the model thinks, /model picks another model.",
    "feedback": _REPORT,
    "fewer-permission-prompts": "/permissions shows the rules, /mode changes what is asked.",
    "focus": "/view switches to what the model sees; /outputs and /thoughts fold those blocks.",
    "heapdump": _REPORT,
    "ide": "Editors connect with the Agent Client Protocol: tui-agent acp.",
    "insights": "/cost shows what a session has cost, and /status shows its state.",
    "install-github-app": _LOCAL,
    "install-slack-app": _LOCAL,
    "ios": _LOCAL,
    "mention": "Type @ and a part of the file's name.",
    "mobile": _LOCAL,
    "multi-agents": _SUBAGENTS,
    "passes": _ACCOUNT,
    "personality": "/style chooses how answers are written.",
    "pet": _NO_DECORATION,
    "pets": _NO_DECORATION,
    "powerup": "/help finds a command, a key or a setting, and /demo shows the program.",
    "pr-comments": "Ask for the comments in a message, and the agent runs gh.",
    "pr_comments": "Ask for the comments in a message, and the agent runs gh.",
    "presets": "/mode and /permissions set what is asked; an agent (/agent) can have its own model, mode and tools.",
    "privacy-settings": _ACCOUNT,
    "pwd": _DIRECTORY,
    "queue": "A message that you send while the agent works waits for its turn.",
    "radio": _NO_DECORATION,
    "rate-limit-options": _ACCOUNT,
    "raw": "Tab and then o open a whole output; /copy copies an answer as Markdown.",
    "rc": _LOCAL,
    "realtime": _VOICE,
    "recap": "Ask for a recap with /btw, which doesn't change the conversation. /status and /diff show where you are.",
    "release-notes": "The program's CHANGELOG.md lists what changed.",
    "reload": "/settings and /model read the settings again, /new reads all files; /mcp reload restarts MCP servers.",
    "reload-plugins": "/new begins a session that reads plugins and skills again.",
    "reload-skills": "/new begins a session that reads plugins and skills again.",
    "remote-control": _LOCAL,
    "remote-env": _LOCAL,
    "rollout": "/export writes the session to a file.",
    "routines": _SCHEDULE,
    "sandbox": "/status shows the sandbox, and /settings sandbox changes it.",
    "sandbox-add-read-dir": "Add the directory to [sandbox] read in config.toml, so that commands can read it.",
    "schedule": _SCHEDULE,
    "scoped-models": "/model lists all models; type a part of a name.",
    "scroll-speed": "The terminal sets how far the wheel scrolls.",
    "security-review": _REVIEW,
    "session": "/status shows model, mode, sandbox, context and cost; /sessions opens another session.",
    "setup-bedrock": "Set the AWS variables and pick a bedrock model with /model; /doctor names what is missing.",
    "setup-default-sandbox": "/doctor checks the sandbox.",
    "setup-vertex": "Set the Google variables and pick a vertex_ai model with /model; /doctor names what is missing.",
    "share": "/export page.html saves the session as one HTML file that you can send to others.",
    "simplify": _REVIEW,
    "statusline": "Set ui.status_line to a command: /settings status_line.",
    "stickers": _NO_DECORATION,
    "stop": "Escape stops the agent, /jobs stop N stops a background job.",
    "subagents": _SUBAGENTS,
    "summarize": "/compact summarises the history.",
    "teleport": _LOCAL,
    "terminal-setup": "Ctrl+J makes a new line in every terminal, and so does Enter after a backslash.",
    "timeline": "/tree shows all branches of the session, /history shows your earlier messages.",
    "title": "/rename gives the session a title.",
    "tp": _LOCAL,
    "tui": "Set ui.plain for plain lines, or ui.reduced_motion: /settings ui.",
    "ultraplan": "/mode plan makes the agent plan first, /plan carries the plan out.",
    "ultrareview": _REVIEW,
    "unarchive": "/sessions lists sessions: xx deletes one, u restores it.",
    "unshare": "/export page.html saves the session as one HTML file; nothing is shared.",
    "update": "Run tui-agent update in a shell.",
    "upgrade": _ACCOUNT,
    "variants": "/effort changes how much the model thinks.",
    "verify": "/check runs a command when work is done and sends failures back to the model.",
    "vim": "/settings vim shows the setting for vi keys.",
    "voice": _VOICE,
    "warnings": "/doctor checks the setup and shows warnings.",
    "web-setup": _LOCAL,
    "workflows": "/goal works until a goal is reached, /race runs a prompt several times, /skills lists skills.",
    "worktree": "/race works in copies of the project, and /fork continues in a copy of the session.",
    "yolo": f"/mode yolo runs everything without asking. For every session: {NEVER_ASK}",
}
"""Hint to show if the user types another program's command, by the name of the command."""
