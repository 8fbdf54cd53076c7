"""The screen of the MCP servers: on real servers what it does, drawn from given ones how it looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_place import Place
from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import make_stage, screen_text, send, until, write
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.mcp.records import (
    LoginState,
    McpPrompt,
    McpResource,
    McpServerStatus,
    McpToolRow,
    PromptArgument,
    ServerState,
)
from tui_agent.app.format import short_path
from tui_agent.app.frontend import EquipmentLine, EquipmentPage, Heading
from tui_agent.session.entries import FilePart, UserEntry
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool
from tui_agent.ui.screens.equipment import EquipmentScreen, server_text
from tui_agent.ui.screens.viewer import ViewerScreen

SPECS = (AgentSpec("explore", "finds and reads", prompt="You explore."),)


async def ready_stage(
    tmp_path: Path, place: Place, saved: dict[str, object] | None = None, **agent: Any
) -> RealStage:
    await place.hub.settle()
    services: dict[str, Any] = {} if saved is None else {"save_setting": saved.__setitem__}
    return real_stage(tmp_path, [Reply("Hello.")], services=services, mcp=place.hub, **agent)


async def test_a_tool_is_switched_off_for_the_model_and_kept(tmp_path: Path, place: Place) -> None:
    place.add_stdio(allow=("add", "fail"))
    saved: dict[str, object] = {}
    stage = await ready_stage(tmp_path, place, saved)
    async with stage.run() as pilot:
        await stage.main.controller.run("mcp", "")
        await stage.until_text("1 of 1 server ready · 2 tools", pilot)
        await pilot.press("down", "down", "down", "down", "space")
        await stage.until_text("fail is off, saved in config.toml", pilot)
        assert saved == {"mcp.tracker.allow": ["add"], "mcp.tracker.deny": None}
        await pilot.press("escape")
        await stage.say("hi", pilot)
        assert [tool.name for tool in stage.client.requests[0].tools if "tracker" in tool.name] == [
            "tracker_add"
        ]


async def test_a_server_that_is_gone_is_restarted_and_its_log_is_shown(
    tmp_path: Path, place: Place
) -> None:
    script = tmp_path / "server.sh"
    script.write_text("echo the database is locked >&2; exit 3\n")
    place.add("ledger", command="sh", args=(str(script),))
    stage = await ready_stage(tmp_path, place)
    async with stage.run() as pilot:
        await stage.main.controller.run("mcp", "")
        await stage.until_text("the database is locked", pilot)
        assert "See the server's log. r restarts it." in stage.text()
        await pilot.press("o")
        await until(lambda: isinstance(stage.screen, ViewerScreen), pilot)
        assert "the database is locked" in stage.text()
        await pilot.press("escape")
        place.specs[0] = replace(
            place.specs[0], settings=place.specs[0].settings.model_copy(update={"enabled": False})
        )
        await pilot.press("ctrl+r")
        await stage.until_text("Disabled in the settings", pilot)
        await pilot.press("r")
        await stage.until_text("ledger is disabled in the configuration", pilot)


async def test_mcp_reload_reads_the_settings_and_tells_the_model(
    tmp_path: Path, place: Place
) -> None:
    stage = await ready_stage(tmp_path, place)
    async with stage.run() as pilot:
        await stage.say("hi", pilot)
        place.add_stdio(allow=("add",))
        await stage.main.controller.run("mcp", "reload")
        await until(lambda: place.hub.status() and place.hub.is_settled, pilot)
        await until(
            lambda: "sends the servers' tools again" in str(stage.main.notice.render()), pilot
        )
        await stage.say("again", pilot)
        told = [
            [tool.name for tool in request.tools if "tracker" in tool.name]
            for request in stage.client.requests
        ]
        assert told == [[], ["tracker_add"]]
        await stage.main.controller.run("mcp", "restart other")
        await until(
            lambda: "There is no MCP server “other”" in str(stage.main.notice.render()), pilot
        )


async def test_prompts_complete_as_commands_and_say_what_they_need(
    tmp_path: Path, place: Place
) -> None:
    place.add_stdio(allow=())
    stage = await ready_stage(tmp_path, place)
    async with stage.run() as pilot:
        await write(pilot, "/tracker")
        assert "/tracker:review" in str(stage.main.popup.options[0].prompt)
        await pilot.press("tab", "enter")
        await until(
            lambda: "/tracker:review needs SUBJECT" in str(stage.main.notice.render()), pilot
        )
        stage.main.prompt.reset()
        await send(pilot, "/tracker:review the whole loop")
        await until(lambda: len(stage.client.requests) == 1, pilot)
        assert "Please review the whole loop." in stage.client.requests[0].messages[-1].text


async def test_resources_and_agents_complete_after_an_at_and_travel_along(
    tmp_path: Path, place: Place
) -> None:
    place.add_stdio(allow=())
    stage = await ready_stage(tmp_path, place, tools=(*builtin_tools(), TaskTool()), agents=SPECS)
    async with stage.run() as pilot:
        await write(pilot, "look at @memo")
        await until(lambda: stage.main.popup.choice is not None, pilot)
        assert "resource: What is on today." in str(stage.main.popup.options[0].prompt)
        await pilot.press("tab")
        await write(pilot, "with @expl")
        await until(
            lambda: stage.main.popup.choice and stage.main.popup.choice[1].label == "explore", pilot
        )
        await pilot.press("tab", "enter")
        await until(lambda: len(stage.client.requests) == 1, pilot)
        message = next(entry for entry in stage.harness.path() if isinstance(entry, UserEntry))
        assert message.text == "look at @tracker:memo://today with @explore"
        memo, agent = message.parts[1:]
        assert memo == FilePart(path="tracker:memo://today", text="Tests.")
        assert isinstance(agent, FilePart)
        assert agent.path == "agent:explore"
        assert "task" in agent.text
        assert not memo.is_file
        assert not agent.is_file


SERVERS = (
    McpServerStatus("tracker", "user", "stdio", ServerState.READY, "uvx tracker-mcp --read-only",
        tools=(
            McpToolRow("tracker_get_issue", "get_issue", "Return one issue with its comments.", 212),
            McpToolRow("tracker_search", "search", "Find issues by words, label or person.", 340),
            McpToolRow("tracker_delete_issue", "delete_issue", "Delete an issue for good.", 96, on=False),
        ),
        prompts=(McpPrompt("tracker", "triage", "Sort new issues.", (PromptArgument("label", required=True),)),),
        resources=(McpResource("tracker", "issue://recent", "recent", "The newest issues."),),
        log=Path("/home/ada/.local/state/tui-agent/mcp-tracker.log")),
    McpServerStatus("docs", "project", "http", ServerState.READY, "https://docs.example/mcp",
        tools=(McpToolRow("docs_find", "find", "Search the documentation. 文書を検索する", 1_800),),
        login=LoginState.SIGNED_IN, restarts=1),
    McpServerStatus("vault", "user", "http", ServerState.LOGIN, "https://vault.example/mcp", login=LoginState.WAITING,
        detail="https://vault.example/authorize?client_id=4711&state=abc"),
    McpServerStatus("ledger", "user", "stdio", ServerState.FAILED, "ledger-mcp", "there is no program “ledger-mcp”",
        "Install it, or correct its command in config.toml.",
        remedy="reload",
        log=Path("/home/ada/.local/state/tui-agent/mcp-ledger.log")),
    McpServerStatus("old", "user", "http", ServerState.DISABLED, "https://old.example/mcp"),
)  # fmt: skip


@dataclass
class GivenServers:
    """Servers that are as they are; everything done to them is noted."""

    rows: tuple[McpServerStatus, ...] = SERVERS
    done: list[str] = field(default_factory=list)
    watchers: list[Callable[[], None]] = field(default_factory=list)
    problems: tuple[str, ...] = ()

    def start(self) -> None:
        """Nothing to start."""

    def status(self) -> tuple[McpServerStatus, ...]:
        places = {"user": "config.toml", "project": ".mcp.json"}
        return tuple(replace(row, place=row.place or places[row.source]) for row in self.rows)

    async def sign_out(self, name: str) -> None:
        self.done.append(f"sign out {name}")


def given_screen(
    servers: GivenServers, stage: Any, page: EquipmentPage | None = None
) -> EquipmentScreen:
    agent = stage.agent
    agent.mcp = agent.ports.mcp = servers
    return EquipmentScreen(stage.main.controller, agent, page or EquipmentPage())


async def test_the_login_page_is_opened_and_a_login_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, servers = make_stage(tmp_path), GivenServers()
    opened: list[str] = []
    monkeypatch.setattr(stage.app, "open_url", opened.append)
    async with stage.run() as pilot:
        await stage.app.push_screen(given_screen(servers, stage))
        await pilot.press("down", "down", "i")
        assert opened == ["https://vault.example/authorize?client_id=4711&state=abc"]
        await pilot.press("up", "i")
        await until(lambda: servers.done == ["sign out docs"], pilot)
        for is_open in (True, False):
            await pilot.press("enter")
            await until(
                lambda is_open=is_open: ("Search the doc" in screen_text(stage)) is is_open, pilot
            )


async def test_a_file_of_servers_that_cannot_be_used_is_listed(tmp_path: Path) -> None:
    why = ".mcp.json: can't be read: Expecting value: line 1 column 3 (char 2)"
    stage, servers = make_stage(tmp_path), GivenServers((), problems=(why,))
    async with stage.run() as pilot:
        await stage.app.push_screen(given_screen(servers, stage))
        assert f"✗ {why}" in screen_text(stage)
        assert "No servers" not in screen_text(stage)
        servers.problems = ()
        for changed in servers.watchers:
            changed()
        await until(lambda: "No servers" in screen_text(stage), pilot)


LINES = [
    *(
        EquipmentLine(text)
        for text in (Heading("Agents"), "  ● build          the built-in agent", "")
    ),
    *(
        EquipmentLine(text)
        for text in (Heading("Tools"), "  Built in: bash, edit, glob, grep, read, todo, write.", "")
    ),
    EquipmentLine(Heading("MCP servers")),
]
PICTURES = {
    "server": ("80x24", ("right",)),
    "failed": ("40x12", ("down", "down", "down")),
    "login": ("120x35", ("right", "down", "down", "down", "right", "down", "down")),
    "wide": ("200x50", ("right", "down", "down", "down")),
}


@pytest.mark.parametrize("name", PICTURES)
def test_it_looks_as_it_should(tmp_path: Path, name: str, snap_compare: Any) -> None:
    size, keys = PICTURES[name]
    stage = make_stage(tmp_path)
    width, height = map(int, size.split("x"))

    async def show(pilot: Any) -> None:
        await until(lambda: stage.agents, pilot)
        await stage.app.push_screen(
            given_screen(GivenServers(), stage, EquipmentPage(LINES, "MCP servers"))
        )
        await pilot.pause()
        await pilot.press(*keys)

    assert snap_compare(stage.app, terminal_size=(width, height), run_before=show)


@pytest.mark.parametrize(
    ("words", "row"),
    [
        ("npx -y server '~/my notes'", {"command": "npx", "args": ["-y", "server", "~/my notes"]}),
        ("https://mcp.example.com/v1", {"url": "https://mcp.example.com/v1"}),
    ],
)
async def test_a_server_is_added_from_the_screen(
    tmp_path: Path, place: Place, words: str, row: dict[str, object]
) -> None:
    saved: dict[str, object] = {}
    stage = await ready_stage(tmp_path, place, saved)
    async with stage.run() as pilot:
        await stage.main.controller.run("mcp", "")
        await stage.until_text("No servers. Press a to add one", pilot)
        await pilot.press("a")
        await stage.until_text("Name of the new server", pilot)
        await write(pilot, "tracker")
        await pilot.press("enter")
        await stage.until_text("Command or address of tracker", pilot)
        await write(pilot, words)
        await pilot.press("enter")
        await until(lambda: saved == {'mcp."tracker"': row}, pilot)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("add a/b npx x", "A server's name may contain only"),
        ("add a 'x", "A quote in the command is not closed."),
        ("add a ftp://x", "An address begins with http:// or https://"),
        ("add a http://[x", "An address begins with http:// or https://"),
        ("other", "Use /mcp, /mcp add"),
    ],
)
async def test_what_can_not_be_added_is_said(
    tmp_path: Path, place: Place, given: str, why: str
) -> None:
    saved: dict[str, object] = {}
    stage = await ready_stage(tmp_path, place, saved)
    async with stage.run() as pilot:
        await stage.main.controller.run("mcp", given)
        await stage.until_text(why, pilot)
        assert saved == {}


@pytest.mark.parametrize(
    ("key", "read"), [("y", ["~/tools/x/index.js"]), ("d", ["~/tools/x"]), ("n", [])]
)
async def test_a_server_from_which_the_sandbox_hides_files_is_let_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, read: list[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    hidden = tmp_path / "tools/x/index.js"
    server = McpServerStatus(
        "ledger",
        "project",
        "stdio",
        ServerState.FAILED,
        f"node {hidden}",
        f"it can't see {hidden} in the sandbox: add it to [sandbox] read in config.toml",
        remedy="allow",
        hidden=(hidden,),
    )
    stage = make_stage(tmp_path)
    allowed: list[str] = []

    async def let_read(name: str, paths: Sequence[Path]) -> None:
        assert name == "ledger"
        allowed.extend(short_path(path) for path in paths)

    async with stage.run() as pilot:
        monkeypatch.setattr(stage.agent.mcp, "status", lambda: (server,))
        monkeypatch.setattr(stage.agent.ports.mcp, "let_read", let_read)
        await stage.main.controller.run("mcp", "")
        await until(lambda: "press p to let only this server read it" in screen_text(stage), pilot)
        assert "in the sandbox" in screen_text(stage)
        await pilot.press("p")
        await until(lambda: "until the program ends?" in screen_text(stage), pilot)
        await pilot.press(key)
        await until(lambda: isinstance(stage.app.screen, EquipmentScreen), pilot)
        await pilot.pause()
        assert allowed == read


async def test_a_reload_reads_the_settings_of_the_sandbox_too(tmp_path: Path, place: Place) -> None:
    place.add_stdio()
    await place.hub.settle()
    read: list[str] = []

    def reread() -> tuple[str, ...]:
        read.append("settings")
        return ()

    services = {"reread_settings": reread}
    stage = real_stage(tmp_path, [Reply("Hello.")], services=services, mcp=place.hub)
    async with stage.run() as pilot:
        await stage.main.controller.run("mcp", "")
        await stage.until_text("1 of 1 server ready", pilot)
        await pilot.press("end")
        before = place.pids()
        await pilot.press("ctrl+r")
        await stage.until_text("The settings were read again, and tracker was restarted.", pilot)
        assert read == ["settings"]
        assert len(set(place.pids()) - set(before)) == 1


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("user", "config.toml", "(your config.toml)"),
        ("user", "~/.pi/agent/mcp.json:3", "(~/.pi/agent/mcp.json:3)"),
        ("project", ".pi/mcp.json:2", "(the project's .pi/mcp.json:2)"),
    ],
)
def test_the_file_of_a_server_is_named(source: Any, place: str, words: str) -> None:
    server = McpServerStatus("mem", source, "stdio", ServerState.READY, "mem", place=place)

    assert words in server_text(server).plain
