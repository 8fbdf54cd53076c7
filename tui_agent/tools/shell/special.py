"""Programs that only read in some of their uses, told by looking at what they are given: find, sed, awk and others."""

import re
from collections.abc import Callable, Sequence

from tui_agent.tools.shell.use import Use, refuses
from tui_agent.tools.shell.words import Word

_FIND_REFUSED = frozenset(
    {
        "-delete",
        "-ok",
        "-okdir",
        "-fprint",
        "-fprint0",
        "-fprintf",
        "-fls",
        "-exec",
        "-execdir",
        "-follow",
        "-files0-from",
    }
)


def _find(arguments: Sequence[Word]) -> Use | None:
    """``find`` without anything that runs, deletes or writes; those with ``-exec`` are taken apart before."""
    paths: list[Word] = []
    expression = False
    for word in arguments:
        text = word.value
        if text is None or text in _FIND_REFUSED or text.startswith("-fprint") or text == "-L":
            return None
        expression = expression or text.startswith(("-", "(", "!"))
        if not expression or text.startswith(("/", "~")) or ".." in text:
            paths.append(word)
    return Use(tuple(paths), contents=False)


_SED_COMMAND = r"(?:(?:\d+|\$|/(?:[^/\\]|\\.)*/)(?:,[+~]?(?:\d+|\$|/(?:[^/\\]|\\.)*/))?)?!?"
_SED_TEXT = r"(?:(?!(?P=mark))[^\\\n]|\\.)*"
_SED_ACTION = rf"(?:[pdqPDnNgGhHxl=]|[qQ]\d+|s(?P<mark>[/|#,@!]){_SED_TEXT}(?P=mark){_SED_TEXT}(?P=mark)[gpiI\d]*)"
_SED_STEP = re.compile(rf"\s*{_SED_COMMAND}\s*{_SED_ACTION}\s*(?:;|\n|$)")


def _is_plain_sed(script: str) -> bool:
    """Whether a script prints, deletes lines and substitutes, and nothing else (``w``, ``e``, ``r``)."""
    position = 0
    while position < len(script):
        found = _SED_STEP.match(script, position)
        if found is None or found.end() == position:
            return not script[position:].strip()
        position = found.end()
    return True


def _sed(arguments: Sequence[Word]) -> Use | None:
    scripts: list[str] = []
    paths: list[Word] = []
    given, takes = False, False
    for word in arguments:
        text = word.value
        if text is None:
            return None
        if takes:
            scripts.append(text)
            given, takes = True, False
        elif text in {"-e", "--expression"}:
            takes = True
        elif re.fullmatch(r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|null-data|posix|debug)", text):
            continue
        elif text.startswith("-") and text != "-":
            return None
        elif not given:
            scripts.append(text)
            given = True
        else:
            paths.append(word)
    return Use(tuple(paths)) if scripts and all(map(_is_plain_sed, scripts)) else None


_AWK_ACTS = re.compile(r"system|getline|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|@|>(?!=)|\||include|load")


def _awk(arguments: Sequence[Word]) -> Use | None:
    """``awk`` with a program on the command line that only prints."""
    program: str | None = None
    paths: list[Word] = []
    takes = False
    for word in arguments:
        text = word.value
        if text is None:
            return None
        if takes:
            takes = False
        elif program is None and text in {"-F", "-v"}:
            takes = True
        elif program is None and re.fullmatch(r"-F.+|-v\w+=.*", text, re.DOTALL):
            continue
        elif text.startswith("-") and text != "-":
            return None
        elif program is None:
            program = text
        else:
            paths.append(word)
    return Use(tuple(paths)) if program is not None and _AWK_ACTS.search(program.replace("||", "")) is None else None


def _set(arguments: Sequence[Word]) -> Use | None:
    words = [word.value or "?" for word in arguments]
    known = {"pipefail", "errexit", "nounset", "xtrace", "noglob"}
    fine = all(re.fullmatch(r"[-+][euxf]*o?", word) or word in known for word in words)
    return Use(contents=False) if words and fine else None


def _shopt(arguments: Sequence[Word]) -> Use | None:
    words = {word.value for word in arguments}
    return Use(contents=False) if words <= {"-s", "-u", "-q", "nullglob", "failglob", "nocaseglob"} else None


def _printenv(arguments: Sequence[Word]) -> Use | None:
    names = {"HOME", "USER", "SHELL", "LANG", "PWD", "PATH", "TERM", "EDITOR", "VIRTUAL_ENV", "CI", "LOGNAME", "TZ"}
    return Use(contents=False) if arguments and all(word.value in names for word in arguments) else None


def _ps(arguments: Sequence[Word]) -> Use | None:
    """``ps`` without the flags that show what environment programs have."""
    for word in arguments:
        if word.value is None or (not word.value.startswith("-") and "e" in word.value) or "E" in word.value:
            return None
    return Use(contents=False)


def _date(arguments: Sequence[Word]) -> Use | None:
    """``date`` that prints; a plain operand would set the clock."""
    values = [word.value or "?" for word in arguments]
    plain = [
        value
        for place, value in enumerate(values)
        if not value.startswith(("+", "-")) and values[place - 1] not in {"-d", "--date", "-r", "-v"}
    ]
    bad = any(value.startswith("-") and refuses("sf", ("set", "file"), value) for value in values)
    return None if plain or bad else Use(contents=False)


_TESTS = re.compile(r"-(?:[abcdefghkprstuwxzGLNOSn]|nt|ot|ef|eq|ne|lt|le|gt|ge)|=|==|!=|=~|<|>|!")


def _test(arguments: Sequence[Word]) -> Use | None:
    """``test``: what is unknown must be an operand beside an operator, or it could be an operator itself."""
    values = [word.value for word in arguments]
    if "-v" in values or "-R" in values:
        return None
    for place, value in enumerate(values):
        beside = (values[place - 1] if place else None, values[place + 1] if place + 1 < len(values) else None)
        if value is None and not any(near is not None and _TESTS.fullmatch(near) for near in beside):
            return None
    return Use(tuple(word for word in arguments if word.value is not None), contents=False)


def _printf(arguments: Sequence[Word]) -> Use | None:
    """``printf FORMAT ...``; with ``-v`` it would set a variable."""
    first = arguments[0].value if arguments else None
    return None if first is None or first.startswith("-") else Use(contents=False)


def _kill(arguments: Sequence[Word]) -> Use | None:
    return Use(contents=False) if [word.value for word in arguments] in (["-l"], ["-0"]) else None


SPECIAL: dict[str, Callable[[Sequence[Word]], Use | None]] = {
    "find": _find, "sed": _sed, "awk": _awk, "gawk": _awk, "mawk": _awk, "set": _set, "shopt": _shopt,
    "date": _date, "printenv": _printenv, "ps": _ps, "kill": _kill, "test": _test, "printf": _printf,
}  # fmt: skip
