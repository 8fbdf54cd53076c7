"""What users wrote for other programs (Claude Code, Codex, OpenCode, Pi), turned into our own forms."""
