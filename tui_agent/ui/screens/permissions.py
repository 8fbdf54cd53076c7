"""Every permission rule with where it comes from; one that is picked can be removed, or kept for later sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.content import Content

from tui_agent.agent.permissions import STORED, Rule
from tui_agent.ui.format import one_line
from tui_agent.ui.screens.choice import ChoiceScreen
from tui_agent.ui.screens.picker import PickerScreen, Row


class PermissionsScreen(PickerScreen[None]):
    """Rules in the order in which they are asked, the strongest source first."""

    HEADING = "Permissions: stronger sources first, in each the last rule that matches counts; a denial stays"
    KEYS = "↑↓ move   enter remove or keep   escape back"
    EMPTY = "No rule matches."

    def __init__(
        self,
        rules: Callable[[], Sequence[Rule]],
        *,
        remove: Callable[[Rule], None],
        keep: Callable[[Rule], None],
    ) -> None:
        super().__init__()
        self._rules = rules
        self._remove = remove
        self._keep = keep
        self._shown: dict[str, Rule] = {}

    def refill(self, query: str) -> None:
        """Show the rules that hold the query."""
        wanted = query.lower().split()
        rows: list[Row] = []
        self._shown = {}
        # The same rule may be given twice; a row stands for one of them.
        for place, rule in enumerate(reversed(tuple(dict.fromkeys(self._rules())))):
            origin = STORED[rule.source]
            if all(word in f"{rule} {origin}".lower() for word in wanted):
                self._shown[str(place)] = rule
                rows.append(Row(str(place), self._row(rule, origin)))
        self.show(rows)

    def _row(self, rule: Rule, origin: str) -> Content:
        action = self.styled(f"{rule.action.value:<6}", "strong")
        text = f"{one_line(rule.permission, 24):<20} {one_line(rule.pattern, 120)}"
        return Content.assemble(action, text, "  ", self.styled(origin, "faint"))

    def pick(self, key: str) -> None:
        """Ask what to do with a rule."""
        rule = self._shown.get(key)
        if rule is None:
            return
        if rule.source == "default":
            self.notify("Built in: a rule of your own overrules it, with /permissions you see which.", markup=False)
            return

        def answered(answer: str | None) -> None:
            if answer == "remove":
                self._remove(rule)
            elif answer == "keep":
                self._keep(rule)
            self.refill(self.field.value)

        answers = [("remove", f"Remove it from {STORED[rule.source]}"), ("leave", "Leave it")]
        if rule.source == "session":
            answers.insert(1, ("keep", "Keep it for every session, in your config.toml"))
        self.app.push_screen(ChoiceScreen(one_line(str(rule), 200), answers), answered)
