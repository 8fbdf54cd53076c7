"""Settings of the checks that run after edits."""

from pydantic import BaseModel, ConfigDict, Field


class DiagnosticSettings(BaseModel):
    """The settings ``[diagnostics]``: which checkers run on edited files, and for how long."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    enabled: bool = Field(
        default=True, description="Check edited files with the checkers that are found."
    )
    wait: float = Field(
        default=3.0,
        ge=0,
        le=60,
        description="Seconds the next request waits for checkers; later results go with a later request.",
    )
    timeout: float = Field(
        default=120.0,
        gt=0,
        le=3600,
        description="Seconds after which a checker is ended and not run again.",
    )
    commands: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="One or more commands for files of a pattern, in place of the found checkers; {files} stands for "
        'the edited files, "" means none: "*.py" = "ruff check --output-format concise {files}".',
    )
