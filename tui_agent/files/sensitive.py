"""Files that are out of the ordinary by their names: they hold secrets, or rule programs. Pure."""

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
"""File names that usually hold secrets. Searches leave them out unless they are named as the
path."""

_SENSITIVE = LazyPattern("|".join(map(fnmatch.translate, SENSITIVE_NAMES)))

HARMLESS_ENDS = (".example", ".sample", ".template", ".dist")
"""How names end that look like the above but are made to be shared."""

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
"""Files other programs execute or obey later, in lower case: changed only when that very file was
allowed."""

INERT_NAMES = listed(
    """
    .gitignore .gitkeep .keep .ignore .dockerignore .npmignore .prettierignore .eslintignore
    .editorconfig .nojekyll package-lock.json npm-shrinkwrap.json pnpm-lock.yaml
    """
)
"""Names with a dot, and of settings, that make no program do anything."""

_SETTINGS = in_order(
    """
    .json .jsonc .json5 .toml .yaml .yml .ini .cfg .conf .properties .plist .xml .pth .desktop
    .code-workspace .sublime-project rust-toolchain sitecustomize.py usercustomize.py
    """
)
"""How names of settings end, in lower case."""

_BARE = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""Entries that make git take a directory for a repository, whatever its name; in lower case, as
some systems do."""
_BARE_NAMES = _BARE[0] | _BARE[1]


def is_sensitive(path: str | os.PathLike[str]) -> bool:
    """Return whether the file's name says that it holds secrets."""
    name = os.path.basename(path).lower()  # noqa: PTH119 - called for every file of a project
    return _SENSITIVE.match(name) is not None and not is_made_to_be_shared(name)


def is_made_to_be_shared(name: str) -> bool:
    """Return whether a file's name says that the secrets in it are made up: ``.env.example``."""
    return name.lower().endswith(HARMLESS_ENDS)


def is_bare_repository(names: Iterable[str]) -> bool:
    """Whether git takes a directory with these entries for a repository, and obeys its settings."""
    held = {name.casefold() for name in names if name.casefold() in _BARE_NAMES}
    return any(needed <= held for needed in _BARE)


def is_of_repository(name: str) -> bool:
    """Whether an entry makes a repository of the directory it is in, or steers that."""
    return name.casefold() in _BARE_NAMES or name.casefold() == "config"


@lru_cache(maxsize=16_384)
def is_repository(name: str) -> bool:
    """Whether a name means a repository's data; case and invisible characters don't count."""
    # Behind a colon Windows names a part of the file, ".git::$INDEX_ALLOCATION".
    plain = "".join(filter(str.isascii, name)).casefold().partition(":")[0]
    return plain.rstrip(". ") in _REPOSITORIES


@lru_cache(maxsize=16_384)
def steers_programs(name: str) -> bool:
    """Whether other programs execute or obey files of this name, or in a directory of this name."""
    return name.lower() in _PROTECTED or is_repository(name)


def may_be_settings(name: str) -> bool:
    """Whether a file's name may be that of settings, which programs look for in a project's root."""
    plain = name.casefold()
    return name not in INERT_NAMES and (plain.endswith((*_SETTINGS, "rc")) or ".config." in plain)


def rules_programs(path: PurePath) -> bool:
    """Return whether a file rules programs: repositories' settings, editors' tasks, our own."""
    return any(map(steers_programs, path.parts))
