"""Asks whether what a project brings along may act, and shows all of it first."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.app.format import one_line, plural, short_path
from tui_agent.trust import ProjectState, TrustItem
from tui_agent.ui.error_boundary import Dialog
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.options import Options


class TrustScreen(Dialog[str | None]):
    """Dismissed with ``trusted``, ``refused`` or None for not now."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "not now", show=False)]

    def __init__(self, project: str, state: ProjectState) -> None:
        super().__init__()
        self._project = project
        self._state = state

    def compose(self) -> ComposeResult:
        with VerticalGroup(classes="dialog"):
            yield Static(f"Do you trust {short_path(self._project)}?", classes="dialog-title", markup=False)
            yield Static(_about(self._state), classes="trust-about", markup=False)
            with VerticalScroll(can_focus=False):
                yield Static(Content("\n").join(_row(item) for item in self._state.items), classes="trust-items")
            answers = [Option("Not now: work here without them", id="later")]
            if not self._state.problem:
                answers.append(Option("Trust it: they act, until one of them changes", id="trusted"))
            answers.append(Option("Never: work here without them and don't ask again", id="refused"))
            yield Options(*answers, compact=True)
            yield KeyLine("enter choose  esc not now", classes="dialog-keys")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(None if event.option_id == "later" else event.option_id)


def _about(state: ProjectState) -> str:
    if state.problem:
        return f"It can't be trusted as it is: {state.problem}."
    return f"It brings {plural(len(state.items), 'thing')} along that would act here. None of it is active yet."


def _row(item: TrustItem) -> Content:
    text = f"  {one_line(item.text, 160)}" if item.text else ""
    return Content(f"{item.kind:<16} {one_line(item.name, 80)}{text}")
