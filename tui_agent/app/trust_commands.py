"""Commands for what extends the agent and needs trust: ``/plugin``, ``/hooks`` and ``/trust``."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice, Heading, Report
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_agent.agent.hooks.hooks import CommandHook
    from tui_agent.app.controller import Controller
    from tui_agent.plugins import PluginStore

_USAGE = "/plugin, /plugin add FOLDER|GIT-URL [NAME], /plugin remove NAME"
NO_HOOKS = "There are no hooks. docs/hooks.md says how to write them."
_WHEN = "This takes effect in a new session (/new)."


@Command(
    "plugin",
    "list, add or remove plugins: skills, commands, agents, hooks, servers",
    argument="[add FOLDER|GIT-URL|remove NAME]",
    place=262,
    aliases=("plugins",),
    words="extension, marketplace, install",
)
async def plugin(controller: Controller, argument: str) -> None:
    from tui_agent.plugins import PLUGINS, PluginStore

    store = PluginStore(controller.services.state_dir / PLUGINS)
    try:
        words = shlex.split(argument)
    except ValueError:
        raise CommandError("A quote is not closed.") from None
    match words:
        case [] | ["list"]:
            controller.show(Report("Plugins", await asyncio.to_thread(_list, store)))
        case ["add", source, *names] if len(names) <= 1:
            await _add(controller, store, source, "".join(names))
        case ["remove", name]:
            await asyncio.to_thread(store.remove, name)
            controller.say(f"Removed {name}. {_WHEN}")
        case _:
            raise CommandError(f"Use {_USAGE}.")


@Command(
    "hooks",
    "list the hooks of this session, and the files that define them",
    place=263,
    words="events, scripts, settings",
)
async def hooks(controller: Controller, _argument: str) -> None:
    handlers = await controller.open_agent.ports.hooks.listed()
    controller.show(Report("Hooks", list(hook_lines(handlers))))


def hook_lines(handlers: Sequence[CommandHook]) -> Iterator[str]:
    """Yield the lines of the ``/hooks`` page: the hooks of each event, in their order."""
    for event in dict.fromkeys(handler.settings.event for handler in handlers):
        yield Heading(event)
        for handler in handlers:
            if handler.settings.event == event:
                yield f"  {visible(one_line(handler.settings.command, 300))}"
                yield f"    {visible(one_line(handler.place, 300))}"
        yield ""
    if not handlers:
        yield NO_HOOKS


@Command(
    "trust",
    "show what this project would run or set, and decide whether to trust it",
    needs_screen=True,
    place=264,
    words="untrusted, waiting, hooks, settings",
)
async def trust(controller: Controller, _argument: str) -> None:
    from tui_agent.app.welcome import ask_about, trust_lines

    state = await asyncio.to_thread(controller.services.project_state)
    if not state.is_held_back:
        if state.items:
            lines = ["You trust all of the following."]
        else:
            lines = ["This project has nothing that needs your trust."]
        controller.show(Report("Trust", [*lines, "", *map(visible, trust_lines(state))]))
        return
    if await ask_about(controller, state) != "trusted":
        return
    await asyncio.to_thread(controller.open_agent.ports.knowledge.load)
    await controller.open_agent.mcp.reload_and_resend()
    controller.say("Trusted. Hooks and environment variables take effect in a new session (/new).")


def _list(store: PluginStore) -> Sequence[str]:
    from tui_agent.plugin_sources import lines_of

    problems: list[str] = []
    rows = store.installed()
    lines: list[str] = []
    for found in store.plugins(problems):
        name, *brings = map(visible, lines_of(found))
        lines += ["", Heading(name), *brings, f"  from {visible(rows[found.name].source)}"]
    if not rows:
        lines.append("No plugins yet.")
    return [*lines, "", *map(visible, problems), f"Commands: {_USAGE}."]


async def _add(controller: Controller, store: PluginStore, source: str, name: str) -> None:
    """Show what a plugin contains, and add it if the user agrees.

    ``source`` is a folder or a Git URL. If that contains a marketplace, ``name`` is the plugin to
    take from it.
    """
    from tui_agent.plugin_sources import fetched, lines_of
    from tui_agent.plugins import digest_of

    base = controller.services.cwd
    controller.say(f"Looking at {one_line(source, 80)} …")
    with ExitStack() as stack:
        found = await asyncio.to_thread(stack.enter_context, fetched(source, name, base))
        digest = await asyncio.to_thread(digest_of, found.root)
        title, *brings = await asyncio.to_thread(lines_of, found)
        asked = Choice(
            f"Add the plugin {visible(title)}?",
            [("y", "yes, in its current state"), ("n", "no")],
            "\n".join(map(visible, brings)),
            why="Its hooks and servers run with your rights.",
            at="n",
            wide=True,
            inline=True,
            unasked="n",
        )
        if await controller.ask(asked) != "y":
            controller.say("Not added.")
            return
        await asyncio.to_thread(store.add, found, source, digest)
    controller.say(f"Added {found.name}. {_WHEN}")
