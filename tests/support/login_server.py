"""A provider that is signed in to in a browser, on 127.0.0.1, scripted: its page, and a key for its code."""

import base64
import hashlib
import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.support.list_server import ThreadedServer

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
CODE = "code-of-the-page-0123456789"


class LoginServer(ThreadedServer):
    """``script`` is what it answers next by path, each a status and a table; without one it does what is asked."""

    def __init__(self) -> None:
        self.script: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        self.posts: list[tuple[str, dict[str, str]]] = []
        self.pages: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                outer.pages.append({name: texts[0] for name, texts in query.items()})
                self.send_response(302)
                self.send_header("location", outer.way_back(CODE))
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                given = json.loads(text)
                outer.posts.append((self.path, given))
                scripted = outer.script.get(self.path)
                status, table = scripted.pop(0) if scripted else outer.answer(given)
                data = json.dumps(table).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        super().__init__(Handler)

    def way_back(self, code: str) -> str:
        """Return where the page sends the browser to, after the page was last asked for."""
        return f"{self.pages[-1]['callback_url']}?{urlencode({'code': code})}"

    def answer(self, given: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        """Give a key for the code of the page, to whoever asked for the page."""
        if self._fits(given):
            return 200, {"key": KEY, "user_id": "user"}
        message = f"Invalid code or code_verifier {given['code']}"
        return 403, {"error": {"message": message, "code": 403}}

    def _fits(self, given: Mapping[str, str]) -> bool:
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return (
            bool(self.pages)
            and given["code"] == CODE
            and challenge == self.pages[-1]["code_challenge"]
        )


async def browse(url: str) -> str:
    """Be the user's browser: open the page and go where it sends one; return what is shown in the end."""
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        return (await browser.get(url)).text
