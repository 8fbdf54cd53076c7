"""Settings for fetching web pages and searching the web."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern
from tui_agent.web.addresses import read_address

_HOST = LazyPattern(r"(?:\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)


def host_or_network(text: str) -> str:
    """Return a host name, ``*.domain``, IP address or network, stripped and in lower case.

    Raises ValueError if the text is none of these.
    """
    plain = text.strip().lower()
    try:
        ipaddress.ip_network(plain, strict=False)
    except ValueError:
        if not _HOST.fullmatch(plain):
            raise ValueError(
                f"“{text}” is neither a host name nor an address or network such as 10.0.0.0/8"
            ) from None
    return plain


def web_address(text: str) -> str:
    """Return a URL in its normal form (see ``read_address``), "" for a blank text.

    Raises ValueError if the text is not a URL.
    """
    if not text.strip():
        return ""
    try:
        return str(read_address(text))
    except ToolError:
        raise ValueError(
            "must be a URL without a user name, such as http://localhost:8888"
        ) from None


class FetchSettings(BaseModel):
    """``[webfetch]``: limits for fetching web pages."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    timeout: float = Field(default=30, gt=0, le=300, description="Maximum seconds for one page.")
    max_bytes: int = Field(
        default=5_000_000, ge=10_000, le=50_000_000, description="Maximum bytes read from one page."
    )
    private: tuple[Annotated[str, AfterValidator(host_or_network)], ...] = Field(
        default=(),
        description="Private hosts, addresses and networks that pages may be read from.",
        json_schema_extra={"only_user": True},
    )

    def reaching(self, hosts: Iterable[str]) -> "FetchSettings":
        """Return these settings with ``hosts`` (names or networks) added to ``private``."""
        return self.model_copy(update={"private": tuple(dict.fromkeys((*self.private, *hosts)))})


class SearchSettings(BaseModel):
    """``[websearch]``: the service used for web searches."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    service: Literal["auto", "tavily", "exa", "brave", "searxng", "model", "off"] = Field(
        default="auto",
        description="Service that searches the web. auto: the SearXNG server in address, else the first service with "
        "an API key, else the model's provider.",
        json_schema_extra={"only_user": True},
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="API key of the chosen service. If unset: TAVILY_API_KEY, EXA_API_KEY or BRAVE_API_KEY.",
        json_schema_extra={"only_user": True},
    )
    address: Annotated[str, AfterValidator(web_address)] = Field(
        default="",
        description="Address of a SearXNG server that answers with JSON.",
        json_schema_extra={"only_user": True},
    )
