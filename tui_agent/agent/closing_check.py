"""Checks the work when the model says that it is done; a failure sends the model back to work.

`ClosingCheck` runs the project's check. `FormatCheck` compares the answer with the user's JSON
Schema.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

from tui_agent.agent.answer_format import AnswerFormatError, SchemaError
from tui_agent.agent.channel import Journal
from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.agent.gate import Gate
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.reminders import reminder
from tui_agent.agent.shell import run_check
from tui_agent.context.templates import fill
from tui_agent.safe_text import one_line
from tui_agent.session.entries import AssistantEntry
from tui_agent.session.path_queries import newest

CHECK_FAILED = "check_failed"
"""Name of the prompt that tells the model that the project's check failed.

The name is also stored in ``UserEntry.synthetic`` of the message made from the prompt.
"""
FORMAT_MISSED = "format_missed"
"""Name of the prompt that tells the model that its answer doesn't match the schema.

The name is also stored in ``UserEntry.synthetic`` of the message made from the prompt.
"""
FORMAT_ROUNDS = 3
"""Maximum number of times in a run that an answer is sent back because of its format."""


class ClosingCheck:
    """Runs the project's check at the end of each run of a session."""

    def __init__(
        self, journal: Journal, ports: AgentPorts, gate: Gate, recorder: Recorder | None
    ) -> None:
        self._journal = journal
        self._ports = ports
        self._gate = gate
        self._recorder = recorder
        self._failed = 0
        self.has_called = False
        """Whether a tool was called in this run. Without a tool call there is nothing to check."""
        self.ended: Literal["passed", "failed"] | None = None
        """The result of the last check of this run; None if no check ran."""

    def begin(self) -> None:
        """Forget the calls and checks of the previous run; called when a run begins."""
        self._failed = 0
        self.has_called = False
        self.ended = None

    async def demand_more(self, settle_files: Callable[[], Awaitable[None]]) -> bool:
        """Run the check if a tool was called in this run, and append its entry.

        Returns True if the check failed and a message was appended that sends the model back to
        work. The check's ``rounds`` limit how often that happens in a run. ``settle_files`` records
        the check's changes to files.
        """
        wanted = self._ports.check
        if wanted is None or not self.has_called:
            return False
        self._journal.channel.say(f"Running the check: {one_line(wanted.command, 100)}")
        entry = await run_check(wanted.command, self._ports, self._gate.view(), self._recorder)
        await settle_files()
        self._journal.append(entry)
        self.ended = "passed" if entry.passed else "failed"
        if entry.passed or self._failed >= wanted.rounds:
            return False
        self._failed += 1
        values = {"command": wanted.command, "result": entry.result, "output": entry.output.strip()}
        text = fill(self._ports.prompt(CHECK_FAILED), **values)
        self._journal.append(reminder(self._journal.session.active_path(), CHECK_FAILED, text))
        return True


class FormatCheck:
    """Checks the last answer of each of a session's runs if the user asked for a format."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._ports = ports
        self._missed = 0

    def begin(self) -> None:
        """Forget the answers of the previous run; called when a run begins."""
        self._missed = 0

    def demand_more(self) -> bool:
        """Append a message that says what is wrong with the format of the last answer.

        Returns True if the message was appended. Returns False if nothing is wrong, if the answer
        can't be checked, or after ``FORMAT_ROUNDS`` such messages in a run.
        """
        wanted = self._ports.answer_format
        path = self._journal.session.active_path()
        answer = newest(path, AssistantEntry)
        if wanted is None or answer is None or self._missed >= FORMAT_ROUNDS:
            return False
        try:
            wanted.value(answer.text)
        except SchemaError:
            # The model can't fix the user's schema, so the frontend tells the user what is wrong
            # with it.
            return False
        except AnswerFormatError as error:
            self._missed += 1
            text = fill(self._ports.prompt(FORMAT_MISSED), problem=str(error))
            self._journal.append(reminder(path, FORMAT_MISSED, text))
            return True
        return False
