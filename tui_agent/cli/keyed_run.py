"""``-p --key NAME``: begins a run, goes on with one that was cut off, or repeats what a finished one said."""

import asyncio
import sys

from tui_agent.agent.events import RunEnded
from tui_agent.app.services import OpenRequest
from tui_agent.cli import events
from tui_agent.cli.output import say, say_json
from tui_agent.lazy import dataclass
from tui_agent.session.entries import AssistantEntry
from tui_agent.session.records import SessionInfo
from tui_agent.session.session import Session
from tui_agent.session.store import Store

WAIT_SECONDS = 0.5
"""Seconds between two looks at a run that another program works on."""
GO_ON = "continue"
"""The message that a run which was cut off goes on with."""


@dataclass(frozen=True, slots=True)
class KeyedRun:
    """The run with a key, as far as it has come. ``session`` is None where it has to begin."""

    key: str
    session: SessionInfo | None = None

    @classmethod
    async def find(cls, store: Store, key: str) -> "KeyedRun":
        """Look up the run with a key; one that is at work in another program is waited for."""
        found = store.session_with_key(key)
        if found is not None and found.held_by is not None:
            say(f"Waiting for the run with the key “{key}”, process {found.held_by.pid}.", file=sys.stderr)
        while found is not None and found.held_by is not None:
            await asyncio.sleep(WAIT_SECONDS)
            found = store.session_with_key(key)
        return cls(key, found)

    @property
    def is_finished(self) -> bool:
        """Whether it ended for a reason of its own. A provider's error is none: the run goes on."""
        outcome = self.session.outcome if self.session is not None else None
        return outcome is not None and outcome.reason not in {"error", "interrupted"}

    @property
    def request(self) -> OpenRequest:
        """What to open: the session that was begun, or a new one."""
        return OpenRequest(self.session.id if self.session is not None else None)

    @property
    def has_begun(self) -> bool:
        """Whether the session holds the message already."""
        return self.session is not None and bool(self.session.first_message)

    def repeat(self, store: Store, *, as_json: bool) -> int:
        """Print what the finished run said, without a request; returns its exit code."""
        if self.session is None or self.session.outcome is None:
            raise RuntimeError("only a finished run can be repeated")
        outcome = self.session.outcome
        session = Session(store, self.session.id, estimate=lambda _entry: 0, read_only=True)
        answers = [entry for entry in session.path() if isinstance(entry, AssistantEntry) and entry.text]
        if as_json:
            say_json(events.event_json(events.Session(session.id, session.info.cwd, self.session.model)))
            ended = RunEnded(outcome.reason, check=outcome.check)  # type: ignore[arg-type]  # as it was stored
            say_json(events.event_json(ended))
        elif answers:
            say(answers[-1].text)
        return outcome.exit_code
