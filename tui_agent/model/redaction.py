"""Takes secrets out of text that is shown or logged."""

import logging
from collections.abc import Iterable

from tui_agent.model.lazy_pattern import LazyPattern

REMOVED = "[redacted]"

_SHAPES = (
    # Keys by the prefixes providers give them.
    LazyPattern(r"\b(?:sk|pk|rk|gsk|xai|pplx|fw|nvapi|r8|hf|glpat|csk|tgp_v1|sess)[-_][A-Za-z0-9_\-]{8,}"),
    LazyPattern(r"\bAIza[A-Za-z0-9_\-]{20,}"),
    LazyPattern(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    LazyPattern(r"\bgh[pousr]_[A-Za-z0-9]{16,}"),
    LazyPattern(r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
)
_NAMED = LazyPattern(
    r"(?i)((?:authorization|x-api-key|api[-_ ]?key|access[-_ ]?token|secret(?:[-_ ]access[-_ ]key)?|password)"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?+)(?!\[redacted\])[^\s\"',;&}]{4,}"
)
_BEARER = LazyPattern(r"(?i)\b(bearer|basic)\s+(?!\[redacted\])[A-Za-z0-9._~+/=\-]{8,}")
_IN_URL = LazyPattern(r"(?i)([?&](?:key|api[-_]?key|token|access_token|sig)=)[^&\s\"']+")
_IN_USERINFO = LazyPattern(r"(://[^/\s:@]+:)[^/\s@]+(@)")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without known secrets and without what has the shape of one."""
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, REMOVED)
    for shape in _SHAPES:
        text = shape.sub(REMOVED, text)
    text = _NAMED.sub(rf"\1{REMOVED}", text)
    text = _BEARER.sub(rf"\1 {REMOVED}", text)
    text = _IN_URL.sub(rf"\1{REMOVED}", text)
    return _IN_USERINFO.sub(rf"\1{REMOVED}\2", text)


class RedactingFormatter(logging.Formatter):
    """A log formatter whose lines, tracebacks included, went through ``redact``."""

    def __init__(self, pattern: str = "%(asctime)s %(levelname)s %(name)s: %(message)s") -> None:
        super().__init__(pattern)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without secrets."""
        return redact(super().format(record))
