"""``tui-agent doctor``: reports how the program is set up, from which sources, and what is missing.

Changes nothing, except that ``--clean`` removes project copies that races left behind. ``/doctor``
shows the same findings.
"""

import logging
import os
import platform
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from tui_agent.agent.hooks.payloads import ANSWERS
from tui_agent.agent.knowledge.knowledge import Knowledge
from tui_agent.agent.programs.found import ItemState, quoted_key, set_command
from tui_agent.agent.programs.inventory import summary
from tui_agent.agent.race.copies import abandoned_homes, remove_left
from tui_agent.app.commands import is_reserved
from tui_agent.app.format import plural
from tui_agent.app.logins import keys_of
from tui_agent.cli.adopt import found_items
from tui_agent.cli.extensions import (
    Extensions,
    folders_of,
    is_trusted,
    knowledge_of,
    sandbox_of,
    state_of_project,
)
from tui_agent.cli.models import catalog_of, choose_model, directory_of, own_models
from tui_agent.cli.output import say, say_json
from tui_agent.cli.sessions import DATABASE, open_store
from tui_agent.cli.update import running_installation
from tui_agent.config import (
    Config,
    ConfigError,
    LoadedConfig,
    get_value,
    load_config,
    without_secrets,
)
from tui_agent.context.budget import WINDOW_ORIGINS
from tui_agent.files.own_git import find_project
from tui_agent.lazy import frozen
from tui_agent.model.addresses import plain_url
from tui_agent.model.catalog import Catalog
from tui_agent.model.hosted.link import install_command, is_installed
from tui_agent.model.logins import SOURCE, Logins
from tui_agent.model.price_list import PriceList
from tui_agent.model.route import Router
from tui_agent.path_checks import is_file
from tui_agent.paths import cache_dir, config_dir, data_dir, log_dir
from tui_agent.processes.own_programs import find_program
from tui_agent.sandbox import UNPROTECTED
from tui_agent.session.errors import StoreError
from tui_agent.tools.functions.tool_files import installed_add_ons
from tui_agent.trust import TrustItem, TrustStore
from tui_agent.version import __version__
from tui_agent.web.searching import BY_MODEL, advice, find_service

_UNCHECKED = (
    "If the message names a path, remove it from PATH or sandbox.read or, if it is a link, replace "
    "it there with its target."
)


@frozen
class Finding:
    """One line of the report that ``tui-agent doctor`` prints. ``ok`` is False for a problem.

    ``advice``, which may have several lines, says how to fix the problem. A finding with an empty
    ``subject`` continues the previous finding.
    """

    subject: str
    text: str
    ok: bool = True
    advice: str = ""


def run_doctor(arguments: Namespace) -> int:
    """Print the report; return exit code 1 if it has a problem, otherwise 0.

    With ``--clean``, first remove the project copies that races left behind.
    """
    logging.getLogger().addHandler(
        logging.NullHandler()
    )  # the report already contains what would be logged
    if arguments.clean:
        for path in abandoned_homes(cache_dir() / "races"):
            if remove_left(path):
                say(f"removed {path}")
            else:
                say(f"could not remove {path}")
    found = list(findings())
    for finding in found:
        if arguments.json:
            say_json(asdict(finding))
        else:
            say("\n".join(lines_of(finding)))
    return 0 if all(finding.ok for finding in found) else 1


def lines_of(finding: Finding) -> list[str]:
    mark = "✓" if finding.ok else "✗"
    first = f"{mark} {finding.subject:<14} {finding.text}"
    return [first, *(f"  {'':<14} {line}" for line in finding.advice.splitlines())]


def findings() -> Iterator[Finding]:
    """Examine the setup and yield the findings.

    This is slow, because it reads files and starts programs. If the settings can't be read, there
    are no further findings.
    """
    yield Finding(
        "program", f"tui-agent {__version__}, Python {platform.python_version()}, {sys.executable}"
    )
    yield Finding("installed", f"{running_installation().sentence} (tui-agent update)")
    # Look up the version only if the package is installed; otherwise, `version` raises an error.
    host = "without litellm"
    if is_installed():
        host = f"litellm {version('litellm')}"
    yield Finding(
        "packages",
        f"textual {version('textual')}, {host}; prices and windows from {PriceList().source}",
    )
    yield Finding(
        "directories", f"settings {config_dir()} · sessions {data_dir()} · log {log_dir()}"
    )
    try:
        loaded = load_config()
    except ConfigError as error:
        yield Finding("settings", str(error), ok=False)
        return
    yield from _settings(loaded)
    yield from _models(loaded.config)
    yield _web_search(loaded.config)
    yield _trust()
    yield from _extensions(loaded.config)
    yield from _sandbox(loaded.config)
    yield _sessions()
    if left := abandoned_homes(cache_dir() / "races"):
        advice = "The next race removes them; to remove them now: tui-agent doctor --clean"
        yield Finding(
            "race",
            f"project copies that no race uses: {', '.join(map(str, left))}",
            ok=False,
            advice=advice,
        )


def _settings(loaded: LoadedConfig) -> Iterator[Finding]:
    where = str(loaded.path)
    if not is_file(loaded.path):
        where += " (no such file: defaults apply, except for the settings listed below)"
    yield Finding("settings", where)
    for key in sorted(loaded.origins):
        if loaded.origins[key] != "flag":
            try:
                value = str(without_secrets(key.split("."), get_value(loaded, key)))[:80]
            except ConfigError:
                value = "(set)"
            yield Finding("", f"{key} = {value}  ({loaded.origins[key]})")
    for warning in loaded.warnings:
        yield Finding("settings", warning, ok=False)


def _models(config: Config) -> Iterator[Finding]:
    logins = Logins()
    available = keys_of(config, logins).available()
    for name, source in available.items():
        text = f"{name} from {source}"
        if name in logins and source != SOURCE:
            text += f", which overrides the one from {SOURCE}"
        yield Finding("key", text)
    if available:
        yield Finding("", "Order: config.toml, then the environment, then tui-agent login")
    if is_file(logins.path) and logins.path.stat().st_mode & 0o077:
        yield Finding(
            "key",
            f"other users can read {logins.path}",
            ok=False,
            advice=f"Run: chmod 600 {logins.path}",
        )
    catalog = catalog_of(config)
    for provider, place in catalog.addresses.overridden():
        text = f"{provider.name} at {plain_url(place.url)}, from {place.source}"
        if age := catalog.served.age(place.url):
            text += f", models listed {age}"
        yield Finding("address", text)
    if model := choose_model(config, available, catalog.knows):
        yield from _model_in_use(config, catalog, model)
    elif own := own_models(config):
        advice = f"Choose one: tui-agent config set model {own[0]}"
        yield Finding(
            "model", f"{plural(len(own), 'model')} set up, but none chosen", ok=False, advice=advice
        )
    elif not available:
        advice = "Enter an API key: tui-agent login. Or set a variable such as ANTHROPIC_API_KEY, or add a server."
        yield Finding(
            "model",
            "no model and no API key",
            ok=False,
            advice=f"{advice} Or try: tui-agent --demo",
        )


def _model_in_use(config: Config, catalog: Catalog, model: str) -> Iterator[Finding]:
    info = directory_of(catalog).info(model)
    place = catalog.place(model)
    text = f"{model}, window {info.context_window:,} tokens ({WINDOW_ORIGINS[info.origin]})"
    if place.is_own:
        text += f", at {plain_url(place.url)}"
    yield Finding("model", text)
    today = datetime.now(UTC).date().isoformat()
    if info.deprecated_on is not None and info.deprecated_on <= today:
        advice = f"Choose another: tui-agent models {info.provider}"
        yield Finding("", f"out of service since {info.deprecated_on}", ok=False, advice=advice)
    router = Router(catalog, os.environ, models=config.models, providers=config.providers)
    if router.wire(model) is None and not is_installed():
        yield Finding(
            "",
            "this model needs litellm, which is not installed",
            ok=False,
            advice=f"Run: {install_command()}",
        )
    if info.origin == "assumed":
        command = set_command(f"models.{quoted_key(model)}.context_window", "SIZE")
        advice = f"Set it: {command}. Or ask the server: tui-agent models"
        yield Finding(
            "", "its context window is assumed, because its size is unknown", advice=advice
        )


def _web_search(config: Config) -> Finding:
    service = find_service(config.websearch, os.environ, config.webfetch)
    if service is not None:
        return Finding("web search", f"{service.api.title}, from {service.source}")
    if config.websearch.service in BY_MODEL:
        return Finding("web search", "by Anthropic and OpenAI, for their own models")
    return Finding("web search", "not offered", advice=advice(config.websearch))


def _trust() -> Finding:
    cwd = Path.cwd()
    project = find_project(cwd)
    state = state_of_project(cwd, TrustStore(data_dir() / "trust.json"))
    if not state.items:
        return Finding("trust", f"{project} has nothing that needs trust")
    if state.trusted:
        return Finding("trust", f"{project} is trusted with {_counted(state.items)}")
    if state.problem:
        return Finding(
            "trust",
            f"{project} can't be trusted: {state.problem}. Not active: {_counted(state.items)}",
        )
    why = "it has changed since you were asked, or you were not asked yet"
    if state.refused:
        why = "you answered “never”"
    return Finding(
        "trust", f"{project} is not trusted ({why}). Not active: {_counted(state.items)}"
    )


def _counted(items: Sequence[TrustItem]) -> str:
    """Return the number of items of each kind: ``1 hook, 3 commands``."""
    kinds = Counter(item.kind for item in items)
    return ", ".join(plural(count, kind) for kind, count in kinds.items())


def _extensions(config: Config) -> Iterator[Finding]:
    cwd = Path.cwd()
    extensions = Extensions(is_trusted)
    yield from _servers(extensions, cwd)
    hooks = extensions.load_hooks(cwd)
    for handler in hooks.handlers:
        events = ", ".join(event for event in ANSWERS if handler.handles(event, ""))
        yield Finding("hook", f"{events}: {handler.title}")
    for problem in hooks.problems:
        yield Finding("hook", problem, ok=False)
    yield from _add_ons(config)
    known = knowledge_of(folders_of(cwd, config), config, trusted=is_trusted(cwd))
    yield from _knowledge(known)
    items = found_items(cwd)
    for item in items:
        if item.kind == "hook" and item.state is ItemState.WITHOUT_EFFECT:
            yield Finding("hook", f"{item.name} ({item.place}) does not run: {item.why}")
    if said := summary(items):
        yield Finding("other programs", said)


def _add_ons(config: Config) -> Iterator[Finding]:
    add_ons = installed_add_ons(config.add_ons.leave_out)
    for shown, tools in groupby(add_ons.tools, lambda tool: tool.shown):
        yield Finding("add-on", f"{shown}: {', '.join(tool.name for tool in tools)}")
    for problem in add_ons.problems:
        yield Finding(
            "add-on",
            problem,
            ok=False,
            advice="To leave it out, add its package to leave_out of [add_ons] in the settings.",
        )


def _knowledge(known: Knowledge) -> Iterator[Finding]:
    known.load()
    named: dict[tuple[str, str], list[str]] = defaultdict(list)
    named["instructions", ""] = [item.name for item in known.instructions]
    named["skills", ""] = [skill.name for skill in known.skills.values() if skill.origin]
    for command in known.commands:
        if is_reserved(command.name):
            yield Finding(
                "commands",
                f"{command.file} can't be reached, because /{command.name} is built in",
                ok=False,
                advice="Rename the file.",
            )
        else:
            named["commands", command.origin].append(f"/{command.name}")
    for spec in known.specs:
        named["agents", spec.origin].append(f"{spec.name} ({spec.mode})")
    for (subject, origin), names in named.items():
        if names:
            source = f" from {origin}" if origin else ""
            yield Finding(subject, f"{', '.join(names)}{source}")
    for name, instead in known.passed_over.items():
        yield Finding(
            "", f"{name} is not read, because {instead} is read instead (instructions_order)"
        )
    for problem in known.problems:
        yield Finding("files", problem, ok=False)


def _servers(extensions: Extensions, cwd: Path) -> Iterator[Finding]:
    found = extensions.servers(cwd)
    for spec in found.specs:
        what = spec.settings.command or plain_url(spec.settings.url or "")
        state = "" if spec.settings.enabled else ", disabled"
        there = (
            not spec.settings.enabled
            or spec.transport == "http"
            or "$" in what
            or find_program(what, cwd) is not None
        )
        advice = "There is no such program. Install it, or correct the command in the settings."
        if there:
            advice = ""
        yield Finding(
            "MCP server", f"{spec.name}: {what} ({spec.source}{state})", ok=there, advice=advice
        )
    for problem in found.problems:
        yield Finding("MCP server", problem, ok=False)


def _sandbox(config: Config) -> Iterator[Finding]:
    project = find_project(Path.cwd())
    sandbox = sandbox_of(config, project)
    state = sandbox.state
    lacking = sandbox.shortcoming(project)
    if state.kind is None:
        text = lacking or f"none: {state.reason}. {UNPROTECTED}"
        yield Finding("sandbox", text, ok=not sandbox.refusal(), advice=state.advice)
        return
    if lacking:
        yield Finding("sandbox", lacking, ok=False, advice=state.advice)
    if failed := sandbox.judge_failure(project):
        text = f"changes made by commands can't be checked, so they are discarded: {failed}"
        yield Finding("sandbox", text, ok=False, advice=_UNCHECKED)
    layer = ""
    if state.layered and not lacking:
        layer = ", with a copy-on-write layer"
    yield Finding(
        "sandbox",
        f"{state.kind} ({state.program}){layer}: commands see the project, and outside it:",
    )
    for line in sandbox.view_lines():
        yield Finding("", line)


def _sessions() -> Finding:
    try:
        with open_store() as store:
            damage = store.damage()
            if damage:
                count = 0
            else:
                count = len(store.sessions(limit=100_000))
            problem = store.read_only
    except StoreError as error:
        return Finding("sessions", error.message, ok=False)
    if damage:
        path = data_dir() / DATABASE
        advice = (
            "Close every tui-agent and copy the file. Then replace it with a backup (updates leave files that end in "
            f".bak next to it), or with what can be recovered: sqlite3 {path} .recover | sqlite3 {path}.new"
        )
        return Finding("sessions", f"{path} is damaged: {damage}", ok=False, advice=advice)
    if problem is not None:
        return Finding("sessions", problem.message, ok=False)
    return Finding("sessions", f"{count} in {data_dir() / DATABASE}")
