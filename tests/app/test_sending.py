"""What is typed into the prompt is sent in the order in which it was typed."""

from pathlib import Path

from tests.app.test_race_commands import controller_of
from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tests.support.ui_app import until
from tui_agent.session.entries import UserEntry, typed_text


async def test_a_message_does_not_overtake_one_whose_files_are_being_read(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("Yes.")] * 3))
    (Path(harness.session.info.cwd) / "big.txt").write_text("line\n" * 10_000)
    controller = await controller_of(harness)
    for text in ("read @big.txt", "then this", "and @big.txt again"):
        await controller.outbox.send(text)

    def sent() -> list[str]:
        return [typed_text(entry.parts) for entry in harness.path() if isinstance(entry, UserEntry)]

    await until(lambda: len(sent()) == 3)
    assert sent() == ["read @big.txt", "then this", "and @big.txt again"]
