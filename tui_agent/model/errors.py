"""The meaning of a failed call: its kind, one sentence for a person, whether and when it is tried again, the window.

litellm maps errors to classes of its own, and some facts get lost: a refused connection becomes a status 500, 529
becomes 500, 413 becomes 400. The exception it was made from still hangs on the chain, so the chain is asked.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.model.error_body import ErrorBody, Overflow, find_overflow, read_body
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.redaction import redact
from tui_agent.model.settings import RetrySettings

_CAUSES = (
    ("certificate", ("ClientConnectorCertificateError", "SSLCertVerificationError", "SSLError", "ClientSSLError")),
    ("unresolved", ("ClientConnectorDNSError", "gaierror")),
    ("connect_timeout", ("ConnectTimeout", "ConnectionTimeoutError")),
    ("refused", ("ClientConnectorError", "ConnectionRefusedError", "ConnectError")),
    ("timeout", ("ReadTimeout", "WriteTimeout", "PoolTimeout", "ServerTimeoutError", "APITimeoutError")),
    (
        "closed",
        (
            "ClientPayloadError",
            "RemoteProtocolError",
            "ServerDisconnectedError",
            "ConnectionResetError",
            "BrokenPipeError",
            "IncompleteReadError",
            "ReadError",
            "WriteError",
            "ClientOSError",
        ),
    ),
    ("broken", ("JSONDecodeError", "UnicodeDecodeError", "TransferEncodingError", "APIResponseValidationError")),
)
"""Why a connection failed, by the names of exception classes; the first row that matches wins."""

_WANTED_HEADERS = ("retry-after", "ratelimit", "rate-limit")
_TEXT_LENGTH = 20_000


def describe(error: BaseException, secrets: Iterable[str] = ()) -> dict[str, Any]:
    """Return the facts of a failure, as the fields of ``errors.Failure``, without ``secrets`` and their like."""
    chain = list(_chain(error))
    response = next((found for found in map(_response, chain) if found is not None), None)
    names = {base.__name__ for each in chain for base in type(each).__mro__}
    facts: dict[str, Any]
    if response is not None and response.status_code >= 400:
        facts = {"status": response.status_code, "headers": wait_headers(response.headers)}
        text = _body(chain, response) or str(error)
    elif cause := next((cause for cause, classes in _CAUSES if names.intersection(classes)), None):
        facts, text = {"cause": cause}, str(error)
    else:
        # The status of a provider's adapter counts before that of litellm's own classes.
        by_trust = sorted(chain, key=lambda each: type(each).__module__ == "litellm.exceptions")
        numbers = (getattr(each, "status_code", None) for each in by_trust)
        status = next((number for number in numbers if isinstance(number, int) and 400 <= number < 600), None)
        texts = [str(getattr(each, "message", None) or each) for each in chain]
        facts, text = {"status": status, "headers": {}}, next((text for text in texts if "{" in text), texts[0])
    # litellm appends tracebacks to some messages, and repeats others as their origin.
    text = text.partition("\nTraceback (most recent call last)")[0].partition(" Original exception: ")[0]
    return {**facts, "text": redact(text[:_TEXT_LENGTH], secrets)}


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = (getattr(current, "original_exception", None), current.__cause__, current.__context__)
        waiting.extend(item for item in inner if isinstance(item, BaseException))


def _response(error: BaseException) -> Any | None:
    """Return a provider's response on an exception. Those on litellm's own classes are made up."""
    if type(error).__module__.partition(".")[0] == "litellm":
        return None
    response = getattr(error, "response", None)
    return response if isinstance(getattr(response, "status_code", None), int) else None


def wait_headers(headers: Any) -> dict[str, str]:
    pairs = headers.items() if headers is not None else ()
    return {name.lower(): value for name, value in pairs if any(part in name.lower() for part in _WANTED_HEADERS)}


def _body(chain: list[BaseException], response: Any) -> str:
    for error in chain:
        body = getattr(error, "body", None)
        if isinstance(body, dict | list) and body:
            return json.dumps({"error": body} if isinstance(body, dict) and "error" not in body else body)
    try:
        text = response.text
    except RuntimeError:  # a streamed body that nobody read
        text = ""
    return text if isinstance(text, str) else ""


# How long a provider asks to wait: headers and texts in the forms providers use.

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = LazyPattern(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION = LazyPattern(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_IN_TEXT = LazyPattern(
    r"(?:try again|retry|retrydelay|resets?)\W{0,5}(?:after|in|at)?\W{0,5}"
    r"((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+\b|\d+(?:\.\d+)? ?(?:s|sec|seconds?|min|minutes?)\b)",
    re.IGNORECASE,
)
_WORDS = LazyPattern(r" ?(s|m)(?:ec|econds?|in|inutes?)?$")

_LIMITS = (
    "x-ratelimit-{}-requests",
    "x-ratelimit-{}-tokens",
    "anthropic-ratelimit-requests-{}",
    "anthropic-ratelimit-tokens-{}",
    "anthropic-ratelimit-input-tokens-{}",
    "anthropic-ratelimit-output-tokens-{}",
    "x-ratelimit-{}",
    "ratelimit-{}",
)
"""Headers of a limit: how much is "remaining" of it, and when the "reset" of it is."""

_EPOCH = 1_000_000_000.0
"""Plain numbers over it are moments, in seconds or milliseconds since the epoch, not spans."""


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Return the seconds to wait, None when nothing says so. ``now`` is seconds since the epoch."""
    known = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(known.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    if (seconds := span(known.get("retry-after"), now=now)) is not None:
        return seconds
    reached = [limit for limit in _LIMITS if _number(known.get(limit.format("remaining"))) == 0]
    resets = [span(known.get(limit.format("reset")), now=now) for limit in reached]
    if waits := [wait for wait in resets if wait is not None]:
        return max(waits)
    match = _IN_TEXT.search(text)
    return span(_WORDS.sub(r"\1", match[1].lower()), now=now) if match else None


def span(value: str | None, *, now: float) -> float | None:
    """Return the seconds a header's value means: a number, a moment, a date, or a duration like ``6m0s``."""
    if not value:
        return None
    number = _number(value)
    if number is not None:
        if number > _EPOCH:
            moment = number / 1000 if number > _EPOCH * 100 else number
            return max(0.0, moment - now)
        return max(0.0, number)
    if _DURATION.fullmatch(value):
        return sum(
            float(amount) * _UNITS[unit] for amount, unit in (piece.groups() for piece in _PIECE.finditer(value))
        )
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError):
            moment_of_date = parse(value)
            zoned = moment_of_date if moment_of_date.tzinfo else moment_of_date.replace(tzinfo=UTC)
            return max(0.0, zoned.timestamp() - now)
    return None


def spoken(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours < 48 else f"{round(hours / 24)} days"


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e15 else None


Cause = Literal["refused", "unresolved", "certificate", "connect_timeout", "timeout", "stalled", "closed", "broken"]
"""Why a connection failed, when it did."""

DETAIL_LENGTH = 300
"""Characters of a provider's own words that a message repeats."""

_CODES: dict[ErrorKind, frozenset[str]] = {
    ErrorKind.CONTEXT_OVERFLOW: frozenset({
        "contextlengthexceeded", "exceedcontextsizeerror", "contextwindowexceeded", "modelcontextwindowexceeded",
        "requesttoolarge", "stringabovemaxlength",
    }),
    ErrorKind.RATE_LIMIT: frozenset({
        "ratelimitexceeded", "ratelimiterror", "ratelimit", "ratelimited", "toomanyrequests", "throttlingexception",
        "throttling", "throttlingratequota", "throttlingallocationquota", "throttlinguser",
    }),
    ErrorKind.QUOTA: frozenset({
        "insufficientquota", "insufficientbalance", "insufficientfunds", "insufficientcredits", "billingerror",
        "billinghardlimitreached", "billingnotactive", "usagelimitreached", "paymentrequired",
        "exceededcurrentquotaerror", "arrearage",
    }),
    ErrorKind.NOT_FOUND: frozenset({
        "modelnotfound", "notfounderror", "notfound", "modelnotexist", "resourcenotfoundexception",
        "deploymentnotfound", "unknownmodel", "invalidmodel", "modelnotsupported",
    }),
    ErrorKind.CONTENT_FILTER: frozenset({
        "contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation", "datainspectionfailed",
        "invalidprompt", "promptblocked",
    }),
    ErrorKind.AUTH: frozenset({
        "invalidapikey", "apikeyinvalid", "incorrectapikey", "authenticationerror", "unauthenticated", "unauthorized",
        "invalidauthenticationerror", "permissionerror", "permissiondenied", "accessdeniedexception",
        "accountdeactivated",
    }),
    ErrorKind.INVALID_REQUEST: frozenset({
        "unsupportedparameter", "unsupportedvalue", "unknownparameter", "invalidvalue", "missingrequiredparameter",
        "unsupportedfile", "invalidencryptedcontent", "validationexception",
    }),
    ErrorKind.OVERLOADED: frozenset({
        "overloadederror", "overloaded", "engineoverloadederror", "servererror", "apierror", "internalservererror",
        "internalerror", "internal", "unavailable", "serverisoverloaded", "serviceunavailable",
        "serviceunavailableexception", "modelnotreadyexception", "modelstreamerrorexception",
        "internalserverexception", "slowdown",
    }),
    ErrorKind.NETWORK: frozenset({
        "timeout", "timeouterror", "requesttimeout", "deadlineexceeded", "modeltimeoutexception",
    }),
}  # fmt: skip
"""Kinds of errors by providers' own names. Names that several kinds share (``invalid_request_error``,
``INVALID_ARGUMENT``, ``RESOURCE_EXHAUSTED``) say nothing; there status and wording decide."""

_UNUSABLE_SAMPLE = frozenset({
    "toolusefailed", "outputparsefailed", "jsonvalidatefailed",
    "malformedfunctioncall", "unexpectedtoolcall", "malformedresponse",
})  # fmt: skip
"""Groq's and Google's names for output of their model that they could not read themselves.

Asked again, the model writes something else."""

_QUOTA = LazyPattern(
    r"insufficient[_ ](?:quota|balance|credit|funds)|exceeded your current quota|credit balance is too low|billing"
    r"|payment required|out of credits?|no credits|n.t have any credits|never purchased credits|spending limit|arrears"
    r"|key limit exceeded",
    re.IGNORECASE,
)
_AUTH = LazyPattern(
    r"invalid[_ ](?:x-)?api[_ -]?key|incorrect api key|api key not (?:valid|found)|no auth credentials|unauthori[sz]ed"
    r"|invalid authentication|authentication[_ ]error|user not found|missing.{0,20}(?:api key|authentication header)"
    r"|unable to locate credentials|could not resolve.{0,30}credentials|default credentials were not found",
    re.IGNORECASE,
)
_NOT_FOUND = LazyPattern(
    r"model[_ ]not[_ ](?:found|exist)|model.{0,80}(?:does not exist|not found|not supported|is not available)"
    r"|unknown model|no such model|not a valid model|model identifier is invalid|no endpoints found"
    r"|llm provider not provided",
    re.IGNORECASE | re.DOTALL,
)
_FILTER = LazyPattern(
    r"content[_ ](?:filter|policy)|content management policy|safety system|responsibleai|flagged|data_inspection",
    re.IGNORECASE,
)
_OVERLOADED = LazyPattern(r"overloaded|over capacity|at capacity|capacity exceeded|try again later", re.IGNORECASE)
_LOADING = LazyPattern(
    r"\bloading (?:the )?model|model\b.{0,80}\b(?:is|still|currently) (?:being )?load(?:ing|ed)\b",
    re.IGNORECASE | re.DOTALL,
)
"""llama.cpp, Hugging Face, LM Studio while they start."""
_RATE = LazyPattern(
    r"rate.?limit|too many requests|resource.?exhausted|throttl|wait before|tokens? per (?:minute|day)", re.IGNORECASE
)
_THINKING = LazyPattern(r"thinking|signature|reasoning|encrypted[_ ]content|\brs_\w+", re.IGNORECASE)
_ITEM = LazyPattern(r"\b(?:rs|msg|fc)_\w+.{0,40}not found", re.IGNORECASE | re.DOTALL)
"""Something in the request that the server doesn't have; the model is another matter."""
_ROLES = LazyPattern(r"roles? must alternate|must alternate between|alternate user/assistant", re.IGNORECASE)
_MODULE = LazyPattern(r"No module named '([\w.]+)'|pip install ['\"]?([\w\[\]-]+)")

_KINDS = {
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    404: ErrorKind.NOT_FOUND,
    408: ErrorKind.NETWORK,
    425: ErrorKind.RATE_LIMIT,
    429: ErrorKind.RATE_LIMIT,
    499: ErrorKind.NETWORK,
    504: ErrorKind.NETWORK,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """The facts known of a call that failed, as the model host reports it.

    ``text`` is the provider's or the library's words, ``seconds`` how long was waited when time ran out.
    """

    text: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cause: Cause | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a call went to, for messages. ``provider`` is a name for people, ``key`` says where its key comes from."""

    model: str
    provider: str
    address: str = ""
    key: str = ""
    empty_body_is_overflow: bool = False


def classify(failure: Failure, target: Target, *, now: float) -> ModelError:
    """Return the error a failed call means. ``now`` is seconds since the epoch."""
    if failure.cause is not None and failure.status is None:
        sentence = _BROKEN_CONNECTIONS[failure.cause].format(
            name=target.provider,
            address=target.address or target.provider,
            waited=f" within {spoken(failure.seconds)}" if failure.seconds else " in time",
            detail=_detail(read_body(failure.text).words) if failure.cause == "broken" else "",
        )
        return ModelError(ErrorKind.NETWORK, sentence)
    body = read_body(failure.text)
    # An error in the middle of a stream, or one a gateway sends with status 200, names its status within.
    status = failure.status if (failure.status or 0) >= 400 else body.status
    codes = set(body.codes)
    throttled = bool(codes & _CODES[ErrorKind.RATE_LIMIT]) or status in {429, 503, 529}
    overflow = find_overflow(body.words, status, throttled=throttled)
    is_unsaid = not body.words and status == 400 and target.empty_body_is_overflow
    if is_unsaid or codes & _CODES[ErrorKind.CONTEXT_OVERFLOW]:
        overflow = overflow or Overflow()
    if overflow is not None:
        return ModelError(
            ErrorKind.CONTEXT_OVERFLOW,
            _overflow_message(overflow, target),
            status=status,
            window=overflow.window,
            sent=overflow.sent,
        )
    # The whole body: Google names the wait beside the message.
    wait = retry_after(failure.headers, failure.text, now=now)
    kind = _kind_by_code(body, status) or _kind(body.words, status, wait)
    if status == 503 and _LOADING.search(body.words):
        kind = ErrorKind.LOADING
    message = _message(kind, body, status, wait, target)
    return ModelError(kind, message, retry_after=wait, status=status)


def concerns(error: ModelError, what: Literal["reasoning", "roles"]) -> bool:
    """Return whether a request was refused for this reason.

    ``reasoning`` that was sent back: the same call may pass without. ``roles``: the server's chat template refuses two
    messages of one role in a row.
    """
    pattern = _THINKING if what == "reasoning" else _ROLES
    return error.kind is ErrorKind.INVALID_REQUEST and bool(pattern.search(error.message))


def _kind_by_code(body: ErrorBody, status: int | None) -> ErrorKind | None:
    """Return the kind of error that the provider's own name for it means, None where the name is too wide."""
    codes = set(body.codes)
    if codes & _UNUSABLE_SAMPLE:
        return ErrorKind.OVERLOADED
    for kind, names in _CODES.items():
        if not codes & names:
            continue
        if kind is ErrorKind.OVERLOADED and status is not None and status < 500:
            continue  # some servers call each of their errors that
        if kind is ErrorKind.AUTH and _QUOTA.search(body.words):
            continue  # xAI forbids unpaid use
        if kind is ErrorKind.NOT_FOUND and _ITEM.search(body.words):
            return ErrorKind.INVALID_REQUEST
        return kind
    return None


def _kind(text: str, status: int | None, wait: float | None) -> ErrorKind:  # noqa: PLR0911 - a ladder of rules
    if status != 429 and _FILTER.search(text) and status in {None, 400, 403, 422}:
        return ErrorKind.CONTENT_FILTER
    # Google words its per-minute limit as a quota and names the wait; without one, waiting doesn't help.
    if _QUOTA.search(text) and status in {None, 400, 402, 403, 429} and not (status == 429 and wait is not None):
        return ErrorKind.QUOTA
    if status in {None, 400, 401, 403} and _AUTH.search(text):
        return ErrorKind.AUTH
    if status in {None, 400, 404} and _NOT_FOUND.search(text):
        return ErrorKind.NOT_FOUND
    if _ITEM.search(text):
        return ErrorKind.INVALID_REQUEST
    if _ROLES.search(text) and status in {None, 400, 500}:
        return ErrorKind.INVALID_REQUEST  # llama.cpp and others answer 500 where a template refuses
    if status in _KINDS:
        return _KINDS[status]
    if status is not None and status >= 500:
        return ErrorKind.OVERLOADED
    if _OVERLOADED.search(text) and status is None:
        return ErrorKind.OVERLOADED
    if _RATE.search(text):
        return ErrorKind.RATE_LIMIT
    return ErrorKind.UNKNOWN if status is None else ErrorKind.INVALID_REQUEST


_SENTENCES = {
    ErrorKind.AUTH: "{name} refuses the key{detail}. Check it: {key}.",
    ErrorKind.QUOTA: "{name} says the account has no credit or quota left{detail}. Check plan and billing there.",
    ErrorKind.RATE_LIMIT: "{name} limits the rate of requests{detail}.{asked}",
    ErrorKind.OVERLOADED: "{name} is overloaded or has a fault of its own{number}{detail}.{asked}",
    ErrorKind.LOADING: "{name} is loading the model.",
    ErrorKind.NOT_FOUND: "{name} doesn't know {model}{detail}. Choose another with /model, or check base_url.",
    ErrorKind.CONTENT_FILTER: "{name}'s content filter refused the request{detail}. Rephrase it, or take the part out.",
    ErrorKind.NETWORK: "{name} gave up waiting{number}{detail}.{asked}",
    ErrorKind.INVALID_REQUEST: "{name} refused the request{detail}.",
    ErrorKind.UNKNOWN: "The call to {name} failed{detail}.",
}
_FORBIDDEN = "{name} forbids this{detail}. Check what the key may do: {key}."
_UNREADABLE = "{name} could not read what {model} wrote{detail}."


def _message(kind: ErrorKind, body: ErrorBody, status: int | None, wait: float | None, target: Target) -> str:
    sentence = _SENTENCES[kind]
    if kind is ErrorKind.AUTH and status == 403:
        sentence = _FORBIDDEN
    elif kind is ErrorKind.OVERLOADED and set(body.codes) & _UNUSABLE_SAMPLE:
        sentence = _UNREADABLE
    elif kind is ErrorKind.UNKNOWN and (match := _MODULE.search(body.words)):
        return f"{target.model} needs the Python package {match[1] or match[2]}: install it beside tui-agent."
    return sentence.format(
        name=target.provider,
        model=target.model,
        key=target.key,
        detail=_detail(body.words),
        number=f" ({status})" if status else "",
        asked=f" It asks to wait {spoken(wait)}." if wait else "",
    )


def _detail(text: str) -> str:
    line = " ".join(text.split())
    if not line:
        return ""
    if len(line) > DETAIL_LENGTH:
        line = f"{line[:DETAIL_LENGTH]}…"
    return f": {line.rstrip('. ')}"


def _overflow_message(overflow: Overflow, target: Target) -> str:
    if overflow.per_minute is not None:
        return (
            f"The request alone ({overflow.sent:,} tokens) is over the {overflow.per_minute:,} tokens per minute "
            f"that {target.provider} allows this account: compact it, or choose another model."
        )
    sizes = [f"{size:,}" for size in (overflow.sent, overflow.window) if size]
    numbers = {0: "", 1: " ({} tokens)", 2: " ({} tokens of {})"}[len(sizes)].format(*sizes)
    return f"The request is larger than {target.model} takes{numbers}: compact it, or choose a model with more room."


_BROKEN_CONNECTIONS: dict[Cause, str] = {
    "refused": "Nothing answers at {address}: check that the server runs and the address is right.",
    "unresolved": "The address {address} can't be found: check the network and base_url.",
    "certificate": "The certificate of {address} isn't trusted: check the proxy, or name its CA in SSL_CERT_FILE.",
    "connect_timeout": "{address} could not be reached{waited}: check the network.",
    "timeout": "{name} did not begin to answer{waited}.",
    "stalled": "{name} stopped in the middle of the answer: nothing came{waited}.",
    "broken": "{name} sent something that can't be read{detail}.",
    "closed": "The connection to {name} broke before the answer was complete.",
}


# -- trying again -------------------------------------------------------------------------------------------

RETRIED = frozenset({ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.HOST})
"""Failures that may pass on their own. Everything else fails the same way again."""

LOADING_DELAY, LOADING_PATIENCE = 2.0, 900.0
"""Seconds between two looks at a server that loads a model, and how long it may take."""


def retry_delay(settings: RetrySettings, attempt: int, error: ModelError, random: Callable[[], float]) -> float | None:
    """Return the seconds to wait after failed attempt number ``attempt`` (1 is the first), None to give up.

    Exponential backoff with full jitter, so that programs that failed together don't come back together. ``random``
    gives numbers from 0 to 1. A wait the provider named is never shortened, jitter adds to it; one longer than
    ``max_retry_after`` ends the retrying: nobody waits an hour unasked.
    """
    if attempt >= settings.attempts or error.kind not in RETRIED:
        return None
    # Doubling further than this is over any cap and, far enough, over the range of a float.
    backoff: float = min(settings.max_delay, settings.first_delay * 2 ** min(attempt - 1, 30))
    if error.retry_after is None:
        return random() * backoff
    if error.retry_after > settings.max_retry_after:
        return None
    return error.retry_after + random() * min(settings.first_delay, backoff)
