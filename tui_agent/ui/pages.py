"""Which screen asks a question or shows a page of the desk: the one place that knows both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.app import face
from tui_agent.app.format import visible
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from textual.content import Content
    from textual.screen import Screen

    from tui_agent.app.desk import Desk


def screen_for(question: face.Question[Any], desk: Desk) -> Screen[Any]:  # noqa: PLR0911 - one arm per question
    """Return the screen that asks a question; it is dismissed with the answer."""
    services = desk.services
    match question:
        case face.Choice():
            from tui_agent.ui.screens.choice import ChoiceScreen

            return ChoiceScreen(question.question, question.answers, question.details, at=question.at)
        case face.Pick():
            from tui_agent.ui.screens.pick import PickScreen

            return PickScreen(question)
        case face.TextLine():
            from tui_agent.ui.screens.line import LineScreen

            return LineScreen(question)
        case face.LongText():
            from tui_agent.ui.screens.long_text import LongTextScreen

            return LongTextScreen(question.question, question.text, keeps=question.confirm)
        case face.ModelChoice():
            from tui_agent.ui.screens.models import ModelPicker

            return ModelPicker(services, question.current)
        case face.RaceForm():
            from tui_agent.ui.screens.race_start import RaceStartScreen

            return RaceStartScreen(desk, question)
        case face.SessionChoice():
            from tui_agent.ui.screens.sessions import SessionPicker

            return SessionPicker(desk, current=question.current)
        case face.ThemeChoice():
            from tui_agent.ui.screens.themes import ThemePicker

            return ThemePicker()
        case _:
            raise NotImplementedError(question)


def screen_of(page: face.Page, desk: Desk) -> Screen[Any]:  # noqa: C901, PLR0911, PLR0912 - one arm per page
    agent = desk.agent
    match page:
        case face.CostPage():
            from tui_agent.ui.screens.cost import CostScreen

            return CostScreen(page.title, _content(page), page.found, lambda entry: desk.show(face.TreePage(entry)))
        case face.Report():
            from tui_agent.ui.screens.report import ReportScreen

            return ReportScreen(page.title, _content(page))
        case face.Output():
            from tui_agent.ui.screens.viewer import ViewerScreen

            return ViewerScreen(page.title, page.text)
        case face.DiffPage():
            from tui_agent.ui.screens.diff import DiffScreen

            return DiffScreen(page.title, page.files)
        case face.FindingsPage():
            from tui_agent.ui.screens.findings import FindingsScreen

            return FindingsScreen(desk, page)
        case face.RacePage():
            from tui_agent.app.race_views import RaceView
            from tui_agent.ui.screens.race import RaceScreen

            return RaceScreen(desk, RaceView(desk, page.race))
        case face.RunnerPage():
            from tui_agent.ui.screens.runner import RunnerScreen

            return RunnerScreen(desk, page.watched, page.race, page.number)
        case face.SettingsPage():
            from tui_agent.ui.screens.settings import SettingsScreen

            return SettingsScreen(desk, page.query)
        case face.SubagentPage():
            from tui_agent.ui.screens.subagent import SubagentScreen

            return SubagentScreen(desk, page.watched, page.close)
    if agent is None:
        raise CommandError("The session is not open yet.")
    match page:
        case face.TreePage():
            from tui_agent.ui.screens.tree import TreeScreen

            return TreeScreen(desk, agent, at=page.at)
        case face.ContextPage():
            from tui_agent.ui.screens.context import ContextScreen

            return ContextScreen(agent, desk.services.reread_cost, lambda entry: desk.show(face.TreePage(entry)))
        case face.CompactPage():
            from tui_agent.ui.screens.compact import CompactScreen

            return CompactScreen(agent, desk.services.price, page.boundary)
        case face.JobsPage():
            from tui_agent.ui.screens.jobs import JobsScreen

            return JobsScreen(agent)
        case face.McpPage():
            from tui_agent.ui.screens.mcp import McpScreen

            return McpScreen(agent, desk.services.save_setting)
        case face.PermissionsPage():
            from tui_agent.ui.screens.permissions import PermissionsScreen

            return PermissionsScreen(agent.gate, desk.services)
        case _:
            raise NotImplementedError(page)


def is_output(screen: Screen[Any]) -> bool:
    from tui_agent.ui.screens.viewer import ViewerScreen

    return isinstance(screen, ViewerScreen)


def _content(report: face.Report) -> Content:
    from textual.content import Content

    lines = [
        Content(visible(line)).stylize("bold") if isinstance(line, face.Heading) else Content(line)
        for line in report.lines
    ]
    return Content("\n").join(lines)
