"""Checks a release, and says how to publish it: `python scripts/release.py --dry-run`.

Versions agree, the changelog has a section, the lock and the manual page are up to date, wheel and source archive hold
what they should and nothing else, and the wheel runs in clean environments made by pip, uv and pipx on each Python.
With `--bundle PYTHON` the file that brings that Python along is made, installed, run and removed again (see bundle.py).
Packages come from the configured index. Nothing is uploaded here: the last step prints the command.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bundle import BundleError, make_bundle
from smoke import SmokeError, try_documents

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MAX_WHEEL_BYTES = 6_000_000
DIST = "dist"
SMOKE = (
    (("--version",), "tui-agent "),
    (("-p", "hello", "--demo", "--no-session"), ""),
    (("completion", "bash"), "_shtab"),
    (("sessions", "list"), ""),
)
"""Arguments that must work right after an installation, and what the output has in it."""


class CheckError(Exception):
    """Something is not ready to be released; the message says what."""


@dataclass
class Release:
    """What is looked at: a scratch directory, and the archives once they are built."""

    scratch: Path
    pythons: tuple[str, ...]
    bundled: Path | None
    """Directory of the Python that the bundle brings along; None makes no bundle."""
    releases: str
    wheel: Path | None = None


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Return what a command prints.

    Raises:
        CheckError: it failed; the message has its last lines.
    """
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if done.returncode:
        raise CheckError(
            f"{' '.join(map(str, command))}: "
            + " / ".join((done.stderr or done.stdout).split("\n")[-4:])
        )
    return done.stdout


def version() -> str:
    """Return the version of the package."""
    found = re.search(
        r'__version__ = "([^"]+)"', (ROOT / "tui_agent" / "version.py").read_text(encoding="utf-8")
    )
    if found is None:
        raise CheckError("tui_agent/version.py has no __version__")
    return found[1]


def check_versions(_release: Release) -> str:
    """Compare the versions of package, project file and changelog."""
    expected = version()
    if f'version = "{expected}"' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8"):
        raise CheckError(f"pyproject.toml has another version than {expected}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    if newest is None or newest[1] != expected:
        raise CheckError(f"CHANGELOG.md does not begin with a section for {expected}")
    return expected


def check_tree(_release: Release) -> str:
    """Look for changes that are not committed, and for a manual page that is out of date."""
    if changed := run("git", "status", "--porcelain").strip():
        raise CheckError(f"not committed: {changed.splitlines()[0].strip()} …")
    run(sys.executable, "scripts/man_page.py", "--check")
    run(sys.executable, "scripts/reference.py", "--check")
    return run("git", "rev-parse", "--short", "HEAD").strip()


def check_locks(_release: Release) -> str:
    """Look for anything in the lock files but pinned packages with hashes."""
    pinned = 0
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        if "://" in text:
            raise CheckError(f"{name} names a host")
        rows = [row for row in text.splitlines() if row[:1].isalnum()]
        if bare := [row for row in rows if "==" not in row]:
            raise CheckError(f"{name} does not pin {bare[0]}")
        pinned = max(pinned, len(rows))
    return f"{pinned} packages"


def build(release: Release) -> str:
    """Build the source archive, and the wheel from that, as an installer would."""
    tools = release.scratch / "build"
    run(sys.executable, "-m", "venv", tools)
    run(tools / "bin" / "pip", "install", "--quiet", "build")
    out = release.scratch / DIST
    run(tools / "bin" / "python", "-m", "build", "--outdir", out, ROOT)
    (release.wheel,) = out.glob("*.whl")
    return f"{release.wheel.name}, {release.wheel.stat().st_size // 1000} kB"


def check_contents(release: Release) -> str:
    """Look for what is missing in the archives, and for what has no place in them."""
    assert release.wheel is not None
    with zipfile.ZipFile(release.wheel) as archive:
        names = archive.namelist()
    needed = [f"tui_agent/_data/prompts/{path.name}" for path in (ROOT / "prompts").glob("*.md")]
    needed += [f"tui_agent/_data/styles/{path.name}" for path in (ROOT / "styles").glob("*.tcss")]
    if missing := [name for name in [*needed, "tui_agent/py.typed"] if name not in names]:
        raise CheckError(f"the wheel lacks {missing[0]}")
    if not any(name.endswith("share/man/man1/tui-agent.1") for name in names):
        raise CheckError("the wheel lacks the manual page")
    if foreign := [
        name for name in names if not name.startswith(("tui_agent/", f"tui_agent-{version()}."))
    ]:
        raise CheckError(f"the wheel holds {foreign[0]}")
    if release.wheel.stat().st_size > MAX_WHEEL_BYTES:
        raise CheckError(f"the wheel is larger than {MAX_WHEEL_BYTES // 1000} kB")
    (source,) = release.wheel.parent.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        packed = {
            member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()
        }
    if absent := {"README.md", "Makefile", "requirements.lock", "tests/conftest.py"} - packed:
        raise CheckError(f"the source archive lacks {min(absent)}")
    return f"{len(names)} files in the wheel, {len(packed)} in the source archive"


def pythons(release: Release) -> Iterator[tuple[str, str]]:
    """Yield the interpreters there are, as version and path."""
    for wanted in release.pythons:
        path = shutil.which(f"python{wanted}")
        if (
            path is None
            or subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode
        ):
            continue
        yield wanted, path


def smoke(command: Path, scratch: Path) -> None:
    """Run the installed command as a newcomer would, with a home of its own.

    Raises:
        CheckError: one of the runs fails or says something else.
    """
    home = scratch / f"home-{abs(hash(command))}"
    home.mkdir(exist_ok=True)
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TUI_AGENT_", "XDG_"))
    }
    env |= {"HOME": str(home)}
    for arguments, expected in SMOKE:
        if expected not in (said := run(command, *arguments, cwd=home, env=env)):
            raise CheckError(f"{' '.join(arguments)} printed {said[:80]!r}")


def check_installs(release: Release) -> str:
    """Install the wheel with pip on each Python, its extras too, and with uv and pipx on the newest; run it."""
    assert release.wheel is not None
    done: list[str] = []
    newest = ""
    for name, python in pythons(release):
        place = release.scratch / f"pip-{name}"
        run(python, "-m", "venv", place)
        run(place / "bin" / "pip", "install", "--quiet", release.wheel)
        smoke(place / "bin" / "tui-agent", release.scratch)
        run(place / "bin" / "pip", "install", "--quiet", f"{release.wheel}[litellm]")
        try:
            try_documents(place / "bin" / "python", release.scratch / f"documents-{name}")
        except SmokeError as error:
            raise CheckError(str(error)) from None
        done.append(f"pip {name}")
        newest = python
    if not done:
        raise CheckError(f"none of Python {', '.join(release.pythons)} is here")
    tools = release.scratch / "tools"
    run(newest, "-m", "venv", tools)
    run(tools / "bin" / "pip", "install", "--quiet", "uv", "pipx")
    for name, command in (
        ("uv tool", (tools / "bin" / "uv", "tool", "install", "--python", newest, release.wheel)),
        ("pipx", (tools / "bin" / "pipx", "install", "--python", newest, release.wheel)),
    ):
        place = release.scratch / name.replace(" ", "-")
        scratch = {
            "UV_TOOL_DIR": place / "tools", "UV_TOOL_BIN_DIR": place / "bin",
            "PIPX_HOME": place / "home", "PIPX_BIN_DIR": place / "bin", "PIPX_MAN_DIR": place / "man",
        }  # fmt: skip
        run(*command, env=dict(os.environ) | {key: str(value) for key, value in scratch.items()})
        smoke(place / "bin" / "tui-agent", release.scratch)
        done.append(name)
    return ", ".join(done)


def check_bundle(release: Release) -> str:
    """Make the bundle, install it into an empty directory, run it, and remove it."""
    assert release.wheel is not None
    if release.bundled is None:
        return "none: no --bundle PYTHON"
    try:
        bundle = make_bundle(
            release.bundled, release.wheel, release.scratch / "bundle", release.releases
        )
    except BundleError as error:
        raise CheckError(str(error)) from None
    prefix = release.scratch / "prefix"
    run("sh", bundle, "--prefix", prefix)
    size = int(run("du", "-sk", prefix).split()[0]) // 1000
    smoke(prefix / "bin" / "tui-agent", release.scratch)
    run("sh", prefix / "lib" / "tui-agent" / "installer.sh", "--remove")
    if prefix.exists():
        raise CheckError(f"removing it left {next(prefix.rglob('*'), prefix)}")
    for made in (bundle, bundle.with_suffix(".sh.sha256")):
        shutil.move(made, release.wheel.parent)
    return f"{bundle.name}, {(release.wheel.parent / bundle.name).stat().st_size // 1_000_000} MB, installed {size} MB"


CHECKS: tuple[tuple[str, Callable[[Release], str]], ...] = (
    ("versions", check_versions),
    ("working tree", check_tree),
    ("lock files", check_locks),
    ("build", build),
    ("contents", check_contents),
    ("installations", check_installs),
    ("bundle", check_bundle),
)


def main() -> int:
    """Go through the checks; returns 0 when a release can be made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only check; nothing is ever uploaded here"
    )
    parser.add_argument(
        "--python", action="append", metavar="VERSION", help="only these, such as 3.12"
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="CHECK", help="leave a check out"
    )
    parser.add_argument(
        "--bundle", type=Path, metavar="PYTHON", help="directory of a Python to make a bundle with"
    )
    parser.add_argument(
        "--releases",
        default="",
        metavar="URL",
        help="page of releases, where a bundle updates from",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep what was built in this directory"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-agent-release-") as scratch:
        release = Release(
            Path(scratch),
            tuple(arguments.python or PYTHONS),
            bundled=arguments.bundle,
            releases=arguments.releases,
        )
        for name, check in CHECKS:
            if name in arguments.skip:
                print(f"  –  {name}: skipped")
                continue
            try:
                print(f"  ✓  {name}: {check(release)}", flush=True)
            except CheckError as error:
                print(f"  ✗  {name}: {error}", file=sys.stderr)
                return 1
        if arguments.out is not None:
            shutil.copytree(release.scratch / DIST, arguments.out, dirs_exist_ok=True)
    if not arguments.dry_run:
        print(f"Ready. Tag it v{version()}, push the tag, and its workflow publishes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
