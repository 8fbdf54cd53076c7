"""The status line: mode, model, effort, leaf and activity; on the right the available keys."""

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
from tui_agent.ui.bindings import NO_KEY
from tui_agent.ui.widgets.clickable import clickable
from tui_agent.ui.widgets.key_line import Hint, render_hints, fit_hints

_FIRST_ACTIONS = (
    "complete",
    "interrupt",
    "step_back",
    "send(True)",
)
"""Actions whose keys are shown before all others, most important first."""
MIN_WIDTH_FOR_USED = 100
"""Least width, in cells, at which the tokens used are shown."""
MIN_WIDTH_FOR_USED_LABEL = 140
"""Least width, in cells, at which the tokens used say what they count."""
MIN_WIDTH_FOR_TODAY = 80
"""Least width, in cells, at which the day's budget is shown."""
_PALETTE = "command_palette"
"""Action that Textual binds with a hidden key; the status line shows the key all the same."""


def hints_of(bindings: Sequence[Binding]) -> tuple[Hint, ...]:
    """Return a key hint for the first visible binding of each action, most important first."""
    hints: dict[str, Hint] = {}
    for binding in bindings:
        label = binding.description
        if binding.action == _PALETTE:
            label = "commands"
        elif not binding.show or binding.key == NO_KEY:
            continue
        key = binding.key_display or binding.key
        hints.setdefault(binding.action, (key, label, f"app.simulate_key('{binding.key}')"))
    first = [hints.pop(action) for action in _FIRST_ACTIONS if action in hints]
    return (*first, *hints.values())


class StatusLine(Widget):
    """Shows the facts that are set as its attributes; redrawn each second while the agent works."""

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
    """The chosen model while a fallback model answers in its place; else empty."""
    effort: reactive[str] = reactive("")
    """The effort that the model is asked for; empty for the model's default."""
    leaf: reactive[int | None] = reactive(None)
    warnings: reactive[int] = reactive(0)
    """Number of unread warnings that are no longer on the screen; a click shows them."""
    state: reactive[RunState] = reactive(RunState())
    cost: reactive[float | None] = reactive(None)
    """US dollars that the session has cost, None if unknown."""
    budgets: reactive[tuple[str, str]] = reactive(("", ""))
    """Texts about the session's budget (shown after the cost) and the day's; "" without one."""
    plan: reactive[str] = reactive("")
    """Text about a usage window of the user's plan that is nearly used up; else empty."""
    used: reactive[int | None] = reactive(None)
    """Input and output tokens of the session as counted by the provider, None if unknown."""
    race: reactive[str] = reactive("")
    """State of a race while its page is closed; empty without one."""
    goal: reactive[str] = reactive("")
    """The command of the active goal or loop, a comma, and the round; empty without one."""
    asides: reactive[str] = reactive("")
    """State of the sessions that run off the screen; empty without any."""
    jobs: reactive[int] = reactive(0)
    """Number of running background jobs."""
    block: reactive[str] = reactive("")
    """Tokens and context status of the focused block, shown in place of mode and model."""
    is_activity_shown: reactive[bool] = reactive(default=False)
    """Whether the conversation shows the agent's activity, so that this line does not."""
    hints: reactive[tuple[Hint, ...]] = reactive(())
    """The available keys, most important first."""

    def __init__(self, clock: Callable[[], float], key_of: Callable[[str], str]) -> None:
        """``key_of`` is `SessionFrame.key_of`."""
        super().__init__()
        self._clock = clock
        self._key_of = key_of
        self.ticking: Timer | None = None
        self._hints_are_stale = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._bindings_changed(self.screen)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if screen is self.screen and not self._hints_are_stale:
            self._hints_are_stale = True
            self.call_later(self._update_hints)  # once for all changes of one moment

    def _update_hints(self) -> None:
        self._hints_are_stale = False
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
            # The key back to the prompt is always visible.
            way_back = cell_len(" ".join(self.hints[0][:2])) + 2
            left = left.truncate(self.size.width - way_back, ellipsis=True)
        room = self.size.width - left.cell_length - 2
        right = render_hints(fit_hints(self.hints, room, keep=0), "status")
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
        """Yield the texts on the left as (text, style, command that a click runs or "")."""
        now = ""
        if not self.is_activity_shown:
            now = describe(self.state, self._clock())
        if self.block:
            yield self.block, "activity", "context"
        else:
            yield from self._settings(brief=bool(now) and self.size.width < 50)
        if self.race:
            yield f"{self.race} · {self._key_of('race')}", "activity", "race"
        if self.goal:
            yield self.goal, "activity", self.goal.partition(",")[0]
        if self.asides:
            yield f"{self.asides} · {self._key_of('sessions')}", "activity", "sessions"
        if self.jobs:
            yield plural(self.jobs, "job"), "activity", "jobs"
        if self.warnings:
            yield f"▲ {self.warnings} /doctor", "warnings", "doctor"
        if now:
            yield now, "asking" if self.state.phase == "permission" else "activity", ""

    def _settings(self, *, brief: bool) -> Iterator[tuple[str, str, str]]:
        """Yield mode, model, leaf and spending like `_facts`; only the mode if ``brief``."""
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
        if self.budgets[1] and self.size.width >= MIN_WIDTH_FOR_TODAY:
            yield self.budgets[1], "plain", "cost"
        if self.plan:
            yield self.plan, "warnings", "cost"
        if self.used and self.size.width >= MIN_WIDTH_FOR_USED:
            what = "used"
            if self.size.width >= MIN_WIDTH_FOR_USED_LABEL:
                what = "tokens used in this session"
            yield f"{tokens(self.used)} {what}", "plain", "cost"
