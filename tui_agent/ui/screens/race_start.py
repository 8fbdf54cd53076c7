"""The dialog of a race: the task, who runs, the check, which one is taken, and what it costs at most."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from tui_agent.agent.race.specs import COMPACTED, LEAST_RUNNERS, MOST_RUNNERS, WHOLE
from tui_agent.app.format import one_line, short_model, visible
from tui_agent.app.frontend import Choice, ModelChoice
from tui_agent.session.effort import Effort
from tui_agent.ui.screens.page import Page
from tui_agent.ui.widgets.line_list import LineList
from tui_agent.ui.widgets.table_list import Column, TableList

if TYPE_CHECKING:
    from textual import events

    from tui_agent.agent.race.race import RaceOrder
    from tui_agent.agent.race.specs import Pick
    from tui_agent.app.controller import Controller
    from tui_agent.app.frontend import RaceForm

COLUMNS: Final = (Column("", 9), Column("model", 8, grows=True), Column("effort", 7), Column("mode", 6))
LIST_KEYS: Final = "a add  ctrl+s start  x remove  e change  tab next  esc back"
FIELD_KEYS: Final = "ctrl+s start  tab next  esc back"
PICKS: Final[dict[Pick, str]] = {
    "none": "one that I choose",
    "first-green": "the first that passes",
    "best": "the best of all",
}
"""Which one is taken at the end, in words."""
AS_HERE: Final = ""
"""The answer that leaves something of a runner as it is in the conversation."""
PRICE_SECONDS: Final = 0.2
"""What it costs is looked up when nothing has changed for so long."""


class RunnerList(TableList):
    """The runners, with the keys that change them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,plus", "screen.add", "add", show=False),
        Binding("x,delete,backspace", "screen.remove", "remove", show=False),
        Binding("e", "screen.change", "change", show=False),
    ]


class PickField(Static, can_focus=True):
    """What happens at the end by itself; space, the arrows or a click go through the answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter,right", "step(1)", "next", show=False),
        Binding("left", "step(-1)", "previous", show=False),
    ]

    class Changed(Message):
        """Another one was chosen."""

    def __init__(self, pick: Pick, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, markup=False)
        self.pick: Pick = pick
        """What was chosen."""

    def on_mount(self) -> None:
        self.action_step(0)

    def action_step(self, by: int) -> None:
        picks = list(PICKS)
        self.pick = picks[(picks.index(self.pick) + by) % len(picks)]
        self.update(f"‹ {PICKS[self.pick]} ›")
        self.post_message(self.Changed())

    def on_click(self) -> None:
        self.action_step(1)


class RaceStartScreen(Page["RaceOrder"]):
    """Dismissed with the order, None when the user went back. Nothing has begun before that."""

    KEYS = FIELD_KEYS
    AUTO_FOCUS = "TextArea"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "start", show=False, priority=True),
    ]

    prompt = getters.query_one("#task", TextArea)
    runners = getters.query_one(RunnerList)
    check = getters.query_one("#check", Input)
    limit = getters.query_one("#limit", Input)
    pick = getters.query_one(PickField)
    cost = getters.query_one("#cost", Static)

    def __init__(self, controller: Controller, form: RaceForm) -> None:
        super().__init__(form.question)
        self._controller = controller
        self._form = form
        self._specs = list(form.order.specs)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A letter does not throw away what was written: only Escape leaves."""
        return action != "dismiss" and super().check_action(action, parameters)

    def body(self) -> ComposeResult:
        order = self._form.order
        yield TextArea(
            order.prompt,
            id="task",
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder="What every runner is to do",
            compact=True,
        )
        yield RunnerList(COLUMNS, id="runners")
        with Horizontal(classes="field -first"):
            yield Static("Check", classes="name", markup=False)
            yield Input(order.check, placeholder="a command, such as make test", id="check", compact=True)
        with Horizontal(classes="field"):
            yield Static("Limit $", classes="name", markup=False)
            cost = "" if order.cost is None else f"{order.cost:g}"
            yield Input(cost, placeholder="for each runner", id="limit", type="number", compact=True)
        with Horizontal(classes="field"):
            yield Static("Take", classes="name", markup=False)
            yield PickField(order.pick, id="pick")
        yield Static("", id="cost", markup=False)

    def on_mount(self) -> None:
        self.prompt.move_cursor(self.prompt.document.end)
        # What a container composes may come later than this.
        self.call_after_refresh(self._show)

    def on_resize(self) -> None:
        self._show()

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        self.keys.show(LIST_KEYS if self.runners.has_focus else FIELD_KEYS)

    @property
    def order(self) -> RaceOrder:
        return replace(
            self._form.order,
            prompt=self.prompt.text.strip(),
            specs=tuple(self._specs),
            check=self.check.value.strip(),
            pick=self.pick.pick,
            cost=float(self.limit.value) if self.limit.is_valid and self.limit.value else None,
        )

    def _show(self, at: int | None = None) -> None:
        here = self._form.here
        rows = [
            (
                (str(number), "faint"),
                (
                    " ".join(filter(None, (short_model(spec.model or here.model), spec.context))),
                    "text" if spec.model or spec.context else "faint",
                ),
                (str(spec.effort or here.effort or "default"), "text" if spec.effort else "faint"),
                (visible(spec.mode or here.mode), "text" if spec.mode else "faint"),
            )
            for number, spec in enumerate(self._specs, 1)
        ]
        self.runners.show(rows, cursor=at)
        beside = 9 if self.has_class("-tiny") else 17
        self.runners.styles.height = min(len(rows) + 1, max(3, self.size.height - beside))
        self._show_price()

    @on(TextArea.Changed)
    @on(Input.Changed)
    @on(PickField.Changed)
    def _changed(self) -> None:
        self._show_price()

    @work(exclusive=True, group="price")
    async def _show_price(self) -> None:
        await asyncio.sleep(PRICE_SECONDS)
        self.cost.update(self._form.price(self.order))

    # -- the runners ------------------------------------------------------------------------------------------

    def action_add(self) -> None:
        if len(self._specs) == MOST_RUNNERS:
            self.notice.say_briefly(f"A race has at most {MOST_RUNNERS} runners.")
            return
        at = self.runners.cursor
        self._specs.insert(at, self._specs[at])
        self._show(at + 1)

    def action_remove(self) -> None:
        if len(self._specs) == LEAST_RUNNERS:
            self.notice.say_briefly(f"A race has at least {LEAST_RUNNERS} runners.")
            return
        del self._specs[self.runners.cursor]
        self._show(min(self.runners.cursor, len(self._specs) - 1))

    @on(LineList.Chosen)
    def action_change(self) -> None:
        self._ask()

    @work(exclusive=True, group="change")
    async def _ask(self) -> None:
        at = self.runners.cursor
        number = f"runner {at + 1}"
        answers = [("model", "Another model"), ("effort", "Another effort"), ("mode", "Another mode or agent")]
        answers.append(("context", "What it sees of the conversation"))
        what = await self._controller.ask(Choice(f"What of {number}?", answers))
        spec, here = self._specs[at], self._form.here
        match what:
            case "model":
                model = await self._controller.ask(ModelChoice(spec.model or here.model))
                changed = None if model is None else replace(spec, model="" if model == here.model else model)
            case "effort":
                levels = [(AS_HERE, f"as here: {here.effort or 'default'}"), *((level, level) for level in Effort)]
                effort = await self._controller.ask(
                    Choice(f"How much {number} thinks", levels, at=spec.effort or AS_HERE)
                )
                changed = None if effort is None else replace(spec, effort=Effort(effort) if effort else None)
            case "mode":
                modes = [(AS_HERE, f"as here: {here.mode}"), *((mode, one_line(mode, 40)) for mode in self._form.modes)]
                mode = await self._controller.ask(
                    Choice(f"The mode or agent of {number}", modes, at=spec.mode or AS_HERE)
                )
                changed = None if mode is None else replace(spec, mode=mode)
            case "context":
                seen = [(WHOLE, "all of it"), (COMPACTED, "a summary"), (spec.context, spec.context)]
                shown = seen if spec.context not in {"", COMPACTED} else seen[:2]
                context = await self._controller.ask(Choice(f"What {number} sees", shown, at=spec.context or WHOLE))
                changed = None if context is None else replace(spec, context="" if context == WHOLE else context)
            case _:
                changed = None
        if changed is not None:
            self._specs[at] = changed
            self._show()

    def action_start(self) -> None:
        if self.prompt.text.strip():
            self.dismiss(self.order)
        else:
            self.notice.say_briefly("Say what the runners are to do.")
            self.prompt.focus()
