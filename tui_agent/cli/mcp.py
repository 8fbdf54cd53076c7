"""``tui-agent mcp``: lists, adds, removes and tests MCP servers from the command line.

Adds and removes servers only in the user's settings file.
"""

import asyncio
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tui_agent.agent.events import Notice
from tui_agent.agent.mcp.records import McpServerStatus, ServerState
from tui_agent.agent.mcp.settings import (
    OWN_PLACE,
    FoundServers,
    McpServerSettings,
    is_web_address,
)
from tui_agent.agent.programs.found import quoted_key
from tui_agent.app.format import one_line, tokens
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.extensions import Extensions, is_trusted, sandbox_of
from tui_agent.cli.output import say, say_json
from tui_agent.config import config_path, load_config, set_value
from tui_agent.context.tokens import TokenCounter

_NAME = re.compile(r"[\w.-]{1,60}")
_VARIABLE = re.compile(r"\s*([^\s=\0]+)\s*=([^\0]*)")
_HEADER = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+)\s*:([^\0\r\n]*)", re.ASCII)
_COUNTED_AS = "gpt-4o"
"""Model whose tokenizer counts the tokens of tool schemas; other tokenizers give similar counts."""


def run_mcp(arguments: Namespace) -> int:
    match arguments.action:
        case "add":
            return _add(arguments)
        case "remove":
            return _remove(arguments.name)
        case "test":
            return asyncio.run(_test(arguments.name))
        case _:
            return _list(as_json=arguments.json)


def _found() -> FoundServers:
    return Extensions(is_trusted).servers(Path.cwd())


def _list(*, as_json: bool) -> int:
    found = _found()
    for spec in found.specs:
        settings = spec.settings
        address = settings.url or shlex.join([settings.command or "", *settings.args])
        if as_json:
            row = {
                "name": spec.name,
                "source": spec.source,
                "enabled": settings.enabled,
                "address": address,
            }
            say_json(row)
        else:
            state = "" if settings.enabled else "disabled  "
            where = ""
            if spec.place != OWN_PLACE:
                where = f"  ({one_line(spec.place)})"
            say(f"{spec.name:<20}  {state}{one_line(address, 200)}{where}")
    for problem in found.problems:
        say(problem, file=sys.stderr)
    if not found.specs and not as_json:
        say("There are no MCP servers. Add one: tui-agent mcp add NAME COMMAND …, or NAME URL.")
    return 0


def _remove(name: str) -> int:
    if name in load_config().config.mcp:
        set_value(f"mcp.{quoted_key(name)}", None)
        say(f"Removed {name} from {config_path()}.")
        return 0
    for spec in _found().specs:
        if spec.name == name:
            raise UsageError(f"{name} is in {one_line(spec.place)}. Edit that file.")
    raise UsageError(f"{name} is not in your settings.")


def _add(arguments: Namespace) -> int:
    words = arguments.words
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        raise UsageError("Add the server's command or its URL: tui-agent mcp add NAME COMMAND …")
    if not words[0].strip():
        raise UsageError("The server's command or URL is empty.")
    if words[0].startswith("-"):
        raise UsageError(
            f"Put {words[0]} before the name: tui-agent mcp add [--env A=B] NAME COMMAND …"
        )
    is_remote = "://" in words[0]
    _check_options(words, arguments, remote=is_remote)
    row = {
        "url" if is_remote else "command": words[0],
        "args": words[1:],
        "env": _pairs(arguments.env, _VARIABLE, "--env NAME=VALUE"),
        "headers": _pairs(arguments.header, _HEADER, "--header 'Name: value'"),
        "type": "sse" if arguments.sse else None,
    }
    settings = McpServerSettings.model_validate(row)
    if _NAME.fullmatch(arguments.name) is None:
        raise UsageError("A server's name may contain only letters, digits, “_”, “-” and “.”.")
    if arguments.name in load_config().config.mcp and not arguments.force:
        raise UsageError(f"There is already a server {arguments.name}; --force replaces it.")
    set_value(f'mcp."{arguments.name}"', settings.model_dump(mode="json", exclude_defaults=True))
    say(f"Added {arguments.name} to {config_path()}. Try it: tui-agent mcp test {arguments.name}")
    return 0


def _check_options(words: list[str], arguments: Namespace, *, remote: bool) -> None:
    """Raise UsageError if the options don't fit the server's command, or its URL if ``remote``."""
    if not remote and (arguments.header or arguments.sse):
        raise UsageError("--header and --sse need a URL; a command takes --env and arguments.")
    if not remote:
        return
    if len(words) > 1:
        raise UsageError(
            "A URL takes no arguments. To send a header, put --header before the name."
        )
    if arguments.env:
        raise UsageError("--env needs a command; a URL takes --header.")
    if not is_web_address(words[0]):
        raise UsageError("A URL has to start with http:// or https:// and a host.")


def _pairs(texts: Iterable[str], form: re.Pattern[str], usage: str) -> dict[str, str]:
    """Split an option's texts into names and values.

    Raises UsageError, whose message contains ``usage``, if a text doesn't have the given form.
    """
    pairs = {}
    for text in texts:
        found = form.fullmatch(text)
        if found is None:
            raise UsageError(f"Write the option as {usage}.")
        pairs[found[1]] = found[2].strip()
    return pairs


async def _test(name: str) -> int:
    """Start a server, print what it offers, and stop it; return 1 if it could not be started."""
    found = _found()
    spec = next((spec for spec in found.specs if spec.name == name), None)
    if spec is None:
        known = ", ".join(spec.name for spec in found.specs) or "none"
        about = (problem for problem in found.problems if problem.startswith(f"The server {name} "))
        raise UsageError(next(about, f"There is no server {name}. Servers: {known}."))
    # As in a session, a project's servers run in the sandbox.
    config = Extensions(is_trusted).config(Path.cwd())
    hub = Extensions(is_trusted, sandbox=partial(sandbox_of, config)).add_hub(spec, Path.cwd())

    def tell(notice: Notice) -> None:
        # If the server fails, `_status_lines` says so and gives advice.
        if all(row.state is not ServerState.FAILED for row in hub.status()):
            say(notice.message, file=sys.stderr)

    hub.listeners.append(tell)
    try:
        changed = asyncio.Event()
        hub.watchers.append(changed.set)
        hub.start()
        while any(row.state in {ServerState.STARTING, ServerState.LOGIN} for row in hub.status()):
            changed.clear()
            await changed.wait()
        counter = TokenCounter(_COUNTED_AS)
        [status] = hub.status(counter.schema, count_text=counter.text)
        for line in _status_lines(status):
            say(line)
        return 0 if status.state is ServerState.READY else 1
    finally:
        await hub.aclose()


def _status_lines(status: McpServerStatus) -> list[str]:
    """Return the lines about a server: state, tools with tokens, prompts, resources, messages."""
    lines = [f"{status.name}: {status.state.value}  {one_line(status.address, 200)}"]
    if status.detail:
        lines.append(f"{one_line(status.detail, 400)}.")
        lines += filter(None, [status.advice])
    for tool in status.tools:
        name = one_line(tool.own, 60)
        lines.append(f"  {name:<32} {tokens(tool.tokens):>6}  {one_line(tool.description, 100)}")
    if status.tools:
        lines.append(f"  {'all tools':<32} {tokens(status.tokens):>6}  tokens of each request")
    if status.instructions:
        lines.append(f"  {'instructions':<32} {tokens(status.instruction_tokens):>6}")
    for prompt in status.prompts:
        lines.append(f"  {one_line(f'/{prompt.command} {prompt.usage}')}")
    for resource in (*status.resources, *status.templates):
        lines.append(f"  {one_line(f'@{resource.mention}')}")
    for message in status.messages:
        lines.append(f"  {message.level}: {one_line(message.text, 200)}")
    if status.log is not None and status.log.stat().st_size:
        lines.append(f"Log: {status.log}")
    return lines
