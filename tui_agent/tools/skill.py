"""The ``skill`` tool: gives the model the full text of a skill whose name it knows.

Also defines `Skill`; the agent reads skills from files.
"""

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
"""Maximum number of a skill's files that are listed below the skill's text."""


@frozen
class Skill:
    """Instructions for a kind of task, which the model or the user can load by name.

    ``folder`` contains ``SKILL.md`` and other files of the skill; None if the skill is a single
    file. ``body`` is the skill's text with placeholders for arguments.
    """

    name: str
    description: str
    folder: Path | None
    body: str
    fill: Callable[[str, str], str] | None = None
    """Function that takes a text and the arguments as the user typed them, and returns the text
    with its placeholders replaced. None if the skill has no placeholders."""
    for_model: bool = True
    """Whether the model may load the skill."""
    for_user: bool = True
    """Whether the user can start the skill as a command."""
    unused: tuple[str, ...] = ()
    """Fields in the front matter of the skill's file that have no effect in this program."""

    of_project: bool = False
    """Whether the skill belongs to the project, not to the user."""
    origin: str = ""
    """The skill's folder, as it is shown to the user. "" for a slash command that the model may use
    as a skill."""
    program: str = ""
    """If the skill is in a folder of another program, the name of that program; otherwise ""."""
    file: str = ""
    """Name of the skill's file, as it is shown to the user. "" for a slash command."""

    def filled(self, text: str, arguments: str) -> str:
        """Return a part of the skill's text with its placeholders replaced with the arguments."""
        if self.fill is None:
            return text
        return self.fill(text, arguments)

    def text(self, arguments: str = "") -> str:
        """Return the skill's text for the model, with arguments filled in, and the skill's files.

        The method lists the skill's folder, so call it in a thread.
        """
        return self.with_files(self.filled(self.body, arguments))

    def with_files(self, body: str) -> str:
        """Return a filled text of the skill, followed by the skill's folder and files.

        ``body`` is the text, in which the placeholders are already filled.
        """
        if self.folder is None:
            return body
        lines = [body, "", f"Paths in this skill are relative to {self.folder}"]
        if files := _files(self.folder):
            lines.append(f"Its files: {', '.join(files)}")
        return "\n".join(lines)


class SkillInput(ToolInput):
    """Arguments of the ``skill`` tool."""

    name: str
    arguments: SkipJsonSchema[str] = ""
    """Values for the placeholders in the skill's body. The field is left out of the schema, because
    the model knows the task anyway."""


class SkillTool(Tool[SkillInput]):
    """Loads a skill for the model, by returning the skill's text as the result of the call.

    ``skills`` returns the current skills by name. ``wanted`` returns True if requests offer the
    tool; by default they do if there is any skill.
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
            raise ToolError(f"Only the user can start the skill {skill.name}: /skill:{skill.name}.")
        if skill is None:
            names = [name for name, known in skills.items() if known.for_model]
            told = f"There is no skill {arguments.name!r}."
            if alike := difflib.get_close_matches(arguments.name, names, n=3, cutoff=0.4):
                told += f" Similar names: {', '.join(alike)}."
            elif names:
                told += f" Some that exist: {', '.join(sorted(names)[:10])}."
            raise ToolError(told)
        text = await asyncio.to_thread(skill.text, arguments.arguments)
        return await finish(
            Output(text, skill.name, metadata=ToolMetadata(count=len(text.splitlines()))), context
        )


def _plain_name(arguments: SkillInput) -> str:
    return arguments.name.strip().removeprefix("/skill:")


def _files(folder: Path) -> list[str]:
    """Return up to ``MAX_LISTED`` files of a skill's folder, relative to the folder.

    If there are more, "..." follows. ``SKILL.md``, hidden files, and directories whose names begin
    with "__" are left out.
    """
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
