"""What a command needs to be allowed: one need for each simple command in it, and for each place it reaches.

A command of programs that only read, in the project, is ``harmless`` and runs unasked. What can't be understood is
``unclear``: no rule for a command covers it, only one that allows everything.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tui_agent.tools.permission import Permission, PermissionNeed
from tui_agent.tools.shell.builders import inside
from tui_agent.tools.shell.families import escaped, family, run_by
from tui_agent.tools.shell.git import subcommand
from tui_agent.tools.shell.programs import read_only, usually_reads
from tui_agent.tools.shell.reach import (
    SYSTEM_PROGRAMS,
    Ground,
    gives_options,
    hides_a_repository,
    is_harmless_device,
    needs_of_path,
    needs_of_words,
    outside,
    path_texts,
    secrets_below,
    shown,
)
from tui_agent.tools.shell.reader import read_script
from tui_agent.tools.shell.script import Redirect, Script, Simple
from tui_agent.tools.shell.steered import is_steered
from tui_agent.tools.shell.use import Use
from tui_agent.tools.shell.variables import is_harmless, is_powerful
from tui_agent.tools.shell.words import Hole, Word, filled, literal
from tui_agent.tools.shell.wrappers import INTERPRETERS, Wrapped, unwrap

DEEPEST = 5
"""Scripts within scripts (``sh -c 'sh -c …'``) that are looked into."""
_MOST_FOLDERS = 8
_MOST_WAYS = 64
"""Combinations of loop values that are judged one by one."""
_PROGRAM = re.compile(r"[A-Za-z0-9_.+\[:/@-]+", re.ASCII)
_TEXT_OPTIONS = frozenset({"-m", "-am", "--message", "--body", "-b", "--title", "-t", "--notes", "--comment"})
"""Options whose value is prose, whatever it is."""
_TOP_LEVEL = '"$(git rev-parse --show-toplevel)"'
_NAMING = frozenset({"export", "declare", "typeset", "readonly", "local", "unset", "read"})


def command_needs(command: str, cwd: Path, project: Path) -> tuple[PermissionNeed, ...]:
    """Return everything a command line needs to be allowed, in the order written.

    Looks up where paths lead, and below directories that would be searched; call it in a thread. Never raises for
    anything a command may hold.
    """
    root = Path(os.path.realpath(project))
    ground = Ground(root, (Path(os.path.realpath(cwd)),))
    return tuple(dict.fromkeys(_Judge(command, ground).judge(command)))


class _Judge:
    """Judges one command line with everything nested in it."""

    def __init__(self, command: str, ground: Ground) -> None:
        self._command = command
        self._ground = ground

    def judge(self, text: str, depth: int = 0) -> Iterator[PermissionNeed]:
        """Yield the needs of a script."""
        script = read_script(text)
        if depth > DEEPEST:
            script.problems.append("it is nested too deeply")
        for problem in script.problems:
            yield self._unclear(problem)
        if script.problems:
            return
        for name, word in script.assignments:
            yield from self._assignment(name, word)
        moves = [simple for simple in script.commands if _moves(simple)]
        self._know_places(script, moves)
        in_order = all(simple.sure for simple in moves)
        start = self._ground
        for simple in moves:
            self._move(simple)
        for redirect in script.redirects:
            yield from self._redirect(redirect, script)
        if in_order:
            self._ground = start
        for simple in script.commands:
            for words in _ways(simple.words, script):
                yield from self._words(words, simple, depth)
            if in_order and _moves(simple):
                self._move(simple, stays=False)

    def _know_places(self, script: Script, moves: Sequence[Simple]) -> None:
        """``$HOME`` and, where nothing moves, ``$PWD`` stand for what they stand for now."""
        known = {"HOME": (self._ground.home,)}
        if not moves and len(self._ground.folders) == 1:
            known["PWD"] = (str(self._ground.folders[0]),)
        set_here = {name for name, _word in script.assignments}
        script.values |= {name: value for name, value in known.items() if name not in set_here | script.values.keys()}

    # -- one simple command ---------------------------------------------------------------------------------

    def _words(self, words: tuple[Word, ...], simple: Simple, depth: int) -> Iterator[PermissionNeed]:
        if not words:
            return
        program = words[0].value
        if program is None or words[0].glob or words[0].tilde or not _PROGRAM.fullmatch(program):
            yield self._unclear(f"which program {words[0].source} is, is known only when it runs", simple)
            return
        wrapped = unwrap(words)
        if wrapped is not None:
            yield from self._wrapped(wrapped, words, simple, depth)
            return
        if _is_fed(words):
            yield replace(self._unclear(f"{program} runs what it is fed", simple), pattern=_pattern(words, simple))
            return
        yield from self._plain(words, simple)

    def _wrapped(
        self, wrapped: Wrapped, words: tuple[Word, ...], simple: Simple, depth: int
    ) -> Iterator[PermissionNeed]:
        if wrapped.problem:
            yield self._unclear(wrapped.problem, simple)
            return
        powerful = any(not is_harmless(name, word.value) for name, word in simple.assignments)
        if wrapped.asks or (wrapped.scripts and powerful):
            pattern = _pattern(words, simple)
            yield PermissionNeed(
                Permission.BASH,
                pattern,
                simple.source,
                "command",
                always=escaped(pattern),
                aliases=_aliases(words, simple),
            )
        for script in wrapped.scripts:
            yield from self.judge(script, depth + 1)
        inner = replace(
            simple,
            assignments=(*simple.assignments, *((name, literal(value)) for name, value in wrapped.assignments)),
        )
        for place, command in enumerate(wrapped.commands):
            if depth > DEEPEST:
                yield self._unclear("it is nested too deeply", simple)
            elif place and wrapped.roots:
                yield from self._found(command, wrapped.roots, inner, depth)
            else:
                yield from self._words(command, inner, depth + 1)

    def _found(
        self, words: tuple[Word, ...], roots: tuple[Word, ...], simple: Simple, depth: int
    ) -> Iterator[PermissionNeed]:
        """``find -exec``: reading every file below the roots is free where none of them is secret."""
        stand_in = tuple(
            replace(word, parts=tuple(root.value or "" if isinstance(part, Hole) else part for part in word.parts))
            for word in words
            for root in (roots if any(hole.name == "{}" for hole in word.holes) else roots[:1])
        )
        use = read_only(stand_in) if all(word.value is not None for word in stand_in) else None
        if use is not None and unwrap(words) is None:
            every = replace(use, paths=(*use.paths, *roots), tree="all" if use.contents else "")
            yield from self._reading(stand_in, every, simple)
        else:
            yield from self._words(words, simple, depth + 1)

    def _plain(self, words: tuple[Word, ...], simple: Simple) -> Iterator[PermissionNeed]:
        program = words[0].value or ""
        name = program.rpartition("/")[2] if program.rpartition("/")[0] in SYSTEM_PROGRAMS else program
        known = (literal(name), *words[1:])
        settings = [(key, word.value) for key, word in simple.assignments if not is_harmless(key, word.value)]
        if name in {"mkdir", "touch"} and not settings and (targets := _targets(words[1:])) is not None:
            yield from self._written(targets, simple)
            return
        if name == "tee" and not settings and (targets := _targets(words[1:])) is not None:
            yield from self._written(targets, simple)
            return
        if _moves(simple):
            yield from self._moving(words, simple)
            return
        use = _naming(known) if name in _NAMING else None if settings else read_only(known)
        if name == "git" and use is not None and self._strange_git(words[1:]):
            yield self._unclear("the directory looks like a bare repository, whose settings can run programs", simple)
            return
        steered = use is not None and is_steered(name, self._ground)
        if use is not None and not steered and not any(gives_options(word, self._ground) for word in words[1:]):
            yield from self._reading(words, use, simple)
            return
        does = "builds" if steered else inside(known)
        yield from self._asking(words, simple, "" if does == "edits" and settings else does)

    def _reading(self, words: tuple[Word, ...], use: Use, simple: Simple) -> Iterator[PermissionNeed]:
        yield PermissionNeed(
            Permission.BASH,
            _pattern(words, simple),
            simple.source,
            "command",
            harmless=True,
            always=family(words),
            aliases=_aliases(words, simple),
        )
        yield from self._here()
        yield from needs_of_words(use.paths, self._ground, contents=use.contents, program=words[0].value or "")
        if use.tree:
            yield from self._searched(use, simple)

    def _here(self) -> Iterator[PermissionNeed]:
        """A command that may run outside of the project needs to be allowed there."""
        for folder in self._ground.folders:
            if not folder.is_relative_to(self._ground.project):
                yield outside(folder)

    def _searched(self, use: Use, simple: Simple) -> Iterator[PermissionNeed]:
        named = [text for word in use.paths for text in path_texts(word, self._ground.home) if not text.startswith("-")]
        places = [real for text in named for real in self._ground.real(text) if real.is_dir()]
        places = places or [*self._ground.folders]
        inside = list(dict.fromkeys(place for place in places if place.is_relative_to(self._ground.project)))
        found = secrets_below(inside, kind="all" if use.tree == "all" else "visible")
        if found is None:
            yield self._unclear("it searches too many files to tell whether secrets are among them", simple)
        for path in (found or [])[:3]:
            yield PermissionNeed(Permission.READ, shown(Path(os.path.realpath(path)), self._ground))

    def _asking(
        self, words: tuple[Word, ...], simple: Simple, inside: Literal["", "builds", "edits"] = ""
    ) -> Iterator[PermissionNeed]:
        """An ordinary command that does more than read."""
        pattern = _pattern(words, simple)
        unknown = _unknown(words)
        yield PermissionNeed(
            Permission.BASH,
            pattern,
            simple.source,
            "command",
            always="" if unknown else _always(words, simple, pattern),
            unclear=f"what {unknown} stands for is known only when it runs" if unknown else "",
            inside=inside,
            aliases=_aliases(words, simple),
        )
        yield from self._here()
        yield from needs_of_words(words[1:], self._ground, contents=True, program=words[0].value or "")
        directory = (words[0].value or "").rpartition("/")[0]
        if directory and directory not in SYSTEM_PROGRAMS:
            yield from needs_of_path(words[0].value or "", self._ground, contents=False)

    def _moving(self, words: tuple[Word, ...], simple: Simple) -> Iterator[PermissionNeed]:
        """``cd``: free inside the project, when it can be told where it leads."""
        targets = [word for word in words[1:] if not word.source.startswith("-") or word.source == "-"]
        unknown = len(targets) != 1 or targets[0].value in {None, "-"} or targets[0].glob or len(words) > _MOST_FOLDERS
        if targets and targets[0].source in {_TOP_LEVEL, _TOP_LEVEL.strip('"')}:
            unknown = False
        climbs = simple.repeated and any(".." in (word.value or "") for word in targets)
        if unknown or climbs or simple.assignments or len(self._ground.folders) > _MOST_FOLDERS:
            yield self._unclear("where it goes is known only when it runs", simple)
            return
        yield from self._reading(words, Use(tuple(targets), contents=False), simple)

    def _strange_git(self, arguments: Sequence[Word]) -> bool:
        """Whether git would run where a bare repository lies."""
        found = subcommand(arguments)
        directories = [word.value or "" for word in found[0]] if found else []
        folders = [real for text in directories for real in self._ground.real(text)]
        return hides_a_repository(replace(self._ground, folders=(*self._ground.folders, *folders)))

    # -- everything else ------------------------------------------------------------------------------------

    def _assignment(self, name: str, word: Word) -> Iterator[PermissionNeed]:
        if is_powerful(name) and not is_harmless(name, word.value):
            text = f"{name}={word.source}"
            yield PermissionNeed(Permission.BASH, text, text, "command", unclear=f"{name} changes what programs do")

    def _redirect(self, redirect: Redirect, script: Script) -> Iterator[PermissionNeed]:
        for word in filled(redirect.target, script.values):
            value = word.value
            if value is None or word.glob:
                yield self._unclear(f"where {redirect.operator} {word.source} leads is known only when it runs")
            elif not redirect.writes:
                yield from needs_of_words((word,), self._ground, contents=True, program="")
            elif value.startswith(("/dev/tcp/", "/dev/udp/")):
                yield self._unclear("it opens a network connection")
            else:
                yield from self._written((word,), None, operator=redirect.operator)

    def _written(self, words: Iterable[Word], simple: Simple | None, *, operator: str = "") -> Iterator[PermissionNeed]:
        """Files that come to be or change: they need what an edit needs."""
        for word in words:
            text = path_texts(word, self._ground.home)[0]
            if is_harmless_device(text):
                continue
            for real in self._ground.real(text):
                detail = simple.source if simple is not None else f"{operator} {word.source}"
                yield PermissionNeed(Permission.EDIT, shown(real, self._ground), detail)
                if not real.is_relative_to(self._ground.project):
                    yield outside(real)

    def _move(self, simple: Simple, *, stays: bool = True) -> None:
        """``cd`` may work or fail: whatever follows is judged in both places, unless it does not ``stay``."""
        if len(self._ground.folders) > _MOST_FOLDERS:
            return
        target = next((word for word in simple.words[1:] if not word.source.startswith("-")), None)
        if target is not None and target.source in {_TOP_LEVEL, _TOP_LEVEL.strip('"')}:
            self._ground = replace(self._ground, folders=(*self._ground.folders, self._ground.project))
            return
        if target is None or target.value is None:
            return
        found = (real for text in path_texts(target, self._ground.home)[:1] for real in self._ground.real(text))
        folders = tuple(dict.fromkeys((*(self._ground.folders if stays else ()), *found)))
        self._ground = replace(self._ground, folders=folders)

    def _unclear(self, why: str, simple: Simple | None = None) -> PermissionNeed:
        text = simple.source if simple is not None else self._command
        return PermissionNeed(Permission.BASH, text, text, "command", unclear=why)


def _moves(simple: Simple) -> bool:
    return bool(simple.words) and simple.words[0].value in {"cd", "pushd"}


def _ways(words: tuple[Word, ...], script: Script) -> list[tuple[Word, ...]]:
    """Return a command once for every value its loop variables take; as it stands when they are too many."""
    ways: list[tuple[Word, ...]] = [()]
    for word in words:
        ways = [(*way, choice) for way in ways for choice in filled(word, script.values)]
        if len(ways) > _MOST_WAYS:
            return [words]
    return ways


def _targets(arguments: Sequence[Word]) -> tuple[Word, ...] | None:
    """Return the files that ``mkdir``, ``touch`` or ``tee`` make; None when that can't be told."""
    if any(word.value is None or word.glob for word in arguments):
        return None
    plain = tuple(word for word in arguments if not (word.value or "").startswith("-"))
    options = [word.value for word in arguments if (word.value or "").startswith("-")]
    return (
        plain if plain and all(option in {"-p", "-v", "-pv", "-a", "--parents", "-c"} for option in options) else None
    )


def _naming(words: Sequence[Word]) -> Use | None:
    """``export NAME``, ``read line``: free unless a name changes what programs do."""
    for word in words[1:]:
        text = word.value
        if text is None or is_powerful(text) or not re.fullmatch(r"-[rxag]+|\w+", text):
            return None
    return Use(contents=False) if len(words) > 1 else None


def _is_fed(words: Sequence[Word]) -> bool:
    """Whether an interpreter reads what it runs: nothing else is named for it to run."""
    name = (words[0].value or "").rpartition("/")[2]
    if not INTERPRETERS.fullmatch(name):
        return False
    rest = [word.value for word in words[1:]]
    named = any(value is None or not value.startswith("-") for value in rest)
    switches = any(value in {"-c", "-e", "-m", "-p", "--test", "--version", "-V", "-v", "--help"} for value in rest)
    return not named and not switches


def _unknown(words: Sequence[Word]) -> str:
    """Return a word whose value matters and isn't known."""
    previous = ""
    for word in words[1:]:
        prose = previous in _TEXT_OPTIONS and word.source.startswith('"') and word.source.endswith('"')
        if word.holes and not prose:
            return word.source
        previous = word.value or ""
    return ""


def _always(words: Sequence[Word], simple: Simple, pattern: str) -> str:
    """Return what "always" allows: the family, or the very same command.

    A program that usually only reads is asked about for what it does this time.
    """
    plain = all(is_harmless(name, word.value) for name, word in simple.assignments) and not usually_reads(words)
    offered = family(words) if plain else ""
    return offered if offered.endswith(" *") or (offered and not simple.fed) else escaped(pattern)


def _pattern(words: Sequence[Word], simple: Simple) -> str:
    """Return what rules are matched against: settings that matter, the words, and what the command is fed."""
    settings = [f"{name}={word.shown}" for name, word in simple.assignments if not is_harmless(name, word.value)]
    text = " ".join([*settings, *(word.shown for word in words)])
    return f"{text} {simple.fed}" if simple.fed else text


def _aliases(words: Sequence[Word], simple: Simple) -> tuple[str, ...]:
    """Return other spellings of a command that a rule against it means too."""
    shown_words = [word.shown for word in words]
    program = shown_words[0].rpartition("/")[2]
    plain = " ".join([program, *shown_words[1:]])
    found = [simple.source, plain, " ".join(shown_words), *run_by(shown_words)]
    place = subcommand(words[1:]) if program == "git" else None
    if place is not None:
        found.append(" ".join(["git", *shown_words[1 + place[1] :]]))
    return tuple(dict.fromkeys(found))
