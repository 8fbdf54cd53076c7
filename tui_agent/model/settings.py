"""Settings of the model layer: models the catalog doesn't know, providers, retrying, time limits.

Prices are US dollars per million tokens, sizes are tokens, times are seconds.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tui_agent.context.settings import FIXED, Threshold, Tokens
from tui_agent.model.providers import ReasoningBack, WireName
from tui_agent.session.effort import Effort


class _Table(BaseModel):
    """A table of the configuration, frozen; the configuration module handles unknown keys."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class ModelSettings(_Table):
    """``[models."openai/my-model"]``: a model the catalog doesn't know, or knows wrongly."""

    base_url: str | None = Field(
        default=None, description="Address of the server, with /v1 where it has one."
    )
    api_key_env: str | None = Field(default=None, description="Variable that holds the key.")
    api_key: SecretStr | None = Field(default=None, description="The key itself.")
    context_window: int | None = Field(
        default=None, ge=1_024, description="Tokens of the context window."
    )
    max_output: int | None = Field(default=None, ge=1, description="Most tokens of one answer.")
    vision: bool | None = Field(default=None, description="The model takes images.")
    tools: bool | None = Field(default=None, description="The model calls tools.")
    small: bool | None = Field(
        default=None,
        description="The model is given only the tools that read, change and run files.",
    )
    tiny: bool | None = Field(
        default=None,
        description="The model is told no tools: it names a file to read, and writes whole files.",
    )
    reasoning: bool | None = Field(default=None, description="The model thinks before it answers.")
    cache_marks: bool | None = Field(
        default=None, description="The server takes Anthropic's cache marks."
    )
    effort: Effort | None = Field(default=None, description="As effort, for this model.")
    reasoning_effort: Effort | None = Field(default=None, description="Another name of effort.")
    input_price: float | None = Field(
        default=None, ge=0, description="Dollars per million tokens sent."
    )
    output_price: float | None = Field(
        default=None, ge=0, description="Dollars per million tokens answered."
    )
    cache_read_price: float | None = Field(
        default=None, ge=0, description="Dollars per million cached tokens."
    )
    cache_write_price: float | None = Field(
        default=None, ge=0, description="Dollars per million tokens cached."
    )
    wire: WireName | Literal["litellm"] | None = Field(
        default=None, description="Format the server speaks, where it is not its provider's own."
    )
    reasoning_back: ReasoningBack | None = Field(
        default=None,
        description="Field in which the model's reasoning goes back to it; none: it doesn't.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers sent with every request."
    )
    threshold: Threshold = Field(
        default=None, description="As compaction.threshold, for this model."
    )
    reserved: Tokens | None = Field(
        default=None, description="As compaction.reserved, for this model."
    )
    keep_recent: Tokens | None = Field(
        default=None, description="As compaction.keep_recent, for this model."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Further parameters, such as temperature."
    )


class ProviderSettings(_Table):
    """``[providers.openai]``: key and address for every model of a provider."""

    base_url: str | None = Field(default=None, description="Address instead of the provider's own.")
    api_key_env: str | None = Field(default=None, description="Variable that holds the key.")
    api_key: SecretStr | None = Field(default=None, description="The key itself.")
    wire: WireName | Literal["litellm"] | None = Field(
        default=None, description="Format the server speaks, where it is not the provider's own."
    )
    reasoning_back: ReasoningBack | None = Field(
        default=None,
        description="Field in which a model's reasoning goes back to it; none: it doesn't.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers sent with every request."
    )


class RetrySettings(_Table):
    """``[retry]``: how failed requests are tried again."""

    attempts: int = Field(default=5, ge=1, le=50, description="Most times a request is sent.")
    first_delay: Annotated[float, FIXED] = Field(
        default=1.0, ge=0, description="Longest wait before the second attempt."
    )
    max_delay: float = Field(
        default=60.0, ge=0, description="Longest wait the program chooses itself."
    )
    max_retry_after: float = Field(
        default=600.0,
        ge=0,
        description="Longest wait a provider may ask for; beyond it the request fails.",
    )


class HostSettings(_Table):
    """``[host]``: time limits of providers, and of the process with litellm."""

    connect_timeout: float = Field(
        default=20.0, gt=0, description="Seconds to connect to a provider."
    )
    first_byte_timeout: float = Field(
        default=600.0, gt=0, description="Seconds until an answer begins."
    )
    stall_timeout: float = Field(default=300.0, gt=0, description="Seconds an answer may pause.")
    start_timeout: Annotated[float, FIXED] = 90.0
    """Time limit of the start of litellm's process, in seconds."""
    answer_timeout: Annotated[float, FIXED] = 20.0
    """Seconds litellm's process may be silent, beyond those the provider has, before it counts as
    hung."""
