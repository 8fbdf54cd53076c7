"""Sends HTTP requests to web servers, directly or through proxies, and follows redirects.

The IP addresses of each host, including those of redirects, are checked before the connection.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.version import __version__
from tui_agent.web.addresses import IpAddress, WebAddress, is_allowed, redirected
from tui_agent.web.proxies import read_proxies
from tui_agent.web.settings import FetchSettings
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_REDIRECTS = 10
CONNECT_SECONDS = 10
"""Time limit of a connection attempt, in seconds."""
_TRIED_ADDRESSES = 3
"""Maximum number of a host's IP addresses to which a connection is tried."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SNIFFED_BYTES = 4_096
"""Number of bytes at the beginning of a body in which a NUL shows that the body is binary."""
_PROXIED = ipaddress.ip_address("192.0.2.1")
"""Placeholder address for a host that only the proxy can resolve."""

_HEADERS = {
    "User-Agent": f"tui-agent/{__version__}",
    "Accept": "text/markdown, text/html;q=0.9, application/json;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "Accept-Language": "en, *;q=0.5",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Function that resolves a host name and port to IP addresses."""


class MovedError(Exception):
    """Raised if a page redirects to ``address``, which the caller of ``WebClient.get`` refused."""

    def __init__(self, address: WebAddress) -> None:
        self.address = address
        super().__init__(str(address))


PDF = b"%PDF-"
"""First bytes of a PDF file, which is never treated as ``binary``."""


@frozen
class WebRequest:
    """An HTTP request: a POST if it has a ``body``, else a GET. ``headers`` may contain secrets."""

    address: WebAddress
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None


@frozen
class WebPage:
    """The answer to a request.

    ``address`` is the last address after redirects. ``body`` is decompressed; ``cut`` is True if it
    was cut at the settings' limit. If ``binary`` is True, the page contains NUL bytes and is not a
    PDF, and ``body`` contains only its beginning. ``length`` is the Content-Length in bytes, None
    if the server doesn't give it. ``charset`` is None if the server names none.
    """

    address: WebAddress
    status: int
    reason: str
    content_type: str
    charset: str | None
    body: bytes
    cut: bool
    binary: bool
    length: int | None


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return a host's IP addresses from the system's resolver; raises OSError if it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in found))


def system_proxy(address: WebAddress) -> str | None:
    """Return the URL of the environment's proxy for an address; None if there is none."""
    return read_proxies(os.environ).of(str(address))


@lru_cache(maxsize=1)
def system_tls() -> "ssl.SSLContext":
    """Return a TLS context with the certificates that the environment names, or the default ones.

    Cached. Reads files: call it in a thread.
    """
    import httpx

    return httpx.create_ssl_context()


@frozen
class WebClient:
    """Sends requests within configured limits, through proxies that ``proxy`` returns."""

    settings: FetchSettings = FetchSettings.model_construct()
    resolve: Resolve = system_resolve
    proxy: Callable[[WebAddress], str | None] = system_proxy
    tls: Callable[[], "ssl.SSLContext"] = system_tls
    """Returns the TLS context with the trusted certificates. It is called in a thread."""

    async def get(
        self, address: WebAddress, may_follow: Callable[[WebAddress, WebAddress], bool]
    ) -> WebPage:
        """Get a page, and follow redirects as long as ``may_follow`` returns True.

        ``may_follow`` is called with the redirecting address and the new address. The caller has to
        limit the total time of all requests.

        Raises:
            ToolError: there is no answer or it can't be decoded, there are too many redirects, or
                an address is not allowed.
            MovedError: ``may_follow`` refused a redirect.
        """
        for _ in range(MAX_REDIRECTS + 1):
            async with self._answer(WebRequest(address)) as response:
                location = response.headers.get("location")
                if response.status_code not in _REDIRECTS or not location:
                    return await self._page(address, response)
            following = redirected(address, location)
            if not may_follow(address, following):
                raise MovedError(following)
            address = following
        raise ToolError(f"{address.host} redirects more than {MAX_REDIRECTS} times.")

    async def send(self, request: WebRequest) -> WebPage:
        """Send one request and return the answer, whatever its status; doesn't follow redirects.

        Raises:
            ToolError: there is no answer within the settings' time, it can't be decoded, or the
                address is not allowed.
        """
        try:
            async with asyncio.timeout(self.settings.timeout), self._answer(request) as response:
                return await self._page(request.address, response)
        except TimeoutError:
            raise ToolError(timeout_message(request.address, self.settings)) from None

    async def _targets(self, address: WebAddress, *, proxied: bool) -> list[IpAddress]:
        """Return the IP addresses of a URL's host after checking that all are allowed.

        Returns ``[_PROXIED]`` if a proxy is used and the host can't be resolved here. Raises
        ToolError if it can't be resolved and no proxy is used, or if an address is not allowed.
        """
        try:
            found = await self.resolve(address.host, address.port)
            targets = [ipaddress.ip_address(text.partition("%")[0]) for text in found]
        except (OSError, UnicodeError, ValueError):
            targets = []
        if not targets:
            if proxied:
                return [_PROXIED]
            raise ToolError(f"The host {address.host} was not found.")
        for target in targets:
            if not is_allowed(target, address.host, self.settings.private):
                named = f"{address.host} is"
                if address.host.strip("[]") != str(target):
                    named = f"{address.host} is {target},"
                raise ToolError(
                    f"{named} an address of this machine or its network, which must not be read. "
                    "The user can allow it with the setting webfetch.private."
                )
        return targets

    @contextlib.asynccontextmanager
    async def _answer(self, request: WebRequest) -> AsyncIterator["httpx.Response"]:
        """Send a request, and return a context manager for the response with an unread body.

        Raises ToolError if the address is not allowed, if there is no response, or if the response
        breaks off while it is read.
        """
        import httpx

        address = request.address
        proxy = self.proxy(address)
        targets = await self._targets(address, proxied=proxy is not None)
        seconds = self.settings.timeout
        try:
            trusted = await asyncio.to_thread(self.tls)
        except OSError as error:
            why = f"The trusted certificates that the environment names can't be read ({error})."
            raise ToolError(why) from error
        async with httpx.AsyncClient(
            verify=trusted,
            proxy=proxy,
            trust_env=False,
            timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        ) as client:
            if proxy:
                hosts = [address.host]
            else:
                hosts = [str(target) for target in targets[:_TRIED_ADDRESSES]]
            try:
                response = await _send_to_first(client, request, hosts)
            except httpx.HTTPError as error:
                raise ToolError(f"{address.netloc} could not be read: {_reason(error)}.") from error
            try:
                yield response
            except httpx.HTTPError as error:
                raise ToolError(f"{address.netloc} stopped sending: {_reason(error)}.") from error
            finally:
                await response.aclose()

    async def _page(self, address: WebAddress, response: "httpx.Response") -> WebPage:
        body = bytearray()
        limit = self.settings.max_bytes
        decode = _decoder(response.headers.get("content-encoding", ""))
        binary = cut = False
        async for chunk in response.aiter_raw():
            body += decode(chunk, limit + 1 - len(body))
            has_nul = b"\0" in body[:_SNIFFED_BYTES] and response.charset_encoding is None
            binary = has_nul and not body.startswith(PDF)
            cut = len(body) > limit
            if binary or cut:
                break
        length = response.headers.get("content-length", "")
        return WebPage(
            address=address,
            status=response.status_code,
            reason=response.reason_phrase,
            content_type=response.headers.get("content-type", "").partition(";")[0].strip().lower(),
            charset=response.charset_encoding,
            body=bytes(body[:limit]),
            cut=cut,
            binary=binary,
            length=whole_number(length),
        )


async def _send_to_first(
    client: "httpx.AsyncClient", sent: WebRequest, hosts: Sequence[str]
) -> "httpx.Response":
    """Send a request to the first of ``hosts`` that accepts a connection; return the response.

    ``hosts`` are IP addresses, or with a proxy the host's name. The URL contains the IP address;
    the Host header and the certificate check use the name.
    """
    import httpx

    address = sent.address
    method = "GET" if sent.body is None else "POST"
    headers = {**_HEADERS, **sent.headers, "Host": address.netloc}
    for host in hosts:
        url = httpx.URL(
            scheme=address.scheme,
            host=host,
            port=address.port,
            raw_path=address.target.encode("ascii"),
        )
        request = client.build_request(
            method,
            url,
            headers=headers,
            content=sent.body,
            extensions={"sni_hostname": address.host},
        )
        try:
            return await client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if host == hosts[-1]:
                raise
    raise ToolError(f"The host {address.host} was not found.")


def timeout_message(address: WebAddress, settings: FetchSettings) -> str:
    """Return the error message for a request that takes longer than the configured time."""
    return f"{address.netloc} took longer than {settings.timeout:g} s."


def _decoder(encoding: str) -> Callable[[bytes, int], bytes]:
    """Return a function that decompresses a body in a content encoding, chunk by chunk.

    The function takes a chunk and the maximum number of bytes to return, so that a small download
    can't fill the memory. Without an encoding, it returns chunks unchanged. It raises ToolError if
    the data is damaged.

    Raises:
        ToolError: the encoding is not supported.
    """
    plain = encoding.strip().lower()
    if plain in {"", "identity"}:
        return lambda chunk, _room: chunk
    if plain not in {"gzip", "x-gzip", "deflate"}:
        raise ToolError(f"The page is compressed as {plain[:40]}, which is not supported.")
    unpack = zlib.decompressobj(wbits=47 if "gzip" in plain else 15)

    def decode(chunk: bytes, room: int) -> bytes:
        try:
            return unpack.decompress(chunk, max(room, 1))
        except zlib.error as error:
            raise ToolError(f"The page's {plain} data is damaged: {error}.") from error

    return decode


def _reason(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    return text or type(error).__name__
