"""A table that says which environment variables are passed on to child processes, and why.

A variable without a row is passed on to servers, commands and hooks unless it looks like a secret.
The program's own helpers receive only the variables whose rows say so. The user's editor receives
all variables.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal

from tui_agent.isolation import CODE_VARIABLES
from tui_agent.lazy import frozen
from tui_agent.word_lists import in_order

Reader = Literal["own", "host", "servers", "commands", "sandbox"]
"""A kind of child process that reads the environment: ``own`` are git and ripgrep, which the
program runs for itself, ``host`` is the model host, ``servers`` are MCP servers, ``commands`` are
commands and hooks, ``sandbox`` are commands in the sandbox."""

PASSED = "passed on"
LEFT_OUT = "left out"


@frozen
class Row:
    """Variables, and what each `Reader` receives of them: `PASSED`, `LEFT_OUT`, or a value."""

    names: tuple[str, ...]
    """Names of the variables; ``*`` in a name matches any characters."""
    why: str
    """The reason for the row's values; a sentence that is printed in the documentation."""
    own: str = LEFT_OUT
    host: str = LEFT_OUT
    servers: str = PASSED
    commands: str = PASSED
    sandbox: str = PASSED
    """What commands in the sandbox receive. This is applied in addition to ``commands``."""

    def has(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.names)


def _left_out(names: str, why: str) -> Row:
    return Row(in_order(names), why, servers=LEFT_OUT, commands=LEFT_OUT)


def _for_commands(value: str, names: str, why: str) -> Row:
    return Row(in_order(names), why, commands=value)


TABLE = (
    Row(
        in_order("LANG LANGUAGE LC_* TZ TMPDIR"),
        "They set the language, the time zone and the place of temporary files.",
        own=PASSED,
        host=PASSED,
    ),
    Row(
        ("PATH",),
        "The program looks for its own helpers only in the absolute directories of PATH.",
        own=PASSED,
        host=PASSED,
    ),
    Row(
        ("HOME",),
        "The user's git settings must not change what the program's own git reads.",
        own="/dev/null",
        host=PASSED,
    ),
    Row(("USER", "LOGNAME"), "Providers' libraries look up the user.", host=PASSED),
    Row(
        in_order("SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE"),
        "They name certificates that are trusted instead of the system's, such as a company's.",
        host=PASSED,
    ),
    Row(
        in_order(
            """
            HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
            """
        ),
        "The network's proxies. The model host receives them from the program; in the sandbox, they "
        "name the sandbox's proxy.",
    ),
    Row(
        in_order("AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE CLOUDSDK_CONFIG"),
        "Providers' libraries read logins from these files.",
        host=PASSED,
    ),
    Row(
        CODE_VARIABLES,
        "They make Python load code. The program and its helpers ignore them; commands receive them.",
    ),
    _left_out(
        "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES "
        "GIT_PREFIX GIT_INTERNAL_SUPER_PREFIX GIT_IMPLICIT_WORK_TREE GIT_SHALLOW_FILE GIT_GRAFT_FILE "
        "GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT "
        "GIT_NAMESPACE GIT_QUARANTINE_PATH GIT_REFLOG_ACTION",
        "Set if a git hook started the program. If passed on, a command's git would write into that repository.",
    ),
    _left_out(
        "MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES MAKE_TERMOUT MAKE_TERMERR",
        "Set if make started the program. If passed on, make in a command would use that make's options.",
    ),
    _left_out(
        "BASH_ENV ENV SHELLOPTS BASHOPTS",
        "They make the shell run a file, or read commands in another way.",
    ),
    _left_out(
        "CDPATH GLOBIGNORE GREP_OPTIONS RIPGREP_CONFIG_PATH "
        "GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS",
        "They change what a command does in ways that its text doesn't show.",
    ),
    Row(
        in_order(
            """
            COLUMNS LINES COLORTERM FORCE_COLOR CLICOLOR_FORCE TERM_PROGRAM GIT_PAGER_IN_USE
            """
        ),
        "They describe a screen, and commands have none.",
        commands=LEFT_OUT,
    ),
    Row(("SSH_ASKPASS", "SUDO_ASKPASS"), "They open a window and wait.", commands=LEFT_OUT),
    _for_commands("dumb", "TERM", "Commands have no terminal."),
    _for_commands("1", "NO_COLOR", "Escape sequences for colours don't belong in a result."),
    _for_commands(
        "cat",
        "PAGER GIT_PAGER GH_PAGER MANPAGER SYSTEMD_PAGER AWS_PAGER BAT_PAGER DELTA_PAGER PSQL_PAGER",
        "A pager would wait for a key press.",
    ),
    _for_commands(
        "true",
        "EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR HGEDITOR SVN_EDITOR KUBE_EDITOR",
        "An editor would wait for the user; the suggested text is used unchanged.",
    ),
    _for_commands("no", "GIT_MERGE_AUTOEDIT", "A merge uses the suggested message."),
    _for_commands("0", "GIT_TERMINAL_PROMPT", "Git fails instead of asking for a password."),
    _for_commands("never", "SSH_ASKPASS_REQUIRE", "Without a terminal ssh would open a window."),
    _for_commands("1", "GH_PROMPT_DISABLED", "The gh command fails instead of asking."),
    _for_commands("noninteractive", "DEBIAN_FRONTEND", "Packages are installed without questions."),
    _for_commands(
        "1",
        "NO_UPDATE_NOTIFIER PIP_DISABLE_PIP_VERSION_CHECK",
        "An update check contacts another host, and you would be asked to allow it.",
    ),
    _for_commands(
        "false",
        "npm_config_update_notifier",
        "An update check contacts another host, and you would be asked to allow it.",
    ),
    _for_commands(
        "1",
        "PYTHONUNBUFFERED",
        "Python buffers what it writes to a pipe, so errors would appear before earlier output.",
    ),
    Row(
        in_order(
            """
            XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO
            DISPLAY WAYLAND_DISPLAY XAUTHORITY DOCKER_HOST CONTAINER_HOST TMUX TMUX_TMPDIR
            """
        ),
        "They name sockets that are not in the sandbox.",
        sandbox=LEFT_OUT,
    ),
)
"""All rows of the table. No variable occurs in two rows."""


def chosen_for(reader: Reader, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that rows pass on from ``environ`` to a reader, and those that rows set.

    Only for the readers ``own`` and ``host``, which don't receive variables without a row.
    """
    kept = {name: value for name, value in environ.items() if _passes(name, reader)}
    return kept | _values_for(reader)


def without_left_out(
    reader: Reader, environ: Mapping[str, str], keep: Iterable[str] = ()
) -> dict[str, str]:
    """Return ``environ`` as a reader receives it: rows leave variables out and set others.

    Variables in ``keep`` are not left out. Only for readers that receive variables without a row.
    """
    left_out: set[str] = set()
    for row in TABLE:
        if getattr(row, reader) == LEFT_OUT:
            left_out.update(row.names)
    left_out.difference_update(keep)
    passed = {name: value for name, value in environ.items() if name not in left_out}
    return passed | _values_for(reader)


def _passes(name: str, reader: Reader) -> bool:
    return any(row.has(name) for row in TABLE if getattr(row, reader) == PASSED)


def _values_for(reader: Reader) -> dict[str, str]:
    values: dict[str, str] = {}
    for row in TABLE:
        if (fate := getattr(row, reader)) not in {PASSED, LEFT_OUT}:
            values |= dict.fromkeys(row.names, fate)
    return values
