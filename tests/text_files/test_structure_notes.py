"""A change that leaves a structured file invalid says so, with the line; it is written."""

import json

import pytest

from tests.support.tooling import Workspace
from tui_agent.text_files.structure import made_invalid
from tui_agent.tools.edit import EditTool
from tui_agent.tools.write import WriteTool

CELL = {
    "cell_type": "code",
    "metadata": {},
    "execution_count": 1,
    "outputs": [],
    "source": ["x = 1\n"],
}
NOTEBOOK = json.dumps(
    {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
)


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("a.json", '{\n"a": 1\n}\n', '{\n"a": 1,\n}\n', "not valid JSON: line"),
        ("a.json", '{\n"a": 1\n}\n', '{\n// why\n"a": 1\n}\n', "not valid JSON: line 2"),
        ("a.json", '{\n// why\n"a": 1\n}\n', '{\n// why\n"a": 1,\n}\n', ""),
        ("a.json", '{\n// why\n"a": 1\n}\n', '{\n// why\n"a": \n}\n', "not valid JSON: line 4"),
        ("tsconfig.base.json", '{"a": 1}', '{"a": [1,], /* b\n*/ "b": "//x,]",}', ""),
        ("tsconfig.json", '{"a": 1}', '{"a": [1,\n', "not valid JSON: line 2"),
        ("a.jsonl", '{"a": 1}\n', '{"a": 1}\n\n{"a": }\n', "not valid JSON: line 3"),
        ("a.json", "{{ template }}", "{{ other }}", ""),
        ("a.json", "", "[1,", "not valid JSON: line 1"),
        ("a.toml", "[a]\nb = 1\n", "[a]\nb = 1\nb = 2\n", "not valid TOML: line 3"),
        ("a.toml", "[a]\nb = 1\n", "[a]\nb = [1\n", "not valid TOML: line 2"),
        ("a.yml", "a:\n  - b\n", "a:\n  - b\n c: d\n", "not valid YAML: line 3"),
        ("a.yaml", "a: !Ref b\n---\nb: !vault |\n  1\n", "a: !Ref c\n", ""),
        ("chart.yaml", "a: b\n", "{{- if .x }}\na: b\n{{- end }}\n", ""),
        ("ci.yml", "a: b\n", "a: ${{ b }}\n c: d\n", "not valid YAML: line 2"),
        ("a.ipynb", NOTEBOOK, NOTEBOOK.replace("x = 1", 'x = "q"'), "not valid JSON: line"),
        (
            "a.ipynb",
            NOTEBOOK,
            NOTEBOOK.replace('"outputs": [],', ""),
            "not valid notebook: line 4: cell 1 has no list",
        ),
        ("a.ipynb", NOTEBOOK, NOTEBOOK.replace("x = 1", "x = 2"), ""),
        ("a.py", "x = 1\n", "x = 1\n    y = 2\n", "not valid Python: line 2: unexpected indent"),
        ("a.py", "print 1\n", "print 2\n", ""),
        ("a.py", "x = 1\n", "x = '\\d'\n", ""),
        ("a.txt", "{}", "{", ""),
        ("a.json", "{}", "[" * 100_000, ""),
    ],
)
def test_what_a_change_makes_invalid(name: str, before: str, after: str, said: str) -> None:
    found = made_invalid(name, before, after)
    assert said in str(found) if said else found is None


async def test_the_answer_says_it_and_the_file_is_written(space: Workspace) -> None:
    path = space.file("a.ipynb", NOTEBOOK)
    edits = [{"old": '"x = 1', "new": '"x = "q"'}]
    answer = (await space.call(EditTool(), path="a.ipynb", edits=edits)).output
    assert "The file was written, but is now not valid JSON: line 9:" in answer
    assert 'x = "q"' in path.read_text()
    created = await space.call(WriteTool(), path="new.toml", content="a = \n")
    assert (
        created.output
        == "Created new.toml (1 line). The file was written, but is now not valid TOML: line 1: Invalid value."
    )
