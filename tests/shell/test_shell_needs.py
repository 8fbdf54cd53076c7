"""What commands are taken apart into, and what "always" offers for each."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bypass_project import make_project
from tests.support.thoroughness import examples
from tui_agent.permission import Permission
from tui_agent.shell.needs import HARMLESS_DEVICES, command_needs
from tui_agent.shell.reader import MAX_CHARS, read_script


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("shell"))


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("git commit -m x", "git commit *"),
        ("git commit -m \"$(cat <<'EOF'\nfix: it\n\nwith a body\nEOF\n)\"", "git commit *"),
        ("npm run test", "npm run test"),
        ("npm run test -- --watch", "npm run test *"),
        ("make test SHELL=/bin/x", "make test SHELL=/bin/x"),
        ("pytest tests/x", "pytest *"),
        ("timeout 60 pytest tests/x", "pytest *"),
        ("NO_COLOR=1 pytest tests/x", "pytest *"),
        ("FOO=1 pytest tests/x", "FOO=1 pytest tests/x"),
        ("uv run pytest tests/x", "uv run pytest *"),
        ("uv run python -c 'x'", "uv run python -c x"),
        ("npx eslint src", "npx eslint *"),
        ("python3 -m pytest -x", "python3 -m pytest *"),
        ("python3 scripts/run.py --all", "python3 scripts/run.py *"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ("git stash push -m x", "git stash push *"),
        ("git -C src commit", "git -C src commit"),
        ("rm *.tmp", "rm [*].tmp"),
        ("curl -s http://localhost/x?a=1", "curl -s http://localhost/x[?]a=1"),
        ("./scripts/run.sh --x", "./scripts/run.sh *"),
        ("$X", ""),
        ("python3 - <<'EOF'\nprint(1)\nEOF", "python3 <<'EOF'\nprint(1)\nEOF"),
    ],
)
def test_what_always_offers(command: str, offered: str, project: Path) -> None:
    needs = command_needs(command, project, project)
    asked = [need for need in needs if need.permission is Permission.BASH and not need.harmless]
    assert [need.always for need in asked] == [offered]


def test_every_simple_command_is_judged_on_its_own(project: Path) -> None:
    needs = command_needs("pwd && (make a | tee out.txt) & npm test", project, project)
    assert [(need.permission.value, need.pattern, need.harmless) for need in needs] == [
        ("bash", "pwd", True),
        ("bash", "make a", False),
        ("bash", "tee out.txt", False),
        ("bash", "npm test", False),
    ]


def test_what_only_reads_is_no_longer_harmless_when_it_is_written_to_a_file(project: Path) -> None:
    needs = command_needs("echo x > log.txt", project, project)
    assert [(need.permission.value, need.pattern, need.harmless) for need in needs] == [
        ("edit", "log.txt", False),
        ("bash", "echo x", False),
    ]
    assert needs[0].detail == "> log.txt"


def test_a_file_to_write_whose_name_is_not_known_is_named_as_it_was_typed(project: Path) -> None:
    needs = command_needs('echo x >> "$DIR"/log', project, project)
    assert [need.unclear for need in needs if need.unclear] == [
        'the target of >> "$DIR"/log is not known before the command runs'
    ]


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("cat ../outside.txt", ".."),
        ("make -f ../Makefile", ".."),
        ("cp src/app.py link-out/x", "../elsewhere"),
        ("cd src && cat ../../outside.txt", ".."),
        ("pytest --basetemp=../elsewhere", "../elsewhere"),
    ],
)
def test_places_outside_need_their_own_permission(command: str, place: str, project: Path) -> None:
    outside = [
        n.pattern
        for n in command_needs(command, project, project)
        if n.permission is Permission.EXTERNAL_DIRECTORY
    ]
    assert outside == [str((project / place).resolve())]


@pytest.mark.parametrize(
    "move",
    [
        "cd -- ../elsewhere;",
        "cd -P ../elsewhere &&",
        "pushd ../elsewhere &&",
        "command cd ../elsewhere;",
        "builtin cd -L -- ../elsewhere &&",
        "(cd src && ls) && cd ../elsewhere &&",
        "cd src | ls; cd ../elsewhere;",
        "cd src & cd ../elsewhere;",
        "{ cd src; } | cat && cd ../elsewhere &&",
        "cd missing; cd ../elsewhere;",
    ],
)
def test_a_file_is_written_where_the_line_moved_to(move: str, project: Path) -> None:
    needs = command_needs(f"{move} echo x > f", project, project)

    written = {need.pattern for need in needs if need.permission is Permission.EDIT}
    assert str(project.parent / "elsewhere" / "f") in written


def test_a_bare_cd_moves_to_the_home_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project.parent / "elsewhere"
    monkeypatch.setenv("HOME", str(home))
    needs = command_needs("cd && cat notes.txt", project, project)
    outside = {need.pattern for need in needs if need.permission is Permission.EXTERNAL_DIRECTORY}
    assert outside == {str(home.resolve())}


@pytest.mark.parametrize("back", ["cd ..", "cd -", "popd"])
def test_a_line_that_moves_back_is_looked_at_in_each_of_its_directories(
    back: str, project: Path
) -> None:
    needs = command_needs(f"cd src && {back} && echo x > f", project, project)
    assert {"f", "src/f"} <= {need.pattern for need in needs}


def test_moving_within_the_project_is_followed(project: Path) -> None:
    needs = command_needs("cd src && ls .. && cat ../README.md", project, project)
    assert all(need.harmless for need in needs)
    before = command_needs("ls .. && cd src", project, project)
    assert Permission.EXTERNAL_DIRECTORY in {need.permission for need in before}


def test_a_lone_dash_before_a_heredoc_is_no_word_of_its_own(project: Path) -> None:
    (need,) = command_needs("git commit -F - <<'EOF'\nx\nEOF", project, project)
    assert need.always == "git commit *"
    assert not need.unclear


def test_what_a_declaration_sets_holds_for_what_comes_after_it(project: Path) -> None:
    needs = command_needs("export PATH=. && ls", project, project)
    assert [need.unclear for need in needs if need.unclear] == ["PATH may change what runs"]


def test_a_very_long_or_deep_command_is_asked_about(project: Path) -> None:
    for command in (
        "ls " + "a" * MAX_CHARS,
        "$(" * 3000 + ")" * 3000,
        "(" * 1500 + "ls" + ")" * 1500,
    ):
        assert any(need.unclear for need in command_needs(command, project, project))


PIECES = st.sampled_from(
    [*" \n\t;&|<>()$`'\"\\{}[]*?!#~=+-", "ls", "cat", "git ", "log", "rm", "<<EOF\n", "\nEOF\n", "$(", "${x}", "$((1))",
     "&&", "||", "<(", "if ", "then ", "fi", "for x in ", "do ", "done", "case ", "esac", "'a'", '"b"', "é", "\u200b",
     "/etc", "../", ".env", "sh -c ", "xargs ", "find . -exec ", "eval ", "A=1 ", "sudo ", "\\;", "-o ", "2>&1 "]
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=60))
def test_no_text_raises(project_text: str) -> None:
    assert isinstance(
        command_needs(project_text, Path("/nowhere/project"), Path("/nowhere/project")), tuple
    )


@pytest.mark.parametrize("path", [f"/{'n' * 300}/x", "closed/x", "~root/x", "circle/x"])
def test_a_path_that_may_not_be_looked_at_is_a_place_like_any(tmp_path: Path, path: str) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "circle").symlink_to("circle")
    assert command_needs(f"cat {path} > /dev/null | tee {path}", tmp_path, tmp_path)


@pytest.mark.parametrize("home", ["$HOME", "${HOME}"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("command", ["echo hi > {}", "touch {}", "cat {}"])
def test_a_path_of_the_home_directory_is_a_place_outside_however_it_is_written(
    tmp_path: Path, home: str, quote: str, command: str
) -> None:
    def places(path: str) -> set[str]:
        needs = command_needs(command.format(path), tmp_path, tmp_path)
        outside = Permission.EXTERNAL_DIRECTORY
        return {need.pattern for need in needs if need.permission is outside}

    assert places(f"{quote}{home}/notes/x.txt{quote}") == places("~/notes/x.txt")


@pytest.mark.parametrize("word", ["~/x", "$HOME/x"])
def test_the_home_directorys_path_is_not_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("HOME", f"{tmp_path}/home/of=/me")
    needs = command_needs(f"cat {word}", tmp_path / "project", tmp_path / "project")
    outside = Permission.EXTERNAL_DIRECTORY
    places = {need.pattern for need in needs if need.permission is outside}
    assert places == {f"{tmp_path}/home/of=/me"}


PREFIXES = st.sampled_from(
    [
        "{}", "ls; {}", "ls && {}", "ls | {}", "echo $({})", "echo `{}`", "( {} )", "{{ {}; }}", "if ls; then {}; fi",
        "! {}", "for x in a; do {}; done", "while {}; do ls; done", "timeout 5 {}", "nice {}", "cat <({})",
        "sh -c '{}'", "eval '{}'", "find . -exec {} \\;", "time {}", "env A=1 {}", "command {}", "xargs {}",
        'echo "$({})"',
        "f() {{ {}; }}", "ls\n{}", "ls &\n{}", "case a in a) {};; esac", "LANG=C {}", "cat <<EOF\n$({})\nEOF",
        "trap '{}' EXIT", "ls # c\n{}", "{} > /dev/null",
    ]
)  # fmt: skip
WORDS = st.from_regex(r"[a-z]{1,3}zq[a-z0-9]{0,3}", fullmatch=True)


@settings(max_examples=examples(300), deadline=None)
@given(outer=PREFIXES, inner=PREFIXES, program=WORDS)
def test_a_program_nobody_listed_is_never_free(outer: str, inner: str, program: str) -> None:
    quotes = "'" in outer and "'" in inner
    command = outer.format(program) if quotes else outer.format(inner.format(program))
    needs = command_needs(command, Path("/nowhere/project"), Path("/nowhere/project"))
    assert any(not need.harmless and need.permission is Permission.BASH for need in needs)


def test_a_file_whose_content_is_secret_differs_from_one_whose_name_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(
        'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzQ7Lp2x"\n'
    )
    (tmp_path / ".env").write_text("A=1\n")
    needs = command_needs("cat notes.txt .env", tmp_path, tmp_path)
    reads = {need.pattern: need.secret for need in needs if need.permission is Permission.READ}
    assert reads == {"notes.txt": True, ".env": False}


@pytest.mark.parametrize(
    "options",
    ["--git-dir .git", "--work-tree . --git-dir=.git", "--namespace x -c a=b", "--config-env a=B"],
)
def test_a_subcommand_of_git_is_seen_behind_options_with_values(
    options: str, project: Path
) -> None:
    (need,) = (
        need
        for need in command_needs(f"git {options} push origin", project, project)
        if need.permission is Permission.BASH
    )
    assert "git push origin" in need.aliases


@pytest.mark.parametrize("carrier", ["fish -c", "su -c", "systemd-run", "setpriv --no-new-privs"])
def test_a_denied_command_is_seen_behind_the_program_that_runs_it(
    carrier: str, project: Path
) -> None:
    line = f"{carrier} 'git push'" if carrier.endswith("-c") else f"{carrier} git push"
    assert "git push" in command_needs(line, project, project)[0].aliases


@pytest.mark.parametrize(
    ("path", "harmless"),
    [("a.py", True), (".git/config", False), ("deep/.env", False), ("deep/.GIT/x", False)],
)
def test_a_search_below_a_directory_is_harmless_if_nothing_there_may_hold_secrets(
    path: str, harmless: bool, tmp_path: Path
) -> None:
    file = tmp_path / "src" / path
    file.parent.mkdir(parents=True)
    file.write_text("x = 1\n", encoding="utf-8")
    (need,) = command_needs("grep -rn x src", tmp_path, tmp_path)
    assert need.harmless is harmless


def test_every_assignment_of_a_line_is_read() -> None:
    assert [name for name, _ in read_script("A=1 B=2; C=3").assignments] == ["A", "B", "C"]


def test_a_line_that_is_nested_too_deeply_says_so(project: Path) -> None:
    needs = command_needs("$(" * 2_000 + "x" + ")" * 2_000, project, project)
    assert any("nested too deeply" in need.unclear for need in needs)


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("git commit -m 'Load .env'", []),
        ('git commit -am .env --message="See .env" --message .env', []),
        ("git tag v1 -m .env", []),
        ("git commit -m x -- .env", [".env"]),
        ("git commit -F .env", [".env"]),
        ('git commit -m "$(cat .env)"', [".env"]),
        ("cat -m .env", [".env"]),
        ("curl https://host/.env", []),
    ],
)
def test_a_message_and_an_address_name_no_secret_file(
    command: str, reads: list[str], tmp_path: Path
) -> None:
    needs = command_needs(command, tmp_path, tmp_path)
    assert [need.pattern for need in needs if need.permission is Permission.READ] == reads


@pytest.mark.parametrize(
    "line",
    [
        "; ".join(f"cd d{number} && make" for number in range(400)),
        "\n".join(f"(cd d{number}; ls *.txt > out)" for number in range(300)),
        "; ".join(f"cd d{number}" for number in range(6)) + "; rm" + " f" * 2_500,
    ],
    ids=["chain", "lines", "words"],
)
def test_a_line_that_takes_too_long_to_follow_is_unclear(tmp_path: Path, line: str) -> None:
    (need,) = command_needs(line, tmp_path, tmp_path)
    assert "too often" in need.unclear
    assert need.pattern == line


@pytest.mark.parametrize(
    ("written", "value", "is_glob", "shown"),
    [
        ("*.py", "*.py", True, "*.py"),
        ("a?", "a?", True, "a?"),
        ("[ab]", "[ab]", True, "[ab]"),
        ("'two words'", "two words", False, "'two words'"),
        ('"two words"', "two words", False, "'two words'"),
        ('""', "", False, "''"),
        ("'*.py'", "*.py", False, "'*.py'"),
        ('"*.py"', "*.py", False, "'*.py'"),
        (r"\*.py", "*.py", False, "'*.py'"),
        ('"a "*', "a *", True, "a *"),
        ('"$X *"', None, False, '"$X *"'),
        ('"$?  *"', "0  *", False, "'0  *'"),
    ],
)
def test_only_what_is_not_quoted_is_a_glob(
    written: str, value: str | None, shown: str, *, is_glob: bool
) -> None:
    (command,) = read_script(f"echo {written}").commands
    word = command.words[1]
    assert (word.value, word.glob, word.shown) == (value, is_glob, shown)


@pytest.mark.parametrize("word", ["a{b", "{a", "a}", "{a,b}", "{a,'b'}", r"\{x", "a${b}{", "é{"])
def test_a_word_with_a_brace_is_not_understood(word: str) -> None:
    problems = read_script(f"echo {word}").problems
    assert problems == ["it contains a word that can't be parsed"]


@pytest.mark.parametrize(
    "line",
    ["echo x &# c", "(# c\nls)", "ls |# c\ncat", "f(){ ls;}# c", "echo a\\\n# c", "ls \\ # c"],
)
def test_a_comment_that_bash_may_read_otherwise_is_reported(line: str) -> None:
    assert "its comments can't be parsed" in read_script(line).problems


@pytest.mark.parametrize(
    ("line", "fed"),
    [
        ("bash <<< 'rm x'", ["<<< 'rm x'"]),
        ("<<< 'rm x' bash", ["<<< 'rm x'"]),
        ("A=1 bash <<< 'rm x' -s", ["<<< 'rm x'"]),
        ("bash -s <<< 'rm x' > out", ["<<< 'rm x'"]),
        ("bash <<EOF\nrm x\nEOF", ["<<EOF\nrm x\nEOF"]),
        ("ls", [""]),
    ],
)
def test_a_command_is_known_with_what_is_fed_to_it(line: str, fed: list[str]) -> None:
    assert [command.fed for command in read_script(line).commands] == fed


@pytest.mark.parametrize("device", sorted(HARMLESS_DEVICES))
def test_a_harmless_device_is_no_place_outside(device: str, project: Path) -> None:
    needs = command_needs(f"make {device} < {device}", project, project)
    assert {need.permission for need in needs} == {Permission.BASH}


@pytest.mark.parametrize("line", ["sudo $X ''", 'env "$X" ls', 'sh -c "" x', "xargs $(ls)", "nice"])
def test_other_spellings_of_a_command_have_no_words_that_it_has_not(
    line: str, project: Path
) -> None:
    for need in command_needs(line, project, project):
        for alias in need.aliases:
            assert set(re.findall(r"\w+", alias)) <= set(re.findall(r"\w+", line))
