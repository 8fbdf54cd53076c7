"""``/rules``: what binds, where it comes from, whether the model has it."""

from pathlib import Path

from tests.app.test_race_commands import controller_of, do
from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.app.rules_commands import NO_RULES


async def test_the_page_names_sources_and_places(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("Yes.")] * 3))
    controller = await controller_of(harness)
    assert await do(controller, "rules")
    assert NO_RULES in controller.frontend.words[-1]  # type: ignore[attr-defined]
    await harness.say("Fix it. Never touch vendor.")
    await harness.say("Go on.")
    assert await do(controller, "rules")
    page = controller.frontend.words[-1]  # type: ignore[attr-defined]
    assert "**In view**" in page
    assert "Never touch vendor." in page
    assert "sent 2 times" in page
    harness.agent.edit_context(harness.path()[1].id, "drop")
    assert await do(controller, "rules")
    assert "**Not sent**" in controller.frontend.words[-1]  # type: ignore[attr-defined]
    assert "not sent yet" not in controller.frontend.words[-1]  # type: ignore[attr-defined]
