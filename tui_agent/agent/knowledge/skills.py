"""Finds skills in the Agent Skills format and writes the list of them that the head holds.

The format is a folder with a ``SKILL.md`` whose front matter has ``name`` and ``description``
(https://agentskills.io/specification).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tui_agent.agent.knowledge.documents import DocumentError, FileCache
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.tools.skill import Skill

FILE_BYTES = 64 * 1024
"""Bytes of a ``SKILL.md`` that are read."""
NAME_CHARS = 64
DESCRIPTION_CHARS = 1_024
"""Characters the format allows."""
LIST_TOKENS = 2_000
LIST_SHARE = 0.015
"""The list of skills takes at most so many tokens, and at most this share of the window."""
_SHORTEST = 40
"""Characters to which descriptions are cut before skills are left out."""

_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")


def load_skills(folders: Folders, files: FileCache, problems: list[str]) -> dict[str, Skill]:
    """Return the skills by name. Of two with one name the project's wins, and the one nearest to where one works.

    What cannot be used is left out and said in ``problems``.
    """
    found: dict[str, Skill] = {}
    for path in _paths(folders, problems):
        try:
            skill = _skill(path, files)
        except DocumentError as error:
            problems.append(f"Skill {folders.name(path)}: {error}.")
            continue
        if skill is not None:
            found.setdefault(skill.name, skill)
    return dict(sorted(found.items()))


def list_skills(skills: Iterable[Skill], intro: str, budget: int, count: Callable[[str], int]) -> str:
    """Return the section of the head that lists skills in at most ``budget`` tokens; empty when there are none.

    Where they don't fit, descriptions are cut evenly, then skills at the end are left out and counted.
    """
    rows = [(skill.name, skill.description) for skill in skills]
    if not rows:
        return ""
    longest = max(len(description) for _name, description in rows)
    for chars in (longest, 400, 200, 100, _SHORTEST):
        if chars <= longest and count(text := _section(intro, rows, chars)) <= budget:
            return text
    kept = len(rows)
    while kept > 1:
        kept = kept * 4 // 5
        text = _section(intro, rows[:kept], _SHORTEST, left_out=len(rows) - kept)
        if count(text) <= budget:
            return text
    return _section(intro, [], 0, left_out=len(rows))


def _section(intro: str, rows: Sequence[tuple[str, str]], chars: int, left_out: int = 0) -> str:
    lines = [f"- {name}: {_short(description, chars)}" for name, description in rows]
    if left_out:
        lines.append(f"({left_out} more are not listed; the user may name one.)")
    body = "\n".join([intro, *lines])
    return f"<skills>\n{body}\n</skills>"


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1].rstrip()}…"


def _paths(folders: Folders, problems: list[str]) -> Iterator[Path]:
    for folder in (*folders.of_project("skills", problems), *folders.of_user("skills")):
        try:
            inner = sorted(child for child in folder.path.iterdir() if not child.name.startswith("."))
        except OSError:
            continue
        yield from (child / "SKILL.md" for child in inner)


def _skill(path: Path, files: FileCache) -> Skill | None:
    found = files.document(path, FILE_BYTES)
    if found is None:
        return None
    document, file = found
    name = document.text("name") or path.parent.name
    description = document.text("description").replace("</", "<\\/")
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        raise DocumentError(f"the name “{name[:NAME_CHARS]}” must be lower-case letters, digits and hyphens")
    if not description:
        raise DocumentError("the front matter has no description; it says when to use the skill")
    if not document.body:
        raise DocumentError("there is nothing below the front matter")
    body = f"{document.body}\n[Cut at {FILE_BYTES // 1024} KiB.]" if file.cut else document.body
    return Skill(name, description[:DESCRIPTION_CHARS], path.parent, body)
