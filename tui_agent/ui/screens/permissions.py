"""The permissions page, which lists all rules with their origins.

The user can remove a rule, or keep a session's rule for all sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.widgets.option_list import Option

from tui_agent.agent.gate import Gate
from tui_agent.agent.permissions import STORED, Rule
from tui_agent.app.format import lower_case, one_line
from tui_agent.app.frontend import Choice
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.picker import PickerScreen, has_words

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

_BUILT_IN_DECISIONS: tuple[tuple[str, str, str], ...] = (
    ("ask", "secrets: .env, keys, credentials", "even where reading is allowed"),
    ("allow", "any command", "in the sandbox, by mode"),
    ("allow", "read-only commands: ls, cat, rg …", "even without a sandbox"),
    ("allow", "changing files of the project", "only in auto-edit"),
    ("ask", "git commit, hosts, outside paths", "in the sandbox, too"),
    ("allow", "everything: never ask", '[permissions] "*" = "allow"'),
)
"""The program's permission decisions that can't be written as rules, each with its action, subject
and condition. The page lists them with the rules."""

_DECISION_NOTE = (
    "This is not a rule, but a decision based on what a tool call does. It comes before the "
    "built-in rules; your own rules override it. See docs/permissions.md."
)


class PermissionsScreen(PickerScreen[None]):
    """The page that lists all permission rules, in the order in which they apply."""

    HEADING = "Permissions"
    KEYS = "↑↓ move  enter remove or keep  ctrl+z undo a removal  esc back"
    EMPTY = "No rule matches."

    BINDINGS = [hidden("ctrl+z", "undo", "take back", priority=True)]

    def __init__(self, controller: Controller, gate: Gate) -> None:
        super().__init__()
        self._controller = controller
        self._services = controller.services
        self._gate = gate
        self._removed: list[Rule] = []
        self._shown: dict[str, Rule] = {}

    def on_mount(self) -> None:
        self.show_facts("The first match decides, but a deny always wins.")

    def refill(self, query: str, *, at: str | None = None) -> None:
        wanted = lower_case(query).split()
        self._shown = {}
        # If the same rule occurs twice, show only one row for it.
        for place, rule in enumerate(reversed(tuple(dict.fromkeys(self._gate.rules())))):
            origin = rule.origin or STORED[rule.source]
            if has_words(f"{rule} {origin}", wanted):
                self._shown[str(place)] = rule
        rules = self._shown.values()
        kinds = max((len(one_line(rule.permission, 24)) for rule in rules), default=0)
        longest = max((cell_len(_pattern(rule)) for rule in rules), default=0)
        patterns = min(longest, max(12, self.app.size.width * 2 // 5))
        rows = []
        for key, rule in self._shown.items():
            rows.append(Option(self._row(rule, kinds, patterns), id=key))
        lines = [line for line in _BUILT_IN_DECISIONS if has_words(" ".join(line), wanted)]
        if lines:
            head = "Built in, by what a tool call does · docs/permissions.md"
            rows.append(self.heading_row(head, "faint"))
        width = max((cell_len(subject) for _, subject, _ in lines), default=0)
        for action, subject, when in lines:
            parts = (
                self.styled(f"{action:<6}", "strong"),
                f"{subject:<{width}}  ",
                self.styled(when, "faint"),
            )
            rows.append(Option(Content.assemble(*parts), id=f"words-{subject}"))
        self.show(rows, count=sum(not row.disabled for row in rows), at=at)

    def action_undo(self) -> None:
        if not self._removed:
            self.notify("No rule has been removed on this page.")
            return
        rule = self._removed.pop()
        self._gate.restore(rule)
        if rule.is_in_users_file:
            self._keep(rule)
        self.notify(f"Restored: {one_line(str(rule), 160)}.")
        self.redraw()

    def _row(self, rule: Rule, kinds: int, patterns: int) -> Content:
        action = self.styled(f"{rule.action.value:<6}", "strong")
        pattern = _pattern(rule)
        gap = " " * max(2, patterns + 2 - cell_len(pattern))
        origin = self.styled(rule.origin or STORED[rule.source], "faint")
        return Content.assemble(
            action, f"{one_line(rule.permission, 24):<{kinds}}  {pattern}{gap}", origin
        )

    def pick(self, key: str) -> None:
        if key.startswith("words"):
            self.notify(_DECISION_NOTE)
            return
        rule = self._shown[key]
        if rule.source == "default":
            self.notify(
                "This rule is built in. Your own rules override it.",
            )
            return

        self._controller.soon(self._ask_about(rule))

    async def _ask_about(self, rule: Rule) -> None:
        """Ask whether to remove a rule, and do what the user chooses.

        If it is a session's rule, also offer to keep it for all sessions.
        """
        answers = [("remove", f"Remove it from {STORED[rule.source]}"), ("leave", "Leave it")]
        if rule.source == "session":
            answers.insert(1, ("keep", "Keep it for every session, in your config.toml"))
        match await self._controller.ask(Choice(one_line(str(rule), 200), answers)):
            case "remove":
                self._remove(rule)
            case "keep":
                self._keep(rule)
            case _:
                pass
        self.redraw()

    def _remove(self, rule: Rule) -> None:
        problem = self._gate.is_fixed(rule) or self._services.forget_rule(rule)
        if problem is not None:
            self.notify(problem, severity="warning")
        elif self._gate.remove(rule):
            self._removed.append(rule)
            self.notify(f"Removed: {one_line(str(rule), 160)}. Ctrl+Z restores it.")

    def _keep(self, rule: Rule) -> None:
        if (problem := self._services.keep_rule(rule)) is not None:
            self.notify(problem, severity="warning")


def _pattern(rule: Rule) -> str:
    return one_line(rule.pattern, 120)
