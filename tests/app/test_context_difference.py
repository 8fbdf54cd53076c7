"""``/tree diff``: two contexts side by side."""

from pathlib import Path

from tests.app.test_race_commands import Told, controller_of, do
from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.app.context_difference import Side, difference_lines
from tui_agent.session.entries import UserEntry


async def test_it_says_what_only_one_has_and_what_both_have_in_another_way(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("One."), Reply("Two."), Reply("Three.")]))
    services = harness.services(price=lambda _model, usage: usage.input * 1e-5)
    controller = await controller_of(harness)
    controller.attach(services)
    session = harness.session
    await harness.say("begin here")
    fork = session.leaf
    await harness.say("the left way")
    left = session.leaf
    assert left is not None
    session.move(fork)
    first = next(entry.id for entry in session.path() if isinstance(entry, UserEntry))
    harness.agent.edit_context(first, "mask")
    await harness.say("the right way, which is longer by some words")
    right = session.leaf
    assert isinstance(controller.frontend, Told)
    assert await do(controller, "tree", f"diff #{left} #{right}")
    page = controller.frontend.words[-1]
    rows = [[side.strip() for side in line.split("│")] for line in page.split("\n")]
    only = next(at for at, row in enumerate(rows) if row[0].startswith(f"**only in #{left}"))
    (asked, other), (said, answered) = rows[only + 1 : only + 3]
    assert asked.startswith(f"#{left - 1} the left way")
    assert "the right way" in other
    assert (said.split()[1], answered.split()[1]) == ("Two.", "Three.")
    assert "In both, sent differently" in page
    assert "in context → cleared" in page
    assert page.count("~$0.0") == 2
    same = f"diff {right}"
    assert await do(controller, "tree", same)
    assert "Both have the same blocks." in controller.frontend.words[-1]
    assert not await do(controller, "tree", "diff")
    assert "Name two entries" in controller.frontend.words[-1]
    assert not await do(controller, "tree", "diff #1 #999")


async def test_no_line_is_wider_than_a_terminal(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("word " * 90), Reply("文字" * 60)]))
    await harness.say("long " * 90)
    left = harness.session.leaf
    await harness.say("\x1b[31m文字 " * 40)
    right = harness.session.leaf
    assert left is not None
    assert right is not None
    sides = [Side(at, *harness.agent.inspector.map_at(at)) for at in (left, right)]
    lines = list(difference_lines(*sides))
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in "".join(lines)
