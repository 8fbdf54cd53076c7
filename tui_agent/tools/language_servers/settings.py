"""Settings of the ``code`` tool and its language servers."""

import shlex
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _command(text: str) -> str:
    """Return a command line unchanged; raises ValueError if its quotes are not closed."""
    shlex.split(text)
    return text


class CodeSettings(BaseModel):
    """``[code]``: the language servers of code navigation."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    enabled: bool = Field(
        default=True,
        description="Offer the model code navigation where a language server is found.",
    )
    timeout: float = Field(
        default=60.0, gt=0, le=600, description="Seconds a language server may take for an answer."
    )
    servers: dict[str, Annotated[str, AfterValidator(_command)]] = Field(
        default_factory=dict,
        description="The language server for files of a pattern, in place of the found one; "
        '"" means none: "*.lua" = "lua-language-server".',
    )
