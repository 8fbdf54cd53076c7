"""What a tool says of itself is all that is known of it elsewhere: no other place tells tools apart by their names."""

import ast
import re
from pathlib import Path

import tui_agent
from tests.support.parsed import parsed
from tests.support.session_paths import PathBuilder
from tui_agent.agent.permissions import Action, parse_rule
from tui_agent.context.files import file_operations
from tui_agent.context.pruning import PruneRules, Superseded, plan_prune, superseded_results
from tui_agent.context.settings import PruneSettings
from tui_agent.context.view import resolve
from tui_agent.session.tool_traits import ToolTraits, TraitsByName
from tui_agent.tools.registry import BUILTIN, builtin_tools, find_tool, tool_traits

ROOT = Path(tui_agent.__file__).parent
OTHERS_FORMATS = {"session/formats/incoming.py", "model/demo_script.py", "cli/headless.py"}
"""Modules that speak of tools by name: what other programs call theirs, the demo's script, the one headless line."""


def new(**traits: object) -> TraitsByName:
    """Return the table with a tool that this program has never heard of."""
    return TraitsByName({**tool_traits(), "lookup": ToolTraits(**traits)})  # type: ignore[arg-type]


def twice() -> PathBuilder:
    build = PathBuilder()
    build.user("look it up")
    for _ in range(2):
        build.run("lookup", {"path": "a.py"}, "x" * 8_000)
    return build


def test_a_setting_that_names_tools_stands_above_what_they_say() -> None:
    settings = PruneSettings(
        protect_turns=0, protect_share=0, protect_steps=0, protected_tools=("other",)
    )
    view = resolve(twice().path)
    assert (
        plan_prune(view, PruneRules(settings, 10_000, new(protected=True), minimum=1)) is not None
    )


def test_a_new_tool_says_that_a_later_call_takes_the_place_of_an_earlier_one() -> None:
    view = resolve(twice().path)
    assert superseded_results(view, new()) == {}
    assert set(superseded_results(view, new(repeatable=True)).values()) == {Superseded.REPEATED}


def test_a_new_tool_says_that_it_reads_or_changes_the_file_it_names() -> None:
    path = twice().path
    assert file_operations(path, new()).read == file_operations(path, new()).modified == ()
    assert file_operations(path, new(reads=True)).read == ("a.py",)
    assert file_operations(path, new(writes=True)).modified == ("a.py",)


def test_other_programs_names_mean_one_tool_each() -> None:
    names = [other for traits in tool_traits().values() for other in traits.other_names.split()]
    assert len(names) == len(set(names))
    assert [parse_rule(name, Action.DENY).permission for name in BUILTIN] == list(BUILTIN)
    for tool in builtin_tools():
        # What only ends like a tool's name may be meant as a server's.
        clear = (
            name
            for name in tool.traits.other_names.split()
            if not any(own.endswith(name) for own in BUILTIN)
        )
        assert {find_tool(name, builtin_tools()).name for name in clear} <= {tool.name}


def test_no_code_compares_a_tool_with_a_name() -> None:
    quoted = re.compile(f"""["']({"|".join(map(re.escape, BUILTIN))})["']""")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in OTHERS_FORMATS
        if quoted.search(text := path.read_text())
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.Compare) and _names_a_tool(node.comparators) and _is_tool(node.left)
    ]
    assert found == []


def _is_tool(node: ast.expr) -> bool:
    return ast.unparse(node).endswith(("tool", "tool.name", "tool_name"))


def _names_a_tool(nodes: list[ast.expr]) -> bool:
    return any(
        isinstance(part, ast.Constant) and part.value in BUILTIN
        for node in nodes
        for part in ast.walk(node)
    )
