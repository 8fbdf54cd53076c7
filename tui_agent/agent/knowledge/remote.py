"""Instructions from URLs: fetched within a time limit, kept in the data directory, used from there when offline."""

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tui_agent.files.atomic import write_atomically

log = logging.getLogger(__name__)

SECONDS = 4.0
"""How long all of one fetch may take."""
FRESH_SECONDS = 24 * 3600
"""A kept text younger than this is used without asking again."""
MAX_BYTES = 32 * 1024
"""Bytes of a text that are used."""


class RemoteError(Exception):
    """A text could not be had and none was kept; the message is one sentence for a person."""


Fetch = Callable[[str], str]


def is_url(text: str) -> bool:
    """Whether an ``instructions`` entry is a URL."""
    return text.startswith(("http://", "https://"))


class RemoteTexts:
    """Texts by URL. ``folder`` is where they are kept, ``clock`` returns seconds since the epoch."""

    def __init__(self, folder: Path, fetch: Fetch | None = None, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._fetch = fetch or fetch_text
        self._clock = clock
        self._known: dict[str, str | RemoteError] = {}

    def texts(self, urls: Sequence[str]) -> dict[str, str | RemoteError]:
        """Return each URL's text, or why there is none. Asked once per program run; blocks, use a thread."""
        missing = [url for url in dict.fromkeys(urls) if url not in self._known]
        if missing:
            with ThreadPoolExecutor(min(4, len(missing))) as pool:
                self._known.update(zip(missing, pool.map(self._text, missing), strict=True))
        return {url: self._known[url] for url in urls}

    def _text(self, url: str) -> str | RemoteError:
        path = self._folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.md"
        try:
            age = self._clock() - path.stat().st_mtime
            kept: str | None = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            age, kept = 0.0, None
        if kept is not None and age < FRESH_SECONDS:
            return kept
        try:
            text = self._fetch(url)
        except RemoteError as error:
            return error if kept is None else kept
        try:
            write_atomically(path, text.encode("utf-8"))
        except OSError as error:
            log.warning("instructions of %s cannot be kept: %s", url, error)
        return text


def fetch_text(url: str) -> str:
    """Fetch a text within ``SECONDS``.

    Raises:
        RemoteError: there is none to be had.
    """
    import httpx

    deadline = time.monotonic() + SECONDS
    data = b""
    try:
        with httpx.Client(timeout=SECONDS, follow_redirects=True) as client, client.stream("GET", url) as answer:
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                data += piece
                if time.monotonic() > deadline:
                    raise RemoteError(f"instructions: {url} took longer than {SECONDS:.0f} s.")
                if len(data) >= MAX_BYTES:
                    break
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RemoteError(f"instructions: {url} cannot be fetched: {str(error) or type(error).__name__}.") from None
    return data[:MAX_BYTES].decode("utf-8", "ignore")
