"""What child processes are told."""

import pytest

from tui_agent.tools.environment import command_environment, is_secret, safe_environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "ANTHROPIC_KEY", "GITHUB_TOKEN", "GH_TOKEN", "HF_TOKEN", "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN", "DB_PASSWORD", "PGPASSWORD", "DB_PWD", "CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS",
        "NPM_CONFIG__AUTH", "npm_config__authToken", "OP_SESSION_work", "TWINE_PASSWORD", "api_key", "GITHUB_PAT",
    ],
)  # fmt: skip
def test_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "AWS_REGION", "TOKENIZERS_PARALLELISM", "KEYMAP", "LANG",
        "VIRTUAL_ENV", "PYTHONPATH", "CC", "CFLAGS", "JAVA_HOME", "HTTP_PROXY", "PATHEXT", "XAUTHORITY", "COMPASS",
    ],
)  # fmt: skip
def test_what_builds_need(name: str) -> None:
    assert not is_secret(name)


def test_what_the_user_wants_passed_on() -> None:
    environ = {"NPM_TOKEN": "1", "GH_TOKEN": "2", "PATH": "/bin"}
    assert safe_environment(environ, keep=frozenset({"NPM_TOKEN"})) == {"NPM_TOKEN": "1", "PATH": "/bin"}


def test_nothing_asks_or_pages() -> None:
    environment = command_environment({"PATH": "/bin", "COLUMNS": "80", "FORCE_COLOR": "1", "PAGER": "less"})
    assert environment["PAGER"] == "cat"
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert "COLUMNS" not in environment
    assert "FORCE_COLOR" not in environment


def test_nothing_leads_a_command_elsewhere_than_its_words_say() -> None:
    """Rules judge ``cd src`` by where it goes without ``CDPATH``."""
    assert command_environment({"CDPATH": "/etc", "GLOBIGNORE": "a", "HOME": "/h"})["HOME"] == "/h"
    assert not {"CDPATH", "GLOBIGNORE"} & command_environment({"CDPATH": "/etc", "GLOBIGNORE": "a"}).keys()
