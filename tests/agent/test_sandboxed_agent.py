"""The sandbox as a user meets it: what runs unasked there, what a question names, and the second run it leads to."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent import gate
from tui_agent.agent.events import (
    Decision,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    ToolStarted,
)
from tui_agent.agent.permissions import DEFAULT_RULES, Action, Rule, Source
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.sandbox import Sandbox, SandboxState, find_sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import ToolStatus

NO = PermissionAnswer(Decision.DENY)
ONCE = PermissionAnswer(Decision.ONCE)
ALWAYS = PermissionAnswer(Decision.SESSION)


def sandbox(state: SandboxState, mode: str = "auto") -> Sandbox:
    return Sandbox(SandboxSettings.model_validate(mode), find=lambda: state)


def command(text: str, **arguments: object) -> Reply:
    return Reply(calls=(Call("bash", json.dumps({"command": text, **arguments})),))


def make_held(
    tmp_path: Path, *commands: str, answer: PermissionAnswer = NO, mode: str = "build", **ports: Any
) -> Harness:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    for name, text in {
        "src/app.py": "x = 1\n",
        "README.md": "Read.\n",
        ".gitignore": "build\n.env\n",
        ".env": "KEY=1\n",
    }.items():
        (project / name).write_text(text)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Begin")):
        subprocess.run(
            ["git", *identity, *arguments], cwd=project, check=True, stdin=subprocess.DEVNULL
        )
    (tmp_path / "home").mkdir()
    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path / "home")
    harness = make_agent(
        tmp_path, [*map(command, commands), Reply("Done.")], answer=answer, sandbox=box, **ports
    )
    harness.agent.change_mode(mode)
    return harness


def requests(harness: Harness) -> list[PermissionRequest]:
    return [event.request for event in harness.of(PermissionAsked)]


works = pytest.mark.skipif(not find_sandbox().layered, reason="needs bubblewrap 0.11 or newer")


async def test_what_is_not_protected_is_told_once_in_a_session(tmp_path: Path) -> None:
    client = ScriptedClient(
        [command("echo one"), command("echo two"), Reply("Done."), command("true"), Reply("Done.")]
    )
    harness = make_agent(
        tmp_path, client, sandbox=sandbox(SandboxState(None, reason="bubblewrap is not installed"))
    )
    await harness.say("go")
    await harness.say("again")
    (notice,) = harness.of(Notice)
    assert notice.severity == "warning"
    assert "without a sandbox: bubblewrap is not installed" in notice.message


async def test_a_required_sandbox_that_is_missing_is_told_to_the_model(tmp_path: Path) -> None:
    client = ScriptedClient([command("echo one"), Reply("I can't.")])
    harness = make_agent(
        tmp_path, client, sandbox=sandbox(SandboxState(None, reason="it is broken"), "required")
    )
    await harness.say("go")
    (result,) = harness.results()
    assert result.status is ToolStatus.ERROR
    assert "it is broken" in result.output
    assert not harness.of(PermissionAsked)


async def test_without_a_sandbox_a_command_that_became_another_meanwhile_does_not_run(
    tmp_path: Path,
) -> None:
    """A link was put in a file's place after the command was judged to only read."""
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a")
    client = ScriptedClient([command("cat a.txt"), Reply("Ok.")])
    harness = make_agent(tmp_path, client, sandbox=sandbox(SandboxState(None, reason="none")))

    def swap(event: object) -> None:
        if isinstance(event, ToolStarted):
            (tmp_path / "project" / "a.txt").unlink()
            (tmp_path / "project" / "a.txt").symlink_to(tmp_path / "outside.txt")

    harness.agent.channel.subscribe(swap)
    await harness.say("go")
    assert not harness.of(PermissionAsked)
    (result,) = harness.results()
    assert result.status is ToolStatus.ERROR
    assert "secret" not in result.output


async def test_a_link_that_nobody_may_read_ends_the_call_and_not_the_run(tmp_path: Path) -> None:
    client = ScriptedClient([command("cat /proc/1/root/no-such-file"), Reply("Ok.")])
    harness = make_agent(tmp_path, client, sandbox=sandbox(SandboxState(None, reason="none")))
    await harness.say("go")
    (result,) = harness.results()
    assert result.status is not ToolStatus.COMPLETED
    assert len(client.requests) == 2


@works
async def test_a_directory_that_a_command_made_or_removed_goes_back(tmp_path: Path) -> None:
    commands = "mkdir -p made/in src/new; touch src/new/a.txt; rmdir mine"
    harness = make_held(tmp_path, commands, mode="auto-edit", answer=ONCE, keeps_files=True)
    project = tmp_path / "project"
    (project / "mine").mkdir(mode=0o700)
    (project / "src/mine").mkdir()
    await harness.say("go")
    leaf = harness.session.leaf
    assert (project / "made/in").is_dir()
    assert not (project / "mine").exists()
    files = harness.agent.files
    await files.restore(await files.plan(None))
    assert not (project / "made").exists()
    assert not (project / "src/new").exists()
    assert (project / "mine").stat().st_mode & 0o777 == 0o700
    assert (project / "src/mine").is_dir()
    await harness.agent.navigator.go(None)
    await files.restore(await files.plan(leaf))
    assert (project / "made/in").is_dir()
    assert (project / "src/new/a.txt").is_file()
    assert not (project / "mine").exists()
    await harness.agent.aclose()


@works
@pytest.mark.parametrize(
    ("mode", "kept"), [("plan", "x = 1\n"), ("build", "x = 1\n"), ("auto-edit", "x = 2\n")]
)
async def test_any_command_runs_unasked_and_changes_what_its_mode_lets_it(
    tmp_path: Path, mode: str, kept: str
) -> None:
    line = "python3 -c \"open('src/app.py', 'w').write('x = 2\\n')\"; mkdir build; echo o > build/o; cat src/app.py"
    harness = make_held(tmp_path, line, answer=NO, mode=mode)
    await harness.say("go")
    project = tmp_path / "project"
    assert (project / "src" / "app.py").read_text() == kept
    assert (project / "build" / "o").exists() is (mode != "plan")
    assert "x = 2" in harness.results()[0].output
    assert len(requests(harness)) == (mode == "build")


@works
async def test_a_command_that_wanted_to_change_files_runs_again_when_it_may(tmp_path: Path) -> None:
    harness = make_held(tmp_path, "echo run >> README.md; echo o", answer=ONCE)
    await harness.say("go")
    (request,) = requests(harness)
    assert request.again
    assert request.reason == "changes README.md"
    assert request.rules == ("allow edit: README.md",)
    assert (tmp_path / "project" / "README.md").read_text() == "Read.\nrun\n"
    assert harness.results()[0].status is ToolStatus.COMPLETED


@works
async def test_always_is_not_asked_again_and_opens_the_repository_before_the_run(
    tmp_path: Path,
) -> None:
    commit = "git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m"
    harness = make_held(
        tmp_path, f"{commit} one", f"{commit} two", "git log --format=%s", answer=ALWAYS
    )
    await harness.say("go")
    assert len(requests(harness)) <= 2
    assert harness.results()[-1].output.split()[:2] == ["two", "one"]


@works
@pytest.mark.parametrize("mode", ["build", "auto-edit"])
async def test_a_commit_asks_before_it_runs_and_names_the_repository(
    tmp_path: Path, mode: str
) -> None:
    harness = make_held(tmp_path, "git commit --allow-empty -m x", answer=NO, mode=mode)
    await harness.say("go")
    (request,) = requests(harness)
    assert not request.again
    assert request.reason == "changes the git repository (git commit)"
    assert request.rules == ("allow bash: git commit *",)
    assert harness.results()[0].status is ToolStatus.DENIED


@works
async def test_plan_mode_refuses_a_commit_and_asks_nobody(tmp_path: Path) -> None:
    everything = Rule("*", "*", Action.ALLOW, "flag")
    lines = (
        "git commit --allow-empty -m x",
        "echo x > README.md",
        "sed -i s/Read/Write/ README.md; cat README.md",
    )
    harness = make_held(tmp_path, *lines, mode="plan", answer=ONCE, rules=(everything,))
    await harness.say("go")
    assert requests(harness) == []
    assert "plan mode" in harness.results()[0].output
    assert [entry.status.value for entry in harness.results()] == [
        "denied",
        "completed",
        "completed",
    ]
    assert "Write." in harness.results()[2].output
    assert (tmp_path / "project" / "README.md").read_text() == "Read.\n"


@works
async def test_a_secret_is_empty_until_it_is_allowed(tmp_path: Path) -> None:
    harness = make_held(tmp_path, "cat .env", answer=ONCE)
    await harness.say("go")
    (request,) = requests(harness)
    assert ".env usually holds secrets" in request.reason
    assert "KEY=1" in harness.results()[0].output
    harness = make_held(tmp_path / "other", "cat .e* | tr a-z A-Z; base64 < .en''v", answer=NO)
    await harness.say("go")
    assert "KEY" not in harness.results()[0].output


@works
async def test_a_place_outside_is_named_and_opened(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "notes"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("noted\n")
    harness = make_held(tmp_path, f"cat {place}/a.txt", answer=ONCE)
    await harness.say("go")
    (request,) = requests(harness)
    assert request.reason == f"{place} is outside the project"
    assert "noted" in harness.results()[0].output


WAYS_OUT = (
    "echo x > {place}",
    "echo x >> {place}",
    "cat src/app.py > ../elsewhere/new.txt",
    "cd src && echo x > ../../elsewhere/new.txt",
    "(echo x) > {place} && true",
    "mkdir -p made && cd made && echo x > {place}",
)


@works
@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("source", ["session", "here", "flag", "project"])
async def test_a_rule_about_edits_allows_none_outside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, source: Source
) -> None:
    monkeypatch.setattr(gate, "_PRIVATE", ())  # where tests are is a place like any other
    place = tmp_path / "elsewhere" / "new.txt"
    place.parent.mkdir()
    rules = (*DEFAULT_RULES, Rule("edit", "*", Action.ALLOW, source))
    harness = make_held(tmp_path, way.format(place=place), answer=NO, rules=rules)
    await harness.say("go")
    assert not place.exists()
    (request,) = requests(harness)
    assert "outside the project" in request.reason
    assert any(need.permission is Permission.EXTERNAL_DIRECTORY for need in request.needs)


@works
async def test_only_what_was_asked_for_is_opened_outside(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    for name in ("a.txt", "key"):
        (place / name).write_text(f"text of {name}\n")
    harness = make_held(
        tmp_path, f"cat {place}/a.txt && cat {place}/k*; echo a/b | cut -d/ -f1", answer=ONCE
    )
    needs = [PermissionNeed(Permission.EXTERNAL_DIRECTORY, str(place), detail=str(place / "a.txt"))]
    assert harness.agent.tools.gate.opened_by(needs, tmp_path / "project", "bash").read == {
        place / "a.txt"
    }
    await harness.say("go")
    assert all(str(place) in request.reason for request in requests(harness))
    assert "text of key" not in harness.results()[0].output


@works
async def test_rules_still_ask_and_deny(tmp_path: Path) -> None:
    rules = (Rule("bash", "make *", Action.ASK, "user"), Rule("bash", "rm *", Action.DENY, "user"))
    harness = make_held(
        tmp_path, "make x", "timeout 5 rm README.md", "$X README.md", "ls", answer=NO, rules=rules
    )
    await harness.say("go")
    assert [entry.status.value for entry in harness.results()] == [
        "denied",
        "denied",
        "denied",
        "completed",
    ]
    assert len(requests(harness)) == 2


async def test_an_answer_for_the_project_is_kept_as_the_user_changed_it(tmp_path: Path) -> None:
    kept: list[Rule] = []
    answer = PermissionAnswer(Decision.PROJECT, patterns=("make test*",))
    client = ScriptedClient([command("make test"), command("make test-all"), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=answer, keep_here=kept.append)
    await harness.say("go")
    assert [(str(rule), rule.source) for rule in kept] == [("allow bash: make test*", "here")]
    assert len(requests(harness)) == 1


async def test_a_page_whose_address_the_user_wrote_is_fetched_unasked(tmp_path: Path) -> None:
    def fetch(url: str) -> Reply:
        return Reply(calls=(Call("webfetch", json.dumps({"url": url})),))

    urls = ("http://127.0.0.1:9/a", "http://127.0.0.1:9/a?key=1", "http://127.0.0.1:9/")
    harness = make_agent(tmp_path, [*map(fetch, urls), Reply("Done.")], answer=NO)
    await harness.say("Read http://127.0.0.1:9/a, please.")
    assert [entry.status.value for entry in harness.results()] == ["error", "denied", "denied"]


@works
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sed -i s/Read/Write/ README.md", "changes README.md (sed)"),
        ("cat .env", ".env usually holds secrets"),
        ("git commit --allow-empty -m x", "changes the git repository (git commit)"),
        ("curl -sSf http://example.org/", "it wants to reach example.org on the network"),
    ],
)
async def test_a_refusal_tells_the_model_what_was_missing(
    tmp_path: Path, line: str, reason: str
) -> None:
    harness = make_held(tmp_path, line, answer=PermissionAnswer(Decision.DENY, "use the edit tool"))
    await harness.say("go")
    assert f"The user did not allow this call: {reason}." in harness.results()[0].output
    assert "use the edit tool" in harness.results()[0].output
    assert (tmp_path / "project" / "README.md").read_text() == "Read.\n"


@works
async def test_a_command_that_did_without_a_host_is_no_refusal(tmp_path: Path) -> None:
    harness = make_held(tmp_path, "curl -s http://example.org/; echo done", answer=NO)
    await harness.say("go")
    assert len(requests(harness)) == 1
    assert "done" in harness.results()[0].output
    assert "did not allow this call" not in harness.results()[0].output


@works
async def test_rules_of_reading_hold_for_commands(tmp_path: Path) -> None:
    rules = (
        *DEFAULT_RULES,
        Rule("read", "README.md", Action.ASK, "user"),
        Rule("read", "src/*", Action.DENY, "user"),
    )
    commands = ("cat README.md", "cat src/app.py", "cat R* sr*/*; echo .")
    harness = make_held(tmp_path, *commands, answer=ONCE, rules=rules)
    await harness.say("go")
    asked, denied, unnamed = harness.results()
    assert asked.output == "Read."
    assert [need.pattern for request in requests(harness) for need in request.needs] == [
        "README.md"
    ]
    assert denied.status is ToolStatus.DENIED
    assert unnamed.output.splitlines()[0] == "."


@works
@pytest.mark.parametrize("ending", ["", " || true", "; false"])
async def test_the_note_of_a_refused_host_reaches_the_model_once(
    tmp_path: Path, ending: str
) -> None:
    no = PermissionAnswer(Decision.DENY, note="use the mirror")
    fetch = "import urllib.request as r; r.urlopen('http://example.org/x', timeout=9)"
    harness = make_held(tmp_path, f'python3 -c "{fetch}"{ending}', answer=no)
    await harness.say("go")
    (asked,) = requests(harness)
    assert [need.pattern for need in asked.needs] == ["example.org"]
    (result,) = harness.results()
    assert result.output.count("The user says: use the mirror") == 1


def with_links(project: Path) -> dict[str, str]:
    """Make a directory with links, as a virtual environment has them; returns its entries."""
    place = project / "q"
    (place / "bin").mkdir(parents=True)
    for name in ("f", "bin/activate"):
        (place / name).write_text(f"{name}\n")
    for name, target in (("in", "f"), ("lib64", "bin"), ("bin/python", "/usr/bin/env")):
        (place / name).symlink_to(target)
    return entries_of(place)


def with_ignored_data(project: Path) -> None:
    with_links(project)
    (project / ".gitignore").write_text("*.db\n")
    (project / "q/one.db").write_text("ignored\n")


def entries_of(place: Path) -> dict[str, str]:
    found = {}
    for path in place.rglob("*"):
        name = path.relative_to(place).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text()
    return found


@works
@pytest.mark.parametrize("mode", ["build", "auto-edit", "yolo"])
async def test_a_directory_with_links_is_removed_and_undo_brings_everything_back(
    tmp_path: Path, mode: str
) -> None:
    harness = make_held(tmp_path, "rm -rf q", answer=ONCE, mode=mode, keeps_files=True)
    project = tmp_path / "project"
    before = with_links(project)
    await harness.say("go")
    (result,) = harness.results()
    assert (result.status, result.output) == (ToolStatus.COMPLETED, "[No output.]")
    assert not (project / "q").exists()
    assert len(requests(harness)) == (mode == "build")
    wanted = await harness.agent.files.plan(None)
    await harness.agent.files.restore(wanted)
    assert entries_of(project / "q") == before


@works
async def test_after_yes_undo_brings_back_what_is_not_ignored(tmp_path: Path) -> None:
    harness = make_held(tmp_path, "rm -rf q", answer=ONCE, keeps_files=True)
    project = tmp_path / "project"
    before = with_links(project)
    (project / ".gitignore").write_text("*.db\n")
    for name in ("one.db", "bin/two.db"):
        (project / "q" / name).write_text("ignored\n")
    await harness.say("go")
    (request,) = requests(harness)
    assert request.reason == "it changes q, which /undo can't bring back"
    assert not (project / "q").exists()
    wanted = await harness.agent.files.plan(None)
    await harness.agent.files.restore(wanted)
    assert entries_of(project / "q") == before


@works
async def test_a_directory_that_the_user_keeps_stays_whole(tmp_path: Path) -> None:
    harness = make_held(tmp_path, "rm -rf q", mode="auto-edit", keeps_files=True)
    project = tmp_path / "project"
    with_ignored_data(project)
    before = entries_of(project / "q")
    await harness.say("go")
    (result,) = harness.results()
    assert "q/one.db. /undo can't restore these files" in result.output
    assert "deleted directories that contain files which have to stay" in result.output
    assert entries_of(project / "q") == before


@works
@pytest.mark.parametrize("answer", [ONCE, NO])
@pytest.mark.parametrize("line", ["mv q moved", "mkdir moved && mv q/* moved/ && rmdir q"])
async def test_a_directory_with_ignored_data_is_moved_as_a_whole_or_not_at_all(
    tmp_path: Path, line: str, answer: PermissionAnswer
) -> None:
    harness = make_held(tmp_path, line, mode="auto-edit", answer=answer, keeps_files=True)
    project = tmp_path / "project"
    with_ignored_data(project)
    before = entries_of(project / "q")
    await harness.say("go")
    (request,) = requests(harness)
    assert "one.db" in request.reason
    is_moved = answer is ONCE
    assert (project / "q").exists() is not is_moved
    assert (project / "moved").exists() is is_moved
    assert entries_of(project / ("moved" if is_moved else "q")) == before


@works
@pytest.mark.parametrize("line", ["mv q moved", "mkdir moved && mv q/* moved/ && rmdir q"])
async def test_a_directory_with_instructions_is_moved_without_a_question(
    tmp_path: Path, line: str
) -> None:
    harness = make_held(tmp_path, line, mode="auto-edit", answer=NO, keeps_files=True)
    project = tmp_path / "project"
    with_links(project)
    (project / "q/AGENTS.md").write_text("Be kind.\n")
    before = entries_of(project / "q")
    await harness.say("go")
    assert requests(harness) == []
    assert not (project / "q").exists()
    assert entries_of(project / "moved") == before
    wanted = await harness.agent.files.plan(None)
    await harness.agent.files.restore(wanted)
    assert entries_of(project / "q") == before
    assert not (project / "moved").exists()


@works
async def test_a_file_behind_a_replaced_link_is_not_taken_for_one_in_its_place(
    tmp_path: Path,
) -> None:
    line = "rm lib && mkdir lib && cp README.md lib/f"
    harness = make_held(tmp_path, line, mode="auto-edit", keeps_files=True)
    project = tmp_path / "project"
    with_links(project)
    (project / "lib").symlink_to("q")
    await harness.say("go")
    assert (project / "lib/f").read_text() == "Read.\n"
    done = await harness.agent.files.restore(await harness.agent.files.plan(None))
    assert not done.failed
    assert (project / "lib").is_symlink()
    assert (project / "lib/f").read_text() == "f\n"
