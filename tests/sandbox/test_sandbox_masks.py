"""Masked credentials: commands see a placeholder, and only the hosts named for it get the value."""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.contained import OUTPUTS, Contained, state_of
from tui_agent.sandbox import Grants, find_sandbox
from tui_agent.sandbox.authority import Authority
from tui_agent.sandbox.masks import Masks, StreamRedactor, with_values
from tui_agent.web.fetching import system_tls

pytestmark = [
    pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="needs bubblewrap"),
    pytest.mark.daily(2, any_of=("plain",)),
]

TOKEN = "gho_16C7e42F292c6912E7710c838347Ae178B4a"
PASSWORD = "S3cretP4ssOfMine"
NAMES = ("api.test", "other.test")
ANY = Grants(hosts=frozenset(NAMES))


@dataclass
class Far:
    """A server on this machine with both names, and the heads it was sent. It repeats them in its answers."""

    heads: list[str] = field(default_factory=list)
    https: int = 0
    http: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode("latin-1"))
        if b"/git/" in head and b"authorization" not in head.lower():
            body = b""
            first = "401 Unauthorized\r\nWWW-Authenticate: Basic realm=git"
        else:
            body = b"you sent:" + head
            first = "200 OK"
        writer.write(f"HTTP/1.1 {first}\r\nContent-Length: {len(body)}\r\n".encode())
        writer.write(b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    def sent(self, name: str) -> list[str]:
        """Return the values of a header field, request by request."""
        rows = [line.partition(": ") for head in self.heads for line in head.split("\r\n")]
        return [value for field_name, _, value in rows if field_name.lower() == name]


@pytest.fixture
async def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Far]:
    far = Far()
    authority = Authority()
    contexts = {name: authority.context(name) for name in NAMES}

    def choose(connection: ssl.SSLObject, name: str, _context: ssl.SSLContext) -> None:
        connection.context = contexts[name]

    contexts["api.test"].sni_callback = choose
    (tmp_path / "company.pem").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "company.pem"))
    system_tls.cache_clear()
    plain = await asyncio.start_server(far.answer, "127.0.0.1", 0)
    encrypted = await asyncio.start_server(far.answer, "127.0.0.1", 0, ssl=contexts["api.test"])
    far.http = plain.sockets[0].getsockname()[1]
    far.https = encrypted.sockets[0].getsockname()[1]
    look = socket.getaddrinfo

    def here(host: Any, *given: Any, **named: Any) -> Any:
        return look("127.0.0.1" if host in NAMES else host, *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    yield far
    for server in (plain, encrypted):
        server.close()
    system_tls.cache_clear()


@pytest.fixture
def box(plain: Contained, monkeypatch: pytest.MonkeyPatch) -> Contained:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    masking(plain)
    return plain


def masking(box: Contained, **masks: list[str]) -> None:
    """Begin a session in which something is masked, GITHUB_TOKEN for api.test if nothing is given."""
    box.reset(hosts=NAMES, mask=masks or {"GITHUB_TOKEN": ["api.test"]})


CURL = 'curl -sS -m 10 -H "Authorization: Bearer $GITHUB_TOKEN" '
PYTHON = (
    'python3 -c \'import os, sys, urllib.request as u; r = u.Request(sys.argv[1], headers={"X-Api-Key": '
    'os.environ["GITHUB_TOKEN"]}); print(u.urlopen(r, timeout=20).read().decode())\' '
)


@pytest.mark.parametrize(
    ("command", "name", "sent"),
    [
        (CURL, "authorization", f"Bearer {TOKEN}"),
        (PYTHON, "x-api-key", TOKEN),
        ("curl -sS -m 10 -u me:$GITHUB_TOKEN ", "authorization", None),
        ("curl -sS -m 10 --compressed -b session=$GITHUB_TOKEN ", "cookie", f"session={TOKEN}"),
    ],
    ids=["curl", "python", "basic", "cookie"],
)
async def test_the_host_gets_the_value_and_the_command_does_not(
    box: Contained, far: Far, command: str, name: str, sent: str | None
) -> None:
    ran = await box.run(f"echo $GITHUB_TOKEN; {command} https://api.test:{far.https}/user", OUTPUTS)
    basic = "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()
    assert far.sent(name) == [sent or basic], ran.output
    placeholder = ran.output.split()[0]
    assert placeholder.startswith("masked")
    assert "you sent:" in ran.output
    assert TOKEN not in ran.output
    assert basic not in ran.output
    assert TOKEN not in ran.outcome.note
    assert "GITHUB_TOKEN (for api.test)" in ran.outcome.note


async def test_git_sends_the_value_of_a_masked_password(box: Contained, far: Far) -> None:
    address = f"https://me:$GITHUB_TOKEN@api.test:{far.https}/git/project"
    await box.run(f"git ls-remote {address}", OUTPUTS)
    assert far.sent("authorization") == [
        "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()
    ]


async def test_another_host_gets_the_placeholder_and_is_not_looked_into(
    box: Contained, far: Far
) -> None:
    ran = await box.run(
        f"{CURL} -v https://other.test:{far.https}/ 2>&1; echo $GITHUB_TOKEN", OUTPUTS
    )
    placeholder = ran.output.split()[-1]
    assert far.sent("authorization") == [f"Bearer {placeholder}"]
    assert placeholder != TOKEN


@pytest.mark.parametrize(
    ("host", "gets"), [("api.test", False), ("http://api.test", True), ("*.test", False)]
)
async def test_a_value_goes_out_unencrypted_only_where_that_is_said(
    box: Contained, far: Far, host: str, gets: bool
) -> None:
    masking(box, GITHUB_TOKEN=[host])
    ran = await box.run(f"{CURL} http://api.test:{far.http}/", OUTPUTS)
    tunnel = await box.run(f"{CURL} -p http://api.test:{far.http}/", OUTPUTS)
    assert len(far.heads) == 2
    assert [TOKEN in value for value in far.sent("authorization")] == [gets, gets]
    assert TOKEN not in ran.output + tunnel.output
    await box.run(f"{CURL} https://api.test:{far.https}/", OUTPUTS)
    assert far.sent("authorization")[-1] == f"Bearer {TOKEN}"


async def test_a_host_whose_certificate_is_wrong_gets_nothing(
    box: Contained, far: Far, tmp_path: Path
) -> None:
    (tmp_path / "company.pem").write_bytes(Authority().certificate)
    ran = await box.run(f"{CURL} https://api.test:{far.https}/", OUTPUTS)
    assert far.heads == []
    assert "api.test has no trusted certificate" in ran.output


async def test_a_program_that_trusts_other_certificates_is_named(box: Contained, far: Far) -> None:
    ran = await box.run(f"{CURL} --cacert /dev/null https://api.test:{far.https}/", OUTPUTS)
    assert far.heads == []
    assert ran.code != 0
    assert "does not trust the sandbox's certificate for api.test" in ran.outcome.note
    assert ran.outcome.wanted is None


@pytest.mark.parametrize(
    ("name", "text", "secret"),
    [
        ("~/.npmrc", f"//api.test/:_authToken={TOKEN}\nfund=false\n", TOKEN),
        (".env", f"DEBUG=1\nAPI_TOKEN={TOKEN}\n", TOKEN),
        ("~/.netrc", f"machine api.test login me password {PASSWORD}\n", PASSWORD),
        ("./token", "uncommon-word\n", "uncommon-word"),
    ],
    ids=["npmrc", "dotenv", "netrc", "whole"],
)
async def test_a_masked_file_is_seen_with_placeholders(
    box: Contained, far: Far, name: str, text: str, secret: str
) -> None:
    at = box.home if name.startswith("~") else box.root
    file = box.file(name.removeprefix("~/"), text, at=at)
    masking(box, **{name: ["api.test"]})
    shown = name if name.startswith("~") else str(file)
    ran = await box.run(
        f"cat {shown}; curl -sS -m 10 -H \"X-File: $(tr '\\n' ' ' < {shown})\" https://api.test:{far.https}/",
        OUTPUTS,
    )
    assert secret not in ran.output
    seen = ran.output.partition("you sent:")[0]
    assert len(seen) == len(text)
    assert seen.startswith(text.partition(secret)[0])
    assert far.sent("x-file") == [text.replace("\n", " ")]
    assert file.read_text() == text


async def test_a_netrc_of_placeholders_logs_curl_in(box: Contained, far: Far) -> None:
    box.file(".netrc", f"machine api.test login me password {PASSWORD}\n", at=box.home)
    masking(box, **{"~/.netrc": ["api.test"]})
    ran = await box.run(f"curl -sS -m 10 -n https://api.test:{far.https}/", OUTPUTS)
    basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert far.sent("authorization") == [f"Basic {basic}"]
    assert basic not in ran.output


async def test_what_is_masked_is_no_reason_to_ask_for_a_secret(box: Contained) -> None:
    file = box.file(".env", f"API_TOKEN={TOKEN}\n")
    assert box.sandbox.hides(file, box.root)
    masking(box, **{".env": []})
    assert not box.sandbox.hides(file, box.root)
    ran = await box.run("cat .env; echo changed > .env", OUTPUTS.opened(Grants(sources=True)))
    assert TOKEN not in ran.output
    assert file.read_text() == f"API_TOKEN={TOKEN}\n"
    opened = await box.run("cat .env", OUTPUTS.opened(Grants(secrets=frozenset({file}))))
    assert TOKEN in opened.output


async def test_without_a_network_commands_have_placeholders_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    box = Contained(tmp_path / "home", state=state_of("landlock", tmp_path))
    file = box.file("token", "uncommon-word\n")
    box.reset(mask={"GITHUB_TOKEN": ["api.test"], "./token": ["api.test"]})
    ran = await box.run("echo $GITHUB_TOKEN; cat token")
    assert TOKEN not in ran.output
    assert "uncommon" not in ran.output
    assert ran.output.startswith("masked")
    assert box.sandbox.hides(file, box.root)
    await box.sandbox.aclose()


@given(
    st.text("ab", max_size=30),
    st.text("ab", min_size=8, max_size=12),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_an_answer_is_changed_however_it_is_cut(text: str, value: str, cuts: list[int]) -> None:
    whole = (text + value + text).encode()
    stand_in = b"x" * len(value)
    hiding = StreamRedactor({value.encode(): stand_in})
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    changed = b"".join([*(hiding.feed(piece) for piece in pieces if piece), hiding.feed(b"")])
    assert changed == whole.replace(value.encode(), stand_in)


@given(st.text(min_size=8, max_size=40), st.sampled_from(["Authorization", "X-Key", "Cookie"]))
def test_a_value_is_put_in_as_it_is_or_not_at_all(value: str, name: str) -> None:
    masks = Masks({"KEY": ["api.test"]}, {"KEY": value}, Path("/home/me"))
    placeholder = masks.of_variables().get("KEY", "")
    assert len(placeholder) == len(value.encode())
    found = masks.for_host("api.test", encrypted=True)
    (sent, *_), hidden = with_values([(name, ":", f" Bearer {placeholder}")], found)
    if value.isprintable():
        assert sent[2].encode("latin-1") == f" Bearer {value}".encode()
        assert hidden[value.encode()] == placeholder.encode()
    else:
        assert sent[2] == f" Bearer {placeholder}"
    assert "\n" not in sent[2]
    assert masks.for_host("other.test", encrypted=True) == []
