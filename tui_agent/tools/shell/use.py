"""What a command that only reads would look at, and how its options are told from those that do more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tui_agent.tools.shell.words import Word


@dataclass(frozen=True, slots=True)
class Use:
    """What a command that only reads would look at. ``tree``: everything below its paths, hidden files too."""

    paths: tuple[Word, ...] = ()
    contents: bool = True
    tree: Literal["", "visible", "all"] = ""


def refuses(short: str, long: Sequence[str], option: str) -> bool:
    """Return whether an option is, or may be short for, one that does more than read."""
    if option.startswith("--"):
        name = option[2:].partition("=")[0]
        return any(bad.startswith(name) or name.startswith(bad) for bad in long)
    single = option[1:].partition("=")[0]
    return any(letter in short for letter in option[1:]) or any(len(bad) > 1 and single == bad for bad in long)
