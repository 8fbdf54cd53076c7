"""Makes the bundle: one shell script that holds Python, every package and tui-agent, and installs them for a user.

The Python must run wherever its directory is, as those of `uv python install` do. Packages are those of
requirements.lock, checked by hash. The script for one machine is made on a machine of that kind.
"""

import hashlib
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSTALLER = ROOT / "scripts" / "bundle_installer.sh"
FACTS = "tui-agent-bundle.json"
"""The file by which an installed program knows that it came in a bundle."""
UNUSED = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "pydoc_data", "turtle.py")
"""Modules of the standard library that the program never loads."""
UNUSED_FILES = ("lib/*tcl*", "lib/*tk*", "lib/thread*", "lib/python3*/lib-dynload/_tkinter*")
"""Files of Tk, which the program never loads."""
SYSTEMS = {"Darwin": "macos"}


class BundleError(Exception):
    """The bundle can't be made; the message says why."""


def platform_name() -> str:
    """Return the name of this kind of machine in file names, such as linux-x86_64."""
    system = SYSTEMS.get(platform.system(), platform.system().lower())
    return f"{system}-{platform.machine()}"


def make_bundle(python: Path, wheel: Path, scratch: Path, releases: str = "") -> Path:
    """Write a wheel's bundle and its checksum below ``scratch`` and return its path.

    ``python`` is the directory of a Python, ``releases`` the address of the page of releases.

    Raises:
        BundleError: a step failed; the message has its last lines.
    """
    version = wheel.name.split("-")[1]
    scratch.mkdir()
    tree = scratch / "tree"
    shutil.copytree(python, tree, symlinks=True)
    _install(tree, wheel, scratch / "wheels")
    _remove_unused(tree)
    bundle = scratch / f"tui-agent-{version}-{platform_name()}.sh"
    write_bundle(tree, version, bundle, releases)
    return bundle


def write_bundle(tree: Path, version: str, bundle: Path, releases: str = "") -> None:
    """Pack a directory that has everything, and write the script that installs it, and its checksum."""
    facts = {"platform": platform_name(), "releases": releases}
    (tree / FACTS).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    payload = bundle.with_suffix(".tar.gz")
    _pack(tree, payload)
    bundle.write_bytes(_installer(version, payload) + payload.read_bytes())
    payload.unlink()
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    bundle.with_suffix(".sh.sha256").write_text(f"{digest}  {bundle.name}\n", encoding="utf-8")


def _run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        last = " / ".join((done.stderr or done.stdout).strip().split("\n")[-4:])
        raise BundleError(f"{Path(command[0]).name} {command[1]}: {last}")
    return done.stdout


def _install(tree: Path, wheel: Path, wheels: Path) -> None:
    """Install the wheel and the locked packages that it needs into a copy of a Python."""
    python = tree / "bin" / "python3"
    prefix = _run(python, "-I", "-c", "import ssl, sqlite3, sys; print(sys.prefix)").strip()
    if Path(prefix).resolve() != tree.resolve():
        raise BundleError(f"this Python can't be moved: in {tree} it still looks into {prefix}")
    for marker in tree.glob("lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    pip = (python, "-I", "-m", "pip", "--quiet", "--disable-pip-version-check")
    lock = ROOT / "requirements.lock"
    _run(*pip, "wheel", "--no-deps", "--require-hashes", "-r", lock, "-w", wheels)
    # The lock has the packages of litellm too, which only some users need.
    offline = ("--no-index", "--find-links", wheels, "--no-warn-script-location")
    _run(*pip, "install", *offline, wheel)


def _remove_unused(tree: Path) -> None:
    (library,) = tree.glob("lib/python3*/os.py")
    unwanted = [library.parent / name for name in UNUSED]
    for pattern in (*UNUSED_FILES, "include", "lib/python3*/config-*"):
        unwanted += tree.glob(pattern)
    for unused in unwanted:
        if unused.is_dir():
            shutil.rmtree(unused)
        else:
            unused.unlink(missing_ok=True)
    for program in (tree / "bin").iterdir():
        # Scripts of other packages name the directory that they were installed in.
        if program.name != "tui-agent" and program.read_bytes()[:2] == b"#!":
            program.unlink()
    if platform.system() == "Linux" and shutil.which("strip"):
        _run("strip", tree / "bin" / "rg")
    # Without stamps: nothing compares the times of files that nobody edits.
    compiled = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash")
    _run(tree / "bin" / "python3", *compiled, library.parent)


def _pack(tree: Path, payload: Path) -> None:
    def owned_by_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(payload, "w:gz", compresslevel=9) as archive:
        for path in sorted(tree.iterdir()):
            archive.add(path, path.name, filter=owned_by_nobody)


def _installer(version: str, payload: Path) -> bytes:
    text = INSTALLER.read_text(encoding="utf-8")
    values = {
        "VERSION": version,
        "PLATFORM": platform_name(),
        "SYSTEM": f"{platform.system()}-{platform.machine()}",
        # Two builds of one version have directories of their own.
        "NAME": f"{version}-{hashlib.sha256(payload.read_bytes()).hexdigest()[:8]}",
        "LINES": str(text.count("\n") + 1),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text.encode()
