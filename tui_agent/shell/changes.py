"""What commands are known to change: asked about before a run in the sandbox that would be for nothing.

This is never a reason to allow anything: what is not here is asked about when it has failed.
"""

import re
from collections.abc import Sequence

from tui_agent.permission import Change
from tui_agent.shell.words import listed

_REPOSITORY = listed("add commit update-index update-ref gc init fetch")
_BOTH = listed("am checkout cherry-pick merge mv pull rebase reset restore revert rm switch")
"""Subcommands of git that write to the repository, and those that change files, too."""
_FORMATTERS: dict[str, tuple[str, str]] = {
    "ruff": (r"format|--fix", r"--check|--diff"),
    "black": (r"", r"--check|--diff"),
    "isort": (r"", r"-c|--check(-only)?|--diff"),
    "rustfmt": (r"", r"--check"),
    "cargo": (r"fmt|fix|--fix", r"--check"),
    "gofmt": (r"-w", r"-d"),
    "prettier": (r"-w|--write", r"--check"),
    "eslint": (r"--fix", r"--fix-dry-run"),
    "sed": (r"-i|--in-place", r"(?!)"),
}
"""A word with which a program rewrites files, "" for none that is needed, and one with which it only looks."""


def changes_of(words: Sequence[str | None]) -> tuple[Change, ...]:
    """Return what a simple command is known to change beyond build output."""
    program, *rest = [word or "" for word in words] or [""]
    if program in {"npx", "bunx"} and rest:
        program, *rest = rest
    if program == "git":
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in {"-c", "-C"} else rest[1:]
        name = rest[0] if rest else ""
        return ("repository", "sources") if name in _BOTH else ("repository",) if name in _REPOSITORY else ()
    if program not in _FORMATTERS:
        return ()
    rewrites, looks = _FORMATTERS[program]
    meant = not rewrites or any(re.fullmatch(rewrites, word) for word in rest)
    return ("sources",) if meant and not any(re.fullmatch(looks, word) for word in rest) else ()
