"""The user's own commands: Markdown files with front matter, found, taken apart and filled in.

A template has three things to fill in: its arguments (``placeholders``), a command's output, and
files named with an at sign. Arguments never become part of a command's text: the shell gets them as
its own parameters, so text a user pastes is data there.
"""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tui_agent.agent.knowledge.documents import Document, DocumentError, FileCache, load_all
from tui_agent.agent.knowledge.folders import Folder, Folders
from tui_agent.agent.knowledge.placeholders import (
    Given,
    Slots,
    fill_in,
    given,
    slots_of,
    takes_arguments,
)
from tui_agent.agent.programs.opencode import inline_documents
from tui_agent.lazy import LazyPattern, frozen

FILE_BYTES = 64 * 1024

SHELL = LazyPattern(r"!`([^`\n]+)`")
"""A shell command in a template."""
_FIELDS = frozenset(
    {
        "name",
        "description",
        "argument-hint",
        "arguments",
        "model",
        "agent",
        "when_to_use",
        "disable-model-invocation",
    }
)
"""Fields of a command's file that are used, or can be ignored without a warning."""
_NAME = LazyPattern(r"[a-z][a-z0-9_-]*")

RunCommand = Callable[[str], Awaitable[str]]
"""Runs a shell command and returns its output."""


@frozen
class UserCommand:
    """One command. ``name`` holds the folders below ``commands`` too: ``git:commit``.

    ``model`` and ``agent`` are used from this message on. ``of_project`` tells that the project
    brought it along, not the user; ``origin`` is where, ``file`` is its file.
    """

    name: str
    description: str
    template: str
    argument_hint: str = ""
    model: str | None = None
    agent: str | None = None
    of_project: bool = False
    origin: str = ""
    file: str = ""
    slots: Slots = Slots()
    for_model: bool = False
    """Whether the model is told of it and may use it: Claude Code's commands are skills."""
    unused: tuple[str, ...] = ()
    """Fields of its file that have no effect here."""


def load_commands(
    folders: Folders, files: FileCache, problems: list[str]
) -> tuple[UserCommand, ...]:
    """Return the commands by name.

    Of two with one name the user's wins: a project must not redefine it.
    """
    places = (*folders.of_user("commands"), *folders.of_project("commands", problems))
    rows = [(path, folder) for folder in places for path in folder.files("*.md")]
    inline = inline_documents(folders, "command")
    rows += [(path, row.folder) for path, row in inline.items()]

    def make(path: Path, folder: Folder) -> UserCommand | None:
        if path in inline:
            return _command_of([path.name], inline[path].document, folder, folder.shown)
        return _command(path, folder, files)

    made = load_all("Command", make, rows, problems)
    found: dict[str, UserCommand] = {}
    for command in sorted(made, key=_of_project):
        found.setdefault(command.name, command)
    return tuple(found[name] for name in sorted(found))


async def fill_command(command: UserCommand, arguments: str, run: RunCommand) -> tuple[str, str]:
    """Return the command's message, and the same without commands' output: where files may be named.

    ``run`` is called for each command in the template, in order.
    """
    typed = given(arguments)
    template = command.template

    def fill(part: str) -> str:
        return fill_in(part, typed, command.slots, template)

    text, own = await fill_template(template, typed, fill, run)
    if arguments and not takes_arguments(template, command.slots):
        text = f"{text}\n\n{arguments}"
        own = f"{own}\n\n{arguments}"
    return text.strip(), own


async def fill_template(
    template: str, typed: Given, fill: Callable[[str], str], run: RunCommand
) -> tuple[str, str]:
    """Return a template with the output of its commands, and the same without that.

    ``fill`` fills in the rest.

    Its commands get the arguments as the shell's own parameters.
    """
    quoted = " ".join(map(shlex.quote, typed.words))
    parameters = f"set -- {quoted}\nARGUMENTS={shlex.quote(typed.text)}\n"
    text = ""
    own = ""
    end = 0
    for found in SHELL.finditer(template):
        between = fill(template[end : found.start()])
        text += between + (await run(parameters + found[1])).strip("\n")
        own += f"{between}\n"
        end = found.end()
    rest = fill(template[end:])
    return text + rest, own + rest


def _command(path: Path, folder: Folder, files: FileCache) -> UserCommand | None:
    found = files.document(path, FILE_BYTES)
    if found is None:
        return None
    below = path.relative_to(folder.path).with_suffix("").as_posix()
    parts = below.lower().replace(" ", "-").split("/")
    return _command_of(parts, found[0], folder, folder.shown_file(path))


def _command_of(parts: Sequence[str], document: Document, folder: Folder, file: str) -> UserCommand:
    """Return the command of a document; ``parts`` are the folders above it and its name."""
    if not all(_NAME.fullmatch(part) for part in parts):
        raise DocumentError(
            "its name must begin with a letter and hold letters, digits, hyphens and underscores"
        )
    if not document.body:
        raise DocumentError("there is nothing below the front matter")
    hint = document.text("argument-hint")
    listed = document.fields.get("argument-hint")
    if isinstance(listed, list):  # [BRANCH] without quotes is a list to YAML
        hint = f"[{' '.join(map(str, listed))}]"
    is_skill = folder.whose == "Claude Code"
    return UserCommand(
        name=f"{folder.prefix}{':'.join(parts)}",
        description=document.text("description") or " ".join(document.body.split())[:80],
        template=document.body,
        argument_hint=hint,
        model=document.model(folder.whose),
        agent=document.text("agent") or None,
        of_project=folder.of_project,
        origin=folder.origin,
        file=file,
        slots=slots_of(folder.whose, document.body, document.fields.get("arguments")),
        for_model=is_skill and not document.is_true("disable-model-invocation"),
        unused=document.unused(_FIELDS),
    )


def _of_project(command: UserCommand) -> bool:
    return command.of_project
