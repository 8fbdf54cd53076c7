"""Parses URLs strictly, and distinguishes public IP addresses from private and local ones. Pure."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote, urljoin, urlsplit

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern, frozen

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL_CHARS = 8_000

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = LazyPattern(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_UNSAFE = LazyPattern(r"[\x00-\x20\x7f\\\ud800-\udfff]")
_KEPT = "%/?#[]@!$&'()*+,;=:~-._"

_IPV4_INSIDE = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""IPv6 networks whose addresses embed an IPv4 address in the last 32 bits: NAT64 (RFC 6052),
IPv4-translated (RFC 2765), IPv4-compatible (RFC 4291)."""
_LOCAL = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "fec0::/10")))
"""Local-use NAT64 (RFC 8215) and site-local addresses (RFC 3879), which Python may call global."""
_METADATA = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
"""Networks of metadata services (Azure, Oracle), which give a machine its secrets. Python may call
their addresses public."""


@frozen
class WebAddress:
    """A parsed http or https URL without fragment; ``host`` is in lower case and ASCII."""

    scheme: str
    host: str
    port: int
    target: str
    """The URL's path and query, percent-encoded, as sent in the request."""

    @property
    def netloc(self) -> str:
        """The host (in brackets for an IPv6 address), and the port unless it is the default."""
        if ":" in self.host:
            host = f"[{self.host}]"
        else:
            host = self.host
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.target}"


def read_address(text: str) -> WebAddress:
    """Parse an http or https URL; https is assumed if there is no scheme.

    Raises ToolError, with a message for the model, if the text is not such a URL, is too long, names
    a user, or contains a space, a backslash or a control character.
    """
    plain = text.strip()
    if "://" not in plain and re.match(r"[\w.-]+(:\d+)?(/|$)", plain):
        plain = f"https://{plain}"
    if len(plain) > MAX_URL_CHARS:
        raise ToolError(f"The URL has more than {MAX_URL_CHARS:,} characters.")
    if _UNSAFE.search(plain):
        raise ToolError(
            "The URL contains a space, a backslash or a character that isn't text; encode it with %."
        )
    try:
        parts = urlsplit(plain)
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{plain[:200]} is not a URL: {error}.") from None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise ToolError("Only http and https URLs can be read; use the read tool for files.")
    if "@" in parts.netloc:
        raise ToolError("The URL names a user or password; leave them out.")
    target = quote(parts.path or "/", safe=_KEPT) + (
        f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    )
    return WebAddress(scheme, _host(parts.hostname or ""), port or _DEFAULT_PORTS[scheme], target)


def redirected(address: WebAddress, location: str) -> WebAddress:
    """Return the address that a redirect from ``address`` leads to.

    ``location`` is the value of the header, perhaps relative. Raises ToolError as `read_address`
    does.
    """
    return read_address(urljoin(str(address), quote(location.strip(), safe=_KEPT)))


def same_site(before: WebAddress, after: WebAddress) -> bool:
    """Return True if a redirect stays on the same host and port.

    ``example.org`` and ``www.example.org`` count as the same host. A change from http on port 80 to
    https on port 443 counts as staying.
    """
    bare = before.host.removeprefix("www."), after.host.removeprefix("www.")
    upgraded = before
    if before.port == 80:
        upgraded = replace(before, scheme="https", port=443)
    ports = {(before.scheme, before.port), (upgraded.scheme, upgraded.port)}
    return bare[0] == bare[1] and (after.scheme, after.port) in ports


def is_public(address: IpAddress) -> bool:
    """Return True if an IP address is public, that is, global and not a multicast or metadata one.

    For an IPv6 address that embeds an IPv4 address, the IPv4 address is judged.
    """
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    for network in (*_METADATA, *_LOCAL):
        if address.version == network.version and address in network:
            return False
    return address.is_global and not address.is_multicast


def is_allowed(address: IpAddress, host: str, allowed: Iterable[str]) -> bool:
    """Return True if it is allowed to connect to an IP address that was found for ``host``.

    It is allowed if the address is public, or if ``allowed`` contains the host's name, its domain
    or the address's network.
    """
    if is_public(address):
        return True
    plain = _embedded(address) or address
    return any(matches_host(host, entry) or _within(plain, entry) for entry in allowed)


def matches_host(host: str, entry: str) -> bool:
    """Return True if an entry of a setting matches a host.

    An entry is a host name, a domain (``*.corp``) or a network. A network matches only a host that
    is given as an IP address.
    """
    if entry == host or (entry.startswith("*.") and host.endswith(entry[1:])):
        return True
    try:
        return _within(ipaddress.ip_address(host), entry)
    except ValueError:
        return False


def _host(host: str) -> str:
    """Return a URL's host in normal form.

    Raises ToolError if it isn't a host name or an IP address.
    """
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host).compressed
        except ValueError:
            raise ToolError(f"[{host}] is not an address.") from None
    plain = host.rstrip(".").lower()
    if not plain.isascii():
        try:
            plain = plain.encode("idna").decode("ascii")
        except UnicodeError:
            raise ToolError(f"{host} is not a host name.") from None
    labels = plain.split(".")
    if not plain or len(plain) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise ToolError(f"{host} is not a host name." if host else "The URL has no host.")
    return plain


def _embedded(address: IpAddress) -> IpAddress | None:
    """Return the IPv4 address embedded in an IPv6 address; None if there is none."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if any(address in network for network in _IPV4_INSIDE) and not (
        address.is_loopback or address.is_unspecified
    ):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour


def _within(address: IpAddress, entry: str) -> bool:
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    return address.version == network.version and address in network
