"""Creates the environments of commands, hooks and MCP servers, without variables that hold secrets.

Commands and hooks also run without pagers, editors and prompts. The environments of git, ripgrep,
the model host and the sandbox are created elsewhere, from the same table (``environment_table``).
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from tui_agent.lazy import LazyPattern, cached_property
from tui_agent.processes.environment_table import without_left_out

MAX_NAMED = 6
"""Maximum number of withheld variables that a note names."""
_SEARCHED = 10_000
_NAME = LazyPattern(r"[A-Za-z_][A-Za-z0-9_]*")
_MISSES_SETTINGS = LazyPattern(
    r"not set|is required|missing|KeyError|unauthori[sz]ed|authenticat|credential|api.?key|access.?token|"
    r"secret|\b401\b",
    re.IGNORECASE,
)
"""Matches words in the error messages of programs that lack a setting or an API key."""

MARK = "TUI_AGENT_CALL"
"""The environment variable that contains the id of the command to which a process belongs."""

OWN = "own"
"""Value of ``MARK`` in processes that this program starts for itself, so that they aren't ended
together with a command's processes."""


class SafeEnvironment(Mapping[str, str]):
    """An environment without the variables that look like secrets, by their names and values.

    The variables are checked on first use, because that takes time.
    """

    def __init__(
        self, environ: Mapping[str, str], keep: Iterable[str] = (), masked: Iterable[str] = ()
    ) -> None:
        """Copy ``environ``.

        Variables named in ``masked`` are never passed on; others named in ``keep`` always are.
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
    """Return a note for the model on withheld variables that a command may have needed.

    Returns "" if there are none. The note covers the variables that the command or its output
    names. If it names none, the command ``failed``, and its output suggests a missing setting or
    API key, the note covers all. Variables in ``given`` are not named, because the command received
    placeholders for them.
    """
    withheld = environment.withheld if isinstance(environment, SafeEnvironment) else ()
    names = [name for name in withheld if name not in given]
    words = {*_NAME.findall(command), *_NAME.findall(output)}
    missed = [name for name in names if name in words]
    if not missed and failed and _MISSES_SETTINGS.search(output[-_SEARCHED:]):
        missed = names
    if not missed:
        return ""
    named = ", ".join(missed[:MAX_NAMED])
    more = ""
    if len(missed) > MAX_NAMED:
        more = f" and {len(missed) - MAX_NAMED} more"
    why = "Not in the command's environment, because they look like secrets"
    return f"[{why}: {named}{more}. The user can pass them on with the setting sandbox.env.]"


def command_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` adapted for commands: without pager, editor, colours or prompts.

    If ``environ`` is a `SafeEnvironment`, variables in its ``keep`` are kept.
    """
    keep = environ.keep if isinstance(environ, SafeEnvironment) else ()
    return without_left_out("commands", environ, keep)


def server_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment for MCP servers; the caller adds a server's own variables."""
    return SafeEnvironment(own(without_left_out("servers", environ)))


def own(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of an environment with the mark `OWN`, for processes of this program itself."""
    return {**environment, MARK: OWN}
