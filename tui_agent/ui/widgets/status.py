"""The status line at the bottom of the main screen.

On the left, it shows the mode, model, effort, leaf, cost, work in the background, warnings, and the
agent's activity. On the right, it shows the keys that can be used now.
"""

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
from tui_agent.ui.widgets.key_line import Hint, fit_hints, render_hints

_FIRST_ACTIONS = (
    "complete",
    "interrupt",
    "step_back",
    "send(True)",
)
"""Actions whose keys come before all others in the status line, most important first."""
MIN_WIDTH_FOR_USED = 100
"""Minimum width of the status line, in cells, at which it shows the session's token usage."""
MIN_WIDTH_FOR_USED_LABEL = 140
"""Minimum width of the status line, in cells, at which token usage is labeled in full."""
MIN_WIDTH_FOR_TODAY = 80
"""Minimum width of the status line, in cells, at which it shows the day's budget."""
_PALETTE = "command_palette"
"""The action that opens the list of commands.

Textual hides the binding of this action, but the status line shows its key.
"""


def hints_of(bindings: Sequence[Binding]) -> tuple[Hint, ...]:
    """Return a key hint for each action, most important first.

    Each hint shows the action's first visible key binding. Actions without a visible binding are
    skipped.
    """
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
    """Shows the values of its attributes, which the main screen sets.

    While the agent works, the line is drawn every second, because it includes the elapsed time.
    """

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
    """Name of the model that the user chose, while a fallback model answers. Otherwise empty."""
    effort: reactive[str] = reactive("")
    """The reasoning effort in use. Empty if it is the model's default."""
    leaf: reactive[int | None] = reactive(None)
    """Id of the session's current leaf. None if the session is empty."""
    warnings: reactive[int] = reactive(0)
    """Number of unread warnings that are no longer on the screen. A click shows the warnings."""
    state: reactive[RunState] = reactive(RunState())
    cost: reactive[float | None] = reactive(None)
    """Cost of the session in US dollars. None if the cost is unknown."""
    budgets: reactive[tuple[str, str]] = reactive(("", ""))
    """The texts about the session's budget and about the day's budget.

    The first is shown after the cost. A text is empty if there is no such budget.
    """
    plan: reactive[str] = reactive("")
    """A warning that a limit of the user's subscription is nearly reached, otherwise empty."""
    used: reactive[int | None] = reactive(None)
    """Input and output tokens of the session, as counted by the provider. None if unknown."""
    race: reactive[str] = reactive("")
    """State of a running race while the user isn't on its screen, otherwise empty."""
    goal: reactive[str] = reactive("")
    """The active goal or loop, such as "goal, round 2 of 20". Empty if none is active."""
    asides: reactive[str] = reactive("")
    """State of the sessions that run in the background. Empty if there are none."""
    jobs: reactive[int] = reactive(0)
    """Number of background jobs that are running."""
    block: reactive[str] = reactive("")
    """Token count and context status of the focused block. Empty if no block has the focus.

    The context status says whether the model receives the block. This text is shown instead of the
    mode and the model.
    """
    is_activity_shown: reactive[bool] = reactive(default=False)
    """Whether the conversation shows the agent's activity. If so, the status line leaves it out."""
    hints: reactive[tuple[Hint, ...]] = reactive(())
    """Hints for the keys that are available now, most important first."""

    def __init__(self, clock: Callable[[], float], key_of: Callable[[str], str]) -> None:
        """``key_of`` returns the text to display for an action's key, or "" if there is no key."""
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
            self.call_later(self._update_hints)  # Several changes in succession run this only once.

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
            # The hint for the key that leads back to the prompt stays visible.
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
                # Textual ignores an opaque background in a style that covers only part of a text.
                piece = piece.stylize(Style(background=ground.background))
            pieces.append(piece)
        return Content.styled(" · ", ".status--plain").join(pieces)

    def _facts(self) -> Iterator[tuple[str, str, str]]:
        """Yield the texts on the left side of the status line as (text, style, command).

        A click on a text runs its command. The command is "" if a click does nothing.
        """
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
        """Yield the texts for the mode, model, leaf and spending, in the same form as `_facts`.

        If ``brief`` is True, only the mode is yielded.
        """
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
