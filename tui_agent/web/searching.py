"""Searches the web with Tavily, Exa, Brave Search or SearXNG: makes requests, parses results.

Sources: docs.tavily.com "Tavily Search", exa.ai/docs "Search", api-dashboard.search.brave.com "Web
search", docs.searxng.org "Search API". API keys are sent only in headers.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Protocol
from urllib.parse import urlencode

from tui_agent.errors import ToolError
from tui_agent.json_text import as_dict, as_list, as_text, loads, objects
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.web.addresses import WebAddress, read_address
from tui_agent.web.fetching import WebClient, WebPage, WebRequest
from tui_agent.web.settings import FetchSettings, SearchSettings

MAX_PAGES = 8
"""Maximum number of pages shown for one search."""
_TITLE_CHARS = 120
_LINE_CHARS = 160
"""Number of characters after which a line of a page's text is wrapped."""
_TEXT_LINES = 2
"""Maximum number of lines shown of a page's text."""
_READ_CHARS = 2_000
"""Maximum number of characters parsed of a page's title or text."""
_SAID_CHARS = 200
_TEXT_FIELDS = ("content", "description", "highlights", "text", "snippet", "summary")
_DAY_FIELDS = ("published_date", "publishedDate", "page_age")
_ERROR_FIELDS = ("error", "detail", "message")
_MARKUP = LazyPattern(r"</?(?:strong|b|em|i|mark|span|br|p)\b[^<>]{0,80}>", re.IGNORECASE)
_CONTROLS = LazyPattern(r"[\x00-\x1f\x7f-\x9f]+")
_RANGES = ((1, "day"), (31, "month"))
"""SearXNG's time ranges shorter than a year: the number of days, and the name of each."""


@frozen
class WebQuery:
    """A web search: its words, the hosts to search (with their subdomains), and the earliest date.

    Without ``domains`` every host is searched; ``after`` is None for any date.
    """

    words: str
    domains: tuple[str, ...] = ()
    after: date | None = None

    def with_sites(self) -> str:
        """Return the words and ``site:`` operators, for services that take hosts in the query."""
        sites = " OR ".join(f"site:{domain}" for domain in self.domains)
        if len(self.domains) > 1:
            sites = f"({sites})"
        return f"{self.words} {sites}".strip()

    def allows(self, page: "FoundPage") -> bool:
        """Return True if a page is on an allowed host and is not dated before ``after``."""
        host = page.address.host
        hosts = [f".{domain}" for domain in self.domains]
        is_there = not hosts or f".{host}".endswith(tuple(hosts))
        return is_there and not (self.after and page.day and page.day < self.after)


@frozen
class FoundPage:
    """A page that a search service found. ``text`` is an extract of at most two lines.

    ``day`` is the page's date, None if the service gives no date.
    """

    address: WebAddress
    title: str
    text: str
    day: date | None


@frozen
class Found:
    """The pages that a web search found, in the order in which the service ranks them.

    ``note`` is a text for the model: which engines did not answer, or what the searching model said
    if it found no pages; "" for none.
    """

    pages: tuple[FoundPage, ...]
    note: str = ""


class Searcher(Protocol):
    """Something that searches the web: a search service, or the model's provider."""

    @property
    def name(self) -> str:
        """Name of the service that receives the search words; the permission question shows it."""
        ...

    async def search(self, query: WebQuery) -> Found:
        """Search for pages.

        Raises ToolError if there is no answer or if it can't be read.
        """
        ...


@frozen
class SearchApi:
    """The API of a search service: its name, default address, and form of request."""

    title: str
    request: Callable[[WebQuery, WebAddress, str], WebRequest]
    """Function that creates the request for a query, from the service's address and the API key."""
    address: str = ""
    """The service's public address; "" if the settings have to contain an address."""
    variables: tuple[str, ...] = ()
    """Environment variables that may hold the API key, preferred first; empty if none is needed."""


@frozen
class SearchService:
    """A search service that the user has set up.

    ``source`` names the setting or variable that its API key comes from, or for SearXNG its
    address. ``key`` returns the API key, "" for none.
    """

    api: SearchApi
    address: WebAddress
    web: WebClient
    source: str
    key: Callable[[], str] = str

    @property
    def name(self) -> str:
        return f"{self.api.title} ({self.address.netloc})"

    async def search(self, query: WebQuery) -> Found:
        """Send a query to the service, and return the pages in its answer that fit the query.

        Raises:
            ToolError: the service sends no answer, an error, or an unreadable answer. The message
                never contains the key.
        """
        key = self.key()
        if not (key.isascii() and key.isprintable()):
            # httpx's error contains the key.
            raise ToolError(f"The key from {self.source} contains characters that can't be sent.")
        page = await self.web.send(self.api.request(query, self.address, key))
        text = page.body.decode("utf-8", "replace")
        if key:
            text = text.replace(key, "…")
        if page.status >= 300:
            raise ToolError(self._refusal(page, text))
        if page.cut:
            raise ToolError(f"{self.api.title} sent an answer that is too large.")
        try:
            answer = loads(text)
        except ValueError:
            kind = page.content_type or "something"
            raise ToolError(f"{self.api.title} answered with {kind} instead of JSON.") from None
        return found_in(answer, query)

    def _refusal(self, page: WebPage, text: str) -> str:
        title = self.api.title
        if page.status < 400:
            return f"{page.address.netloc} redirects. Set websearch.address to the new address."
        if page.status in {401, 403} and not self.api.variables:
            return f"{page.address.netloc} refuses JSON; its settings.yml needs json in search.formats."
        if page.status in {401, 403}:
            return f"{title} refuses the key from {self.source}."
        if page.status in {429, 432, 433}:
            return f"{title} accepts no more searches for now, because your limit is reached."
        said = _said(text)
        if said:
            said = f": {said}"
        return f"{title} answers {page.status} {page.reason}{said}".rstrip(".") + "."


# -- the services ----------------------------------------------------------------------------------


def _tavily(query: WebQuery, address: WebAddress, key: str) -> WebRequest:
    body: dict[str, Any] = {"query": query.words, "max_results": MAX_PAGES}
    if query.domains:
        body["include_domains"] = query.domains
    if query.after:
        body["start_date"] = query.after.isoformat()
    return _posted(_at(address, "/search"), {"Authorization": f"Bearer {key}"}, body)


def _exa(query: WebQuery, address: WebAddress, key: str) -> WebRequest:
    body: dict[str, Any] = {
        "query": query.words,
        "numResults": MAX_PAGES,
        "contents": {"highlights": True},
    }
    if query.domains:
        body["includeDomains"] = query.domains
    if query.after:
        body["startPublishedDate"] = f"{query.after.isoformat()}T00:00:00.000Z"
    return _posted(_at(address, "/search"), {"x-api-key": key}, body)


def _brave(query: WebQuery, address: WebAddress, key: str) -> WebRequest:
    fields = {"q": query.with_sites(), "count": str(MAX_PAGES), "result_filter": "web"}
    if query.after:
        fields["freshness"] = f"{query.after.isoformat()}to{_today().isoformat()}"
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return WebRequest(_at(address, "/res/v1/web/search", fields), headers)


def _searxng(query: WebQuery, address: WebAddress, _key: str) -> WebRequest:
    fields = {"q": query.with_sites(), "format": "json"}
    if query.after:
        days = (_today() - query.after).days
        fields["time_range"] = next((name for most, name in _RANGES if days <= most), "year")
        if days > 365:
            del fields["time_range"]
    return WebRequest(_at(address, "/search", fields), {"Accept": "application/json"})


def _today() -> date:
    return datetime.now(UTC).date()


def _at(address: WebAddress, path: str, fields: Mapping[str, str] | None = None) -> WebAddress:
    """Return a service's address with ``path`` and the query ``fields`` appended.

    The path is not added again if the address already ends in it.
    """
    base = address.target.partition("?")[0].rstrip("/").removesuffix(path)
    query = ""
    if fields:
        query = f"?{urlencode(fields)}"
    return replace(address, target=f"{base}{path}{query}")


def _posted(address: WebAddress, headers: dict[str, str], body: dict[str, Any]) -> WebRequest:
    kinds = {"Accept": "application/json", "Content-Type": "application/json"}
    return WebRequest(address, {**kinds, **headers}, json.dumps(body).encode())


APIS: Mapping[str, SearchApi] = {
    "tavily": SearchApi("Tavily", _tavily, "https://api.tavily.com", ("TAVILY_API_KEY",)),
    "exa": SearchApi("Exa", _exa, "https://api.exa.ai", ("EXA_API_KEY",)),
    "brave": SearchApi(
        "Brave Search",
        _brave,
        "https://api.search.brave.com",
        ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    ),
    "searxng": SearchApi("SearXNG", _searxng),
}
"""The services by their names in the settings. With the setting "auto", SearXNG is used if the
settings have an address, otherwise the first service with an API key."""

BY_MODEL = frozenset({"auto", "model"})
"""Values of the setting ``service`` that allow the model's provider to do the search."""


# -- choice of the service -------------------------------------------------------------------------


def find_service(
    settings: SearchSettings, environ: Mapping[str, str], fetch: FetchSettings
) -> SearchService | None:
    """Return the service to use; None if none is set up (see `advice`).

    API keys are looked up in the settings and in the variables of ``environ``.
    """
    if settings.service != "auto":
        return _service(settings.service, settings, environ, fetch)
    names = APIS
    if settings.address:
        names = {"searxng": APIS["searxng"]}
    for name in names:
        service = _service(name, settings, environ, fetch)
        if service is not None:
            return service
    return None


def advice(settings: SearchSettings) -> str:
    """Return a sentence for the user on what web searches need; "" if they are switched off.

    Call it if `find_service` returned None.
    """
    if settings.service == "off":
        return ""
    if settings.service == "model":
        return (
            "websearch needs a model from Anthropic or OpenAI, used at the provider's own address."
        )
    if settings.service == "searxng":
        return "websearch needs the address of a SearXNG server in websearch.address."
    if settings.service != "auto":
        api = APIS[settings.service]
        return (
            f"websearch needs an API key for {api.title}"
            f" in {api.variables[0]} or websearch.api_key."
        )
    if settings.api_key is not None:
        return "To use websearch.api_key, set websearch.service to the service that the key is for."
    return (
        "websearch needs a key in TAVILY_API_KEY, EXA_API_KEY or BRAVE_API_KEY,"
        " a SearXNG server in websearch.address, or a model from Anthropic or OpenAI."
    )


def _service(
    name: str, settings: SearchSettings, environ: Mapping[str, str], fetch: FetchSettings
) -> SearchService | None:
    api = APIS.get(name)
    place = settings.address or (api.address if api else "")
    if api is None or not place:
        return None
    address = read_address(place)
    if settings.address:
        # The user set this address, so the host may be on this machine or in a local network.
        fetch = fetch.reaching([address.host])
    web = WebClient(fetch)
    if not api.variables:
        return SearchService(api, address, web, "websearch.address")
    if settings.service == name and settings.api_key and settings.api_key.get_secret_value():
        key = settings.api_key.get_secret_value().strip
        return SearchService(api, address, web, "websearch.api_key", key)
    for variable in api.variables:
        if environ.get(variable, "").strip():
            return SearchService(api, address, web, variable, environ[variable].strip)
    return None


# -- answers ---------------------------------------------------------------------------------------


def found_in(said: object, query: WebQuery) -> Found:
    """Return the pages in a service's decoded JSON answer that fit the query.

    The note in the result names SearXNG's engines that did not answer.
    """
    answer = as_dict(said)
    rows = objects(answer.get("results")) or objects(as_dict(answer.get("web")).get("results"))
    silent: set[str] = set()
    for engine in as_list(answer.get("unresponsive_engines")):
        for name in as_list(engine)[:1]:
            if isinstance(name, str):
                silent.add(name)
    note = ""
    if silent:
        names = ", ".join(sorted(silent))
        note = f"Engines that did not answer: {_clipped(names, _SAID_CHARS)}."
    return Found(pages_of(rows, query), note)


def pages_of(rows: Iterable[Mapping[str, Any]], query: WebQuery) -> tuple[FoundPage, ...]:
    """Return the pages in a service's result rows that fit the query, at most ``MAX_PAGES``.

    The rows' order is kept. If several rows have the same address, the first one with a text is
    used.
    """
    pages: dict[str, FoundPage] = {}
    for row in rows:
        page = _page(row)
        if page is None or not query.allows(page):
            continue
        known = pages.setdefault(str(page.address), page)
        if page.text and not known.text:
            pages[str(page.address)] = replace(page, day=page.day or known.day)
    return tuple(pages.values())[:MAX_PAGES]


def _page(row: Mapping[str, Any]) -> FoundPage | None:
    """Return the page in a result row; None if the row contains no valid http or https URL."""
    try:
        address = read_address(as_text(row.get("url")))
    except ToolError:
        return None
    texts = (_words(row.get(name)) for name in _TEXT_FIELDS)
    lines = textwrap.wrap(
        next(filter(None, texts), ""), _LINE_CHARS, max_lines=_TEXT_LINES, placeholder=" …"
    )
    days = (_day(row.get(name)) for name in _DAY_FIELDS)
    return FoundPage(
        address=address,
        title=_clipped(_words(row.get("title")), _TITLE_CHARS) or address.netloc,
        text="\n".join(lines),
        day=next(filter(None, days), None),
    )


def _words(value: object) -> str:
    """Return a text, or the texts of a list joined by " … ", as one line without HTML markup.

    Returns "" for any other value.
    """
    import html

    texts = as_list(value) or [value]
    joined = " … ".join(text for text in map(as_text, texts) if text.strip())[:_READ_CHARS]
    return " ".join(_CONTROLS.sub(" ", html.unescape(_MARKUP.sub("", joined))).split())


def _day(value: object) -> date | None:
    from email.utils import parsedate_to_datetime

    text = as_text(value).strip()
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        pass
    try:
        return datetime.strptime(text, "%B %d, %Y").replace(tzinfo=UTC).date()
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text[:60]).date()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _said(text: str) -> str:
    """Return the error message in a service's JSON answer, as one line; "" if there is none."""
    try:
        said: Any = loads(text)
    except ValueError:
        return ""
    for _ in _ERROR_FIELDS:
        held = as_dict(said)
        said = next((held[name] for name in _ERROR_FIELDS if held.get(name)), said)
    return _clipped(_words(said), _SAID_CHARS)


def _clipped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most - 1].rstrip()}…"
