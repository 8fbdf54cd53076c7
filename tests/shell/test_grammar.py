"""What runs unasked without a sandbox: a closed grammar. What has a hole in a list of bad things has none here."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bypass_project import make_project
from tui_agent.shell.grammar import TABLE, is_free, read_line


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("grammar"))
    (project / "src" / "up").symlink_to("../..")
    return project


@pytest.mark.parametrize(
    "command",
    [
        "ls -la src",
        "cat README.md | head -20",
        "head -n5 README.md && tail -n +2 README.md; wc -l README.md",
        "sed -n '1,80p' src/app.py",
        "grep -rn --include='*.py' \"def main\" src | sort | uniq -c | sort -rn",
        "cd src && ls .. && cat ../README.md",
        "cat nothing.txt 2>/dev/null",
        "pwd; whoami; uname -a; date +%Y-%m-%d; nproc",
        "echo -n one 'two three' \"four\"",
        "ls\ncat README.md\n",
        "cut -d: -f1,3 README.md | tr a-z A-Z",
        "nl -ba README.md | sort -t ',' -k 2nr | head -n -5",
        "grep -rn -A 3 def src; grep -e def -e class src/app.py; rg -tpy -A 2 def src; grep -rn src -e def",
        "cut -dx -f2 README.md | sort -tx -k2,2nr; stat -c%s README.md",
    ],
)
def test_a_line_of_the_grammar_is_free(project: Path, command: str) -> None:
    assert is_free(command, project, project)


@pytest.mark.parametrize(
    "command",
    [
        # Programs that run what they are fed, or a file that is called like a switch.
        "echo 'open(1)' | python3 -v", "python3 -v < src/app.py", "bash version", "sh version", "node version",
        "make version", "printf '.shell id' | sqlite3 version", "pytest -v", "ninja -v", "nox -v", "flake8 --version",
        "rake version", "gradle version", "tox -v", "curl version", "tmux -v", "python3 --version", "cargo --version",
        # A dash is an operand to some programs.
        "cat README.md | uniq - FILE", "uniq - README.md", "uniq README.md src/app.py", "xxd - FILE",
        "xxd README.md FILE",
        "cat -", "head -n1 -", "sort -", "diff - README.md", "grep x -",
        # Subcommands that look harmless.
        "tmux ls \\; run-shell id", "tmux ls ';' send-keys x", "tmux ls -F '#(id)'", "pip freeze -r /etc/shadow",
        "pnpm ls", "npm ls", "kubectl version --kubeconfig=./evil", "pip list -o", "gem list -r",
        # Patterns mean to a shell what they mean to nobody else.
        "cat .[^x]nv", "cat .[[:alpha:]]nv", "cat .[[=e=]]nv", "head .[^.]*", "ls *", "cat src/?pp.py",
        "cat {README.md,.env}",
        # Switches that undo others, that follow a value, and long ones that are shortened.
        "tree -L2o README.md", "tree -Lo README.md", "sort -k1o README.md",
        # What looks like the pattern is a file, or the place that is searched is another.
        "grep .env -e KEY", "grep keys/server.pem -e5", "grep -r keys -e KEY", "rg -A 2 KEY", "rg -ne KEY",
        "rg -tage KEY",
        "rg -t py -g '*' X src", "rg --type-add 'py:*' -t py X src", "rg -g '*' X", "rg --iglob='*' X src",
        "rg --pre x X src",
        "grep -rn --include='*.py' --inclu='.*' X .", "grep -rn X .", "grep -R X src", "grep -f README.md src/app.py",
        "sort --outp=src/app.py README.md", "sort -o README.md README.md", "sort -T . README.md", "ls --recursive",
        "wc --files0-from=README.md", "du --files0-from=x", "date -s 2020-01-01", "date 0101", "file -f README.md",
        "file -C -m x", "tail -f README.md", "head --bytes=3 .env", "tree -o README.md", "sed -i s/a/b/ README.md",
        "sed 's/a/b/e' README.md", "sed -n '1w x' README.md", "sed -n '1e' README.md", "jq env package.json",
        "jq '$ENV' package.json", "jq -f README.md package.json", "jq 'input_filename' package.json",
        # find runs, writes and follows.
        "find . -name '*.py'",
        "find . -exec git status \\;", "find . -type l -exec cat {} +", "find . -maxdepth 0 -exec git status ';'",
        "find -H src/up -type f", "find -L .", "find . -delete", "find . -fprint README.md", "find . -newer .env -ls",
        "find . -name '*.py' -okdir id ';'", "find /etc", "find ..", "find src/up",
        # Links and places outside.
        "diff -rN docs src", "cat link-file", "cat link-env", "cat src/up/outside.txt", "ls src/up",
        "cat ../outside.txt",
        "ls /", "cat /etc/passwd", "cat ~/.netrc", "cd .. && ls", "cd src/up && ls",
        "cd link-out && cat passwd", "du -L .",
        "cat /dev/zero", "tail /dev/zero", "sort /dev/urandom", "cat //etc/passwd",
        # Secrets and the repository's own settings.
        "cat .env", "cat ./.env", "cat src/../.env", "cat .ENV", "head keys/server.pem", "grep -r KEY keys", "rg KEY .",
        "cat .git/config", "cat .GIT/config", "ls .git", "env", "printenv", "export", "export -p", "declare -x", "set",
        "echo $HOME", 'echo "$PATH"', "cat <<< x",
        # Git starts what a repository's settings name.
        "git status", "git show HEAD:.env", "git config --list", "git diff --ext-diff", "git log -p | head",
        # Everything a shell does beyond words, pipes and ends.
        "ls $(id)", "ls `id`", "ls > out", "ls >> README.md", "ls 2> err", "ls &> out", "ls &", "(ls)",
        "{ ls; }", "! ls",
        "A=1 ls", "PATH=. ls", "ls; PATH=.", "time ls", "if ls; then ls; fi", "for x in a; do ls; done",
        "ls # x", "l\\s",
        "ls <README.md", "cat <<EOF\nx\nEOF", "ls 2>&1 >/dev/null 3>x", "ls\r", "ls\x00", "ls caf\u00e9", "[ -f x ]",
        "cd src || ls", "cd src; ls", "ls | cd src", "./ls", "bin/ls", "/bin/ls", "command ls", "command -p ls",
        "ls --color=auto",
    ],
)  # fmt: skip
def test_everything_else_asks(project: Path, command: str) -> None:
    assert not is_free(command, project, project)


def test_a_program_that_the_project_brings_along_is_not_the_one_meant(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "bin").mkdir(exist_ok=True)
    (project / "bin" / "ls").write_text("#!/bin/sh\n")
    (project / "bin" / "ls").chmod(0o755)
    assert is_free("ls", project, project)
    for place in (str(project / "bin"), "bin", "."):
        monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
        monkeypatch.chdir(project if place == "bin" else project / "bin")
        assert not is_free("ls", project, project), place


@pytest.mark.parametrize(
    "planted",
    [
        lambda src: (src / ".env.local").write_text("KEY=1\n"),
        lambda src: (src / "local.json").write_text('{"password": "hunter2hunter2"}'),
        lambda src: (
            (src / "inner").mkdir() or (src / "inner" / ".rgignore").symlink_to("/dev/zero")
        ),
        lambda src: (src / ".ignore").symlink_to("/dev/zero"),
        lambda src: (
            os.truncate(src / "main.c", 0) or (src / "rows.csv").write_bytes(b"1,2\n" * 1_100_000)
        ),
    ],
    ids=["by name", "by content", "endless below", "endless", "too much"],
)
def test_a_search_is_free_only_where_no_secret_lies_below(
    tmp_path: Path, planted: Callable[[Path], object]
) -> None:
    project = make_project(tmp_path)
    for command in ("grep -rn text src", "rg text src", "cd src && rg text"):
        assert is_free(command, project, project), command
    planted(project / "src")
    for command in ("grep -rn text src", "rg text src", "cd src && rg text"):
        assert not is_free(command, project, project), command


def test_a_line_is_read_as_a_shell_reads_it() -> None:
    assert read_line("a 'b c'\"d\\.e\"f && g 2>/dev/null|h;\ni") == [
        (("a", "b cd\\.ef"), "&&"), (("g",), "|"), (("h",), ";"), (("i",), ""),
    ]  # fmt: skip
    assert read_line('echo "a$b"') is None


def test_the_table_is_short() -> None:
    assert len(TABLE) <= 40
