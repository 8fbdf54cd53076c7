"""Converts settings that users wrote for Claude Code, Codex, OpenCode or Pi to this program's."""
