"""Decides which addresses commands may connect to: public ones, and private ones of the settings.

The proxy (``network``) applies this to every connection, after asking the user about the host.

Names that only this machine or its local network can resolve are looked up before the user is
asked. For any other name the question comes first, because a look-up alone can send data to a
stranger's server.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tui_agent.web.addresses import is_allowed, matches_host
from tui_agent.word_lists import listed

_LOCAL_ENDS = listed(
    """
    corp home internal intranet invalid lan local localdomain localhost mail private test example
    """
)
"""Top-level domains that don't exist on the internet (RFC 2606, RFC 6762, reserved by ICANN)."""
_LOCAL_SUFFIXES = (".home.arpa", ".in-addr.arpa", ".ip6.arpa")
_HOSTS = Path("/etc/hosts")
_RESOLVER = Path("/etc/resolv.conf")
_MAX_CHARS = 1_000_000

PRIVATE = (
    "Commands can't reach {host}: it is on this machine or in a private network. To allow that, "
    "the user can add the host to [sandbox] hosts in config.toml."
)


class PrivateHosts:
    """The private hosts and networks to which the settings let commands connect.

    ``entries`` are the entries of ``[sandbox] hosts``, such as ``npm.corp``, ``*.corp`` or
    ``10.1.2.0/24``.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries = frozenset(entries)

    def names(self, host: str) -> bool:
        """Return True if an entry of the settings names the host.

        For an IP address, an entry may also name the address's network.
        """
        return any(matches_host(host, entry) for entry in self._entries)

    def reaches(self, address: str, host: str) -> bool:
        """Return True if commands may connect to ``address``, which the name ``host`` resolved to.

        Public addresses are allowed; private ones only if an entry names the host or the address's
        network. False for a text that isn't an IP address.
        """
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return is_allowed(found, host, self._entries)


def is_local_name(host: str) -> bool:
    """Return True if only this machine or its local network can resolve a host name.

    That is so for names without a dot, names with a local ending such as ``.lan``, and names in
    ``/etc/hosts`` or in one of the resolver's search domains.
    """
    plain = host.lower()
    is_short = "." not in plain
    if is_short or plain.rpartition(".")[2] in _LOCAL_ENDS or plain.endswith(_LOCAL_SUFFIXES):
        return True
    return plain in _listed_hosts() or plain.endswith(_searched_domains())


@lru_cache(maxsize=1)
def _listed_hosts() -> frozenset[str]:
    names = set[str]()
    for line in _lines(_HOSTS):
        names.update(line.partition("#")[0].lower().split()[1:])
    return frozenset(names)


@lru_cache(maxsize=1)
def _searched_domains() -> tuple[str, ...]:
    """Return the search domains in ``/etc/resolv.conf``, each with a leading dot."""
    ends = []
    for line in _lines(_RESOLVER):
        first, *names = line.split() or [""]
        for name in names:
            plain = name.strip(".").lower()
            if plain and first in {"search", "domain"}:
                ends.append(f".{plain}")
    return tuple(ends)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:_MAX_CHARS].splitlines()
    except OSError:
        return []
