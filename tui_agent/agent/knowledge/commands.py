"""Finds, parses and fills in the commands that users write as Markdown files with front matter.

A template can contain placeholders for arguments (``placeholders``), shell commands whose output
is inserted, and files named with an at sign. Arguments are never inserted into a shell command but
passed to the shell as parameters, so text that a user pastes is never run. ``preparing`` runs the
shell commands and builds the message.
"""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tui_agent.agent.knowledge.documents import Document, DocumentError, FileCache, load_all
from tui_agent.agent.knowledge.folders import Folder, Folders, TrustGate
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
"""Maximum number of bytes to read from a command's file."""

SHELL = LazyPattern(r"!`([^`\n]+)`")
"""A shell command in a template, which is written as ``!`git status```."""
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
"""Front matter fields of a command that are used or silently ignored. All others are reported."""
_NAME = LazyPattern(r"[a-z][a-z0-9_-]*")

RunCommand = Callable[[str], Awaitable[str]]
"""A function that runs a shell command of a template and returns the command's output."""


@frozen
class UserCommand:
    """A user's command; ``name`` includes the folders below ``commands``, as in ``git:commit``.

    The command's message switches to ``model`` and ``agent``; None keeps the current ones.
    ``of_project`` is True for a command of the project, False for the user's own. ``origin`` and
    ``file`` are the names of its folder and file for screens. ``program`` is the other program that
    the folder belongs to, "" if it belongs to this program.
    """

    name: str
    description: str
    template: str
    argument_hint: str = ""
    model: str | None = None
    agent: str | None = None
    of_project: bool = False
    origin: str = ""
    program: str = ""
    file: str = ""
    slots: Slots = Slots()
    for_model: bool = False
    """True if the model may use the command as a skill, as in Claude Code."""
    unused: tuple[str, ...] = ()
    """The front matter fields that have no effect."""


def load_commands(
    folders: Folders, files: FileCache, problems: list[str], gate: TrustGate
) -> tuple[UserCommand, ...]:
    """Return the users' commands, sorted by name, from the files that ``gate`` lets through.

    Unusable files are reported in ``problems``. A project's command never replaces a user's command
    of the same name.
    """
    places = (*folders.user_folders("commands"), *folders.project_folders("commands", problems))
    rows = [(path, folder) for folder in places for path in folder.files("*.md")]
    inline = inline_documents(folders, "command")
    rows += [(path, row.folder) for path, row in inline.items()]

    def make(path: Path, folder: Folder) -> UserCommand | None:
        if path in inline:
            return _command_of([path.name], inline[path].document, folder, folder.shown)
        return _command(path, folder, files)

    made = load_all("Command", make, gate.admitted(rows), problems)
    found: dict[str, UserCommand] = {}
    for command in sorted(made, key=_of_project):
        found.setdefault(command.name, command)
    return tuple(found[name] for name in sorted(found))


async def fill_command(command: UserCommand, arguments: str, run: RunCommand) -> tuple[str, str]:
    """Return a command's message twice, with and without the output of its shell commands.

    Files named with ``@`` are looked for in the second text, so that names in an output don't
    count. ``run`` is called for each shell command of the template, in order.
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
    """Return a filled-in template twice, with and without the output of its shell commands.

    ``fill`` replaces the placeholders in the text between the commands. The commands receive the
    arguments as shell parameters (``$1``) and as ``$ARGUMENTS``.
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
    """Return the command that a document defines.

    ``parts`` are the folders below ``commands``, followed by the command's name.

    Raises DocumentError if the name is not valid or the document has no text.
    """
    if not all(_NAME.fullmatch(part) for part in parts):
        raise DocumentError(
            "its name must begin with a letter and contain only letters, digits, hyphens and underscores"
        )
    if not document.body:
        raise DocumentError("there is nothing below the front matter")
    hint = document.text("argument-hint")
    listed = document.fields.get("argument-hint")
    if isinstance(listed, list):  # YAML reads an unquoted [BRANCH] as a list
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
        program=folder.whose,
        file=file,
        slots=slots_of(folder.whose, document.body, document.fields.get("arguments")),
        for_model=is_skill and not document.is_true("disable-model-invocation"),
        unused=document.unused(_FIELDS),
    )


def _of_project(command: UserCommand) -> bool:
    return command.of_project
