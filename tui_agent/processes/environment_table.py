"""A table of environment variables: which of them reach the programs that are started, and why.

A variable without a row reaches servers, commands and hooks unless it looks like a secret. The
program's own helpers get only the variables whose rows say so. The user's editor gets all variables.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal

from tui_agent.isolation import CODE_VARIABLES
from tui_agent.lazy import frozen
from tui_agent.word_lists import in_order

Reader = Literal["own", "host", "servers", "commands", "sandbox"]
"""Who gets an environment: ``own`` is git and ripgrep run for the program itself, ``host`` the model
host, ``servers`` MCP servers, ``commands`` commands and hooks, ``sandbox`` commands in the sandbox."""

PASSED = "passed on"
LEFT_OUT = "left out"


@frozen
class Row:
    """What each reader gets of some variables: `PASSED`, `LEFT_OUT`, or another value in their place."""

    names: tuple[str, ...]
    """Names of variables; ``*`` matches any characters."""
    why: str
    own: str = LEFT_OUT
    host: str = LEFT_OUT
    servers: str = PASSED
    commands: str = PASSED
    sandbox: str = PASSED
    """For commands in the sandbox, which get nothing that other commands don't get."""

    def has(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.names)


def _left_out(names: str, why: str) -> Row:
    return Row(in_order(names), why, servers=LEFT_OUT, commands=LEFT_OUT)


def _for_commands(value: str, names: str, why: str) -> Row:
    return Row(in_order(names), why, commands=value)


TABLE = (
    Row(
        in_order("LANG LANGUAGE LC_* TZ TMPDIR"),
        "How texts and times are read and written, and where temporary files go.",
        own=PASSED,
        host=PASSED,
    ),
    Row(
        ("PATH",),
        "For the program's own sake only its absolute places count.",
        own=PASSED,
        host=PASSED,
    ),
    Row(
        ("HOME",),
        "The user's settings of git must not change what the program reads.",
        own="/dev/null",
        host=PASSED,
    ),
    Row(("USER", "LOGNAME"), "Providers' libraries look up the user.", host=PASSED),
    Row(
        in_order("SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE"),
        "The certificates a company trusts.",
        host=PASSED,
    ),
    Row(
        in_order(
            """
            HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
            """
        ),
        "The network's proxies. The model host gets them as the program reads them; in the sandbox they name its own.",
    ),
    Row(
        in_order("AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE CLOUDSDK_CONFIG"),
        "Where providers' libraries find logins.",
        host=PASSED,
    ),
    Row(
        CODE_VARIABLES,
        "Python loads code by them: the program and its helpers heed none, commands do.",
    ),
    _left_out(
        "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES "
        "GIT_PREFIX GIT_INTERNAL_SUPER_PREFIX GIT_IMPLICIT_WORK_TREE GIT_SHALLOW_FILE GIT_GRAFT_FILE "
        "GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT "
        "GIT_NAMESPACE GIT_QUARANTINE_PATH GIT_REFLOG_ACTION",
        "Of the git whose hook started the program: git of a command would write into that repository.",
    ),
    _left_out(
        "MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES MAKE_TERMOUT MAKE_TERMERR",
        "Of the make that started the program: make of a command would take over its options.",
    ),
    _left_out(
        "BASH_ENV ENV SHELLOPTS BASHOPTS",
        "The shell would run a file, or read commands in another way.",
    ),
    _left_out(
        "CDPATH GLOBIGNORE GREP_OPTIONS RIPGREP_CONFIG_PATH "
        "GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS",
        "A command would reach or do something else than its words say, by which it was judged.",
    ),
    Row(
        in_order(
            """
            COLUMNS LINES COLORTERM FORCE_COLOR CLICOLOR_FORCE TERM_PROGRAM GIT_PAGER_IN_USE
            """
        ),
        "About the screen, which commands don't have.",
        commands=LEFT_OUT,
    ),
    Row(("SSH_ASKPASS", "SUDO_ASKPASS"), "They would open a window and wait.", commands=LEFT_OUT),
    _for_commands("dumb", "TERM", "There is no terminal."),
    _for_commands("1", "NO_COLOR", "Colours are noise in a result."),
    _for_commands(
        "cat",
        "PAGER GIT_PAGER GH_PAGER MANPAGER SYSTEMD_PAGER AWS_PAGER BAT_PAGER DELTA_PAGER PSQL_PAGER",
        "Nobody turns pages.",
    ),
    _for_commands(
        "true",
        "EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR HGEDITOR SVN_EDITOR KUBE_EDITOR",
        "Nobody edits: a text is taken as it is.",
    ),
    _for_commands("no", "GIT_MERGE_AUTOEDIT", "A merge takes its message as it is."),
    _for_commands("0", "GIT_TERMINAL_PROMPT", "Git fails where it would ask."),
    _for_commands("never", "SSH_ASKPASS_REQUIRE", "Without a terminal ssh would open a window."),
    _for_commands("1", "GH_PROMPT_DISABLED", "The gh command fails where it would ask."),
    _for_commands("noninteractive", "DEBIAN_FRONTEND", "Packages are installed without questions."),
    _for_commands(
        "1",
        "NO_UPDATE_NOTIFIER PIP_DISABLE_PIP_VERSION_CHECK",
        "A look for updates is a host to approve.",
    ),
    _for_commands(
        "false", "npm_config_update_notifier", "A look for updates is a host to approve."
    ),
    _for_commands(
        "1",
        "PYTHONUNBUFFERED",
        "Python holds back what it writes to a pipe: errors would come too early.",
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
"""All rows; no variable is in two."""


def chosen_for(reader: Reader, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a reader that gets nothing but what the rows pass to it."""
    kept = {name: value for name, value in environ.items() if _passes(name, reader)}
    return kept | _values_for(reader)


def without_left_out(
    reader: Reader, environ: Mapping[str, str], keep: Iterable[str] = ()
) -> dict[str, str]:
    """Return the environment without the variables that rows leave out for a reader, except ``keep``."""
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
