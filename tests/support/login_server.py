"""An authorisation server on 127.0.0.1, scripted: it plays the provider's page, exchanges codes and renews tokens."""

import base64
import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
CODE = "code-of-the-page-0123456789"


class LoginServer:
    """``script`` is what it answers next by path, each a status and a table; without one it does what is asked."""

    def __init__(self) -> None:
        self.script: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        self.posts: list[tuple[str, dict[str, str]]] = []
        self.pages: list[dict[str, str]] = []
        self.hold = threading.Event()
        """Cleared, exchanges wait for it."""
        self.hold.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                outer.pages.append({name: texts[0] for name, texts in parse_qs(address.query).items()})
                self.send_response(302)
                self.send_header("location", outer.way_back(CODE))
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                is_json = self.headers.get("content-type", "").startswith("application/json")
                given = json.loads(text) if is_json else {name: texts[0] for name, texts in parse_qs(text).items()}
                outer.posts.append((self.path, given))
                outer.hold.wait(20)
                scripted = outer.script.get(self.path)
                status, table = scripted.pop(0) if scripted else outer.answer(self.path, given)
                data = json.dumps(table).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def way_back(self, code: str) -> str:
        """Return where the page sends the browser to, after the page was last asked for."""
        page = self.pages[-1]
        return f"{page['callback_url']}?{urlencode({'code': code})}"

    def answer(self, path: str, given: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        """Exchange a code, if its verifier fits."""
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if not self.pages or given["code"] != CODE or challenge != self.pages[-1]["code_challenge"]:
            return 403, {"error": {"message": f"Invalid code or code_verifier {given['code']}", "code": 403}}
        return 200, {"key": KEY, "user_id": "user"}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


async def browse(url: str) -> str:
    """Be the user's browser: open the page and go where it sends one; return what is shown in the end."""
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        return (await browser.get(url)).text
