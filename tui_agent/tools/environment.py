"""The environment of child processes: what builds need, nothing that is a secret, nothing that waits for a person."""

import re
from collections.abc import Mapping

_SECRET = re.compile(
    r"""
    (^|_)(
        API_?KEYS? | (ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|MASTER)_?KEY(_ID)? |
        (ACCESS|AUTH|REFRESH|BEARER)?TOKENS? | SECRETS? | PASSPHRASE | PASS |
        CREDENTIALS? | PAT | OAUTH | COOKIES?
    )(_|$)
    | PASSWORD | PASSWD | _(KEY|PWD|AUTH)$
    | ^AWS_ | ^OP_SESSION_ | ^AZURE_CLIENT_
    """,
    re.VERBOSE,
)
_KEPT = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION", "GPG_KEY"})
"""Look like secrets and are none (GPG_KEY: the public fingerprint that the official Python images set)."""

_NONINTERACTIVE = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_TERMINAL_PROMPT": "0",
    # Without a terminal ssh would open a window.
    "SSH_ASKPASS_REQUIRE": "never",
    "GH_PROMPT_DISABLED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    # A pipe makes Python hold back its output; without this an error comes before what led to it.
    "PYTHONUNBUFFERED": "1",
}
_ABOUT_THE_SCREEN = frozenset({"COLUMNS", "LINES", "COLORTERM", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM_PROGRAM"})
_MISLEADING = frozenset({"CDPATH", "GLOBIGNORE", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH"})
"""Let a command reach or do something else than its words say, by which it was judged."""


def safe_environment(environ: Mapping[str, str], *, keep: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return an environment without the variables whose names say that they hold secrets.

    Args:
        environ: the environment of this program.
        keep: names that the user wants passed on whatever they look like.
    """
    return {name: value for name, value in environ.items() if name in keep or not is_secret(name)}


def is_secret(name: str) -> bool:
    """Return whether a variable's name says that its value is a secret."""
    return name not in _KEPT and _SECRET.search(name.upper()) is not None


def command_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command nobody watches: no pager, editor, colour or question."""
    kept = {name: value for name, value in environ.items() if name not in _ABOUT_THE_SCREEN | _MISLEADING}
    return kept | _NONINTERACTIVE
