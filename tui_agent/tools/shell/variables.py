"""Variables that change what programs do, and those that are of no consequence."""

import re

_POWERFUL = re.compile(
    r"""
    PATH | CDPATH | IFS | ENV | PS[0-4] | PROMPT_COMMAND | SHELL | SHELLOPTS | GLOBIGNORE | HOME | TMPDIR | OLDPWD |
    PWD |
    _ | EDITOR | VISUAL | .*PAGER | BROWSER | .*OPTS | .*OPTIONS | .*FLAGS | .*_PROXY | .*ASKPASS | .*_COMMAND |
    CC | CXX |
    (BASH|LD|DYLD|GIT|PYTHON|NODE|NPM|npm|PERL|RUBY|RUBYOPT|JAVA|JDK|LUA|PHP|MAN|LESS|GREP|RIPGREP|FZF|TAR|RSYNC|
    SSH|SUDO|CARGO|RUST|GO|MAKE|MAVEN|GRADLE|DOCKER|XDG|GCONV|LOCPATH|MALLOC|TERMINFO|
    SSL|CURL|WGET|UV|PIP|
    POETRY|BUNDLE|GEM|COMPOSER|R|PG|MYSQL|AWS|GOOGLE|AZURE|KUBE|HELM|TF|ANSIBLE)(_.*|[A-Z].*)? |
    ZDOTDIR | FPATH | INPUTRC | MAIL.* |
    FUNCNEST |
    .*_proxy | BASHOPTS
    """,
    re.VERBOSE,
)
_HARMLESS = re.compile(
    r"""
    LANG | LANGUAGE | LC_\w+ | TZ | NO_COLOR | FORCE_COLOR | CLICOLOR | CI | COLUMNS | LINES | TERM | DEBUG | VERBOSE |
    RUST_LOG | RUST_BACKTRACE | NODE_ENV | PYTHONDONTWRITEBYTECODE | PYTHONUNBUFFERED | PYTHONHASHSEED | LOG_LEVEL |
    GOOS | GOARCH | RAILS_ENV | RACK_ENV | APP_ENV | FLASK_ENV | DJANGO_SETTINGS_MODULE | TEST_\w+ | SOURCE_DATE_EPOCH
    """,
    re.VERBOSE,
)
_QUIET_VALUES = frozenset(
    {("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_PAGER", ""), ("PAGER", ""), ("GIT_OPTIONAL_LOCKS", "0")}
)


def is_harmless(name: str, value: str | None) -> bool:
    """Return whether setting a variable for a program changes no more than how it writes."""
    return _HARMLESS.fullmatch(name) is not None or (name, value) in _QUIET_VALUES


def is_powerful(name: str) -> bool:
    """Return whether a variable of this name may change what programs run."""
    return _POWERFUL.fullmatch(name) is not None and not _HARMLESS.fullmatch(name)
