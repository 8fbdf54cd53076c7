"""Settings that users wrote for other programs (Claude Code, Codex, OpenCode, Pi), converted to ours."""
