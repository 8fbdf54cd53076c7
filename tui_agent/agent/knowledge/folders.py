"""Where instructions, skills, commands and agents are looked for, and how the files found there are named."""

import os
from pathlib import Path

from tui_agent.files.inside import is_inside
from tui_agent.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Folders:
    """The places of one session. ``config`` is the user's config directory, ``home`` their home directory."""

    cwd: Path
    project: Path
    config: Path
    home: Path

    def upward(self) -> tuple[Path, ...]:
        """Return the directories from the working directory up to the project's root, nearest first."""
        found: list[Path] = []
        for folder in (self.cwd, *self.cwd.parents):
            found.append(folder)
            if folder == self.project:
                return tuple(found)
        return (self.cwd,)

    def of_project(self, kind: str, parents: tuple[str, ...], problems: list[str]) -> tuple[Path, ...]:
        """Return the project's folders of a kind (``skills``), nearest first; ``parents`` are names as ``.claude``.

        Folders that are the user's own anyway, because the project is their home directory, are left out; so are
        links out of the project, which ``problems`` says.
        """
        own = set(self.of_user(kind, parents))
        folders = [folder / parent / kind for folder in self.upward() for parent in parents]
        theirs = [folder for folder in folders if folder not in own and os.path.lexists(folder)]
        for folder in theirs:
            if not is_inside(self.project, folder):
                real = os.path.realpath(folder)
                problems.append(f"{self.name(folder)}: left out, as it leads out of the project, to {real}.")
        return tuple(folder for folder in theirs if is_inside(self.project, folder))

    def of_user(self, kind: str, parents: tuple[str, ...] = ()) -> tuple[Path, ...]:
        """Return the user's folders of a kind: the config directory's first, then those in their home."""
        return (self.config / kind, *(self.home / parent / kind for parent in parents))

    def name(self, path: Path) -> str:
        """Return a path as people and models read it: relative to the project, below ``~``, or absolute."""
        if path.is_relative_to(self.project):
            return path.relative_to(self.project).as_posix()
        if path.is_relative_to(self.home):
            return f"~/{path.relative_to(self.home).as_posix()}"
        return path.as_posix()
