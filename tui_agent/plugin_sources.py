"""Fetches a plugin from a folder or a Git repository, either of which may be a marketplace.

Also describes the plugin, so that the user can agree to installing it. `tui_agent.plugins` installs
it.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from subprocess import SubprocessError, TimeoutExpired

from tui_agent.files.own_git import call_git
from tui_agent.plugins import Plugin, PluginError, market_of, read_plugin
from tui_agent.safe_text import one_line

CLONE_SECONDS = 120
"""Time limit for cloning a plugin's Git repository, in seconds."""
_PROTOCOLS = "https:http:ssh:git:file"
_ADDRESSES = ("https://", "http://", "git@", "ssh://", "git://", "file://")


@contextmanager
def fetched(source: str, name: str, base: Path) -> Iterator[Plugin]:
    """Yield the plugin in a folder or a Git repository; in a marketplace, the plugin ``name``.

    ``source`` is the folder, relative to ``base`` or absolute, or the repository's address. A
    repository is cloned into a temporary directory, which is removed after the ``with`` block. The
    call blocks until the repository is cloned.

    Raises:
        PluginError: there is no such plugin, or it can't be read or cloned.
    """
    if not source.startswith(_ADDRESSES):
        folder = (base / Path(source).expanduser()).resolve()
        if not folder.is_dir():
            raise PluginError(f"{source} is not a folder.")
        yield read_plugin(_chosen(folder, name))
        return
    place = Path(tempfile.mkdtemp(prefix="tui-agent-plugin-"))
    try:
        folder = place / Path(source.rstrip("/")).name.removesuffix(".git")
        _clone(source, folder)
        yield read_plugin(_chosen(folder, name))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def lines_of(plugin: Plugin) -> list[str]:
    """Return the lines that describe a plugin to the user before it is installed.

    They contain its name, version, description and parts.
    """
    lines = [f"{plugin.name} {one_line(plugin.version, 40)}".rstrip()]
    if plugin.description:
        lines.append(f"  {one_line(plugin.description, 200)}")
    for kind, rows in groupby(plugin.brings(), key=_kind):
        lines.append(f"  {kind}: {', '.join(one_line(name, 160) for _kind, name in rows)}")
    return lines


def _kind(row: tuple[str, str]) -> str:
    return row[0]


def _clone(address: str, folder: Path) -> None:
    words = (
        "-c",
        "core.hooksPath=/dev/null",
        "clone",
        "--quiet",
        "--depth",
        "1",
        "--",
        address,
        str(folder),
    )
    try:
        done = call_git(
            words, folder.parent, {"GIT_ALLOW_PROTOCOL": _PROTOCOLS}, seconds=CLONE_SECONDS
        )
    except FileNotFoundError:
        raise PluginError(
            "Git is not installed. Clone the repository yourself, and add its folder."
        ) from None
    except TimeoutExpired:
        raise PluginError(
            f"{address} could not be cloned within {CLONE_SECONDS} seconds."
        ) from None
    except (OSError, SubprocessError) as error:
        raise PluginError(f"{address} could not be cloned: {error}.") from None
    if done.returncode:
        raise PluginError(
            f"{address} could not be cloned: {one_line(done.stderr.decode('utf-8', 'replace'), 300)}"
        )


def _chosen(folder: Path, name: str) -> Path:
    """Return ``folder``, or, if it is a marketplace, the folder of the plugin called ``name``.

    ``name`` may be "" if the marketplace has only one plugin. Raises PluginError if the marketplace
    has no such plugin, or only names another place from which to get it.
    """
    market = market_of(folder)
    if not market:
        return folder
    if not name and len(market) == 1:
        name = next(iter(market))
    if name not in market:
        raise PluginError(
            f"This is a marketplace. Name one of its plugins: {', '.join(sorted(market))}."
        )
    found = market[name]
    if isinstance(found, str):
        raise PluginError(
            f"This marketplace only refers to {name}, which is at {one_line(found, 120)}. Add it from there."
        )
    return found
