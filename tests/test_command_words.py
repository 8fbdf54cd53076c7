"""Words of a shell command that may be names of files: whatever a shell would hand to a program."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.command_words import names_in

_NAMES = st.text("ab .-/$\\'\"{},~=", min_size=1, max_size=12)
_PLAIN = st.text("abc", min_size=1, max_size=3)


def _quoted(name: str, how: str) -> str:
    if how == "single":
        return "'" + name.replace("'", "'\\''") + "'"
    if how == "double":
        special = '"\\$`'
        return '"' + "".join(f"\\{char}" if char in special else char for char in name) + '"'
    return "".join(f"\\{char}" for char in name)


@given(name=_NAMES, how=st.sampled_from(["single", "double"]))
def test_a_quoted_name_is_found_whatever_it_contains(name: str, how: str) -> None:
    if name.startswith("~"):
        name = f"./{name}"
    assert name in names_in(f"cat {_quoted(name, how)} && true", {}).words


@given(name=st.text("ab c'\"&;|", min_size=1, max_size=10))
def test_a_name_with_backslashes_is_found(name: str) -> None:
    assert name in names_in(f"cat {_quoted(name, 'backslash')}", {}).words


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    "word", ["{a,b}", "x/{a,b}/{c,d}", "{a,b{c,d}}e", "a{,b}", "pre{a,b}post", "{a}", "a,b"]
)
def test_lists_in_braces_are_replaced_as_bash_does(word: str) -> None:
    ran = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True
    )
    assert set(ran.stdout.split()) <= set(names_in(f"cat {word}", {}).words)


@given(names=st.lists(_PLAIN, min_size=1, max_size=4))
def test_values_of_variables_are_found(names: list[str]) -> None:
    variables = {f"V{at}": name for at, name in enumerate(names)}
    command = "cat " + "/".join(f"${{V{at}}}" for at in range(len(names)))
    assert "/".join(names) in names_in(command, variables).words


def test_countless_and_endless_lists_take_no_time() -> None:
    many = "{a,b}" * 500
    deep = "{a," * 1_000 + "}" * 1_000
    wide = "{" + ",".join("a" * 1_500) + "}"
    for word in (many, deep, wide, "{a,b}" * 50_000):
        assert len(names_in(f"cat {word}", {}).words) < 5_000


@pytest.mark.parametrize("piece", ["echo ${x:-y ", "${a:-", "${a", "${aaaa", "$a$", "${a%% "])
def test_variables_without_an_end_take_no_time(piece: str) -> None:
    assert len(names_in(piece * (19_000 // len(piece)), {}).words) < 100, (
        "it ends, in far less than a second"
    )


@pytest.mark.parametrize(
    ("command", "moved"),
    [
        ("cd a && cat b", ["a"]),
        ("pushd 'a b'; ls", ["a b"]),
        ("tar -C a x", ["a"]),
        ("tar -cC a x", ["a"]),
        ("make --directory=a", ["a"]),
        ("env --chdir a ls", ["a"]),
        ("git -C $D log", ["d"]),
        ("cat a b", []),
        ("cd -P -- a && cat b", ["a"]),
        ("tar -xCa b", ["a"]),
        ("git -Ca log", ["a"]),
        ("cmake -DCMAKE_BUILD_TYPE=a", []),
        ("bash -c 'cd a; sh -c \"cd b; ls\"'", ["a", "b"]),
        ("for d in a b; do cd $d; ls; done", ["a", "b"]),
        ("cd {a,b}; ls", ["a", "b"]),
        ("cd; ls", [str(Path.home())]),
        ("cd\nls", [str(Path.home())]),
        ("# it's here\ncd a && cat b", ["a"]),
    ],
)
def test_directories_that_a_command_moves_to(command: str, moved: list[str]) -> None:
    assert list(dict.fromkeys(names_in(command, {"D": "d"}).moves)) == moved
