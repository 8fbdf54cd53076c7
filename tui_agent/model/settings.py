"""Settings of the model layer: models, providers, retries, time limits.

Prices are US dollars per million tokens, sizes are tokens, times are seconds.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tui_agent.context.settings import FIXED, Threshold, Tokens
from tui_agent.model.providers import ReasoningBack, WireName
from tui_agent.session.effort import Effort


class _Table(BaseModel):
    """A frozen table of the configuration. The configuration module reports unknown keys."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class ModelSettings(_Table):
    """``[models."openai/my-model"]``: adds a model to the catalog or corrects its facts there."""

    base_url: str | None = Field(
        default=None, description="Address of the server, including /v1 if it has one."
    )
    api_key_env: str | None = Field(default=None, description="Environment variable with the key.")
    api_key: SecretStr | None = Field(default=None, description="The key itself.")
    context_window: int | None = Field(
        default=None, ge=1_024, description="Size of the context window in tokens."
    )
    max_output: int | None = Field(default=None, ge=1, description="Maximum tokens of an answer.")
    vision: bool | None = Field(default=None, description="The model accepts images.")
    tools: bool | None = Field(default=None, description="The model can call tools.")
    small: bool | None = Field(
        default=None,
        description="The model is given only the tools that read, change and run files.",
    )
    tiny: bool | None = Field(
        default=None,
        description="The model is given no tools: it names a file to read, and writes whole files.",
    )
    reasoning: bool | None = Field(default=None, description="The model thinks before it answers.")
    cache_marks: bool | None = Field(
        default=None, description="The server accepts Anthropic's cache marks."
    )
    effort: Effort | None = Field(default=None, description="Overrides effort for this model.")
    reasoning_effort: Effort | None = Field(default=None, description="Another name for effort.")
    input_price: float | None = Field(
        default=None, ge=0, description="Dollars per million input tokens."
    )
    output_price: float | None = Field(
        default=None, ge=0, description="Dollars per million output tokens."
    )
    cache_read_price: float | None = Field(
        default=None, ge=0, description="Dollars per million tokens read from the cache."
    )
    cache_write_price: float | None = Field(
        default=None, ge=0, description="Dollars per million tokens written to the cache."
    )
    wire: WireName | Literal["litellm"] | None = Field(
        default=None, description="Format of the model's requests, if not the provider's usual one."
    )
    reasoning_back: ReasoningBack | None = Field(
        default=None,
        description="Field in which the model's reasoning is sent back; none: it isn't sent.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers sent with every request."
    )
    threshold: Threshold = Field(
        default=None, description="Overrides compaction.threshold for this model."
    )
    reserved: Tokens | None = Field(
        default=None, description="Overrides compaction.reserved for this model."
    )
    keep_recent: Tokens | None = Field(
        default=None, description="Overrides compaction.keep_recent for this model."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Further parameters, such as temperature."
    )


class ProviderSettings(_Table):
    """``[providers.openai]``: key and address for every model of a provider."""

    base_url: str | None = Field(default=None, description="Address instead of the provider's own.")
    api_key_env: str | None = Field(default=None, description="Environment variable with the key.")
    api_key: SecretStr | None = Field(default=None, description="The key itself.")
    wire: WireName | Literal["litellm"] | None = Field(
        default=None, description="Format of requests, if not the provider's usual one."
    )
    reasoning_back: ReasoningBack | None = Field(
        default=None,
        description="Field in which models' reasoning is sent back; none: it isn't sent.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers sent with every request."
    )


class RetrySettings(_Table):
    """``[retry]``: how often a failing request is sent, and how long to wait in between."""

    attempts: int = Field(
        default=5, ge=1, le=50, description="Maximum number of times that a request is sent."
    )
    first_delay: Annotated[float, FIXED] = Field(
        default=1.0,
        ge=0,
        description="Longest wait before the second attempt, in seconds, unless the server is busy.",
    )
    max_delay: float = Field(
        default=60.0,
        ge=0,
        description="Longest wait in seconds if the provider doesn't ask for a wait.",
    )
    max_retry_after: float = Field(
        default=600.0,
        ge=0,
        description="Longest wait in seconds that a provider may ask for. If it asks for more, the "
        "request fails.",
    )


class HostSettings(_Table):
    """``[host]``: time limits for providers, and for the process that runs litellm."""

    connect_timeout: float = Field(
        default=20.0, gt=0, description="Maximum seconds to connect to a provider."
    )
    first_byte_timeout: float = Field(
        default=600.0, gt=0, description="Maximum seconds until an answer begins."
    )
    stall_timeout: float = Field(
        default=300.0, gt=0, description="Maximum seconds that an answer may pause."
    )
    start_timeout: Annotated[float, FIXED] = 90.0
    """Time limit for litellm's process to start, in seconds."""
    answer_timeout: Annotated[float, FIXED] = 20.0
    """Seconds that litellm's process may stay silent after the provider's time limit before it
    counts as hung."""
