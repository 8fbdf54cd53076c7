"""What an agent may be able to do beside what every agent does: each ability is a protocol, asked for by a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from tui_agent.ui.services import AgentPort

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.agent.checkpoints.rewind import FileRewind
    from tui_agent.agent.compactor import Outcome
    from tui_agent.agent.context_inspector import ContextInspector
    from tui_agent.agent.drafting import Drafting
    from tui_agent.agent.events import AgentEvent
    from tui_agent.agent.gate import Gate
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.agent.mcp.session import SessionMcp
    from tui_agent.agent.named import Named
    from tui_agent.agent.navigator import Navigator
    from tui_agent.agent.preparing import Prepared
    from tui_agent.context.budget import ContextSize
    from tui_agent.context.pruning import PrunePlan
    from tui_agent.session.entries import UserPart


@runtime_checkable
class CompactingAgent(Protocol):
    """An agent that can compact on request."""

    def compact(self, focus: str | None = None) -> object:
        """Summarise the history now; ``focus`` says what matters."""
        ...


@runtime_checkable
class DraftingAgent(Protocol):
    """An agent whose compaction can be looked at and edited before it is committed."""

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        ...

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Callable[[], None]:
        """Call ``callback`` with every event; the returned function ends it."""
        ...

    async def compact(self, focus: str | None = None) -> object:
        """Summarise the history now, unseen."""
        ...

    @property
    def drafting(self) -> Drafting:
        """Plans, drafts, weighs and commits compactions."""
        ...


@runtime_checkable
class NavigatingAgent(Protocol):
    """An agent one can go about in the tree of. What can fail raises an error whose text is a sentence."""

    @property
    def session(self) -> Any:
        """The session it works in."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run is going on; nothing moves then."""
        ...

    @property
    def navigator(self) -> Navigator:
        """Plans moves, makes them, and takes them back."""
        ...

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Callable[[], None]:
        """Call ``callback`` with every event; the returned function ends it."""
        ...

    def interrupt(self) -> None:
        """Stop the run."""
        ...

    async def wait_idle(self) -> None:
        """Wait until no run is going on."""
        ...


@runtime_checkable
class RewindingAgent(Protocol):
    """An agent that knows what it changed in files, and can take them along when one moves."""

    @property
    def session(self) -> Any:
        """The session it works in."""
        ...

    @property
    def files(self) -> FileRewind:
        """Plans and restores files."""
        ...


@runtime_checkable
class InspectedAgent(AgentPort, Protocol):
    """An agent whose next request can be looked at, block by block, and changed."""

    @property
    def inspector(self) -> ContextInspector:
        """Shows the next request and the last one, and what is cached of them."""
        ...

    def edit_context(self, target: int, action: Literal["drop", "mask", "pin", "restore"]) -> None:
        """Change the model's view of one entry from the next request on."""
        ...

    async def plan_prune(self) -> PrunePlan | None:
        """Return what ``prune`` would do, None when there is nothing to gain."""
        ...

    async def prune(self) -> int:
        """Turn old tool outputs into placeholders; returns the tokens freed."""
        ...


@runtime_checkable
class SwitchingAgent(InspectedAgent, Protocol):
    """An agent that can compact the history for another model's window before it is used."""

    async def compact(self, focus: str | None = None, *, for_model: str | None = None) -> Outcome:
        """Summarise the history now; with ``for_model`` so that it fits that model."""
        ...


@runtime_checkable
class PermittingAgent(Protocol):
    """An agent whose permission rules can be looked at, removed and put back."""

    @property
    def gate(self) -> Gate:
        """The rules that hold, from the weakest source to the strongest."""
        ...


@runtime_checkable
class CommandingAgent(Protocol):
    """An agent that knows commands of the user's own, skills and kinds of agents."""

    def commands(self) -> tuple[CommandRow, ...]:
        """Return the user's own commands and skills, as they can be typed."""
        ...

    async def prepare_command(self, name: str, arguments: str) -> Prepared | None:
        """Return the message of one of ``commands``, None when it is gone; what it can't do is a ``CommandError``."""
        ...

    def agents(self) -> tuple[CommandRow, ...]:
        """Return the kinds of agents that can take this one's place."""
        ...

    def choose_agent(self, name: str) -> bool:
        """Let another kind of agent go on from the next request on; False when there is none of that name."""
        ...


@runtime_checkable
class MentioningAgent(Protocol):
    """An agent that knows what a message can name beside files and entries."""

    def mentions(self) -> tuple[Named, ...]:
        """Return what can be named: agents for tasks, resources of servers."""
        ...

    async def load_named(self, name: str) -> tuple[UserPart, ...]:
        """Return the parts for a name, none when there is no such thing."""
        ...


@runtime_checkable
class ServedAgent(Protocol):
    """An agent with servers of the Model Context Protocol."""

    @property
    def mcp(self) -> SessionMcp:
        """The servers."""
        ...

    def context_size(self) -> ContextSize:
        """Measure the next request."""
        ...


@runtime_checkable
class ParentAgent(Protocol):
    """An agent that has subagents."""

    @property
    def session(self) -> Any:
        """The session it works in."""
        ...

    def subagent(self, call_id: str) -> Any | None:
        """Return the subagent that works on a call now, an agent itself; None when none does."""
        ...
