"""Commands for the model's context (/context, /compact, /prune) and for parts of the screen.

The commands for parts of the screen are ``/panel``, ``/view``, ``/outputs``, ``/thoughts`` and
``/settings``. This module also contains the actions on a single entry that the context map, the
tree and links in the conversation offer: to edit what the model sees of the entry, edit a summary,
bring the entry back into the context, compact up to it, or scroll to it. The agent plans
compactions and appends the entries.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command, key_of
from tui_agent.app.format import plural, tokens
from tui_agent.app.frontend import CompactPage, ContextPage, LongText, Output, SettingsPage
from tui_agent.errors import CommandError
from tui_agent.safe_text import readable
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.app.edit_cost import Edit


NOT_LATEST = "Only the latest summary can be edited."


@Command(
    "context",
    "show what fills the context window",
    key="ctrl+g",
    place=240,
    words="what the model sees, tokens, bring back, restore, pin, hide, cleared output, delete from",
)
async def context(controller: Controller, argument: str) -> None:
    """Show the next request block by block: as a page on the full screen, otherwise as text.

    The options apply only to the text. ``--json`` shows the blocks as JSON, and ``--request`` shows
    the exact request instead. ``--at N`` assumes that entry N is the leaf; ``--model NAME`` and
    ``--window TOKENS`` assume another model or context window.
    """
    agent = controller.open_agent
    if controller.frontend.has_screen:
        controller.show(ContextPage())
        return
    from tui_agent.agent.context_inspector import room_made
    from tui_agent.agent.context_map import context_map
    from tui_agent.app import session_reports
    from tui_agent.context.budget import Meter
    from tui_agent.context.projection import project
    from tui_agent.context.request import request_bytes
    from tui_agent.context.templates import Templates

    options = _options(argument)
    ports = agent.ports
    session = agent.session
    if "at" not in options:
        path = session.path()
    else:
        path = session.path(int(options["at"]))
    model = options.get("model") or agent.model
    directory = ports.directory
    if not path:
        await agent.context.warm()  # starts no MCP servers, so their tools are not shown
        path = [*filter(None, [agent.context.preview()])]
    if "request" in options:
        sent = request_bytes(project(path, directory.traits(model), Templates.load(ports.prompt)))
        controller.show(
            Output("The next request", sent.decode("utf-8", "surrogatepass").removesuffix("\n"))
        )
        return
    limits = directory.limits(model)
    if "window" in options:
        window = int(options["window"])
        limits = replace(limits, window=window, origin="config", price_tier=None)
    shown = context_map(path, Meter(limits, ports.settings, directory.counter(model)))
    made = room_made(path)
    if "json" in options:
        controller.show(Output("The context map", session_reports.context_json(shown, made, model)))
    else:
        controller.show(ContextPage(session_reports.context_lines(shown, made, model)))


def _options(argument: str) -> dict[str, str]:
    """Parse the options of ``/context``; return their values by name, "" for --json and --request.

    Raises `CommandError` for an unknown option, or if an option's value is missing or invalid.
    """
    words = argument.split()
    found = dict[str, str]()
    while words:
        name = words.pop(0).removeprefix("--")
        takes_value = name in {"at", "window", "model"}
        if not takes_value and name not in {"json", "request"}:
            raise CommandError(
                "Use /context with --at N, --model NAME, --window TOKENS, --json or --request."
            )
        if takes_value and not words:
            raise CommandError(f"--{name} needs a value.")
        if name in {"at", "window"} and not whole_number(words[0]):
            raise CommandError(f"--{name} needs a number of at least 1, not {words[0]!r}.")
        if takes_value:
            found[name] = words.pop(0)
        else:
            found[name] = ""
    return found


@Command(
    "compact",
    "summarise the history, or only what comes before #N",
    key="f4",
    argument="[#N] [FOCUS]",
    place=220,
    words="compaction, compress, summarize, summary, free tokens, context full, shorten",
)
async def compact(controller: Controller, argument: str) -> None:
    """Summarise the history, or with a leading ``#412`` only what comes before entry 412.

    The full screen shows a preview first, unless the user gave a focus, the history is short, or
    the agent is working and no prepared summary is ready. ``--preview`` only shows the expected
    effect, as text, or as JSON with ``--json``.
    """
    from tui_agent.agent.context_inspector import room_made

    agent = controller.open_agent
    controller.require_writable()
    words = argument.split()
    if preview := "--preview" in words:
        argument = " ".join(word for word in words if word not in {"--preview", "--json"})
    boundary = None
    focus = argument
    if named := re.match(r"#(\d{1,18})(?:\s+|$)", argument):
        boundary = int(named[1])
        focus = argument[named.end() :]
    if preview:
        await _preview(controller, agent, focus, boundary, as_json="--json" in words)
        return
    if boundary is not None and controller.frontend.has_screen:
        await compact_up_to(controller, boundary, focus)
        return
    if boundary is not None and not agent.session.on_path(boundary):
        raise CommandError(f"#{boundary} is not on this branch.")
    if controller.frontend.has_screen and not focus and _has_preview(agent):
        controller.show(CompactPage())
        return
    outcome = await agent.compact(focus or None, boundary=boundary)
    if not controller.frontend.has_screen and not agent.running:
        # On a screen, the user sees this from the agent's events.
        if outcome.problem:
            raise CommandError(outcome.problem)
        controller.say(room_made(agent.session.active_path()).sentence)


def _has_preview(agent: Agent) -> bool:
    """Return whether to show a preview before a compaction.

    While the agent works, only a prepared summary can be previewed. A history that isn't longer
    than what a compaction normally keeps is compacted at once, as a preview would leave little to
    decide.
    """
    if agent.running:
        return agent.context.has_summary
    size = agent.context_size()
    return size.history > agent.context.settings().compaction.keep_recent_tokens(size.budget)


async def _preview(
    controller: Controller, agent: Agent, focus: str, boundary: int | None, *, as_json: bool
) -> None:
    """Show what a compaction would do, with an estimate of the summary's size; calls no model.

    Raises `CommandError` if the compaction is impossible.
    """
    from tui_agent.app import context_plan_text, session_reports
    from tui_agent.context.commit_plan import Commit
    from tui_agent.context.compaction import Refusal

    order = agent.context.order("manual", focus or None, boundary)
    plan = await agent.context.compactor.plan(order)
    if isinstance(plan, Refusal):
        raise CommandError(plan.message)
    commit = await agent.context.compactor.forecast(plan, order)
    if as_json:
        controller.show(
            Output("The compaction preview", session_reports.compaction_json(plan, commit))
        )
    elif isinstance(commit, Commit):
        controller.show(
            Output("The compaction preview", context_plan_text.compaction_text(plan, commit))
        )
    if isinstance(commit, Refusal):
        raise CommandError(commit.message)


async def compact_up_to(controller: Controller, entry_id: int, focus: str = "") -> None:
    """Summarise the conversation before an entry.

    If the user has given a focus, does so at once. Otherwise, shows a preview first, which needs a
    screen. Tells the user if the entry is not on the current session path, or if the compaction
    fails.
    """
    agent = controller.idle_agent
    controller.require_writable()
    if not agent.session.on_path(entry_id):
        controller.say(f"#{entry_id} is not on this branch.")
    elif focus:
        if problem := (await agent.compact(focus, boundary=entry_id)).problem:
            controller.say(problem)
    else:
        controller.show(CompactPage(entry_id))


@Command(
    "prune",
    "clear old tool outputs, so that the model sees one line for each",
    place=230,
    words="free tokens, remove, shrink, truncate",
)
async def prune(controller: Controller, _argument: str) -> None:
    """Clear old tool outputs from the context, and report their number and the cost.

    The outputs stay in the session. The cost is the price of the cached tokens that the provider
    has to read again.
    """
    from tui_agent.app import context_plan_text
    from tui_agent.app.edit_cost import Edit, plan_edit
    from tui_agent.context.pruning import Moment

    agent = controller.idle_agent
    controller.require_writable()
    plan = await agent.context.plan_prune(Moment(asked=True))
    if plan is None:
        controller.say("No old tool output is worth clearing.")
        return
    blocks = agent.inspector.map().blocks
    targets = set(plan.targets)
    places = []
    for at, block in enumerate(blocks):
        if block.origin and block.origin[0] in targets:
            places.append(at)
    planned = plan_edit(blocks, places, "mask")
    edit = None
    if isinstance(planned, Edit):
        edit = planned
    warm, dollars = cost_of(controller, edit)
    price = context_plan_text.prune_price(plan, edit, warm=warm, dollars=dollars)
    if await agent.prune():
        controller.say(
            f"Cleared {plural(len(plan.targets), 'old tool output')}. {price} /undo brings them back."
        )


def cost_of(controller: Controller, edit: Edit | None) -> tuple[bool, float | None]:
    """Return whether the prompt cache is warm, and the cost of a context edit in US dollars.

    The cost is the price of ``edit.reread`` tokens; None if it is unknown, the cache is cold, or
    ``edit`` is None.
    """
    agent = controller.open_agent
    warm = agent.context.cache_state().warm
    if not warm or edit is None:
        return (warm, None)
    return (warm, controller.services.cache_miss_cost(agent.model, edit.reread))


async def edit_block(controller: Controller, entry_id: int) -> str:
    """Let the user edit what the model sees of an entry; return a sentence about its new size.

    Returns "" if the user cancels, changes nothing or deletes all text. If another session was
    opened meanwhile, puts the user's text into the prompt and returns "". The stored entry stays as
    it is. Raises `CommandError` if the entry can't be edited.
    """
    from tui_agent.app import edit_cost
    from tui_agent.context.edited import content_of
    from tui_agent.context.view import resolve

    agent = controller.open_agent
    controller.require_writable()
    blocks = agent.inspector.map().blocks
    places = [at for at, block in enumerate(blocks) if block.origin == (entry_id,)]
    entries = resolve(agent.session.active_path()).entries
    contents = [content_of(entry) for entry in entries if entry.id == entry_id]
    if not places or not contents or contents[0] is None:
        raise CommandError(f"#{entry_id} has no text that can be edited.")
    edit = edit_cost.plan_edit(blocks, places, "edit")
    if isinstance(edit, str):
        raise CommandError(edit)
    warm, dollars = cost_of(controller, edit)
    content = readable(contents[0])
    text = await controller.ask(
        LongText(edit_cost.question(edit, warm=warm, dollars=dollars), content)
    )
    if not text or text == content.strip():
        return ""
    if controller.agent is not agent:
        controller.frontend.put_back(text)
        controller.say("Another session was opened. Your text is in the prompt.", "warning")
        return ""
    agent.edit_context(entry_id, "edit", text=text)
    before = blocks[places[0]].tokens
    after = agent.counter.text(text)
    return (
        f"#{entry_id} edited from the next request on: {tokens(before)} → {tokens(after)} tokens."
    )


async def edit_summary(controller: Controller, entry_id: int) -> None:
    """Let the user edit a compaction's summary; append a compaction with the edited summary.

    Only the summary of the last compaction on the current session path can be edited. For any other
    entry, tells the user so. If a run has begun meanwhile, asks the user again, with the edited
    text. If the summary is no longer the last one, or another session was opened, the text goes
    into the prompt.
    """
    from tui_agent.context.compaction import with_summary
    from tui_agent.context.view import resolve
    from tui_agent.session.entries import CompactionEntry

    agent = controller.idle_agent
    controller.require_writable()
    entry = agent.session.entry(entry_id)
    if not isinstance(entry, CompactionEntry) or entry_id != agent.inspector.standings().compaction:
        controller.say(NOT_LATEST)
        return
    question = "Summary of the earlier history, as the model sees it"
    former = entry.summary.strip()
    text = await controller.ask(LongText(question, former))
    while text and text != former and agent.running:
        controller.frontend.warn("The agent is working now. Your text stays here.")
        text = await controller.ask(LongText(question, text))
    if not text or text == former:
        return
    if controller.agent is not agent or entry_id != agent.inspector.standings().compaction:
        controller.frontend.put_back(text)
        controller.say(f"{NOT_LATEST} Your text is in the prompt.", "warning")
        return
    agent.keep(with_summary(resolve(agent.session.active_path()), text, agent.counter.entry))
    controller.say("The summary was changed; /undo restores the previous one.")


@Command(
    "panel",
    "show or hide tree, to-dos, files and jobs",
    key="ctrl+b",
    needs_screen=True,
    place=290,
    words="side bar, sidebar, tree, plan",
)
async def panel(controller: Controller, _argument: str) -> None:
    controller.frontend.toggle_panel()


@Command(
    "view",
    "switch between the whole conversation and what the model sees of it",
    key="ctrl+o",
    needs_screen=True,
    place=295,
    words="what the model sees, cleared, hidden",
)
async def view(controller: Controller, _argument: str) -> None:
    if controller.frontend.toggle_view():
        key = key_of("view", controller.frontend.keymap)
        controller.say(f"Showing what the model sees · {key} shows all.")
    else:
        controller.frontend.clear_notice()


@Command(
    "outputs",
    "open or fold the outputs of all calls",
    key="f10",
    needs_screen=True,
    place=296,
    words="expand, collapse, verbose, tool output",
)
async def outputs(controller: Controller, _argument: str) -> None:
    if controller.frontend.toggle_open("outputs"):
        controller.say("All outputs are open. /outputs folds them again.")
    else:
        controller.say("Outputs are folded.")


@Command(
    "thoughts",
    "open or fold all of the model's thinking",
    key="shift+f9",
    needs_screen=True,
    place=297,
    words="reasoning, show thinking, hide thinking",
)
async def thoughts(controller: Controller, _argument: str) -> None:
    if controller.frontend.toggle_open("thinking"):
        controller.say("All thinking is shown. /thoughts folds it again.")
    else:
        controller.say("Thinking is folded.")


@Command(
    "settings",
    "show and change every setting",
    argument="[TEXT]",
    needs_screen=True,
    place=380,
    aliases=("config",),
    words="configuration, options, preferences, turn off, disable, automatic compaction",
)
async def settings(controller: Controller, argument: str) -> None:
    """Read and apply the settings again, then show the settings page, filtered by ``argument``.

    Invalid settings are reported and not applied.
    """
    follow_settings(controller)
    controller.show(SettingsPage(argument))


def follow_settings(controller: Controller) -> str:
    """Read the settings again and apply them; if they are invalid, report that and apply none.

    Returns the problem; "" if the settings are valid.
    """
    from tui_agent.config import ConfigError

    try:
        reread_settings(controller)
    except ConfigError as error:
        controller.frontend.announce(str(error), "error")
        return str(error)
    return ""


def reread_settings(controller: Controller) -> None:
    """Read the settings again and apply those that take effect at once.

    Raises:
        ConfigError: the settings are invalid, so none of them was applied.
    """
    controller.services.reread_settings()
    controller.frontend.apply_settings(controller.services.config())
    controller.frontend.refresh_facts()


async def jump(controller: Controller, entry_id: int) -> None:
    """Scroll to what the entry ``entry_id`` refers to; does nothing if it refers to nothing.

    A context edit refers to the edited entry; a compaction is scrolled to itself. For a branch
    summary, opens the tree at the leaf of the summarised branch.
    """
    from tui_agent.session.entries import BranchSummaryEntry, CompactionEntry, ContextEditEntry

    match controller.open_agent.session.entry(entry_id):
        case ContextEditEntry(target=target):
            if not controller.frontend.jump_to(target):
                controller.say(f"#{target} is not on this branch.")
        case CompactionEntry():
            controller.frontend.jump_to(entry_id)
        case BranchSummaryEntry(from_id=from_id):
            controller.begin("tree", f"#{from_id}")
        case _:
            pass


async def restore(controller: Controller, entry_id: int) -> None:
    """Bring an entry back into the context in full, from the next request on.

    For a context edit, brings back the edited entry. For a prune, brings back all outputs that it
    cleared and that are still out of the context. The user is told that what a compaction
    summarised can't be brought back.
    """
    from tui_agent.context.view import resolve
    from tui_agent.session.entries import ContextEditEntry, PruneEntry

    agent = controller.open_agent
    entry = agent.session.entry(entry_id)
    kept = {one.id for one in resolve(agent.session.active_path()).entries}
    if isinstance(entry, ContextEditEntry) and entry.target in kept:
        controller.require_writable()
        agent.edit_context(entry.target, "restore")
        controller.say(f"#{entry.target} will be sent in full again from the next request.")
        return
    if isinstance(entry, PruneEntry):
        wanted = set(entry.targets)
    elif isinstance(entry, ContextEditEntry):
        wanted = {entry.target}
    else:
        wanted = {entry_id}
    hidden = []
    for block in agent.inspector.map().blocks:
        if block.origin and block.origin[0] in wanted and block.state not in {"live", "pinned"}:
            hidden.append(block.origin[0])
    if not hidden and not wanted <= kept:
        controller.say(
            "Nothing more can be brought back, because the rest was summarised, or is on another branch."
        )
        return
    if not hidden:
        controller.say(
            "There is nothing to bring back, because all of it is in the context already."
        )
        return
    controller.require_writable()
    for target in hidden:
        agent.edit_context(target, "restore")
    if len(hidden) == 1:
        controller.say(f"#{hidden[0]} will be in the context again from the next request.")
    else:
        controller.say(
            f"{plural(len(hidden), 'output')} will be in the context again from the next request."
        )
