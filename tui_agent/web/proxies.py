"""Reads the environment's proxy variables, and finds the proxy for a URL.

Invalid values raise no error: they are ignored, with a message in `Proxies.problems`. ``NO_PROXY``
may have the syntax of curl, requests, Go or desktops: domains (which include their subdomains),
``*``, addresses, networks, ports and brackets.
"""

import ipaddress
import re
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.util import find_spec
from urllib.parse import SplitResult, quote, unquote, urlsplit

from tui_agent.lazy import LazyPattern, frozen

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_SCHEMES = {
    "http": "http",
    "https": "https",
    "socks": "socks5",
    "socks5": "socks5",
    "socks5h": "socks5h",
}
"""Schemes that a proxy's URL may have, each with the scheme that is used to connect. Desktops write
``socks`` for SOCKS 5."""
_HOST = LazyPattern(r"[a-z0-9_]([a-z0-9_.-]{0,252}[a-z0-9_.])?")
_PATTERN = LazyPattern(r"<local>|[a-z0-9_.*?-]+")
_PORTS = {"http": 80, "https": 443}
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_MAX_SHOWN_CHARS = 80
"""Maximum characters of a variable's value that a message shows."""


@frozen
class Exempt:
    """Hosts that are reached without a proxy, from one entry of ``NO_PROXY``.

    These hosts are the addresses in ``network`` or, if ``network`` is None, the names that
    ``pattern`` matches, with their subdomains (``<local>`` matches names without a dot). ``scheme``
    and ``port`` restrict the entry unless they are None.
    """

    pattern: str = ""
    network: IpNetwork | None = None
    scheme: str | None = None
    port: int | None = None

    def covers(self, scheme: str, host: str, port: int) -> bool:
        """Return True if the entry exempts connections to this host and port with this scheme."""
        if self.scheme not in {None, scheme} or self.port not in {None, port}:
            return False
        if self.network is not None:
            address = _address(host)
            return (
                address is not None
                and address.version == self.network.version
                and address in self.network
            )
        if self.pattern == "<local>":
            return "." not in host and ":" not in host
        return fnmatchcase(host, self.pattern) or fnmatchcase(host, f"*.{self.pattern}")

    def portable(self) -> str:
        """Return the entry in a form that all libraries understand; "" if there is no such form.

        The form contains no scheme and, for a single IP address, no port.
        """
        if self.network is not None and self.network.num_addresses == 1:
            return str(self.network.network_address)
        text = self.pattern if self.network is None else str(self.network)
        if set(text) & set("<?:") or "*" in text[1:]:
            return ""
        if self.port is None:
            return text
        return f"{text}:{self.port}"


@frozen
class Proxies:
    """The URLs of the proxies by scheme ("http", "https"), and the hosts reached without a proxy.

    ``problems`` contains a message for the user about each invalid value that was ignored.
    """

    by_scheme: Mapping[str, str]
    exempt: tuple[Exempt, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, url: str) -> str | None:
        """Return the URL of the proxy for a URL; None for a direct connection.

        This machine is always reached directly.
        """
        parts = _split(url)
        if parts is None:
            return None
        scheme = parts.scheme.lower()
        host = _normal_host(parts.hostname or "")
        proxy = self.by_scheme.get(scheme)
        if proxy is None or _is_this_machine(host):
            return None
        port = parts.port or _PORTS[scheme]
        if any(row.covers(scheme, host, port) for row in self.exempt):
            return None
        return proxy

    def variables(self) -> dict[str, str]:
        """Return proxy variables for child processes, in lower and upper case.

        Returns {} if there are no proxies. ``NO_PROXY`` contains only the entries that every
        library understands.
        """
        if not self.by_scheme:
            return {}
        exempt = [*_THIS_MACHINE, *(row.portable() for row in self.exempt)]
        named = {"no_proxy": ",".join(filter(None, exempt))}
        for scheme, proxy in self.by_scheme.items():
            named[f"{scheme}_proxy"] = proxy
        return named | {name.upper(): value for name, value in named.items()}


def read_proxies(environ: Mapping[str, str]) -> Proxies:
    """Return the proxies that an environment's variables name.

    On macOS, the system's proxies are returned if the environment names none.
    """
    named: dict[str, str] = {}
    for name in ("http", "https", "all"):
        if value := _variable(environ, f"{name}_proxy"):
            named[name] = value
    if "REQUEST_METHOD" in environ and not environ.get("http_proxy"):
        named.pop("http", None)  # in CGI programs, the visitor's Proxy header sets this (httpoxy)
    excepted = _variable(environ, "no_proxy")
    if not named and sys.platform == "darwin":
        named, excepted = _system_proxies()
    if not named:
        return Proxies({})
    problems: list[str] = []
    usable: dict[str, str] = {}
    for scheme, value in named.items():
        if proxy := _normalised(f"{scheme.upper()}_PROXY", value, problems):
            usable[scheme] = proxy
    by_scheme: dict[str, str] = {}
    for scheme in _PORTS:
        if proxy := usable.get(scheme) or usable.get("all"):
            by_scheme[scheme] = proxy
    exempt: list[Exempt] = []
    for entry in re.split(r"[,\s]+", excepted):
        if entry and (row := _exempt(entry, problems)):
            exempt.append(row)
    return Proxies(by_scheme, tuple(exempt), tuple(problems))


def _variable(environ: Mapping[str, str], name: str) -> str:
    """Return a variable's value without spaces and quotes around it, "" if it is not set.

    ``name`` is in lower case; the upper-case variable counts only if the lower-case one is not set.
    """
    return environ.get(name, environ.get(name.upper(), "")).strip().strip("'\"").strip()


def _system_proxies() -> tuple[dict[str, str], str]:
    """Return the system's proxies by "http", "https" and "all", and its hosts without a proxy."""
    import urllib.request

    found = urllib.request.getproxies()
    socks = {}
    if "://" in found.get("socks", ""):
        socks = {"all": f"socks5://{found['socks'].partition('://')[2]}"}
    named = {name: found[name] for name in ("http", "https") if found.get(name)}
    return socks | named, found.get("no", "")


def _normalised(name: str, value: str, problems: list[str]) -> str | None:
    """Return the normalised URL of a proxy, given the value of the variable ``name``.

    If it can't be used, adds a message to ``problems`` and returns None.
    """
    parts = _split(value if "://" in value else f"http://{value}")
    scheme = None
    host = ""
    if parts:
        scheme = _SCHEMES.get(parts.scheme.lower())
        host = _normal_host(parts.hostname or "")
    if parts is None or scheme is None or not (_HOST.fullmatch(host) or _address(host)):
        problems.append(f"{name} is ignored: “{_shown(value)}” is not an HTTP or SOCKS 5 proxy.")
        return None
    if scheme.startswith("socks") and find_spec("socksio") is None:
        problems.append(
            f"{name} is ignored: a SOCKS proxy needs the package socksio ({sys.executable} -m pip install socksio)."
        )
        return None
    words: list[str] = []
    for word in (parts.username, parts.password):
        if word is not None:
            words.append(quote(unquote(word), safe="", errors="surrogateescape"))
    place = f"[{host}]" if ":" in host else host
    if login := ":".join(words):
        place = f"{login}@{place}"
    if parts.port:
        place = f"{place}:{parts.port}"
    return f"{scheme}://{place}"


def _exempt(entry: str, problems: list[str]) -> Exempt | None:
    """Parse an entry of ``NO_PROXY``.

    If it is invalid, adds a message to ``problems`` and returns None.
    """
    scheme, separator, rest = entry.lower().rpartition("://")
    place, port = _without_port(rest)
    name = _normal_host(place)
    try:
        network = ipaddress.ip_network(name, strict=False)
    except ValueError:
        network = None
    if (separator and scheme not in {*_PORTS, "all"}) or (
        network is None and not _PATTERN.fullmatch(name)
    ):
        problems.append(
            f"NO_PROXY: “{_shown(entry)}” is ignored, because it is not a host, address or network."
        )
        return None
    pattern = name.lstrip(".").removeprefix("*.") or "*"
    return Exempt(pattern, network, None if scheme in {"", "all"} else scheme, port)


def _without_port(text: str) -> tuple[str, int | None]:
    """Split ``host:port`` into host and port. The port is None if the text contains none.

    An IPv6 address can have a port only if the address is in brackets.
    """
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*):([0-9]{1,5})", text)
    if found:
        return (found[1], int(found[2]))
    return (text, None)


def _normal_host(host: str) -> str:
    """Return a host in lower case without brackets, zone and final dot, in ASCII if possible."""
    host = re.sub(r"%[^/]*", "", re.sub(r"[\[\]]", "", host)).lower().rstrip(".")
    try:
        if host.isascii():
            return host
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_this_machine(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if it is malformed or its port is 0."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def _shown(value: str) -> str:
    """Return a variable's value as messages show it: without user and password, and cut if long."""
    hidden = re.sub(
        r"(?<=//)[^/]*@", "…@", value if "://" in value else re.sub(r"^.*@", "…@", value)
    )
    if len(hidden) <= _MAX_SHOWN_CHARS:
        return hidden
    return f"{hidden[:_MAX_SHOWN_CHARS]}…"
