"""The sandbox: what a command sees, changes and reaches in each view. Nothing here is skipped on Linux."""

import asyncio
import base64
import contextlib
import hashlib
import os
import socket
import tempfile
from pathlib import Path

import pytest

from tests.support.contained import (
    EVERY_MODE,
    LIVE,
    NOTHING,
    OUTPUTS,
    PROJECT,
    SYSTEM_PATH,
    Contained,
    needs_layer,
)
from tui_agent.agent.permissions import DEFAULT_RULES, rules_from_table, view_in_mode
from tui_agent.files.secret_search import SecretSearch
from tui_agent.sandbox import Grants, View
from tui_agent.sandbox.sandbox import MAX_MOUNTS

pytestmark = [needs_layer, pytest.mark.daily(2, any_of=("plain",))]

TOKEN = "ghp" + "_0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f"

SECRETS = (
    ".bashrc", ".profile", ".zshrc", ".bash_history", ".psql_history", ".mysql_history", ".node_repl_history",
    ".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".azure/msal.json", ".gnupg/secring.gpg", ".kube/config",
    ".docker/config.json", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".vault-token",
    ".config/gcloud/adc.json", ".config/gh/hosts.yml", ".config/stripe/config.toml", ".config/doctl/config.yaml",
    ".config/heroku/token", ".config/hcloud/cli.toml", ".config/netlify/config.json", ".config/vercel/auth.json",
    ".config/opencode/auth.json", ".config/fish/fish_variables", ".config/tui-agent/config.toml",
    ".local/share/opencode/auth.json", ".local/share/keyrings/login.keyring", ".local/share/tui-agent/sessions.db",
    ".pi/agent/auth.json", ".codex/auth.json", ".claude.json", ".gemini/oauth.json", ".kaggle/kaggle.json",
    ".fly/config.yml", ".snowflake/config", ".databrickscfg", ".msmtprc", ".terraformrc", ".subversion/auth/svn",
    ".bitcoin/wallet.dat", ".electrum/wallets/default", ".cache/huggingface/token", ".config/Slack/Cookies",
    ".config/Signal/sql/db.sqlite", ".config/Code/User/secrets.json", ".mozilla/firefox/x/logins.json",
    ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties", ".gem/credentials",
    "code/other/.env", "code/other/app.py", "notes.txt", "Documents/tax.pdf",
)  # fmt: skip
"""Places where keys lie. The view knows none of these names: they are here to be looked for."""


def planted(box: Contained) -> dict[str, str]:
    """Write a secret to every place, and to some that nobody has thought of; returns what is in which."""
    made_up = (".qwhzkvpt", ".mrxolduf", ".tbnygcws", ".jfakeqiu/jfakeqiu.json")
    found = {
        place: f"canary-{number:03}-secret" for number, place in enumerate((*SECRETS, *made_up))
    }
    for place, text in found.items():
        box.file(place, text, at=box.home)
    return found


@EVERY_MODE
async def test_nothing_of_the_home_that_was_not_named_is_there(box: Contained, view: View) -> None:
    secrets = planted(box)
    names = " ".join(f"'{box.home}/{place}'" for place in secrets)
    ran = await box.run(
        f"cat {names}; grep -rs canary {box.home} /var/tmp /tmp /run; find {box.home} -type f", view
    )
    assert [place for place, text in secrets.items() if text in ran.output] == []
    assert [place for place in secrets if f"\n{box.home}/{place}\n" in ran.output] == []


async def test_toolchains_are_there_and_their_credentials_are_not(box: Contained) -> None:
    box.file(".cargo/credentials.toml", "token = 'canary'", at=box.home)
    box.file(".cargo/registry/index", "index\n", at=box.home)
    tool = box.file(".cargo/bin/my-tool", "#!/bin/sh\necho runs\n", at=box.home)
    tool.chmod(0o755)
    box.environ["PATH"] = f"{tool.parent}:{SYSTEM_PATH}"
    ran = await box.run(
        "my-tool; cat ~/.cargo/registry/index; (echo new > ~/.cargo/registry/crate) 2>/dev/null; ls ~/.cargo"
    )
    assert ran.output.split() == ["runs", "index", "bin", "registry"]
    assert not (box.home / ".cargo/registry/crate").exists()
    ran = await box.run("cat ~/.cargo/registry/crate; rm ~/.cargo/bin/my-tool || echo kept")
    # Beside a copy of the project caches are read-only.
    assert ran.output.startswith("new") is box.sandbox.state.layered
    assert tool.exists()


async def test_programs_on_the_path_find_what_belongs_to_them_and_nothing_beside_it(
    box: Contained, tmp_path: Path
) -> None:
    """An installation, an environment of Python, and a shim in another home."""

    def program(name: str, text: str, at: Path = tmp_path) -> Path:
        path = box.file(name, f"#!/bin/sh\n{text}\n", at=at)
        path.chmod(0o755)
        return path

    tool = program("apps/thing/bin/thing", 'cat "$(dirname "$0")/../lib/data"', box.home)
    box.file("apps/thing/lib/data", "data", at=box.home)
    python = program("pythons/3.99/bin/python3.99", "echo python runs")
    box.file("pythons/3.99/lib/python3.99/os.py", "", at=tmp_path)
    link = box.file("venv/pyvenv.cfg", "", at=tmp_path).parent / "bin/python"
    link.parent.mkdir()
    link.symlink_to(python)
    shim = program(
        "other/.pyenv/shims/tool", f"exec {program('other/.pyenv/libexec/real', 'echo shim runs')}"
    )
    tokens = [box.file(f"{name}/token", "canary", at=at) for name, at in (
        ("apps/thing", box.home), ("apps", box.home), ("pythons", tmp_path), ("other", tmp_path))]  # fmt: skip
    box.environ["PATH"] = ":".join(
        [*(str(path.parent) for path in (tool, link, shim)), SYSTEM_PATH]
    )
    ran = await box.run(f"thing; python; tool; cat {' '.join(map(str, tokens))}")
    assert ran.output.startswith("datapython runs\nshim runs\n")
    assert "canary" not in ran.output


async def test_settings_open_paths(box: Contained) -> None:
    notes = box.file("notes.txt", "mine", at=box.home)
    (box.home / "out").mkdir()
    box.reset(read=["~/notes.txt"], write=["~/out"])
    ran = await box.run("cat ~/notes.txt; echo x > ~/out/x; echo y > ~/notes.txt")
    assert ran.output.startswith("mine")
    assert ((box.home / "out/x").read_text(), notes.read_text()) == ("x\n", "mine")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read them")
async def test_what_only_root_may_read_of_the_system_is_hidden_from_root(box: Contained) -> None:
    assert (await box.run("cat /etc/shadow")).output == ""


async def test_sockets_of_other_programs_are_not_there() -> None:
    # A socket's path is short.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as short, contextlib.ExitStack() as servers:
        box = Contained(Path(short) / "h")
        places = [
            box.home / ".1password/agent.sock",
            box.home / ".colima/docker.sock",
            Path(short) / "x.sock",
        ]
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            server = servers.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(place))
            server.listen()
        box.file("try.py", "import socket,sys\nfor n in sys.argv[1:]:\n s=socket.socket(socket.AF_UNIX)\n"
                 " try: s.connect(n); print('connected')\n except OSError as e: print(e.strerror)\n")  # fmt: skip
        ran = await box.run(f"python3 try.py {' '.join(map(str, places))}")
        assert ran.output.split("\n")[:3] == ["No such file or directory"] * 3
        await box.sandbox.aclose()


async def test_other_processes_are_not_there(box: Contained) -> None:
    """Their environments hold keys."""
    ran = await box.run(
        f"ls /proc/{os.getpid()}; kill -0 {os.getpid()}; ls -d /proc/[0-9]* | wc -l"
    )
    assert "No such file" in ran.output
    assert "No such process" in ran.output
    assert int(ran.output.split()[-1]) < 10


async def test_temporary_files_stay_for_the_session_and_are_its_own(box: Contained) -> None:
    await box.run(
        "echo kept > /tmp/tui-agent-test; echo kept > /var/tmp/tui-agent-test; echo gone > ~/.profile"
    )
    assert not Path("/tmp/tui-agent-test").exists()
    assert (await box.run("cat /tmp/tui-agent-test /var/tmp/tui-agent-test; ls -A ~")).output.split() == [
        "kept", "kept", ".cache", "code",
    ]  # fmt: skip


@LIVE
async def test_secrets_of_the_project_are_empty_until_they_are_opened(
    box: Contained, live: bool
) -> None:
    env = box.file(".env", "KEY=canary\n")
    box.file("certs/server.key", "canary\n")
    box.file(".gitignore", "local/\n")
    key = box.file(
        "local/settings.ini",
        "[s]\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY\n",
    )
    box.file("link").unlink()
    (box.root / "link").symlink_to(".env")
    read = "cat .env certs/server.key local/settings.ini link"
    assert (await box.run(read, live=live)).output == ""
    opened = View(grants=Grants(secrets=frozenset({env, key})))
    assert (
        await box.run(read, opened, live=live)
    ).output == f"KEY=canary\n{key.read_text()}KEY=canary\n"
    box.reset(read=[".env", "certs/*.key"])
    assert (await box.run("cat .env certs/server.key", live=live)).output == "KEY=canary\ncanary\n"


async def test_a_secret_that_comes_later_is_hidden_and_a_failing_command_that_names_it_wants_it(
    box: Contained,
) -> None:
    box.file("sub/a.py")
    await box.run("true")
    box.file("sub/.env", "canary")
    assert (await box.run("cat sub/.env")).output == ""
    env = box.file(".env", "KEY=mine\n")
    ran = await box.run("echo 'no KEY in .env' >&2; exit 1")
    assert ran.outcome.wanted == Grants(secrets=frozenset({env}))
    assert (await box.run("cat .env; true")).outcome.wanted is None


@pytest.mark.parametrize("count", [3, 400])
async def test_what_there_was_no_time_to_search_is_not_shown_yet(
    box: Contained, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Many files are hidden with their directories; source code is there, and the rest when it was searched."""
    box.file("src/app.py", "code\n")
    for number in range(count):
        box.file(f"data/d{number % 7}/f{number}.txt", "words\n")
    with monkeypatch.context() as patched:
        patched.setattr(SecretSearch, "run", lambda *_given: None)
        ran = await box.run("cat src/app.py; cat data/*/*; true")
        assert ran.output.replace("cat: 'data/*/*': No such file or directory\n", "") == "code\n"
        assert f"until they are searched for secrets: {count} files" in ran.outcome.note
        assert len(ran.launch.layout.mounts) < MAX_MOUNTS
    ran = await box.run("cat data/*/* | wc -l")
    assert (ran.output, ran.outcome.note) == (f"{count}\n", "")


async def test_secrets_are_hidden_in_packages_and_output_too_and_what_packages_come_with_is_there(
    box: Contained,
) -> None:
    box.git("init", "-q")
    box.file(".gitignore", "node_modules/\n.venv/\ndist/\n")
    secret, site = f'{{"key": "{TOKEN}"}}\n', ".venv/lib/python3.11/site-packages"
    for name in (
        "node_modules/.env",
        "node_modules/p/.npmrc",
        "node_modules/p/own.json",
        ".venv/.env",
        "dist/a/x.yml",
    ):
        box.file(name, secret)
    box.file("node_modules/p/fixtures.json", secret * 200)
    published = box.file(f"{site}/p/tests/server.key", secret)
    digest = base64.urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()).decode().rstrip("=")
    row = f"p/tests/server.key,sha256={digest},{len(secret)}\n"
    box.file(f"{site}/p-1.dist-info/RECORD", f"{row}{row.replace('server', 'mine')}")
    box.file(f"{site}/p/tests/mine.key", secret.replace("key", "kex"))
    ran = await box.run("grep -rl ghp_ node_modules .venv dist")
    assert sorted(ran.output.split()) == [
        published.relative_to(box.root).as_posix(),
        "node_modules/p/fixtures.json",
    ]


async def test_commits_leave_keys_as_they_are(box: Contained) -> None:
    """What git has unchanged is shown. What is hidden is never committed as empty."""
    box.git("init", "-q")
    key, app = box.file("tests/server.key", "a key for tests\n"), box.file("app.py", "1\n")
    env = box.file(".env.production", "PORT=80\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "one")
    app.write_text("2\n")
    env.write_text("KEY=mine\n")
    writes = PROJECT.opened(Grants(repository=True))
    commit, show = (
        "git -c user.name=n -c user.email=e@x commit -qm two",
        "git show --format= --name-only",
    )
    assert (await box.run("cat tests/server.key .env.production")).output == "a key for tests\n"
    assert "server.key" not in (await box.run("git status --porcelain")).output
    assert (await box.run(f"{commit} app.py tests && {show}", writes)).output == "app.py\n"
    box.git("reset", "-q", "--soft", "HEAD^")
    env.write_text("PORT=80\n")
    key.write_text("a key of mine\n")
    box.file(".env", "KEY=canary\n")
    assert (await box.run("cat tests/server.key")).output == ""
    for take_all in (f"{commit} -a", f"git add -A && {commit}", f"git add .env && {commit}"):
        ran = await box.run(take_all, writes)
        wanted = ".env" if "add .env" in take_all else "tests/server.key"
        assert wanted in ran.output, "git says what it can't take"
        assert "two" not in (await box.run("git log --format=%s")).output
        if wanted == "tests/server.key":
            assert ran.outcome.wanted == Grants(secrets=frozenset({key}))
    assert (await box.run(f"git add app.py && {commit} && {show}", writes)).output == "app.py\n"
    seen = PROJECT.opened(Grants(repository=True, secrets=frozenset({key})))
    assert (
        await box.run(f"{commit} -a && git show :tests/server.key", seen)
    ).output == "a key of mine\n"
    key.write_text("a key for tests\n")
    await box.run(f"git add -A; {commit}", writes)
    assert ".env" not in (await box.run("git ls-files")).output.split(), (
        "what is new and hidden is left out"
    )


@pytest.fixture
def project(box: Contained) -> Contained:
    """A repository with sources, a build directory, ignored data and what programs run."""
    box.git("init", "-q")
    box.file(".gitignore", "data/\nbuild/\n*.log\nnode_modules/\n")
    box.file("README.md", "text\n")
    box.file("src/app.py", "print('app')\n")
    box.file("src/main.c", "int main(void) { return 0; }\n")
    box.git("add", ".")
    box.git("commit", "-qm", "one")
    box.file("data/rows.csv", "1,2,3\n")
    box.file("build/old.txt", "old\n")
    box.file(".vscode/tasks.json", "{}\n")
    box.file(".husky/pre-commit", "true\n")
    box.file("large.bin", b"\1" * 5_000_001)
    return box


HARM = (
    "rm -rf data", "echo x > data/rows.csv", "mv data elsewhere", "rm large.bin", ": > large.bin",
    "echo x > .vscode/tasks.json", "rm -rf .husky", "mv .husky old; mkdir .husky; echo x > .husky/pre-commit",
    "rm -rf .git", "echo x > .git/config", "echo x > .git/hooks/pre-commit", "mv .git old", "echo x > .git/HEAD",
    "echo x > .mcp.json", "mkdir .claude && echo x > .claude/settings.json", "echo x > .envrc",
    "echo x > .GITATTRIBUTES", "echo 'gitdir: evil' > src/.git",
    "mkdir -p .tui-agent && echo x > .tui-agent/config.toml",
    "find . -type f -not -path './.git/*' -name '*.csv' -delete", "python3 -c 'import shutil; shutil.rmtree(\"data\")'",
)  # fmt: skip


NEW = (
    "echo x > .mcp",
    "mkdir .claude",
    "echo x > .envrc",
    "echo x > .GIT",
    "echo 'gitdir",
    "mkdir -p .tui",
)


def harmed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what nobody could bring back, or other programs would obey."""
    guarded = ("data/", ".git/", ".vscode/", ".husky/", "large.bin")
    gone = [name for name in before if name.startswith(guarded) and after.get(name) != before[name]]
    steering = (".mcp.json", ".claude", ".envrc", ".gitattributes", ".tui-agent", "src/.git")
    return gone + [
        name for name in after if name not in before and name.lower().startswith(steering)
    ]


@LIVE
@EVERY_MODE
async def test_what_cannot_be_taken_back_stays_in_every_mode(
    project: Contained, view: View, live: bool
) -> None:
    before = project.tree()
    # Where a job works on the project itself, what is new there is not thrown away.
    kept = [command for command in HARM if not live or not command.startswith(NEW)]
    for command in kept:
        ran = await project.run(command, view, live=live)
        assert harmed(before, project.tree()) == [], command
        assert live or ran.outcome.wanted is not None, command
        for path in set(project.tree()) - set(before) if not live else ():
            (project.root / path).unlink()


@LIVE
async def test_plan_mode_changes_nothing(project: Contained, live: bool) -> None:
    before = project.tree()
    for command in (
        "echo x > README.md", "rm -rf src build data", "touch new", "mkdir -p build/sub && echo x > build/sub/o",
        "sed -i s/app/x/ src/app.py", "mv src s2", "ln -sf /etc/passwd README.md", "cp src/main.c prog.o",
        "chmod 000 src", "printf '\\177ELF' > a.out",
    ):  # fmt: skip
        await project.run(command, NOTHING, live=live)
        assert project.tree() == before, command
    ran = await project.run(
        "echo made > build/new && mkdir -p out && cat build/new build/old.txt", NOTHING
    )
    assert (ran.output, ran.code, ran.outcome.wanted) == ("made\nold\n", 0, None)


async def test_build_output_stays_and_sources_do_not_change(project: Contained) -> None:
    ran = await project.run(
        "cc src/main.c && mkdir -p dist && cp a.out dist/ && echo l > x.log && ./a.out && echo fine"
    )
    assert (ran.output, ran.outcome.wanted) == ("fine\n", None)
    assert {"a.out", "dist/a.out", "x.log"} <= set(project.tree())
    again = await project.run(
        "echo 'int main(void) { return 1; }' | cc -xc - && echo y > build/old.txt"
    )
    assert (again.code, again.outcome.wanted) == (0, None)
    assert (project.root / "build/old.txt").read_text() == "y\n"


async def test_a_product_is_known_by_what_was_there_before(project: Contained) -> None:
    """Otherwise a source could be replaced by one."""
    project.file("untracked.txt", "mine")
    tool = project.file("tool", "\177ELF one")
    project.git("add", "tool")
    ran = await project.run(
        "for f in README.md untracked.txt tool; do printf '\\177ELF' > $f; done"
    )
    assert ran.outcome.wanted == Grants(sources=True)
    assert tool.read_text() == "\177ELF one"
    assert (project.root / "README.md").read_text() == "text\n"
    assert (project.root / "untracked.txt").read_text() == "mine"


async def test_what_changes_sources_is_a_question_and_works_with_the_hole(
    project: Contained,
) -> None:
    ran = await project.run(
        "echo 'import evil' > src/conftest.py; mkdir -p build2; echo x > build2/y.py"
    )
    assert ran.outcome.wanted == Grants(sources=True)
    assert ran.outcome.note == (
        "[Not kept, the files are as they were: build2/y.py, src/conftest.py. "
        "The command may not change these files.]"
    )
    assert "src/conftest.py" not in project.tree()
    command = "sed -i s/app/changed/ src/app.py && rm README.md && echo new > src/new.py"
    ran = await project.run(command)
    assert (ran.code, ran.outcome.wanted) == (0, Grants(sources=True))
    assert (await project.run(command, OUTPUTS.opened(Grants(sources=True)))).outcome.wanted is None
    assert (project.root / "src/app.py").read_text() == "print('changed')\n"
    assert "README.md" not in project.tree()
    assert "src/new.py" in project.tree()


async def test_compiled_python_is_not_left_beside_the_sources(project: Contained) -> None:
    """The next Python outside would run it without looking at the source."""
    await project.run("python3 -c 'import sys; sys.path.insert(0, \"src\"); import app'; mkdir -p src/__pycache__ && "
                      "echo evil > src/__pycache__/app.cpython-311.pyc", PROJECT)  # fmt: skip
    assert [name for name in project.tree() if "pycache" in name] == []


async def test_a_deleted_directory_takes_with_it_what_tools_made_in_it(project: Contained) -> None:
    for name in ("src/pkg/__pycache__/a.pyc", "src/pkg/build/lib/__pycache__/a.pyc", "dist/x/a"):
        project.file(name, "made")
    project.file(".gitignore", "dist/\nbuild/\n__pycache__/\n")
    project.file("src/pkg/a.py", "one\n")
    project.file("src/data/table.pyc", "tracked")
    project.git("add", "-f", "src/pkg/a.py", "src/data", ".gitignore")
    ran = await project.run("rm -r src/pkg src/data; rm -r dist; mkdir dist", PROJECT)
    assert (ran.code, ran.outcome.note) == (0, "")
    left = {path.name for path in (project.root / "src").iterdir()}
    assert left == {"app.py", "main.c"}
    assert list((project.root / "dist").iterdir()) == []


async def test_data_is_changed_when_it_was_opened(project: Contained) -> None:
    ran = await project.run("rm -rf data", PROJECT)
    assert ran.outcome.wanted == Grants(write=frozenset({project.root / "data"}))
    await project.run(
        "rm -f data/rows.csv; echo more > data/more.csv", OUTPUTS.opened(ran.outcome.wanted)
    )
    assert "data/rows.csv" not in project.tree()
    assert "data/more.csv" in project.tree()


async def test_links_and_directories_come_out_as_they_were_made(project: Contained) -> None:
    make = "mkdir -p deep/er && echo x > deep/er/f && ln -s er/f deep/link && chmod 755 deep/er/f"
    await project.run(f"{make} && mv src lib", PROJECT)
    tree = project.tree()
    assert tree["deep/link"] == "-> er/f"
    assert tree["lib/app.py"] == "print('app')\n"
    assert not (project.root / "src").exists()
    assert os.access(project.root / "deep/er/f", os.X_OK)


async def test_a_link_in_the_way_is_not_followed(project: Contained) -> None:
    """A process beside could put one there between the command's end and now."""
    outside = project.home / "outside"
    outside.mkdir()
    launch = await project.sandbox.launch(["bash", "-c", "echo x > src/new.py"], project.root, project.root, PROJECT,
                                          project.environment())  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *launch.arguments, env=launch.environment, pass_fds=launch.descriptors
    )
    await process.wait()
    (project.root / "src").rename(project.root / "src2")
    (project.root / "src").symlink_to(outside)
    await project.sandbox.finish(launch, "", 0)
    assert list(outside.iterdir()) == []


async def test_nothing_outside_of_the_project_can_be_changed(project: Contained) -> None:
    project.file("notes.txt", "mine", at=project.home)
    (project.root / "way").symlink_to(project.home)
    await project.run(
        f"echo x > {project.home}/notes.txt; echo x > way/notes.txt; : >> /etc/hosts; : >> /usr/x",
        PROJECT,
    )
    assert (project.home / "notes.txt").read_text() == "mine"


async def test_a_path_outside_that_is_missed_is_wanted(project: Contained) -> None:
    other = project.file("other/data.txt", "there", at=project.home)
    ran = await project.run(f"cat {other}")
    assert ran.outcome.wanted == Grants(read=frozenset({other}))
    assert (await project.run(f"cat {other}", OUTPUTS.opened(ran.outcome.wanted))).output == "there"
    new = project.home / "other/new.txt"
    assert (
        await project.run(f"echo x > {new}", OUTPUTS.opened(Grants(write=frozenset({new}))))
    ).code == 0
    assert new.read_text() == "x\n"


async def test_a_path_that_the_system_refuses_to_look_at_is_not_wanted(
    project: Contained, tmp_path: Path
) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    for path in (f"/{'x' * 300}", tmp_path / "closed/x", "~nobody-of-that-name/x"):
        ran = await project.run(f"cat {path}")
        assert ran.code == 1
        assert not ran.outcome.wanted


async def test_a_commit_wants_the_repository_and_then_works_without_its_hooks_and_settings(
    project: Contained,
) -> None:
    identity = "git -c user.name=n -c user.email=e@x"
    project.file("src/new.py", "x\n")
    ran = await project.run(f"git add src && {identity} commit -qm two")
    assert ran.code != 0
    assert ran.outcome.wanted is not None
    assert ran.outcome.wanted.repository
    opened = OUTPUTS.opened(Grants(repository=True))
    assert (
        await project.run(
            f"git add src && {identity} commit -qm two && git log --oneline | wc -l", opened
        )
    ).output == "2\n"
    before = project.tree()
    for command in (
        "git config core.fsmonitor ./evil", "echo x > .git/config", "rm -rf .git/hooks",
        "echo x > .git/hooks/pre-commit", "mv .git .g; mkdir .git; echo x > .git/config",
        "echo ../evil > .git/commondir",
    ):  # fmt: skip
        await project.run(command, opened)
        steering = {
            name: text
            for name, text in project.tree().items()
            if name.startswith((".git/config", ".git/hooks"))
        }
        assert steering == {name: text for name, text in before.items() if name in steering}, (
            command
        )
        assert not (project.root / ".git/commondir").exists()


async def test_a_build_does_not_redirect_a_submodule(project: Contained) -> None:
    """A gitdir of its own would have programs run by whoever asks git about the project next."""
    library = project.home / "library"
    library.mkdir()
    project.git("init", "-q", cwd=library)
    project.git("commit", "-q", "--allow-empty", "-m", "x", cwd=library)
    project.git("submodule", "add", "-q", str(library), "lib")
    before = (project.root / "lib/.git").read_text()
    steps = "cp -r .git/modules/lib evilgit; echo '[core]' >> evilgit/config; echo 'gitdir: ../evilgit' > lib/.git"
    for view in (NOTHING, OUTPUTS, PROJECT, PROJECT.opened(Grants(repository=True))):
        for live in (False, True):
            await project.run(
                f"{steps}; mv lib l2; mkdir lib; echo 'gitdir: ../evilgit' > lib/.git",
                view,
                live=live,
            )
            assert (project.root / "lib/.git").read_text() == before
            await project.run("rm -rf evilgit", PROJECT)


async def test_nested_repositories_and_worktrees_are_read_only(project: Contained) -> None:
    (project.root / "nest").mkdir()
    project.git("init", "-q", cwd=project.root / "nest")
    project.git("worktree", "add", "-q", str(project.home / "code/tree"))
    config = (project.root / "nest/.git/config").read_text()
    await project.run(
        "echo evil > nest/.git/config; mv nest n2; mkdir -p nest/.git; echo evil > nest/.git/config",
        PROJECT,
    )
    assert (project.root / "nest/.git/config").read_text() == config
    project.root = project.home / "code/tree"
    shown = await project.run("git status --short && git log --oneline | wc -l")
    assert shown.output == "1\n"
    await project.run(f"echo evil >> {project.home}/code/demo/.git/config", PROJECT)
    assert "evil" not in (project.home / "code/demo/.git/config").read_text()
    project.file("f", "x")
    opened = OUTPUTS.opened(Grants(repository=True))
    committed = await project.run(
        "git add f && git -c user.name=n -c user.email=e@x commit -qm t && echo done", opened
    )
    assert committed.output == "done\n"
    await project.run(f"echo evil >> {project.home}/code/demo/.git/config", opened)
    assert "evil" not in (project.home / "code/demo/.git/config").read_text()


async def test_a_git_file_that_names_another_place_opens_nothing(box: Contained) -> None:
    other = box.home / "other"
    for name, text in (("HEAD", "x"), ("gitdir", "/elsewhere/.git\n"), ("commondir", ".\n")):
        box.file(name, text, at=other)
    box.file(".git", f"gitdir: {other}\n")
    ran = await box.run(
        f"cat {other}/HEAD; echo x > {other}/HEAD", OUTPUTS.opened(Grants(repository=True))
    )
    assert "No such file" in ran.output
    assert (other / "HEAD").read_text() == "x"
    repository = box.file("README.md", at=box.home / "repository").parent
    box.git("init", "-q", cwd=repository)
    box.git("config", "core.worktree", "..", cwd=repository)
    box.git("commit", "-q", "--allow-empty", "-m", "x", cwd=repository)
    box.git("worktree", "add", "-q", str(box.home / "tree"), cwd=repository)
    for named in (".git", ".git/worktrees/tree"):
        box.reset()
        box.file(".git", f"gitdir: {repository / named}\n")
        assert "No such file" in (await box.run(f"cat {repository}/.git/HEAD")).output


@LIVE
async def test_a_password_in_the_settings_of_a_repository_is_not_shown_and_git_works(
    box: Contained, live: bool
) -> None:
    box.git("init", "-q")
    box.git(
        "remote",
        "add",
        "origin",
        "https://me:ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/a/b",
    )
    for view in (OUTPUTS, OUTPUTS.opened(Grants(repository=True))):
        ran = await box.run("git remote -v; cat .git/config; git status --short", view, live=live)
        assert "ghp_" not in ran.output
        assert ran.output.count("github.com/a/b") == 3
    assert "ghp_" in (box.root / ".git/config").read_text()


async def test_a_job_makes_its_output_directory_and_sees_sources_change(project: Contained) -> None:
    ran = await project.run(
        "mkdir -p node_modules/x && echo 1 > node_modules/x/y && echo ok", live=True
    )
    assert ran.output == "ok\n"
    assert "node_modules/x/y" in project.tree()
    assert not (project.root / "dist").exists()


async def test_a_home_that_is_the_project_keeps_its_secrets(tmp_path: Path) -> None:
    box = Contained(tmp_path)
    secrets = planted(box)
    box.root = box.home
    names = " ".join(f"'{place}'" for place in secrets if place.startswith("."))
    ran = await box.run(f"cat {names}; cat notes.txt")
    shown = [place for place, text in secrets.items() if text in ran.output]
    assert shown == ["notes.txt"]
    await box.sandbox.aclose()


async def test_nothing_is_left_of_a_command(project: Contained) -> None:
    before = project.tree()
    await project.run("echo x > README.md; mkdir -m 0 closed; mkdir -p a/b && chmod 500 a/b a")
    assert project.tree() == before
    assert project.layers() == []


async def test_two_commands_beside_each_other_have_layers_of_their_own(project: Contained) -> None:
    others = []

    async def another() -> None:
        others.append(await project.run("cat README.md; ls ~/.cache"))

    command = "echo one > README.md; echo; read go; cat README.md"
    ran = await project.run(command, PROJECT, beside=another)
    assert ran.output == "one\n"
    assert others[0].output.startswith("text\n")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change a device's permissions")
async def test_a_device_has_its_permissions_back_after_a_command_of_root(box: Contained) -> None:
    before = Path("/dev/full").lstat().st_mode
    await box.run("chmod 640 /dev/full; chmod 600 /dev/random")
    assert Path("/dev/full").lstat().st_mode == before


READ_RULES = {
    "data/people/**": "deny",
    "*.sql": "deny",
    "notes/*": "ask",
    "notes/open.md": "allow",
}


async def test_commands_see_no_file_that_rules_keep_from_tools(box: Contained) -> None:
    box.git("init", "-q")
    names = ("data/people/a.csv", "data/b.csv", "old/dump.sql", "notes/x.md", "notes/open.md")
    for name in names:
        box.file(name, "hello\n")
    box.git("add", "data/people/a.csv")
    rules = (*DEFAULT_RULES, *rules_from_table({"read": READ_RULES}, "user"))
    view = view_in_mode(rules, "build")
    ran = await box.run("grep -rl hello .", view)
    assert sorted(ran.output.split()) == ["./data/b.csv", "./notes/open.md"]

    files = frozenset({box.root / "notes/x.md", box.root / "old/dump.sql"})
    ran = await box.run("cat notes/x.md old/dump.sql", view.opened(Grants(secrets=files)))
    assert ran.output == "hello\n"


async def test_a_rule_that_changes_is_obeyed_at_once(box: Contained) -> None:
    box.file("a.txt", "hello\n")
    denied = view_in_mode(rules_from_table({"read": {"a.*": "deny"}}, "session"), "auto-edit")
    assert (await box.run("cat *", PROJECT)).output == "hello\n"
    assert (await box.run("cat *", denied)).output == ""
    assert (await box.run("cat *", PROJECT)).output == "hello\n"
