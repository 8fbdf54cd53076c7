"""What each command does. A handler gets the main screen and the text after the command's name.

Handlers import what they show: commands are known before the first paint, screens and entries are not needed then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tui_agent.ui.abilities import NavigatingAgent
from tui_agent.ui.format import one_line
from tui_agent.ui.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from tui_agent.session.entries import Entry
    from tui_agent.ui.screens.main import MainScreen


async def new(main: MainScreen, _argument: str) -> None:
    """Begin a new session."""
    await main.open(OpenRequest())


async def sessions(main: MainScreen, argument: str) -> None:
    """Open a session by its id, or show the list."""
    from tui_agent.ui.screens.sessions import SessionPicker
    from tui_agent.ui.transfer_handlers import ask_export

    if argument:
        await main.open(OpenRequest(argument))
        return
    current = main.agent.session.id if main.agent else None
    picker = SessionPicker(
        main.services.store,
        main.services.clock,
        cwd=main.services.cwd,
        current=current,
        export=lambda info: ask_export(main, info.id),
    )
    main.app.push_screen(picker, main.open_later)


async def fork(main: MainScreen, _argument: str) -> None:
    """Go on in a copy of the session."""
    if main.agent is not None:
        main.open_later(OpenRequest(main.agent.session.id, OpenHow.FORK))


async def rename(main: MainScreen, argument: str) -> None:
    """Give the session a title; without one ask for it."""
    from tui_agent.session.errors import StoreError
    from tui_agent.ui.screens.line import LineScreen

    if main.agent is None:
        return
    session = main.agent.session

    def titled(title: str | None) -> None:
        if not title:
            return
        try:
            session.set_title(title)
        except StoreError as error:
            main.say(error.message, "error")
            return
        main.show_facts()
        main.say(f"This session is called “{one_line(title, 60)}”.")

    if argument:
        titled(argument)
    else:
        main.app.push_screen(LineScreen("Title of this session", session.info.title, keeps="rename"), titled)


async def model(main: MainScreen, argument: str) -> None:
    """Use another model; without an id show the list."""
    from tui_agent.ui.screens.models import ModelPicker

    def chosen(name: str | None) -> None:
        if name:
            main.run_soon(choose_model(main, name))

    if argument:
        chosen(argument)
    elif main.agent is not None:
        main.app.push_screen(ModelPicker(main.services, main.agent.model), chosen)


async def effort(main: MainScreen, argument: str) -> None:
    """Have the model think more or less; without a level show those it has."""
    from tui_agent.session.effort import DEFAULT_EFFORT, Effort
    from tui_agent.ui.effort_switch import choose_effort, use_effort

    if main.agent is None:
        return
    if not argument:
        choose_effort(main, main.agent)
        return
    try:
        chosen = None if argument == DEFAULT_EFFORT else Effort(argument)
    except ValueError:
        known = ", ".join((DEFAULT_EFFORT, *Effort))
        main.say(f"There is no effort “{one_line(argument, 40)}”; there are {known}.", "warning")
    else:
        use_effort(main, main.agent, chosen)


async def choose_model(main: MainScreen, name: str) -> bool:
    """Use a model if there may be one of that name; ask where the catalog doesn't have it. To be run in a worker.

    Returns whether the model changed.
    """
    from tui_agent.model.naming import Standing
    from tui_agent.ui.model_switch import use_model
    from tui_agent.ui.screens.choice import ChoiceScreen

    verdict = await asyncio.to_thread(main.services.judge_model, name)
    if verdict is None or verdict.standing is Standing.KNOWN:
        return await use_model(main, name)
    if verdict.standing is Standing.IMPOSSIBLE or main.agent is None:
        main.say(f"{verdict.sentence} Nothing was changed.", "warning")
        return False
    answers = [(known, f"Use {known}") for known in verdict.similar]
    answers += [
        (name, f"Use {one_line(name, 60)} as typed: its provider may know it"),
        ("", f"Keep {main.agent.model}"),
    ]
    question = f"The catalog has no model “{one_line(name, 60)}”."
    details = "Its window is assumed and its price unknown until it is set up in config.toml."
    chosen = await main.app.push_screen_wait(ChoiceScreen(question, answers, details))
    return await use_model(main, chosen) if chosen else False


async def tree(main: MainScreen, argument: str) -> None:
    """Show all branches of the session, the cursor at the leaf or at an entry (``#412``)."""
    from tui_agent.ui.screens.tree import TreeScreen

    agent: object = main.agent
    if not isinstance(agent, NavigatingAgent):
        return
    entry = argument.removeprefix("#")
    main.app.push_screen(TreeScreen(main, agent, at=int(entry) if entry.isdigit() else None))


async def label(main: MainScreen, argument: str) -> None:
    """Label the leaf; without a text ask for it."""
    from tui_agent.session.errors import StoreError
    from tui_agent.ui.screens.line import LineScreen

    session = main.agent.session if main.agent else None
    if session is None or session.leaf is None:
        main.say("There is nothing to label yet.")
        return
    leaf = session.leaf

    def labelled(text: str | None) -> None:
        if not text:
            return
        try:
            session.label(leaf, text)
        except StoreError as error:
            main.say(error.message, "error")
        else:
            main.say(f"#{leaf} is labelled “{one_line(text, 40)}”.")

    if argument:
        labelled(argument)
    else:
        main.app.push_screen(LineScreen(f"Label of #{leaf}", session.labels().get(leaf, "")), labelled)


async def block_action(main: MainScreen, action: str, entry_id: int) -> None:
    """Do what a block of the conversation offers: open its whole output, retry, undo, restore."""
    if main.agent is None:
        return
    match action:
        case "open":
            open_output(main, main.agent.session.entry(entry_id))
        case "retry":
            await retry(main, "")
        case "undo" if not main.agent.running:
            from tui_agent.ui.undo_handlers import step_back

            await step_back(main, main.agent.session.entry(entry_id))
        case "undo":
            main.say("The agent is working: press Escape first.", "warning")
        case "jump":
            from tui_agent.ui import context_handlers

            await context_handlers.jump(main, entry_id)
        case "restore":
            from tui_agent.ui import context_handlers

            await context_handlers.restore(main, entry_id)
        case _:
            pass


def open_output(main: MainScreen, entry: Entry) -> None:
    """Show all of a tool's or a command's output."""
    from tui_agent.session.entries import ShellEntry, ToolResultEntry
    from tui_agent.ui.copying import text_of
    from tui_agent.ui.screens.viewer import ViewerScreen

    # A key pressed twice comes twice, the second time before the page has the focus.
    if not isinstance(entry, ToolResultEntry | ShellEntry) or isinstance(main.app.screen, ViewerScreen):
        return
    if isinstance(entry, ShellEntry):
        main.app.push_screen(ViewerScreen(f"!{entry.command}", entry.output))
        return
    text = text_of(entry, main.services.store.blob)
    main.app.push_screen(ViewerScreen(f"{entry.tool} {entry.title}", text))


async def retry(main: MainScreen, _argument: str) -> None:
    """Send the last request again."""
    if main.agent is not None and not main.agent.running and main.agent.session.leaf is not None:
        main.notice.clear()
        main.agent.retry()


async def cost(main: MainScreen, _argument: str) -> None:
    """Say what was spent."""
    if main.agent is not None:
        main.run_soon(_tell_cost(main, main.agent.session))


async def _tell_cost(main: MainScreen, session: Any) -> None:
    """Read what cost something, in a thread: in a long session it takes a second."""
    from tui_agent.ui import reports
    from tui_agent.ui.screens.report import ReportScreen

    path = session.path_outline()
    ids = [entry_id for kind in reports.COSTING for entry_id in path.of_kind(kind)]
    told = await asyncio.to_thread(lambda: reports.cost_text(session.load(ids)))
    main.app.push_screen(ReportScreen("Cost of this session", told))


async def theme(main: MainScreen, argument: str) -> None:
    """Use another theme; without a name show the list."""
    from tui_agent.ui.screens.themes import ThemePicker

    if not argument:
        main.app.push_screen(ThemePicker(), main.use_theme)
    elif argument in main.app.available_themes:
        main.use_theme(argument)
    else:
        main.say(f"There is no theme “{argument}”; /theme shows them all.", "warning")


async def show_help(main: MainScreen, _argument: str) -> None:
    """Show commands and keys."""
    from tui_agent.ui import reports
    from tui_agent.ui.screens.report import ReportScreen

    main.app.push_screen(ReportScreen("Help", reports.help_text(main.commands, main.keymap)))


async def leave(main: MainScreen, _argument: str) -> None:
    """Quit; ask first when a run would be stopped."""
    from tui_agent.ui.screens.choice import ChoiceScreen

    if main.agent is None or not main.agent.running:
        main.app.exit()
        return

    def answered(answer: str | None) -> None:
        if answer == "quit":
            main.app.exit()

    question = "The agent is working. What it has done so far is saved."
    main.app.push_screen(ChoiceScreen(question, [("quit", "Quit"), ("stay", "Stay")]), answered)
