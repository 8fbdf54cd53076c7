"""Converts settings that users wrote for other programs (Claude Code, Codex, OpenCode, Pi) to ours."""
