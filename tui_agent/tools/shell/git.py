"""Which uses of git only read."""

import re
from collections.abc import Sequence

from tui_agent.tools.shell.use import Use, refuses
from tui_agent.tools.shell.words import Word, listed, literal

_REFUSED = (
    "output", "ext-diff", "exec", "upload-pack", "receive-pack", "open-files-in-pager", "no-index", "contents", "edit",
    "no-exclude-standard",
    "delete", "textconv-cache", "set-upstream",
    # Git shows a manual with the program that its settings name.
    "help",
)  # fmt: skip
_READS = listed(
    """
    status log diff show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree cat-file
    show-ref merge-base name-rev diff-tree diff-index diff-files count-objects check-ignore check-attr
    for-each-ref whatchanged cherry grep version range-diff show-branch merge-tree verify-commit verify-tag
    """
)
_NAMES_ONLY = listed("status shortlog describe rev-parse rev-list ls-files ls-tree show-ref merge-base name-rev")
_LISTING = re.compile(
    r"-[arvl]+|--(?:list|all|remotes|verbose|show-current|contains|no-contains|merged|no-merged|points-at|column|"
    r"no-column|color|no-color|ignore-case|abbrev|no-abbrev|sort|format)(?:=.*)?|-n\d*"
)
_LISTING_TAKES = frozenset(
    {"--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--sort", "--format"}
)
_MAKES_A_LIST = re.compile(r"-[arv]*l[arv]*|--(?:list|contains|no-contains|merged|no-merged|points-at)(?:=.*)?")
_CONFIG_KEYS = re.compile(
    r"(?:user\.(?:name|email)|core|remote\.\w+\.url|branch|init|pull|push|merge|diff|alias)(?:\.|$).*"
)
_SECOND_WORDS: dict[str, frozenset[str]] = {
    "stash": frozenset({"list", "show"}),
    "worktree": frozenset({"list"}),
    "submodule": frozenset({"status", "summary"}),
    "notes": frozenset({"list", "show"}),
    "bisect": frozenset({"log", "view"}),
    "lfs": frozenset({"ls-files", "status", "env"}),
    "reflog": frozenset({"show", "exists"}),
    "remote": frozenset({"get-url"}),
}
READING = _READS | _SECOND_WORDS.keys() - {"stash"} | {"branch", "tag"}
"""Subcommands of which some uses only read."""
_MAY_STAND_ALONE = frozenset({"remote", "reflog", "submodule", "branch", "tag"})


def subcommand(arguments: Sequence[Word]) -> tuple[tuple[Word, ...], int] | None:
    """Return directories given with ``-C`` and where the subcommand is; None for options that change how git works."""
    directories: list[Word] = []
    place = 0
    while place < len(arguments):
        text = arguments[place].value
        if text is None:
            return None
        if text in {"--no-pager", "--no-optional-locks", "--literal-pathspecs", "-P"}:
            place += 1
        elif text == "-C" and place + 1 < len(arguments) and arguments[place + 1].value is not None:
            directories.append(arguments[place + 1])
            place += 2
        elif text.startswith("-") and text not in {"--version", "-v"}:
            return None
        else:
            break
    return tuple(directories), place


def read_only_git(arguments: Sequence[Word]) -> Use | None:
    """Return what a git command looks at, None when it may change something or run a program."""
    found = subcommand(arguments)
    if found is None:
        return None
    directories, place = found
    if place >= len(arguments):
        return Use(contents=False)
    name, rest = arguments[place].value or "", arguments[place + 1 :]
    values = [word.value for word in rest]
    if None in values:
        return None
    texts = [value for value in values if value is not None]
    if name in {"--version", "-v"}:
        return Use(contents=False) if not texts else None
    if not _is_reading(name, texts):
        return None
    paths = [*directories, *(literal(part) for text in texts for part in _path_parts(text))]
    return Use(tuple(paths), contents=name not in _NAMES_ONLY)


def _is_reading(name: str, texts: Sequence[str]) -> bool:
    if any(text.startswith("--") and refuses("", _REFUSED, text) for text in texts if text != "--"):
        return False
    if name in {"branch", "tag"}:
        return _is_listing(texts)
    if name == "config":
        return _is_config_query(texts)
    if name == "remote" and texts[:1] != ["get-url"]:
        return texts in ([], ["-v"], ["--verbose"])
    if name in _SECOND_WORDS:
        return texts[0] in _SECOND_WORDS[name] if texts else name in _MAY_STAND_ALONE
    # ``git grep -O`` opens what it finds in a program.
    opens = re.compile(r"-[A-Za-z]*O" if name == "grep" else r"-O")
    return name in _READS and not any(opens.match(text) for text in texts)


def _is_listing(texts: Sequence[str]) -> bool:
    """Whether ``git branch`` or ``git tag`` lists: any name beside the listing options would be created."""
    takes, names, lists = False, 0, False
    for text in texts:
        if takes and not text.startswith("-"):
            takes = False
            continue
        takes = text in _LISTING_TAKES
        lists = lists or _MAKES_A_LIST.fullmatch(text) is not None
        if not text.startswith("-"):
            names += 1
        elif not _LISTING.fullmatch(text):
            return False
    return not names or lists


def _is_config_query(texts: Sequence[str]) -> bool:
    flags = {"--get", "get", "--global", "--local", "--get-all", "--show-origin", "--type=bool", "--bool", "--all"}
    keys = [text for text in texts if text not in flags]
    asks = any(text in {"--get", "get", "--get-all"} for text in texts)
    return asks and len(keys) == 1 and _CONFIG_KEYS.fullmatch(keys[0]) is not None


def _path_parts(text: str) -> list[str]:
    """Return what may be a path in an argument: itself, and what follows the colon in ``REVISION:PATH``."""
    if text.startswith("-"):
        value = text.partition("=")[2]
        return [value] if value else []
    revision, colon, path = text.rpartition(":")
    magic = re.sub(r"^:(?:\([^)]*\)|[!^/]+)", "", text)
    return list(dict.fromkeys([text, *([path] if colon and revision is not None else []), magic]))
