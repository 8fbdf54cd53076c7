"""Settings of the ``code`` tool and its language servers."""

import shlex
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _command(text: str) -> str:
    """Return a command line unchanged; raises ValueError if its quotes are not closed."""
    shlex.split(text)
    return text


class CodeSettings(BaseModel):
    """The table ``[code]`` of the settings: language servers for code navigation."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    enabled: bool = Field(
        default=True,
        description="Offer the model code navigation if a language server is found.",
    )
    timeout: float = Field(
        default=60.0, gt=0, le=600, description="Seconds a language server may take to answer."
    )
    servers: dict[str, Annotated[str, AfterValidator(_command)]] = Field(
        default_factory=dict,
        description="Language server for files that match a pattern, instead of the known servers: "
        '"*.lua" = "lua-language-server". "" means no server.',
    )
