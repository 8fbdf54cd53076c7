"""Arguments of commands and skills are filled in as their authors meant."""

import json
from pathlib import Path

import pytest
from hypothesis import given as examples_of
from hypothesis import strategies as st

from tests.support.agents import make_agent
from tests.support.knowledge import knowledge, write
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.knowledge.placeholders import Slots, fill_in, given, slots_of, takes_arguments
from tui_agent.agent.preparing import prepare_command
from tui_agent.context.request import request_bytes
from tui_agent.session.entries import FilePart, ToolStatus
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.skill import SkillTool


@pytest.mark.parametrize(
    ("whose", "template", "typed", "expected"),
    [
        ("Claude Code", "$0 $1 $ARGUMENTS[0]", "12 high", "12 high 12"),
        ("Claude Code", "$ARGUMENTS[1], $ARGUMENTS", "a 'b c'", "b c, a 'b c'"),
        ("", "$1 $2 $ARGUMENTS[0]", "12 high", "12 high 12"),
        ("", "it costs $5", "x", "it costs $5"),
        ("", "$1 costs $5", "tea", "tea costs $5"),
        ("", "echo $HOME ${PATH} $0", "x", "echo $HOME ${PATH} $0"),
        ("Codex", "$FILE at $LINE, $1, $HOME_DIR", "FILE=a.py LINE=3", "a.py at 3, FILE=a.py, "),
        (
            "Pi",
            "$@ | ${@:2} | ${@:1:2} | ${1:-none} ${2:-none}",
            "a b c",
            "a b c | b c | a b | a b",
        ),
        ("Pi", "${1:-none}", "", "none"),
        ("OpenCode", "$1 and $2", "a b c d", "a and b c d"),
        ("OpenCode", "$1 and $ARGUMENTS", "a b", "a b and a b"),
        ("Claude Code", "$0 [$1] [$ARGUMENTS[1]]", "12", "12 [$1] [$ARGUMENTS[1]]"),
        (
            "Claude Code",
            "[\\$0] [${1}] [$@] [${ARGUMENTS}]",
            "a b",
            "[$0] [${1}] [$@] [${ARGUMENTS}]",
        ),
        ("Claude Code", "[$0] [$1] [$2]", '12 "two words" it\'s', "[12] [two words] [it's]"),
        (
            "Pi",
            "[$1] [$2] [$@] [${@:2}] [${7:-seven}] [${@:-none}]",
            '1 "two words" it\'s',
            "[1] [two words] [1 two words it's] [two words it's] [seven] [1 two words it's]",
        ),
        ("Pi", "${@:-none}", "", "none"),
        ("", "[\\$1]", "a", "[\\a]"),
        ("", "$1|$2", '--x="a b" \'c "d"\'', '--x=a b|c "d"'),
        ("", "$1|$2|$3", '"a \\"b" don\'t won\'t', "a \"b|don't|won't"),
    ],
)
def test_each_program_counts_in_its_own_way(
    whose: str, template: str, typed: str, expected: str
) -> None:
    assert fill_in(template, given(typed), slots_of(whose, template, None)) == expected


def test_words_can_have_names() -> None:
    slots = slots_of("Claude Code", "", ["issue", "branch"])
    assert (
        fill_in("Fix $issue on ${branch}, $other", given("12 main"), slots)
        == "Fix 12 on main, $other"
    )
    assert takes_arguments("Fix $issue", slots)
    assert not takes_arguments("Fix it for $5", slots)


@examples_of(
    st.text(max_size=60), st.text(max_size=20), st.sampled_from(["", "Claude Code", "Codex", "Pi"])
)
def test_no_text_breaks_it_and_what_is_typed_is_never_read_again(
    template: str, typed: str, whose: str
) -> None:
    slots = slots_of(whose, template, None)
    fill_in(template, given(typed), slots)
    assert fill_in("[$ARGUMENTS]", given(typed), Slots()) == f"[{typed}]"


# -- skills --------------------------------------------------------------------------------------------------


def skill_file(tmp_path: Path, name: str, front: str, body: str) -> Path:
    text = f"---\nname: {name}\ndescription: about {name}\n{front}---\n{body}\n"
    return write(tmp_path / f"home/.claude/skills/{name}/SKILL.md", text)


async def test_a_skill_that_only_the_user_starts_is_hidden_from_the_model_and_refused(
    tmp_path: Path,
) -> None:
    skill_file(
        tmp_path,
        "deploy",
        "disable-model-invocation: true\n",
        "Ship $ARGUMENTS from ${CLAUDE_SKILL_DIR}.",
    )
    skill_file(tmp_path, "lint", "user-invocable: false\n", "Lint $0.")
    loaded = knowledge(tmp_path)
    calls = [
        Call("skill", json.dumps({"name": name, "arguments": "a.py"}))
        for name in ("deploy", "lint")
    ]
    client = ScriptedClient([Reply(calls=tuple(calls)), Reply("Done.")])
    tools = (*builtin_tools(), SkillTool(lambda: loaded.skills, lambda: bool(loaded.offers_skills)))
    harness = make_agent(tmp_path, client, knowledge=loaded, tools=tools)
    await harness.say("go")
    assert "about lint" in request_bytes(client.requests[0]).decode()
    assert "about deploy" not in request_bytes(client.requests[0]).decode()
    refused, loaded_text = sorted(harness.results(), key=lambda result: result.preview)
    assert refused.status is ToolStatus.ERROR
    assert "Only the user can start" in refused.output
    assert loaded_text.output.startswith("Lint a.py.")
    assert [row.name for row in harness.agent.commands()] == ["skill:deploy"]
    prepared = await prepare_command("skill:deploy", "v2", harness.session, harness.agent.ports)
    assert prepared is not None
    (file,) = [part for part in prepared.parts if isinstance(part, FilePart)]
    assert file.text.startswith(f"Ship v2 from {tmp_path / 'home/.claude/skills/deploy'}.")
