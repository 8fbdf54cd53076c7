"""Logs in to MCP servers with OAuth: the SDK runs the protocol, the user logs in with a browser.

The caller shows the address to open; the browser's answer arrives on a local port. This module also
reads and writes the token files, which only the user can read.
"""

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import AnyUrl, ValidationError

from tui_agent.agent.mcp.records import McpError, portable_name
from tui_agent.files.atomic import write_atomically
from tui_agent.json_text import as_dict, as_list
from tui_agent.web.callback import Callback, free_port

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

LOGIN_SECONDS = 300
"""Maximum time for the login in the browser, in seconds."""


def login_for(
    server: str, url: str, directory: Path, show: Callable[[str], Awaitable[None]]
) -> "OAuthClientProvider":
    """Return the SDK's object that logs in to a server. Tokens are stored in ``directory``.

    ``show`` is called with the address that the user must open in a browser.
    """
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    tokens = TokenFile(server, url, directory)
    callback = Callback(tokens.port() or free_port())
    tokens.usable_port = callback.port
    metadata = OAuthClientMetadata(
        client_name="tui-agent",
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{callback.port}{callback.path}")],
        token_endpoint_auth_method="none",  # noqa: S106 - says that there is no secret
    )

    async def open_page(address: str) -> None:
        await callback.listen()
        await show(address)

    async def wait() -> "AuthorizationCodeResult":
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                values = await callback.wait()
        except TimeoutError:
            raise McpError(f"you did not log in within {LOGIN_SECONDS} s") from None
        finally:
            callback.close()
        if "code" not in values:
            raise McpError(
                f"the login was refused: {values.get('error_description') or values.get('error', '')}"
            )
        return AuthorizationCodeResult(
            code=values["code"], state=values.get("state"), iss=values.get("iss")
        )

    return OAuthClientProvider(url, metadata, tokens, open_page, wait)


class TokenFile:
    """The SDK's token storage: a file with the tokens and the client registration of a server."""

    def __init__(self, server: str, url: str, directory: Path) -> None:
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        self._path = directory / f"{portable_name('', server).strip('_')}-{digest}.json"
        self.usable_port: int | None = None
        """Port on which the answer of this login arrives. A client registration for another port is
        ignored."""

    @property
    def is_filled(self) -> bool:
        """True if the file contains tokens, that is, if the user has logged in.

        The tokens may have expired.
        """
        return isinstance(self._read().get("tokens"), dict)

    def forget(self) -> None:
        """Delete the file that contains the tokens and the client registration."""
        self._path.unlink(missing_ok=True)

    async def get_tokens(self) -> "OAuthToken | None":
        """Return the stored tokens; None if there are none, or they expired and can't be refreshed.

        A damaged file is treated as if it contained no tokens, so the user has to log in again. An
        expired access token is returned as "", so that the SDK refreshes it instead of using it.
        """
        from mcp.shared.auth import OAuthToken

        row = as_dict(self._read().get("tokens"))
        try:
            token = OAuthToken.model_validate(row.get("token"))
        except ValidationError:
            return None
        expires = row.get("expires_at")
        if isinstance(expires, int | float) and expires <= time.time():
            if token.refresh_token:
                return token.model_copy(update={"access_token": ""})
            return None
        return token

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        if tokens.expires_in is None:
            expires = None
        else:
            expires = time.time() + tokens.expires_in
        self._write(
            "tokens",
            {"token": tokens.model_dump(mode="json", exclude_none=True), "expires_at": expires},
        )

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """Return the client registration; None if there is none, or if it is for another port."""
        from mcp.shared.auth import OAuthClientInformationFull

        if self.usable_port is not None and self.port() != self.usable_port:
            return None
        try:
            return OAuthClientInformationFull.model_validate(self._read().get("client"))
        except ValidationError:
            return None

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        self._write("client", client_info.model_dump(mode="json", exclude_none=True))

    def port(self) -> int | None:
        """Return the port of the stored client registration; None if it is missing or in use."""
        client = as_dict(self._read().get("client"))
        for uri in as_list(client.get("redirect_uris")):
            port = None
            with suppress(ValueError):
                port = urlsplit(str(uri)).port
            if port is not None:
                with socket.socket() as probe, suppress(OSError):
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
                    return port
        return None

    def _read(self) -> dict[str, Any]:
        try:
            table = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return as_dict(table)

    def _write(self, key: str, value: Any) -> None:
        data = json.dumps({**self._read(), key: value}, indent=1).encode()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self._path, data, mode=0o600)
