"""Traits of tools by name, also of tools that only other programs have."""

from tui_agent.session.tool_traits import ToolTraits, TraitsByName


def test_an_imported_name_reads_and_writes_as_the_tool_that_stands_for_it() -> None:
    own = ToolTraits(reads=True, quotes=True, imported_names=("Read", "view"))
    other = ToolTraits(writes=True, imported_names=("Write",))
    traits = TraitsByName({"read": own, "write": other})
    assert traits["read"] is own
    assert traits["view"] == ToolTraits(reads=True)
    assert traits["Write"] == ToolTraits(writes=True)
    assert traits["unknown"] not in (traits["view"], traits["Write"])
