"""The exit codes of the program: the one table that the help, the manual page and the documents are held to."""

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """How a run of the program ended. ``word`` is for the help, ``meaning`` for the documents."""

    word: str
    meaning: str

    def __new__(cls, code: int, word: str, meaning: str) -> Self:
        made = int.__new__(cls, code)
        made._value_ = code
        made.word, made.meaning = word, meaning
        return made

    DONE = 0, "done", "done"
    FAILED = 1, "failed", "failed: no model, no key, the provider refused; standard error says what to do"
    USAGE = 2, "usage", "the arguments or the settings make no sense"
    STOPPED = (
        3,
        "stopped",
        (
            "stopped: something was refused and nothing else was done, a doom loop, no more steps, an answer cut, "
            "empty or with calls that can't be read"
        ),
    )
    BUDGET = 4, "over budget", "the budget of money or tokens is used up (`--max-cost`, `--max-tokens`)"
    TIMEOUT = 5, "out of time", "the time is up (`--timeout`)"
    INTERRUPTED = 130, "interrupted", "interrupted (Ctrl+C, a signal); what was said until then is kept"


def exit_codes_line() -> str:
    return ", ".join(f"{code.value} {code.word}" for code in ExitCode)


def exit_codes_table() -> str:
    rows = (f"| {code.value} | {code.meaning} |" for code in ExitCode)
    return "\n".join(["| exit code | |", "|---|---|", *rows])
