"""Has the small model say how the changes of the runners differ."""

from contextlib import aclosing
from typing import TYPE_CHECKING

from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.context.templates import fill
from tui_agent.files.secret_files import file_holds_secret
from tui_agent.model.protocol import TextDelta, UsageReport

if TYPE_CHECKING:
    from tui_agent.agent.race.race import Race, Runner

MAX_DIFF_CHARS = 20_000
"""Characters of each runner's changes that are given; of more files are named."""


async def compare(race: "Race") -> str:
    """Return in a few lines how the changes of the runners differ; "" when fewer than two changed something.

    Raises:
        ModelError: the model could not be asked.
    """
    told = {runner.name: await _changes(race, runner) for runner in race.runners}
    told = {name: text for name, text in told.items() if text}
    if len(told) < 2:
        return ""
    ports = race.main.ports
    task = fill(ports.prompt("race_compare"), task=race.record.prompt)
    text = "\n\n".join([task, *(f"<attempt name={name!r}>\n{diff}\n</attempt>" for name, diff in told.items())])
    request = ModelRequest(ports.small_model or race.main.model, (Message("user", (ContentText(text),)),))
    said: list[str] = []
    async with aclosing(ports.client.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=piece):
                    said.append(piece)
                case UsageReport(cost=cost) if cost:
                    race.main.session.add_cost(cost)
                case _:
                    pass
    race.comparison = "".join(said).strip()
    return race.comparison


async def _changes(race: "Race", runner: "Runner") -> str:
    """Return what a runner changed as a diff; what holds secrets is only named."""
    if runner.agent is None or runner.copy is None:
        return ""
    text = ""
    for file in await runner.agent.files.diff(race.record.start):
        hidden = not file.diff or file_holds_secret(runner.copy.root / file.path)
        row = f"{file.mark} {file.path} {file.facts}\n" if hidden else file.diff
        text += row if len(text) + len(row) <= MAX_DIFF_CHARS else f"{file.mark} {file.path} {file.facts}\n"
    return text
