"""Code navigation as the model meets it: real processes of a scripted language server."""

import asyncio
import contextlib
import io
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.agents import Harness, make_agent
from tests.support.headless import run_headless
from tests.support.processes import alive, eventually, pids_in
from tests.support.scripted_client import Call, Reply
from tests.support.thoroughness import examples
from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.projection import ModelTraits
from tui_agent.sandbox import Sandbox, find_sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import FilePart, UserEntry
from tui_agent.tools.code import CodeTool
from tui_agent.tools.language_servers.answers import (
    callers_of,
    hover_text,
    places_of,
    plain_names,
    symbols_of,
)
from tui_agent.tools.language_servers.connection import Frames, ServerError
from tui_agent.tools.language_servers.documents import Documents
from tui_agent.tools.language_servers.known import LANGUAGES
from tui_agent.tools.language_servers.place import ServerPlace
from tui_agent.tools.language_servers.settings import CodeSettings
from tui_agent.tools.registry import builtin_tools

SERVER = Path(__file__).parents[1] / "support" / "language_server.py"
needs_bubblewrap = pytest.mark.skipif(not find_sandbox().layered, reason="needs bubblewrap")
APP = """class Shape:
    def area(self):
        return 0

def total(shapes):
    return "ö𝒳", sum(one.area() for one in shapes)
"""
USE = "from app import total\nprint(total([]))\n"


def make_project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text(APP)
    (project / "use.py").write_text(USE)
    (project / ".env").write_text("API_KEY=sk-0123456789abcdefghijklmnop\n")
    return project


def navigating(
    tmp_path: Path, *steps: Call, how: str = "well", timeout: float = 20, **ports: Any
) -> Harness:
    """Return an agent whose model makes some calls, in a project with a server that behaves in some way."""
    project = make_project(tmp_path)
    command = shlex.join([sys.executable, str(SERVER), how])
    chosen = CodeSettings(timeout=timeout, servers={"*.py": command})
    tool = CodeTool(project, ports.pop("chosen", chosen))
    script = [*(Reply(calls=(step,)) for step in steps), Reply("Done.")]
    return make_agent(tmp_path, script, tools=(*builtin_tools(), tool), **ports)


def code(op: str, symbol: str = "", path: str = "") -> Call:
    return Call("code", json.dumps({"op": op, "symbol": symbol, "path": path}))


async def outputs(harness: Harness) -> list[str]:
    """Run the script and return the results of its calls; everything has ended by then."""
    await harness.say("go")
    await harness.agent.aclose()
    return [result.output for result in harness.results()]


async def test_names_lines_and_files_are_asked_about(tmp_path: Path) -> None:
    harness = navigating(
        tmp_path,
        code("definition", "total"),
        code("definition", "Shape.area"),
        code("references", "total"),
        code("references", "area", "app.py:6"),
        code("callers", "total"),
        code("hover", path="app.py:5"),
        code("symbols", path="app.py"),
        code("symbols", "tot"),
        code("implementations", "total", "app.py"),
    )
    found = await outputs(harness)
    total = "app.py:5: def total(shapes):"
    area = "app.py:2:     def area(self):"
    calls = 'app.py:6:     return "ö𝒳", sum(one.area() for one in shapes)'
    assert found == [
        total,
        area,
        f"{total}\nuse.py:1: from app import total\nuse.py:2: print(total([]))",
        f"{area}\n{calls}",
        "use.py:2: print(total([]))",
        f"{total}\ntotal",
        f"app.py:1: class Shape:\n{area}\n{total}",
        total,
        total,
    ]
    assert harness.results()[2].title == "references total · 3 places"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (code("definition"), "Name a symbol, or a line as path:line."),
        (code("definition", "a b"), "is not a name"),
        (code("definition", "nowhere"), "The name nowhere is in no code file"),
        (
            code("definition", path="use.py:2"),
            "Give one of line 2's names as symbol: print, total.",
        ),
        (code("definition", "sum", "app.py:1"), "Line 1 has no sum: class Shape:"),
        (code("definition", path="app.py:99"), "app.py has 7 lines."),
        (code("symbols"), "Set path to a file, or symbol to part of a name."),
        (code("symbols", path="gone.py"), "gone.py does not exist."),
        (code("symbols", path=".env"), "No language server is known for .env."),
    ],
)
async def test_a_question_that_means_nothing_says_what_would(
    tmp_path: Path, call: Call, said: str
) -> None:
    (output,) = await outputs(navigating(tmp_path, call))
    assert said in output


async def test_declarations_are_asked_about_where_their_name_stands(tmp_path: Path) -> None:
    calls = (code("definition", "total"), code("hover", "total"), code("hover", path="app.py:5"))
    found = await outputs(navigating(tmp_path, *calls, how="flat"))
    total = "app.py:5: def total(shapes):"
    assert found == [total, f"{total}\ntotal", f"{total}\ntotal"]


async def test_a_server_of_single_files_says_so(tmp_path: Path) -> None:
    (output,) = await outputs(navigating(tmp_path, code("symbols", "tot"), how="knows little"))
    assert output.endswith("lists only a file's symbols. Set path to a file.")


async def test_what_a_library_declares_is_asked_about_where_it_stands(tmp_path: Path) -> None:
    (output,) = await outputs(navigating(tmp_path, code("references", "sum")))
    assert output.startswith("app.py:6: ")
    assert output.endswith(
        "[The project has no declaration of sum. This answer is for its use in app.py:6.]"
    )


async def test_a_name_of_several_things_says_so(tmp_path: Path) -> None:
    harness = navigating(tmp_path, code("hover", "area"))
    (tmp_path / "project" / "b.py").write_text("class Other:\n    def area(self): pass\n")
    (output,) = await outputs(harness)
    assert "[area is declared in 2 places." in output


async def test_files_without_a_server_do_not_keep_others_from_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    harness = navigating(tmp_path, code("definition", "total"), code("definition", "only"))
    (tmp_path / "project" / "a.zig").write_text("fn total() void {}")
    (tmp_path / "project" / "a.go").write_text("func total() {}\nfunc only() {}")
    total, only = await outputs(harness)
    assert total == "app.py:5: def total(shapes):"
    assert only == "No language server for Go is installed (gopls). Search with grep."


async def test_files_that_change_meanwhile_are_known(tmp_path: Path) -> None:
    harness = navigating(
        tmp_path,
        code("definition", "total"),
        Call(
            "bash", json.dumps({"command": "printf '\\ndef more(): pass\\n' >> app.py; rm use.py"})
        ),
        code("definition", "more"),
        code("hover", "more"),
    )
    found = await outputs(harness)
    assert found[2:] == [
        "app.py:8: def more(): pass",
        "app.py:8: def more(): pass\nmore\nchanged: app.py 2, use.py 3",
    ]


async def test_places_that_may_not_be_shown_are_counted(tmp_path: Path) -> None:
    harness = navigating(tmp_path, code("references", "total"), how="outside")
    (output,) = await outputs(harness)
    assert output == (
        "/etc/hostname:1\napp.py:1: class Shape:\n"
        "[Lines of files outside the project are not shown. Read the file to see them.]\n"
        "[Not shown: 1 place in files that rules deny or that may hold secrets.]"
    )


async def test_a_link_to_what_may_not_be_read_is_counted(tmp_path: Path) -> None:
    harness = navigating(tmp_path, code("references", "total", "app.py:5"))
    (tmp_path / "project" / "link.py").symlink_to(tmp_path / "project" / ".env")
    (tmp_path / "project" / "also.py").symlink_to(tmp_path / "project" / "use.py")
    (tmp_path / "project" / ".env").write_text("API_KEY=sk-total\ntotal()\n")
    (output,) = await outputs(harness)
    assert "also.py:2: print(total([]))" in output
    assert "link.py" not in output
    assert "[Not shown: 2 places in" in output


async def test_a_rule_against_reading_holds(tmp_path: Path) -> None:
    rules = (Rule("read", "use.py", Action.DENY, "flag"),)
    call = code("references", "total", "app.py:5")
    (output,) = await outputs(navigating(tmp_path, call, rules=rules))
    assert output.startswith("app.py:5: def total(shapes):\n[Not shown")
    assert "print" not in output


async def test_a_server_is_not_sent_what_rules_keep_back(tmp_path: Path) -> None:
    rules = (Rule("read", "app.py", Action.DENY, "flag"),)
    calls = (code("symbols", path="use.py"), code("definition", "area"), code("symbols", "area"))
    found = await outputs(navigating(tmp_path, *calls, rules=rules))
    assert found[1] == "The name area is in no code file. Search for text with grep."
    assert "area" not in found[2].replace("name area", "")


async def test_a_running_server_tells_the_new_errors_of_edits(tmp_path: Path) -> None:
    def edit(old: str, new: str) -> Call:
        return Call("edit", json.dumps({"path": "app.py", "edits": [{"old": old, "new": new}]}))

    harness = navigating(
        tmp_path,
        edit("return 0", "return 0  # BAD one"),
        code("symbols", path="app.py"),
        edit("class Shape:", "class Shape:  # BAD two, SO_SO"),
        edit(" two, SO_SO", " two"),
        rules=(Rule("edit", "*", Action.ALLOW, "flag"),),
        diagnostics=DiagnosticSettings(wait=20),
    )
    await outputs(harness)
    told = [entry for entry in harness.entries(UserEntry) if entry.synthetic == "diagnostics"]
    (part,) = [part for entry in told for part in entry.parts if isinstance(part, FilePart)]
    name = Path(sys.executable).name
    assert part.text == f"1 new problem:\napp.py:1: no BAD ({name})"


async def test_a_server_can_change_nothing(tmp_path: Path) -> None:
    found = await outputs(navigating(tmp_path, code("hover", "total"), how="edits"))
    assert '{"applied": false' in found[0]
    assert "workspace/executeShell is not supported" in found[0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("garbage", "printed something that is not a message of the protocol"),
        ("no json", "sent a message that is not JSON"),
        ("huge", "sent a message of 900 MB"),
        ("dies", "ended with exit code 3: out of luck"),
        ("refuses", "refused: no no no"),
        ("asks", "sends requests without reading the answers"),
        ("knows little", "does not support references"),
        ("rows", "Nothing found."),
    ],
)
async def test_a_server_that_misbehaves_is_a_sentence(tmp_path: Path, how: str, said: str) -> None:
    (output,) = await outputs(navigating(tmp_path, code("references", "total"), how=how))
    assert said in output
    assert len(output) < 600


@pytest.mark.parametrize("how", ["loading", "again"])
async def test_an_answer_waits_until_the_project_is_loaded(tmp_path: Path, how: str) -> None:
    (output,) = await outputs(navigating(tmp_path, code("callers", "total"), how=how))
    assert output == "use.py:2: print(total([]))"


async def test_what_a_server_says_controls_no_terminal(tmp_path: Path) -> None:
    (output,) = await outputs(navigating(tmp_path, code("hover", "total"), how="escapes"))
    assert output == "app.py:5: def total(shapes):\nred"


async def test_a_slow_server_is_waited_for_so_long(tmp_path: Path) -> None:
    call = code("references", "total")
    (output,) = await outputs(navigating(tmp_path, call, how="slow", timeout=0.5))
    assert "did not answer within 0.5 s" in output


async def test_a_server_that_keeps_dying_is_left_alone(tmp_path: Path) -> None:
    harness = navigating(tmp_path, *[code("references", "total")] * 5, how="dies")
    found = await outputs(harness)
    assert "failed 3 times and is not started again in this session" in found[-1]


async def test_a_server_that_is_interrupted_or_left_running_ends_with_the_session(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    command = shlex.join(["sh", "-c", f"echo $$ >> {shlex.quote(str(pids))}; exec sleep 600"])
    chosen = CodeSettings(servers={"*.py": command})
    harness = navigating(tmp_path, code("hover", "total"), chosen=chosen)
    harness.agent.submit("go")
    await harness.until(lambda: bool(pids_in(pids)))
    harness.agent.interrupt()
    await harness.ended()
    assert "Starting sh." in harness.results()[0].output
    await harness.agent.aclose()
    await eventually(lambda: not any(map(alive, pids_in(pids))), "the server goes on")


async def test_a_program_that_is_no_server_says_why(tmp_path: Path) -> None:
    chosen = CodeSettings(servers={"*.py": "sh -c 'echo no such option >&2; exit 2'"})
    (output,) = await outputs(navigating(tmp_path, code("hover", "total"), chosen=chosen))
    assert "sh ended with exit code 2: no such option." in output


@needs_bubblewrap
async def test_the_projects_own_server_runs_in_the_sandbox(tmp_path: Path) -> None:
    harness = navigating(
        tmp_path, code("hover", "total"), chosen=CodeSettings(), sandbox=box(tmp_path)
    )
    own = tmp_path / "project" / ".venv" / "bin" / "pyright-langserver"
    own.parent.mkdir(parents=True)
    own.write_text(f"#!{sys.executable}\n{SERVER.read_text()}")
    own.chmod(0o755)
    assert await outputs(harness) == ["app.py:5: def total(shapes):\ntotal"]


async def test_what_is_found_runs_in_the_sandbox_only(tmp_path: Path) -> None:
    harness = navigating(tmp_path, code("hover", "total"), chosen=CodeSettings())
    own = tmp_path / "project" / ".venv" / "bin" / "pyright-langserver"
    own.parent.mkdir(parents=True)
    own.symlink_to(SERVER)
    own.chmod(0o755)
    (output,) = await outputs(harness)
    assert output == "pyright runs only in a sandbox, and there is none. Search with grep."


async def test_the_user_sees_which_servers_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "clangd"
    program.touch(0o755)
    out, err = io.StringIO(), io.StringIO()
    harness = navigating(tmp_path)
    assert await run_headless(harness, "/diagnostics", out=out, err=err) == 0
    assert f"*.py: {sys.executable} {SERVER} well" in out.getvalue()
    assert "Go: gopls, not found" in out.getvalue()
    assert f"C++: {program}" in out.getvalue()


def box(tmp_path: Path) -> Sandbox:
    (tmp_path / "home").mkdir()
    seen = SandboxSettings(read=(sys.prefix, sys.base_prefix))
    return Sandbox(
        seen, cache=tmp_path / "cache", home=tmp_path / "home", project=tmp_path / "project"
    )


ANY = ModelTraits("any")


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("area", ("area",)),
        ("(*Square).Area", ("Square", "Area")),
        ("(Square[T]).Area", ("Square", "Area")),
        ("impl<T> Shape for Square<T>", ("Square",)),
        ("main(String[])", ("main",)),
        ("shapes::Shape", ("shapes", "Shape")),
        ("<function>", ("<function>",)),
        ("", ("",)),
    ],
)
def test_symbols_of_each_language_have_plain_names(name: str, names: tuple[str, ...]) -> None:
    assert plain_names(name) == names


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["uri", "range", "start", "line", "character", "name", "children", "location", "from",
             "fromRanges", "contents", "value", "containerName", "selectionRange", "targetUri"]
        ),
        inner, max_size=4,
    ),
)  # fmt: skip


@settings(max_examples=examples(200))
@given(ANYTHING)
def test_no_answer_is_too_odd_to_be_read(result: Any) -> None:
    for read in (places_of, symbols_of, callers_of, hover_text):
        assert list(read(result)) is not None


@settings(max_examples=examples(200))
@given(st.lists(st.dictionaries(st.text(), st.integers())), st.data())
def test_messages_arrive_however_they_are_cut(messages: list[Any], data: st.DataObject) -> None:
    bodies = [json.dumps(message).encode() for message in messages]
    sent = b"".join(b"log\r\nContent-Length: %d\r\n\r\n%b" % (len(one), one) for one in bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    frames = Frames()
    ends = zip([0, *cuts], [*cuts, len(sent)], strict=True)
    assert [one for first, end in ends for one in frames.feed(sent[first:end])] == messages


@settings(max_examples=examples(200))
@given(st.lists(st.binary(max_size=60) | st.just(b"Content-Length: 2\r\n\r\n{}"), max_size=5))
def test_no_output_is_too_odd_to_be_refused(chunks: list[bytes]) -> None:
    frames = Frames()
    with contextlib.suppress(ServerError):
        for chunk in chunks:
            assert all(message == {} for message in frames.feed(chunk))


def test_a_command_that_no_shell_understands_is_no_setting() -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        CodeSettings(servers={"*.lua": "server 'x"})


def test_it_is_offered_where_a_server_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    project = make_project(tmp_path)
    lua = CodeSettings(servers={"*.lua": "lua-language-server"})
    python = CodeSettings(servers={"*.py": "pylsp"})
    assert CodeTool(project, python).offered_to(ANY)
    assert not CodeTool(project, lua).offered_to(ANY)
    assert not CodeTool(project, CodeSettings(enabled=False, servers={"*.py": "pylsp"})).offered_to(
        ANY
    )
    assert not CodeTool(project, CodeSettings(servers={"*.py": ""})).offered_to(ANY)
    own = project / ".venv" / "bin" / "pyright-langserver"
    own.parent.mkdir(parents=True)
    own.touch(0o755)
    assert CodeTool(project, CodeSettings()).offered_to(ANY)
    assert not CodeTool(project, CodeSettings(), lambda: False).offered_to(ANY)
    assert CodeTool(project, python, lambda: False).offered_to(ANY)


async def test_changes_whose_sending_was_interrupted_are_sent_again(tmp_path: Path) -> None:
    sent: list[str] = []

    async def notify(method: str, _params: Mapping[str, Any]) -> None:
        sent.append(method)
        if len(sent) == 1:
            raise asyncio.CancelledError

    python = LANGUAGES[0]
    assert ".py" in python.suffixes
    documents = Documents(ServerPlace(tmp_path, {}, None), python, notify)
    await documents.record_files()
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(asyncio.CancelledError):
        await documents.send_changes()
    await documents.send_changes()
    changed = "workspace/didChangeWatchedFiles"
    assert sent == [changed, changed, "textDocument/didOpen"]
    await documents.send_changes()
    assert len(sent) == 3
