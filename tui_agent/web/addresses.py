"""Parses web addresses strictly, and recognises those of this machine or its network. Pure."""

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
_UNSAFE = LazyPattern(r"[\x00-\x20\x7f\\]")
_KEPT = "%/?#[]@!$&'()*+,;=:~-._"

_IPV4_INSIDE = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""Networks whose last 32 bits are an IPv4 address: NAT64 (RFC 6052), translated (RFC 2765),
compatible (RFC 4291)."""
_LOCAL = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "fec0::/10")))
"""NAT64 of a network's own (RFC 8215) and site-local addresses (RFC 3879), which Python may take
for global ones."""
_METADATA = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
"""Networks that answer with secrets of the asking machine (Azure, Oracle); Python may call them
public."""


@frozen
class WebAddress:
    """A parsed http or https URL without its fragment; ``host`` is lower case and ASCII."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as sent."""

    @property
    def netloc(self) -> str:
        """The host, with the port if it isn't the scheme's default."""
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
    """Parse a URL; without a scheme it is https.

    Raises ToolError if it is not an http or https URL, names a user, or is ambiguous.
    """
    plain = text.strip()
    if "://" not in plain and re.match(r"[\w.-]+(:\d+)?(/|$)", plain):
        plain = f"https://{plain}"
    if len(plain) > MAX_URL_CHARS:
        raise ToolError(f"The URL has more than {MAX_URL_CHARS:,} characters.")
    if _UNSAFE.search(plain):
        raise ToolError(
            "The URL holds a space, a backslash or a control character; encode it with %."
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
    """Return the address that a redirect leads to; raises as ``read_address``."""
    return read_address(urljoin(str(address), quote(location.strip(), safe=_KEPT)))


def same_site(before: WebAddress, after: WebAddress) -> bool:
    """Return True if a redirect keeps the host, ``www.`` ignored, and at most adds TLS."""
    bare = before.host.removeprefix("www."), after.host.removeprefix("www.")
    upgraded = before
    if before.port == 80:
        upgraded = replace(before, scheme="https", port=443)
    ports = {(before.scheme, before.port), (upgraded.scheme, upgraded.port)}
    return bare[0] == bare[1] and (after.scheme, after.port) in ports


def is_public(address: IpAddress) -> bool:
    """Return True for a public address, also if it is embedded in an IPv6 address."""
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    for network in (*_METADATA, *_LOCAL):
        if address.version == network.version and address in network:
            return False
    return address.is_global and not address.is_multicast


def is_allowed(address: IpAddress, host: str, allowed: Iterable[str]) -> bool:
    """Return True if a connection to ``address`` may be made for ``host``: public, or in ``allowed``.

    ``allowed`` names hosts and networks.
    """
    if is_public(address):
        return True
    plain = _embedded(address) or address
    return any(is_named(host, entry) or _within(plain, entry) for entry in allowed)


def is_named(host: str, entry: str) -> bool:
    """Return True if a setting names a host: by name, domain (``*.corp``), or network."""
    if entry == host or (entry.startswith("*.") and host.endswith(entry[1:])):
        return True
    try:
        return _within(ipaddress.ip_address(host), entry)
    except ValueError:
        return False


def _host(host: str) -> str:
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
        raise ToolError(f"{host or 'The URL without a host'} is not a host name.")
    return plain


def _embedded(address: IpAddress) -> IpAddress | None:
    """Return the IPv4 address embedded in an IPv6 address, None if there is none."""
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
