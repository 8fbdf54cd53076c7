"""A session's patch, applied to a fresh clone of an odd project, gives the same bytes and modes."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.agent.test_results import git, result_of
from tests.agent.test_rewind import tree
from tests.support.thoroughness import NIGHTLY

LINES = "seq 1 40 > a"
ROWS = {  # name: what makes the project, what the session runs
    "a new file": ("", "echo x > new"),
    "a new empty file": ("", ": > new"),
    "a new file without a last newline": ("", "printf x > new"),
    "a new file in new directories": ("", "mkdir -p d/e/f; echo x > d/e/f/new"),
    "a new executable": ("", "echo x > run; chmod 755 run"),
    "a new binary file": ("", r"printf '\000\001\377' > new"),
    "a new large binary file": ("", "head -c 300000 /dev/zero > new; echo x >> new"),
    "a deleted file": (LINES, "rm a"),
    "a deleted empty file": (": > a", "rm a"),
    "a deleted binary file": (r"printf '\000\001' > a", "rm a"),
    "a deleted executable": (f"{LINES}; chmod 755 a", "rm a"),
    "a file that becomes empty": (LINES, ": > a"),
    "an empty file that is filled": (": > a", "echo x > a"),
    "text that becomes binary": (LINES, r"printf '\000' >> a"),
    "binary that becomes text": (r"printf '\000\001' > a", "echo x > a"),
    "one byte of a binary file": ("head -c 5000 /dev/zero > a", "printf y >> a"),
    "the executable bit set": (LINES, "chmod 755 a"),
    "the executable bit taken": (f"{LINES}; chmod 755 a", "chmod 644 a"),
    "the executable bit with new text": (LINES, "chmod 755 a; echo x >> a"),
    "a rename": (LINES, "mv a b"),
    "a rename with a change": (LINES, "mv a b; echo x >> b"),
    "a rename to an executable": (LINES, "mv a b; chmod 755 b"),
    "a renamed directory": ("mkdir d; seq 9 > d/a; seq 8 > d/b", "mv d e"),
    "two files that change names": ("seq 30 > a; seq 50 90 > b", "mv a c; mv b a; mv c b"),
    "a rename that only changes case": (LINES, "mv a A"),
    "a copy": (LINES, "cp a b"),
    "a file that becomes a directory": (LINES, "rm a; mkdir a; echo x > a/b"),
    "a directory that becomes a file": ("mkdir d; echo x > d/a", "rm -r d; echo x > d"),
    "CRLF lines": (r"printf 'a\r\nb\r\n' > a", r"printf 'c\r\n' >> a"),
    "CRLF that becomes LF": (r"printf 'a\r\nb\r\n' > a", r"printf 'a\nb\n' > a"),
    "mixed line ends and lone CR": (r"printf 'a\r\nb\nc\rd' > a", r"printf 'e\r' >> a"),
    "a byte order mark": (r"printf '\357\273\277x\n' > a", "echo y >> a"),
    "UTF-16": (r"printf '\377\376x\000\n\000' > a", r"printf 'y\000\n\000' >> a"),
    "Latin-1": (r"printf 'gr\366\337e\n' > a", r"printf '\374' >> a"),
    "unicode names": ("mkdir ünï; echo x > ünï/日本.txt", "echo y >> ünï/日本.txt; echo z > 'ünï/é – ☃'"),
    "composed and decomposed names": (r"""echo x > $'e\u0301'""", r"""echo y > $'\u00e9'; echo z >> $'e\u0301'"""),
    "quotes, tabs and backslashes": (r"""echo x > $'a "b"\t\\c'""", r"""echo y >> $'a "b"\t\\c'; echo z > "'q'" """),
    "a newline in a name": (r"""echo x > $'a\nb'""", r"""echo y >> $'a\nb'; echo z > $'c\nd'"""),
    "names like options": ("echo x > ./-rf; echo x > '*'", "echo y >> ./-rf; echo z > ':(x)'"),
    "a very long name": ("echo x > $(printf 'n%.0s' {1..250})", "echo y >> $(printf 'n%.0s' {1..250})"),
    "lines like those of a patch": (
        "printf 'diff --git a/x b/x\n--- a\n+++ b\n' > a",
        "printf -- '-- \n@@ -1 +1 @@\n' >> a",
    ),
    "a very long line": ("head -c 200000 /dev/zero | tr '\\0' x > a", "echo y >> a"),
    "ignored files stay out": ("echo out/ > .gitignore", "mkdir out; echo x > out/a; echo y > b; rm -r out"),
    "attributes": ("printf 'a eol=lf\n*.bin binary\n' > .gitattributes; echo x > a", "echo y > a; echo z > b.bin"),
    "a dot file and a hidden directory": ("", "echo x > .hidden; mkdir .d; echo y > .d/a"),
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


@pytest.mark.skipif(not NIGHTLY, reason="takes minutes: make nightly")
async def test_ten_thousand_files(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", "mkdir d; for n in {1..10000}; do echo $n > d/$n; done")
    command = "for n in {1..10000}; do echo x >> d/$n; done; chmod 755 d/7; mv d/8 e"
    assert tree(await applied(tmp_path, project, command)) == tree(project)
