"""``tui-agent update``, and the script of a bundle that installs, updates and removes the program."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from scripts.bundle import platform_name, write_bundle
from tui_agent.cli.main import run
from tui_agent.cli.update import Installation, _order, find_installation, update_command
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.version import __version__

WHEEL = "/home/me/dist/tui_agent-0.2.0-py3-none-any.whl"
ORIGINS = {
    "index": None,
    "file": {"url": f"file://{WHEEL}", "archive_info": {}},
    "git": {"url": "https://example.org/tui-agent", "vcs_info": {"vcs": "git", "commit_id": "ab"}},
    "checkout": {"url": "file:///home/me/my%20work", "dir_info": {"editable": True}},
    "broken": "{",
}
SIGNS = {"uv": "uv-receipt.toml", "pipx": "pipx_metadata.json", "pip": ""}
PROGRAM = """#!/bin/sh
echo tui-agent {version}
"""
PYTHON = """#!/bin/sh
exec {executable} -E -P -c 'import sys; sys.path.insert(0, "{root}"); exec(sys.argv[1])' "$4"
"""
ROOT = Path(__file__).parent.parent.parent


def environment(place: Path, way: str, origin: str) -> Installation:
    """Return how an environment's program was installed; the environment is made of the files that tell."""
    packages = place / "lib" / "python3.13" / "site-packages"
    info = packages / "tui_agent-0.2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tui-agent\nVersion: 0.2.0\n")
    if (url := ORIGINS[origin]) is not None:
        (info / "direct_url.json").write_text(url if isinstance(url, str) else json.dumps(url))
    if SIGNS[way]:
        (place / SIGNS[way]).touch()
    return find_installation(place, [str(packages)])


@pytest.mark.parametrize("way", SIGNS)
@pytest.mark.parametrize(
    ("origin", "uv", "pipx", "pip"),
    [
        ("index", "uv tool upgrade tui-agent", "pipx upgrade tui-agent", "--upgrade tui-agent"),
        ("broken", "uv tool upgrade tui-agent", "pipx upgrade tui-agent", "--upgrade tui-agent"),
        (
            "git",
            "uv tool upgrade tui-agent",
            "pipx upgrade tui-agent",
            "--upgrade git+https://example.org/tui-agent",
        ),
        (
            "file",
            "uv tool install --force NEWER.whl",
            "pipx install --force NEWER.whl",
            "--upgrade NEWER.whl",
        ),
        *[("checkout", *["git -C /home/me/my work pull"] * 3)],
    ],
)
def test_each_way_of_installing_has_its_command(
    way: str, origin: str, uv: str, pipx: str, pip: str, tmp_path: Path
) -> None:
    found = environment(tmp_path, way, origin)
    assert found.way == ("checkout" if origin == "checkout" else way)
    command = " ".join(update_command(found))
    assert command.endswith({"uv": uv, "pipx": pipx, "pip": pip}[way])


def test_a_program_that_no_package_is_installed_of_is_a_checkout(tmp_path: Path) -> None:
    found = find_installation(tmp_path, [str(tmp_path)])
    assert (found.way, found.place) == ("checkout", ROOT)


def test_what_a_file_installed_is_not_replaced_by_a_stranger_of_that_name(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment(here, "uv", "file")
    monkeypatch.setattr(sys, "prefix", str(here))
    monkeypatch.syspath_prepend(next(here.glob("lib/python3*/site-packages")))
    assert run(["update"]) == 0
    shown = capsys.readouterr().out
    assert f"by uv from {WHEEL}" in shown
    assert "To update it: uv tool install --force NEWER.whl" in shown


def test_nothing_is_replaced_below_sessions_that_are_open(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment(here, "uv", "index")
    ran = here / "ran"
    tools = here / "tools"
    tools.mkdir()
    (tools / "uv").write_text(f'#!/bin/sh\necho "$@" >{ran}\n')
    (tools / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "prefix", str(here))
    monkeypatch.syspath_prepend(next(here.glob("lib/python3*/site-packages")))
    data = Path(os.environ["TUI_AGENT_DATA_DIR"])
    data.mkdir()
    with Store(data / "sessions.db") as store:
        session = Session(store, store.create_session(cwd=str(here)).id, estimate=lambda _entry: 1)
        session.hold()
        assert run(["update"]) == 1
        assert "Sessions are open" in capsys.readouterr().err
        assert not ran.exists()
        session.release()
    assert run(["update"]) == 0
    assert ran.read_text() == "tool upgrade tui-agent\n"


def test_pip_of_a_project_is_not_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "pip.py").write_text("print('planted')\n")
    monkeypatch.setenv("PYTHONPATH", str(here))
    for name in ("NO_INDEX", "DRY_RUN"):
        monkeypatch.setenv(f"PIP_{name}", "1")
    environment(here, "pip", "index")
    monkeypatch.setattr(sys, "prefix", str(here))
    monkeypatch.syspath_prepend(next(here.glob("lib/python3*/site-packages")))
    run(["update"])
    shown = capfd.readouterr()
    assert "-m pip install --upgrade tui-agent" in shown.out
    assert "planted" not in shown.out


# -- bundles ------------------------------------------------------------------------------------------------------


def bundle(place: Path, version: str, releases: str = "") -> Path:
    """Write a bundle whose program only says its version."""
    tree = place / f"tree-{version}"
    files = {
        "bin/tui-agent": PROGRAM.format(version=version),
        "bin/python3": PYTHON.format(executable=sys.executable, root=ROOT),
        "share/man/man1/tui-agent.1": "manual",
    }
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
    made = place / f"tui-agent-{version}-{platform_name()}.sh"
    write_bundle(tree, version, made, releases)
    return made


def shell(*command: object) -> subprocess.CompletedProcess[str]:
    words = ["sh", *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_a_bundle_is_installed_updated_and_removed_without_a_trace(
    here: Path, tmp_path: Path
) -> None:
    prefix = tmp_path / "with space"
    command = prefix / "bin" / "tui-agent"
    for version in ("1.0", "1.1", "1.1", "1.2"):
        done = shell(bundle(tmp_path, version), "--prefix", prefix)
        assert done.returncode == 0, done.stderr
        assert f'export PATH="{prefix}/bin:$PATH"' in done.stdout
        assert shell(command).stdout == f"tui-agent {version}\n"
    versions = sorted(path.name[:3] for path in (prefix / "lib" / "tui-agent").glob("*/"))
    assert versions == ["1.1", "1.2"], "a program that runs may still load the one before"
    settings = tmp_path / "config"
    settings.mkdir(exist_ok=True)

    done = shell(prefix / "lib" / "tui-agent" / "installer.sh", "--remove")

    assert done.returncode == 0, done.stderr
    assert f"rm -r '{settings}'" in done.stdout
    assert not prefix.exists()


def test_a_home_that_is_reached_through_a_link_is_one(here: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home-by-link").symlink_to("real")
    for version, name in (("1.0", "real"), ("1.1", "home-by-link"), ("1.2", "real")):
        done = shell(bundle(tmp_path, version), "--prefix", tmp_path / name)
        assert done.returncode == 0, done.stderr
    place = tmp_path / "real" / "lib" / "tui-agent"
    assert sorted(path.name[:3] for path in place.glob("*/")) == ["1.1", "1.2"]
    installer = tmp_path / "home-by-link" / "lib" / "tui-agent" / "installer.sh"
    done = shell(installer, "--remove")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "real").iterdir()) == []


def test_a_bundle_leaves_another_installation_alone(here: Path, tmp_path: Path) -> None:
    made = bundle(tmp_path, "1.0")
    command = tmp_path / "prefix" / "bin" / "tui-agent"
    command.parent.mkdir(parents=True)
    command.symlink_to("/nowhere/pipx/tui-agent")
    done = shell(made, "--prefix", tmp_path / "prefix")
    assert done.returncode == 1
    assert "is another installation" in done.stderr
    assert command.readlink() == Path("/nowhere/pipx/tui-agent")
    assert list((tmp_path / "prefix").iterdir()) == [tmp_path / "prefix" / "bin"]


@pytest.mark.parametrize("what", ["cut", "other machine", "does not run"])
def test_a_bundle_that_can_t_be_used_changes_nothing(what: str, here: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    assert shell(bundle(tmp_path, "1.0"), "--prefix", prefix).returncode == 0
    before = sorted(path.relative_to(prefix) for path in prefix.rglob("*"))
    made = bundle(tmp_path, "1.1")
    content = made.read_bytes()
    match what:
        case "cut":
            content = content[:-40]
        case "other machine":
            content = content.replace(b'-m)" = "', b'-m)" = "Plan9-')
        case "does not run":
            tree = tmp_path / "tree-1.1"
            (tree / "bin" / "tui-agent").write_text("#!/bin/sh\nexit 1\n")
            write_bundle(tree, "1.1", made)
            content = made.read_bytes()
    made.write_bytes(content)
    done = shell(made, "--prefix", prefix)
    assert done.returncode == 1
    assert done.stderr
    assert sorted(path.relative_to(prefix) for path in prefix.rglob("*")) == before
    assert shell(prefix / "bin" / "tui-agent").stdout == "tui-agent 1.0\n"


@contextmanager
def releases(directory: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_what: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/releases"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("what", ["newer", "same", "damaged", "other machine", "nothing"])
def test_a_bundle_updates_from_its_page_of_releases(
    what: str,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    latest = tmp_path / "releases" / "latest" / "download"
    latest.mkdir(parents=True)
    prefix = tmp_path / "prefix"
    with releases(tmp_path) as page:
        shell(bundle(tmp_path, __version__, page), "--prefix", prefix)
        made = bundle(tmp_path, __version__ if what == "same" else "99.1", page)
        row = f"{hashlib.sha256(made.read_bytes()).hexdigest()}  {made.name}\n"
        if what == "other machine":
            row = row.replace(platform_name(), "plan9-vax")
        if what != "nothing":
            (latest / "SHA256SUMS").write_text(row)
        if what != "damaged":
            made.rename(latest / made.name)
        else:
            (latest / made.name).write_bytes(b"something else")
        (tree,) = (prefix / "lib" / "tui-agent").glob("*/")
        monkeypatch.setattr(sys, "prefix", str(tree))

        code = run(["update"])

    shown = capfd.readouterr()
    expected = {
        "newer": (0, "tui-agent 99.1 is installed"),
        "same": (0, "This is the newest version."),
        "damaged": (1, "does not match SHA256SUMS"),
        "other machine": (1, f"no bundle for {platform_name()}"),
        "nothing": (1, "answered with status 404"),
    }
    assert (code, expected[what][1] in shown.out + shown.err) == (expected[what][0], True)
    now = shell(prefix / "bin" / "tui-agent").stdout
    assert now == f"tui-agent {'99.1' if what == 'newer' else __version__}\n"


def test_a_bundle_without_a_page_of_releases_says_how(
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prefix = tmp_path / "prefix"
    shell(bundle(tmp_path, "1.0"), "--prefix", prefix)
    (tree,) = (prefix / "lib" / "tui-agent").glob("*/")
    monkeypatch.setattr(sys, "prefix", str(tree))
    assert run(["update"]) == 0
    shown = capsys.readouterr().out
    assert f"sh tui-agent-VERSION-{platform_name()}.sh" in shown
    assert f"sh {prefix}/lib/tui-agent/installer.sh --remove" in shown


def test_versions_are_in_order() -> None:
    versions = ["0.3.0.dev1", "0.3.0rc1", "0.3.0rc2", "0.3.0", "0.3.1", "0.10.0"]
    assert all(_order(one) < _order(two) for one, two in pairwise(versions))
