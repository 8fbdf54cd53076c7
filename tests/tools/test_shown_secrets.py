"""May this be shown? What every tool that shows files does with secrets in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.secret_shapes import BEGIN, END, MORE, PEM_BODY, SHAPES
from tests.support.tooling import Workspace
from tui_agent.agent.attachments import load_message
from tui_agent.errors import ToolError
from tui_agent.permission import Permission
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.shell.needs import command_needs
from tui_agent.tools.base import Tool
from tui_agent.tools.edit import EditTool
from tui_agent.tools.glob import GlobTool
from tui_agent.tools.grep import GrepTool
from tui_agent.tools.ls import LsTool
from tui_agent.tools.read import ReadTool
from tui_agent.tools.write import WriteTool


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Store(tmp_path / "s.db") as store:
        yield Session(store, store.create_session("/").id, estimate=lambda _entry: 1)


PLACES = ("local.json", "terraform.tfstate", ".dockercfg", "notes.txt", "deploy/kubeconfig", ".git/config")
PEM = f"{BEGIN.format('')}\n{PEM_BODY}\n{END.format('')}\n"
KEY = "sk" + "-ant-api03-" + "a1B2c3D4" * 6


def planted() -> list[Any]:
    """Return files, what is in them, and what must not be shown."""
    found = []
    for at, (kind, (template, pieces)) in enumerate({**SHAPES, **MORE}.items()):
        secret = pieces if isinstance(pieces, str) else "\n".join(pieces)
        text = f"first\n{template.format(secret)}\n# last\n" + "a plain line\n" * 90
        found.append(pytest.param(PLACES[at % len(PLACES)], text, secret, id=kind))
    found.append(pytest.param("id_rsa_work", PEM, PEM_BODY, id="private key alone"))
    found.append(pytest.param("token", KEY, KEY, id="token alone"))
    return found


CALLS: list[tuple[Tool[Any], dict[str, Any]]] = [
    (ReadTool(), {"path": "{}"}),
    (ReadTool(), {"path": "{}", "offset": 2, "limit": 5}),
    (GrepTool(), {"pattern": ".", "context": 2}),
    (GrepTool(), {"pattern": ".", "path": "{}"}),
    (GlobTool(), {"pattern": "**/*"}),
    (LsTool(), {}),
    (EditTool(), {"path": "{}", "old": "first", "new": "second"}),
    (EditTool(), {"path": "{}", "old": "no such line", "new": "x"}),
]


@pytest.mark.parametrize(("name", "text", "secret"), planted())
async def test_nothing_shows_a_secret_unasked(
    space: Workspace, session: Session, name: str, text: str, secret: str
) -> None:
    space.file(name, text)
    shown = []
    for tool, given in CALLS:
        arguments = {key: value.format(name) if isinstance(value, str) else value for key, value in given.items()}
        parsed = tool.Input.model_validate(arguments)
        try:
            asks = any(need.secret for need in tool.needs(parsed, space.context()))
            shown.append("" if asks else repr(await space.call(tool, **arguments)).replace("\\n", "\n"))
        except ToolError as error:
            shown.append(str(error))
    shown.append(repr(await load_message(f"look at @{name}", space.root, session, space.put_blob)))
    for part in secret.split("\n"):
        assert not [output for output in shown if part in output]
    assert [need for need in command_needs(f"cat {name}", space.root, space.root) if need.permission is Permission.READ]


async def test_the_rest_of_a_file_is_shown_and_can_be_edited(space: Workspace) -> None:
    path = space.file("local.json", f'{{\n  "port": 80,\n  "api_key": "{KEY}"\n}}\n')
    read = await space.call(ReadTool(), path="local.json")
    assert '2\t  "port": 80,' in read.output
    assert '3\t  "api_key": "[redacted]"' in read.output
    with pytest.raises(ToolError, match="in the place of a secret"):
        await space.call(WriteTool(), path="local.json", content='{"port": 81, "api_key": "[redacted]"}')
    await space.call(EditTool(), path="local.json", old='"port": 80', new='"port": 81')
    assert KEY in path.read_text()


async def test_a_key_that_was_allowed_is_shown_whole(space: Workspace) -> None:
    space.file("server.txt", PEM)
    assert any(need.secret for need in ReadTool().needs(ReadTool.Input(path="server.txt"), space.context()))
    assert PEM_BODY.split("\n")[1] in (await space.call(ReadTool(), path="server.txt")).output
    assert "Not shown, may hold secrets: server.txt" in (await space.call(GrepTool(), pattern="KEY")).output


def test_a_pattern_means_the_secrets_it_matches(tmp_path: Path) -> None:
    for name in ("server.pem", "a.so", "src"):
        (tmp_path / name).touch()
    asked = {command: command_needs(command, tmp_path, tmp_path) for command in ("ls *.so", "cat *.p?m", "cat [s]*")}
    secrets = [c for c, needs in asked.items() if any(need.permission is Permission.READ for need in needs)]
    assert secrets == ["cat *.p?m", "cat [s]*"]
