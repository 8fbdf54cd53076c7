"""A project for judging commands in: sources, secrets, and links that lead out of it."""

import re
import subprocess
from pathlib import Path


def make_project(root: Path) -> Path:
    """Make it below ``root`` and return its directory."""
    project = root / "project"
    for name in ("src", "tests", "keys", "docs", ".git", "scripts", "web"):
        (project / name).mkdir(parents=True, exist_ok=True)
    for name in ("README.md", "src/app.py", "src/main.c", "tests/test_app.py", "docs/guide.md", "package.json",
                 "pyproject.toml", "Makefile", "scripts/run.sh", "web/index.html"):  # fmt: skip
        (project / name).write_text("text\n")
    for name in (".env", "keys/server.pem"):
        (project / name).write_text("KEY=value\n")
    (project / ".git").rmdir()
    for arguments in (("init", "-q"), ("add", "README.md", "src", "tests", "docs")):
        subprocess.run(["git", *arguments], cwd=project, check=True, stdin=subprocess.DEVNULL)
    identity = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "maintenance.auto=false",
    )
    subprocess.run(
        ["git", *identity, "commit", "-q", "-m", "Begin"],
        cwd=project,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    (root / "outside.txt").write_text("outside\n")
    (root / "elsewhere").mkdir(exist_ok=True)
    (root / "elsewhere" / "passwd").write_text("x\n")
    for link, target in (
        ("link-out", root / "elsewhere"),
        ("link-file", root / "outside.txt"),
        ("link-env", project / ".env"),
    ):
        if not (project / link).is_symlink():
            (project / link).symlink_to(target)
    return project


def blocks(text: str) -> list[str]:
    """Return the commands of a file whose blocks are separated by lines that begin with ``%%``."""
    found = re.split(r"^%%.*(?:\n|\Z)", text, flags=re.MULTILINE)[1:]
    return [block.removesuffix("\n") for block in found if block.strip()]
