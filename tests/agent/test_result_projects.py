"""A session's patch, applied to a fresh clone of an odd project, gives the same bytes and modes."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.agent.test_results import git, result_of
from tests.agent.test_rewind import tree

LINES = "seq 1 40 > a"
ROWS = {  # name: what makes the project, what the session runs
    "a new file": ("", "echo x > new"),
    "a new file in new directories": ("", "mkdir -p d/e/f; echo x > d/e/f/new"),
    "a new binary file": ("", r"printf '\000\001\377' > new"),
    "a deleted file": (LINES, "rm a"),
    "a deleted empty file": (": > a", "rm a"),
    "a file that becomes empty": (LINES, ": > a"),
    "text that becomes binary": (LINES, r"printf '\000' >> a"),
    "the executable bit set": (LINES, "chmod 755 a"),
    "the executable bit with new text": (LINES, "chmod 755 a; echo x >> a"),
    "a rename with a change": (LINES, "mv a b; echo x >> b"),
    "a rename to an executable": (LINES, "mv a b; chmod 755 b"),
    "two files that change names": ("seq 30 > a; seq 50 90 > b", "mv a c; mv b a; mv c b"),
    "a rename that only changes case": (LINES, "mv a A"),
    "a file that becomes a directory": (LINES, "rm a; mkdir a; echo x > a/b"),
    "CRLF lines": (r"printf 'a\r\nb\r\n' > a", r"printf 'c\r\n' >> a"),
    "CRLF that becomes LF": (r"printf 'a\r\nb\r\n' > a", r"printf 'a\nb\n' > a"),
    "unicode names": ("mkdir ünï; echo x > ünï/日本.txt", "echo y >> ünï/日本.txt; echo z > 'ünï/é – ☃'"),
    "composed and decomposed names": (r"""echo x > $'e\u0301'""", r"""echo y > $'\u00e9'; echo z >> $'e\u0301'"""),
    "quotes, tabs and backslashes": (r"""echo x > $'a "b"\t\\c'""", r"""echo y >> $'a "b"\t\\c'; echo z > "'q'" """),
    "a newline in a name": (r"""echo x > $'a\nb'""", r"""echo y >> $'a\nb'; echo z > $'c\nd'"""),
    "names like options": ("echo x > ./-rf; echo x > '*'", "echo y >> ./-rf; echo z > ':(x)'"),
    "lines like those of a patch": (
        "printf 'diff --git a/x b/x\n--- a\n+++ b\n' > a",
        "printf -- '-- \n@@ -1 +1 @@\n' >> a",
    ),
    "ignored files stay out": ("echo out/ > .gitignore", "mkdir out; echo x > out/a; echo y > b; rm -r out"),
    "attributes": ("printf 'a eol=lf\n*.bin binary\n' > .gitattributes; echo x > a", "echo y > a; echo z > b.bin"),
    "a change that is taken back": (LINES, "cp a /tmp/$$; echo x > a; cp /tmp/$$ a; rm /tmp/$$; echo y > b"),
    "many files": ("for n in {1..300}; do echo $n > f$n; done", "for n in {1..300}; do echo x >> f$n; done"),
}  # fmt: skip


def repository(root: Path, script: str) -> Path:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    bash_in(root, f"echo kept > kept; {script}")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def bash_in(root: Path, script: str) -> None:
    subprocess.run(["bash", "-c", f"set -e; {script}"], cwd=root, check=True)


async def applied(tmp_path: Path, project: Path, command: str, remarks: str = "") -> Path:
    """Return a fresh clone of a project with the patch of a session in which a command ran."""
    git(tmp_path, "clone", "-q", "--no-local", "project", "clone")
    result = await result_of(tmp_path, project, f"bash -c {shlex.quote(command)}")
    assert result.remarks() == remarks
    git(tmp_path / "clone", "apply", "--index", "-", text=result.patch())
    return tmp_path / "clone"


@pytest.mark.parametrize("name", ROWS)
async def test_a_clone_gets_the_same_bytes(tmp_path: Path, name: str) -> None:
    before, command = ROWS[name]
    project = repository(tmp_path / "project", before)
    assert tree(await applied(tmp_path, project, command)) == tree(project)


async def test_files_of_a_nested_repository_are_named_and_left_out(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", "")
    repository(project / "inner", "")
    command = "echo x >> inner/kept; echo y > inner/new; echo z >> kept; git init -q other; echo x > other/new"
    names = ("inner/kept", "inner"), ("inner/new", "inner"), ("other/new", "other")
    told = ", ".join(f"{path} (of the repository {repository})" for path, repository in names)
    clone = await applied(tmp_path, project, command, f" Not in it: {told}.")
    assert set(tree(clone)) == {"kept"}
    assert (clone / "kept").read_text() == "kept\nz\n"
