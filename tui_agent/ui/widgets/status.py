"""The last line: mode, model, effort, leaf and activity; on the right the keys that work now."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.app.format import money, one_line, short_model, tokens
from tui_agent.app.run_state import RunState, describe

Hint = tuple[str, str, str]
"""A key, its label, and the action of a click; none when it is empty."""

_FIRST = (
    "complete",
    "interrupt",
    "step_back",
    "send(True)",
)
"""Actions whose keys are shown before all others, the most important first."""
USED_FROM = 100
"""Columns from which the tokens used have room beside the keys."""
TODAY_FROM = 80
"""Columns from which the budget of the day has room."""
_PALETTE = "command_palette"
"""Textual binds the palette itself and does not want its key shown."""


def hints_of(bindings: Sequence[Binding]) -> tuple[Hint, ...]:
    """Return the hints for bindings that want to be shown, each action once, the most important first."""
    hints: dict[str, Hint] = {}
    for binding in bindings:
        if binding.show or binding.action == _PALETTE:
            if binding.action == _PALETTE:
                label = "commands"
            else:
                label = binding.description
            key = binding.key_display or binding.key
            hints.setdefault(binding.action, (key, label, f"app.simulate_key('{binding.key}')"))
    rank = {action: place for place, action in enumerate(_FIRST)}
    return tuple(
        hint for _, hint in sorted(hints.items(), key=lambda item: rank.get(item[0], len(rank)))
    )


class StatusLine(Widget):
    """Ticks once a second while something goes on, never otherwise."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "status--mode",
        "status--danger",
        "status--plain",
        "status--activity",
        "status--asking",
        "status--warnings",
        "status--key",
        "status--label",
    }

    mode: reactive[str] = reactive("")
    model: reactive[str] = reactive("")
    stands_in_for: reactive[str] = reactive("")
    """The model that was chosen, where another stands in for it."""
    effort: reactive[str] = reactive("")
    """How much the model is asked to think; empty when that is left to it."""
    leaf: reactive[int | None] = reactive(None)
    warnings: reactive[int] = reactive(0)
    """Warnings that are no longer on the screen and not read; a click shows them."""
    state: reactive[RunState] = reactive(RunState())
    cost: reactive[float | None] = reactive(None)
    """US dollars of the session, where prices are known."""
    budgets: reactive[tuple[str, str]] = reactive(("", ""))
    """The budget of the session, after its cost, and what is spent of the day's; empty without one."""
    used: reactive[int | None] = reactive(None)
    """Tokens sent and answered in the session, as the provider counts them."""
    race: reactive[str] = reactive("")
    """How a race stands that goes on while its page is closed."""
    goal: reactive[str] = reactive("")
    """How far the goal or loop is that is worked on: its command, a comma, and the round."""
    asides: reactive[str] = reactive("")
    """How the sessions stand that go on off the screen."""
    block: reactive[str] = reactive("")
    """The tokens of the block with the focus, and how the model has it; in place of the model while
    there is one."""
    told_elsewhere: reactive[bool] = reactive(default=False)
    """Whether the visible end of the conversation shows the activity."""
    hints: reactive[tuple[Hint, ...]] = reactive(())
    """Keys that work now, most important first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self.ticking: Timer | None = None
        self._hints_are_old = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._bindings_changed(self.screen)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if screen is self.screen and not self._hints_are_old:
            self._hints_are_old = True
            self.call_later(self._look_for_hints)  # once for all changes reported together

    def _look_for_hints(self) -> None:
        self._hints_are_old = False
        if self.screen.is_attached:
            self.hints = hints_of(
                [item.binding for item in self.screen.active_bindings.values() if item.enabled]
            )

    def watch_state(self, old: RunState, state: RunState) -> None:
        if old.active != state.active and self.is_mounted:
            self.screen.refresh_bindings()
        if not state.active and self.ticking is not None:
            self.ticking.stop()
            self.ticking = None
        elif state.active and self.ticking is None and self.is_mounted:
            self.ticking = self.set_interval(1.0, self.refresh)

    def render(self) -> Content:
        left = self._left()
        if self.block and self.hints:
            # The way back to the prompt is in sight in any width.
            way_back = cell_len(" ".join(self.hints[0][:2])) + 2
            left = left.truncate(self.size.width - way_back, ellipsis=True)
        room = self.size.width - left.cell_length - 2
        right = self._right(room)
        gap = max(1, self.size.width - left.cell_length - right.cell_length)
        return Content.assemble(left, " " * gap, right)

    def _facts(self) -> list[str]:
        """Return mode, model and figures, as many as there is room for."""
        model = (
            f"{short_model(self.model)} ({self.effort})" if self.effort else short_model(self.model)
        )
        if self.stands_in_for:
            model = f"{model} for {short_model(self.stands_in_for)}"
        facts = [one_line(self.mode, 12), model]
        if self.leaf is not None and self.size.width >= 70:
            facts.append(f"#{self.leaf}")
        if self.cost is not None and self.size.width >= 60:
            facts.append(f"{money(self.cost)}{self.budgets[0]}")
        if self.budgets[1] and self.size.width >= TODAY_FROM:
            facts.append(self.budgets[1])
        if self.used and self.size.width >= USED_FROM:
            facts.append(f"{tokens(self.used)} used")
        return facts

    def _left(self) -> Content:
        now = "" if self.told_elsewhere else describe(self.state, self._clock())
        facts = [self.block] if self.block else self._facts()
        if now and self.size.width < 50:
            facts = facts[:1]
        mode, *plain = [fact for fact in facts if fact] or [""]
        style = "activity" if self.block else "danger" if mode == "yolo" else "mode"
        pieces: list[tuple[str, Style] | str] = [(mode, self._style(style))]
        pieces.extend((f" · {fact}", self._style("plain")) for fact in plain)
        if self.race:
            press = Style.from_meta({"@click": "screen.command('race')"})
            pieces.extend(
                [
                    (" · ", self._style("plain")),
                    (f"{self.race} · F7", self._style("activity") + press),
                ]
            )
        if self.goal:
            command = self.goal.partition(",")[0]
            press = Style.from_meta({"@click": f"screen.command('{command}')"})
            pieces.extend(
                [(" · ", self._style("plain")), (self.goal, self._style("activity") + press)]
            )
        if self.asides:
            press = Style.from_meta({"@click": "screen.command('sessions')"})
            pieces.extend(
                [
                    (" · ", self._style("plain")),
                    (f"{self.asides} · ^S", self._style("activity") + press),
                ]
            )
        if self.warnings:
            press = Style.from_meta({"@click": "screen.command('doctor')"})
            pieces.extend(
                [
                    (" · ", self._style("plain")),
                    (f"▲ {self.warnings} /doctor", self._style("warnings") + press),
                ]
            )
        if now:
            name = "asking" if self.state.phase == "permission" else "activity"
            pieces.extend([(" · ", self._style("plain")), (now, self._style(name))])
        return Content.assemble(*pieces)

    def _right(self, room: int) -> Content:
        pieces: list[tuple[str, Style] | str] = []
        for key, label, action in self.hints:
            width = cell_len(key) + cell_len(label) + 1 + (2 if pieces else 0)
            if width > room:
                break
            room -= width
            press = Style.from_meta({"@click": action})
            pieces.extend(["  "] if pieces else [])
            pieces.extend(
                [(key, self._style("key") + press), (f" {label}", self._style("label") + press)]
            )
        return Content.assemble(*pieces)

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"status--{name}", partial=True)
