"""``tui-agent plugin``: adds, lists and removes plugins in Claude Code's layout.

`PluginStore` keeps the plugins. Before a plugin is added, its parts are listed and the user has to
confirm.
"""

import sys
from argparse import Namespace
from pathlib import Path

from tui_agent.cli.arguments import UsageError
from tui_agent.cli.output import say, say_json
from tui_agent.paths import data_dir
from tui_agent.plugin_sources import fetched, lines_of
from tui_agent.plugins import PLUGINS, PluginError, PluginStore, digest_of
from tui_agent.safe_text import one_line


def run_plugin(arguments: Namespace) -> int:
    store = PluginStore(data_dir() / PLUGINS)
    try:
        match arguments.action:
            case "add":
                return _add(store, arguments)
            case "remove":
                store.remove(arguments.name)
                say(f"Removed {arguments.name}. New sessions no longer use it.")
                return 0
            case _:
                return _list(store, as_json=arguments.json)
    except PluginError as error:
        raise UsageError(str(error)) from None


def _add(store: PluginStore, arguments: Namespace) -> int:
    with fetched(arguments.source, arguments.name, Path.cwd()) as plugin:
        digest = digest_of(plugin.root)
        for line in lines_of(plugin):
            say(line)
        if not arguments.yes and not _has_agreed():
            say("Not added.")
            return 1
        store.add(plugin, arguments.source, digest)
    say(f"Added {plugin.name}. New sessions use it.")
    return 0


def _has_agreed() -> bool:
    """Ask the user on the terminal whether to add the plugin.

    Raises UsageError without a terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            "There is no terminal to confirm on. Check the list above, then add --yes."
        )
    return input("Its hooks and servers run with your rights. Add it? [y/N] ").strip().lower() in {
        "y",
        "yes",
    }


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
        say(problem, file=sys.stderr)
    if not rows and not as_json:
        say("There are no plugins yet. Add one: tui-agent plugin add FOLDER|GIT-URL [NAME]")
    return 0
