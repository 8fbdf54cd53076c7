"""What a first start shows when no model can be used yet: what was found, and the ways to go on."""

from typing import ClassVar, Literal

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.app.format import one_line, plural, short_path
from tui_agent.app.services import AppServices, LocalServer
from tui_agent.lazy import dataclass
from tui_agent.ui.screens.page import Page
from tui_agent.ui.widgets.options import Options

KEYS_SHOWN = 6
"""Keys listed; the rest are counted."""


@dataclass(frozen=True, slots=True)
class WelcomeChoice:
    """How the user goes on. ``model`` is set for the kind "model"."""

    kind: Literal["login", "demo", "model", "models"]
    model: str = ""


class WelcomeScreen(Page[WelcomeChoice]):
    """Dismissed with a choice, None to go on without a model."""

    HEADING = "Welcome to tui-agent"
    KEYS = "↑↓ move  enter choose  d demo  esc back"
    AUTO_FOCUS = "OptionList"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"welcome--strong", "welcome--faint", "welcome--good"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(way[0], f"go('{way}')", way, show=False) for way in ("login", "search", "demo")
    ]

    actions = getters.query_one(Options)
    news = getters.query_one("#news", Static)

    @dataclass
    class Searched(Message):
        """The search for local servers ended."""

        servers: tuple[LocalServer, ...]

    def __init__(self, services: AppServices) -> None:
        super().__init__()
        self._services = services
        self._own = tuple(services.own_servers())
        self._servers = self._own
        self._searching = False

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Static(self._found())
            yield Static("", id="news", markup=False)
            yield Options(compact=True)
            yield Static(self._advice())

    def on_mount(self) -> None:
        self.news.display = False
        self._offer()
        # The list has the focus and would be scrolled to; what was found comes first.
        self.call_after_refresh(self.query_exactly_one(VerticalScroll).scroll_home, animate=False)

    # -- text -------------------------------------------------------------------------------------------------

    def _found(self) -> Content:
        found = self._services.provider_keys()
        lines = [Content(f"tui-agent needs a model. {self._state(keys_found=bool(found))}")]
        for name, source in list(found.items())[:KEYS_SHOWN]:
            where = self._styled(one_line(source, 60), "faint")
            lines.append(Content.assemble("  ", self._styled("✓ ", "good"), f"{one_line(name, 18):<18}", where))
        if len(found) > KEYS_SHOWN:
            lines.append(self._styled(f"    and {plural(len(found) - KEYS_SHOWN, 'other provider')}", "faint"))
        return Content("\n").join(lines)

    def _state(self, *, keys_found: bool) -> str:
        if self._own:
            return f"{one_line(self._services.config_path.name, 30)} has several: choose one below."
        return "These keys were found:" if keys_found else "No key was found."

    def _advice(self) -> Content:
        path = short_path(self._services.config_path)
        return Content.assemble(
            self._styled("A key in the environment", "strong"),
            " is found by itself: export ANTHROPIC_API_KEY=… before you start.\n",
            self._styled("Any OpenAI-compatible server", "strong"),
            f" goes into {path}\n",
            '  model = "openai/my-model"\n  [models."openai/my-model"]\n  base_url = "http://localhost:8080/v1"',
        )

    def _styled(self, text: str, name: str) -> Content:
        style: Style = self.get_visual_style(f"welcome--{name}", partial=True)
        return Content.styled(text, style)

    # -- actions ----------------------------------------------------------------------------------------------

    def _offer(self) -> None:
        rows = [
            (f"server:{number}:{model}", f"Use {one_line(model, 60)} on {one_line(server.name, 30)}")
            for number, server in enumerate(self._servers)
            for model in server.models[:8]
        ]
        if self._services.provider_keys():
            rows.append(("models", "Choose a model"))
        rows.append(("login", "l  Log in: paste a provider's key, or name the variable that holds it"))
        rows.append(("search", "s  Look for a model server on this machine"))
        rows.append(("demo", "d  Start the demo: a scripted model, no key, no network"))
        rows.append(("skip", "   Go on without a model"))
        self.actions.set_options(Option(Content(text), id=key) for key, text in rows)
        self.actions.highlighted = 0

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.action_go(event.option_id or "")

    def action_go(self, way: str) -> None:
        match way.split(":", 2):
            case ["server", number, model]:
                chosen = self._services.use_server(self._servers[int(number)], model)
                self.dismiss(WelcomeChoice("model", chosen))
            case ["search"]:
                self._look()
            case ["models" | "login" | "demo" as kind]:
                self.dismiss(WelcomeChoice(kind))
            case _:
                self.dismiss(None)

    def _look(self) -> None:
        if not self._searching:
            self._searching = True
            self._say("Looking for Ollama, LM Studio, llama.cpp and vLLM …")
            self._search()

    @work(exclusive=True, group="servers")
    async def _search(self) -> None:
        self.post_message(self.Searched(tuple(await self._services.find_servers())))

    def on_welcome_screen_searched(self, message: Searched) -> None:
        self._searching = False
        answered = {model for server in message.servers for model in server.models}
        silent = (server for server in self._own if not answered.issuperset(server.models))
        self._servers = (*message.servers, *silent)
        if message.servers:
            self._say(f"Found {', '.join(one_line(server.name, 30) for server in message.servers)}.")
        else:
            self._say("No server answered. Start one (for example: ollama serve) and look again.")
        self._offer()

    def _say(self, text: str) -> None:
        self.news.update(text)
        self.news.display = True
