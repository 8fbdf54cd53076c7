"""Makes the JSON object that ``--output-format json`` prints at the end of a run.

The object has the same field names as ``claude -p --output-format json``, so that scripts work with
both.
"""

import time
from dataclasses import asdict
from typing import Any

from tui_agent.agent.agent import Agent
from tui_agent.cli.output import ExitCode
from tui_agent.lazy import frozen
from tui_agent.session.records import RequestRecord
from tui_agent.session.session import Session


@frozen
class TokenUsage:
    """Tokens of a run's requests, as counted by the provider; ``input_tokens`` were not cached."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


@frozen
class RunSummary:
    """How a run ended.

    ``result`` is the text that the run would print: the answer, or a command's report. ``error``
    says why the run failed or stopped; "" if it succeeded. ``num_turns`` is the number of requests.
    ``total_cost_usd`` is None if the price of a request is unknown. ``structured_output`` is the
    JSON value of the answer with ``--output-schema``; None without it, or if the answer doesn't
    match.
    """

    session_id: str
    model: str
    result: str
    exit_code: int
    error: str = ""
    num_turns: int = 0
    duration_ms: int = 0
    total_cost_usd: float | None = 0.0
    usage: TokenUsage = TokenUsage()
    structured_output: Any = None

    def as_json(self) -> dict[str, Any]:
        is_error = self.exit_code != ExitCode.DONE
        return {"type": "result", "is_error": is_error, **asdict(self)}


class RunTally:
    """Measures a run's time, requests, tokens and cost, beginning when the object is created."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._began = time.monotonic()
        self._session = agent.session
        self._before = {record.id for record in self._session.reader.requests()}
        self._cost_before = self._cost()

    def summary(self, result: str, exit_code: int, error: str) -> RunSummary:
        made = [
            record for record in self._session.reader.requests() if record.id not in self._before
        ]
        cost = None
        if all(record.cost is not None for record in made):
            cost = round(self._cost() - self._cost_before, 6)
        return RunSummary(
            session_id=self._session.id,
            model=self._agent.model,
            result=result.rstrip("\n"),
            exit_code=int(exit_code),
            error=error,
            num_turns=len(made),
            duration_ms=round((time.monotonic() - self._began) * 1000),
            total_cost_usd=cost,
            usage=_usage_of(made),
        )

    def _cost(self) -> float:
        return self._session.store.totals(self._session.id).cost


def earlier_run(session: Session, result: str, exit_code: int) -> RunSummary:
    """Return the summary of an earlier run that is not repeated, with no requests, time or cost."""
    return RunSummary(session.id, session.info.model, result.rstrip("\n"), int(exit_code))


def _usage_of(records: list[RequestRecord]) -> TokenUsage:
    return TokenUsage(
        input_tokens=sum(record.input for record in records),
        output_tokens=sum(record.output for record in records),
        cache_read_input_tokens=sum(record.cache_read for record in records),
        cache_creation_input_tokens=sum(record.cache_write for record in records),
    )
