"""Settings of the checks that run after edits."""

from pydantic import BaseModel, ConfigDict, Field


class DiagnosticSettings(BaseModel):
    """``[diagnostics]``: what looks over files that the agent changed."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    enabled: bool = Field(default=True, description="Checkers that are found look over what was edited.")
    wait: float = Field(
        default=3.0,
        ge=0,
        le=60,
        description="Seconds the next request waits for them; later results come with a later one.",
    )
    timeout: float = Field(default=120.0, gt=0, le=3600, description="Seconds after which one is ended and left alone.")
    commands: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="A command, or several, for files by pattern, in place of those that are found; {files} stands for "
        'the edited ones, "" for none: "*.py" = "ruff check --output-format concise {files}".',
    )
