"""The ``skill`` tool: loads the text of a skill that the head only lists by name and description."""

import asyncio
import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic.json_schema import SkipJsonSchema

from tui_agent.context.projection import ModelTraits
from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import Output, finish

MAX_LISTED = 20
"""Files of a skill that are named after its text."""


@frozen
class Skill:
    """A skill: how it is called, when to use it, and the folder of its ``SKILL.md``, None where it is a file alone."""

    name: str
    description: str
    folder: Path | None
    body: str
    fill: Callable[[str, str], str] | None = None
    """Fills typed arguments, the second, into a text."""
    for_model: bool = True
    """Whether the model is told of it and may load it."""
    for_user: bool = True
    """Whether it can be typed as a command."""
    unused: tuple[str, ...] = ()
    """Fields of its file that have no effect here."""

    of_project: bool = False
    """Whether the project brought it along, not the user."""
    origin: str = ""
    """Where its file is, "" for a command that the model may use."""
    file: str = ""
    """Its file, as it is named."""

    def filled(self, text: str, arguments: str) -> str:
        """Return a part of its text with arguments filled in."""
        if self.fill is None:
            return text
        return self.fill(text, arguments)

    def text(self, arguments: str = "") -> str:
        return self.with_files(self.filled(self.body, arguments))

    def with_files(self, body: str) -> str:
        """Return its filled in body with the names of its files."""
        if self.folder is None:
            return body
        lines = [body, "", f"Paths in this skill are relative to {self.folder}"]
        if files := _files(self.folder):
            lines.append(f"Its files: {', '.join(files)}")
        return "\n".join(lines)


class SkillInput(ToolInput):
    """Arguments of ``skill``."""

    name: str
    arguments: SkipJsonSchema[str] = ""
    """Not offered: the model has what a skill is to be used for."""


class SkillTool(Tool[SkillInput]):
    """Gives out skills; ``skills`` returns those there are now, by name.

    Rules may deny or ask for one.

    ``wanted`` says whether a head that is compared or rendered now has the tool; by default it has
    with any skill.
    """

    name = "skill"
    description = "Load a skill's instructions before doing what it is for."
    Input = SkillInput
    traits = ToolTraits(state="text", protected=True)
    read_only = True

    def __init__(
        self, skills: Callable[[], Mapping[str, Skill]], wanted: Callable[[], bool] | None = None
    ) -> None:
        self._skills = skills
        self._wanted = wanted or (lambda: bool(skills()))

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - as inherited
        return self._wanted()

    def needs(self, arguments: SkillInput, context: ToolContext) -> tuple[PermissionNeed, ...]:  # noqa: ARG002 - as inherited
        return (PermissionNeed(Permission.SKILL, _plain_name(arguments)),)

    async def run(self, arguments: SkillInput, context: ToolContext) -> ToolResult:
        skills = self._skills()
        skill = skills.get(_plain_name(arguments))
        if skill is not None and not skill.for_model:
            raise ToolError(
                f"The skill {skill.name} is started by the user alone: /skill:{skill.name}."
            )
        if skill is None:
            names = [name for name, known in skills.items() if known.for_model]
            near = (
                difflib.get_close_matches(arguments.name, names, n=3, cutoff=0.4)
                or sorted(names)[:10]
            )
            raise ToolError(f"There is no skill {arguments.name!r}. Skills: {', '.join(near)}.")
        text = await asyncio.to_thread(skill.text, arguments.arguments)
        return await finish(
            Output(text, skill.name, metadata=ToolMetadata(count=len(text.splitlines()))), context
        )


def _plain_name(arguments: SkillInput) -> str:
    return arguments.name.strip().removeprefix("/skill:")


def _files(folder: Path) -> list[str]:
    found: list[str] = []
    for parent, directories, names in os.walk(folder):
        directories[:] = sorted(name for name in directories if not name.startswith((".", "__")))
        wanted = (name for name in sorted(names) if not name.startswith(".") and name != "SKILL.md")
        found += ((Path(parent) / name).relative_to(folder).as_posix() for name in wanted)
        if len(found) > MAX_LISTED:
            break
    if len(found) > MAX_LISTED:
        return [*found[:MAX_LISTED], "..."]
    return found
