"""Masks credentials: commands see placeholders, and the proxy inserts the values for some hosts.

A placeholder is as long as its value. So if an answer repeats the value, the proxy can replace it
without changing the answer's length.
"""

import base64
import binascii
import os
import secrets
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tui_agent.files.inside import read_regular
from tui_agent.files.secret_files import MAX_BYTES
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_file
from tui_agent.web.addresses import matches_host

MIN_BYTES = 8
"""Minimum size of a masked value, in bytes. Shorter values could occur in unrelated texts."""

PLAIN = "http://"
"""Prefix, in the settings, of a host that may also receive the value without encryption."""

_VARIABLE = LazyPattern(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTERS = string.ascii_lowercase + string.digits
_MARK = "masked"
_SHORT_MARK = "mk"
_UNCOMPRESSED = ("Accept-Encoding", ":", " identity")

Field = tuple[str, str, str]
"""A header field of a request: its name, a colon, and the value with its leading space."""


@frozen
class Mask:
    """A masked value, the placeholder that commands see, and the hosts that receive the value.

    ``name`` is the variable or file that the value comes from.
    """

    name: str
    value: str
    placeholder: str
    hosts: tuple[str, ...]

    def is_for(self, host: str, *, encrypted: bool) -> bool:
        for entry in self.hosts:
            may_be_sent = encrypted or entry.startswith(PLAIN)
            if may_be_sent and matches_host(host, entry.removeprefix(PLAIN)):
                return True
        return False


class Masks:
    """The credentials that the settings mask, in environment variables and files.

    ``settings`` maps the name of a variable, or a path, to the hosts that receive the value. A
    value's placeholder stays the same as long as the object exists. The object is falsy if
    ``settings`` is empty.
    """

    def __init__(
        self, settings: Mapping[str, Sequence[str]], environ: Mapping[str, str], home: Path
    ) -> None:
        self._settings = {name: tuple(hosts) for name, hosts in settings.items()}
        self._environ = environ
        self._home = home
        self._masks: dict[tuple[str, str], Mask] = {}
        self._told = set[str]()

    def __bool__(self) -> bool:
        return bool(self._settings)

    def of_variables(self) -> dict[str, str]:
        """Return the masked variables whose values are long enough, each with its placeholder."""
        found = {}
        for name in self._settings:
            mask = None
            if _VARIABLE.fullmatch(name):
                mask = self._mask(name, self._environ.get(name, ""))
            if mask is not None:
                found[name] = mask.placeholder
        return found

    def of_files(self, root: Path) -> dict[Path, str]:
        """Read the existing masked files, and return each with its text as commands see it.

        Relative paths in the settings are relative to ``root``. If a path outside ``root`` is a
        link, the file appears both at that path and at the link's target.
        """
        found = {}
        for name in self._settings:
            if _VARIABLE.fullmatch(name):
                continue
            path = root / os.path.expandvars(name)
            if name.startswith("~/"):
                path = self._home / name[2:]
            place = Path(os.path.realpath(path))
            if is_file(place):
                data = read_regular(place, MAX_BYTES) or b""
                found[place] = self._masked(name, data.decode("utf-8", "surrogateescape"))
            if place in found and not path.is_relative_to(root):
                # Replace the link itself, too, because commands might not see the link's target.
                found[path] = found[place]
        return found

    def for_host(self, host: str, *, encrypted: bool) -> list[Mask]:
        """Return the masks (credentials with placeholders) whose values may be sent to a host.

        ``encrypted`` says whether the connection to the host is encrypted.
        """
        masks = tuple(self._masks.values())
        return [mask for mask in masks if mask.is_for(host, encrypted=encrypted)]

    def intercepts(self, host: str) -> bool:
        """Return True if the proxy decrypts connections to a host so that it can insert values."""
        return bool(self.for_host(host, encrypted=True))

    def note(self, command: str, output: str, *, failed: bool) -> str:
        """Return a note for the model on masked credentials that a command names or prints.

        "" if there are no such credentials, or if the command succeeded and all of them were in
        earlier notes.
        """
        rows = {}
        for mask in self._masks.values():
            if mask.name in command or mask.placeholder in output:
                hosts = ", ".join(mask.hosts) or "no host"
                rows[mask.name] = f"{mask.name} (for {hosts})"
        if not rows or (not failed and rows.keys() <= self._told):
            return ""
        self._told |= rows.keys()
        return (
            f"[Masked: {'; '.join(rows.values())}. Commands see a placeholder; the sandbox puts the "
            "value into header fields of requests to these hosts.]"
        )

    def described(self) -> list[str]:
        """Return a line for the user for each masked name, with its hosts.

        The line of a variable that isn't set ends with ``not set``.
        """
        rows = []
        for name, hosts in self._settings.items():
            rows.append(f"{name} ({', '.join(hosts) or 'no host'})")
            if _VARIABLE.fullmatch(name) and name not in self._environ:
                rows[-1] += ", not set"
        return rows

    def _mask(self, name: str, value: str) -> Mask | None:
        """Return the mask for a value, created on first use; None if the value is too short."""
        size = len(value.encode("utf-8", "surrogateescape"))
        if size < MIN_BYTES:
            return None
        if (name, value) not in self._masks:
            hosts = self._settings[name]
            self._masks[name, value] = Mask(name, value, _placeholder(size), hosts)
        return self._masks[name, value]

    def _masked(self, name: str, text: str) -> str:
        """Return the text of a file with placeholders for its secrets.

        If no secrets are found, one placeholder replaces the whole text. Secrets that are too short
        for a placeholder are removed.
        """
        from tui_agent.secret_detector import find_secrets

        spans = [(secret.start, secret.end) for secret in find_secrets(text)]
        whole = text.strip()
        if not spans and whole:
            start = text.index(whole)
            spans = [(start, start + len(whole))]
        pieces = []
        end = 0
        for start, stop in spans:
            mask = self._mask(name, text[start:stop])
            pieces += [text[end:start], "" if mask is None else mask.placeholder]
            end = stop
        return "".join([*pieces, text[end:]])


def _placeholder(size: int) -> str:
    mark = _MARK
    if size < 2 * len(_MARK):
        mark = _SHORT_MARK
    return mark + "".join(secrets.choice(_LETTERS) for _ in range(size - len(mark)))


def with_values(
    fields: Iterable[Field], masks: Iterable[Mask]
) -> tuple[list[Field], dict[bytes, bytes]]:
    """Replace placeholders in header fields with their values, also in HTTP basic authentication.

    Returns the fields, and a mapping of the bytes to replace in the answer to their replacements.
    The mapping is {} if no field had a placeholder; otherwise the fields ask for an uncompressed
    answer.
    """
    # Leave out values with a line break, because the text after it would be another field.
    masks = [mask for mask in masks if mask.value.isprintable()]
    found = []
    hidden: dict[bytes, bytes] = {}
    for name, colon, before in fields:
        after = before
        for mask in masks:
            after = after.replace(mask.placeholder, _on_the_wire(mask.value))
        if after == before and name.lower() == "authorization":
            after = _basic_with_values(before, masks)
        if after != before and _is_basic(after):
            hidden[after.split()[-1].encode("latin-1")] = before.split()[-1].encode("latin-1")
        found.append((name, colon, after))
    if found == list(fields):
        return found, {}
    hidden |= {_bytes_of(mask.value): mask.placeholder.encode() for mask in masks}
    # Ask for an uncompressed answer, because a compressed one can't be searched for the values.
    plain = [field for field in found if field[0].lower() != "accept-encoding"]
    return [*plain, _UNCOMPRESSED], hidden


def _is_basic(text: str) -> bool:
    return text.strip().lower().startswith("basic ")


def _basic_with_values(text: str, masks: Sequence[Mask]) -> str:
    if not _is_basic(text):
        return text
    scheme, _, coded = text.strip().partition(" ")
    try:
        plain = base64.b64decode(coded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return text
    put_in = plain
    for mask in masks:
        put_in = put_in.replace(mask.placeholder.encode(), _bytes_of(mask.value))
    if put_in == plain:
        return text
    return f" {scheme} {base64.b64encode(put_in).decode()}"


def _bytes_of(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _on_the_wire(value: str) -> str:
    """Return a value's UTF-8 bytes as latin-1 text, the encoding in which headers are sent."""
    return _bytes_of(value).decode("latin-1")


class StreamRedactor:
    """Replaces secret bytes in a stream, even if they are split between two chunks.

    ``hidden`` maps the secret bytes to their replacements.
    """

    def __init__(self, hidden: Mapping[bytes, bytes]) -> None:
        self._hidden = hidden
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk and return the bytes that can be passed on; call it with b"" at the end.

        Bytes at the end that may be the beginning of a secret are held back.
        """
        text = self._held + chunk
        for value, stand_in in self._hidden.items():
            text = text.replace(value, stand_in)
        held = max((_begun(text, value) for value in self._hidden), default=0) if chunk else 0
        cut = len(text) - held
        self._held = text[cut:]
        return text[:cut]


def _begun(text: bytes, value: bytes) -> int:
    """Return how many bytes at the end of a text may be the beginning of ``value``."""
    most = min(len(value) - 1, len(text))
    return next((size for size in range(most, 0, -1) if text.endswith(value[:size])), 0)
