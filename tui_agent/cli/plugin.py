"""``tui-agent plugin``: adds, lists and removes plugins in Claude Code's layout."""

import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from subprocess import SubprocessError

from tui_agent.cli.arguments import UsageError
from tui_agent.cli.output import say, say_json
from tui_agent.files.own_git import call_git
from tui_agent.paths import data_dir
from tui_agent.plugins import PLUGINS, PluginError, PluginStore, digest_of, market_of, read_plugin
from tui_agent.safe_text import one_line

CLONE_SECONDS = 120
_PROTOCOLS = "https:http:ssh:git:file"
_ADDRESSES = ("https://", "http://", "git@", "ssh://", "git://", "file://")


def run_plugin(arguments: Namespace) -> int:
    store = PluginStore(data_dir() / PLUGINS)
    try:
        match arguments.action:
            case "add":
                return _add(store, arguments)
            case "remove":
                store.remove(arguments.name)
                say(f"Removed {arguments.name}. Sessions follow when they start.")
                return 0
            case _:
                return _list(store, as_json=arguments.json)
    except PluginError as error:
        raise UsageError(str(error)) from None


def _add(store: PluginStore, arguments: Namespace) -> int:
    with _folder_of(arguments.source) as folder:
        plugin = read_plugin(_chosen(folder, arguments.name))
        digest = digest_of(plugin.root)
        say(f"{plugin.name} {plugin.version}".rstrip())
        if plugin.description:
            say(f"  {one_line(plugin.description, 200)}")
        for kind, rows in groupby(plugin.brings(), key=lambda row: row[0]):
            say(f"  {kind}: {', '.join(one_line(name, 160) for _kind, name in rows)}")
        if not arguments.yes and not _agreed():
            say("Not added.")
            return 1
        store.add(plugin, arguments.source, digest)
    say(f"Added {plugin.name}. Sessions have it when they start.")
    return 0


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked whether to add it: look at the list, then add --yes.")
    return input("Its hooks and servers run with your rights. Add it? [y/N] ").strip().lower() in {
        "y",
        "yes",
    }


@contextmanager
def _folder_of(source: str) -> Iterator[Path]:
    """Yield a local folder of a plugin or marketplace; an address is cloned first."""
    if not source.startswith(_ADDRESSES):
        folder = Path(source).expanduser().resolve()
        if not folder.is_dir():
            raise UsageError(f"{source} is no folder.")
        yield folder
        return
    place = Path(tempfile.mkdtemp(prefix="tui-agent-plugin-"))
    try:
        folder = place / Path(source.rstrip("/")).name.removesuffix(".git")
        _clone(source, folder)
        yield folder
    finally:
        shutil.rmtree(place, ignore_errors=True)


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
        raise UsageError(
            "git is not installed: clone the repository yourself and add the folder."
        ) from None
    except (OSError, SubprocessError):
        raise UsageError(f"{address} could not be cloned within {CLONE_SECONDS} seconds.") from None
    if done.returncode:
        raise UsageError(
            f"{address} could not be cloned: {one_line(done.stderr.decode('utf-8', 'replace'), 300)}"
        )


def _chosen(folder: Path, name: str) -> Path:
    """Return the plugin's folder: the folder itself, or the named one of a marketplace."""
    market = market_of(folder)
    if not market:
        return folder
    if not name and len(market) == 1:
        name = next(iter(market))
    if name not in market:
        raise UsageError(
            f"This is a marketplace. Name one of its plugins: {', '.join(sorted(market))}."
        )
    found = market[name]
    if isinstance(found, str):
        raise UsageError(f"{name} is elsewhere ({one_line(found, 120)}): add it from there.")
    return found


def _list(store: PluginStore, *, as_json: bool) -> int:
    problems: list[str] = []
    plugins = store.plugins(problems)
    rows = store.installed()
    for plugin in plugins:
        if as_json:
            say_json(
                {"name": plugin.name, "version": plugin.version, "source": rows[plugin.name].source}
            )
        else:
            say(f"{plugin.name:<24} {plugin.version:<10} {one_line(plugin.description, 80)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not rows and not as_json:
        say("No plugins yet: tui-agent plugin add FOLDER|GIT-URL [NAME]")
    return 0
