"""Files of a project that make a program run others, though its arguments only ask it to read.

A repository that came in an archive may name programs in its own settings, and a toolchain file may name the compiler
that ``cargo --version`` starts. Such a command asks like any other.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tui_agent.tools.shell.reach import Ground

_STEERING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cargo", "rustc", "rustup", "rustfmt"), ("rust-toolchain", "rust-toolchain.toml")),
    "yarn": (".yarnrc", ".yarnrc.yml"),
    "bundle": ("Gemfile", "gems.rb"),
    "rails": ("bin/rails",),
    "mvn": (".mvn",),
    "sbt": (".sbtopts", ".jvmopts"),
    "dotnet": ("global.json",),
    "poetry": (".poetry",),
    **dict.fromkeys(
        ("pytest", "tox", "nox", "pylint"),
        ("pytest.ini", ".pytest.ini", "toxfile.py", "tox.ini", ".pylintrc", "pylintrc", "setup.cfg", "pyproject.toml"),
    ),
}
"""Files, in a directory or one above it, that decide what a program starts."""
_RUNS = re.compile(
    r"^(?:\s*\[[^\]\n]*\])?\s*(?:fsmonitor|external|textconv|command|driver|clean|smudge|process|program|sshcommand|"
    r"attributesfile)\s*=\s*(?P<value>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_HOOKS_PATH = re.compile(
    r"^(?:\s*\[[^\]\n]*\])?\s*hookspath\s*=\s*\"?(?P<value>[^\"\n]*)", re.IGNORECASE | re.MULTILINE
)
_HOOK = "post-index-change"
"""The one hook that reading may start: git notes in its index what it saw."""
_INCLUDES = re.compile(r"^\s*\[\s*include(?:if)?\b", re.IGNORECASE | re.MULTILINE)
_KNOWN_VALUES = re.compile(r"\"?(?:true|false|1|0|yes|no|on|off|git-lfs (?:clean|smudge|filter-process)[^;&|`$]*|)\"?")


def is_steered(program: str, ground: Ground) -> bool:
    """Whether files of the project make a program run others where it is started. Looks at files."""
    if program == "git":
        return any(map(repository_runs_programs, ground.folders))
    names = _STEERING.get(program, ())
    return any(os.path.lexists(place / name) for name in names for place in _upwards(ground))


def repository_runs_programs(folder: Path) -> bool:
    """Whether the settings of the repository around a folder name programs that reading it would start."""
    return any(map(_names_programs, _configurations(folder)))


def _upwards(ground: Ground) -> Iterator[Path]:
    for folder in ground.folders:
        for place in (folder, *folder.parents):
            if place.is_relative_to(ground.project):
                yield place


def _configurations(folder: Path) -> Iterator[Path]:
    """Yield the settings of the repository a folder is in, and of its submodules."""
    git = next((place / ".git" for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    if git is None:
        return
    try:
        if git.is_file():
            git = (git.parent / git.read_text().removeprefix("gitdir:").strip()).resolve()
        common = git / "commondir"
        whole = (git / common.read_text().strip()).resolve() if common.is_file() else git
        yield from (whole / "config", git / "config.worktree")
        yield from whole.glob("modules/**/config")
    except (OSError, UnicodeDecodeError, ValueError):
        return


def _names_programs(config: Path) -> bool:
    """Whether settings of a repository name a program that reading it would start, or other settings."""
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if _INCLUDES.search(text):
        return True
    text = text.replace("\\\n", "")
    # Of ``modules/name/config`` and ``config.worktree`` too the hooks are where the settings say, or beside them.
    named = (config.parent.parent / found["value"].strip() for found in _HOOKS_PATH.finditer(text))
    if any(os.path.lexists(place / _HOOK) for place in (config.parent / "hooks", *named)):
        return True
    return any(not _KNOWN_VALUES.fullmatch(found["value"].strip()) for found in _RUNS.finditer(text))
