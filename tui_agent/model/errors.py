"""Turns a failed call to a provider into an error with a kind and a message for the user."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.error_body import ErrorBody, read_body
from tui_agent.model.overflow import Overflow, find_overflow
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.refusals import Part, named_part
from tui_agent.model.waits import retry_after, spoken

Cause = Literal[
    "refused",
    "unresolved",
    "certificate",
    "connect_timeout",
    "timeout",
    "stalled",
    "closed",
    "ended",
    "broken",
]
"""The reason why a connection could not be made or failed. ``stalled`` means that no more data
arrived within the time limit, ``closed`` that the connection broke, ``ended`` that the server
closed it properly before the answer was complete, ``broken`` that the answer could not be
parsed."""

_SAYS_NOTHING = {"", "{}", "[]", "null"}
"""Error texts that say nothing, such as an empty JSON object."""
DETAIL_LENGTH = 300
"""Maximum characters of a provider's error text that a message quotes."""

_CODES: dict[ErrorKind, frozenset[str]] = {
    ErrorKind.CONTEXT_OVERFLOW: frozenset(
        {
            "contextlengthexceeded",
            "exceedcontextsizeerror",
            "contextwindowexceeded",
            "modelcontextwindowexceeded",
            "requesttoolarge",
            "stringabovemaxlength",
        }
    ),
    ErrorKind.RATE_LIMIT: frozenset(
        {
            "ratelimitexceeded",
            "ratelimiterror",
            "ratelimit",
            "ratelimited",
            "toomanyrequests",
            "throttlingexception",
            "throttling",
            "throttlingratequota",
            "throttlingallocationquota",
            "throttlinguser",
        }
    ),
    ErrorKind.QUOTA: frozenset(
        {
            "insufficientquota",
            "insufficientbalance",
            "insufficientfunds",
            "insufficientcredits",
            "billingerror",
            "billinghardlimitreached",
            "billingnotactive",
            "usagelimitreached",
            "paymentrequired",
            "exceededcurrentquotaerror",
            "arrearage",
        }
    ),
    ErrorKind.NOT_FOUND: frozenset(
        {
            "modelnotfound",
            "notfounderror",
            "notfound",
            "modelnotexist",
            "resourcenotfoundexception",
            "deploymentnotfound",
            "unknownmodel",
            "invalidmodel",
            "modelnotsupported",
        }
    ),
    ErrorKind.CONTENT_FILTER: frozenset(
        {
            "contentfilter",
            "contentpolicyviolation",
            "responsibleaipolicyviolation",
            "datainspectionfailed",
            "invalidprompt",
            "promptblocked",
        }
    ),
    ErrorKind.AUTH: frozenset(
        {
            "invalidapikey",
            "apikeyinvalid",
            "incorrectapikey",
            "authenticationerror",
            "unauthenticated",
            "unauthorized",
            "invalidauthenticationerror",
            "permissionerror",
            "permissiondenied",
            "accessdeniedexception",
            "accountdeactivated",
        }
    ),
    ErrorKind.INVALID_REQUEST: frozenset(
        {
            "unsupportedparameter",
            "unsupportedvalue",
            "unknownparameter",
            "invalidvalue",
            "missingrequiredparameter",
            "unsupportedfile",
            "invalidencryptedcontent",
            "validationexception",
        }
    ),
    ErrorKind.OVERLOADED: frozenset(
        {
            "overloadederror",
            "overloaded",
            "engineoverloadederror",
            "servererror",
            "apierror",
            "internalservererror",
            "internalerror",
            "internal",
            "unavailable",
            "serverisoverloaded",
            "serviceunavailable",
            "serviceunavailableexception",
            "modelnotreadyexception",
            "modelstreamerrorexception",
            "internalserverexception",
            "slowdown",
        }
    ),
    ErrorKind.NETWORK: frozenset(
        {
            "timeout",
            "timeouterror",
            "requesttimeout",
            "deadlineexceeded",
            "modeltimeoutexception",
        }
    ),
}
"""Providers' error codes of each kind. Codes that occur with several kinds
(``invalid_request_error``, ``INVALID_ARGUMENT``, ``RESOURCE_EXHAUSTED``) are left out, because for
them the status and the message decide."""

_UNUSABLE_SAMPLE = frozenset(
    {
        "toolusefailed",
        "outputparsefailed",
        "jsonvalidatefailed",
        "malformedfunctioncall",
        "unexpectedtoolcall",
        "malformedresponse",
    }
)
"""Codes with which Groq and Google report model output that they couldn't parse. A retry may
help."""

_QUOTA = LazyPattern(
    r"insufficient[_ ](?:quota|balance|credit|funds)|exceeded your current quota|credit balance is too low|billing"
    r"|payment required|out of credits?|no credits|n.t have any credits|never purchased credits|spending limit|arrears"
    r"|key limit exceeded",
    re.IGNORECASE,
)
_USED_UP = LazyPattern(
    r"(?:monthly|weekly|daily|hourly|\d-hour|plan|subscription|account|usage)\b[\w ,'’-]{0,30}"
    r"\b(?:limits?|quota|cap|allowance)\b.{0,40}(?:reached|exceeded|hit|used up|exhausted|depleted)"
    r"|(?:reached|exceeded|hit|used up|exhausted)\b[\w ,'’-]{0,30}"
    r"\b(?:monthly|weekly|daily|hourly|\d-hour|plan|subscription|usage)\b[\w '’-]{0,20}"
    r"\b(?:limits?|quota|cap|allowance)",
    re.IGNORECASE,
)
"""Matches messages that say that a plan's limit is used up. Such errors are quota errors, unless
the provider asks for a wait of at most ``_LONG_WAIT``."""
_LONG_WAIT = 3_600.0
"""Longest wait, in seconds, that still counts as a rate limit."""
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
_OVERLOADED = LazyPattern(
    r"overloaded|over capacity|at capacity|capacity exceeded|try again later", re.IGNORECASE
)
_LOADING = LazyPattern(
    r"\bloading (?:the )?model|model\b.{0,80}\b(?:is|still|currently) (?:being )?load(?:ing|ed)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Matches messages that llama.cpp, Hugging Face and LM Studio send while they load a model."""
_RATE = LazyPattern(
    r"rate.?limit|too many requests|resource.?exhausted|throttl|wait before|tokens? per (?:minute|day)",
    re.IGNORECASE,
)
_UNKNOWN_PROVIDER = LazyPattern(r"llm provider not provided", re.IGNORECASE)
"""Matches litellm's message about a provider that it doesn't know."""
_ITEM = LazyPattern(r"\b(?:rs|msg|fc)_\w+.{0,40}not found", re.IGNORECASE | re.DOTALL)
"""Matches messages about an unknown item of the request. Without this pattern, they would be taken
for messages about an unknown model."""
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


_NOT_OF_A_PART = {401, 402, 403, 429}
"""HTTP statuses that always mean a problem with the account, whatever the message says."""
_OF_TEMPLATES = {Part.ROLES, Part.SYSTEM, Part.PICTURES}
"""Parts of a request that a model's chat template refuses. Such a refusal is recognised whatever
the status, because waiting never helps."""
_MAY_NAME_A_PART = {
    ErrorKind.UNKNOWN,
    ErrorKind.NOT_FOUND,
    ErrorKind.INVALID_REQUEST,
    ErrorKind.CONTEXT_OVERFLOW,
}
"""Kinds of errors that become INVALID_REQUEST if the message names the part of the request that was
refused."""

_SENTENCES = {
    ErrorKind.AUTH: "{name} refuses the key{detail}. Check it: {key}.",
    ErrorKind.QUOTA: "{name} says the account has no credit or quota left{detail}. Check your plan and billing there.",
    ErrorKind.RATE_LIMIT: "{name} limits the rate of requests{detail}.{asked}",
    ErrorKind.OVERLOADED: "{name} failed{number}{detail}.{asked}",
    ErrorKind.LOADING: "{name} is loading the model.",
    ErrorKind.NOT_FOUND: "{name} doesn't know {model}{detail}. Choose another with /model, or check base_url.",
    ErrorKind.CONTENT_FILTER: "{name}'s content filter refused the request{detail}. Rephrase or remove that part.",
    ErrorKind.NETWORK: "The request to {name} timed out{number}{detail}.{asked}",
    ErrorKind.INVALID_REQUEST: "{name} refused the request{detail}.",
    ErrorKind.UNKNOWN: "The call to {name} failed{detail}.",
}
_NEEDS_KEY = "{name} needs a key{detail}. What to do: {key}."
_REFUSED_WITHOUT_KEY = "{name} refuses access (403){detail}. No key was sent. What to do: {key}."
_FORBIDDEN = "{name} denies access{detail}. Check the permissions of the key: {key}."
_NO_PROVIDER = (
    'litellm can\'t call {model}. Set wire = "chat" for the model or its provider in config.toml.'
)
_UNREADABLE = "{name} could not parse the output of {model}{detail}."

_BROKEN_CONNECTIONS: dict[Cause, str] = {
    "refused": "Nothing answers at {address}. Check that the server is running and the address is right.",
    "unresolved": "Can't reach {address}. Check the network or base_url.",
    "certificate": "The certificate of {address} isn't trusted. Check the proxy, or name its CA in SSL_CERT_FILE.",
    "connect_timeout": "{address} could not be reached{waited}. Check the network.",
    "timeout": "{name} did not begin to answer{waited}.",
    "stalled": "{name} stopped in the middle of the answer. No more data was received{waited}.",
    "broken": "{name} sent an answer that can't be parsed{detail}.",
    "closed": "The connection to {name} broke before the answer was complete.",
    "ended": "{name} ended the answer early.",
}


@frozen
class Failure:
    """The facts about a failed call to a provider or another model server.

    ``text`` is the error's body or the exception's message, ``status`` the HTTP status, ``seconds``
    the time limit that was exceeded. ``cause`` is set if the connection failed, or if the answer
    was incomplete or couldn't be read.
    """

    text: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cause: Cause | None = None
    seconds: float | None = None


@frozen
class Target:
    """The model and server that a failed call was made to, as needed for the error's message.

    ``provider`` is the display name, ``address`` the host. ``key`` is the source of the API key, or
    a hint on how to set one if ``has_key`` is False. With ``empty_body_is_overflow``, status 400
    without a message means that the request is too long.
    """

    model: str
    provider: str
    address: str = ""
    key: str = ""
    has_key: bool = True
    empty_body_is_overflow: bool = False


def classify(failure: Failure, target: Target, *, now: float) -> ModelError:
    """Return the error to raise for a failed call.

    ``now`` is the current time in seconds since the epoch. It is used to compute how long the
    provider asks the program to wait.
    """
    if failure.cause is not None and failure.status is None:
        sentence = _BROKEN_CONNECTIONS[failure.cause].format(
            name=target.provider,
            address=target.address or target.provider,
            waited=f" within {spoken(failure.seconds)}" if failure.seconds else " in time",
            detail=_detail(read_body(failure.text).words) if failure.cause == "broken" else "",
        )
        return ModelError(ErrorKind.NETWORK, sentence)
    body = read_body(failure.text)
    # An error within a stream, or one that a gateway sends with status 200, has the status in its
    # body.
    if (failure.status or 0) >= 400:
        status = failure.status
    else:
        status = body.status
    codes = set(body.codes)
    throttled = bool(codes & _CODES[ErrorKind.RATE_LIMIT]) or status in {429, 503, 529}
    if status in _NOT_OF_A_PART:
        part = None
    else:
        part = named_part(body)
    overflow = find_overflow(body.words, status, throttled=throttled)
    is_unsaid = not body.words and status == 400 and target.empty_body_is_overflow
    if is_unsaid or codes & _CODES[ErrorKind.CONTEXT_OVERFLOW]:
        overflow = overflow or Overflow()
    if overflow is not None and (part is None or overflow.window):
        return ModelError(
            ErrorKind.CONTEXT_OVERFLOW,
            _overflow_message(overflow, target),
            status=status,
            window=overflow.window,
            sent=overflow.sent,
        )
    # The whole body is searched, because Google states the wait outside the message.
    wait = retry_after(failure.headers, failure.text, now=now)
    kind = _kind_by_code(body, status) or _kind(body.words, status, wait)
    if part in _OF_TEMPLATES or (part is not None and kind in _MAY_NAME_A_PART):
        kind = ErrorKind.INVALID_REQUEST  # llama.cpp and others answer 500 if a template refuses
    if status == 503 and _LOADING.search(body.words):
        kind = ErrorKind.LOADING
    message = _message(kind, body, status, wait, target)
    return ModelError(kind, message, retry_after=wait, status=status)


def _kind_by_code(body: ErrorBody, status: int | None) -> ErrorKind | None:
    """Return the kind of error by the provider's codes; None if they don't decide it."""
    codes = set(body.codes)
    if codes & _UNUSABLE_SAMPLE:
        return ErrorKind.OVERLOADED
    for kind, names in _CODES.items():
        if not codes & names:
            continue
        if kind is ErrorKind.OVERLOADED and status is not None and status < 500:
            continue  # some servers use this code for every error
        if kind is ErrorKind.AUTH and _QUOTA.search(body.words):
            continue  # xAI sends a permission code if credit is missing
        if kind is ErrorKind.NOT_FOUND and _ITEM.search(body.words):
            return ErrorKind.INVALID_REQUEST
        return kind
    return None


def _kind(text: str, status: int | None, wait: float | None) -> ErrorKind:  # noqa: PLR0911 - a ladder of rules
    if status != 429 and _FILTER.search(text) and status in {None, 400, 403, 422}:
        return ErrorKind.CONTENT_FILTER
    if (
        _USED_UP.search(text.replace("_", " "))
        and status in {None, 400, 402, 403, 429}
        and (wait is None or wait > _LONG_WAIT)
    ):
        return ErrorKind.QUOTA
    # Google calls its limit per minute a quota, but states a wait. If none is stated, waiting
    # doesn't help.
    if (
        _QUOTA.search(text)
        and status in {None, 400, 402, 403, 429}
        and not (status == 429 and wait is not None)
    ):
        return ErrorKind.QUOTA
    if status in {None, 400, 401, 403} and _AUTH.search(text):
        return ErrorKind.AUTH
    if status in {None, 400, 404} and _NOT_FOUND.search(text):
        return ErrorKind.NOT_FOUND
    if _ITEM.search(text):
        return ErrorKind.INVALID_REQUEST
    if status in _KINDS:
        return _KINDS[status]
    if status is not None and status >= 500:
        return ErrorKind.OVERLOADED
    if _OVERLOADED.search(text) and status is None:
        return ErrorKind.OVERLOADED
    if _RATE.search(text):
        return ErrorKind.RATE_LIMIT
    if status is None:
        return ErrorKind.UNKNOWN
    return ErrorKind.INVALID_REQUEST


def _message(
    kind: ErrorKind, body: ErrorBody, status: int | None, wait: float | None, target: Target
) -> str:
    sentence = _SENTENCES[kind]
    if kind is ErrorKind.AUTH and not target.has_key and status == 403:
        sentence = _REFUSED_WITHOUT_KEY
    elif kind is ErrorKind.AUTH and not target.has_key:
        sentence = _NEEDS_KEY
    elif kind is ErrorKind.AUTH and status == 403:
        sentence = _FORBIDDEN
    elif kind is ErrorKind.NOT_FOUND and _UNKNOWN_PROVIDER.search(body.words):
        sentence = _NO_PROVIDER
    elif kind is ErrorKind.OVERLOADED and set(body.codes) & _UNUSABLE_SAMPLE:
        sentence = _UNREADABLE
    elif kind is ErrorKind.UNKNOWN and (match := _MODULE.search(body.words)):
        package = match[1] or match[2]
        return f"{target.model} needs the Python package {package}. Install it where tui-agent is installed."
    return sentence.format(
        name=target.provider,
        model=target.model,
        key=target.key,
        detail=_detail(body.words),
        number=f" ({status})" if status else "",
        asked=f" It asks for a wait of {spoken(wait)}." if wait else "",
    )


def _detail(text: str) -> str:
    line = " ".join(text.split())
    if line in _SAYS_NOTHING:
        return ""
    if len(line) > DETAIL_LENGTH:
        line = f"{line[:DETAIL_LENGTH]}…"
    return f": {line.rstrip('. ')}"


def _overflow_message(overflow: Overflow, target: Target) -> str:
    if overflow.per_minute is not None:
        return (
            f"The request alone ({overflow.sent:,} tokens) exceeds the {overflow.per_minute:,} tokens per minute "
            f"that {target.provider} allows this account. Compact the session, or choose another model."
        )
    match overflow.sent or None, overflow.window or None:
        case int(sent), int(window):
            numbers = f" ({sent:,} tokens of {window:,})"
        case int(sent), _:
            numbers = f" (the request has {sent:,} tokens)"
        case _, int(window):
            numbers = f" (at most {window:,} tokens)"
        case _:
            numbers = ""
    return (
        f"The request is larger than {target.model} accepts{numbers}. Compact the session, or choose a "
        "model with a larger context window."
    )
