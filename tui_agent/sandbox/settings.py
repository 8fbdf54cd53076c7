"""Settings of the sandbox that commands run in."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from tui_agent.web.settings import host_or_network

_PLAIN = "http://"


def _masked_host(text: str) -> str:
    """Return a masked credential's host in canonical form; a leading ``http://`` is kept."""
    plain = text.strip().lower()
    host = plain.removeprefix(_PLAIN)
    return plain[: len(plain) - len(host)] + host_or_network(host)


class SandboxSettings(BaseModel):
    """The table ``[sandbox]`` of the settings, or only a mode: ``sandbox = "off"``."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    mode: Literal["auto", "off", "required"] = Field(
        default="auto",
        description="auto: use a sandbox where one works; required: run no command without one.",
    )
    write: tuple[str, ...] = Field(
        default=(),
        validation_alias=AliasChoices("write", "writable"),
        description="Paths outside the project that commands may change.",
    )
    read: tuple[str, ...] = Field(
        default=(),
        validation_alias=AliasChoices("read", "readable"),
        description="Paths outside the project, and project files with secrets, that commands can read: ~/.npmrc.",
    )
    env: tuple[str, ...] = Field(
        default=(),
        description="Environment variables that commands see although they look like secrets, such as DATABASE_URL. "
        "Takes effect at the next start.",
    )
    hosts: tuple[Annotated[str, AfterValidator(host_or_network)], ...] = Field(
        default=(),
        description="Private hosts and networks that commands, servers and webfetch may reach without asking you: "
        "npm.corp, *.corp, 10.1.2.0/24.",
    )
    mask: Mapping[str, tuple[Annotated[str, AfterValidator(_masked_host)], ...]] = Field(
        default_factory=dict,
        description="Variables and files that commands see as placeholders, each with the hosts that get the value: "
        'GITHUB_TOKEN = ["api.github.com"].',
    )
    exclude: tuple[str, ...] = Field(
        default=(
            "git push*",
            "git pull*",
            "git fetch*",
            "git clone*",
            "git remote update*",
            "git submodule *",
            "gh *",
            "ssh *",
            "scp *",
            "docker *",
            "podman *",
        ),
        description="Commands that run outside the sandbox, under the permission rules that apply without a sandbox.",
    )

    @model_validator(mode="before")
    @classmethod
    def _mode_alone(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"mode": value}
        # ``required = true`` means ``mode = "required"``.
        if isinstance(value, dict) and value.get("required") is True:
            return {**value, "mode": "required"}
        return value
