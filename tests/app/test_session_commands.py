"""Commands on sessions, at a frontend without a screen: what the user is told."""

from pathlib import Path

import pytest

from tests.app.test_race_commands import Told, controller_of, do
from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.app.services import OpenRequest
from tui_agent.app.session_commands import FORKED
from tui_agent.app.transfer_commands import write_result
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session


def _refuse(_request: OpenRequest) -> Session:
    raise StoreError("The disk is full.")


async def test_a_fork_that_fails_is_not_reported_as_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await controller_of(make_agent(tmp_path, ScriptedClient([Reply("Yes.")])))
    assert isinstance(controller.frontend, Told)
    monkeypatch.setattr(controller.services, "open_session", _refuse)
    await do(controller, "fork")
    assert controller.frontend.words[-1] == "The disk is full."
    assert FORKED not in controller.frontend.words
    await controller.close()


class Result:
    """A session's result that only remembers where it was written."""

    def write(self, target: str) -> str:
        return target


@pytest.mark.parametrize(
    ("target", "written"),
    [("a.patch", "project/a.patch"), ("~/a.patch", "home/a.patch"), ("branch:a", "branch:a")],
)
async def test_a_result_goes_to_the_path_that_the_user_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, written: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    controller = await controller_of(make_agent(tmp_path, ScriptedClient([])))
    assert isinstance(controller.frontend, Told)
    await write_result(controller, Result(), target)  # type: ignore[arg-type]
    assert controller.frontend.words[-1].endswith(written)
    assert "~" not in controller.frontend.words[-1]
    await controller.close()
