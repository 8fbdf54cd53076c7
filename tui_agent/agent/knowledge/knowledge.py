"""Loads what a session knows from files: instructions, skills, commands, agents and memory.

All of them are loaded together; later loads read only files that have changed. ``folders`` decides
which folders are searched, and ``documents`` parses the files; skills are found and parsed here.
This module also writes their sections of the head, the part of each request that precedes the
conversation; ``prompt_head`` decides when a head is rendered. Problems are collected for the caller
to show (`ContextKeeper.warm`, ``nearby``).
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.knowledge.commands import UserCommand, load_commands
from tui_agent.agent.knowledge.documents import Document, DocumentError, FileCache, load_all
from tui_agent.agent.knowledge.folders import Folder, Folders, TrustGate
from tui_agent.agent.knowledge.instructions import Instruction, InstructionFiles
from tui_agent.agent.knowledge.placeholders import fill_in, given, slots_of, takes_arguments
from tui_agent.agent.memory.section import (
    MemorySection,
    left_out,
    memory_section,
    newest_within,
)
from tui_agent.files.memory import Memory, MemoryLine, NotKeptError
from tui_agent.files.notes import NOTES_FILE, NoteError, read_notes
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.places import SKILL_FILE
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import SKILL_PREFIX
from tui_agent.tools.skill import Skill

log = logging.getLogger(__name__)

FILE_BYTES = 64 * 1024
"""Maximum bytes read of a ``SKILL.md``."""
NAME_CHARS = 64
"""Maximum length of a skill's name, in characters, according to the Agent Skills specification."""
DESCRIPTION_CHARS = 1_024
"""Maximum length of a skill's description, in characters, according to the Agent Skills
specification."""
FALLBACK_CHARS = 80
"""If a Claude Code skill has no description, this many characters of its text are used instead."""
LIST_TOKENS = 2_000
"""Maximum size of the list of skills in the request head, in tokens."""
LIST_SHARE = 0.015
"""Maximum size of the list of skills, as a share of the context window."""
_SHORTEST = 40
"""Minimum length, in characters, of descriptions in a shortened list of skills. If they would have
to be shorter, skills are left out instead."""

_SKILL_FIELDS = frozenset(
    [
        "name",
        "description",
        "when_to_use",
        "argument-hint",
        "arguments",
        "disable-model-invocation",
        "user-invocable",
        "license",
        "metadata",
        "compatibility",
        "version",
    ]
)
"""Front matter fields of a skill that are used or silently ignored. All others are reported."""
_NAME = LazyPattern(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")

NAMED_PROBLEMS = 3
"""Maximum number of problems that one notice names."""

MAX_AGENTS = 20
"""Maximum number of agents listed in the request head."""
AGENT_CHARS = 200
"""Maximum length of an agent's description in the request head, in characters."""


def load_skills(
    folders: Folders, files: FileCache, problems: list[str], gate: TrustGate
) -> dict[str, Skill]:
    """Return a mapping from name to skill, sorted by name, of the skills that ``gate`` admits.

    Adds a message about each unusable file to ``problems``. If several skills have the same name,
    the project's skill is used, or else the user's. If several of them are in the project, the one
    nearest to the working directory is used.
    """
    places = (*folders.project_folders("skills", problems), *folders.user_folders("skills"))
    paths = [(path, folder) for folder in places for path in _skill_files(folder)]

    def make(path: Path, folder: Folder) -> Skill | None:
        return _skill(path, folder, files)

    found: dict[str, Skill] = {}
    for skill in load_all("Skill", make, gate.admitted(paths), problems):
        found.setdefault(skill.name, skill)
    return dict(sorted(found.items()))


def list_skills(
    skills: Iterable[Skill], intro: str, budget: int, count: Callable[[str], int]
) -> str:
    """Return the section of the request head that lists skills, in about ``budget`` tokens.

    Returns "" if there are no skills. ``intro`` is the text above the list. If the list doesn't
    fit, all descriptions are cut to the same length. If that is not enough, skills at the end are
    left out, and a row says how many. ``count`` returns the tokens of a text.
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
    lines = [intro]
    for name, description in rows:
        text = description
        if len(text) > chars:
            text = f"{text[: chars - 1].rstrip()}…"
        lines.append(f"- {name}: {text}")
    if left_out:
        lines.append(f"({left_out} more are not listed; the user may name one.)")
    body = "\n".join(lines)
    return f"<skills>\n{body}\n</skills>"


def _skill_files(folder: Folder) -> Iterator[Path]:
    """Yield the skill files in a folder, except those inside another skill's folder.

    In Pi's folders, Markdown files directly in the folder are skills, too.
    """
    found: set[Path] = set()
    for path in sorted(folder.files(SKILL_FILE), key=_depth):
        above = path.relative_to(folder.path).parts[:-1]
        is_hidden = any(part.startswith(".") or part == "node_modules" for part in above)
        if above and not is_hidden and found.isdisjoint(path.parents):
            found.add(path.parent)
            yield path
    if folder.whose == "Pi":
        for path in folder.files("[!.]*.md"):
            if path.parent == folder.path and path.name != SKILL_FILE:
                yield path


def _depth(path: Path) -> int:
    return len(path.parts)


def _skill(path: Path, folder: Folder, files: FileCache) -> Skill | None:
    found = files.document(path, FILE_BYTES)
    if found is None:
        return None
    document, file = found
    has_folder = path.name == SKILL_FILE
    if not has_folder and not document.text("description"):
        return None  # a note, not a skill
    name = _skill_name(document, path.parent.name if has_folder else path.stem)
    description = document.purpose().replace("</", "<\\/")
    if not description and folder.whose == "Claude Code":
        description = " ".join(document.body.split())[:FALLBACK_CHARS]
    if not description:
        raise DocumentError("the front matter needs a description that says when to use the skill")
    if not document.body:
        raise DocumentError("there is nothing below the front matter")
    body = document.body
    if file.cut:
        body += f"\n[Cut at {FILE_BYTES // 1024} KiB.]"
    slots = slots_of(folder.whose, body, document.fields.get("arguments"))
    variables = {
        "CLAUDE_SKILL_DIR": str(path.parent),
        "CLAUDE_PLUGIN_ROOT": str(path.parent.parent.parent),
    }

    def fill_arguments(text: str, arguments: str) -> str:
        return fill_in(text, given(arguments), replace(slots, variables=variables), whole=body)

    return Skill(
        name=f"{folder.prefix}{name}",
        description=description[:DESCRIPTION_CHARS],
        folder=path.parent if has_folder else None,
        body=body,
        fill=fill_arguments,
        for_model=not document.is_true("disable-model-invocation"),
        for_user=document.text("user-invocable").lower() != "false",
        unused=document.unused(_SKILL_FIELDS),
        of_project=folder.of_project,
        origin=folder.origin,
        program=folder.whose,
        file=folder.shown_file(path),
    )


def _commands_for_model(commands: Iterable[UserCommand]) -> dict[str, Skill]:
    """Return the commands that the model may use as skills, by name."""
    found: dict[str, Skill] = {}
    for command in commands:
        if command.for_model:
            found[command.name] = _as_skill(command)
    return found


def _skill_name(document: Document, stem: str) -> str:
    """Return a skill's name from its front matter or, if it contains none, ``stem``.

    Raises DocumentError if the name is not valid.
    """
    name = "-".join((document.text("name") or stem).lower().split())
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        raise DocumentError(
            f"the name “{name[:NAME_CHARS]}” may contain only lower-case letters, digits and hyphens"
        )
    return name


def _as_skill(command: UserCommand) -> Skill:
    """Return a command as a skill that only the model can load."""

    def fill_arguments(text: str, arguments: str) -> str:
        filled = fill_in(text, given(arguments), command.slots)
        if arguments and not takes_arguments(text, command.slots):
            return f"{filled}\n\n{arguments}"
        return filled

    return Skill(
        name=command.name,
        description=command.description[:DESCRIPTION_CHARS].replace("</", "<\\/"),
        folder=None,
        body=command.template,
        fill=fill_arguments,
        for_user=False,
        of_project=command.of_project,
    )


@frozen
class Sources:
    """The folders, settings and memory from which a session's knowledge is loaded.

    ``instructions`` are the paths and globs in the setting ``instructions``. ``order`` are names of
    main instruction files, preferred first. ``memory_tokens`` is the maximum size of the project's
    memory and notes together, in tokens.
    """

    folders: Folders
    instructions: tuple[str, ...] = ()
    memory_tokens: int = 2_000
    order: tuple[str, ...] = ()
    memory: Memory | None = None


@frozen
class CommandRow:
    """A completion after a slash: a command or skill. ``argument`` is a hint for its arguments."""

    name: str
    description: str
    argument: str = ""


class Knowledge:
    """The instructions, skills, commands, agents and memory of one session.

    All are empty if there are no sources. ``trusted`` returns whether the user trusts the project;
    it is called on each load.
    """

    def __init__(
        self,
        sources: Sources | None = None,
        *,
        prompt: Callable[[str], str] = lambda _name: "",
        trusted: Callable[[], bool] = lambda: False,
        news: Callable[["Knowledge"], str] | None = None,
    ) -> None:
        """Create the object; `load` reads the files.

        ``prompt`` returns a prompt's text by its name. ``news`` is called once, after the first
        load, and returns a sentence about other programs' files, "" for none.
        """
        self._sources = sources
        self._news = news
        self._prompt = prompt
        self.trusted = trusted
        self._files = FileCache(None if sources is None else sources.folders.project)
        self._loading = threading.Lock()
        self.instructions: tuple[Instruction, ...] = ()
        self.skills: Mapping[str, Skill] = {}
        self.commands: tuple[UserCommand, ...] = ()
        self.specs: tuple[AgentSpec, ...] = ()
        """The available agents, built-in ones first."""
        self.rows: tuple[CommandRow, ...] = ()
        """The completions offered after a slash: commands, and skills as ``skill:NAME``."""
        self.memory: tuple[MemoryLine, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._has_held_back = False
        self._problems: list[str] = []
        self.problems: tuple[str, ...] = ()
        """Problems of the last load: a sentence for each file that could not be used."""
        self._said = SayOnce()
        self.offers_skills: bool | None = None
        """Whether the request head contains the skill tool; None before the first load.

        Later loads don't change this, even if a git checkout adds or removes skills, because a
        change of the tools would lose the prompt cache.
        """
        self._instructions: InstructionFiles | None = None
        if sources is not None:
            self._instructions = InstructionFiles(
                sources.folders,
                self._files,
                sources.instructions,
                order=sources.order,
                trusted=trusted,
            )

    # -- loading --------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read new and changed files, and replace what was loaded before.

        Does nothing if there are no sources.

        New problems are logged and kept for `take_problems`. Blocks on disk: call it in a thread.
        """
        if self._sources is None or self._instructions is None:
            return
        problems: list[str] = []
        folders = self._sources.folders
        with self._loading:
            gate = TrustGate(self.trusted)
            skills = load_skills(folders, self._files, problems, gate)
            commands = load_commands(folders, self._files, problems, gate)
            skills = {**_commands_for_model(commands), **skills}
            instructions = self._instructions.load(problems)
            specs = load_specs(
                folders,
                self._prompt,
                self._files,
                problems,
                gate=gate,
                skills=skills,
            )
            notes = _notes_of(folders.project, problems, gate)
            memory = _lines_of(self._sources.memory, problems)
            # Assigned together, so that a request head rendered meanwhile is consistent.
            self.skills = skills
            self.commands = commands
            self.instructions = instructions
            self.specs = specs
            self._notes = notes
            self.memory = memory
            self._has_held_back = gate.held_back > 0
            self.rows = tuple(_rows(commands, skills.values()))
            if self.offers_skills is None:
                self.offers_skills = any(skill.for_model for skill in skills.values())
            self.problems = tuple(problems)
        if self._news is not None:
            news = self._news(self)
            self._news = None
            if news:
                problems.append(news)
        self._tell(problems)

    def held_back(self) -> tuple[UserCommand | Skill, ...]:
        """Return commands and skills that were not loaded because the project is not trusted.

        Reads files.
        """
        if self._sources is None or not self._has_held_back:
            return ()
        gate = TrustGate(lambda: True)
        folders = self._sources.folders
        with self._loading:
            commands = load_commands(folders, self._files, [], gate)
            skills = load_skills(folders, self._files, [], gate)
        found: list[UserCommand | Skill] = [*commands, *skills.values()]
        return tuple(item for item in found if item.of_project)

    def _tell(self, problems: Iterable[str]) -> None:
        with self._loading:
            new = self._said.remember_all(problems)
            self._problems += new
        for problem in new:
            log.warning("%s", problem)

    def take_problems(self) -> str | None:
        """Return the problems found since the last call, as one text; None if there are none.

        The text names at most `NAMED_PROBLEMS` problems.
        """
        problems = self._problems
        self._problems = []
        if not problems:
            return None
        more = len(problems) - NAMED_PROBLEMS
        said = problems[:NAMED_PROBLEMS]
        if more > 0:
            said.append(f"{more} more are in the log.")
        return " ".join(said)

    @property
    def passed_over(self) -> Mapping[str, str]:
        """Main instruction files that were skipped, each with the file that was read instead."""
        if self._instructions is None:
            return {}
        return self._instructions.passed_over

    @property
    def rules_for_paths(self) -> tuple[str, ...]:
        """Names of rule files that are read only when the model uses a file that they are for."""
        if self._instructions is None:
            return ()
        return self._instructions.for_paths

    # -- contents -------------------------------------------------------------------------------------------

    def primary(self, mode: str) -> AgentSpec | None:
        """Return the primary agent named ``mode``; None if the mode is built in or unknown."""
        return self.primaries.get(mode)

    @property
    def primaries(self) -> dict[str, AgentSpec]:
        """The agents that a user can switch to, by name, except for the built-in agent."""
        return {spec.name: spec for spec in self.specs if spec.primary}

    def nearby(self, paths: Sequence[str], shown: set[str]) -> tuple[Instruction, ...]:
        """Return the instructions for ``paths`` that the model doesn't have yet.

        ``paths`` are relative to the project. The model already has the instructions in the request
        head, and those whose names are in ``shown``. Reads files.
        """
        if self._instructions is None:
            return ()
        problems: list[str] = []
        found = self._instructions.nearby(
            paths, shown | {item.name for item in self.instructions}, problems
        )
        self._tell(problems)
        return found

    def sections(
        self, window: int, count: Callable[[str], int], *, subagents: bool = False
    ) -> tuple[str, ...]:
        """Return the sections of the request head: skills, agents, instructions, memory and notes.

        ``window`` is the context window in tokens, which limits the list of skills; ``count``
        returns the tokens of a text. Agents from files are listed only with ``subagents``. Built-in
        agents are not listed: the description of the task tool lists them.
        """
        budget = min(LIST_TOKENS, round(window * LIST_SHARE))
        offered = [skill for skill in self.skills.values() if skill.for_model]
        skills = list_skills(offered, self._prompt("skills"), budget, count)
        sections: list[str] = []
        if skills:
            sections.append(skills)
        own = [spec for spec in self.specs if spec.origin and spec.subagent]
        if subagents and own:
            rows = [f"- {spec.name}: {spec.description[:AGENT_CHARS]}" for spec in own]
            agents = "\n".join(["More agents for the task tool:", *rows[:MAX_AGENTS]])
            sections.append(f"<agents>\n{agents}\n</agents>")
        sections += [item.section for item in self.instructions]
        sections += self._remembered(count)
        return tuple(sections)

    def memory_section(
        self, lines: Sequence[MemoryLine], count: Callable[[str], int]
    ) -> MemorySection:
        """Return the request head's section with memory lines, at most ``memory_tokens`` long."""
        room = 0
        if self._sources is not None:
            room = self._sources.memory_tokens
        return memory_section(lines, self._prompt("memory"), room, count)

    def _remembered(self, count: Callable[[str], int]) -> Iterator[str]:
        """Yield the sections of memory and project notes, within ``memory_tokens`` in total."""
        memory = self.memory_section(self.memory, count)
        if memory.text:
            yield memory.text
        notes, _room = newest_within([f"- {note}" for note in self._notes], memory.room, count)
        if notes:
            more = left_out(len(self._notes) - len(notes), "in the file")
            yield Instruction(NOTES_FILE, "\n".join([*more, *notes])).section

    def skill(self, name: str) -> Skill | None:
        """Return the skill of that name; None if there is none, or if the user can't start it."""
        skill = self.skills.get(name)
        return skill if skill is not None and skill.for_user else None


def _notes_of(project: Path, problems: list[str], gate: TrustGate) -> tuple[str, ...]:
    try:
        notes = tuple(read_notes(project))
        if notes and gate.is_open():
            return notes
    except (NoteError, OSError) as error:
        problems.append(f"{NOTES_FILE}: left out: {error}")
    return ()


def _lines_of(memory: Memory | None, problems: list[str]) -> tuple[MemoryLine, ...]:
    if memory is None:
        return ()
    try:
        return memory.read().lines
    except NotKeptError as error:
        problems.append(str(error))
        return ()


def _rows(commands: Iterable[UserCommand], skills: Iterable[Skill]) -> Iterator[CommandRow]:
    for command in commands:
        yield CommandRow(command.name, command.description, command.argument_hint)
    for skill in skills:
        if skill.for_user:
            yield CommandRow(f"{SKILL_PREFIX}{skill.name}", skill.description, "[TASK]")
