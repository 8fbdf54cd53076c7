"""Secrets as they occur, made up while the tests run."""

import base64
import random

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
    "slack webhook": (
        "https://hooks.slack.com/services/{}",
        "T" + made(8) + "/B" + made(8) + "/" + made(24),
    ),
    "vault": ("VAULT: {}", "hvs" + "." + made(90)),
    "digitalocean": ("{}", "dop" + "_v1_" + made(64, HEX)),
    "age": ("# created\n{}\n", "AGE" + "-SECRET-KEY-1" + made(58, UPPER + DIGITS)),
    "azure storage": (
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};Suffix=y",
        made(86) + "==",
    ),
    "aws secret alone": ("use {} for it", made(40, LETTERS + DIGITS + "/+")),
    "session cookie": ("Set-Cookie: session={}; Path=/; HttpOnly", made(32)),
    "netrc": ("machine example.org login alice password {}\n", "hunter-two"),
    "curl -u": ("curl -s -u alice:{} https://example.org/x", "hunter2!"),
    "sshpass": ("sshpass -p {} ssh host", "hunter2"),
    "mysql": ("mysql -u root -p{} shop", "hunter2"),
    "with spaces": ('export API_TOKEN="{}"', "correct horse battery"),
    "over two lines": ("key: {}\nend", ("sk" + "-ant-api03-" + made(20), made(40, seed=8))),
    "over two lines, early": ("key: {}\nend", ("glpat" + "-" + made(8), made(12, seed=8))),
    "over two lines, at once": ("key: {}\nend", ("dop" + "_v1_" + made(4), made(40, seed=8))),
    "base64": (
        "echo {} | base64 -d",
        base64.b64encode(f"OPENAI_API_KEY=sk{'-'}proj-{LONG}".encode()).decode(),
    ),
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
    "pem in json": (
        f'{{{{"private_key": "{BEGIN.format("")}\\n{{}}\\n{END.format("")}\\n"}}}}',
        "\\n".join(PEM_LINES),
    ),
    "end of a pem": (f"[cut]\n{{}}\n{END.format('RSA ')}\n", PEM_BODY),
    "end of a pem in its last line": (f"[cut]\n{{}} {END.format('RSA ')}\n", PEM_BODY),
    "pem with line numbers": (
        f"1\t{BEGIN.format('RSA ')}\n{{}}\n9\t{END.format('RSA ')}",
        "\n".join(f"{number}\t{line}" for number, line in enumerate(PEM_LINES, 2)),
    ),
    "base64 of a pem": (
        "data: {}",
        base64.b64encode(f"{BEGIN.format('RSA ')}\n{PEM_BODY}\n".encode()).decode(),
    ),
    "kubernetes": ("  password: {}", base64.b64encode(b"hunter2hunter2").decode()),
    "after a written line break": ('{{"text": "a\\n{}"}}', "ghp" + "_" + made(36)),
    "camel case": ('{{"clientSecret": "{}"}}', made(24)),
    "yaml": ("db:\n  password: {}\n", "swordfish"),
    "properties": ("spring.datasource.password={}", "sword2fish"),
    "option": ("tool --api-key {} run", made(20)),
    "pgpassword": ("PGPASSWORD={} psql", "swordfish"),
    "double quotes in json": ('{{"command": "export API_TOKEN=\\"{}\\" && x"}}', "two words here"),
    "hash": ("root:{}:19000:0:99999:7:::", "$6$" + made(8) + "$" + made(60)),
    "artifactory": ("use {} here", "AKCp" + made(69)),
    "discord bot": ("bot: {}", "M" + made(23) + "." + made(6) + "." + made(38)),
    "mailchimp": ("call {} for it", made(32, HEX) + "-us14"),
    "ibm": ('ibm_api_key: "{}"', made(44)),
    "softlayer": ("softlayer_api_key={}", made(64, HEX)),
    "ini with spaces": ("[client]\npassword = {} # mine\n", made(24)),
    "docker's settings": (
        '{{"auths": {{"r": {{"auth": "{}"}}}}}}',
        base64.b64encode(b"alice:hunter2hunter2").decode(),
    ),
    "element": ("<password>{}</password>", "swordfish"),
    "attribute": ('<add key="ClearTextPassword" value="{}" />', "swordfish"),
    "connection string": ('{{"Default": "Server=x;User Id=sa;Password={};"}}', "swordfish"),
    "apache": ("bob:${}", "apr1$" + made(8) + "$" + made(22)),
    "docker": ("docker login -u me -p {} registry", "hunter2x"),
}
