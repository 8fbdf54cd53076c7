"""The forms of git that only read, for the closed grammar.

A repository can name programs in its settings, lead elsewhere, and have others embedded in it. So git is free only at
a repository whose settings, line by line, are of a kind that is named here.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tui_agent.files.inside import read_regular
from tui_agent.files.own_git import run_git
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory
from tui_agent.shell.command_place import CommandPlace, is_listable

_SETTINGS = re.compile(
    r"""
    [ \t]*(?:
        (?:[#;][ -~\t]*)?
        | \[(?:core|user|init|pull|push|merge|color)\] | \[(?:remote|branch)[ ]"[\w./+-]+"\]
        | (?:repositoryformatversion|filemode|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|ff
            |rebase|default|defaultbranch|ui|name|email|url|pushurl|fetch|merge|remote|vscode-merge-base)
          [ ]?=[ ]?[^\\\n]*
        | bare[ ]?=[ ]?false
    )[ \t]*
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""A line of settings that starts nothing and leads nowhere. ``remote`` is whom a branch follows: nothing is fetched."""
_MAX_SETTINGS_BYTES = 65_536
_OWN = ("", "HEAD", "config", "index", "info", "objects", "objects/info", "refs")
_OTHERS = ("commondir", "config.worktree", "info/attributes", "info/grafts", "objects/info/alternates")
"""What of a repository has to be itself and no link, and what would bring another repository or other settings in."""
_PART = r"(?:HEAD|@|[A-Za-z0-9][\w/.-]*)(?:[~^]\d*)*"
_REVISION = re.compile(rf"{_PART}(?:\.\.\.?{_PART})?", re.ASCII)
_COMMIT = re.compile(r"(?:HEAD|[0-9a-f]{40})(?:[~^]\d*)*", re.ASCII)
"""A commit by a name that no reference of the repository can stand in for."""
_FORMAT = r"--(?:format|pretty)=(?!.*%G)[\w :,.|<>()%-]*"
_NAMES = r"--(?:stat|shortstat|numstat|name-only|name-status)"
_PLAIN = r"--(?:cached|staged|oneline|no-color|color=never|abbrev-commit)"
_SWITCHES = {
    "status": r"-s|-b|-sb|--short|--branch|--porcelain(?:=v[12])?|-uno|--untracked-files=no",
    "diff": rf"{_NAMES}|{_PLAIN}|-U\d{{1,4}}|-w|-b|--word-diff|--check",
    "show": rf"{_NAMES}|{_PLAIN}|-U\d{{1,4}}|{_FORMAT}",
    "grep": r"-[nliwcFE]{1,4}",
    "log": rf"{_NAMES}|{_PLAIN}|{_FORMAT}|-p|-\d{{1,6}}|-n\d{{1,6}}|--max-count=\d{{1,6}}|--graph|--all|--decorate"
    r"|--(?:no-)?merges|--reverse|--date=(?:short|iso|relative)|--(?:since|until|after|before|author|grep)=[ -~]*",
    "branch": r"-a|-r|-v|-vv|--show-current|--all|--list",
    "rev-parse": r"--abbrev-ref|--short|--show-toplevel|--is-inside-work-tree|--show-prefix",
    "rev-list": r"--count",
    "ls-files": r"-m|-o|-d|--others|--exclude-standard|--modified",
}
_ONLY_NAMES = re.compile(f"{_NAMES}|{_PLAIN}|{_FORMAT}", re.ASCII)
_WITH_PATHS = frozenset(_SWITCHES) - {"branch", "rev-parse"}
"""Commands that read what they name; to others a file's name is a name like any: ``git branch data`` makes one."""
_WITH_REVISIONS = frozenset({"diff", "show", "log", "rev-parse", "rev-list"})
_LOGGED = re.compile(rf"{_NAMES}|{_PLAIN}|{_FORMAT}|-p|-\d{{1,6}}", re.ASCII)
"""Switches of ``git log`` that leave it at the commits before ``HEAD``."""


@dataclass(frozen=True, slots=True)
class _GitCommand:
    """A git command in one of the known forms."""

    name: str
    switches: tuple[str, ...]
    revisions: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def shows_contents(self) -> bool:
        """Whether what is in files is shown, not their names only."""
        if self.name not in {"diff", "show", "grep"} and not (self.name == "log" and "-p" in self.switches):
            return False
        names = any(re.fullmatch(_NAMES, switch, re.ASCII) for switch in self.switches)
        return not (names and all(map(_ONLY_NAMES.fullmatch, self.switches)))


def is_reading(words: Sequence[str], place: CommandPlace) -> bool:
    """Return whether git, given these words, only reads and shows no secret. Looks at files, and runs our own git."""
    asked = _read(words, place)
    if asked is None or not all(is_listable(path, place) for path in asked.paths) or not is_plain(place):
        return False
    return not asked.shows_contents or _shows_no_secret(asked, place)


def _read(words: Sequence[str], place: CommandPlace) -> _GitCommand | None:
    """Return what git is asked, None for what has none of the known forms."""
    name, *rest = words[1:] if words[:1] == ("--no-pager",) else words or ("",)
    at = rest.index("--") if "--" in rest else len(rest)
    switches = [word for word in rest[:at] if word.startswith("-")]
    operands = [word for word in rest[:at] if not word.startswith("-")]
    if name == "grep":
        # What is searched for.
        operands = operands[1:]
    there = [word for word in operands if os.path.lexists(place.folder / word)]
    revisions = [word for word in operands if word not in there]
    known = _SWITCHES.get(name)
    if known is None or not all(re.fullmatch(known, switch, re.ASCII) for switch in switches):
        return None
    if revisions and not (name in _WITH_REVISIONS and all(map(_REVISION.fullmatch, revisions))):
        return None
    paths = (*there, *rest[at + 1 :])
    if paths and name not in _WITH_PATHS:
        return None
    return _GitCommand(name, tuple(switches), tuple(revisions), paths)


def is_plain(place: CommandPlace) -> bool:
    """Whether git run in a folder finds the project's own repository, and that has no settings that act."""
    top = place.project / ".git"
    between = [place.folder, *place.folder.parents][: len(place.folder.relative_to(place.project).parts)]
    if any(os.path.lexists(folder / name) for folder in between for name in (".git", "HEAD")):
        return False
    if not is_directory(top) or any((top / name).is_symlink() for name in _OWN):
        return False
    if any(os.path.lexists(top / name) for name in _OTHERS):
        return False
    settings = read_regular(top / "config", _MAX_SETTINGS_BYTES)
    if settings is None or len(settings) == _MAX_SETTINGS_BYTES:
        return False
    if not all(_SETTINGS.fullmatch(line) for line in settings.decode("utf-8", "replace").split("\n")):
        return False
    staged = run_git(place.project, "ls-files", "-s", "-z")
    return staged is not None and not any(row.startswith(b"160000 ") for row in staged.split(b"\0"))


def _shows_no_secret(asked: _GitCommand, place: CommandPlace) -> bool:
    """Whether no file that is shown is one that usually holds secrets: our own git names all that may be."""
    logged = asked.name != "log" or all(map(_LOGGED.fullmatch, asked.switches))
    if not logged or not all(map(_COMMIT.fullmatch, asked.revisions)) or any(map(is_sensitive, asked.paths)):
        return False
    command = ["ls-files", "-z"]
    if asked.name != "grep":
        cached = [switch for switch in asked.switches if switch in {"--cached", "--staged"}]
        merges = [] if asked.name == "diff" else ["--format=", "-m"]
        # What is no commit, such as the name of a file's contents, is refused by ``^{commit}``.
        commits = [f"{revision}^{{commit}}" for revision in asked.revisions]
        command = [asked.name, "--name-only", "-z", *merges, *cached, *commits]
    found = run_git(place.folder, *command, "--", *asked.paths)
    names = (found or b"").decode("utf-8", "replace").replace("\n", "\0").split("\0")
    return found is not None and not any(is_sensitive(part) for path in names for part in Path(path).parts)
