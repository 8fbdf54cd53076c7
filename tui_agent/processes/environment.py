"""The environment of child processes: enough for builds, no secrets, no prompts."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from tui_agent.lazy import LazyPattern, cached_property
from tui_agent.processes.environment_table import without_left_out

MAX_NAMED = 6
"""Variables that are named in a result."""
_SEARCHED = 10_000
_MISSES_SETTINGS = LazyPattern(
    r"not set|is required|missing|KeyError|unauthori[sz]ed|authenticat|credential|api.?key|access.?token|"
    r"secret|\b401\b",
    re.IGNORECASE,
)
"""How programs complain that want a setting or a key."""

MARK = "TUI_AGENT_CALL"
"""Environment variable that tells which call a process belongs to."""

OWN = "own"
"""The mark of processes this program starts for itself: they are left alone when a call's processes
are ended."""


class SafeEnvironment(Mapping[str, str]):
    """An environment without the variables that hold secrets, by their names or by their values.

    It is looked through when it is first used: not when the program starts.
    """

    def __init__(
        self, environ: Mapping[str, str], keep: Iterable[str] = (), masked: Iterable[str] = ()
    ) -> None:
        """Take an environment.

        Names in ``keep`` are passed on whatever they look like, those in ``masked`` never.
        """
        self._environ = dict(environ)
        self._masked = frozenset(masked)
        self.keep = frozenset(keep) - self._masked

    def __getitem__(self, name: str) -> str:
        return self._passed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._passed)

    def __len__(self) -> int:
        return len(self._passed)

    @property
    def withheld(self) -> tuple[str, ...]:
        return tuple(sorted(self._environ.keys() - self._passed.keys()))

    @cached_property
    def _passed(self) -> dict[str, str]:
        passed = {}
        for name, value in self._environ.items():
            is_withheld = name in self._masked or holds_secret(name, value)
            if name in self.keep or not is_withheld:
                passed[name] = value
        return passed


def holds_secret(name: str, value: str) -> bool:
    from tui_agent.secret_detector import (
        has_secret,
        is_secret_in_variable,
        is_secret_name,
        is_secret_value,
    )

    return (
        is_secret_name(name)
        or has_secret(value)
        or is_secret_value(value, name)
        or is_secret_in_variable(value)
    )


def withheld_from(
    environment: Mapping[str, str],
    command: str,
    output: str,
    *,
    failed: bool,
    given: Container[str] = (),
) -> str:
    """Return a note on variables a command may have missed, "" for none.

    Those it names, or its output does; all of them where it failed for want of some setting or key.
    It was ``given`` others in another way.
    """
    withheld = environment.withheld if isinstance(environment, SafeEnvironment) else ()
    names = [name for name in withheld if name not in given]
    missed = [name for name in names if name in command or name in output]
    if not missed and failed and _MISSES_SETTINGS.search(output[-_SEARCHED:]):
        missed = names
    if not missed:
        return ""
    named = ", ".join(missed[:MAX_NAMED])
    more = ""
    if len(missed) > MAX_NAMED:
        more = f" and {len(missed) - MAX_NAMED} more"
    why = "Not in its environment, as they look like secrets"
    return f"[{why}: {named}{more}. The user's setting sandbox.env lets them in.]"


def command_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command nobody watches: no pager, editor, colour or question."""
    keep = environ.keep if isinstance(environ, SafeEnvironment) else ()
    return without_left_out("commands", environ, keep)


def server_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of an MCP server, before what its settings add."""
    return SafeEnvironment(own(without_left_out("servers", environ)))


def own(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the mark of processes this program starts for itself."""
    return {**environment, MARK: OWN}
