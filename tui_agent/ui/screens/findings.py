"""What a review found: a list, each opened in the editor at its place, and all of it handed to the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from tui_agent.app.format import one_line, visible
from tui_agent.files.inside import is_inside
from tui_agent.path_checks import is_file
from tui_agent.ui.screens.picker import PickerRow, PickerScreen
from tui_agent.ui.terminal_suspend import EditorError, open_in_editor

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.app.frontend import Finding, FindingsPage

MARKS = {"high": "▲", "medium": "●", "low": "○"}


class FindingsScreen(PickerScreen[None]):
    """Lists findings; Enter opens one, and the list stays for the next."""

    EMPTY = "No finding has these words."
    KEYS = "↑↓ move  enter open in $EDITOR  tab ask the agent to fix these  esc back"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "hand_over", "hand over", show=False, priority=True)]

    def __init__(self, controller: Controller, page: FindingsPage) -> None:
        super().__init__(page.title)
        self._controller = controller
        self._page = page

    def _matching(self, query: str) -> list[tuple[int, Finding]]:
        words = query.lower().split()
        return [
            (number, found)
            for number, found in enumerate(self._page.findings)
            if all(word in f"{found.place} {found.severity} {found.text}".lower() for word in words)
        ]

    def refill(self, query: str) -> None:
        self.show([PickerRow(str(number), self._row(found)) for number, found in self._matching(query)])

    def _row(self, found: Finding) -> Content:
        mark = f"{MARKS.get(found.severity, '·')} {found.severity:<7}"
        name = "strong" if found.severity == "high" else "faint"
        return Content.assemble(
            self.styled(mark, name), self.styled(visible(found.place), "strong"), f"  {one_line(found.text, 300)}"
        )

    def highlight(self, key: str | None) -> None:
        found = None if key is None else self._page.findings[int(key)]
        self.tell("" if found is None else f"{found.place}\n{found.text}")

    def pick(self, key: str) -> None:
        """Open a place in the editor."""
        self._open(self._page.findings[int(key)])

    @work(exclusive=True, group="editor")
    async def _open(self, found: Finding) -> None:
        path = self._page.project / found.path
        if not is_file(path) or not is_inside(self._page.project, path):
            self.notify(f"There is no file {visible(found.path)} in the project.", markup=False)
            return
        try:
            await open_in_editor(self.app, path, found.line)
        except EditorError as error:
            self.notify(str(error), severity="warning", markup=False)

    def action_hand_over(self) -> None:
        """Put the findings that are listed into the prompt, for the agent to mend."""
        found = [finding for _number, finding in self._matching(self.field.value.strip())]
        lines = "\n".join(f"- {finding.place}: {finding.text}" for finding in found)
        self.dismiss(None)
        self._controller.frontend.put_back(f"Fix what the review found:\n{lines}")
