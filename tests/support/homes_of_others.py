"""A home and four projects with files of other programs; every file has a mark, so that requests can be compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.knowledge import write

HOME: Mapping[str, str] = {
    ".claude/CLAUDE.md": "MARK-home-claude @team.md",
    ".claude/team.md": "MARK-home-import",
    ".claude/rules/own.md": "MARK-home-rule",
    ".codex/AGENTS.md": "MARK-home-codex",
}
PROJECTS: Mapping[str, Mapping[str, str]] = {
    "imports": {
        "CLAUDE.md": "MARK-main\n\nSee @docs/one.md and @~/shared.md.\n\n`@docs/code.md`\n\n<!-- MARK-comment -->\n",
        "docs/one.md": "MARK-import @two.md",
        "docs/two.md": "MARK-nested",
        "docs/code.md": "MARK-code",
        "CLAUDE.local.md": "MARK-local",
        ".claude/rules/all.md": "MARK-rule",
        ".claude/rules/py.md": "---\npaths: '*.py'\n---\nMARK-python-rule",
    },
    "pointer": {"AGENTS.md": "@CLAUDE.md\n", "CLAUDE.md": "MARK-pointed"},
    "override": {"AGENTS.md": "MARK-agents", "AGENTS.override.md": "MARK-override"},
    "inner": {".claude/CLAUDE.md": "MARK-inner"},
}
SENT: Mapping[str, Mapping[str, set[str]]] = {
    "claude": {
        "imports": {
            "home-claude", "home-import", "home-rule", "main", "import", "nested", "local", "rule",
        },
        "pointer": {"home-claude", "home-import", "home-rule", "pointed"},
        "override": {"home-claude", "home-import", "home-rule", "agents"},
        "inner": {"home-claude", "home-import", "home-rule", "inner"},
    },
    "codex": {
        "imports": {"home-codex"},
        "pointer": {"home-codex"},
        "override": {"home-codex", "override"},
        "inner": {"home-codex"},
    },
}  # fmt: skip
"""The marks that a program sends for a message in each project. Claude Code asks about ``~/shared.md`` first."""


@dataclass(frozen=True)
class Places:
    home: Path
    projects: Path


def make_places(tmp_path: Path) -> Places:
    """Write the home and the projects; each project is a repository."""
    places = Places(tmp_path / "home", tmp_path / "projects")
    for name, text in {**HOME, "shared.md": "MARK-shared"}.items():
        write(places.home / name, text)
    for project, files in PROJECTS.items():
        write(places.projects / project / ".git/HEAD", "ref: refs/heads/main\n")
        for folder in ("objects", "refs"):
            (places.projects / project / ".git" / folder).mkdir()
        for name, text in files.items():
            write(places.projects / project / name, text)
    return places


def marks_in(text: str) -> set[str]:
    """Return the marks in a text."""
    return {word.partition("MARK-")[2] for word in _words(text) if "MARK-" in word}


def _words(text: str) -> list[str]:
    plain = "".join(letter if letter.isalnum() or letter == "-" else " " for letter in text)
    return plain.replace("nMARK-", " MARK-").split()


def body_text(body: bytes) -> str:
    """Return a request's texts, escapes taken out."""
    return json.dumps(json.loads(body), ensure_ascii=False).replace("\\n", " ")
