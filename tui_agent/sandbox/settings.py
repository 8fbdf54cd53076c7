"""Settings of the sandbox that commands run in."""

from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator


class SandboxSettings(BaseModel):
    """``[sandbox]``, or ``sandbox = "off"``: what commands of the agent may touch, enforced by the system."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    mode: Literal["auto", "off", "required"] = Field(
        default="auto",
        description="auto: where bubblewrap (Linux) or sandbox-exec (macOS) works; required: no command without.",
    )
    write: tuple[str, ...] = Field(
        default=(),
        validation_alias=AliasChoices("write", "writable"),
        description="Paths beside the project that commands may change.",
    )
    read: tuple[str, ...] = Field(
        default=(),
        validation_alias=AliasChoices("read", "readable"),
        description="Paths commands see beside what they need, and files of the project with secrets: ~/.npmrc",
    )
    env: tuple[str, ...] = Field(
        default=(),
        description="Variables commands get although they look like secrets: DATABASE_URL. From the next start on.",
    )
    exclude: tuple[str, ...] = Field(
        default=(
            "git push*", "git pull*", "git fetch*", "git clone*", "git remote update*", "git submodule *",
            "gh *", "ssh *", "scp *", "docker *", "podman *",
        ),
        description="Commands that can't work inside; they run outside, and rules judge them as if there were none.",
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _mode_alone(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) else value
