"""Settings of the tools: what `webfetch` may reach, and the sandbox that commands run in."""

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)


def _host_or_network(text: str) -> str:
    plain = text.strip().lower()
    try:
        ipaddress.ip_network(plain, strict=False)
    except ValueError:
        if not _HOST.fullmatch(plain):
            raise ValueError(f"“{text}” is neither a host name nor an address or network such as 10.0.0.0/8") from None
    return plain


class FetchSettings(BaseModel):
    """``[webfetch]``: limits of the tool that reads web pages."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    timeout: float = Field(default=30, gt=0, le=300, description="Seconds a page may take altogether.")
    max_bytes: int = Field(default=5_000_000, ge=10_000, le=50_000_000, description="Bytes read of one page.")
    private: tuple[Annotated[str, AfterValidator(_host_or_network)], ...] = Field(
        default=(),
        description="Hosts, addresses and networks of this machine or network that pages may be read from.",
    )


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
