"""Settings of the checks that run after edits."""

from pydantic import BaseModel, ConfigDict, Field


class DiagnosticSettings(BaseModel):
    """Table ``[diagnostics]`` of the settings: checks of edited files, and their time limits."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    enabled: bool = Field(
        default=True, description="Check edited files with the checkers that are installed."
    )
    wait: float = Field(
        default=3.0,
        ge=0,
        le=60,
        description="Seconds the next request waits for checkers. Later results are sent with a later request.",
    )
    timeout: float = Field(
        default=120.0,
        gt=0,
        le=3600,
        description="Seconds after which a checker is stopped and not run again.",
    )
    commands: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="One or more commands for files that match a pattern, in place of the installed checkers: "
        '"*.py" = "ruff check --output-format concise {files}". {files} stands for the edited files; "" means none.',
    )
