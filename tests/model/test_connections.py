"""How requests reach servers and what comes of odd ones: connections, proxies, refusals, what is left out next time."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date

import pytest

from tests.support.model_client import OPENAI_KEY, ask, collect, host_client
from tests.support.model_server import Fault, ModelServer, Recorded, Turn, status
from tests.support.wire_rounds import Heard
from tui_agent.context.request import ContentText, Message
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.session.effort import Effort

DOCUMENT = (
    b'{"choices": [{"finish_reason": "stop", "message": {"content": "whole"}}],'
    b' "usage": {"prompt_tokens": 3, "completion_tokens": 1}}'
)


def take_request(connection: socket.socket) -> None:
    """Read a whole request: hanging up with some of it unread would reset the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line[15:])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += connection.recv(1 << 16)


@contextmanager
def answering(head: bytes, body: bytes) -> Iterator[str]:
    """A server that answers every request with the same bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _address = listener.accept()
                except OSError:
                    return
                with connection:
                    take_request(connection)
                    connection.sendall(head + b"connection: close\r\n\r\n" + body)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        listener.shutdown(socket.SHUT_RDWR)


def own(settings: ModelSettings, environ: dict[str, str] | None = None) -> ProviderClient:
    models = {"openai/own": settings}
    return ProviderClient(Router(Catalog(models), environ or {}, models=models))


def client_at(url: str) -> ProviderClient:
    return own(ModelSettings(base_url=url))


async def answer_of(client: ProviderClient, model: str = "openai/own") -> Heard:
    """Ask once and close the client."""
    answer = await collect(client, ask(model))
    await client.aclose()
    return answer


async def answer_to(body: bytes, kind: str = "text/event-stream") -> Heard:
    """Ask a server that answers with certain bytes."""
    with answering(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n".encode(), body) as url:
        return await answer_of(client_at(url))


WHOLE = b'data: {"choices": [{"delta": {"content": "whole"}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (DOCUMENT, "application/json"),
        (WHOLE + b'data: {"usage": \n\n', "text/event-stream"),
        (WHOLE + b'data: {"error": {"message": "late", "code": 502}}\n\n', "text/event-stream"),
        (b"\xef\xbb\xbf" + WHOLE + b"data: [DONE]\n\n", "text/event-stream"),
    ],
    ids=["no stream", "what follows breaks off", "an error follows", "a byte order mark"],
)
async def test_a_whole_answer_is_read_however_it_is_sent(body: bytes, kind: str) -> None:
    answer = await answer_to(body, kind)

    assert (answer.error, answer.text) == (None, "whole")


async def test_half_an_event_at_the_end_is_no_end_of_an_answer() -> None:
    begun = b'data: {"choices": [{"delta": {"content": "half of"}}]}\n\n'

    answer = await answer_to(begun + b'data: {"choices": [{"delta": {"con')

    assert answer.failure.kind is ErrorKind.NETWORK
    assert (await answer_to(begun)).text == "half of"


async def test_a_web_page_at_the_address_is_told_as_a_wrong_address() -> None:
    error = (await answer_to(b"<html><body>Welcome</body></html>", "text/html")).failure

    assert (error.kind, "check base_url" in error.message) == (ErrorKind.NOT_FOUND, True)


async def test_a_redirection_says_where_to_and_takes_no_key_there(server: ModelServer) -> None:
    head = f"HTTP/1.1 308 Moved\r\nlocation: {server.openai_url}/chat/completions\r\ncontent-length: 0\r\n".encode()
    with answering(head, b"") as url:
        assert server.openai_url in (await answer_of(client_at(url))).failure.message

    assert server.requests == []


async def test_a_connection_is_used_again_and_a_dropped_one_is_not(server: ModelServer) -> None:
    client = host_client(server)
    server.play(Turn("one"), Turn("two"), Turn("word " * 500, delay=0.01), Turn("four"))

    await collect(client, ask("openai/gpt-4o"))
    await collect(client, ask("openai/gpt-4o"))
    stream = client.stream(ask("openai/gpt-4o"))
    await anext(stream)
    await stream.aclose()
    await server.until(lambda server: server.requests[2].aborted)
    await collect(client, ask("openai/gpt-4o"))
    await client.aclose()

    numbers = [request.connection for request in server.requests]
    assert numbers[0] == numbers[1] == numbers[2]
    assert numbers[3] != numbers[2]


async def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    server: ModelServer,
) -> None:
    with answering(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n", DOCUMENT) as url:
        environ = {"HTTP_PROXY": url.removesuffix("/v1")}
        server.play(Turn("near"))
        through = await answer_of(own(ModelSettings(base_url="http://far.invalid/v1"), environ))
        beside = await answer_of(own(ModelSettings(base_url=server.openai_url), environ))

    assert (through.text, beside.text) == ("whole", "near")


@pytest.mark.parametrize("key", ["geheim…schlüssel", "geheim\nschluessel", "geheim\x00"])
async def test_a_key_that_cannot_be_sent_says_so_and_is_not_shown(key: str) -> None:
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1", api_key_env="KEY")
    error = (await answer_of(own(settings, {"KEY": key}))).failure

    assert "can't be sent" in error.message
    assert "geheim" not in error.message


async def test_the_end_of_a_line_behind_a_key_does_not_count_and_a_date_is_sent_in_words(
    server: ModelServer,
) -> None:
    settings = ModelSettings(
        base_url=server.openai_url,
        api_key_env="OPENAI_API_KEY",
        options={"since": date(2026, 1, 31)},
    )
    server.play(Turn("fine"))
    answer = await answer_of(own(settings, {"OPENAI_API_KEY": f" {OPENAI_KEY}\n"}))

    assert (answer.error, answer.text) == (None, "fine")
    assert server.requests[-1].headers["authorization"] == f"Bearer {OPENAI_KEY}"
    assert server.requests[-1].json["since"] == "2026-01-31"


@pytest.mark.parametrize(
    "url", ["http://localhost:80800/v1", "http://[::1/v1", "localhost:8080/v1"]
)
async def test_an_address_that_is_none_is_told_with_where_it_stands(url: str) -> None:
    error = (await answer_of(client_at(url))).failure

    assert error.kind is ErrorKind.INVALID_REQUEST
    assert url in error.message
    assert 'models."openai/own"' in error.message


@pytest.mark.parametrize(
    "proxy", ["socks://127.0.0.1:9", "socks5://127.0.0.1:9", "gopher://[::1", "http://a b:x"]
)
async def test_a_proxy_that_cannot_be_used_is_left_out(server: ModelServer, proxy: str) -> None:
    server.play(Turn("near"))
    environ = {"ALL_PROXY": proxy, "NO_PROXY": "fe80::/10, [::1]:x"}

    assert (await answer_of(own(ModelSettings(base_url=server.openai_url), environ))).text == "near"


def strict(*fields: str) -> object:
    """A server that refuses fields it doesn't know, one after the other."""

    def script(request: Recorded) -> Turn:
        found = [field for field in fields if field in request.json]
        return status(400, f"Unknown parameter: '{found[0]}'.") if found else Turn("fine")

    return script


async def test_a_field_a_server_does_not_know_is_left_out_from_then_on(server: ModelServer) -> None:
    client = host_client(server)
    server.play_function(strict("stream_options", "reasoning_effort", "max_completion_tokens"))  # type: ignore[arg-type]
    asked = ask("openai/gpt-4o", effort=Effort.HIGH, max_output_tokens=500)

    first = await collect(client, asked)
    sent = len(server.requests)
    second = await collect(client, asked)
    other = await collect(client, ask("openai/gpt-4o-mini"))
    await client.aclose()

    assert (first.text, second.text, other.text) == ("fine", "fine", "fine")
    assert sent == 3, "after the second refusal it goes without any"
    assert len(server.requests) == sent + 1 + 2, (
        "the next request knows; another model learns by itself"
    )


@pytest.mark.parametrize(
    "refusal",
    [
        "This model's maximum context length is 4096 tokens. You requested 4420 tokens (3900 in the messages).",
        "'max_tokens' is too large: 520. Maximum context length is 4096 tokens, your request has 3900 input tokens.",
    ],
)
async def test_a_prompt_that_fits_without_the_limit_of_the_answer_is_sent_without(
    server: ModelServer, refusal: str
) -> None:
    client = host_client(server)
    server.play(status(400, refusal), Turn("fine"), Turn("fine"))
    answers = [await collect(client, ask("openai/local", max_output_tokens=520)) for _ in range(2)]
    await client.aclose()
    assert [answer.text for answer in answers] == ["fine", "fine"]
    assert [request.json.get("max_tokens") for request in server.requests] == [520, None, 520]


async def test_a_gateway_without_responses_is_spoken_to_in_chat_completions(
    server: ModelServer,
) -> None:
    def script(request: Recorded) -> Turn:
        return status(404, "Not Found") if request.path.endswith("/responses") else Turn("fine")

    providers = {"openai": ProviderSettings(base_url=server.openai_url)}
    client = ProviderClient(Router(Catalog(), {"OPENAI_API_KEY": OPENAI_KEY}, providers=providers))
    server.play_function(script)

    texts = [(await collect(client, ask("openai/gpt-5.4"))).text for _ in range(2)]
    await client.aclose()

    assert texts == ["fine", "fine"]
    paths = [request.path.rpartition("/")[2] for request in server.requests]
    assert paths == ["responses", "completions", "completions"]


@pytest.mark.parametrize(
    ("refusal", "sent"),
    [
        ("Extra inputs are not permitted: messages.1.reasoning_content", 2 + 1 + 1),
        ("Invalid signature in thinking block", 2 + 2 + 2),
    ],
    ids=["the server doesn't know the field", "one of them is wrong"],
)
async def test_reasoning_a_server_does_not_know_is_not_sent_to_it_again(
    server: ModelServer, refusal: str, sent: int
) -> None:
    def script(request: Recorded) -> Turn:
        kept = [m for m in request.json["messages"] if "reasoning_content" in m]
        return status(400, refusal) if kept else Turn("fine")

    client = client_at(server.openai_url)
    server.play_function(script)

    def thought(number: int) -> Message:
        return Message(
            "assistant", (ContentText("x"),), reasoning=(f'{{"reasoning_content": "hm {number}"}}',)
        )

    for count in (1, 2, 3):
        answer = await collect(
            client, ask("openai/own", messages=[thought(number) for number in range(count)])
        )
        assert answer.text == "fine"
    await client.aclose()

    assert len(server.requests) == sent


async def test_nothing_is_started_for_what_is_spoken_to_directly(server: ModelServer) -> None:
    client = host_client(server)
    server.play(Turn("one"), Turn(fault=Fault("cut", after=1)))
    client.warm("openai/gpt-4o")

    await collect(client, ask("openai/gpt-4o"))
    await collect(client, ask("anthropic/claude-sonnet-4-5"))

    assert client.hosted.pid is None
    await client.aclose()


PING = b": ping\n\n"
FIRST = b'data: {"choices": [{"delta": {"content": "hello"}}]}\n\n'
ENDED = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}\n\n'


@contextmanager
def pinging(body: bytes) -> Iterator[str]:
    """A server that answers, then keeps the connection open with comments until the client leaves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                connection, _address = listener.accept()
                with connection:
                    take_request(connection)
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body
                    )
                    connection.settimeout(0.05)
                    for _ in range(1_000):
                        connection.sendall(PING)
                        with suppress(TimeoutError):
                            if not connection.recv(1):
                                return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        listener.close()


async def test_an_answer_is_over_soon_after_its_finish_whatever_keeps_the_connection_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_agent.model.wires.http.FINISH_GRACE_SECONDS", 0.2)
    with pinging(FIRST + ENDED + USAGE) as address:
        client = client_at(address)
        answer = await collect(client, ask("openai/own"))
        await client.aclose()
    assert (answer.error, answer.text) == (None, "hello")


async def test_comments_are_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    with pinging(FIRST) as address:
        client = client_at(address)
        monkeypatch.setattr(
            client, "settings", client.settings.model_copy(update={"stall_timeout": 0.3})
        )
        answer = await collect(client, ask("openai/own"))
        await client.aclose()
    assert answer.failure.kind is ErrorKind.NETWORK
    assert answer.text == "hello"
