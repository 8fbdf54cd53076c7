"""May this be shown? What every tool that shows files does with secrets in them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.contained import FORMS, JUDGED, Contained, state_of
from tests.support.processes import git
from tests.support.secret_shapes import BEGIN, END, MORE, PEM_BODY, SHAPES
from tests.support.tooling import Workspace
from tui_agent.agent.attachments import files_back, load_message
from tui_agent.agent.diagnostics.checks import parse_problems
from tui_agent.app.exporting import ExportFormat, ExportOrder, export_text
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.view import resolve
from tui_agent.errors import ToolError
from tui_agent.permission import Permission
from tui_agent.sandbox import View, Writes
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    FilePart,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
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


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a commit, to be copied."""
    place = tmp_path_factory.mktemp("repository")
    git(place, "init", "-q", "--template=")
    git(place, "commit", "-q", "--allow-empty", "-m", "one")
    return place


PLACES = (
    "local.json",
    "terraform.tfstate",
    ".dockercfg",
    "web.config",
    "deploy/kubeconfig",
    ".git/config",
)
PEM = f"{BEGIN.format('')}\n{PEM_BODY}\n{END.format('')}\n"
KEY = "sk" + "-ant-api03-" + "a1B2c3D4" * 6


def planted() -> list[Any]:
    """Return files, what is in them, and what must not be shown."""
    found = []
    for at, (kind, (template, pieces)) in enumerate({**SHAPES, **MORE}.items()):
        secret = pieces if isinstance(pieces, str) else "\n".join(pieces)
        text = f"first\n{template.format(secret)}\n# last\n" + "a plain line\n" * 90
        # That each is found is tested with the detector; a few stand for them with everything that shows files.
        marks = () if at % 5 == 0 or not isinstance(pieces, str) else pytest.mark.nightly
        found.append(pytest.param(PLACES[at % len(PLACES)], text, secret, id=kind, marks=marks))
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
    (WriteTool(), {"path": "{}", "content": "another\n"}),
]


PLANTED = pytest.mark.parametrize(("name", "text", "secret"), planted())


def exports(session: Session, *, redacted: bool) -> list[str]:
    """Return a session in every format, with all that it has."""
    orders = [ExportOrder(session.id, form, redacted=redacted) for form in ExportFormat]
    return [export_text(session.store, order, {}) for order in orders]


def parts_of(secret: str) -> list[str]:
    return [part for line in secret.split("\n") for part in line.split("\\n")]


@PLANTED
async def test_nothing_shows_a_secret_unasked(
    space: Workspace, session: Session, repository: Path, name: str, text: str, secret: str
) -> None:
    shutil.copytree(repository, space.root, dirs_exist_ok=True)
    data = text.encode("utf-16" if name.startswith("deploy") else "utf-8")
    path = space.file(name, data)
    shown = []
    loaded = await load_message(f"look at @{name}", space.root, session, space.put_blob)
    session.append(UserEntry(parts=loaded.parts))
    shown += map(
        str,
        parse_problems(f"{name}:2:1: error: {text.splitlines()[:2][-1]}", space.root, space.root),
    )
    for tool, given in CALLS:
        arguments = {
            key: value.format(name) if isinstance(value, str) else value
            for key, value in given.items()
        }
        parsed = tool.Input.model_validate(arguments)
        try:
            if not any(need.secret for need in tool.needs(parsed, space.context())):
                done = await space.call(tool, **arguments)
                result = ToolResultEntry(
                    call_id="1", tool=tool.name, status=ToolStatus.COMPLETED, output=done.output, title=done.title,
                    metadata=done.metadata,
                )  # fmt: skip
                session.append(result)
                shown.append(repr(done).replace("\\n", "\n"))
        except ToolError as error:
            shown.append(str(error))
    path.write_bytes(data)
    shown.append(
        repr(
            files_back(
                session.path(),
                resolve(session.path()),
                space.root,
                50_000,
                TokenCounter("test/model"),
            )
        )
    )
    shown += exports(session, redacted=False)
    for part in parts_of(secret):
        assert not [output for output in shown if part in output]
    assert [
        need
        for need in command_needs(f"cat {name}", space.root, space.root)
        if need.permission is Permission.READ
    ]


@PLANTED
def test_an_exportwithout_secrets_has_none(
    session: Session, name: str, text: str, secret: str
) -> None:
    session.append(
        UserEntry(parts=(TextPart(text=f"look\n{text}"), FilePart(path=name, text=text)))
    )
    call = ToolCallPart(call_id="1", tool="bash", arguments=json.dumps({"command": text}))
    session.append(AssistantEntry(parts=(TextPart(text=text), call), model="m"))
    metadata = ToolMetadata(diff=text)
    session.append(
        ToolResultEntry(
            call_id="1",
            tool="bash",
            status=ToolStatus.COMPLETED,
            output=text,
            title=text,
            metadata=metadata,
        )
    )
    session.append(
        CompactionEntry(
            summary=text, first_kept_id=None, tokens_before=9, tokens_after=4, trigger="manual"
        )
    )
    written = exports(session, redacted=True)
    assert all("[redacted]" in export for export in written)
    for part in parts_of(secret):
        assert not [export for export in written if part in export]


@pytest.mark.parametrize("form", FORMS)
async def test_no_command_shows_a_secret_unasked(tmp_path: Path, form: str) -> None:
    box = Contained(tmp_path / "home", state=state_of(form, tmp_path))
    box.git("init", "-q")
    box.file("open.txt", "all may see this\n")
    secrets = []
    for number, param in enumerate(planted()):
        name, text, secret = param.values
        if name != ".git/config":
            box.file(f"{number}/{name}", text)
            secrets += [(name, part) for part in parts_of(secret)]
    box.file(".git/config", '[remote "o"]\n\turl = https://ada:letmein9@example.org/x.git\n')
    secrets.append((".git/config", "letmein9"))
    for view in (View(Writes.NOTHING), View(Writes.OUTPUTS), View(Writes.PROJECT)):
        ran = await box.run(
            "find . -type f -exec cat {} + 2>/dev/null; grep -r . .; git diff --no-index /dev/null .",
            view,
        )
        assert "all may see this" in ran.output
        assert [found for found in secrets if found[1] in ran.output] == []
        assert box.sandbox.is_layered(view) is (form in JUDGED)
    await box.sandbox.aclose()


async def test_the_rest_of_a_file_is_shown_and_can_be_edited(space: Workspace) -> None:
    path = space.file("local.json", f'{{\n  "port": 80,\n  "api_key": "{KEY}"\n}}\n')
    read = await space.call(ReadTool(), path="local.json")
    assert '2\t  "port": 80,' in read.output
    assert '3\t  "api_key": "[redacted]"' in read.output
    with pytest.raises(ToolError, match="instead of a secret"):
        await space.call(
            WriteTool(), path="local.json", content='{"port": 81, "api_key": "[redacted]"}'
        )
    space.file("db.json", '{"password": "swordfish-77", "port": 80}')
    for old in ("password", 'password": "swo'):
        with pytest.raises(ToolError, match="would reveal a secret"):
            await space.call(
                EditTool(),
                path="db.json",
                old=old,
                new=old.replace("password", "x").replace("swo", ""),
            )
    await space.call(EditTool(), path="local.json", old='"port": 80', new='"port": 81')
    assert KEY in path.read_text()


async def test_a_key_that_was_allowed_is_shown_whole(space: Workspace) -> None:
    space.file("server.txt", PEM)
    assert any(
        need.secret for need in ReadTool().needs(ReadTool.Input(path="server.txt"), space.context())
    )
    assert PEM_BODY.split("\n")[1] in (await space.call(ReadTool(), path="server.txt")).output
    assert (
        "Not shown, because of possible secrets: server.txt"
        in (await space.call(GrepTool(), pattern="KEY")).output
    )


def test_a_pattern_means_the_secrets_it_matches(tmp_path: Path) -> None:
    for name in ("server.pem", "a.so", "src"):
        (tmp_path / name).touch()
    asked = {
        command: command_needs(command, tmp_path, tmp_path)
        for command in ("ls *.so", "cat *.p?m", "cat [s]*")
    }
    secrets = [
        c for c, needs in asked.items() if any(need.permission is Permission.READ for need in needs)
    ]
    assert secrets == ["cat *.p?m", "cat [s]*"]
