"""``tui-agent update``: finds out how the program was installed, and updates it in the same way.

The program never looks for newer versions except here, when the user runs this command.
"""

import hashlib
import re
import shlex
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from tui_agent.cli.output import ExitCode, say
from tui_agent.errors import UserFacingError
from tui_agent.json_text import as_dict, loads
from tui_agent.lazy import frozen
from tui_agent.processes.own_programs import find_program
from tui_agent.version import __version__

BUNDLE_FACTS = "tui-agent-bundle.json"
"""Name of the file in a bundle that contains its platform and the URL of its releases."""
CHECKSUMS = "SHA256SUMS"
"""Name of the file in a release that contains the names and SHA-256 digests of its bundles."""
MAX_BUNDLE_BYTES = 512 << 20
"""Maximum size of a download, in bytes."""
SILENCE = 30.0
"""Seconds without received data after which a download fails."""

_PACKAGE = "tui-agent"
_BUNDLE_ROW = re.compile(r"([0-9a-f]{64}) [ *](tui-agent-([0-9][\w.+]*)-([a-z]+-\w+)\.sh)")

_RELEASE = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_PRERELEASE = re.compile(r"[-_.]?(?:a|b|c|rc|alpha|beta|pre|dev)")
_DIGITS = re.compile(r"[0-9]{1,9}")

Way = Literal["bundle", "checkout", "uv", "pipx", "pip"]
"""Ways in which the program can be installed."""


class UpdateError(UserFacingError):
    """Raised if the program can't be updated; the message says what to do instead."""


@frozen
class Installation:
    """How the running program was installed.

    ``place`` is the directory of the installation. ``source`` is the file or URL from which it was
    installed, "" for the package index; for a bundle, it is the URL of the releases. ``machine`` is
    the platform of a bundle, such as linux-x86_64; "" otherwise.
    """

    way: Way
    place: Path
    source: str = ""
    machine: str = ""

    @property
    def sentence(self) -> str:
        """A description for the user, such as ``by pipx from /tmp/x.whl, in /opt/tui-agent``."""
        if self.way == "checkout":
            return f"a checkout, in {self.place}"
        if self.way == "bundle":
            return f"a bundle for {self.machine}, in {self.place}"
        if self.source:
            return f"by {self.way} from {self.source}, in {self.place}"
        return f"by {self.way}, in {self.place}"

    @property
    def is_from_file(self) -> bool:
        """True if the program was installed from a local file or directory."""
        return bool(self.source) and "://" not in self.source


def find_installation(prefix: Path, packages: Sequence[str]) -> Installation:
    """Return how the program was installed.

    ``prefix`` is the directory of its Python environment; ``packages`` are the directories to
    search for its package, such as `sys.path`.
    """
    if facts := _facts(prefix / BUNDLE_FACTS):
        releases = str(facts.get("releases", ""))
        return Installation("bundle", prefix, releases, machine=str(facts.get("platform", "")))
    found = next(iter(Distribution.discover(name=_PACKAGE, path=list(packages))), None)
    if found is None:
        return Installation("checkout", Path(__file__).resolve().parent.parent.parent)
    origin = as_dict(_json(found.read_text("direct_url.json") or ""))
    source = _source(origin)
    if as_dict(origin.get("dir_info")).get("editable"):
        return Installation("checkout", Path(source))
    way: Way = "pip"
    if (prefix / "uv-receipt.toml").is_file():
        way = "uv"
    elif (prefix / "pipx_metadata.json").is_file():
        way = "pipx"
    return Installation(way, prefix, source)


def running_installation() -> Installation:
    """Return how the running program was installed."""
    return find_installation(Path(sys.prefix), sys.path)


def run_update(_arguments: Namespace) -> int:
    """Update the program, or print how to update it; return the exit code.

    If an installer was run, the exit code is the installer's.

    Raises:
        UpdateError: the newest release can't be downloaded, the installer is not found, or open
            sessions prevent the update.
    """
    found = running_installation()
    say(f"tui-agent {__version__} is installed: {found.sentence}.")
    if found.way == "bundle":
        return _update_bundle(found)
    command = update_command(found)
    shown = shlex.join(command)
    if found.way == "checkout" or found.is_from_file:
        say(f"To update it: {shown}")
        return ExitCode.DONE
    program = find_program(command[0])
    if program is None:
        raise UpdateError(f"{command[0]} was not found in PATH. To update, run: {shown}")
    _refuse_open_sessions(shown)
    say(f"Running: {shown}")
    return subprocess.run((program, *command[1:]), check=False).returncode


def update_command(found: Installation) -> Sequence[str]:
    """Return the command line that updates an installation other than a bundle.

    If the program was installed from a file, the command ends with the placeholder ``NEWER.whl``.
    """
    if found.way == "checkout":
        return ("git", "-C", str(found.place), "pull")
    if found.is_from_file:
        again = {"uv": ("uv", "tool", "install", "--force"), "pipx": ("pipx", "install", "--force")}
        return (*again.get(found.way, _pip_install()), "NEWER.whl")
    if found.way == "pip":
        return (*_pip_install(), found.source or _PACKAGE)
    upgrade = {"uv": ("uv", "tool", "upgrade"), "pipx": ("pipx", "upgrade")}
    return (*upgrade[found.way], _PACKAGE)


def _pip_install() -> tuple[str, ...]:
    # Use uv, because an environment that uv created has no pip.
    if find_spec("pip") is None:
        return ("uv", "pip", "install", "--python", sys.executable, "--upgrade")
    # The options keep Python from running a pip.py in the working directory.
    return (sys.executable, "-E", "-P", "-m", "pip", "install", "--upgrade")


def _update_bundle(found: Installation) -> int:
    """Download the newest bundle, check its digest and install it; return the exit code.

    Does nothing if the installed version is the newest. If the bundle contains no URL of releases,
    only prints how to update.
    """
    installer = found.place.parent / "installer.sh"
    if not found.source:
        say(
            f"To update it, download the newer release and run: sh tui-agent-VERSION-{found.machine}.sh"
        )
        say(f"To remove it: sh {installer} --remove")
        return ExitCode.DONE
    latest = f"{found.source.rstrip('/')}/latest/download"
    say(f"Asking {latest} …")
    with tempfile.TemporaryDirectory(prefix="tui-agent-update-") as scratch:
        rows = _BUNDLE_ROW.findall(_download(f"{latest}/{CHECKSUMS}").decode("utf-8", "replace"))
        row = next((row for row in rows if row[3] == found.machine), None)
        if row is None:
            raise UpdateError(f"The newest release has no bundle for {found.machine}.")
        digest, name, version, _machine = row
        if _order(version) <= _order(__version__):
            say("This is the newest version.")
            return ExitCode.DONE
        say(f"Downloading {version} …")
        content = _download(f"{latest}/{name}")
        if hashlib.sha256(content).hexdigest() != digest:
            raise UpdateError(
                f"The digest of {name} does not match {CHECKSUMS}. Nothing was changed."
            )
        bundle = Path(scratch) / name
        bundle.write_bytes(content)
        prefix = found.place.parent.parent.parent
        return subprocess.run(("sh", bundle, "--prefix", prefix), check=False).returncode


def _order(version: str) -> tuple[tuple[int, ...], bool, str, tuple[int, ...]]:
    """Return a key by which to sort versions, oldest first: 0.3.0rc1 < 0.3.0 < 0.3.1."""
    release = _RELEASE.match(version)
    numbers = release[0] if release else ""
    rest = version[len(numbers) :]
    early = _PRERELEASE.match(rest)
    stage = early[0] if early else ""
    return _numbers_in(numbers), early is None, stage, _numbers_in(rest)


def _numbers_in(text: str) -> tuple[int, ...]:
    return tuple(map(int, _DIGITS.findall(text)))


def _download(url: str) -> bytes:
    """Return the content of a URL as bytes.

    Raises:
        UpdateError: the URL can't be reached, or the content is too large.
    """
    import httpx

    content = bytearray()
    try:
        with httpx.stream("GET", url, follow_redirects=True, timeout=SILENCE) as response:
            response.raise_for_status()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > MAX_BUNDLE_BYTES:
                    raise UpdateError(f"{url} is larger than {MAX_BUNDLE_BYTES >> 20} MB.")
    except httpx.HTTPStatusError as error:
        raise UpdateError(
            f"{url} answered with status {error.response.status_code}. Nothing was changed."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise UpdateError(f"{url} can't be reached: {error}. Nothing was changed.") from None
    return bytes(content)


def _refuse_open_sessions(command: str) -> None:
    """Refuse to update while sessions are open.

    The update would replace modules that the running programs may still import. Bundles need no
    such check, as they keep the modules of the previous version. ``command`` is the command line
    for updating anyway; the error message shows it.

    Raises:
        UpdateError: sessions are open.
    """
    from tui_agent.cli.sessions import open_store

    with open_store() as store:
        held = []
        for info in store.sessions(limit=1_000):
            if info.held_by is not None:
                held.append(f"“{info.title or info.first_message or info.id[:8]}”")
    if held:
        raise UpdateError(
            f"Sessions are open: {', '.join(held[:3])}. "
            f"They load code while they run, so close them first. To update anyway, run: {command}"
        )


def _source(origin: dict[str, Any]) -> str:
    url = str(origin.get("url", ""))
    parts = urlsplit(url)
    if parts.scheme == "file":
        return unquote(parts.path)
    vcs = as_dict(origin.get("vcs_info")).get("vcs")
    if vcs:
        return f"{vcs}+{url}"
    return url


def _facts(path: Path) -> dict[str, Any]:
    try:
        return as_dict(_json(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return {}


def _json(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return {}
