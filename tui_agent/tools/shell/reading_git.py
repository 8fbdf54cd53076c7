"""The forms of git that only read, for the closed grammar.

A repository can name programs in its settings, lead elsewhere, and have others embedded in it. So git is free only at
a repository whose settings, line by line, are of a kind that is named here.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tui_agent.inside import read_regular
from tui_agent.tools.own_git import run_git
from tui_agent.tools.sensitive import is_sensitive
from tui_agent.tools.shell.grammar import Place, is_listable

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
_MOST_SETTINGS = 65_536
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
    "log": rf"{_NAMES}|{_PLAIN}|{_FORMAT}|-\d{{1,6}}|-n\d{{1,6}}|--max-count=\d{{1,6}}|--graph|--all|--decorate"
    r"|--(?:no-)?merges|--reverse|--date=(?:short|iso|relative)|--(?:since|until|after|before|author|grep)=[ -~]*",
    "branch": r"-a|-r|-v|-vv|--show-current|--all|--list",
    "rev-parse": r"--abbrev-ref|--short|--show-toplevel|--is-inside-work-tree|--show-prefix",
    "ls-files": r"-m|-o|-d|--others|--exclude-standard|--modified",
}
_WITH_REVISIONS = frozenset({"diff", "show", "log", "rev-parse"})
_WITH_CONTENTS = frozenset({"diff", "show"})


def is_reading(words: Sequence[str], place: Place) -> bool:
    """Return whether git, given these words, only reads and shows no secret. Looks at files, and runs our own git."""
    name, *rest = words[1:] if words[:1] == ("--no-pager",) else words or ("",)
    if name not in _SWITCHES or not is_plain(place):
        return False
    at = rest.index("--") if "--" in rest else len(rest)
    switches = [word for word in rest[:at] if word.startswith("-")]
    operands = [word for word in rest[:at] if not word.startswith("-")]
    there = [word for word in operands if os.path.lexists(place.folder / word)]
    revisions = [word for word in operands if word not in there and _REVISION.fullmatch(word)]
    paths = [*there, *rest[at + 1 :]]
    if len(revisions) + len(there) != len(operands):
        return False
    if not all(re.fullmatch(_SWITCHES[name], switch, re.ASCII) for switch in switches):
        return False
    if (revisions and name not in _WITH_REVISIONS) or (paths and name == "branch"):
        return False
    if not all(is_listable(path, place) for path in paths):
        return False
    only_names = re.compile(f"{_NAMES}|{_PLAIN}|{_FORMAT}", re.ASCII).fullmatch
    names = any(re.fullmatch(_NAMES, switch, re.ASCII) for switch in switches) and all(map(only_names, switches))
    return name not in _WITH_CONTENTS or names or _shows_no_secret(name, switches, revisions, place)


def is_plain(place: Place) -> bool:
    """Whether git run in a folder finds the project's own repository, and that has no settings that act."""
    top = place.project / ".git"
    between = [place.folder, *place.folder.parents][: len(place.folder.relative_to(place.project).parts)]
    if any(os.path.lexists(folder / name) for folder in between for name in (".git", "HEAD")):
        return False
    if not top.is_dir() or any((top / name).is_symlink() for name in _OWN):
        return False
    if any(os.path.lexists(top / name) for name in _OTHERS):
        return False
    settings = read_regular(top / "config", _MOST_SETTINGS)
    if settings is None or len(settings) == _MOST_SETTINGS:
        return False
    if not all(_SETTINGS.fullmatch(line) for line in settings.decode("utf-8", "replace").split("\n")):
        return False
    staged = run_git(place.project, "ls-files", "-s", "-z")
    return staged is not None and not any(row.startswith(b"160000 ") for row in staged.split(b"\0"))


def _shows_no_secret(name: str, switches: Sequence[str], revisions: Sequence[str], place: Place) -> bool:
    """Whether no file that the same command would show is one that usually holds secrets."""
    if not all(map(_COMMIT.fullmatch, revisions)):
        return False
    cached = [switch for switch in switches if switch in {"--cached", "--staged"}]
    more = ("--format=", "-m") if name == "show" else ()
    # What is no commit, such as the name of a file's contents, is refused by ``^{commit}``.
    commits = [f"{revision}^{{commit}}" for revision in revisions]
    options = ("--name-only", "-z", *more, *cached)
    found = run_git(place.project, name, *options, *commits, "--")
    if found is None:
        return False
    names = found.decode("utf-8", "replace").replace("\n", "\0").split("\0")
    return not any(is_sensitive(part) for path in names for part in Path(path).parts)
