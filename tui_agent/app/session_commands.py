"""Commands for sessions: /new, /sessions, /fork, /rename, /label, /tree, /retry, /detach, /quit.

The module also contains ``/demo`` and ``/theme``, and the actions that an entry's block in the
conversation offers.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command, key_of
from tui_agent.app.format import named_jobs, one_line
from tui_agent.app.frontend import (
    Choice,
    Output,
    Report,
    SessionChoice,
    TextLine,
    ThemeChoice,
    TreePage,
)
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.errors import CommandError
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry

FORKED = "This is a copy; the original stays as it is. /parent goes back to it."


@Command(
    "new",
    "begin a new session; this one is kept",
    key="ctrl+n",
    aliases=("clear",),
    needs_screen=True,
    place=10,
    words="start over, reset, empty",
)
async def new(controller: Controller, _argument: str) -> None:
    from tui_agent.model.demo import DEMO_MODEL

    agent = controller.agent
    info = None
    if agent is not None:
        info = agent.session.info
    # After a demo, begin another one, because there may be no real model.
    opened = await controller.open(
        OpenRequest(demo=agent is not None and agent.model == DEMO_MODEL)
    )
    if opened and info is not None and info.entry_count:
        name = one_line(info.title or info.first_message, 50)
        key = key_of("sessions", controller.frontend.keymap)
        controller.say(
            f"A new session. “{name}” is kept: /resume {info.id} or {key} opens it again."
        )


@Command(
    "demo",
    "start the demo: a script plays the model, no API key needed",
    needs_screen=True,
    place=380,
    words="tutorial, try, example",
)
async def demo(controller: Controller, _argument: str) -> None:
    await controller.open(OpenRequest(demo=True))


@Command(
    "sessions",
    "open another session",
    key="ctrl+s",
    argument="[ID]",
    aliases=("resume",),
    needs_screen=True,
    place=30,
    words="continue after a crash, delete, rename, search in all sessions, archive",
)
async def sessions(controller: Controller, argument: str) -> None:
    if argument:
        controller.frontend.go_to(OpenRequest(argument))
        return
    current = None
    if controller.agent is not None:
        current = controller.agent.session.id
    request = await controller.ask(SessionChoice(current))
    if request is not None:
        controller.frontend.go_to(request)


@Command(
    "fork",
    "continue in a copy of this session",
    place=60,
    aliases=("branch", "clone"),
    words="duplicate",
)
async def fork(controller: Controller, _argument: str) -> None:
    if await controller.open(OpenRequest(controller.open_agent.session.id, OpenHow.FORK)):
        controller.say(FORKED)


@Command(
    "rename",
    "give this session a title",
    argument="[TITLE]",
    place=70,
    aliases=("name",),
    words="change the title",
)
async def rename(controller: Controller, argument: str) -> None:
    session = controller.open_agent.session
    title = argument or await controller.ask(
        TextLine("Title of this session", session.info.title, confirm="rename")
    )
    if title:
        session.set_title(title)
        controller.frontend.refresh_facts()
        controller.say(f"This session is called “{one_line(title, 60)}”.")


@Command(
    "label",
    "label this point, to find it in /tree",
    argument="[TEXT]",
    place=100,
    words="bookmark, tag, mark",
)
async def label(controller: Controller, argument: str) -> None:
    session = controller.open_agent.session
    leaf = session.leaf
    if leaf is None:
        raise CommandError("There is nothing to label yet.")
    text = argument or await controller.ask(
        TextLine(f"Label of #{leaf}", session.labels().get(leaf, ""), "save (empty: remove label)")
    )
    if text is not None:
        session.label(leaf, text or None)
        controller.say(
            f"#{leaf} is labelled “{one_line(text, 40)}”." if text else f"#{leaf} has no label now."
        )


@Command(
    "tree",
    "show all branches of this session",
    key="ctrl+t",
    argument="[#N | diff #A #B]",
    place=40,
    words="merge, fork, label, jump, go back, compare, alternatives",
)
async def tree(controller: Controller, argument: str) -> None:
    """Show all branches of the session, with the cursor at the leaf or at an entry (``#412``).

    ``--json`` prints them as JSON if there is no screen. ``diff #12 #34`` compares the model's
    contexts at two entries; ``diff #12`` compares the contexts at an entry and at the leaf.
    """
    session = controller.open_agent.session
    if argument.partition(" ")[0] == "diff":
        numbers = map(whole_number, re.findall(r"\d+", argument))
        await show_contexts(controller, [number for number in numbers if number is not None])
        return
    at = whole_number(argument.removeprefix("#"))
    if controller.frontend.has_screen:
        controller.show(TreePage(at))
        return
    from tui_agent.app import session_reports

    if argument == "--json":
        controller.show(Output("The session tree", session_reports.tree_json(session)))
    else:
        controller.show(TreePage(at, session_reports.tree_lines(session)))


async def show_contexts(controller: Controller, entry_ids: Sequence[int]) -> None:
    """Show how the model's context differs between two entries, or between one entry and the leaf.

    Raises `CommandError` for any other number of entries.
    """
    from tui_agent.app.context_difference import Side, difference_lines
    from tui_agent.session.entries import Usage

    agent = controller.open_agent
    leaf = agent.session.leaf
    if len(entry_ids) == 1 and leaf is not None:
        ends = [*entry_ids, leaf]
    else:
        ends = [*entry_ids]
    if len(ends) != 2:
        raise CommandError("Name two entries: /tree diff #12 #34, or one to compare with the leaf.")

    def side_at(entry_id: int) -> Side:
        model, shown = agent.inspector.map_at(entry_id)
        price = controller.services.price(model, Usage(input=shown.size.total))
        return Side(entry_id, model, shown, price)

    left, right = [await asyncio.to_thread(side_at, entry_id) for entry_id in ends]
    lines = list(difference_lines(left, right))
    controller.show(Report(f"The contexts at {left.name} and {right.name}", lines))


@Command(
    "retry",
    "send the last request again",
    key="f8",
    place=200,
    words="again, repeat, regenerate, continue",
)
async def retry(controller: Controller, _argument: str) -> None:
    agent = controller.idle_agent
    if agent.session.leaf is None:
        raise CommandError("There is nothing to send again yet.")
    controller.frontend.clear_notice()
    agent.retry()


async def block_action(controller: Controller, action: str, entry_id: int) -> None:
    """Run an action that an entry's block in the conversation offers.

    The actions are open, retry, undo, jump, restore, compact, and edit (for a summary). Any other
    ``action`` is ignored.
    """
    from tui_agent.app import context_commands, undo_commands

    match action:
        case "open":
            open_text(controller, controller.open_agent.session.entry(entry_id))
        case "retry":
            await retry(controller, "")
        case "undo":
            await undo_commands.undo_entry(controller, entry_id)
        case "jump":
            await context_commands.jump(controller, entry_id)
        case "restore":
            await context_commands.restore(controller, entry_id)
        case "compact":
            await context_commands.compact_up_to(controller, entry_id)
        case "edit":
            await context_commands.edit_summary(controller, entry_id)
        case _:
            pass


def open_text(controller: Controller, entry: Entry) -> None:
    """Show the whole text of an entry (an output, a message or an answer) on a page."""
    from tui_agent.app.copy_commands import own_text
    from tui_agent.session.entries import ShellEntry, ToolResultEntry, UserEntry

    text = own_text(entry, controller.services.store.blob)
    match entry:
        case ShellEntry():
            title = f"!{entry.command}"
            text = entry.output
        case ToolResultEntry():
            title = f"{entry.tool} {entry.title}"
        case UserEntry():
            title = f"Message #{entry.id}"
        case _:
            title = f"Answer #{entry.id}"
    controller.show(Output(title, text))


@Command(
    "theme",
    "change the colours",
    argument="[NAME]",
    needs_screen=True,
    place=370,
    words="colors, dark, light, appearance",
)
async def theme(controller: Controller, argument: str) -> None:
    name = argument or await controller.ask(ThemeChoice())
    if name and controller.frontend.use_theme(name):
        controller.services.save_setting("ui.theme", name)
    elif name:
        raise CommandError(f"There is no theme “{one_line(name, 40)}”. /theme lists the themes.")


@Command(
    "quit",
    "quit the program",
    aliases=("exit",),
    needs_screen=True,
    is_early=True,
    place=420,
    words="close, leave, end",
)
async def leave(controller: Controller, _argument: str) -> None:
    # A second /quit ends the program without a question.
    if not controller.is_leaving and not await _may_quit(controller):
        return
    controller.frontend.leave()


async def _may_quit(controller: Controller) -> bool:
    """Ask the user whether to quit, if that would stop work; return whether the program may quit.

    If the user detaches the terminal instead, does that and returns False.
    """
    while at_work := _at_work(controller):
        was_running = _is_running(controller)
        asked = Choice(
            f"{at_work} Quit?",
            _answers_to_quit(controller),
            why=" ".join(["The work so far is saved.", *_ended_jobs(controller)]),
            inline=True,
        )
        controller.is_leaving = True
        try:
            answer = await controller.ask(asked)
        finally:
            controller.is_leaving = False
        if answer == "d":
            controller.services.detach_terminals()
            return False
        if answer is not None:
            return answer == "y"
        # The question also closes if the run ends. Then other work may be left to ask about.
        if was_running == _is_running(controller):
            return not _at_work(controller)
    return True


def _answers_to_quit(controller: Controller) -> list[tuple[str, str]]:
    answers = [("y", "yes, stop the work and quit"), ("n", "no, stay")]
    if controller.services.detached_as:
        answers.append(("d", "detach: the work continues without this terminal"))
    return answers


@Command(
    "detach",
    "continue without this terminal; tui-agent attach shows the session again",
    needs_screen=True,
    place=410,
    aliases=("background",),
    words="leave it running, close the terminal",
)
async def detach(controller: Controller, _argument: str) -> None:
    if controller.services.detach_terminals():
        return
    if controller.asides:
        raise CommandError(
            "Other sessions are still working, and only one can continue detached. Finish or stop them first."
        )
    agent = controller.open_agent
    if agent.session.leaf is None:
        raise CommandError("This session is empty, so there is nothing to continue yet.")
    if not await _may_detach(controller, agent):
        return
    controller.services.go_on_detached(agent.session, agent.running)
    controller.frontend.leave()


async def _may_detach(controller: Controller, agent: Agent) -> bool:
    """Ask the user whether to detach, if that would stop a step or end jobs; return the answer."""
    while agent.running or agent.jobs.running:
        was_running = agent.running
        why = list(_ended_jobs(controller))
        if was_running:
            title = "The agent is working. Detach?"
            answers = [("y", "yes, stop this step and continue detached"), ("n", "no, stay")]
            why.insert(0, "The current step starts again; everything before it is kept.")
        else:
            title = f"{_of_jobs(_running_jobs(controller))} Detach?"
            answers = [("y", "yes, detach"), ("n", "no, stay")]
        answer = await controller.ask(Choice(title, answers, why=" ".join(why), inline=True))
        if answer is not None or controller.agent is not agent:
            return answer == "y" and controller.agent is agent
        # If the run ends, the question closes too; then there is no step to stop.
        if was_running == agent.running:
            return False
    return True


def detach_if_closed(controller: Controller) -> None:
    """Let a working agent continue in a detached run, if the settings say so.

    A setting decides whether this happens when the terminal is closed. Call this after the terminal
    was closed, before the program leaves the screen.
    """
    agent = controller.agent
    is_wanted = controller.services.config().ui.closed_terminal == "detach"
    if agent is not None and agent.running and is_wanted:
        controller.services.go_on_detached(agent.session, agent.running)


def _at_work(controller: Controller) -> str:
    """Return a sentence that names the work that quitting would stop; "" if there is none."""
    from tui_agent.app.side_by_side import AsideState

    names = []
    for aside in controller.asides.values():
        if aside.state in {AsideState.WORKING, AsideState.NEEDS_YOU}:
            names.append(f"“{aside.title}”")
    agent = controller.agent
    race = controller.race
    here = ""
    if agent is None:
        pass
    elif agent.running:
        here = "The agent is working."
    elif race is not None and not race.over.is_set():
        here = "A race is running."
    elif agent.jobs.running:
        here = _of_jobs(_running_jobs(controller))
    elif agent.repeated_message.message:
        here = "/loop is repeating a message."
    if not names:
        return here
    if here:
        names.append("this session")
    if len(names) == 1:
        return f"{names[0]} is still working."
    return f"{', '.join(names[:-1])} and {names[-1]} are still working."


def _is_running(controller: Controller) -> bool:
    return controller.agent is not None and controller.agent.running


def _running_jobs(controller: Controller) -> list[str]:
    """Return the commands of the background jobs of all open sessions."""
    agents = [aside.agent for aside in controller.asides.values()]
    if controller.agent is not None:
        agents.append(controller.agent)
    return [command for agent in agents for command in agent.jobs.running_commands]


def _of_jobs(commands: Sequence[str]) -> str:
    if len(commands) == 1:
        return "1 background job is running."
    return f"{len(commands)} background jobs are running."


def _ended_jobs(controller: Controller) -> Iterator[str]:
    """Yield a sentence that names the jobs that end with the program, if there are any."""
    commands = _running_jobs(controller)
    if commands:
        noun = "This job ends" if len(commands) == 1 else "These jobs end"
        yield f"{noun}: {named_jobs(commands)}."
