"""The context engine's public API: stores a conversation as a tree and makes requests from it.

docs/embedding.md shows how each name is used. Nothing here starts a process, opens a connection or
reads the user's settings. The names come from the packages ``context`` and ``session``, which
import only small helper modules from the rest of the program.
"""

from tui_agent.context.budget import ContextSize, Meter, ModelLimits
from tui_agent.context.commit_plan import Commit, Measures, plan_commit
from tui_agent.context.compaction import CompactionPlan, PlanOptions, Refusal, plan_compaction
from tui_agent.context.compaction_policy import is_due
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import Message, ModelRequest
from tui_agent.context.serialise import serialise
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolSchema,
    ToolStatus,
    Usage,
    UserEntry,
)
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.session.tool_traits import ToolTraits, TraitsByName

__all__ = [
    "AssistantEntry",
    "Commit",
    "CompactionPlan",
    "ContextSettings",
    "ContextSize",
    "Entry",
    "Measures",
    "Message",
    "Meter",
    "ModelLimits",
    "ModelRequest",
    "ModelTraits",
    "PlanOptions",
    "Refusal",
    "Session",
    "Store",
    "StoreError",
    "SystemEntry",
    "TextPart",
    "TokenCounter",
    "ToolCallPart",
    "ToolResultEntry",
    "ToolSchema",
    "ToolStatus",
    "ToolTraits",
    "TraitsByName",
    "Usage",
    "UserEntry",
    "is_due",
    "plan_commit",
    "plan_compaction",
    "project",
    "serialise",
]
