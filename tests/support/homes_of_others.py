"""Homes and projects with files of other programs; every file has a mark, so that requests can be compared.

``PLAIN`` has the files that people have. ``ODD`` has the same kinds in every way that their formats
allow: files in folders of folders, links, Windows line ends, marks of byte order, YAML that is none,
comments and unknown keys in JSON, empty files.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SERVER = Path(__file__).with_name("marked_server.py")
"""A server whose one tool is described by the mark that it is started with."""
_BOM = "\ufeff"


def _windows(text: str) -> str:
    return _BOM + text.replace("\n", "\r\n")


def _document(mark: str, **fields: str) -> str:
    rows = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\n{rows}description: MARK-{mark}\n---\nBody.\n"


def _command(mark: str) -> list[str]:
    return ["python3", str(SERVER), f"MARK-{mark}"]


def _row(mark: str) -> dict[str, object]:
    program, *arguments = _command(mark)
    return {"command": program, "args": arguments}


def _servers(**marks: str) -> str:
    return json.dumps({"mcpServers": {name: _row(mark) for name, mark in marks.items()}})


def _codex_servers(**marks: str) -> str:
    rows = (
        f"[mcp_servers.{name}]\ncommand = 'python3'\nargs = {_command(mark)[1:]}\nstartup_timeout_sec = 60\n"
        for name, mark in marks.items()
    )
    return "".join(rows)


def _local(mark: str) -> dict[str, object]:
    return {"type": "local", "command": _command(mark), "enabled": True}


def _codex_agent(name: str, mark: str) -> str:
    return f'name = "{name}"\ndescription = "MARK-{mark}"\ndeveloper_instructions = "Work."\n'


@dataclass(frozen=True)
class Fixture:
    """``sent`` are the marks that a program sends for a message, by program and project.

    ``common`` are those that it sends in every project. ``links`` lead from a path to another; both
    are relative to the fixture's root.
    """

    home: Mapping[str, str]
    projects: Mapping[str, Mapping[str, str]]
    common: Mapping[str, str]
    sent: Mapping[str, Mapping[str, str]]
    links: Mapping[str, str] = field(default_factory=dict)

    def expected(self, program: str, project: str) -> set[str]:
        own = self.sent.get(program, {}).get(project, "")
        return {*self.common[program].split(), *own.split()}


PLAIN = Fixture(
    home={
        ".claude/CLAUDE.md": "MARK-home-claude @team.md",
        ".claude/team.md": "MARK-home-import",
        ".claude/rules/own.md": "MARK-home-rule",
        ".claude/agents/deep/own.md": _document("home-agent", name="own"),
        ".claude/skills/tidy/SKILL.md": _document("home-skill", name="tidy"),
        ".claude/commands/fix.md": _document("home-command"),
        ".claude.json": _servers(own="home-server"),
        ".codex/AGENTS.md": "MARK-home-codex",
        ".codex/config.toml": _codex_servers(cx="codex-server"),
        ".codex/skills/cx/SKILL.md": _document("codex-skill", name="cx"),
        ".codex/agents/cx.toml": _codex_agent("cx", "codex-agent"),
        ".agents/skills/shared/SKILL.md": _document("shared-skill", name="shared"),
        ".config/opencode/AGENTS.md": "MARK-home-opencode",
        ".config/opencode/opencode.json": json.dumps(
            {
                "instructions": ["~/more.md"],
                "mcp": {"oc": _local("opencode-server")},
                "agent": {
                    "oc": {"description": "MARK-opencode-agent", "mode": "subagent", "prompt": "x"}
                },
            }
        ),
        ".config/opencode/agent/file.md": _document("opencode-file", mode="subagent"),
        ".config/opencode/skill/oc/SKILL.md": _document("opencode-skill", name="oc"),
        "more.md": "MARK-opencode-more",
        ".pi/agent/AGENTS.md": "MARK-home-pi",
        ".pi/agent/APPEND_SYSTEM.md": "MARK-pi-append",
        ".pi/agent/skills/pi/SKILL.md": _document("pi-skill", name="pi"),
        ".pi/agent/skills/flat.md": _document("pi-flat", name="flat"),
        "shared.md": "MARK-shared",
    },
    projects={
        "imports": {
            "CLAUDE.md": "MARK-main\n\nSee @docs/one.md and @~/shared.md.\n\n`@docs/code.md`\n\n"
            "<!-- MARK-comment -->\n",
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
        "equipped": {
            "AGENTS.md": "MARK-agents",
            ".claude/agents/sub/a.md": _document("agent", name="a"),
            ".claude/skills/s/SKILL.md": _document("skill", name="s"),
            ".claude/commands/git/c.md": _document("command"),
            ".mcp.json": _servers(m="server"),
            ".codex/config.toml": _codex_servers(pcx="project-codex-server"),
            ".codex/skills/pcx/SKILL.md": _document("project-codex-skill", name="pcx"),
            ".codex/agents/pcx.toml": _codex_agent("pcx", "project-codex-agent"),
            ".agents/skills/pshared/SKILL.md": _document("project-skill", name="pshared"),
            "opencode.json": json.dumps(
                {
                    "instructions": ["docs/*.md"],
                    "mcp": {"poc": _local("project-opencode-server")},
                    "command": {"poc": {"template": "x"}},
                }
            ),
            "docs/a.md": "MARK-opencode-docs",
            ".opencode/agents/poc.md": _document("project-opencode-agent", mode="subagent"),
            ".opencode/skills/poc/SKILL.md": _document("project-opencode-skill", name="poc"),
            ".pi/APPEND_SYSTEM.md": "MARK-project-append",
            ".pi/skills/pp/SKILL.md": _document("project-pi-skill", name="pp"),
        },
    },
    common={
        "claude": "home-claude home-import home-rule home-agent home-skill home-command",
        "codex": "home-codex codex-server codex-skill codex-agent shared-skill",
        "opencode": "home-opencode opencode-more opencode-server opencode-agent opencode-file"
        " opencode-skill home-skill shared-skill",
        "pi": "home-pi pi-skill pi-flat shared-skill",
    },
    sent={
        "claude": {
            "imports": "main import nested local rule",
            "pointer": "pointed",
            "override": "agents",
            "inner": "inner",
            "equipped": "agents agent skill command",
        },
        "codex": {
            "override": "override",
            "equipped": "agents project-codex-server project-codex-skill project-codex-agent"
            " project-skill",
        },
        "opencode": {
            "imports": "main comment",
            "override": "agents",
            "equipped": "agents opencode-docs project-opencode-server project-opencode-agent"
            " project-opencode-skill project-skill skill",
        },
        "pi": {
            "imports": "main comment pi-append",
            "pointer": "pi-append",
            "override": "override pi-append",
            "inner": "pi-append",
            "equipped": "agents project-append project-pi-skill project-skill",
        },
    },
)
"""Claude Code asks about ``~/shared.md`` first."""

ODD = Fixture(
    home={
        ".claude/CLAUDE.md": _windows("MARK-claude\n\n- see @deep/1.md\n"),
        ".claude/deep/1.md": "MARK-hop-1\n@2.md",
        ".claude/deep/2.md": "MARK-hop-2 @./3.md",
        ".claude/deep/3.md": "MARK-hop-3 @4.md",
        ".claude/deep/4.md": "MARK-hop-4 @5.md",
        ".claude/deep/5.md": "MARK-hop-5",
        ".claude/rules/a/b/c.md": _windows("MARK-nested-rule\n"),
        ".claude/rules/windows.md": _windows("---\npaths: ['**/*.zig']\n---\nMARK-zig-rule\n"),
        ".claude/rules/no-paths.md": "---\npaths:\n---\nMARK-no-paths\n",
        ".claude/rules/star.md": "---\npaths: '**'\n---\nMARK-star-rule\n",
        ".claude/rules/open.md": "---\nMARK-open-front\n",
        ".claude/rules/empty.md": "",
        ".claude/rules/note.txt": "MARK-text-rule",
        "elsewhere/rule.md": "MARK-linked-rule",
        "elsewhere/rules/r.md": "MARK-linked-rules",
        ".claude/skills/windows/SKILL.md": _windows(_document("windows-skill", name="windows")),
        ".claude/skills/colon/SKILL.md": _document("colon-skill: as in, one", name="colon"),
        ".claude/skills/block/SKILL.md": "---\nname: block\ndescription: >-\n  folded\n"
        "  MARK-block-skill\nunknown: {a: [1, 2]}\n---\nx\n",
        ".claude/skills/words/SKILL.md": _document("words-skill", name="My Skill"),
        ".claude/skills/bare/SKILL.md": "# MARK-bare-skill\n\nBody.\n",
        ".claude/skills/empty/SKILL.md": "",
        ".claude/skills/a/b/SKILL.md": _document("inner-skill", name="inner"),
        ".claude/agents/windows.md": _windows(
            _document("windows-agent", name="win", tools="[Read, 'Bash(git *)']", unknown="1")
        ),
        ".claude/agents/colon.md": _document("colon-agent: as in, one", name="colon-agent"),
        ".claude/agents/words.md": _document("words-agent", name="two words"),
        ".claude/agents/bare.md": "---\nname: bare\n---\nMARK-bare-agent\n",
        ".claude/commands/a/b/deep.md": _document("deep-command"),
        ".claude/commands/alone.md": "MARK-bare-command",
        ".claude/commands/empty.md": "",
        ".claude/commands/own.md": "---\ndescription: MARK-own\n"
        "disable-model-invocation: true\n---\nx",
        ".codex/AGENTS.md": "",
        ".codex/config.toml": 'unknown = 3\nproject_doc_fallback_filenames = ["TEAM.md"]\n'
        + _codex_servers(cx="codex-server"),
        ".codex/agents/nested/n.toml": _codex_agent("nested", "codex-agent"),
        ".codex/skills/a/b/SKILL.md": _document("codex-skill", name="cx"),
        ".config/opencode/opencode.jsonc": "// mine\n"
        + json.dumps(
            {
                "instructions": ["~/oc/*.md"],
                "unknown": 1,
                "mcp": {"oc": _local("opencode-server")},
                "agent": {"oc": {"description": "MARK-opencode-agent", "mode": "subagent"}},
            }
        ).replace("}}}", "},},}  /* end */"),
        "oc/x.md": _windows("MARK-opencode-more\n"),
        ".config/opencode/config.json": json.dumps(
            {"agent": {"old": {"description": "MARK-opencode-old", "mode": "subagent"}}}
        ),
        ".config/opencode/agents/sub/deep.md": _document("opencode-deep", mode="subagent"),
        ".opencode/agent/dot.md": _document("opencode-dot", mode="subagent"),
        ".config/opencode/skills/a/b/SKILL.md": _document("opencode-skill", name="oc"),
        ".pi/agent/CLAUDE.md": _windows("MARK-pi-claude\n"),
        ".pi/agent/skills/README.md": "MARK-pi-note",
        ".pi/agent/skills/a/b/SKILL.md": _document("pi-skill", name="pi"),
        ".agents/skills/x/SKILL.md": _document("shared-skill", name="shared"),
    },
    projects={
        "bare": {"src/a.zig": "x"},
        "team": {"TEAM.md": "MARK-team"},
        "links": {
            "CLAUDE.md": _windows("MARK-main\n@docs/a.md\n"),
            "docs/a.md": "MARK-import",
            "real/rule.md": "MARK-project-rule",
            "real/rules/r.md": "MARK-project-rules",
            "real/skill/SKILL.md": _document("project-skill", name="linked"),
            "real/agent.md": _document("project-agent", name="linked"),
            "CLAUDE.local.md": "",
            ".claude/rules/sub/deep/x.md": "MARK-deep-rule",
        },
        "empty": {"AGENTS.md": " \n", "CLAUDE.md": "MARK-main"},
        "both": {
            "AGENTS.md": "MARK-agents",
            "CLAUDE.md": "MARK-main @AGENTS.md",
            ".claude/CLAUDE.md": "MARK-inner",
        },
        "loose/inner": {
            "CLAUDE.md": "MARK-main",
            "../CLAUDE.md": "MARK-loose",
            "../.claude/rules/r.md": "MARK-loose-rule",
            "../.claude/skills/s/SKILL.md": _document("loose-skill", name="s"),
            "../.agents/skills/a/SKILL.md": _document("loose-shared", name="a"),
        },
        "deep/sub": {
            "CLAUDE.md": "MARK-below",
            "../CLAUDE.md": "MARK-above",
            "../.mcp.json": _servers(above="server-above"),
            ".mcp.json": _servers(below="server-below"),
            "../.claude/agents/a.md": _document("agent-above", name="above"),
            ".claude/skills/b/SKILL.md": _document("skill-below", name="below"),
            ".codex/config.toml": _codex_servers(sub="codex-below"),
            "opencode.json": json.dumps({"instructions": ["note.md"]}),
            "note.md": "MARK-note-below",
            "../note.md": "MARK-note-above",
        },
    },
    common={
        "claude": "claude hop-1 hop-2 hop-3 hop-4 nested-rule no-paths star-rule open-front"
        " linked-rule linked-rules windows-skill colon-skill block-skill words-skill bare-skill"
        " windows-agent colon-agent words-agent deep-command bare-command",
        "codex": "codex-server codex-agent codex-skill shared-skill",
        "opencode": "claude opencode-old opencode-dot opencode-server opencode-agent"
        " opencode-more opencode-deep opencode-skill shared-skill windows-skill"
        " colon-skill block-skill inner-skill words-skill",
        "pi": "pi-claude pi-skill shared-skill",
    },
    sent={
        "claude": {
            "links": "main import project-rule project-rules project-skill project-agent deep-rule",
            "empty": "main",
            "both": "main agents inner",
            "loose/inner": "main loose loose-rule loose-skill",
            "deep/sub": "below above agent-above skill-below",
        },
        "codex": {"team": "team", "links": "main", "both": "agents", "deep/sub": "codex-below"},
        "opencode": {
            "links": "main project-skill",
            "both": "agents",
            "loose/inner": "main loose loose-skill loose-shared",
            "deep/sub": "below above note-below note-above skill-below",
        },
        "pi": {
            "links": "main",
            "both": "agents",
            "loose/inner": "main loose loose-shared",
            "deep/sub": "below above",
        },
    },
    links={
        "home/.claude/rules/link.md": "home/elsewhere/rule.md",
        "home/.claude/rules/folder": "home/elsewhere/rules",
        "projects/links/AGENTS.md": "projects/links/CLAUDE.md",
        "projects/links/.claude/rules/l.md": "projects/links/real/rule.md",
        "projects/links/.claude/rules/d": "projects/links/real/rules",
        "projects/links/.claude/rules/gone.md": "projects/links/nothing.md",
        "projects/links/.claude/skills/linked": "projects/links/real/skill",
        "projects/links/.claude/agents/l.md": "projects/links/real/agent.md",
    },
)
FIXTURES: Mapping[str, Fixture] = {"plain": PLAIN, "odd": ODD}
CASES = [(name, project) for name, fixture in FIXTURES.items() for project in fixture.projects]
PROGRAMS = ("claude", "codex", "opencode", "pi")


@dataclass(frozen=True)
class Places:
    home: Path
    projects: Path


def make_places(tmp_path: Path, fixture: Fixture) -> Places:
    """Write the home and the projects; each project is a repository, but for the loose one."""
    places = Places(tmp_path / "home", tmp_path / "projects")
    _write(places.home, fixture.home)
    for project, files in fixture.projects.items():
        root = places.projects / project.partition("/")[0]
        if root.name != "loose":
            _write(root, {".git/HEAD": "ref: refs/heads/main\n"})
            for folder in ("objects", "refs"):
                (root / ".git" / folder).mkdir()
        _write(places.projects / project, files)
    for link, target in fixture.links.items():
        path = tmp_path / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(tmp_path / target, path.parent))
    return places


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = Path(os.path.normpath(folder / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def marks_in(text: str) -> set[str]:
    """Return the marks in a text."""
    return {word.partition("MARK-")[2] for word in _words(text) if "MARK-" in word}


def _words(text: str) -> list[str]:
    plain = "".join(letter if letter.isalnum() or letter == "-" else " " for letter in text)
    return plain.replace("nMARK-", " MARK-").split()


def body_text(body: bytes) -> str:
    """Return a request's texts, escapes taken out."""
    return json.dumps(json.loads(body), ensure_ascii=False).replace("\\n", " ")
