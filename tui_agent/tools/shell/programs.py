"""What is known of programs that only read: which of their options don't, and which of their arguments are files.

Being in these tables means that a command runs without a question, so a program is in them only when every way it
has to write, to run something else, or to reach the network is named here and refused. An option is refused as soon
as it could be the beginning of one of those: long options may be shortened.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tui_agent.tools.shell.git import READING, read_only_git
from tui_agent.tools.shell.special import SPECIAL
from tui_agent.tools.shell.use import Use, refuses
from tui_agent.tools.shell.words import Word, listed

Operands = Literal["paths", "pattern", "text", "none"]


@dataclass(frozen=True, slots=True)
class Program:
    """How a program is used without changing anything.

    ``short`` and ``long`` are options that do more than read. ``operands`` says what arguments are that are no
    options: with "pattern" the first is none that names a file. ``most`` operands are accepted.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    operands: Operands = "paths"
    contents: bool = True
    most: int | None = None
    pattern_options: tuple[str, ...] = ()
    tree_short: str = ""
    tree_long: tuple[str, ...] = ()
    searches: bool = False
    """Looks below directories of its own accord."""


_READ = Program()
_LIST = Program(contents=False)
_TEXT = Program(operands="text")
_GREP = Program(
    short="R",
    long=("dereference-recursive",),
    operands="pattern",
    pattern_options=("e", "f", "regexp", "file"),
    tree_short="rd",
    tree_long=("recursive", "directories"),
)

PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(
        (
            "cat", "head", "tail", "wc", "nl", "tac", "rev", "cut", "fold", "expand", "unexpand", "paste", "join",
            "comm", "cmp", "sum", "cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum",
            "shasum", "strings", "od", "hexdump", "base64", "base32", "column", "fmt",
            "tsort", "look",
        ),
        _READ,
    ),
    **dict.fromkeys(
        ("ls", "stat", "df", "readlink", "realpath", "dir", "vdir", "lsblk", "cd", "pushd"), _LIST
    ),
    **dict.fromkeys(("echo", "basename", "dirname", "seq", "expr", "true", "false", ":", "sleep", "tr", "arch"), _TEXT),
    **dict.fromkeys(
        ("pwd", "whoami", "id", "groups", "uname", "nproc", "uptime", "free", "tty", "locale", "exit",
         "return", "break", "continue", "shift", "popd", "dirs", "logname", "users", "who", "w", "cal", "times"),
        Program(operands="text"),
    ),
    "file": Program(short="Cmf", long=("compile", "magic-file", "files-from"), contents=False),
    "diff3": Program(long=("diff-program",)),
    "du": Program(long=("files0-from",), contents=False),
    "jobs": Program(short="x", operands="text"),
    "wait": Program(short="p", operands="text"),
    "diff": Program(tree_short="r", tree_long=("recursive",)),
    **dict.fromkeys(("zcat", "bzcat", "xzcat"), Program(short="r", long=("recursive",))),
    "which": _TEXT,
    "type": _TEXT,
    "whereis": _TEXT,
    "grep": _GREP, "egrep": _GREP, "fgrep": _GREP, "zgrep": _GREP,
    "rg": Program(
        short="zLu.", long=("pre", "search-zip", "hostname-bin", "follow", "no-ignore", "unrestricted", "hidden"),
        operands="pattern", pattern_options=("e", "f", "regexp", "file", "files", "type-list"), searches=True,
    ),
    "sort": Program(
        short="oST", long=("output", "compress-program", "temporary-directory", "random-source", "files0-from")
    ),
    "uniq": Program(most=1),
    "xxd": Program(short="r", long=("revert",), most=1),
    "tree": Program(short="oRl", long=("output", "fromfile", "fromtabfile"), contents=False),
    "hostname": Program(short="FbB", long=("file", "boot"), operands="none"),
    "ps": Program(short="", operands="none"),
    "pgrep": Program(operands="text"),
    "jq": Program(short="L", long=("library-path",), operands="pattern", pattern_options=("f", "from-file")),
    "fd": Program(short="xXHILu", long=("exec", "exec-batch", "hidden", "no-ignore", "follow", "unrestricted"),
                  operands="pattern", contents=False),
    "less": Program(short="oOkPtTx+", long=("log-file", "LOG-FILE", "lesskey", "tag", "use-color")),
    "more": Program(short="+"),
    "lsof": Program(short="D", operands="none"),
    "ss": Program(short="KDF", long=("kill", "diag"), operands="none"),
    "netstat": Program(operands="none"),
    "tokei": _LIST,
    "scc": Program(short="o", long=("output", "format-multi"), contents=False),
}  # fmt: skip

_VERSION_OF = listed(
    """
    python python3 pip pip3 uv poetry pipenv tox nox pytest ruff mypy black isort flake8 pylint pyright node
    npm npx pnpm yarn bun deno tsc eslint prettier vite jest go gofmt cargo rustc rustup rustfmt gcc g++ cc
    c++ clang clang++ make cmake ninja meson bazel java javac mvn gradle kotlinc scala sbt ruby gem bundle
    rake rails php composer perl lua dotnet swift zig ghc stack cabal elixir mix erl docker docker-compose
    podman kubectl helm terraform ansible aws gcloud az gh git rg fd jq yq tmux bash zsh sh curl wget
    openssl sqlite3 psql mysql redis-cli ffmpeg convert pandoc brew apt
    """
)
_VERSION = frozenset({"--version", "-V", "-version", "version", "--help", "-v"})

_HARMLESS_SUBCOMMANDS = frozenset(
    {
        ("pip", "list"), ("pip", "show"), ("pip", "freeze"), ("pip", "check"), ("pip3", "list"), ("pip3", "show"),
        ("pip3", "freeze"), ("uv", "pip list"), ("npm", "ls"), ("npm", "list"), ("npm", "root"), ("npm", "prefix"),
        ("pnpm", "list"), ("pnpm", "ls"), ("yarn", "list"), ("yarn", "why"), ("npm", "explain"), ("go", "version"),
        ("docker", "ps"), ("docker", "images"), ("docker", "version"), ("docker", "info"), ("rustup", "show"),
        ("systemctl", "status"), ("systemctl", "list-units"), ("systemctl", "is-active"), ("crontab", "-l"),
        ("brew", "list"), ("dpkg", "-l"), ("apt", "list"), ("gem", "list"), ("bundle", "list"), ("poetry", "show"),
        ("kubectl", "version"), ("command", "-v"), ("command", "-V"), ("hash", ""), ("tmux", "ls"),
    }
)  # fmt: skip


_JQ_LOADS = re.compile(r"\b(?:import|include|modulemeta)\b|(?<![.\w\"])env\b|\$(?:ENV|__prog_args)\b")
"""What of jq loads other files or shows the environment."""
_REACHES_OUT = re.compile(
    r"-[A-Za-z]*[HM].*|-c|--(?:host|machine|context|config|log|index|extra|find-links|proxy).*|.*://.*"
)
"""Arguments with which a harmless subcommand asks another machine, or writes a log."""


def read_only(words: Sequence[Word]) -> Use | None:
    """Return what a command reads, None when it may do more than read (or is not known)."""
    name, arguments = words[0].value or "", tuple(words[1:])
    values = [word.value for word in arguments]
    if name == "git":
        return read_only_git(arguments)
    if len(values) == 1 and values[0] in _VERSION and name in _VERSION_OF:
        return None if (name, values[0]) in {("bash", "-v"), ("sh", "-v"), ("zsh", "-v")} else Use()
    if (name, values[0] if values else "") in _HARMLESS_SUBCOMMANDS and None not in values:
        return None if any(_REACHES_OUT.fullmatch(value or "") for value in values) else Use(contents=False)
    if name == "jq" and any(_JQ_LOADS.search(value or "") for value in values):
        return None
    if name in SPECIAL:
        return SPECIAL[name](arguments)
    program = PROGRAMS.get(name)
    return None if program is None else _use(program, arguments)


def usually_reads(words: Sequence[Word]) -> bool:
    """Return whether a program is in these tables: what it does beside reading is the exception."""
    name = (words[0].value or "").rpartition("/")[2]
    second = words[1].value if len(words) > 1 else None
    if name == "git":
        return second in READING
    return name in PROGRAMS or name in SPECIAL


def _use(program: Program, arguments: Sequence[Word]) -> Use | None:
    operands: list[Word] = []
    tree, pattern_given, options_end = program.searches, False, False
    for word in arguments:
        text = word.value
        if text is None:
            if not _is_text(word, program):
                return None
            operands.append(word)
        elif text == "--" and not options_end:
            options_end = True
        elif text.startswith("-") and text != "-" and not options_end:
            if refuses(program.short, program.long, text):
                return None
            tree = tree or _has(text, program.tree_short, program.tree_long)
            pattern_given = pattern_given or _has(
                text,
                "".join(o for o in program.pattern_options if len(o) == 1),
                tuple(o for o in program.pattern_options if len(o) > 1),
            )
            operands.append(word)
        elif text.startswith("+") and program.short.endswith("+"):
            return None
        else:
            operands.append(word)
    if tree and _is_narrowed([word.value or "" for word in arguments]):
        tree = False
    return _operands(
        program,
        operands,
        tree="all" if tree and not program.searches else "visible" if tree else "",
        pattern_given=pattern_given,
    )


def _operands(
    program: Program, words: list[Word], *, tree: Literal["", "visible", "all"], pattern_given: bool
) -> Use | None:
    plain = [word for word in words if not (word.value or "").startswith("-")]
    if program.most is not None and len(plain) > program.most:
        return None
    match program.operands:
        case "none":
            return Use(contents=False) if not plain else None
        case "text":
            return Use(contents=False)
        case "pattern" if not pattern_given:
            first = next((word for word in plain if not (word.value or "").isdigit()), None)
            return Use(tuple(word for word in words if word is not first), program.contents, tree)
        case _:
            return Use(tuple(words), program.contents, tree)


def _is_narrowed(values: Sequence[str]) -> bool:
    """Whether a search is told to look at source files only: ``--include=*.py``, ``--type py``."""
    included = [value.partition("=")[2] for value in values if value.startswith("--include=")]
    pairs = list(pairwise(values))
    included += [value for option, value in pairs if option == "--include"]
    types = [value for option, value in pairs if option in {"-t", "--type"}]
    types += [match[1] for value in values if (match := re.fullmatch(r"(?:-t|--type=)(\w+)", value))]
    named = bool(included) and all(re.fullmatch(r"\*\.\w{1,4}", value) for value in included)
    secret = {"*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks"}.intersection(included)
    return (named and not secret) or (bool(types) and not {"all", "config", "dotenv"}.intersection(types))


def _is_text(word: Word, program: Program) -> bool:
    """Whether an argument that isn't known yet can do no harm: the program only prints it."""
    return program.operands == "text" and not program.short and not word.start.startswith("-")


def _has(option: str, short: str, long: Sequence[str]) -> bool:
    if option.startswith("--"):
        name = option[2:].partition("=")[0]
        return bool(name) and any(known.startswith(name) for known in long)
    return any(letter in short for letter in option[1:])
