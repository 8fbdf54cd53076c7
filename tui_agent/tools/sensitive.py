"""Files that are out of the ordinary by their names: they hold secrets, or rule what programs do. Pure."""

import fnmatch
import os
from functools import lru_cache
from pathlib import PurePath

SENSITIVE_NAMES = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "credentials.json",
)
"""File names that usually hold secrets. Searches leave them out unless they are named as the path."""

HARMLESS_NAMES = ("*.example", "*.sample", "*.template", "*.dist")
"""Names that look like the above but are made to be shared."""

PROTECTED_DIRECTORIES = frozenset({".git", ".tui-agent", ".hg", ".svn", ".jj"})
PROTECTED_NAMES = frozenset({".mcp.json", ".gitmodules", ".gitattributes", ".gitconfig"})
"""What rules the repository or this program: changed only when that very thing was allowed."""


def is_sensitive(path: str | os.PathLike[str]) -> bool:
    """Return whether the file's name says that it holds secrets."""
    return _sensitive_name(os.path.basename(path).lower())  # noqa: PTH119 - called for every search hit


def rules_programs(path: PurePath) -> bool:
    """Return whether a file rules what programs do in the project: the repository's settings, this program's own."""
    return not PROTECTED_DIRECTORIES.isdisjoint(path.parts) or path.name in PROTECTED_NAMES


@lru_cache(maxsize=4_096)
def _sensitive_name(name: str) -> bool:
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in HARMLESS_NAMES):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in SENSITIVE_NAMES)
