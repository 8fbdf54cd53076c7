"""What commands are shown is what ``read`` shows without a question, whatever a file is called and wherever it is."""

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.project_scans import scan_project
from tests.support.secret_shapes import BEGIN, END, HEX, MORE, PEM_BODY, SHAPES, made
from tui_agent.files.secret_files import is_secret_file, shown_line
from tui_agent.files.secret_search import FileState, SecretSearch

PLACES = (
    "",
    "src",
    "dist",
    "dist/a/b",
    "node_modules",
    "node_modules/p",
    ".venv",
    ".venv/etc",
    "target/debug",
    ".vscode",
)
ENDS = (
    "", ".txt", ".json", ".backup", ".dump", ".sql", ".html", ".lock", ".ipynb", ".py", ".md", ".env", ".example",
    ".log",    ".key", ".xyz", ".cfg~", ".1", ".d", ".map", ".b64",
)  # fmt: skip
NAMES = st.builds(
    "{}{}".format,
    st.sampled_from(["x", "notes", ".env", ".npmrc", "id_rsa", "wallet", "a.b"]),
    st.sampled_from(ENDS),
)
SECRET_TEXTS = [
    template.format(secret if isinstance(secret, str) else "\n".join(secret))
    for template, secret in (SHAPES | MORE).values()
]
TEXTS = st.one_of(
    st.sampled_from(
        [
            *SECRET_TEXTS,
            f"{BEGIN.format('')}\n{PEM_BODY}\n{END.format('')}",
            f"0x{made(64, HEX)}\n",
            "",
        ]
    ),
    st.text(max_size=60),
    st.sampled_from(
        [
            "a: 1\n",
            "password: ${X}\n",
            "bearer",
            "machine",
            "key:",
            "-" * 30,
            f"{made(64)}\n",
            "word " * 9,
        ]
    ),
)
PADDINGS = st.sampled_from(["", "\n", " \t\n", "\n" * 450])
CONTENTS = st.tuples(PADDINGS, st.lists(TEXTS, max_size=3).map("\n".join), PADDINGS).map("".join)


def is_shown_whole(path: Path) -> bool:
    """Whether ``read`` would neither ask nor leave anything out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return not is_secret_file(path) and all(
        shown_line(path, n, line) == line for n, line in enumerate(lines, 1)
    )


@given(st.dictionaries(st.tuples(st.sampled_from(PLACES), NAMES), CONTENTS, max_size=12))
def test_a_file_is_hidden_exactly_if_a_tool_would_not_show_all_of_it(
    files: dict[tuple[str, str], str],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        (root / ".gitignore").write_text(
            "dist/\nnode_modules/\n.venv/\ntarget/\n", encoding="utf-8"
        )
        paths = []
        for (place, file), content in files.items():
            path = root / place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
            paths.append(path)
        hidden = set(scan_project(root).secrets)
        assert hidden == {path for path in paths if not is_shown_whole(path)}


def test_small_files_come_first_and_what_there_was_no_time_for_is_not_known(tmp_path: Path) -> None:
    states = []
    for number in range(5):
        path = tmp_path / f"{number}.txt"
        path.write_text("word " * (10 - number))
        state = path.stat()
        states.append(FileState(str(path), state.st_ctime_ns, state.st_size))
    turns = iter([True, True, True, True])
    search = SecretSearch()
    search.run(states, lambda: next(turns, False))
    assert [search.known(state) for state in states] == [None, None, False, False, False]
    search.run(states, lambda: True)
    assert {search.known(state) for state in states} == {False}


def test_a_file_that_changed_is_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("harmless")
    before = scan_project(tmp_path)
    assert (before.secrets, before.is_current()) == ([], True)
    times = path.stat()
    path.write_text(SECRET_TEXTS[0])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not before.is_current()
    assert scan_project(tmp_path).secrets == [path]


def test_a_text_with_zeros_in_it_is_still_looked_through(tmp_path: Path) -> None:
    key = f"API_KEY={made(40)}\n".encode()
    (tmp_path / "app.log").write_bytes(b"\0" + key)
    (tmp_path / "program").write_bytes(b"\x7fELF" + b"\0" * 40 + key)
    assert set(scan_project(tmp_path).secrets) == {tmp_path / "app.log"}
