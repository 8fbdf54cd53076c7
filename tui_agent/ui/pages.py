"""Maps the controller's questions and pages to the screens that show them.

The main screen pushes these screens. It handles other questions and pages without a screen: inline
questions, texts for the editor, the help, a search of the conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.content import Content

from tui_agent.app import frontend
from tui_agent.app.format import visible
from tui_agent.errors import CommandError
from tui_agent.ui.screens.dialogs import ChoiceScreen, LineScreen, LongTextScreen, ReportScreen
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.screens.models import ModelPicker
from tui_agent.ui.screens.picker import PickScreen, ThemePicker
from tui_agent.ui.screens.sessions import SessionPicker
from tui_agent.ui.screens.viewer import ViewerScreen

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui_agent.app.controller import Controller
    from tui_agent.ui.error_boundary import PageScreen


def question_screen(question: frontend.Question[Any], controller: Controller) -> PageScreen[Any]:  # noqa: PLR0911 - one arm per question
    """Return a screen that asks the question. Its result is the answer; None if there is none."""
    services = controller.services
    match question:
        case frontend.Choice():
            return ChoiceScreen(question)
        case frontend.Pick():
            return PickScreen(question)
        case frontend.TextLine():
            return LineScreen(question)
        case frontend.LongText():
            return LongTextScreen(question)
        case frontend.ModelChoice():
            return ModelPicker(
                services, question.current, switches=question.switches, search=question.search
            )
        case frontend.SessionChoice():
            return SessionPicker(controller, current=question.current)
        case frontend.ThemeChoice():
            return ThemePicker()
        case _:
            raise NotImplementedError(question)


def page_screen(page: frontend.Page, controller: Controller) -> Screen[Any]:  # noqa: C901, PLR0911, PLR0912 - one arm per page
    """Return a screen that shows ``page``.

    Raises:
        CommandError: the page needs an open session, and none is open yet.
    """
    agent = controller.agent
    match page:
        case frontend.Report():
            if page.at:
                at = page.lines.index(page.at)
            else:
                at = 0
            text = Content("\n").join(map(_report_line, page.lines))
            return ReportScreen(page.title, text, at)
        case frontend.Output():
            return ViewerScreen(page.title, page.text)
        case frontend.DiffPage():
            return DiffScreen(page.title, page.files)
        case frontend.RacePage():
            from tui_agent.app.race_views import RaceView
            from tui_agent.ui.screens.race import RaceScreen

            return RaceScreen(controller, RaceView(controller, page.race))
        case frontend.RunnerPage() | frontend.SubagentPage():
            from tui_agent.ui.screens.branch import BranchScreen

            return BranchScreen(controller, page)
        case frontend.SettingsPage():
            from tui_agent.ui.screens.settings import SettingsScreen

            return SettingsScreen(controller, page.query)
    if agent is None:
        raise CommandError("The session is not open yet. Try again in a moment.")
    match page:
        case frontend.TreePage():
            from tui_agent.ui.screens.tree import TreeScreen

            return TreeScreen(controller, agent, page)
        case frontend.ContextPage():
            from tui_agent.ui.screens.context import ContextScreen

            return ContextScreen(controller, agent)
        case frontend.CompactPage():
            from tui_agent.ui.screens.compact import CompactScreen

            return CompactScreen(controller, agent, page.boundary)
        case frontend.JobsPage():
            from tui_agent.ui.screens.jobs import JobsScreen

            return JobsScreen(controller, agent)
        case frontend.EquipmentPage():
            from tui_agent.ui.screens.equipment import EquipmentScreen

            return EquipmentScreen(controller, agent, page)
        case frontend.MemoryPage():
            from tui_agent.ui.screens.memory import MemoryScreen

            return MemoryScreen(controller, page.view)
        case frontend.PermissionsPage():
            from tui_agent.ui.screens.permissions import PermissionsScreen

            return PermissionsScreen(controller, agent.tools.gate)
        case _:
            raise NotImplementedError(page)


def _report_line(line: str) -> Content:
    if isinstance(line, frontend.Heading):
        return Content(visible(line)).stylize("bold")
    return Content(line)
