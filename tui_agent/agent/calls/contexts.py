"""Makes the `ToolContext` of a call, which contains all that the tool may use while it runs.

Owns what lasts from call to call: which files the session's tools have read (`FileReads`), and the
session's archive. The later stages restrict the context: `Allowed` to the permissions found,
`Opened` to a view of the sandbox.
"""

from collections.abc import Callable

from tui_agent.agent.archive import SessionArchive
from tui_agent.agent.calls.call import Call
from tui_agent.agent.channel import Journal
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.events import ToolOutput
from tui_agent.agent.gate import Gate
from tui_agent.agent.model_search import model_search
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.budget import ModelLimits
from tui_agent.context.tokens import PAGE_TOKENS
from tui_agent.context.truncation import limits_for
from tui_agent.context.view import resolve
from tui_agent.pictures import MAX_PDF_PAGES
from tui_agent.processes.jobs import Jobs
from tui_agent.session.entries import ToolResultEntry, ToolStatus
from tui_agent.tools.base import SubagentHost, ToolContext
from tui_agent.tools.questions import UserContact
from tui_agent.tools.reads import FileReads
from tui_agent.tools.registry import tool_traits

LIVE_OUTPUT_CHARS = 20_000
"""Maximum number of characters that are kept from the end of a running call's output.

They become the result if the call is interrupted.
"""


class ToolContexts:
    """Makes the `ToolContext` of each tool call of one session."""

    def __init__(  # noqa: PLR0913 - what a call may use
        self,
        journal: Journal,
        ports: AgentPorts,
        gate: Gate,
        *,
        jobs: Jobs,
        keeper: ContextKeeper,
        person: UserContact,
        subagents: SubagentHost | None,
        propose: Callable[[str], str] | None,
    ) -> None:
        self._journal = journal
        self._session = journal.session
        self._channel = journal.channel
        self._ports = ports
        self._gate = gate
        self._jobs = jobs
        self._keeper = keeper
        self._reads = FileReads()
        self._archive = SessionArchive(self._session, ports.blob, self._sources)
        self._person = person
        self._subagents = subagents
        self._propose = propose

    def make(self, call: Call) -> ToolContext:
        """Return a new context for a call, with limits that fit the model and its free tokens."""

        def report(text: str) -> None:
            call.live = (call.live + text)[-LIVE_OUTPUT_CHARS:]
            self._channel.emit(ToolOutput(call.call_id, text))

        ports = self._ports
        limits = ports.directory.limits(self._keeper.model)
        kept = ports.settings.truncation
        return ToolContext(
            cwd=ports.cwd,
            project=ports.project,
            stands_for=ports.stands_for,
            limits=limits_for(limits.window, self._keeper.room_left(), kept),
            reads=self._reads,
            put_blob=ports.put_blob,
            report=report,
            environment=ports.environment,
            sandbox=ports.sandbox,
            view=self._gate.view(),
            notify=lambda text: self._channel.say(text, "warning"),
            vision=limits.vision,
            document_pages=_pages(limits, self._keeper.room_left()),
            archive=self._archive,
            in_view=self._reads_in_view if kept.short_rereads else lambda _file: (),
            jobs=self._jobs,
            call_id=call.call_id,
            subagents=self._subagents,
            editor=ports.editor,
            propose=self._propose,
            ask=self._person.asker,
            searcher=model_search(self._journal, ports, self._keeper.model),
            verdict=lambda need: self._gate.decide(need).action.value,
        )

    def _sources(self) -> dict[str, str]:
        return {line.topic: line.source for line in self._ports.knowledge.memory}

    def _reads_in_view(self, file: str) -> list[ToolResultEntry]:
        """Return the results of reading ``file`` that the model still sees unchanged, newest first.

        ``file`` is the path as written in results: relative to the project, or absolute outside it.
        """
        view = resolve(self._session.active_path())
        traits = tool_traits()
        answered = view.answered()
        found: list[ToolResultEntry] = []
        for entry in reversed(view.entries):
            if not isinstance(entry, ToolResultEntry) or entry.metadata.path != file:
                continue
            is_read = traits[entry.tool].reads and entry.status is ToolStatus.COMPLETED
            if is_read and entry.id in answered and view.is_open(entry.id):
                found.append(entry)
        return found


def _pages(limits: ModelLimits, room: int) -> int:
    """Return how many pages of a PDF fit in half of the free ``room``, which is in tokens.

    At most `MAX_PDF_PAGES`; 0 if the model takes no documents.
    """
    if not limits.documents:
        return 0
    return max(0, min(MAX_PDF_PAGES, room // (2 * PAGE_TOKENS)))
