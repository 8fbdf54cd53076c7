"""Settings of hooks: the ``[[hooks]]`` tables of the configuration."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

EventName = Literal[
    "session_start",
    "user_prompt",
    "before_tool",
    "after_tool",
    "before_compact",
    "after_compact",
    "before_tree",
    "after_tree",
    "run_end",
    "before_end",
    "permission",
    "notification",
    "subagent_start",
    "session_end",
]
"""The points of the agent's work at which hooks run."""


class HookSettings(BaseModel):
    """One ``[[hooks]]`` table: a command, and the event that runs it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    event: EventName = Field(description="The event at which the command runs.")
    command: str = Field(
        min_length=1, description="Run by sh in the working directory; see docs/hooks.md."
    )
    timeout: float = Field(
        default=30, gt=0, le=600, description="Seconds after which the command is killed."
    )
    sandboxed: bool = Field(
        default=False,
        description="Run the command in the sandbox, as a project's hooks always are.",
    )
    matcher: str = Field(
        default="*",
        description="A glob on the tool's name, for before_tool, after_tool and permission.",
    )
