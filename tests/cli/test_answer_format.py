"""``--output-schema``: the last answer is JSON that matches the user's schema, or goes back to the model."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.model_script import Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.answer_format import AnswerFormat, AnswerFormatError, SchemaError
from tui_agent.agent.closing_check import FORMAT_MISSED, FORMAT_ROUNDS
from tui_agent.cli.output import ExitCode
from tui_agent.session.entries import UserEntry

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["name", "lines"],
    "additionalProperties": False,
}
FORMAT = AnswerFormat(SCHEMA)
GOOD = '{"name": "ä", "lines": 3}'


async def answered(tmp_path: Path, *replies: str) -> tuple[int, str, str, list[str]]:
    """Return exit code, what was printed, what was said, and the messages that sent an answer back."""
    client = ScriptedClient([Reply(text) for text in replies])
    harness = make_agent(tmp_path, client, answer_format=FORMAT)
    out, err = io.StringIO(), io.StringIO()
    code = await run_headless(harness, "count", out=out, err=err)
    said = client.requests[0].messages[-1].text
    assert said.startswith("count")
    assert json.dumps(SCHEMA) in said
    sent_back = []
    for entry in harness.path():
        if isinstance(entry, UserEntry) and entry.synthetic == FORMAT_MISSED:
            sent_back.append(entry.text)
    return code, out.getvalue(), err.getvalue(), sent_back


@pytest.mark.parametrize(
    "text", [GOOD, f"\n{GOOD}\n", f"Here it is:\n\n```json\n{GOOD}\n```\n", f"~~~\n{GOOD}\n~~~"]
)
async def test_only_the_json_is_printed(tmp_path: Path, text: str) -> None:
    assert await answered(tmp_path, text) == (ExitCode.DONE, f"{GOOD}\n", "", [])


async def test_an_answer_that_does_not_match_goes_back_with_what_is_wrong(tmp_path: Path) -> None:
    wrong = '{"name": "a", "lines": "three", "more": 1}'
    code, printed, _said, sent_back = await answered(tmp_path, "Three lines.", wrong, GOOD)
    assert (code, printed) == (ExitCode.DONE, f"{GOOD}\n")
    assert "The answer is not JSON" in sent_back[0]
    assert "$.lines: 'three' is not of type 'integer'" in sent_back[1]
    assert "more" in sent_back[1]
    assert "The user's task: count" in sent_back[1]


async def test_a_model_that_never_answers_so_fails_the_run(tmp_path: Path) -> None:
    code, printed, said, sent_back = await answered(tmp_path, *["Three lines."] * 9)
    assert (code, len(sent_back)) == (ExitCode.FAILED, FORMAT_ROUNDS)
    assert printed == "Three lines.\n"
    assert "The answer doesn't match the schema: The answer is not JSON" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON: It is nested too deeply"),
        ("[]", "must be a JSON object"),
        ('{"type": "text"}', r"wrong at \$.type"),
        ('{"$ref": 3}', "wrong at"),
        ('{"$ref": "#/$defs/none"}', r"refers to #/\$defs/none, which it doesn't contain"),
        ('{"items": {"$dynamicRef": "#x"}}', "refers to #x"),
        ('{"$ref": "https://schemas.example.com/a.json"}', "refers to https://schemas.example.com"),
    ],
)
def test_what_is_no_schema_is_refused(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        AnswerFormat.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"$defs": {"a": {"type": "string"}}, "items": {"$ref": "#/$defs/a"}}',
        '{"$id": "https://a.example/s", "$defs": {"b": {"$anchor": "here"}}, "$ref": "#here"}',
        (
            '{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}},'
            ' "$ref": "#/definitions/a"}'
        ),
        '{"properties": {"$ref": {"type": "string"}}}',
        "true",
    ],
)
def test_references_into_the_schema_are_found(text: str) -> None:
    assert AnswerFormat.parse(text).value('["x"]') == ["x"]


def test_a_schema_that_only_refers_to_itself_is_told_as_such() -> None:
    with pytest.raises(SchemaError, match="refers to itself endlessly"):
        AnswerFormat.parse('{"$ref": "#"}').value("{}")


@given(st.text())
def test_any_text_has_a_value_or_says_why_not(text: str) -> None:
    with contextlib.suppress(AnswerFormatError):
        assert set(FORMAT.value(text)) == {"name", "lines"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_a_value_is_found_bare_and_in_a_code_block(value: Any) -> None:
    text = json.dumps(value)
    assert AnswerFormat(True).value(text) == value
    assert AnswerFormat(True).value(f"So:\n\n````json\n{text}\n````\n\nDone.") == value


def test_the_program_prints_it_and_puts_it_into_the_json_of_a_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.project / "schema.json").write_text(json.dumps(SCHEMA))
    with ModelServer() as server:
        server.play_function(lambda _request: Turn(text=f"```json\n{GOOD}\n```"))
        place.configure(server.openai_url)
        plain = place.run("-p", "count", "--output-schema", "schema.json")
        assert (plain.returncode, plain.stdout) == (0, f"{GOOD}\n")
        as_json = place.run(
            "-p", "count", "--output-schema", "schema.json", "--output-format", "json"
        )
        assert json.loads(as_json.stdout)["structured_output"] == json.loads(GOOD)
        inline = place.run("-p", "count", "--output-schema", json.dumps(SCHEMA))
        assert (inline.returncode, inline.stdout) == (0, f"{GOOD}\n")
    wrong = place.run("-p", "count", "--output-schema", '{"type": "text"}')
    assert "--output-schema: The schema is wrong at $.type" in wrong.stderr
    missing = place.run("-p", "count", "--output-schema", "nowhere.json")
    assert missing.returncode == 2
    assert "--output-schema: nowhere.json: No such file" in missing.stderr
    assert "needs -p" in place.run("--output-schema", "schema.json").stderr
