"""Slash commands of Claude Code, Codex and Pi that don't exist here, and what to use instead."""

from collections.abc import Mapping

ELSEWHERE: Mapping[str, str] = {
    "add-dir": "Add the directory to [sandbox] read or write in config.toml, so that commands reach it.",
    "archive": "/sessions lists sessions: xx deletes one, u restores it.",
    "autocompact": "/settings compaction changes when the history is summarised.",
    "bashes": "/jobs lists the background jobs and stops them.",
    "bug": "tui-agent doctor prints what a report needs, and /export writes the session to a file.",
    "cd": "A session stays in its directory: start tui-agent in the other one.",
    "changelog": "CHANGELOG.md of the program lists what changed.",
    "delete": "/sessions lists sessions: xx deletes one, u restores it.",
    "fast": "/effort changes how much the model thinks, /model picks another one.",
    "feedback": "tui-agent doctor prints what a report needs, and /export writes the session to a file.",
    "hooks": "tui-agent doctor lists the hooks; they are written in config.toml.",
    "ide": "Editors connect with the Agent Client Protocol: tui-agent acp.",
    "mention": "Type @ and a part of the file's name.",
    "presets": "/agent chooses an agent, which can have its own model, mode and tools.",
    "raw": "Tab and o open a whole output, /copy copies an answer's source.",
    "release-notes": "CHANGELOG.md of the program lists what changed.",
    "reload": "/settings and /model read the settings again, /new all files; /mcp reload restarts the MCP servers.",
    "sandbox": "/status shows the sandbox, and /settings sandbox changes it.",
    "scoped-models": "/model lists all models; type a part of a name.",
    "share": "/export page.html writes a page that needs no server.",
    "statusline": "Set ui.status_line to a command: /settings status_line.",
    "stop": "Escape stops the agent, /jobs stop N a background job.",
    "terminal-setup": "Ctrl+J makes a new line in every terminal, and so does Enter after a backslash.",
    "update": "Run tui-agent update in a shell.",
    "vim": "/settings vim switches the vi keys on.",
    "worktree": "/race works in copies of the project, and /fork continues in a copy of the session.",
    "yolo": "/mode yolo runs everything without asking.",
}
"""Hint to show for each command, by its name in the other program."""
