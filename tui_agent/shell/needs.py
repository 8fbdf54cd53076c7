"""Finds the permissions that a command line needs: to run each command, and to use each path in it.

A line that `grammar.is_free` accepts is ``harmless``, and runs everywhere without a question. A
line that can't be understood is ``unclear``, and is covered only by a rule that allows everything.
The sandbox doesn't depend on this analysis. For commands in the sandbox, the analysis is used to
apply the user's rules, and to ask the user for permissions before running a command that would fail
without them.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from tui_agent.command_words import parts_of
from tui_agent.files.secret_files import file_holds_secret
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_directory, with_home
from tui_agent.permission import Change, Permission, PermissionNeed, rule_path
from tui_agent.shell.families import escaped, family, run_by
from tui_agent.shell.grammar import TABLE, is_free
from tui_agent.shell.reader import ParsedLine, SimpleCommand, Word, read_script
from tui_agent.word_lists import in_order, listed

_REPOSITORY = listed("add commit update-index update-ref gc init fetch")
_BOTH = listed("am checkout cherry-pick merge mv pull rebase reset restore revert rm switch")
"""Subcommands of git that change the repository.

Those in `_REPOSITORY` change nothing else, and those in `_BOTH` also change files. Before one of
them runs in the sandbox, the user is asked. For any other subcommand, the user is asked only after
it has failed there.
"""

MAX_NESTING = 5
"""Maximum depth of nested scripts (``sh -c 'sh -c …'``) that are analysed."""

HARMLESS_DEVICES = listed("/dev/null /dev/stdin /dev/stdout /dev/stderr /dev/zero /dev/urandom")
SYSTEM_PROGRAMS = in_order("/bin /usr/bin /usr/local/bin /sbin /usr/sbin /opt/homebrew/bin")

_CARRIERS = listed(
    """
    sudo doas env time timeout nice ionice nohup setsid stdbuf xargs find command builtin exec eval trap sh bash dash
    zsh ksh ash busybox watch parallel flock strace ltrace chroot unshare taskset script coproc ssh
    fish xonsh su runuser pkexec systemd-run setpriv chrt prlimit setarch numactl nsenter entr unbuffer rlwrap
    fakeroot proot firejail tini dumb-init
    """
)
"""Programs that run other commands, which are given as their arguments.

A rule that denies a command also denies it as an argument of such a program. A rule that allows a
command doesn't allow it there.
"""
_QUIET_SETTINGS = LazyPattern(
    r"LANG|LANGUAGE|LC_\w+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|CI|COLUMNS|LINES|TERM|DEBUG|VERBOSE|RUST_LOG|RUST_BACKTRACE|"
    r"NODE_ENV|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|PYTHONHASHSEED|LOG_LEVEL|TEST_\w+|SOURCE_DATE_EPOCH"
)
"""Environment variables that a command may set and still count as harmless.

Most of them only affect a program's output.
"""
_PROGRAM = LazyPattern(r"[A-Za-z0-9_.+\[:/@-]+", re.ASCII)
_PROSE = listed("-m -am --message --body -b --title -t --notes --comment")
"""Options whose value is plain text, such as a commit message.

A quoted value of such an option is harmless, even if it isn't known until the command runs.
"""
_WITH_MESSAGE = listed("commit tag notes")
"""Subcommands of git that take a message."""
_REPORTING = listed("status diff log show rev-parse ls-files blame")
"""Subcommands of git that only report."""
_NOT_REPORTING = ("--ou", "--ex", "--te")
"""Beginnings of options with which a subcommand in `_REPORTING` writes a file or runs another
program. Git also accepts shortened options."""
_MESSAGE_OPTIONS = listed("-m -am --message")
_MOVED_FIRST = LazyPattern(r"\s*cd\s+[^\s;&|]+\s*&&")
_NOT_A_CHAIN = LazyPattern(r"\|\||;|\n|(?<!&)&(?!&)")
"""Matches separators other than ``&&`` and ``|``.

If a line has such a separator and the ``cd`` at its start fails, later commands may run in the old
directory.
"""
_MOVERS = listed("cd pushd popd")
_BUILTINS = listed("cd pushd popd : true false test set export unset shift wait exit return sleep")
"""Commands, most of them builtins of the shell, that never change a file."""
_NO_CODE = LazyPattern(r"[\w./:=+,@%~-]*", re.ASCII)
"""Matches words that no builtin takes for an expression."""
_MOVER_PREFIXES = listed("command builtin")
_MAX_FOLDERS = 64
"""Maximum number of possible working directories that a ``cd`` in the line can start from.

If there are more, the target of a further ``cd`` is resolved only from the last of them.
"""
_MAX_EFFORT = 100_000
"""Maximum effort, in words (see `_effort`) times directories, of an analysis; it takes a second.

A line that needs more is unclear.
"""
_GIT_VALUED = listed(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source"
)
"""Options that git takes before the subcommand, and whose value may be the next word."""
_LONE_DASH = LazyPattern(r"(?<!\S)-(?!\S)")
_IN_HOME = LazyPattern(r'"?\$(?:HOME|\{HOME\})((?:/[\w.-]+)*/?)"?', re.ASCII)
"""Matches a path in the home directory that is written with ``$HOME``."""
_SECONDS = LazyPattern(r"\d+(?:\.\d+)?[smh]?")


def command_needs(command: str, cwd: Path, project: Path) -> tuple[PermissionNeed, ...]:
    """Return the permissions that a command line needs, without duplicates.

    ``cwd`` is the working directory of the line. This function looks up many paths on disk, so call
    it in a thread.
    """
    root = Path(os.path.realpath(project))
    folder = Path(os.path.realpath(cwd))
    script = read_script(command)
    if not script.problems and is_free(command, folder, root):
        return tuple(_need(simple, harmless=True) for simple in script.commands)
    folders = _folders(script, command, folder)
    analyzer = _CommandAnalyzer(command, root, folders)
    if len(folders) * _effort(script) > _MAX_EFFORT:
        return (analyzer.unclear("it changes the directory too often to follow"),)
    return tuple(dict.fromkeys(analyzer.judge(script)))


def _effort(script: ParsedLine) -> int:
    """Return how long a line takes to analyse for each directory, in words; a command counts as ten."""
    return sum(10 + len(simple.words) for simple in script.commands)


def _folders(script: ParsedLine, command: str, folder: Path) -> tuple[Path, ...]:
    """Return the real paths of all directories in which commands of a line may run.

    These are ``folder``, and the target of each ``cd``, as seen from each directory found before.
    If the line begins with its only ``cd`` and stops if that fails, only the target is returned.
    """
    found = [folder]
    moves = 0
    for simple in script.commands:
        operands = _operands_of_move(simple.words)
        if operands is None:
            continue
        moves += 1
        target = _target(operands)
        if target is None:
            continue
        # Consider all directories, because an earlier ``cd`` may have failed or have run in a
        # subshell.
        starts = found
        if len(found) > _MAX_FOLDERS:
            starts = found[-1:]
        reached = [Path(os.path.realpath(start / with_home(target))) for start in starts]
        found = [*(place for place in found if place not in reached), *dict.fromkeys(reached)]
    is_left = _MOVED_FIRST.match(command) and not _NOT_A_CHAIN.search(command)
    if is_left and moves == 1:
        return tuple(found[-1:])
    return tuple(found)


def _operands_of_move(words: Sequence[Word]) -> list[str | None] | None:
    """Return the operands of ``cd``, ``pushd`` or ``popd``, or None for any other command.

    For a bare ``cd``, the operand is ``~``.
    """
    values = [word.value for word in words]
    while values and values[0] in _MOVER_PREFIXES:
        values = _without_switches(values[1:])
    if not values or values[0] not in _MOVERS:
        return None
    operands = _without_switches(values[1:])
    if not operands and values[0] == "cd":
        return ["~"]
    return operands


def _target(operands: Sequence[str | None]) -> str | None:
    """Return the directory that a ``cd`` or ``pushd`` changes to, as written in the command.

    Returns None if the directory isn't known, or if the line changes back to an earlier directory
    (``cd -``, ``popd``).
    """
    if not operands or operands[0] == "-":
        return None
    return operands[0]


def _without_switches(values: list[str | None]) -> list[str | None]:
    """Return ``values`` without the switches at their start, such as ``-P`` and ``--``."""
    for at, value in enumerate(values):
        if value == "--":
            return values[at + 1 :]
        if value is None or value == "-" or not value.startswith("-"):
            return values[at:]
    return []


class _CommandAnalyzer:
    """Finds the permissions that one command line needs.

    ``folders`` are the directories in which its commands may run.
    """

    def __init__(self, command: str, project: Path, folders: tuple[Path, ...]) -> None:
        self._command = command
        self._project = project
        self._folders = folders

    def judge(self, script: ParsedLine) -> Iterator[PermissionNeed]:
        if script.problems:
            yield from map(self.unclear, script.problems)
            return
        for name, word in script.assignments:
            if not _QUIET_SETTINGS.fullmatch(name):
                text = f"{name}={word.source}"
                yield PermissionNeed(
                    Permission.BASH, text, text, "command", unclear=f"{name} may change what runs"
                )
        for operator, target in script.redirects:
            yield from self._redirect(operator, target)
        writes = False
        for how, target in script.redirects:
            if ">" in how and target.value not in HARMLESS_DEVICES:
                writes = True
        for simple in script.commands:
            if simple.words:
                yield from self._simple(simple, writes=writes)

    def _real(self, text: str) -> Iterator[Path]:
        """Yield the path ``text`` with links resolved, for each possible working directory."""
        for folder in self._folders:
            yield Path(os.path.realpath(os.path.join(folder, text)))  # noqa: PTH118 - called for every word

    def _simple(self, simple: SimpleCommand, *, writes: bool) -> Iterator[PermissionNeed]:
        """Yield the permissions that one simple command needs.

        ``writes`` is True if a redirection of the line writes to a file. In that case, no command
        of the line counts as harmless, but some change no files themselves.
        """
        if simple.fed:
            text = simple.source.partition("<<")[0]
        else:
            text = simple.source
        # The parser may drop a lone dash, and then the text isn't the whole command.
        plain = not simple.assignments and not _LONE_DASH.search(self._command)
        free = plain and all(is_free(text, folder, self._project) for folder in self._folders)
        need = _need(simple, harmless=free)
        reads_only = (
            free or _only_reports(simple) or _changes_only_the_shell(simple, need, writes=writes)
        )
        yield replace(need, harmless=free and not writes, reads_only=reads_only)
        if not free:
            yield from self._places(_without_message(simple.words))

    def unclear(self, why: str) -> PermissionNeed:
        """Return the need for the whole line, which can't be analysed; ``why`` is a clause."""
        return PermissionNeed(Permission.BASH, self._command, self._command, "command", unclear=why)

    def _redirect(self, operator: str, target: Word) -> Iterator[PermissionNeed]:
        value = target.value
        written = f"{operator} {target.source}"
        if value is None or target.glob:
            yield self.unclear(f"the target of {written} is not known before the command runs")
            if ">" in operator and (path := _in_home(target)):
                yield from self._written(with_home(path), written)
        elif value.startswith(("/dev/tcp/", "/dev/udp/")):
            yield self.unclear("it opens a network connection")
        elif ">" not in operator:
            yield from self._places((target,))
        elif value not in HARMLESS_DEVICES:
            if target.tilde:
                value = with_home(value)
            yield from self._written(value, written)

    def _written(self, text: str, written: str) -> Iterator[PermissionNeed]:
        for real in self._real(text):
            yield PermissionNeed(Permission.EDIT, rule_path(real, self._project), written)
            if not real.is_relative_to(self._project):
                yield outside_need(real)

    def _places(self, words: Iterable[Word]) -> Iterator[PermissionNeed]:
        """Yield the permissions needed for the working directories and for the paths in ``words``.

        Directories outside the project need a permission, and so do paths outside the project and
        secret files that are named in ``words``.
        """
        for folder in self._folders:
            if not folder.is_relative_to(self._project):
                yield outside_need(folder)
        for word in words:
            for text in _path_texts(word):
                yield from self._place(text)
            if word.glob:
                yield from self._matched(word.value or word.start)

    def _matched(self, pattern: str) -> Iterator[PermissionNeed]:
        """Yield the permission to read each file that a glob may match and that may hold secrets.

        A file may hold secrets if its name suggests so.
        """
        start = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        directory, slash, name = start.rpartition("/")
        last = pattern.removeprefix(f"{directory}{slash}")
        # If the last name has brackets or other special characters, assume it matches all names.
        if not re.fullmatch(r"[\w.*?-]+", last, re.ASCII):
            last = "*"
        for place in self._real(directory or "."):
            with contextlib.suppress(OSError):
                for found in filter(is_sensitive, os.listdir(place)):  # noqa: PTH208 - only names are needed
                    is_shown = name.startswith(".") or not found.startswith(".")
                    if is_shown and fnmatchcase(found, last):
                        path = rule_path(place / found, self._project)
                        yield PermissionNeed(Permission.READ, path)

    def _place(self, text: str) -> Iterator[PermissionNeed]:
        if text in HARMLESS_DEVICES or "\0" in text:
            return
        for real in self._real(text):
            if not real.is_relative_to(self._project) and not str(real).startswith(SYSTEM_PROGRAMS):
                yield outside_need(real)
            named = is_sensitive(real) or is_sensitive(text)
            if named or (real.is_relative_to(self._project) and file_holds_secret(real)):
                yield PermissionNeed(
                    Permission.READ, rule_path(real, self._project), secret=not named
                )


def _only_reports(simple: SimpleCommand) -> bool:
    """Return True for a git command that reports and writes no file, such as ``git status``."""
    if simple.assignments or _git_subcommand(simple.words) not in _REPORTING:
        return False
    values = [word.value for word in simple.words]
    return all(value is not None and not value.startswith(_NOT_REPORTING) for value in values)


def _changes_only_the_shell(simple: SimpleCommand, need: PermissionNeed, *, writes: bool) -> bool:
    """Return True for a builtin that changes no files, but at most the state of the shell.

    ``need`` is the permission that the command needs. If a redirection of the line ``writes`` to a
    file, the target of a ``cd`` must be known, because it says which file.
    """
    program = simple.words[0].value
    if simple.assignments or program not in _BUILTINS:
        return False
    if program == "cd" and not writes:
        return True
    # Bash runs commands in the subscripts of some arguments: test -v 'a[$(rm x)]'.
    return not need.unclear and all(_NO_CODE.fullmatch(word.shown) for word in simple.words)


def outside_need(real: Path) -> PermissionNeed:
    """Return the permission to use the directory that contains a path outside the project."""
    directory = real
    if not is_directory(real):
        directory = real.parent
    return PermissionNeed(Permission.EXTERNAL_DIRECTORY, str(directory), detail=str(real))


def _need(simple: SimpleCommand, *, harmless: bool = False) -> PermissionNeed:
    """Return the permission that is needed to run one simple command.

    A ``harmless`` command is not checked for effects that can't be known in advance.
    """
    words = _uncarried(simple.words)
    need = PermissionNeed(
        Permission.BASH,
        _rule_text(simple, words),
        simple.source,
        "command",
        harmless=harmless,
        aliases=tuple(dict.fromkeys((simple.source, *_aliases(simple.words)))),
    )
    always, exceeded = _offered(simple, words, need.pattern)
    if harmless:
        return replace(need, always=always)
    unclear = _unclear(simple.words)
    if unclear:
        always = ""
    changes = _changes_of_git(words)
    return replace(need, always=always, unclear=unclear, exceeds=exceeded, changes=changes)


def _rule_text(simple: SimpleCommand, words: Sequence[Word]) -> str:
    """Return the text of a command against which rules are matched.

    The text consists of the command's assignments (except harmless ones), ``words``, and the text
    of the command's here-document.
    """
    texts = [*_settings(simple), *(word.shown for word in words), simple.fed]
    return " ".join(filter(None, texts))


def _settings(simple: SimpleCommand) -> list[str]:
    """Return a command's assignments (``A=1``) to variables that may change its effect."""
    settings: list[str] = []
    for name, word in simple.assignments:
        if not _QUIET_SETTINGS.fullmatch(name):
            settings.append(f"{name}={word.shown}")
    return settings


def _offered(simple: SimpleCommand, words: Sequence[Word], pattern: str) -> tuple[str, str]:
    """Return the pattern of the rule that is created if the user answers "always" for a command.

    The second result is the pattern of the command's family if the family doesn't cover one of the
    command's options, otherwise "". ``pattern`` is the text of the command that rules are matched
    against.
    """
    always, exceeded = family(words)
    # A program in `TABLE` often runs without a rule, so a rule for it allows only this exact
    # command.
    is_exact = words[0].value in TABLE or (simple.fed and not always.endswith(" *"))
    if is_exact or _settings(simple):
        always = escaped(pattern)
    return always, exceeded


def _changes_of_git(words: Sequence[Word]) -> tuple[Change, ...]:
    """Return what a git command changes, as far as this is known. Returns () for other commands."""
    if words[0].value != "git":
        return ()
    *_, rest = _without_options([word.value or "" for word in words[1:]])
    if not rest:
        return ()
    if rest[0] in _BOTH:
        return ("repository", "sources")
    if rest[0] in _REPOSITORY:
        return ("repository",)
    return ()


def _uncarried(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return a command's words without a leading ``time``, ``timeout 60``, ``nohup`` etc."""
    values = [word.value or "" for word in words[:3]]
    if len(words) > 1 and values[0] in {"time", "nohup"} and not values[1].startswith("-"):
        return _uncarried(words[1:])
    if len(words) > 2 and values[0] == "timeout" and _SECONDS.fullmatch(values[1]):
        return _uncarried(words[2:])
    return words


def _unclear(words: Sequence[Word]) -> str:
    """Return a clause that says why a command's effect can't be known in advance, or ""."""
    program = words[0].value
    if program is None or words[0].glob or words[0].tilde or not _PROGRAM.fullmatch(program):
        return f"the program meant by {words[0].source} is not known before the command runs"
    previous = ""
    for word in words[1:]:
        prose = previous in _PROSE and word.source.startswith('"') and word.source.endswith('"')
        if word.value is None and not prose:
            return f"the value of {word.source} is not known before the command runs"
        previous = word.value or ""
    return ""


def _aliases(words: Sequence[Word], depth: int = 0) -> Iterator[str]:
    """Yield other forms of a command, and the commands that it runs, because rules may deny them.

    ``depth`` is the number of nested scripts that contain the command, at most `MAX_NESTING`.
    """
    shown = [word.shown for word in words]
    program = shown[0].rpartition("/")[2]
    yield " ".join([program, *shown[1:]])
    yield " ".join(shown)
    yield from run_by(shown)
    if program == "git":
        for rest in _without_options(shown[1:]):
            yield " ".join(["git", *rest])
    if program not in _CARRIERS:
        return
    for first in range(1, len(shown)):
        yield " ".join(shown[first:])
    if depth == MAX_NESTING:
        return
    for word in words[1:]:
        for simple in read_script(word.value or "").commands:
            if simple.words:
                yield from _aliases(simple.words, depth + 1)


def _without_message(words: Sequence[Word]) -> list[Word]:
    """Return a command's words without the message of a commit, tag or note, which names no file.

    A message that isn't known before the command runs is kept.
    """
    if _git_subcommand(words) not in _WITH_MESSAGE:
        return list(words)
    values = [word.value for word in words]
    kept: list[Word] = []
    for before, word in zip([None, *values], words, strict=False):
        is_message = before in _MESSAGE_OPTIONS or (word.value or "").startswith("--message=")
        if word.value is None or not is_message:
            kept.append(word)
    return kept


def _git_subcommand(words: Sequence[Word]) -> str:
    """Return the subcommand of a git command without options before it; "" for other commands."""
    values = [word.value for word in words[:2]]
    if len(values) < 2 or values[0] != "git":
        return ""
    return values[1] or ""


def _without_options(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield git's arguments with fewer and fewer of their leading options.

    The first result is the arguments themselves, the second lacks the first option, and so on. The
    last result begins with the subcommand.
    """
    yield words
    while words and words[0].startswith("-"):
        if words[0] in _GIT_VALUED:
            words = words[2:]
        else:
            words = words[1:]
        yield words


def _path_texts(word: Word) -> list[str]:
    """Return the texts in a word that may be paths, with ``~`` expanded.

    These are the whole word and its parts (see ``parts_of``). If the value of the word isn't known
    before the command runs, the known beginning is used.
    """
    text = word.value
    if text is None:
        text = _in_home(word) or word.start
    return parts_of(text)


def _in_home(word: Word) -> str:
    """Return a word such as ``$HOME/x`` with ``~`` in place of the variable; "" for other words.

    This path may be wrong, because a script can set HOME itself.
    """
    found = _IN_HOME.fullmatch(word.source)
    if found is None:
        return ""
    return f"~{found[1]}"
