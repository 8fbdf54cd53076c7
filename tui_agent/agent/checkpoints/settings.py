"""The settings of checkpoints: ``[checkpoints]``."""

from pydantic import BaseModel, ConfigDict, Field


class CheckpointSettings(BaseModel):
    """``[checkpoints]``: what the agent changes in files is kept, so that it can be taken back."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    enabled: bool = Field(default=True, description="Keep images of changed files, so that a move can restore them.")
    megabytes: int = Field(
        default=500, ge=1, description="Room for images of files in all sessions; the oldest go first."
    )
