"""Pick a model: those that can be used now first, with window, price and abilities; any other id can be typed.

Servers of the user's are asked for their models while the list is shown already.
"""

import asyncio
from collections.abc import Sequence

from textual import work
from textual.content import Content
from textual.widgets.option_list import Option

from tui_agent.app.format import tokens, visible
from tui_agent.app.services import AppServices, ModelRow
from tui_agent.ui.screens.picker import PickerScreen, matching

_TYPED = "typed:"
USED_SESSIONS = 40
"""Sessions whose models stand before those that were not used."""


def price(row: ModelRow) -> str:
    """Return the price of a million tokens, in and out: ``$3 / $15``; empty when unknown."""
    if row.input_price is None or row.output_price is None:
        return ""
    if not row.input_price and not row.output_price:
        return "free"
    return f"${row.input_price:.3g} / ${row.output_price:.3g}"


def order(models: Sequence[ModelRow], current: str, used: Sequence[str] = ()) -> list[ModelRow]:
    """Return models as listed without a filter: the current one, those used last, those with a key, then the others."""
    places = {model: place for place, model in enumerate(used)}
    return sorted(models, key=lambda row: (row.id != current, places.get(row.id, len(used)), not row.has_key))


class ModelPicker(PickerScreen[str]):
    """Dismissed with a model's id."""

    HEADING = "Model"
    PLACEHOLDER = "Type to filter, or any provider/model"
    EMPTY = "No model has this name. Type its full id, such as openai/my-model, and press Enter."

    def __init__(self, services: AppServices, current: str) -> None:
        super().__init__()
        self._services = services
        self._current = current
        self._used = [info.model for info in services.store.sessions(limit=USED_SESSIONS) if info.model]
        self._models: list[ModelRow] | None = None

    def on_mount(self) -> None:
        self.empty.update("Reading the catalog …")
        self.listing.display = False
        self._load()

    @work(group="models")
    async def _load(self) -> None:
        await self._read()
        if rows := await self._services.ask_servers(None):
            self.heading.update(Content.assemble(self.HEADING, self.styled(f"  {visible(' · '.join(rows))}", "faint")))
            await self._read()

    async def _read(self) -> None:
        """Show the models there are now; the highlight stays on the one it is on."""
        self._models = order(await asyncio.to_thread(self._services.models), self._current, self._used)
        self.empty.update(self.EMPTY)
        self.refill(self.field.value.strip(), at=self.highlighted)

    def refill(self, query: str, *, at: str | None = None) -> None:
        if self._models is None:
            return
        found = matching(self._models, query, lambda row: row.id, lambda row: not row.has_key)
        rows = [Option(self._row(row, offsets), id=row.id) for row, offsets in found]
        if "/" in query and not any(row.id == query for row, _ in found):
            rows.append(Option(Content.assemble("Use ", self.styled(visible(query), "strong")), id=_TYPED + query))
        self.show(rows, at=at)

    def pick(self, key: str) -> None:
        self.dismiss(key.removeprefix(_TYPED))

    def _row(self, row: ModelRow, offsets: Sequence[int]) -> Content:
        mark = "●" if row.id == self._current else " "
        name = self.marked(row.id, offsets)
        window = tokens(row.window) if row.window else ""
        wide, narrow = self.size.width >= 100, self.size.width < 72
        facts = f"{window:>6}  " if narrow else f"{window:>6}  {price(row):<17}"
        room = max(16, min(56, self.size.width - (63 if wide else 25 if narrow else 42)))
        if len(row.id) > room:
            name = name.truncate(room, ellipsis=True)
        gap = " " * max(1, room - len(row.id) + 1)
        key = self.styled("ready ", "strong") if row.has_key else self.styled("no key", "faint")
        extra = "  " + " · ".join(row.abilities) if wide else ""
        return Content.assemble(f"{mark} ", name, gap, self.styled(facts, "faint"), key, self.styled(extra, "faint"))
