"""The last line: mode, model, effort, leaf and activity; on the right the keys that work now."""

from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.app.format import money, one_line, plural, short_model, tokens
from tui_agent.app.run_state import RunState, describe
from tui_agent.ui.widgets.clickable import clickable
from tui_agent.ui.widgets.key_line import Hint, drawn, fitting

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
        label = binding.description
        if binding.action == _PALETTE:
            label = "commands"
        elif not binding.show:
            continue
        key = binding.key_display or binding.key
        hints.setdefault(binding.action, (key, label, f"app.simulate_key('{binding.key}')"))
    first = [hints.pop(action) for action in _FIRST if action in hints]
    return (*first, *hints.values())


class StatusLine(Widget):
    """Ticks once a second while something goes on, never otherwise."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {
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
    plan: reactive[str] = reactive("")
    """The window of the plan that is nearly used up."""
    used: reactive[int | None] = reactive(None)
    """Tokens sent and answered in the session, as the provider counts them."""
    race: reactive[str] = reactive("")
    """How a race stands that goes on while its page is closed."""
    goal: reactive[str] = reactive("")
    """How far the goal or loop is that is worked on: its command, a comma, and the round."""
    asides: reactive[str] = reactive("")
    """How the sessions stand that go on off the screen."""
    jobs: reactive[int] = reactive(0)
    """Background jobs that run."""
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
        right = drawn(fitting(self.hints, room, keep=0), "status")
        gap = max(1, self.size.width - left.cell_length - right.cell_length)
        return Content.assemble(left, " " * gap, right)

    def _left(self) -> Content:
        pieces = []
        for text, style, command in self._facts():
            action = ""
            if command:
                action = f"screen.command('{command}')"
            piece = clickable(text, f".status--{style}", action)
            ground = self.get_component_styles(f"status--{style}")
            if ground.has_rule("background"):
                # Textual leaves an opaque background out of a partial style.
                piece = piece.stylize(Style(background=ground.background))
            pieces.append(piece)
        return Content.styled(" · ", ".status--plain").join(pieces)

    def _facts(self) -> Iterator[tuple[str, str, str]]:
        """Yield what stands on the left: words, their style, and the command of a click, "" for none."""
        now = ""
        if not self.told_elsewhere:
            now = describe(self.state, self._clock())
        if self.block:
            yield self.block, "activity", "context"
        else:
            yield from self._settings(brief=bool(now) and self.size.width < 50)
        if self.race:
            yield f"{self.race} · F7", "activity", "race"
        if self.goal:
            yield self.goal, "activity", self.goal.partition(",")[0]
        if self.asides:
            yield f"{self.asides} · ^S", "activity", "sessions"
        if self.jobs:
            yield plural(self.jobs, "job"), "activity", "jobs"
        if self.warnings:
            yield f"▲ {self.warnings} /doctor", "warnings", "doctor"
        if now:
            yield now, "asking" if self.state.phase == "permission" else "activity", ""

    def _settings(self, *, brief: bool) -> Iterator[tuple[str, str, str]]:
        """Yield mode, model, leaf and spending; in ``brief`` the mode alone."""
        if self.mode:
            yield one_line(self.mode, 12), "danger" if self.mode == "yolo" else "mode", "mode"
        if brief:
            return
        model = short_model(self.model)
        if self.effort:
            model = f"{model} ({self.effort})"
        if self.stands_in_for:
            model = f"{model} for {short_model(self.stands_in_for)}"
        if model:
            yield model, "plain", "model"
        if self.leaf is not None and self.size.width >= 70:
            yield f"#{self.leaf}", "plain", "tree"
        if self.cost is not None and self.size.width >= 60:
            yield f"{money(self.cost)}{self.budgets[0]}", "plain", "cost"
        if self.budgets[1] and self.size.width >= TODAY_FROM:
            yield self.budgets[1], "plain", "cost"
        if self.plan:
            yield self.plan, "warnings", "cost"
        if self.used and self.size.width >= USED_FROM:
            yield f"{tokens(self.used)} used", "plain", "cost"
