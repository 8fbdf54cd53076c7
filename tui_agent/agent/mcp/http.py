"""Creates the HTTP clients for MCP servers. The clients use the proxies that the environment names.

Imports the SDK, so import this module only if there is a server with a URL.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx2
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT

from tui_agent.web.proxies import Proxies, read_proxies


def http_client(
    environ: Mapping[str, str],
    on_response: Callable[[Any], Awaitable[None]],
    *,
    headers: dict[str, str] | None,
    timeout: httpx2.Timeout | None,
    auth: httpx2.Auth | None,
) -> httpx2.AsyncClient:
    """Return a client that uses the proxies in ``environ``.

    ``on_response`` is called with every response.

    If ``timeout`` is None, the SDK's default timeouts apply.
    """
    return httpx2.AsyncClient(
        headers=headers,
        timeout=timeout or httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT),
        auth=auth,
        transport=_ByProxy(read_proxies(environ)),
        event_hooks={"response": [on_response]},
    )


class _ByProxy(httpx2.AsyncBaseTransport):
    """Sends each request through the proxy for its URL.

    A server and its login may need different proxies.
    """

    def __init__(self, proxies: Proxies) -> None:
        self._proxies = proxies
        self._transports: dict[str | None, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = self._proxies.of(str(request.url))
        if proxy not in self._transports:
            self._transports[proxy] = httpx2.AsyncHTTPTransport(proxy=proxy)
        return await self._transports[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()
