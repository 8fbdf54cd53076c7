"""Programs that run another command: what they run, as words or as a script to be read in turn."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.tools.shell.words import Hole, Word

INTERPRETERS = re.compile(
    r"(?:ba|z|da|k|a|c|tc|fi|)sh|busybox|(?:python|pypy)[\d.]*|node|nodejs|deno|bun|ruby|perl|php|lua[\d.]*|osascript|"
    r"tclsh|expect|Rscript|ghci|irb|psql|mysql|sqlite3|ts-node|tsx|pwsh"
)
"""Programs that run what they read when they are given nothing else to run."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What a wrapper runs: other commands, or the text of a script.

    ``asks`` tells that the wrapper itself needs to be allowed. ``problem`` says why what it runs can't be told.
    ``files`` marks commands that are given files found below the paths in ``roots``.
    """

    commands: tuple[tuple[Word, ...], ...] = ()
    scripts: tuple[str, ...] = ()
    asks: bool = False
    problem: str = ""
    roots: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()


def unwrap(words: Sequence[Word]) -> Wrapped | None:
    """Return what a command runs when it is a wrapper, None when it is an ordinary command."""
    name = (words[0].value or "").rpartition("/")[2]
    arguments = tuple(words[1:])
    if name in SHELLS:
        return _shell(arguments)
    handler = _HANDLERS.get(name)
    return handler(arguments) if handler is not None else None


def _shell(arguments: Sequence[Word]) -> Wrapped | None:
    """``sh -c SCRIPT``; a script file is an ordinary argument."""
    for place, word in enumerate(arguments):
        text = word.value
        if text is None:
            return Wrapped(problem="what the shell is told to run is known only when it runs")
        if not text.startswith(("-", "+")) or text == "-":
            return None
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", text):
            return _script(arguments[place + 1 :])
        if text in {"-o", "-O", "+o", "+O", "--rcfile", "--init-file", "-s"} or "=" in text:
            return Wrapped(problem=f"the shell is told {text}")
    return None


def _script(arguments: Sequence[Word]) -> Wrapped:
    if not arguments or arguments[0].value is None:
        return Wrapped(problem="the script it runs is known only when it runs")
    return Wrapped(scripts=(arguments[0].value,))


def _eval(arguments: Sequence[Word]) -> Wrapped:
    values = [word.value for word in arguments]
    if any(value is None for value in values) or any(word.glob for word in arguments):
        return Wrapped(problem="what eval runs is known only when it runs")
    return Wrapped(scripts=(" ".join(value for value in values if value is not None),))


def _trap(arguments: Sequence[Word]) -> Wrapped:
    if not arguments or arguments[0].value is None:
        return Wrapped(problem="what trap runs is known only when it runs")
    script = arguments[0].value
    return Wrapped(scripts=() if script in {"-", "", "-l", "-p"} else (script,))


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A wrapper whose options end where the command begins."""

    flags: str = ""
    values: str = ""
    long: frozenset[str] = frozenset()
    long_values: frozenset[str] = frozenset()
    operands: int = 0
    asks: bool = False

    def __call__(self, arguments: Sequence[Word]) -> Wrapped:
        """Skip the options and return the rest."""
        place = self._skip(arguments)
        if place is None:
            return Wrapped(problem="its options are not known", asks=self.asks)
        rest = tuple(arguments[place:])
        if any(word.value is None for word in arguments[place : place + self.operands]):
            return Wrapped(problem="its arguments are known only when it runs", asks=self.asks)
        rest = rest[self.operands :]
        return Wrapped(commands=(rest,) if rest else (), asks=self.asks or not rest)

    def _skip(self, arguments: Sequence[Word]) -> int | None:
        place = 0
        while place < len(arguments):
            text = arguments[place].value
            if text is None or not text.startswith("-") or text == "-":
                return place if text is not None or not self.operands else None
            if text == "--":
                return place + 1
            step = self._option(text)
            if step is None:
                return None
            place += step
        return place

    def _option(self, text: str) -> int | None:
        if text.startswith("--"):
            name, equals, _value = text[2:].partition("=")
            if name in self.long_values:
                return 1 if equals else 2
            return 1 if name in self.long and not equals else None
        if re.fullmatch(r"-\d+", text) and "0" in self.flags:
            return 1
        for place, letter in enumerate(text[1:], 1):
            if letter in self.values:
                return 1 if place < len(text) - 1 else 2
            if letter not in self.flags:
                return None
        return 1


def _env(arguments: Sequence[Word]) -> Wrapped:
    """``env A=1 command``: the assignments count as if they stood before the command."""
    place = 0
    found: list[tuple[str, str]] = []
    while place < len(arguments):
        text = arguments[place].value
        if text is None:
            return Wrapped(problem="what env sets is known only when it runs")
        if text in {"-i", "-", "--ignore-environment"}:
            place += 1
        elif text in {"-u", "--unset"} and place + 1 < len(arguments):
            place += 2
        elif match := re.fullmatch(r"(\w+)=(.*)", text, re.DOTALL):
            found.append((match[1], match[2]))
            place += 1
        elif text.startswith("-"):
            return Wrapped(problem=f"env is told {text}")
        else:
            return Wrapped(commands=(tuple(arguments[place:]),), assignments=tuple(found))
    return Wrapped(asks=True)


_XARGS = _Prefix(
    flags="0rtx", values="nPLIdsE", long=frozenset({"null", "no-run-if-empty", "verbose", "exit"}),
    long_values=frozenset({"max-args", "max-procs", "max-lines", "replace", "delimiter", "max-chars"}),
)  # fmt: skip


def _xargs(arguments: Sequence[Word]) -> Wrapped:
    """``xargs command``: the command is given words that nobody knows yet."""
    wrapped = _XARGS(arguments)
    if wrapped.problem or not wrapped.commands:
        return Wrapped(commands=((Word("echo", ("echo",)),),)) if not wrapped.problem else wrapped
    (command,) = wrapped.commands
    return Wrapped(commands=((*command, Word("…", (Hole("substitution"),))),))


_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _find(arguments: Sequence[Word]) -> Wrapped | None:
    """``find -exec command ;``: the command is given files below the places searched."""
    values = [word.value for word in arguments]
    if not any(value in _RUNS for value in values):
        return None
    first = next((place for place, value in enumerate(values) if value and value.startswith(("-", "(", "!"))), 0)
    roots = tuple(arguments[:first])
    kept: list[Word] = []
    commands: list[tuple[Word, ...]] = []
    place = 0
    while place < len(arguments):
        if values[place] not in _RUNS:
            kept.append(arguments[place])
            place += 1
            continue
        end = next((at for at in range(place + 1, len(values)) if values[at] in {";", "+"}), None)
        if end is None or end == place + 1:
            return Wrapped(problem="where the command of -exec ends can't be told")
        commands.append(tuple(_found(word) for word in arguments[place + 1 : end]))
        place = end + 1
    search = (Word("find", ("find",)), *kept)
    return Wrapped(commands=(search, *commands), roots=roots or (Word(".", (".",)),))


def _found(word: Word) -> Word:
    """Put a hole where ``find`` puts a file's name."""
    value = word.value
    if value is None or "{}" not in value:
        return word
    texts = (text for text in re.split(r"(\{\})", value) if text)
    return Word(word.source, tuple(Hole("variable", "{}") if text == "{}" else text for text in texts))


def _command(arguments: Sequence[Word]) -> Wrapped | None:
    """``command ls``; ``command -v ls`` only asks where it is."""
    if arguments and arguments[0].value in {"-v", "-V"}:
        return None
    return _Prefix(flags="p")(arguments)


def _exec(arguments: Sequence[Word]) -> Wrapped:
    """``exec command``; without one it redirects, which is judged elsewhere."""
    return _Prefix(flags="cl")(arguments) if arguments else Wrapped()


_HANDLERS: dict[str, Callable[[Sequence[Word]], Wrapped | None]] = {
    "eval": _eval,
    "trap": _trap,
    "env": _env,
    "xargs": _xargs,
    "find": _find,
    "command": _command,
    "builtin": _Prefix(),
    "exec": _exec,
    "time": _Prefix(flags="pv"),
    "nohup": _Prefix(),
    "setsid": _Prefix(flags="wf", long=frozenset({"wait", "fork"})),
    "nice": _Prefix(flags="0", values="n", long_values=frozenset({"adjustment"})),
    "ionice": _Prefix(flags="t", values="cn", long_values=frozenset({"class", "classdata"})),
    "stdbuf": _Prefix(values="ioe", long_values=frozenset({"input", "output", "error"})),
    "timeout": _Prefix(
        flags="v", values="ks", operands=1, long=frozenset({"preserve-status", "foreground", "verbose"}),
        long_values=frozenset({"kill-after", "signal"}),
    ),
    "sudo": _Prefix(
        flags="nHEbkSiPA", values="ugphCrtT", asks=True,
        long=frozenset({"non-interactive", "set-home", "login", "stdin"}),
        long_values=frozenset({"user", "group", "prompt", "host"}),
    ),
    "doas": _Prefix(flags="nLs", values="uC", asks=True),
    "coproc": _Prefix(),
}  # fmt: skip
