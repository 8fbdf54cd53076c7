"""Recognises files that contain secrets, control programs or belong to git.

The functions look only at names, not at what the files contain.
"""

import fnmatch
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath

from tui_agent.lazy import LazyPattern
from tui_agent.word_lists import in_order, listed

SENSITIVE_NAMES = in_order(
    """
    .env .env.* *.env .envrc .netrc .npmrc .pypirc .pgpass .git-credentials *.pem *.key *.p8 *.p12
    *.pfx *.jks *.keystore *.kdbx id_rsa id_dsa id_ecdsa id_ed25519 credentials credentials.json
    """
)
"""Glob patterns for the names of files that usually contain secrets.

Searches skip these files unless their path is given.
"""

_SENSITIVE = LazyPattern("|".join(map(fnmatch.translate, SENSITIVE_NAMES)))

HARMLESS_ENDS = (".example", ".sample", ".template", ".dist")
"""Endings of the names of files that are made to be shared and contain no real secrets."""

_REPOSITORIES = frozenset({".git", "git~1", ".hg", ".svn", ".jj", ".sl", ".pijul"})
_PROTECTED = listed(
    """
    .husky .githooks .vscode .idea .zed .fleet .vs .devcontainer .claude .agents .opencode .cursor
    .codex .gemini .windsurf .kiro .tui-agent .roo .kilocode .qwen .amazonq .trae .junie .continue
    .helix .lvimrc .crush .cline .clinerules .goose .goosehints .factory .augment .openhands .pi
    .kimi opencode.json opencode.jsonc crush.json .crush.json .aider.conf.yml .cursorrules .mcp.json
    .envrc .gitmodules .gitattributes .gitconfig .exrc .vimrc .nvimrc .nvim.lua .dir-locals.el
    .dir-locals-2.el .gdbinit .lldbinit
    """
)
"""Names, in lower case, of files and directories that other programs run or read as settings.

A command may change such a file only if the user has allowed it.
"""

_INSTRUCTIONS = listed(
    """
    agents.md agents.override.md claude.md claude.local.md gemini.md context.md
    copilot-instructions.md .windsurfrules
    """
)
"""Names, in lower case, of files with instructions that agents follow."""

INERT_NAMES = listed(
    """
    .gitignore .gitkeep .keep .ignore .dockerignore .npmignore .prettierignore .eslintignore
    .editorconfig .nojekyll package-lock.json npm-shrinkwrap.json pnpm-lock.yaml
    """
)
"""Names of dotfiles and settings files that can't make a program run anything."""

_SETTINGS = in_order(
    """
    .json .jsonc .json5 .toml .yaml .yml .ini .cfg .conf .properties .plist .xml .pth .desktop
    .code-workspace .sublime-project rust-toolchain sitecustomize.py usercustomize.py
    """
)
"""Endings, in lower case, of the names of settings files."""

_BARE = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""Sets of names that mark a repository. The names are in lower case.

If a directory contains all names of one set, git treats it as a repository. On file systems that
ignore case, this is also true for other spellings.
"""
_BARE_NAMES = _BARE[0] | _BARE[1]


def is_sensitive(path: str | os.PathLike[str]) -> bool:
    """Return True if a file with this path usually contains secrets, judging by its name.

    An example is ``.env``.
    """
    name = os.path.basename(path).lower()  # noqa: PTH119 - called for every file of a project
    return _SENSITIVE.match(name) is not None and not is_made_to_be_shared(name)


def is_made_to_be_shared(name: str) -> bool:
    """Return True if a file is a shared example without secrets, such as ``.env.example``.

    Only its name is examined.
    """
    return name.lower().endswith(HARMLESS_ENDS)


def is_bare_repository(names: Iterable[str]) -> bool:
    """Return True if git treats a directory as a repository, judging by the names in it."""
    held = {name.casefold() for name in names if name.casefold() in _BARE_NAMES}
    return any(needed <= held for needed in _BARE)


def is_repository_part(name: str) -> bool:
    """Return True if a name is that of a file or directory that git expects in a git directory.

    These names are ``HEAD``, ``objects``, ``refs``, ``commondir`` and ``config``. Ignores case.
    """
    return name.casefold() in _BARE_NAMES or name.casefold() == "config"


@lru_cache(maxsize=16_384)
def is_repository_name(name: str) -> bool:
    """Return True for the name of a version control directory or file, such as ``.git`` or ``.hg``.

    Ignores case, characters outside ASCII, and endings that Windows ignores.
    """
    # On Windows, text after a colon names a data stream of the file, as in
    # ".git::$INDEX_ALLOCATION".
    plain = "".join(filter(str.isascii, name)).casefold().partition(":")[0]
    return plain.rstrip(". ") in _REPOSITORIES


@lru_cache(maxsize=16_384)
def steers_programs(name: str) -> bool:
    """Return True if other programs run a file with this name, or read settings from it.

    The name may also be that of a directory. Examples are ``.husky``, ``.vscode`` and ``.git``.
    """
    return name.lower() in _PROTECTED or is_repository_name(name)


def instructs_agents(name: str) -> bool:
    """Return True if agents, this program among them, follow the instructions in such a file."""
    return name.lower() in _INSTRUCTIONS


def may_be_settings(name: str) -> bool:
    """Return True if a file with this name in a project's root may contain a program's settings."""
    plain = name.casefold()
    return name not in INERT_NAMES and (plain.endswith((*_SETTINGS, "rc")) or ".config." in plain)


def has_steering_part(path: PurePath) -> bool:
    """Return True if a path has a part that other programs run or read as settings.

    Also returns True for a file with instructions that agents follow.
    """
    return any(map(steers_programs, path.parts)) or instructs_agents(path.name)
