"""The model picker: lists models with window, price and abilities, usable ones first.

The user can also type the id of any other model. When the list opens, the picker asks the user's
servers, and the usual ports of this machine, which models they offer. The picker only returns the
picked model; the command that opened it switches to the model and saves it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from textual import work
from textual.content import Content
from textual.widgets.option_list import Option

from tui_agent.app.format import tokens, visible
from tui_agent.app.frontend import ModelPick
from tui_agent.app.model_commands import MAX_MODELS_USED, USED_SESSIONS
from tui_agent.app.services import AppServices, ModelRow
from tui_agent.model.providers import PROVIDERS
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.picker import PickerScreen, matching

NO_SERVER = (
    "No model server answers on this machine. Start one (ollama serve) and open this page again."
)

_TYPED = "typed:"
SWITCH_KEYS = "↑↓ move  enter use, also at the next start  ctrl+s this session only  esc back"


def key_of(row: ModelRow) -> str:
    """Return a unique key for a row, composed of the model's id and its server.

    The server is needed because two servers may use the same id.
    """
    return f"{row.id} {row.server}".rstrip()


def price(row: ModelRow) -> str:
    """Return the prices of a million tokens of input and of output; "" if they are unknown.

    Examples: "$3 / $15" and "free".
    """
    if row.input_price is None or row.output_price is None:
        return ""
    if not row.input_price and not row.output_price:
        return "free"
    return f"${row.input_price:.3g} / ${row.output_price:.3g}"


def order(models: Sequence[ModelRow], current: str, used: Sequence[str] = ()) -> list[ModelRow]:
    """Return the models in this order: the current, the used, the usable, and the others.

    ``current`` is a model id. ``used`` contains the ids of used models, the most recent first; an
    id may occur more than once. A model is usable if it needs no API key or its key is set.
    """
    places: dict[str, int] = {}
    for place, model in enumerate(used):
        places.setdefault(model, place)
    return sorted(
        models, key=lambda row: (row.id != current, places.get(row.id, len(used)), not row.has_key)
    )


def groups(
    models: Sequence[ModelRow], current: str, used: Sequence[str]
) -> Iterator[tuple[str, list[ModelRow]]]:
    """Yield each heading of the list with the models below it, in order; a group may be empty.

    The groups are: the current and recently used models, at most `MAX_MODELS_USED`; the models of
    each server that is not in the settings; the usable models of each provider; the other models.
    """
    ordered = order(models, current, used)
    recent = []
    for row in ordered:
        is_known = row.id == current or row.id in used
        if is_known and not row.server:
            recent.append(row)
    del recent[MAX_MODELS_USED:]
    yield "Recent", recent
    taken = {key_of(row) for row in recent}
    rest = [row for row in ordered if key_of(row) not in taken]
    servers: dict[str, list[ModelRow]] = {}
    providers: dict[str, list[ModelRow]] = {}
    others: list[ModelRow] = []
    for row in rest:
        if row.server:
            servers.setdefault(f"Also at {row.server}", []).append(row)
        elif row.has_key:
            providers.setdefault(_host_of(row), []).append(row)
        else:
            others.append(row)
    yield from servers.items()
    yield from providers.items()
    yield "No API key yet: /login adds one", others


def _host_of(row: ModelRow) -> str:
    """Return the name of the place where a model runs: its provider, or the user's own server.

    The provider of a model on the user's server is often only the name of an API, such as openai.
    """
    known = PROVIDERS.get(row.provider)
    name = row.provider
    if known is not None:
        name = known.name
    if not row.own_host:
        return name
    if known is not None and known.local_url is None:
        return f"Your server at {row.own_host}"
    return f"{name} at {row.own_host}"


class ModelPicker(PickerScreen[ModelPick]):
    """The page on which the user picks a model. Its result is the picked model."""

    BINDINGS = [hidden("ctrl+s", "pick_here", "this session only", priority=True)]

    HEADING = "Model"
    PLACEHOLDER = "Type to filter, or any provider/model"
    EMPTY = "No model has this name. Type its full id, such as openai/my-model, and press Enter."

    def __init__(
        self, services: AppServices, current: str, *, switches: bool = False, search: str = ""
    ) -> None:
        """Create the picker; ``search`` is the initial text of the filter.

        With ``switches``, the user can also choose a model for this session only.
        """
        super().__init__(self.HEADING, SWITCH_KEYS if switches else self.KEYS)
        self._switches = switches
        self._search = search
        self._services = services
        self._current = current
        sessions = services.store.sessions(limit=USED_SESSIONS)
        self._used = [info.model for info in sessions if info.model]
        self._models: list[ModelRow] | None = None

    def on_mount(self) -> None:
        self.empty.update("Reading the catalog …")
        self.listing.display = False
        self.field.value = self._search
        self._load()

    @work(group="models")
    async def _load(self) -> None:
        await self._read()
        services = self._services
        said: list[str] = []
        # Show the models of each server as soon as it answers, because a gateway may take seconds
        # and a local server doesn't.
        for asked in asyncio.as_completed((services.find_servers(), services.ask_servers(None))):
            if rows := await asked:
                said += rows
                await self._read()
                self._say("\n".join(said))
        if not said and not self._usable():
            self._say(NO_SERVER)

    def _usable(self) -> list[ModelRow]:
        """Return the models that have an API key or need none, except the demo's model."""
        found = []
        for row in self._models or ():
            if row.has_key and row.provider != "demo":
                found.append(row)
        return found

    def _say(self, text: str) -> None:
        self.show_facts(visible(text))

    async def _read(self) -> None:
        """Read and show the models again; a highlight that the user has moved stays on its row."""
        usable = {key_of(row) for row in self._usable()}
        self._models = order(
            await asyncio.to_thread(self._services.models), self._current, self._used
        )
        self.empty.update(self.EMPTY)
        at = self.highlighted
        if at not in usable and self.listing.highlighted == 1:
            # The user has not moved the highlight, so highlight the first usable model, which may
            # have changed.
            at = None
        self.refill(self.typed, at=at)

    def refill(self, query: str, *, at: str | None = None) -> None:
        if self._models is None:
            return
        if not query:
            self.show(self._grouped(self._models), count=len(self._models), at=at)
            return
        found = matching(self._models, query, lambda row: row.id, lambda row: not row.has_key)
        rows = (Option(self._row(row, offsets), id=key_of(row)) for row, offsets in found)
        typed: list[Option] = []
        if "/" in query and not any(row.id == query for row, _ in found):
            use = Content.assemble("Use ", self.styled(visible(query), "strong"))
            typed.append(Option(use, id=_TYPED + query))
        self.show(chain(rows, typed), count=len(found) + len(typed), at=at)

    def _grouped(self, models: Sequence[ModelRow]) -> Iterator[Option]:
        for name, rows in groups(models, self._current, self._used):
            if rows:
                yield self.heading_row(name, "faint")
            for row in rows:
                yield Option(self._row(row, ()), id=key_of(row))

    def pick(self, key: str) -> None:
        self.dismiss(self._picked(key))

    def action_pick_here(self) -> None:
        if self._switches and (key := self.highlighted) is not None:
            self.dismiss(replace(self._picked(key), only_here=True))

    def _picked(self, key: str) -> ModelPick:
        row = next((row for row in self._models or () if key_of(row) == key), None)
        if row is None:
            return ModelPick(key.removeprefix(_TYPED))
        return ModelPick(row.id, row.server)

    def _row(self, row: ModelRow, offsets: Sequence[int]) -> Content:
        mark = "●" if row.id == self._current else " "
        name = self.marked(row.id, offsets)
        window = tokens(row.window) if row.window else ""
        facts = f"{window:>6}  "
        extra = ""
        beside = 25
        if self.size.width >= 72:
            facts += f"{price(row):<17}"
            beside = 42
        if self.size.width >= 100:
            extra = f"  {row.server or row.own_host or ' · '.join(row.abilities)}"
            beside = 63
        room = max(16, min(56, self.size.width - beside))
        if len(row.id) > room:
            name = name.truncate(room, ellipsis=True)
        gap = " " * max(1, room - len(row.id) + 1)
        if row.has_key:
            key = self.styled("ready ", "strong")
        else:
            key = self.styled("no key", "faint")
        known = self.styled(facts, "faint")
        return Content.assemble(f"{mark} ", name, gap, known + key, self.styled(extra, "faint"))
