"""Converts users' settings for Claude Code, Codex, OpenCode and Pi to settings for this program."""
