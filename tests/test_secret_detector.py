"""What is found as a secret, and what is not. The secrets here are made up while the tests run."""

from pathlib import Path

import pytest

from tests.support.secret_shapes import BEGIN, MORE, SHAPES, made
from tui_agent.model.redaction import RedactingFormatter, redact
from tui_agent.secret_detector import find_secrets, has_secret

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", [*SHAPES, *MORE])
def test_secrets_are_removed_and_nothing_else(name: str) -> None:
    template, secret = {**SHAPES, **MORE}[name]
    pieces = (secret,) if isinstance(secret, str) else secret
    text = f"Before it.\n{template.format(chr(10).join(pieces))}\nAfter it, 12 words."
    cleaned = redact(text)
    for piece in pieces:
        for line in piece.split("\n"):
            assert line not in cleaned
            assert line[len(line) // 3 :] not in cleaned
    assert cleaned.startswith("Before it.\n")
    assert cleaned.endswith("\nAfter it, 12 words.")
    assert "[redacted]" in cleaned
    assert redact(cleaned) == cleaned
    assert has_secret(text)
    for word in (
        "alice",
        "example.org",
        "login",
        "after",
        "docker",
        "HttpOnly",
        "github.com",
        "19000",
    ):
        assert (word in text) == (word in cleaned)


@pytest.mark.parametrize(
    "text",
    [
        "password: str = field()", "def login(self, password: str, token: str | None = None) -> None:",
        "password=password, token=self._token)", "token = secrets.token_hex(8)",
        "api_key = os.environ['OPENAI_API_KEY']", 'api_key = "$OPENAI_API_KEY"', "export TOKEN=$(cat token.txt)",
        "password: ${DB_PASSWORD}", "max_tokens: 4096", '"prompt_tokens": 1200, "total_tokens": 1300',
        "The basic authentication needs a password: see below.", "Authorization: Bearer <token>",
        "https://host/path?key=value", "keys = sorted(table)", "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "src/components/AccountSettings/PasswordField/index.test.tsx",
        "class TokenAuthenticationMiddlewareFactoryBean2Provider:", "the disk-0123abcd4567efgh is full",
        "fm1_abcDeFgh\nabC1eF, too short for one over two lines", "eyJ is how tokens begin, sk- too, and AKIA",
        "integrity sha512-z1GiCdq2JWMgUqQwGJ0dBfQbVVYRkvTcLoJNtnGSNV4qXjDkaf3KJ==",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "git@github.com:someone/project.git", "http://user@host/", "2026-11-22T10:20:30Z key pressed: ctrl+c",
        "PASSWORD_FIELD = 'password'", "from getpass import getpass\npassword = getpass()",
        "if token == Token.Comment:", "pytest --token-limit 12 --no-auth", "mysql -u root -p shop",
    ],
)  # fmt: skip
def test_text_without_secrets_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.nightly
def test_the_sources_of_this_project_stay() -> None:
    changed = []
    for folder in ("tui_agent", "docs", "prompts", "styles", "scripts", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in {".py", ".md", ".toml", ".tcss", ".css", ".txt"}
                and "__pycache__" not in path.parts
            ):
                text = path.read_text(encoding="utf-8")
                changed += [
                    (path.name, text[found.start : found.end]) for found in find_secrets(text)
                ]
    assert changed == []


def test_a_long_text_is_looked_through_once_not_once_for_each_word() -> None:
    """Nothing here grows faster than the text."""
    line = "key token password secret auth cookie login session aws "
    begin, body = BEGIN.format(""), f"{'aB3/' * 16}\n" * 10_000
    for text in (
        line * 20_000, "sk-" * 200_000, "=" * 500_000, "a" * 500_000, "eyJ" * 100_000, f"{begin}\n" * 10_000,
        f"{body}{begin}", f"{begin}\n{body}-", f"{begin}\n{' ' * 200_000}-",
    ):  # fmt: skip
        redact(text)


def test_logs_hold_none(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    secret = "ghp" + "_" + made(36)
    record = logging.LogRecord("x", logging.INFO, "f", 1, "cloning with %s", (secret,), None)
    assert secret not in RedactingFormatter().format(record)
