"""What is found as a secret, and what is not. The secrets here are made up while the tests run."""

import base64
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.model.redaction import RedactingFormatter, redact
from tui_agent.secret_detector import find_secrets, has_secret

ROOT = Path(__file__).parent.parent
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTERS = UPPER + UPPER.lower()
DIGITS = "0123456789"


def made(length: int, characters: str = LETTERS + DIGITS, seed: int = 7) -> str:
    """Return characters as a key has them: the same ones each time, and a digit and a letter among them."""
    chance = random.Random(f"{length}{characters}{seed}")
    text = "".join(chance.choices(characters, k=length - 2))
    return f"{text}{next(c for c in characters if c.isalpha())}{next(c for c in reversed(characters) if c.isdigit())}"


HEX = DIGITS + "abcdef"
LONG = made(40)
PEM_LINES = [made(64, LETTERS + DIGITS + "+/", seed) for seed in range(4)]
PEM_BODY = "\n".join(PEM_LINES)
BEGIN, END = "-----BEGIN {}PRIVATE " + "KEY-----", "-----END {}PRIVATE " + "KEY-----"

SHAPES: dict[str, tuple[str, str | tuple[str, ...]]] = {
    # What used to stay in exports.
    "github fine-grained": ("token: {}", "github" + "_pat_" + made(22) + "_" + made(59)),
    "slack bot": ("{}", "xoxb" + "-" + made(12, DIGITS + "1a") + "-" + made(24)),
    "npm": ("//registry/:_authToken={}", "npm" + "_" + made(36)),
    "pypi": ("password = {}", "pypi" + "-AgEIcHlwaS5vcmc" + made(70)),
    "sendgrid": ("{}", "SG" + "." + made(22) + "." + made(43)),
    "twilio": ("client = Client('{}')", "SK" + made(32, HEX)),
    "telegram": ("https://api.telegram.org/bot{}/getMe", "1234567890:AA" + made(33)),
    "discord webhook": ("https://discord.com/api/webhooks/123456789012345678/{}", made(68)),
    "slack webhook": ("https://hooks.slack.com/services/{}", "T" + made(8) + "/B" + made(8) + "/" + made(24)),
    "vault": ("VAULT: {}", "hvs" + "." + made(90)),
    "digitalocean": ("{}", "dop" + "_v1_" + made(64, HEX)),
    "age": ("# created\n{}\n", "AGE" + "-SECRET-KEY-1" + made(58, UPPER + DIGITS)),
    "azure storage": ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};Suffix=y", made(86) + "=="),
    "aws secret alone": ("use {} for it", made(40, LETTERS + DIGITS + "/+")),
    "session cookie": ("Set-Cookie: session={}; Path=/; HttpOnly", made(32)),
    "netrc": ("machine example.org login alice password {}\n", "hunter-two"),
    "curl -u": ("curl -s -u alice:{} https://example.org/x", "hunter2!"),
    "sshpass": ("sshpass -p {} ssh host", "hunter2"),
    "mysql": ("mysql -u root -p{} shop", "hunter2"),
    "with spaces": ('export API_TOKEN="{}"', "correct horse battery"),
    "over two lines": ("key: {}\nend", ("sk" + "-ant-api03-" + made(20), made(40, seed=8))),
    "base64": ("echo {} | base64 -d", base64.b64encode(f"OPENAI_API_KEY=sk{'-'}proj-{LONG}".encode()).decode()),
    # What was found already.
    "anthropic": ("{}", "sk" + "-ant-api03-" + made(80)),
    "openai": ("{}", "sk" + "-" + made(48)),
    "openai project": ('{{"x": "{}"}}', "sk" + "-proj-" + made(100)),
    "openrouter": ("{}", "sk" + "-or-v1-" + made(64, HEX)),
    "groq": ("{}", "gsk" + "_" + made(52)),
    "xai": ("{}", "xai" + "-" + made(80)),
    "perplexity": ("{}", "pplx" + "-" + made(48)),
    "hugging face": ("{}", "hf" + "_" + made(34)),
    "gitlab": ("{}", "glpat" + "-" + made(20)),
    "google": ("?x={}", "AIza" + made(35)),
    "aws key id": ("aws_access_key_id = {}", "AKIA" + made(16, UPPER + DIGITS)),
    "aws secret named": ("aws_secret_access_key = {}", made(40, LETTERS + DIGITS + "/+", 3)),
    "github": ("git clone https://{}@github.com/a/b", "ghp" + "_" + made(36)),
    "json web token": ("{}", "eyJ" + made(30) + ".eyJ" + made(60) + "." + made(43)),
    "bearer": ("Authorization: Bearer {}", made(40)),
    "basic": ("authorization: Basic {}", base64.b64encode(b"alice:hunter2").decode()),
    "x-api-key": ("x-api-key: {}", made(30)),
    "json password": ('{{"password": "{}"}}', "hunter2hunter2"),
    "variable": ("DB_PASSWORD={}", "hunter2-" + made(6)),
    "address with a password": ("postgres://shop:{}@db.example.org/shop", "hunter2"),
    "address with a key": ("https://example.org/v1?api_key={}&x=1", made(24)),
    "stripe": ("{}", "sk" + "_live_" + made(24)),
    "private key": (f"{BEGIN.format('RSA ')}\n{{}}\n{END.format('RSA ')}\nafter", PEM_BODY),
    "truncated private key": (f"{BEGIN.format('OPENSSH ')}\n{{}}\n[80 lines cut]\nafter", PEM_BODY),
}
"""By name: a text with a place for the secret, and the secret, in pieces where it is on several lines."""

MORE: dict[str, tuple[str, str]] = {
    "empty user": ("redis://:{}@cache:6379/0", "hunter2"),
    "sentry": ("SENTRY_DSN=https://{}@o1.ingest.sentry.io/4", made(32, HEX)),
    "cookie header": ("curl -H 'Cookie: sid={}' x", made(26)),
    "netrc on lines": ("machine h\n  login a\n  password {}\n", "hunter2two"),
    "pem in json": (f'{{{{"private_key": "{BEGIN.format("")}\\n{{}}\\n{END.format("")}\\n"}}}}', "\\n".join(PEM_LINES)),
    "end of a pem": (f"[cut]\n{{}}\n{END.format('RSA ')}\n", PEM_BODY),
    "pem with line numbers": (
        f"1\t{BEGIN.format('RSA ')}\n{{}}\n9\t{END.format('RSA ')}",
        "\n".join(f"{number}\t{line}" for number, line in enumerate(PEM_LINES, 2)),
    ),
    "base64 of a pem": ("data: {}", base64.b64encode(f"{BEGIN.format('RSA ')}\n{PEM_BODY}\n".encode()).decode()),
    "kubernetes": ("  password: {}", base64.b64encode(b"hunter2hunter2").decode()),
    "after a written line break": ('{{"text": "a\\n{}"}}', "ghp" + "_" + made(36)),
    "camel case": ('{{"clientSecret": "{}"}}', made(24)),
    "yaml": ("db:\n  password: {}\n", "swordfish"),
    "properties": ("spring.datasource.password={}", "sword2fish"),
    "option": ("tool --api-key {} run", made(20)),
    "pgpassword": ("PGPASSWORD={} psql", "swordfish"),
    "double quotes in json": ('{{"command": "export API_TOKEN=\\"{}\\" && x"}}', "two words here"),
    "hash": ("root:{}:19000:0:99999:7:::", "$6$" + made(8) + "$" + made(60)),
    "docker": ("docker login -u me -p {} registry", "hunter2x"),
}


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
    for word in ("alice", "example.org", "login", "after", "docker", "HttpOnly", "github.com", "19000"):
        assert (word in text) == (word in cleaned)


def test_there_are_46_shapes() -> None:
    assert len(SHAPES) == 46


@pytest.mark.parametrize(
    "text",
    [
        "password: str = field()",
        "def login(self, password: str, token: str | None = None) -> None:",
        "password=password, token=self._token)",
        "token = secrets.token_hex(8)",
        "api_key = os.environ['OPENAI_API_KEY']",
        'api_key = "$OPENAI_API_KEY"',
        "export TOKEN=$(cat token.txt)",
        "password: ${DB_PASSWORD}",
        "max_tokens: 4096",
        '"prompt_tokens": 1200, "total_tokens": 1300',
        "The basic authentication needs a password: see below.",
        "Authorization: Bearer <token>",
        "https://host/path?key=value",
        "keys = sorted(table)",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "src/components/AccountSettings/PasswordField/index.test.tsx",
        "class TokenAuthenticationMiddlewareFactoryBean2Provider:",
        "eyJ is how tokens begin, sk- too, and AKIA",
        "integrity sha512-z1GiCdq2JWMgUqQwGJ0dBfQbVVYRkvTcLoJNtnGSNV4qXjDkaf3KJ==",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "git@github.com:someone/project.git",
        "http://user@host/",
        "2026-11-22T10:20:30Z key pressed: ctrl+c",
        "PASSWORD_FIELD = 'password'",
        "from getpass import getpass\npassword = getpass()",
        "if token == Token.Comment:",
        "pytest --token-limit 12 --no-auth",
        "mysql -u root -p shop",
    ],
)  # fmt: skip
def test_text_without_secrets_stays(text: str) -> None:
    assert redact(text) == text


def test_the_sources_of_this_project_stay() -> None:
    changed = []
    for folder in ("tui_agent", "docs", "prompts", "styles", "scripts", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".toml", ".tcss", ".css", ".txt"} and "__pycache__" not in path.parts:
                text = path.read_text(encoding="utf-8")
                changed += [(path.name, text[found.start : found.end]) for found in find_secrets(text)]
    assert changed == []


def test_a_long_text_is_looked_through_once_not_once_for_each_word() -> None:
    """Nothing here grows faster than the text."""
    line = "key token password secret auth cookie login session aws "
    for text in (line * 20_000, "sk-" * 200_000, "=" * 500_000, "a" * 500_000, "eyJ" * 100_000, f"{BEGIN}\n" * 10_000):
        redact(text)


def test_logs_hold_none(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    secret = "ghp" + "_" + made(36)
    record = logging.LogRecord("x", logging.INFO, "f", 1, "cloning with %s", (secret,), None)
    assert secret not in RedactingFormatter().format(record)


def test_a_text_that_tells_of_nothing_imports_nothing() -> None:
    program = (
        "import sys; from tui_agent.model.redaction import redact; redact('GET /index.html 200, 12 tokens'); "
        "print([name for name in sys.modules if name.startswith(('detect_secrets', 'requests'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
