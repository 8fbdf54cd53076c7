"""Finds secrets in text, such as keys, tokens and passwords.

There are three kinds of rules. *Shapes* recognise the keys of known services by their form. *Named*
rules find values that are assigned to a name, a header or an option for a secret. *Wrapped* rules
find private keys, and any other secret in base64. To save time, the rule for a shape is tried only
on a text that contains one of its traces (fixed strings such as ``ghp_``), and named values are
only looked for in lines with a word such as ``key``. Seed phrases of wallets have no trace; they
are recognised by their words. Whether a key is valid is never checked.

Types, placeholders, sentences about keys, and code that passes a password on are not secrets.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.word_lists import in_order

REMOVED = "[redacted]"
"""Text that replaces a secret."""

_MAX_BASE64_CHARS = 200_000
"""Maximum number of characters that are decoded from the start of a piece of base64."""

_MAX_LINE_CHARS = 4_000
"""Length of the pieces into which a long line is split before it is searched for named secrets, in
characters."""

_OVERLAP = 500
"""Number of characters by which each piece of a long line is extended at both ends, so that the
pieces overlap."""

_BREAK = r"""\\?["']?[ \t]*(?:\\n|\\?\r?\n)[ \t]*(?:[>|+\-][ \t]+)?["']?"""

_REST = (
    _BREAK + r"""(?=[A-Za-z_\-+/=.]*(?:\d|[a-z][A-Z]))[A-Za-z0-9_\-+/=.]{6,}(?=["'`,;)\s\\]|$)"""
)
"""Matches the line break and the second part of a key that is split over two lines of code."""

_WORD = r"[A-Za-z0-9]"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

_TELLING = in_order(
    """
    pass pwd secret token key auth cred cookie login aws pat= session
    """
)
"""Words that the names of secrets contain. Secrets that are recognised by their name are looked for
only in lines with one of these words, in upper or lower case."""

_COOKIES = re.compile(r"(?i)\b(set-)?cookie[\"']?\s*:\s*[\"']?([^\r\n\"']{4,})")
_PAIR = re.compile(r"([^=;\s]{1,80})=([^;\s\"',]{6,})")

_ASSIGNED = re.compile(
    r"""
    (?P<mark>\\?["'])?
    (?:(?<![A-Za-z0-9_.\-])|(?<=(?<!\w)-[DPJ]))(?P<name>[A-Za-z_][A-Za-z0-9_.\-]{1,80})
    (?P=mark)?\]?
    (?P<sign>[ \t]*(?::=|=>|[:=])[ \t]*)
    (?:
        (?P<quote>\\?["'`])(?P<quoted>(?:(?!(?P=quote))[^\r\n]){3,400})(?P=quote)
        | (?P<plain>[^\s"'`,;&|()\[\]{}<>\\]{4,400})
    )
    """,
    re.VERBOSE,
)

_OPTION = re.compile(r"(?:^|[\s\"'`])(?:-[DPJ]|/p:|--?[A-Za-z][\w-]*[ =])[\"']?$")
"""Matches the text before a setting that is given as an option on a command line: ``-D``, ``--set
``, ``--from-literal=``."""

_BESIDE_CHARS = 200
"""Number of characters before a setting that are searched for an option or another setting."""

_FEWEST_IN_SETTING = 4
"""Minimum length of a value that is taken for a secret because it is in a list of settings, in
characters."""
_PAIR_BEFORE = re.compile(r"(?:^|[\s\"'`;])[\w.-]+=[^\s,;()\"'`]+(?:[ \t]+|;[ \t]*)$")

_PAIR_AFTER = re.compile(r"[\"']?(?:[ \t]+|;[ \t]*)[A-Za-z][\w. -]*=[^\s,;()=]")
"""Matches a following setting in a list without commas, such as libpq's ``host=db password=…``. In
code, the arguments of a call are separated by commas, so they don't match."""

_NAME = re.compile(
    r"""
    (^|_)(
        API_?KEYS? | (ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|MASTER|ACCOUNT|SERVICE|DEPLOY)_?KEYS?(_ID)? |
        (ACCESS|AUTH|REFRESH|BEARER|ID|BOT|SESSION)?_?TOKENS? | SECRETS? | PASSPHRASE | PASS | PW |
        CREDENTIALS? | PAT | OAUTH | (SET)?COOKIES? | DSN | SONAR_LOGIN
    )(_|$)
    | PASSWORD | PASSWD | _(?<!PUBLIC_)(KEY|PWD|AUTH)$ | (API|SECRET|ACCESS|PRIVATE)_?KEY
    | [A-Z]SECRETS?(_|$) | [A-Z]TOKEN(_|$)
    | ^AWS_ | ^(OP|BW)_SESSION(_|$) | ^AZURE_CLIENT_ | _AUTH_CONFIG$ | (^|_)(JWT|BEARER|MNEMONIC)$
    | ^CONNECTION_STRINGS__ | ^BUNDLE_(?!BUILD__)\w*__
   | (^|_)(?!COM|BY|SUR|TRES|OVER|UNDER|ENCOM|PATH)[A-Z]{1,6}PASS(_|$)
    """,
    re.VERBOSE,
)

_KEPT = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_PAGER", "GPG_KEY"})
"""Environment variables whose names look like those of secrets, but which contain none. GPG_KEY is
a public fingerprint in the official Python images."""

_PASSWORD_NAME = re.compile(r"PASS|PWD|(^|_)PW($|_)")

_ABOUT = re.compile(
    r"_(NAME|FILE|FILES|PATH|DIR|URL|URI|ENV|VAR|FIELD|TYPE|KIND|ID|COUNT|LIMIT|MAX|MIN|SIZE|LENGTH|LEN|TTL|EXPIRY|EXPIRES|"
    r"HEADER|PROMPT|HELP|LABEL|HINT|TITLE|TEXT|PATTERN|REGEX|RE|PREFIX|SUFFIX|POLICY|RESET|REMAINING|COST|PRICE|RATE|USED|PROVIDER|CLASS|FORMAT|STORE|MANAGER|"
    r"COMMAND|CMD|STYLE|COLOR|INPUT|ENDPOINT|METHOD|MODE|SERVICE|ALGORITHM|VERSION|BINDINGS?|ERROR|MESSAGE|STATUS|OK|SET)$"
)
"""Matches the end of a name that describes something about a secret, such as its file or length,
and not the secret itself."""

_PLACEHOLDER = re.compile(
    r"""(?ix)
    [$%<{(\[*] | .*(\.\.\.|…|\[redacted\]|\*\*\*) | (x{3,}|none|null|nil|true|false|undefined|required|optional|secret|
    password|token|string|bytes|bool|int|any|self|env|changeme|example|placeholder|default|enabled|disabled|always|
    never|auto|bearer|basic|changeit|redacted|removed|hidden|unset|empty|value)\b\W*$ |
    your[-_ ]? | my[-_](?:api|secret|token|key|pass) |
    (os|process|env|self|config|settings|request|args|options|params|ctx|this|cls|secrets|vault)\.
    """
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w]*(?:(?:\.|::|->)[A-Za-z_]\w*)*")
_NUMBER = re.compile(r"[\d.,_+\-]+(?:[eE][\d+\-]+)?%?")
_TYPES = re.compile(
    r"(?:str|string|bytes|int|float|bool|object|any|text|varchar|char|number|dict|list|tuple|none|null)\b.*",
    re.IGNORECASE,
)

_FEWEST_ALONE = 40
_MOST_ALONE = 400
"""Minimum and maximum length, in characters, of a value that is recognised as a secret by its form
alone, whatever its name."""

_DISTINCT = 9
"""Minimum number of different characters in a value that counts as random."""

_ALONE = (
    re.compile(r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}"),
    re.compile(r"S[A-Z2-7]{55}"),
    re.compile(r"\[(?:\s*\d{1,3},){63}\s*\d{1,3}\s*\]"),
)
"""Matches private keys of Bitcoin, Stellar and Solana wallets."""

_KEYS_OF_32_BYTES = (
    re.compile(
        r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?:[A-Za-z0-9+/]{42}|[A-Za-z0-9_-]{42})[AEIMQUYcgkosw048]="
    ),
    re.compile(r"(?:0x)?[0-9a-fA-F]{64}"),
)
"""Patterns for private keys of WireGuard and Fernet (base64), and of Ethereum (hex)."""

_PUBLIC_NAME = re.compile(
    r"SHA\d*|HASH|DIGEST|CHECKSUM|SUMS?(_|$)|COMMIT|REV(ISION)?(_|$)|FINGERPRINT|INTEGRITY|(^|_)IDS?(_|$)|ETAG|IMAGE|"
    r"(^|_)(TAG|TX|TXID|BLOCK|TREE|REF|VERSION|PUB|PUBKEY|PUBLIC)(_|$)|PUBLIC_?KEY|TRANSACTION|MD5"
)
_SEED_LENGTHS = frozenset({12, 15, 18, 21, 24})
_SEED_LINE = re.compile(
    r"(?m)(?:^|[\"'=:])[ \t]*((?:[a-z]{3,8} ){11,23}[a-z]{3,8})[ \t]*(?=[\"',;\r]|$)"
)
_IN_VARIABLE = (
    re.compile(r"(?:^|\s)-p(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)[^\s/:=,$]{6,}(?=\s|$)"),
    re.compile(r"(?:^|\s)-[aw][ =](?=\S*[a-zA-Z])(?=\S*\d)[^\s/:=,$-][^\s/:=,$]{5,}(?=\s|$)"),
    re.compile(r"(?:^|\s)(?:-u|--user)[ =]?[^\s:]+\s(?:.*\s)?-p[^\s/:=,$-][^\s/:,$]{3,}(?=\s|$)"),
    re.compile(
        r"(?:^|\s)(?:-u|-U|-a|--?user|--?auth|--proxy-user)[ =]?[\w.@-]+:"
        r"(?=[^\s:]*[A-Za-z])(?=[^\s:]*[\d!@#%^&*~])[^\s/:$]{6,}"
    ),
    re.compile(
        r"^(?:admin|root|user|postgres|elastic|sa|guest|test|api|neo4j|mysql|service|pass)[:/]"
        r"(?!v?\d+[.-])(?=[^\s:/]*[A-Za-z])(?=[^\s:/]*[\d!#%^&*~])[^\s:/$@]{6,}$"
    ),
    re.compile(r"(?i)^(?:basic|digest|token|apikey)(?:\s+|%20)(?=\S*\d)[\w.~+/=%-]{8,}$"),
    re.compile(r"(?i)\b(?:php)?sess(?:ion)?(?:_?id)?=(?=[a-z-]*\d)[\w%.+-]{16,}"),
    re.compile(
        r"(?:^|[,;&?\s])[\w.-]+=(?=[\w%+-]*[a-z])(?=[\w%+-]*[A-Z])(?=[\w%+-]*\d)[\w%+-]{20,}={0,2}(?=$|[,;&\s])"
    ),
    re.compile(r"^WIFI:.*;P:[^;]{4,};"),
)
"""Patterns for passwords and keys in options, headers and cookies. They are used only for the
values of environment variables, because these forms are too common in other texts."""

_GIVEN = re.compile(
    r"""
    (?:^|[\s{,;&?"'])
    (?:
        --?(?P<option>[A-Za-z][\w.-]{1,80})(?:=|[ ]+(?![\w.-]+=))
        | (?P<name>[A-Za-z_][\w.-]{1,80})["']?[ ]*[=:][ ]*
    )
    ["']?(?P<value>[^\s"',;{}&]{4,})
    """,
    re.VERBOSE,
)
"""Matches a name or an option, together with its value, within the value of an environment
variable."""

_LONG = re.compile(
    r"(?<![A-Za-z0-9+/_\-=.])(?:(?:[A-Za-z0-9+/]{60,76}\r?\n[ \t]*)+[A-Za-z0-9+/]{4,}|[A-Za-z0-9+/_\-]{24,})={0,2}"
)
"""Matches text on one or several lines that may be base64."""

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_MAX_KEY_CHARS = 20_000

_CUT_OFF = re.compile(r"[ \t]*[A-Za-z0-9+/]{16,}={0,2}[ \t]*(?:\r?\n)?")
"""Matches one line of a private key. It is used to find keys whose BEGIN line is missing."""

_LINE_BREAK = re.compile(r"\\r\\n|\\n|\r?\n")

_KEY_LINES = re.compile(
    r"(?:(?>[ \t>|+\-]*(?:\d+[ \t]*[\t:|→][ \t]*)?(?:[A-Za-z0-9+/=]{8,}|[A-Z][A-Za-z-]+: [^\n\\]{1,200}|)[ \t\"',;]*)"
    rf"(?:{_LINE_BREAK.pattern}|\Z))++"
)
"""Matches the lines of a private key. In a listing, they may have line numbers, marks or quotes."""

_PUTTY = re.compile(r"Private-Lines: \d+\s+((?:[A-Za-z0-9+/=]{16,}\s*)+)")

_compiled = lru_cache(maxsize=None)(re.compile)


@frozen
class Secret:
    """The position of a secret in a text, from ``start`` up to but not including ``end``.

    ``is_key`` is True for a private key or a seed phrase.
    """

    start: int
    end: int
    is_key: bool = False


@frozen
class _Rule:
    """A regular expression that finds secrets of one form.

    To save time, it is tried only on texts that contain one of the ``traces``. The last group of
    the pattern is the secret. If the pattern has no groups, the whole match is the secret.
    """

    traces: tuple[str, ...]
    pattern: str
    random: bool = False
    """Whether the part of a match after its fixed beginning must look random: it must mix letters
    with digits, or upper with lower case."""
    fewest: int = 0
    """Minimum length of a match, in characters. A line break in the match is not counted."""


def _shape(
    begin: str, fewest: int, body: str = r"[A-Za-z0-9_\-]", *, strict: bool = False
) -> _Rule:
    """Return the rule for keys that begin with the text ``begin``.

    At least ``fewest`` characters must follow. ``body`` is a regular expression for one of these
    characters. With ``strict``, which is for beginnings that are common in other texts, the
    characters must mix letters with digits, or upper with lower case.
    """
    # The pattern begins with the literal text, because that is fast to search for. A line break
    # before it may be written as two characters, such as \n.
    start = re.escape(begin)
    apart = rf"(?:(?<![A-Za-z0-9_\-]{start})|(?<=\\[nrt]{start}))"
    return _Rule(
        (begin,),
        f"{start}{apart}(?:{body}{{2,}}{_REST}|{body}{{{fewest},}})",
        strict,
        len(begin) + fewest,
    )


def _shapes(
    begins: str, fewest: int, body: str = r"[A-Za-z0-9_\-]", *, strict: bool = False
) -> Iterator[_Rule]:
    """Yield the rules that `_shape` returns for several beginnings, separated by spaces."""
    for begin in begins.split():
        yield _shape(begin, fewest, body, strict=strict)


_SHAPES = (
    # API keys of model providers.
    *_shapes("sk-ant- sk-proj- sk-or- sk-svcacct- sk-admin-", 8),
    *_shapes("sk- sk_ pk_ rk_ csk- sess- fw_ xai- gsk_", 8, strict=True),
    *_shapes("pplx- nvapi- r8_ hf_ api_org_ tgp_v1_", 8, strict=True),
    # API keys of cloud providers.
    _shape("AIza", 20),
    _shape("ya29.", 20),
    _shape("GOCSPX-", 16),
    *_shapes("AKIA ASIA ABIA ACCA A3T", 12, "[A-Z0-9]"),
    *_shapes("dop_v1_ doo_v1_ dor_v1_", 32),
    _shape("dapi", 32, "[a-f0-9-]"),
    _shape("LTAI", 16, _WORD),
    *_shapes("fm1_ fm2_ fo1_", 20, r"[A-Za-z0-9_\-+/=,]"),
    _shape("FlyV1 ", 20, r"[A-Za-z0-9_\-+/=,]"),
    _shape("HRKU-", 30),
    _shape("sbp_", 40, _WORD),
    *_shapes("pscale_tkn_ pscale_pw_ pscale_oauth_ nfp_ pul-", 24),
    *_shapes("tskey-auth- tskey-api- tskey-client-", 16),
    # Code hosting, package registries and continuous integration.
    *_shapes("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", 16),
    *_shapes("glpat- gldt- glft- glsoat- glrt- glptt- gloas- glcbt-", 16),
    *_shapes("GR1348941 glimt- glagent-", 20),
    _shape("npm_", 20, _WORD),
    *_shapes("pypi-Ag pypi-", 16),
    _shape("rubygems_", 32, "[a-f0-9]"),
    _shape("dckr_pat_", 16),
    _shape("AKCp", 60, _WORD),
    _shape("ATATT3x", 16, r"[A-Za-z0-9_\-=]"),
    _shape("ATBB", 24, r"[A-Za-z0-9_\-=]", strict=True),
    *_shapes("sntrys_ sntryu_ glsa_ glc_", 20, r"[A-Za-z0-9_\-+/=]"),
    # Secret managers, and keys of encryption tools and wallets.
    *_shapes("hvs. hvb. hvr.", 16),
    _shape("AGE-SECRET-KEY-1", 16, "[A-Z0-9]"),
    _shape("xprv", 100, _WORD),
    _shape("nsec1", 58, "[a-z0-9]"),
    # Private keys of elliptic curves, without the BEGIN and END lines around them.
    *_shapes("MIGHAgEAMBMGByqGSM49 MHcCAQEEI MIGkAgEBBDA", 40, "[A-Za-z0-9+/=]"),
    _shape("MC4CAQAwBQYDK2VwBCIEI", 20, "[A-Za-z0-9+/=]"),
    *_shapes("dp.pt. dp.st. dp.ct. ops_eyJ", 30),
    # Messaging, payment and other services.
    *_shapes("xoxb- xoxp- xoxa- xoxs- xoxr- xoxo- xoxe- xoxe. xapp-", 10),
    _shape("SG.", 32, r"[A-Za-z0-9_\-.]"),
    *_shapes("SK AC key-", 32, "[0-9a-f]"),
    *_shapes("sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_", 16),
    _shape("whsec_", 16, r"[A-Za-z0-9_\-+/=]"),
    *_shapes("sq0csp- sq0atp- sq0idp-", 20),
    *_shapes("shpat_ shpca_ shppa_ shpss_", 32, "[a-fA-F0-9]"),
    *_shapes("lin_api_ lin_oauth_ figd_ PMAK- NRAK- NRII- xkeysib-", 24),
    *_shapes("secret_ ntn_ bkua_ apify_api_ sgp_", 40, _WORD),
    *_shapes("squ_ sqp_ sqa_ e2b_", 40, "[a-f0-9]"),
    *_shapes("CCIPAT_ CCIPRJ_ lsv2_pt_ lsv2_sk_ jina_ tvly-", 30),
    *_shapes("phx_ rnd_ vercel_blob_rw_ xoxd-", 30, strict=True),
    _shape("dt0c01.", 64, r"[A-Z0-9.]"),
    _shape("django-insecure-", 32, r"[^\s\"'`]"),
)
_RULES = (
    *_SHAPES,
    # Tokens and keys that are recognised by more than their beginning.
    _Rule(("eyJ",), r"(?<![\w\-])eyJ[\w\-]{8,}\.(?:[\w\-]{8,}\.[\w\-]*|eyJ[\w\-]{8,})"),
    _Rule(
        ("hooks.slack",),
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/+\-]{16,})",
    ),
    _Rule(
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{5,}/([A-Za-z0-9_\-]{20,})",
    ),
    _Rule(("webhook.office",), r"webhook\.office\.com/webhookb2/([^\s\"'<>]{20,})"),
    _Rule(
        ("hooks.zapier",),
        r"hooks\.zapier\.com/hooks/(?:catch|standard)/(\d+/[A-Za-z0-9][\w/-]{4,})",
    ),
    _Rule(("/deploy/prj_",), r"/deploy/prj_\w+/(\w{8,})"),
    _Rule(("/with/key/",), r"/with/key/([\w-]{16,})"),
    _Rule(("pipedream.net",), r"://([a-z0-9]{10,})\.m\.pipedream\.net"),
    _Rule(
        ("hook", "incoming", "hc-ping", "/integration/", "/receiver/"),
        r"(?i)https?://[^\s\"'<>?#]{0,200}?(?:hooks?|incoming|hc-ping|/integration|/receiver)[\w-]*(?:\.[\w.-]+)?"
        r"(?::\d+)?/(?:(?!commit|blob|tree|raw)[\w.~-]+/){0,4}?"
        rf"({_UUID}|(?![0-9a-f]{{40}}(?!\w))(?=(?:[a-z]*\d){{3}})(?=\d*[a-z])[a-z0-9]{{16,}})"
        r"(?![\w-])",
    ),
    _Rule(
        ("iscord", "ISCORD", "bot", "BOT"),
        r"(?<![\w\-])[MNO][\w\-]{23,25}\.[\w\-]{6}\.[\w\-]{27,38}(?![\w\-])",
        random=True,
    ),
    _Rule(("-us",), r"(?<![0-9a-z])[0-9a-f]{32}-us\d{1,2}(?!\d)", random=True),
    _Rule(("atlasv1.",), r"(?<!\w)\w{14}\.atlasv1\.[\w-]{40,}"),
    _Rule(("pat",), r"(?<!\w)pat\w{14}\.[0-9a-f]{64}(?!\w)"),
    _Rule(("NRAL",), r"(?<!\w)[0-9A-Za-z]{36}(?:[0-9A-Za-z]{8})?NRAL(?!\w)", random=True),
    _Rule((":AA",), r"(?<!\d)\d{6,12}:AA[A-Za-z0-9_\-]{30,40}(?![A-Za-z0-9_\-])"),
    _Rule(("8Q~",), r"(?<![\w~.\-])([\w~.\-]{3}8Q~[\w~.\-]{31,34})(?![\w~.\-])"),
    # Password hashes. Leave out the hash's first dollar sign, because with it the hash would be
    # taken for a variable, which is not a secret.
    _Rule(
        ("$2", "$5$", "$6$", "$y$", "$a"),
        r"\$((?:2[aby]|5|6|y|argon2id?|apr1)\$[A-Za-z0-9./$=,+]{20,})",
    ),
    # Passwords and tokens in URLs.
    _Rule(("://",), r"://[^/\s:@\"'<>{}$*]{0,100}:([^/\s@\"'<>{}$]{1,300})@(?=[\w\[.])"),
    _Rule(
        ("://",), r"://([A-Za-z0-9_\-.~%]{16,300})(?::(?:x-oauth-basic)?)?@(?=[\w\[.])", random=True
    ),
    _Rule(
        ("?", "&"),
        r"(?i)[?&](?:amp;)?(?:(?:api|access|auth|private|secret)?[-_]?(?:key|token|secret)|sig|signature|"
        r"x-amz-signature|x-amz-security-token|x-goog-signature|client_secret|password|passwd|pwd|jwt)="
        r"([^&\s\"'<>`{}$\\()\[\]]{4,})",
    ),
    # HTTP headers, and lines of configuration files such as ~/.netrc.
    _Rule(
        ("AccountKey", "SharedAccess", "accountkey", "accountKey"),
        r"(?i)(?:AccountKey|SharedAccessKey|SharedAccessSignature)\s*=\s*([^;\s\"'&]{12,})",
    ),
    _Rule(
        ("earer ", "EARER ", "oken "),
        r"(?i)\b(?:bearer|authorization:\s*token)\s+([A-Za-z0-9._~+/\-]{8,}=*)",
        random=True,
    ),
    _Rule(
        ("uthorization", "UTHORIZATION"),
        r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token|digest|apikey|negotiate)\s+([\w.~+/=:\-]{8,})",
    ),
    _Rule(
        ("uthorization", "UTHORIZATION"),
        r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?([\w.~+/=:\-]{6,})",
        random=True,
    ),
    _Rule(
        ("machine ", "default "),
        r"\b(?:machine\s+\S+|default)\s+(?:login\s+\S+\s+)?(?:account\s+\S+\s+)?password\s+(\S+)",
    ),
    _Rule(
        ("auth",),
        r"(?<![A-Za-z])(?:_auth\s*=\s*|auth\"\s*:\s*\")([A-Za-z0-9+/]{12,}={0,2})",
        random=True,
    ),
    # Passwords in XML elements and attributes, and in connection strings.
    _Rule(
        ("assword", "ASSWORD", "wd=", "WD="),
        r"(?im)(?:<[\w.:-]*password>|password\"\s+value=\"|;\s*(?:password|pwd)\s*=)"
        r"([^\s<>\"';$%{}()]{4,})(?=[<\";]|[\"']?\s*$)",
    ),
    # Private RSA keys without the BEGIN and END lines around them.
    _Rule(
        ("MII",),
        r"(?<![A-Za-z0-9+/])(MII[A-Za-z0-9+/]{1,6}IBA(?:DANBgkqhkiG9w0BAQEFAASC|AKCA[QgY]EA)[A-Za-z0-9+/=]{40,})",
    ),
    _Rule(("LoginModule",), r"LoginModule\s.{0,300}?\bpassword=\\?\"([^\"$\\]{3,})"),
    _Rule(("jdbc:oracle",), r"jdbc:oracle:\w+:[^\s/@:]+/([^\s/@\"'$]{3,})@"),
    _Rule(("password",), r"(?m)^[ \t]*password[ \t]+([^\s:=]\S*)[ \t]*$", random=True),
    # Command-line options for user names and passwords.
    _Rule(
        ("curl ", "http ", "https ", "wget ", "xh "),
        r"\b(?:curl|https?|wget|xh)\s.{0,300}?(?<=\s)(?:-u|--user|-U|--proxy-user)[\s=]*[\"']?[^\s:\"'$]+:([^\s\"'$]+)",
    ),
    _Rule(("sshpass ",), r"\bsshpass\s+(?:-\w+\s+)*-p\s*[\"']?([^\s\"'$]+)"),
    _Rule(("mysql", "mariadb"), r"\b(?:mysql|mariadb)[\w-]*\s.{0,300}?(?<=\s)-p[\"']?([^\s\"'$]+)"),
    _Rule(("redis-cli ",), r"\bredis-cli\s.{0,300}?(?<=\s)-a\s+[\"']?([^\s\"'$]+)"),
    _Rule(
        (" login ",),
        r"\b(?:docker|podman|helm|az|oc)\s.{0,300}?\blogin\s.{0,300}?(?<=\s)-p[\s=]+[\"']?([^\s\"'$]+)",
    ),
    _Rule(
        ("sqlcmd ", "unzip ", "bcp "),
        r"\b(?:sqlcmd|unzip|bcp)\s.{0,300}?(?<=\s)-P\s*[\"']?([^\s\"'$]{4,})",
    ),
    _Rule(("smbclient ",), r"\bsmbclient\s.{0,300}?(?<=\s)-U\s*[\"']?[^\s%\"']+%([^\s\"'$]+)"),
    _Rule(("ldap",), r"\bldap\w+\s.{0,300}?(?<=\s)-w\s*[\"']?([^\s\"'$]{4,})"),
    _Rule((" -pass",), r"\s-pass(?:in|out)?\s+[\"']?pass:([^\s\"'$]+)"),
    _Rule(
        ("--",),
        r"(?<![\w-])--(?:[a-z]+-)*(?:passw(?:or)?d|passphrase|token|secret|api-?key|(?:access|secret)-key)"
        r"[ =][\"']?([^\s\"'$<>\[\]{}()|,`-][^\s\"'$<>\[\]{}()|,`]{5,})",
    ),
)

_BY_TRACE = [(trace, rule) for rule in _RULES for trace in rule.traces]


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in a text, ordered by position. Overlapping secrets are merged."""
    found = sorted(_found(text), key=lambda secret: (secret.start, -secret.end))
    kept: list[Secret] = []
    for secret in found:
        if kept and secret.start < kept[-1].end:
            if secret.end > kept[-1].end:
                kept[-1] = Secret(kept[-1].start, secret.end, kept[-1].is_key)
        elif secret.end > secret.start:
            kept.append(secret)
    return kept


def has_secret(text: str) -> bool:
    """Return True if a text contains a secret."""
    return next(_found(text), None) is not None


def is_secret_value(value: str, name: str = "") -> bool:
    """Return True if the whole value of a variable or a file is a key that has no known prefix.

    Recognises keys of Bitcoin, Stellar, Solana, Ethereum, WireGuard and Fernet. The keys of the
    last three look like digests, so they don't count if ``name`` suggests a digest (``SHA256``).
    """
    if len(value) < _FEWEST_ALONE or len(value) > _MOST_ALONE:
        return False
    if any(form.fullmatch(value) for form in _ALONE):
        return True
    if _PUBLIC_NAME.search(_upper(name)) is None and len(set(value)) >= _DISTINCT:
        return any(form.fullmatch(value) for form in _KEYS_OF_32_BYTES)
    return False


def is_secret_in_variable(value: str) -> bool:
    """Return True if an environment variable's value contains an option or setting with a secret.

    An example is ``-uroot -pS3cr3tPass9``. Unlike in code, every value that is assigned to a
    secret's name counts, except placeholders, paths, options and numbers. For a password, numbers
    count, too.
    """
    return any(form.search(value) for form in _IN_VARIABLE) or any(
        map(_is_given, _GIVEN.finditer(value))
    )


def _is_given(match: re.Match[str]) -> bool:
    name = match["option"] or match["name"]
    value = match["value"]
    if not _is_for_secret(name) or _PLACEHOLDER.match(value) or value.startswith(("/", "-")):
        return False
    return _NUMBER.fullmatch(value) is None or _PASSWORD_NAME.search(_upper(name)) is not None


def is_secret_name(name: str) -> bool:
    return name not in _KEPT and _NAME.search(_upper(name)) is not None


def remove_secrets(text: str) -> str:
    """Return a text in which every detected secret is replaced by ``[redacted]``."""
    found = find_secrets(text)
    if not found:
        return text
    pieces: list[str] = []
    end = 0
    for secret in found:
        pieces += (text[end : secret.start], REMOVED)
        end = secret.end
    return "".join([*pieces, text[end:]])


def _found(text: str) -> Iterator[Secret]:
    if len(text) >= 8:
        yield from _plain(text)
        yield from _wrapped(text)


def _seed_phrases(text: str) -> Iterator[Secret]:
    for match in _SEED_LINE.finditer(text):
        words = match[1].split(" ")
        if len(words) in _SEED_LENGTHS and _seed_words().issuperset(words):
            yield Secret(*match.span(1), is_key=True)


@lru_cache(maxsize=1)
def _seed_words() -> frozenset[str]:
    """Return the words that the seed phrases of wallets consist of (BIP 39, in English)."""
    return frozenset(Path(__file__).with_name("seed_words.txt").read_text(encoding="ascii").split())


def _plain(text: str) -> Iterator[Secret]:
    yield from _private_keys(text)
    for rule in dict.fromkeys(rule for trace, rule in _BY_TRACE if trace in text):
        for match in _compiled(rule.pattern).finditer(text):
            found = match[match.re.groups]
            mixed = not rule.random or _is_mixed(found.removeprefix(rule.traces[0]))
            is_long = sum(map(len, re.split(_BREAK, found, maxsplit=1))) >= rule.fewest
            if is_long and mixed and not _is_removed(found) and not _PLACEHOLDER.match(found):
                yield Secret(*match.span(match.re.groups))
    yield from _seed_phrases(text)
    yield from _named(text)


# -- values named as secrets


def _named(text: str) -> Iterator[Secret]:
    whole = text.lower()
    if not any(word in whole for word in _TELLING):
        return
    for start, line in _pieces(text):
        lower = line.lower()
        if any(word in lower for word in _TELLING):
            for first, last in (*_cookies(line), *_assigned(line)):
                if not _is_removed(line[first:last]):
                    yield Secret(start + first, start + last)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a text with its offset. Long lines are split into overlapping pieces."""
    at = 0
    for line in text.split("\n"):
        for piece in range(0, len(line), _MAX_LINE_CHARS):
            begin = max(0, piece - _OVERLAP)
            yield at + begin, line[begin : piece + _MAX_LINE_CHARS + _OVERLAP]
        at += len(line) + 1


def _cookies(line: str) -> Iterator[tuple[int, int]]:
    for match in _COOKIES.finditer(line):
        pairs = list(_PAIR.finditer(line, *match.span(2)))
        for pair in pairs[:1] if match[1] else pairs:
            if len(pair[2]) >= 8 and not _PLACEHOLDER.match(pair[2]):
                yield pair.span(2)


def _assigned(line: str) -> Iterator[tuple[int, int]]:
    at = 0
    while match := _ASSIGNED.search(line, at):
        group = "plain" if match["plain"] is not None else "quoted"
        at = match.end("sign")
        # If the value is not a secret, it may itself be an assignment, so search it, too.
        if _is_for_secret(match["name"]) and (
            _is_value(match, group, line) or _is_setting(match, group, line)
        ):
            yield match.span(group)
            at = match.end(group)


@lru_cache(maxsize=4_096)
def _is_for_secret(name: str) -> bool:
    """Return True if a name is that of a secret, not of a fact about one, such as its length."""
    # In a dotted name only the last parts count, so that ``Token.Comment`` is not a secret.
    parts = name.split(".")
    last = _upper("_".join(parts[-1:] if name[0].isupper() else parts[-2:]))
    if _ABOUT.search(last) or last.endswith("TOKENS"):
        return False
    return name not in _KEPT and _NAME.search(last) is not None


def _is_value(match: re.Match[str], group: str, line: str) -> bool:  # noqa: PLR0911 - one test after the other
    """Return True if the value assigned to a secret's name is itself a secret.

    Returns False for code, placeholders and prose.
    """
    name = match["name"]
    sign = match["sign"]
    value = match[group]
    rest = line[match.end(group) :]
    # An assignment counts as one of an environment variable if its name is in upper case and no
    # spaces are around the sign, unlike in most code.
    is_variable = name.isupper() and sign.strip() == sign
    is_password = _PASSWORD_NAME.search(_upper(name)) is not None
    if _PLACEHOLDER.match(value) or _is_removed(value):
        return False
    if _NUMBER.fullmatch(value):
        return value.isdigit() and is_password
    if group == "quoted" and (" " in value or "\t" in value):
        words = len(value.split()) if not re.search(r"[.,:;!?()<>{}=]", value) else 0
        sentence = is_password and match["mark"] is not None and words in range(2, 9)
        return (words > 0 or _is_mixed(value)) if is_variable else sentence
    if group == "quoted":
        if is_variable or not _IDENTIFIER.fullmatch(value) or _is_mixed(value):
            return is_variable or (
                len(value) >= 6 and "{" not in value and not value.startswith("/")
            )
        return match["mark"] is not None and len(value) >= 6 and value.lower() not in name.lower()
    value = value.rstrip(".:")
    if rest[:1] in {"(", "[", "{", "<"} or _TYPES.fullmatch(value):
        return False
    if not _IDENTIFIER.fullmatch(value):
        return _is_mixed(value) or is_password or is_variable
    if _is_jumbled(value):
        return True
    # If the line may be code, a single word doesn't count as a value, because it may be an
    # identifier.
    if value.lower() in name.lower() or rest[:1] in {",", ")", "]"}:
        return False
    if not line.strip().startswith(name) or rest.strip() or len(value) < 6:
        return is_variable and "=" in sign
    likely = is_password or _is_mixed(value)
    if "=" in sign:
        return is_variable or (sign.strip() == sign and likely)
    annotation = value[:1].isupper() and not any(map(str.isdigit, value))
    return not annotation and sign.endswith(" ") and (likely or "-" in name)


def _is_setting(match: re.Match[str], group: str, line: str) -> bool:
    """Return True if a value is a secret because it is in an option or in a list of settings.

    An example of such a list is ``host=db password=…``.
    """
    value = match[group]
    rest = line[match.end(group) :]
    start = match.start("name")
    if match["sign"] != "=" or len(value) < _FEWEST_IN_SETTING or rest[:1] in {"(", "[", ","}:
        return False
    if _PLACEHOLDER.match(value) or _is_removed(value) or value.startswith("/"):
        return False
    before = line[max(0, start - _BESIDE_CHARS) : start]
    if _OPTION.search(before):
        return True
    is_listed = (_PAIR_BEFORE.search(before) or _PAIR_AFTER.match(rest)) is not None
    return is_listed and (
        _is_mixed(value) or _PASSWORD_NAME.search(_upper(match["name"])) is not None
    )


# -- wrapped secrets


def _private_keys(text: str) -> Iterator[Secret]:
    if "PRIVATE KEY" in text:
        for match in _PEM.finditer(text):
            yield from _block(text, match.end())
        for match in _PEM_END.finditer(text):
            start = end = match.start()
            # Search upwards line by line, because text that looks like a key may have thousands of
            # lines.
            while start and _CUT_OFF.fullmatch(
                text, above := text.rfind("\n", 0, start - 1) + 1, start
            ):
                start = above
            if start < end:
                yield Secret(start, end, is_key=True)
    if "Private-Lines" in text:
        for match in _PUTTY.finditer(text):
            yield Secret(*match.span(1), is_key=True)


def _block(text: str, start: int) -> Iterator[Secret]:
    """Yield the body of a private key whose BEGIN line ends at ``start``; nothing if the body is gone.

    The body ends before the END line or, without one, after the last line that looks like a key.
    """
    first = _LINE_BREAK.match(text, start)
    if first is None:
        return
    another = _PEM.search(text, start, start + _MAX_KEY_CHARS)
    end = _PEM_END.search(
        text, start, another.start() if another is not None else start + _MAX_KEY_CHARS
    )
    if end is not None:
        if text[first.end() : end.start()].strip(" \t\r\n") not in {"", REMOVED}:
            yield Secret(first.end(), end.start(), is_key=True)
        return
    lines = _KEY_LINES.match(text, first.end())
    if lines is not None and len(lines[0].strip()) >= 8:
        yield Secret(first.end(), first.end() + len(lines[0].rstrip()), is_key=True)


def _wrapped(text: str) -> Iterator[Secret]:
    """Yield pieces of base64 that encode a secret, and Amazon's secret keys.

    An Amazon key can consist of any 40 random characters.
    """
    for match in _LONG.finditer(text):
        is_amazons = match.end() - match.start() == 40 and _is_random(match[0])
        if is_amazons or any(_plain(_decoded("".join(match[0].split())))):
            yield Secret(*match.span())


def _decoded(text: str) -> str:
    """Return the text that a piece of base64 encodes; "" if that text is not printable ASCII."""
    text = text[:_MAX_BASE64_CHARS].rstrip("=")
    text = text[: len(text) - (len(text) % 4 == 1)]
    try:
        data = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
        decoded = data.decode("ascii")
    except (binascii.Error, ValueError):
        return ""
    if all(character.isprintable() or character in "\r\n\t" for character in decoded):
        return decoded
    return ""


# -- forms of values


def _upper(name: str) -> str:
    """Return a name in the form of an environment variable.

    For example, returns ``API_KEY`` for ``apiKey`` and ``api-key``.
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[.\-]", "_", parted).upper()


def _is_removed(text: str) -> bool:
    return "[redacted" in text


def _is_mixed(text: str) -> bool:
    """Return True if a text mixes letters with digits, or upper and lower case as no word does."""
    if any(map(str.isdigit, text)):
        return any(map(str.isalpha, text))
    return re.search("[a-z][A-Z].*[A-Z]|[A-Z][a-z].*[a-z][A-Z]", text) is not None


def _is_jumbled(text: str) -> bool:
    """Return True if lower case, upper case and digits alternate more often than in any name."""
    kinds = [_kind_of(char, other="_" if char == "_" else "0") for char in text]
    if len(text) < 12 or kinds.count("0") <= 2:
        return False
    return _changes(kinds) * 3 >= len(text)


def _is_random(text: str) -> bool:
    """Return True if a text of 40 characters looks like a random key, not like a path or a name."""
    if "_" in text or "-" in text:
        return False
    if not all(re.search(kind, text) for kind in ("[a-z]", "[A-Z]", "[0-9]")):
        return False
    kinds = [_kind_of(char, other="0" if char.isdigit() else "/") for char in text]
    return _changes(kinds) >= 12 and len(set(text)) >= 18


def _changes(kinds: list[str]) -> int:
    """Return how often the kind of character changes between adjacent characters."""
    return sum(first != second for first, second in pairwise(kinds))


def _kind_of(char: str, *, other: str) -> str:
    """Return "a" for a lower-case letter, "A" for an upper-case one, otherwise ``other``."""
    if char.islower():
        return "a"
    return "A" if char.isupper() else other


def remove_known(text: str, secrets: Iterable[str]) -> str:
    """Return a text with the given secrets replaced by ``[redacted]``.

    Secrets of fewer than 6 characters are not replaced, because they may be parts of ordinary
    words.
    """
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, REMOVED)
    return text
