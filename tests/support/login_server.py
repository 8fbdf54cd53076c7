"""An authorisation server on 127.0.0.1, scripted: a provider's pages, codes and tokens, and an API that wants them."""

import base64
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.support.list_server import ThreadedServer
from tui_agent.model.providers import SignIn

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
CODE = "code-of-the-page-0123456789"
USER_CODE = "WDJB-MJHT"
DEVICE = "device-code-0123456789abcdef"
COPILOT_MODEL = {
    "id": "model-of-the-account",
    "capabilities": {
        "type": "chat",
        "limits": {"max_context_window_tokens": 64000, "max_output_tokens": 8000},
        "supports": {"tool_calls": True},
    },
}


class LoginServer(ThreadedServer):
    """``script`` is what it answers next by path, each a status and a table; without one it does what is asked.

    Tokens are numbered: only the newest is good at the API, and what renews it is good once.
    """

    def __init__(self) -> None:
        self.script: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        self.posts: list[tuple[str, dict[str, str]]] = []
        self.pages: list[dict[str, str]] = []
        self.hold = threading.Event()
        """Cleared, exchanges wait for it."""
        self.hold.set()
        self.entered = threading.Event()
        """Whether the user entered the device's code."""
        self.expires_in: float | None = 3600
        self.issued = 0
        self.ended: set[str] = set()
        """What renewed a token already, or was given back."""
        self.admitted: list[str] = []
        """The keys that the API was asked with, good ones and others."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                if address.path == "/v1/models":
                    self._send(200, {"data": [COPILOT_MODEL]} if self._is_admitted() else {})
                    return
                outer.pages.append(
                    {name: texts[0] for name, texts in parse_qs(address.query).items()}
                )
                self.send_response(302)
                self.send_header("location", outer.way_back(CODE))
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                is_json = self.headers.get("content-type", "").startswith("application/json")
                given = (
                    json.loads(text)
                    if is_json
                    else {name: texts[0] for name, texts in parse_qs(text).items()}
                )
                if self.path.startswith("/v1/"):
                    self._answer_model()
                    return
                outer.posts.append((self.path, given))
                outer.hold.wait(20)
                scripted = outer.script.get(self.path)
                status, table = scripted.pop(0) if scripted else outer.answer(self.path, given)
                self._send(status, table)

            def _is_admitted(self) -> bool:
                key = self.headers.get("authorization", "").removeprefix("Bearer ")
                outer.admitted.append(key)
                return key == outer.access

            def _answer_model(self) -> None:
                if not self._is_admitted():
                    self._send(401, {"error": {"message": f"Bad credentials {outer.admitted[-1]}"}})
                    return
                texts = ({"content": "Signed in."}, {})
                rows = [
                    {"choices": [{"delta": delta, "finish_reason": None if delta else "stop"}]}
                    for delta in texts
                ]
                self._send(
                    200,
                    "".join(f"data: {json.dumps(row)}\n\n" for row in rows) + "data: [DONE]\n\n",
                )

            def _send(self, status: int, answer: Mapping[str, Any] | str) -> None:
                data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(status)
                kind = "text/event-stream" if isinstance(answer, str) else "application/json"
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        super().__init__(Handler)

    def way_back(self, code: str) -> str:
        """Return where the page sends the browser to, after the page was last asked for."""
        page = self.pages[-1]
        state = {"state": page["state"]} if "state" in page else {}
        return f"{page.get('callback_url') or page['redirect_uri']}?{urlencode({'code': code, **state})}"

    @property
    def access(self) -> str:
        """The token that is good now."""
        return _token(self.issued)

    def oauth(self, how: SignIn) -> SignIn:
        """Return a provider's sign-in, at this server."""
        moved = {
            name: f"{self.url}/{name}"
            for name in ("page", "device", "revoke")
            if getattr(how, name)
        }
        return replace(how, exchange=f"{self.url}/token", callback=(0, how.callback[1]), **moved)

    def answer(self, path: str, given: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        """Do what a path is for, if what was given fits."""
        match path, given.get("grant_type", ""):
            case "/keys", _ if self._fits(given):
                return 200, {"key": KEY, "user_id": "user"}
            case "/keys", _:
                return 403, {
                    "error": {
                        "message": f"Invalid code or code_verifier {given['code']}",
                        "code": 403,
                    }
                }
            case "/device", _:
                page = {
                    "verification_uri": f"{self.url}/enter",
                    "user_code": USER_CODE,
                    "device_code": DEVICE,
                }
                return 200, {**page, "interval": 0.02, "expires_in": 900}
            case "/token", kind if kind.endswith("device_code"):
                # As GitHub says it.
                return (
                    self._tokens()
                    if self.entered.is_set()
                    else (200, {"error": "authorization_pending"})
                )
            case "/token", "authorization_code" if self._fits(given):
                return self._tokens()
            case "/token", "refresh_token" if given["refresh_token"] == f"renews-{self.access}":
                if given["refresh_token"] not in self.ended:
                    self.ended.add(given["refresh_token"])
                    return self._tokens()
            case "/revoke", _:
                self.ended.add(given["token"])
                return 200, {}
        return 400, {
            "error": "invalid_grant",
            "error_description": f"{given.get('refresh_token')} is not good",
        }

    def _fits(self, given: Mapping[str, str]) -> bool:
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return (
            bool(self.pages)
            and given["code"] == CODE
            and challenge == self.pages[-1]["code_challenge"]
        )

    def _tokens(self) -> tuple[int, Mapping[str, Any]]:
        self.issued += 1
        lasts = {"expires_in": self.expires_in} if self.expires_in is not None else {}
        return 200, {"access_token": self.access, "refresh_token": f"renews-{self.access}", **lasts}

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        super().__exit__()


def _token(number: int) -> str:
    """Return a signed token as ChatGPT's are, which lasts an hour by another clock."""
    account = {"https://api.openai.com/auth": {"chatgpt_account_id": "account-7"}}
    claims = json.dumps({"n": number, "iat": 1000, "exp": 4600, **account}).encode()
    return f"head.{base64.urlsafe_b64encode(claims).rstrip(b'=').decode()}.signature"


async def browse(url: str) -> str:
    """Be the user's browser: open the page and go where it sends one; return what is shown in the end."""
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        return (await browser.get(url)).text
