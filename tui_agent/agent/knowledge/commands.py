"""The user's own commands: Markdown files with front matter, found, taken apart and filled in.

A template has three things to fill in: ``$ARGUMENTS`` and ``$1`` to ``$9``, a command's output, and files named with
an at sign. Arguments never become part of a command's text: the shell gets them as its own parameters, so what a user
pastes is data there.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from tui_agent.agent.knowledge.documents import Document, DocumentError, FileCache
from tui_agent.agent.knowledge.folders import Folder, Folders
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file

FILE_BYTES = 64 * 1024

_SHELL = re.compile(r"!`([^`\n]+)`")
_SLOT = re.compile(r"\$(ARGUMENTS|[1-9])(?![0-9A-Za-z_])")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class UserCommand:
    """One command. ``name`` holds the folders below ``commands`` too: ``git:commit``.

    ``model`` and ``agent`` are used from this message on. ``of_project`` tells that the project brought it along, not
    the user; ``origin`` is where.
    """

    name: str
    description: str
    template: str
    argument_hint: str = ""
    model: str | None = None
    agent: str | None = None
    of_project: bool = False
    origin: str = ""

    @property
    def runs_commands(self) -> bool:
        return _SHELL.search(self.template) is not None


@dataclass(frozen=True, slots=True)
class FilledCommand:
    """A command's message. ``own_text`` is all of it but what commands printed: where files may be named."""

    text: str
    own_text: str


RunCommand = Callable[[str], Awaitable[str]]
"""Runs a shell command and returns what it printed."""


def load_commands(folders: Folders, files: FileCache, problems: list[str]) -> tuple[UserCommand, ...]:
    """Return the commands in the order of their names; of two with one name the user's own wins.

    It is the other way round with skills: a command is typed by somebody who knows what it does, and a project must
    not change that.
    """
    found: dict[str, UserCommand] = {}
    for folder in (*folders.of_user("commands"), *folders.of_project("commands", problems)):
        for path in _markdown(folder.path):
            try:
                command = _command(path, folder, files)
            except DocumentError as error:
                problems.append(f"Command {folders.name(path)}: {error}.")
                continue
            if command is not None:
                found.setdefault(command.name, command)
    return tuple(found[name] for name in sorted(found))


def split_arguments(text: str) -> list[str]:
    """Split what was typed as a shell would; quotes that don't close are taken as they are."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


async def fill_command(command: UserCommand, arguments: str, run: RunCommand) -> FilledCommand:
    """Return the command's message. ``run`` is called for each command in the template, in order."""
    words = split_arguments(arguments)

    def argument(slot: re.Match[str]) -> str:
        if slot[1] == "ARGUMENTS":
            return arguments
        return words[int(slot[1]) - 1] if int(slot[1]) <= len(words) else ""

    text, own, end = "", "", 0
    for found in _SHELL.finditer(command.template):
        between = _SLOT.sub(argument, command.template[end : found.start()])
        text += between + (await run(_with_parameters(found[1], arguments, words))).strip("\n")
        own += f"{between}\n"
        end = found.end()
    rest = _SLOT.sub(argument, command.template[end:])
    if arguments and not _SLOT.search(command.template):
        rest = f"{rest}\n\n{arguments}"
    return FilledCommand((text + rest).strip(), own + rest)


def _with_parameters(command: str, arguments: str, words: Sequence[str]) -> str:
    quoted = " ".join(shlex.quote(word) for word in words)
    return f"set -- {quoted}\nARGUMENTS={shlex.quote(arguments)}\n{command}"


def _markdown(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.rglob("*.md") if is_file(path))
    except OSError:
        return


def _command(path: Path, folder: Folder, files: FileCache) -> UserCommand | None:
    found = files.document(path, FILE_BYTES)
    if found is None:
        return None
    parts = [part.lower().replace(" ", "-") for part in path.relative_to(folder.path).with_suffix("").parts]
    if not all(_NAME.fullmatch(part) for part in parts):
        raise DocumentError("its name must begin with a letter and hold letters, digits, hyphens and underscores")
    document, _file = found
    if not document.body:
        raise DocumentError("there is nothing below the front matter")
    return UserCommand(
        name=":".join(parts),
        description=document.text("description") or " ".join(document.body.split())[:80],
        template=document.body,
        argument_hint=_hint(document),
        model=document.model(folder.whose),
        agent=document.text("agent") or None,
        of_project=folder.of_project,
        origin=folder.origin,
    )


def _hint(document: Document) -> str:
    """Return how the argument is written; ``[BRANCH]`` without quotes is a list to YAML."""
    value = document.fields.get("argument-hint")
    return f"[{' '.join(map(str, value))}]" if isinstance(value, list) else document.text("argument-hint")
