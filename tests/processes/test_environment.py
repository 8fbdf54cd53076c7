"""What child processes are told."""

import os
import subprocess
from collections.abc import Mapping

import pytest

from tests.support.secret_shapes import DIGITS, HEX, LETTERS, UPPER, made
from tests.support.tooling import Workspace
from tui_agent.model.hosted.link import host_environment
from tui_agent.processes.environment import (
    SafeEnvironment,
    command_environment,
    holds_secret,
    server_environment,
)
from tui_agent.processes.environment_table import LEFT_OUT, PASSED, TABLE, Row, without_left_out
from tui_agent.processes.own_programs import bare_environment
from tui_agent.secret_detector import is_secret_name
from tui_agent.tools.bash import BashTool


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "ANTHROPIC_KEY", "GITHUB_TOKEN", "GH_TOKEN", "HF_TOKEN", "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN", "DB_PASSWORD", "PGPASSWORD", "DB_PWD", "CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS",
        "NPM_CONFIG__AUTH", "npm_config__authToken", "OP_SESSION_work", "TWINE_PASSWORD", "api_key", "GITHUB_PAT",
        "MYAPIKEY", "DBPASS", "SMTPPASS", "clientSecret", "STRIPE_SECRET", "SENTRY_AUTH_TOKEN",
        "BW_SESSION", "DOCKER_AUTH_CONFIG", "ConnectionStrings__Main", "BUNDLE_GEMS__EXAMPLE__COM",
        "CI_JOB_JWT", "BEARER", "MNEMONIC",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


def test_names_that_builds_need() -> None:
    names = (
        "PATH", "HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "AWS_REGION", "TOKENIZERS_PARALLELISM", "KEYMAP", "LANG",
        "VIRTUAL_ENV", "PYTHONPATH", "CC", "CFLAGS", "JAVA_HOME", "HTTP_PROXY", "PATHEXT", "XAUTHORITY", "COMPASS",
        "BYPASS", "KEYBOARD", "SECRETARY", "TOKENIZER", "GPG_KEY", "DESKTOP_SESSION", "XDG_SESSION_ID",
    )  # fmt: skip
    assert list(filter(is_secret_name, names)) == []


def test_what_the_user_wants_passed_on() -> None:
    environ = {"NPM_TOKEN": "1", "GH_TOKEN": "2", "PATH": "/bin"}
    assert dict(SafeEnvironment(environ, frozenset({"NPM_TOKEN"}))) == {
        "NPM_TOKEN": "1",
        "PATH": "/bin",
    }


def test_nothing_asks_pages_or_leads_elsewhere() -> None:
    """Rules judge ``cd src`` by where it goes without ``CDPATH``; a look for updates is a host to be asked about."""
    screen, elsewhere = {"COLUMNS": "80", "FORCE_COLOR": "1"}, {"CDPATH": "/etc", "GLOBIGNORE": "a"}
    environment = command_environment({"HOME": "/h", "PAGER": "less", **screen, **elsewhere})
    expected = {
        "HOME": "/h",
        "PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "npm_config_update_notifier": "false",
    }
    assert environment.items() >= {**expected, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}.items()
    assert not {*screen, *elsewhere} & environment.keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres://shop:hunter2@db/shop"),
        ("SENTRY_DSN", "https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/4"),
        ("REDIS", "redis://:hunter2@cache:6379"),
        (
            "HOOK",
            "https://hooks.slack.com/services/" + "T0123ABC/B0123ABC/0a1b2c3d4e5f6a7b8c9d0e1f",
        ),
        ("CONN", "Server=db.example.org;Database=x;User Id=sa;Password=Sw0rdfish!7"),
        ("TWILIO", "AC" + "0123456789abcdef" * 2),
        ("WHATEVER", "ghp" + "_0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f"),
    ],
)
def test_values_that_are_secrets_whatever_they_are_called(name: str, value: str) -> None:
    environment = SafeEnvironment({name: value, "PATH": "/bin"})
    assert dict(environment) == {"PATH": "/bin"}
    assert environment.withheld == (name,)
    assert dict(SafeEnvironment({name: value}, keep=[name])) == {name: value}


def test_values_that_builds_need_stay() -> None:
    environ = {
        "PATH": "/usr/bin:/home/me/.local/bin", "LS_COLORS": "di=01;34:ln=01;36:*.tar=01;31", "GPG_KEY": "A0" * 20,
        "DISPLAY": ":0", "SSH_AUTH_SOCK": "/run/ssh", "HTTP_PROXY": "http://proxy:3128", "LANG": "C.UTF-8",
        "PS1": "\\u@\\h:\\w$ ", "PYTHONHASHSEED": "0", "GIT_AUTHOR_EMAIL": "me@example.org", "SHLVL": "1",
        "XDG_DATA_DIRS": "/usr/share", "PYTHON_SHA256": "e3b0c442" * 8,
    }  # fmt: skip
    assert dict(SafeEnvironment(environ)) == environ


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            'echo "[$DATABASE_URL]"',
            "like secrets: DATABASE_URL. The user can pass them on with the setting sandbox.env.",
        ),
        ("echo KeyError: MYAPIKEY >&2; exit 1", "like secrets: MYAPIKEY."),
        (
            "echo authentication failed: no credentials; exit 1",
            "DATABASE_URL, MYAPIKEY. The user can",
        ),
        ("echo hi", ""),
        ("echo NOT_MYAPIKEY MYAPIKEYS", ""),
        ("false", ""),
    ],
)
async def test_a_command_is_told_of_secrets_it_may_have_missed(
    space: Workspace, command: str, told: str
) -> None:
    space.environ |= {
        "DATABASE_URL": "postgres://shop:hunter2@db/shop",
        "MYAPIKEY": "hunter2hunter2",
    }
    output = (await space.call(BashTool(), command=command)).output
    assert told in output
    assert ("sandbox.env" in output) == bool(told)
    assert "hunter2" not in output


def as_the_row_says(
    row: Row, fate: str, given: Mapping[str, str], found: Mapping[str, str]
) -> bool:
    """Whether a reader has of a row's variables what its cell says; a list of hosts may have become longer."""
    if fate == LEFT_OUT:
        return not given.keys() & found.keys()
    if fate == PASSED:
        return all(found[name].startswith(value) for name, value in given.items())
    return all(found[name] == fate for name in row.names)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.names[0])
def test_each_row_of_the_table_holds(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {name.replace("*", "TIME"): "/given" for name in row.names}
    # What looks like a secret is withheld from servers whatever the row says.
    harmless = {name: value for name, value in given.items() if not holds_secret(name, value)}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert as_the_row_says(row, row.own, given, bare_environment())
    assert as_the_row_says(row, row.host, given, host_environment(os.environ))
    assert as_the_row_says(row, row.servers, harmless, server_environment(os.environ))
    assert as_the_row_says(row, row.commands, given, command_environment(os.environ))
    assert as_the_row_says(row, row.sandbox, given, without_left_out("sandbox", os.environ))
    assert row.why.endswith(".")


def test_a_variable_is_in_one_row_of_the_table() -> None:
    names = [name for row in TABLE for name in row.names]
    assert len(names) == len(set(names))


def test_what_git_calls_local_to_a_repository_reaches_no_command() -> None:
    """Started from a hook in a linked worktree, a commit of the model's would land on the user's branch."""
    asked = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True
    )
    local = dict.fromkeys(asked.stdout.split(), "/elsewhere")
    assert {"GIT_DIR", "GIT_INDEX_FILE"} <= local.keys()
    assert not local.keys() & (command_environment(local).keys() | server_environment(local).keys())


def test_what_the_user_wants_passed_on_is_passed_on_whatever_the_table_says() -> None:
    environ = SafeEnvironment({"GIT_CONFIG_COUNT": "1", "BASH_ENV": "x"}, ["GIT_CONFIG_COUNT"])
    found = command_environment(environ)
    assert found["GIT_CONFIG_COUNT"] == "1"
    assert "BASH_ENV" not in found


UUID = "3f2b8c1a-9d4e-4f6a-8b7c-1234567890ab"
SEED = "abandon ability able about above absent absorb abstract absurd abuse access accident"
BASE32_BYTES = made(42, LETTERS + DIGITS + "+/") + "8="


@pytest.mark.parametrize(
    "value",
    [
        # Lists of settings, in any order.
        "host=h user=u password=S3cr3tPass9", "password=Tr0ub4dor user=me host=db",
        "dbname=app password=swordfish port=1",
        "Server=h;Database=d;User Id=u;Password=swordfish", "Password=swordfish;Server=h;User=me",
        "UID=u;PWD=S3cr3tPass9",
        "jdbc:oracle:thin:scott/tigerlily@//h:1521/x", "jdbc:sqlserver://h;user=sa;password=Swordfish;encrypt=true",
        'PlainLoginModule required username="u" password="swordfish";',
        # Options.
        "-Xmx2g -Dserver.password=S3cr3tPass9", "-Djavax.net.ssl.keyStorePassword=S3cr3tPass9 -Xms1g",
        "-PnexusPassword=swordfish",
        "-pS3cr3tPass9", "-uroot -psecretword", "-h db -u root -pS3cr3t9 shop", "-u admin:S3cr3tPass9 -s",
        "admin:S3cr3tPass9",
        "--set db.password=swordfish", "--from-literal=password=swordfish", "/p:Password=swordfish1",
        # Keys that are nothing but random.
        BASE32_BYTES, made(42, LETTERS + DIGITS + "-_") + "8=", f"0x{made(64, HEX)}", made(64, HEX), SEED,
        f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{made(400)}", f"MC4CAQAwBQYDK2VwBCIEI{made(44)}", f"xprv{made(107)}",
        f"S{made(55, UPPER + '234567')}", str(list(range(64))),
        # Data is named as in no code, and headers, cookies and options are in variables only.
        "--set auth.password=S3cr3tPass9,x=y", "db: {user: a, password: S3cr3tPass9}", "xmpp:me@x password=S3cr3tPass9",
        "--pw=swordfish", "--pass swordfish", "-setcookie S3cr3tPass9", "pass:S3cr3tPass9", "-h cache -a S3cr3tPass9",
        "-D cn=admin,dc=x -w S3cr3tPass9", "-auth user:S3cr3tPass9", "WIFI:T:WPA;S:net;P:S3cr3tPass9;;",
        "Basic YWRtaW46UzNjcjN0", "Authorization=Basic%20YWRtaW46UzNjcjN0", f"x-honeycomb-team={made(22)}",
        f"session={made(24)}; Path=/", f"sessionid={made(32, HEX)}", f"-Dsonar.login={made(40, HEX)}",
        f"{made(14)}.atlasv1.{made(60)}", f"pat{made(14)}.{made(64, HEX)}", f"{made(36, HEX)}NRAL",
        f"bkua_{made(40, HEX)}", f"CCIPAT_{made(22)}_{made(40, HEX)}", f"django-insecure-{made(24)}#$%&{made(20)}",
        # Addresses that are secrets.
        f"https://sentry.io/api/hooks/release/builtin/12345/{made(64, HEX)}/",
        f"https://events.pagerduty.com/integration/{made(32, HEX)}/enqueue",
        f"https://logs.collector.sumologic.com/receiver/v1/http/{made(48).lower()}==",
        f"https://api.netlify.com/build_hooks/{made(24, HEX)}", "https://hooks.zapier.com/hooks/catch/123456/b2k8xyz/",
        f"https://n8n.example.com/webhook/{UUID}", f"http://n8n.local:5678/webhook-test/{UUID}", f"https://hc-ping.com/{UUID}",
        "https://api.vercel.com/v1/integrations/deploy/prj_abcDEF123/aBcDeF1234", f"https://hook.eu1.make.com/{made(32)}",
        f"https://chat.example.org/hooks/{made(26)}", f"https://maker.ifttt.com/trigger/x/with/key/{made(22)}",
    ],
)  # fmt: skip
def test_values_that_are_secrets_by_their_form(value: str) -> None:
    assert dict(SafeEnvironment({"THING": value})) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JAVA_OPTS", "-Xmx2g -Dfile.encoding=UTF-8 -Duser.home=/x -Dkey.file=/etc/x"),
        ("MAVEN_OPTS", "-Djavax.net.ssl.trustStore=/etc/cacerts -Djavax.net.ssl.trustStorePassword=changeit"),
        ("GIT_COMMIT", "3f786850e387550fdab836ed7e6dc881de23001b"), ("TREE_SHA256", made(64, HEX)),
        ("CONTAINER_ID", made(64, HEX)), ("IMAGE", f"nginx@sha256:{made(64, HEX)}"), ("IMG", "postgres:16-alpine"),
        ("IMG", "mysql:8.0-debian"), ("WG_PUBLIC_KEY", BASE32_BYTES), ("INTEGRITY", f"sha256-{BASE32_BYTES}"),
        ("PYTEST_ADDOPTS", "-p no:cacheprovider -q"), ("RUN", "-u 1000:1000 -p8080:80"),
        ("CFLAGS", "-O2 -pipe -pthread"),
        ("FFMPEG", "-preset veryfast -profile:v main -pix_fmt yuv420p"), ("GOFLAGS", "-mod=mod -p=4"),
        ("DB", "host=db user=app dbname=app sslmode=require"), ("ADDR", "api:8080"), ("USES", "actions/checkout@v4"),
        ("CMAKE_ARGS", "-DCMAKE_BUILD_TYPE=Release -DUSE_PASSWORD=ON -DKEYSTORE_DIR=/x"),
        ("WHO", "user:me@example.org"),
        ("DOCS", "https://docs.github.com/en/webhooks/webhook-events-and-payloads"), ("SESSION", f"w0t0p0:{UUID}"),
        ("HOOKS", "https://github.com/x/pre-commit-hooks/commit/3f786850e387550fdab836ed7e6dc881de23001b"),
        ("TASKS", "build test lint docs deploy clean check format types cover audit bench"), ("ZERO", f"0x{'0' * 64}"),
        ("OPTS", "--password-file=/run/secrets/db --token-ttl=3600 --auth=basic"), ("AT", "a/b?guid=0a1b2c3d&page=2"),
        ("TITLE", "pass the test: with a token of love"), ("PLACE", "--set db.password=$DB_PASSWORD"),
        ("NOW", "key: value"), ("MAKEFLAGS", "-j8 -p -w"), ("SESSION_MANAGER", "local/host:@/tmp/.ICE-unix/1234"),
        ("SAID", "how to build a small web app with python and some other tools"), ("VERSION", "1.24.3-rc1"),
    ],
)  # fmt: skip
def test_values_that_only_look_like_secrets_stay(name: str, value: str) -> None:
    assert dict(SafeEnvironment({name: value})) == {name: value}
