"""The ``websearch`` tool against a server on 127.0.0.1 that answers as the services do."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tests.support.tooling import Workspace
from tests.tools.test_webfetch import WebServer, answer, web_server
from tui_agent.context.projection import ModelTraits
from tui_agent.errors import ToolError
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.websearch import WebSearchInput, WebSearchTool
from tui_agent.web.addresses import read_address
from tui_agent.web.fetching import WebClient
from tui_agent.web.searching import (
    APIS,
    MAX_PAGES,
    SearchService,
    WebQuery,
    advice,
    find_service,
    found_in,
)
from tui_agent.web.settings import FetchSettings, SearchSettings

KEY = "tvly-secret-0123456789"
PATHS = {
    "tavily": "/search",
    "exa": "/search",
    "brave": "/res/v1/web/search",
    "searxng": "/search",
}
ANSWERS: dict[str, dict[str, Any]] = {
    "tavily": {
        "query": "tree",
        "answer": None,
        "images": [],
        "results": [
            {
                "title": "Trees &amp; forests",
                "url": "https://docs.example.org/trees",
                "content": "All about trees.\nAnd more.",
                "score": 0.81,
                "raw_content": None,
                "published_date": "Mon, 02 Feb 2026 10:00:00 GMT",
            }
        ],
        "response_time": "1.67",
    },
    "exa": {
        "requestId": "b59",
        "results": [
            {
                "title": "Trees & forests",
                "url": "https://docs.example.org/trees",
                "publishedDate": "2026-02-02T01:36:32.547Z",
                "author": None,
                "id": "https://docs.example.org/trees",
                "highlights": ["All about trees.", "And more."],
            }
        ],
        "costDollars": {"total": 0.005},
    },
    "brave": {
        "type": "search",
        "query": {"original": "tree", "more_results_available": True},
        "web": {
            "type": "search",
            "results": [
                {
                    "title": "Trees &amp; <strong>forests</strong>",
                    "url": "https://docs.example.org/trees",
                    "description": "All about <strong>trees</strong>. And more.",
                    "page_age": "2026-02-02T00:00:00",
                    "age": "February 2, 2026",
                }
            ],
        },
    },
    "searxng": {
        "query": "tree",
        "number_of_results": 0,
        "results": [
            {
                "title": "Trees & forests",
                "url": "https://docs.example.org/trees",
                "content": "All about trees. And more.",
                "engines": ["duckduckgo"],
                "publishedDate": "2026-02-02T00:00:00",
            }
        ],
        "answers": [],
        "unresponsive_engines": [],
    },
}
"""An answer of each service, in the shape of its documentation."""


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with web_server() as running:
        yield running


def tool(
    server: WebServer, name: str = "tavily", fetch: FetchSettings | None = None
) -> WebSearchTool:
    set_up = SearchSettings(
        service=name,  # type: ignore[arg-type]  # read as from a file
        api_key=KEY,  # type: ignore[arg-type]  # read as from a file
        address=f"http://127.0.0.1:{server.port}",
    )
    return WebSearchTool(find_service(set_up, {}, fetch or FetchSettings(timeout=20)))


def ready(server: WebServer, name: str, said: object) -> WebSearchTool:
    server.answers[PATHS[name]] = answer(json.dumps(said), "application/json")
    return tool(server, name)


def address_of(request: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlsplit(request.split()[1])
    return parts.path, parse_qs(parts.query)


@pytest.mark.parametrize("name", APIS)
async def test_every_service_gives_the_same_blocks(
    space: Workspace, server: WebServer, name: str
) -> None:
    searches = ready(server, name, ANSWERS[name])
    result = await space.call(searches, query=" tree\nforest ")
    lines = result.output.split("\n")
    assert lines[:2] == ["1. Trees & forests (2026-02-02)", "https://docs.example.org/trees"]
    assert lines[2].startswith("All about trees.")
    assert lines[2].endswith("And more.")
    assert len(lines) == 3
    assert (result.title, result.metadata.count, result.is_error) == ("tree forest", 1, False)
    assert address_of(server.requests[0])[0] == PATHS[name]
    assert KEY not in f"{result}{searches.schema()}{address_of(server.requests[0])}"


async def test_the_services_are_asked_in_their_own_ways(
    space: Workspace, server: WebServer
) -> None:
    asked = {
        "query": "tree",
        "domains": ["https://docs.example.org/x", "*.a.org"],
        "after": "2020-01-31",
    }
    for name in APIS:
        await space.call(ready(server, name, ANSWERS[name]), **asked)
    tavily, exa, brave, searxng = server.requests
    assert f"Authorization: Bearer {KEY}" in tavily
    assert json.loads(server.bodies[0]) == {
        "query": "tree",
        "max_results": MAX_PAGES,
        "include_domains": ["docs.example.org", "a.org"],
        "start_date": "2020-01-31",
    }
    assert f"x-api-key: {KEY}" in exa
    assert json.loads(server.bodies[1]) == {
        "query": "tree",
        "numResults": MAX_PAGES,
        "contents": {"highlights": True},
        "includeDomains": ["docs.example.org", "a.org"],
        "startPublishedDate": "2020-01-31T00:00:00.000Z",
    }
    assert brave.startswith("GET ")
    assert f"X-Subscription-Token: {KEY}" in brave
    fields = address_of(brave)[1]
    assert fields["q"] == ["tree (site:docs.example.org OR site:a.org)"]
    assert fields["freshness"][0].startswith("2020-01-31to20")
    assert KEY not in searxng
    assert address_of(searxng)[1] == {
        "q": ["tree (site:docs.example.org OR site:a.org)"],
        "format": ["json"],
    }


async def test_pages_from_elsewhere_or_from_before_are_left_out(
    space: Workspace, server: WebServer
) -> None:
    rows = [
        {"title": "old", "url": "https://a.org/old", "publishedDate": "2019-12-31"},
        {"title": "new", "url": "https://a.org/new", "publishedDate": "2020-01-01"},
        {"title": "undated", "url": "https://www.a.org/undated"},
        {"title": "elsewhere", "url": "https://nota.org/x"},
        {"title": "again", "url": "https://a.org/new#part"},
        {"title": "script", "url": "javascript:alert(1)"},
        {"title": "with a login", "url": "https://me:pw@a.org/"},
    ]
    searches = ready(server, "searxng", {"results": rows})
    result = await space.call(searches, query="x", domains=["a.org"], after="2020-01-01")
    assert result.output == (
        "1. new (2020-01-01)\nhttps://a.org/new\n\n2. undated\nhttps://www.a.org/undated"
    )


async def test_nothing_found_is_said_and_which_engines_were_silent(
    space: Workspace, server: WebServer
) -> None:
    said = {"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing", "timeout"], 3]}
    result = await space.call(ready(server, "searxng", said), query="x")
    assert result.output == ("[No page was found.]\n[Engines that did not answer: bing, google.]")
    assert (await space.call(ready(server, "exa", {"results": []}), query="x")).output == (
        "[No page was found.]"
    )


HTML = "<!doctype html><html><body>Please log in</body></html>"


@pytest.mark.parametrize(
    ("name", "sent", "said"),
    [
        ("tavily", answer('{"detail": {"error": "bad"}}', "application/json", "401 Unauthorized"),
         "Tavily refuses the key from websearch.api_key."),
        ("brave", answer(HTML, status="403 Forbidden"),
         "Brave Search refuses the key from websearch.api_key."),
        ("exa", answer("{}", "application/json", "429 Too Many Requests"),
         "Exa accepts no more searches for now, because your limit is reached."),
        ("tavily", answer("{}", "application/json", "432 Limit"),
         "Tavily accepts no more searches for now, because your limit is reached."),
        ("tavily", answer(json.dumps({"detail": {"error": f"{KEY} is\nno  key."}}), status="400 Bad Request"),
         "Tavily answers 400 Bad Request: … is no key."),
        ("exa", answer(HTML, status="502 Bad Gateway"), "Exa answers 502 Bad Gateway."),
        ("searxng", answer(HTML, status="403 Forbidden"), "needs json in search.formats."),
        ("searxng", answer(HTML), "SearXNG answered with text/html instead of JSON."),
        ("exa", answer(b"", ""), "Exa answered with something instead of JSON."),
        ("exa", answer("[" * 9_000, "application/json"), "instead of JSON."),
        ("tavily", answer('{"results": [' + "1," * 10_000 + "1]}", "application/json"),
         "Tavily sent an answer that is too large."),
        ("searxng", answer("", status="301 Moved", Location="https://elsewhere.org/"),
         "redirects. Set websearch.address to the new address."),
    ],
    ids=range(12),
)  # fmt: skip
async def test_an_error_is_one_sentence_without_the_key(
    space: Workspace, server: WebServer, name: str, sent: bytes, said: str
) -> None:
    server.answers[PATHS[name]] = sent
    with pytest.raises(ToolError) as failed:
        await space.call(tool(server, name, FetchSettings(max_bytes=10_000)), query="x")
    assert str(failed.value).endswith(said)
    assert "\n" not in str(failed.value)
    assert KEY not in repr(failed.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("key", ["tvly\n-0123", "“tvly-0123”", "tvly\x00-0123"])
@pytest.mark.parametrize("name", ["tavily", "exa", "brave"])
async def test_a_key_that_cannot_be_sent_is_not_repeated(
    space: Workspace, server: WebServer, name: str, key: str
) -> None:
    set_up = SearchSettings(service=name, api_key=key, address=f"http://127.0.0.1:{server.port}")  # type: ignore[arg-type]  # read as from a file
    with pytest.raises(ToolError, match=r"^The key from websearch\.api_key contains") as failed:
        await space.call(WebSearchTool(find_service(set_up, {}, FetchSettings())), query="x")
    assert "0123" not in str(failed.value)
    assert not server.requests


async def test_space_around_a_key_is_not_part_of_it(space: Workspace, server: WebServer) -> None:
    set_up = SearchSettings(
        service="exa",
        api_key=f" {KEY}\n",  # type: ignore[arg-type]  # read as from a file
        address=f"http://127.0.0.1:{server.port}",
    )
    server.answers[PATHS["exa"]] = answer('{"results": []}', "application/json")
    await space.call(WebSearchTool(find_service(set_up, {}, FetchSettings(timeout=20))), query="x")
    assert f"x-api-key: {KEY}" in server.requests[0].splitlines()


async def test_a_service_that_never_answers_ends_with_a_sentence(
    space: Workspace, server: WebServer
) -> None:
    server.answers["/search"] = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
    server.endless.add("/search")
    with pytest.raises(ToolError, match=r"^127\.0\.0\.1:\d+ took longer than 0\.2 s\.$"):
        await space.call(tool(server, fetch=FetchSettings(timeout=0.2)), query="x")


async def test_nobody_there_is_said(space: Workspace, server: WebServer) -> None:
    async with web_server() as gone:
        searches = tool(gone)
    with pytest.raises(ToolError, match=r"127\.0\.0\.1:\d+ (could not be read|stopped sending): "):
        await space.call(searches, query="x")


async def test_only_a_named_address_may_be_private(space: Workspace) -> None:
    async def inside(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.7"]

    address = read_address(APIS["tavily"].address)
    web = WebClient(FetchSettings(), inside, lambda _address: None)
    service = SearchService(APIS["tavily"], address, web, "TAVILY_API_KEY", lambda: KEY)
    with pytest.raises(ToolError, match=r"api\.tavily\.com is 10\.0\.0\.7"):
        await space.call(WebSearchTool(service), query="x")
    assert KEY not in repr(service)


# -- odd answers --------------------------------------------------------------------------------------------

NAMES = (
    "results", "web", "title", "url", "content", "description", "highlights", "published_date",
    "publishedDate", "page_age", "unresponsive_engines",
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=30)
    | st.sampled_from(
        ["https://a.org/x", "HTTP://A.org", "2026-02-02", "Mon, 02 Feb 2026", "x" * 5_000]
    )
    | st.sampled_from(["\x1b[2Jx", "1. fake\nhttps://evil.org", "<b>b", "&#99999999;", "a\u2028b"])
)
ROWS = st.dictionaries(st.sampled_from(NAMES), LEAVES | st.lists(LEAVES, max_size=3), max_size=6)
ODD = st.recursive(
    LEAVES | ROWS,
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(max_examples=examples(150), deadline=None)
@given(ODD, st.lists(ROWS, max_size=12))
def test_whatever_a_service_answers_gives_pages_in_order(odd: Any, rows: list[Any]) -> None:
    for said in (odd, {"results": rows}, {"results": odd}, {"web": {"results": rows}}):
        found = found_in(said, WebQuery("x"))
        assert len(found.pages) <= MAX_PAGES
        assert "\n" not in found.note
        for page in found.pages:
            assert page.address.scheme in {"http", "https"}
            assert page.title
            assert "\x1b" not in page.title + page.text
            assert len(page.title.splitlines()) == 1
            assert page.text.count("\n") <= 1
            assert len(page.text) < 400


@settings(max_examples=examples(100), deadline=None)
@given(st.text(), st.lists(st.text(max_size=20), max_size=3), st.text(max_size=12))
def test_odd_arguments_are_sent_or_refused(query: str, domains: list[str], after: str) -> None:
    service = find_service(SearchSettings(), {"EXA_API_KEY": KEY}, FetchSettings())
    searches = WebSearchTool(service)
    arguments = WebSearchInput(query=query, domains=domains, after=after)
    context: Any = None
    refusals: list[str] = []
    patterns: list[str] = []
    try:
        patterns += [need.pattern for need in searches.needs(arguments, context)]
    except ToolError as refused:
        refusals = str(refused).splitlines()
    assert len(refusals) + len(patterns) == 1
    assert all(pattern.strip() for pattern in patterns)


# -- which service, and what is offered ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "environ", "source"),
    [
        ({}, {}, ""),
        ({}, {"TAVILY_API_KEY": " \n"}, ""),
        ({}, {"EXA_API_KEY": KEY, "BRAVE_API_KEY": KEY}, "Exa from EXA_API_KEY"),
        ({}, {"BRAVE_SEARCH_API_KEY": KEY}, "Brave Search from BRAVE_SEARCH_API_KEY"),
        ({"service": "brave"}, {"EXA_API_KEY": KEY, "BRAVE_API_KEY": KEY}, "Brave Search from BRAVE_API_KEY"),
        ({"service": "brave"}, {"EXA_API_KEY": KEY}, ""),
        ({"service": "exa", "api_key": KEY}, {"EXA_API_KEY": "x"}, "Exa from websearch.api_key"),
        ({"api_key": KEY}, {}, ""),
        ({"address": "http://localhost:8888/"}, {"EXA_API_KEY": KEY}, "SearXNG from websearch.address"),
        ({"service": "searxng"}, {"EXA_API_KEY": KEY}, ""),
        ({"service": "model"}, {"EXA_API_KEY": KEY}, ""),
        ({"service": "off", "address": "http://localhost:8888"}, {"EXA_API_KEY": KEY}, ""),
    ],
)  # fmt: skip
def test_the_service_that_is_asked(
    table: dict[str, Any], environ: dict[str, str], source: str
) -> None:
    set_up = SearchSettings.model_validate(table)
    service = find_service(set_up, environ, FetchSettings())
    searches = WebSearchTool(service, advice(set_up))
    assert searches.offered_to(ModelTraits("any")) is bool(source)
    if service is not None:
        assert f"{service.api.title} from {service.source}" == source
    elif set_up.service != "off":
        assert "websearch" in searches.missing
        assert KEY not in searches.missing


@pytest.mark.parametrize("address", ["localhost:8888/searx", "https://s.org/searx/search?q=x"])
def test_an_address_may_name_the_path(address: str) -> None:
    service = find_service(SearchSettings(address=address), {}, FetchSettings())
    assert service is not None
    sent = service.api.request(WebQuery("x"), service.address, "")
    assert sent.address.target == "/searx/search?q=x&format=json"


@pytest.mark.parametrize("address", ["ftp://s.org", "http://me:pw@s.org", "http://a b"])
def test_an_address_that_cannot_be_asked_is_refused_with_a_reason(address: str) -> None:
    with pytest.raises(ValueError, match="must be a URL without a user name"):
        SearchSettings(address=address)


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ('{"q": "x", "allowed_domains": ["a.org"]}', ["a.org"]),
        ('{"query": "x", "domains": "a.org, b.org"}', ["a.org", "b.org"]),
        ('{"query": "x", "site": "a.org"}', ["a.org"]),
        ('"x"', []),
    ],
)
def test_arguments_as_models_write_them(text: str, domains: list[str]) -> None:
    arguments = parse_arguments(WebSearchTool(), text)
    assert arguments == WebSearchInput(query="x", domains=domains)


async def test_what_means_nothing_is_refused_before_anyone_is_asked(
    space: Workspace, server: WebServer
) -> None:
    for wrong, said in (
        ({"query": " "}, "no words"),
        ({"query": "x", "after": "last week"}, "after must be a date such as 2026-01-31"),
        ({"query": "x", "domains": ["not a host"]}, "space"),
    ):
        with pytest.raises(ToolError, match=said):
            await space.call(tool(server), **wrong)
    with pytest.raises(ToolError, match="websearch needs a key"):
        await space.call(WebSearchTool(missing=advice(SearchSettings())), query="x")
    assert not server.requests
