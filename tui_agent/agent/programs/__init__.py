"""Converts users' settings of Claude Code, Codex, OpenCode and Pi to settings of this program."""
