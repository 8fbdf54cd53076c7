"""Helpers to drive the real client against the scripted provider."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.support.model_server import ModelServer
from tests.support.wire_rounds import READ, Heard
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.protocol import ModelError, ModelEvent
from tui_agent.model.route import Router
from tui_agent.model.settings import HostSettings, ModelSettings, ProviderSettings

OPENAI_KEY = "plain0shape0123456789abcdef"
"""A key that nothing but knowing it tells from other words."""

ANTHROPIC_KEY = "sk-ant-0123456789abcdef"
PATIENT = HostSettings(
    connect_timeout=30, first_byte_timeout=60, stall_timeout=60, answer_timeout=60, start_timeout=60
)
"""No answer of the scripted provider takes as long, on a busy machine neither."""
IMPATIENT = PATIENT.model_copy(update={"first_byte_timeout": 0.8, "stall_timeout": 0.4})
"""For servers that fall silent."""

HOSTED_MODEL = "openai/gpt-4o-2024-11-20"
"""A model that is set up to go through litellm."""


class Provider(StrEnum):
    """Who answers: in formats the program speaks itself, and through litellm's process."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    RESPONSES = "responses"
    GEMINI = "gemini"
    HOSTED = "hosted"

    @property
    def model(self) -> str:
        return {
            Provider.OPENAI: "openai/gpt-4o", Provider.ANTHROPIC: "anthropic/claude-sonnet-4-5",
            Provider.RESPONSES: "openai/gpt-5.4", Provider.GEMINI: "gemini/gemini-2.5-pro",
            Provider.HOSTED: HOSTED_MODEL,
        }[self]  # fmt: skip

    @property
    def refused_model(self) -> str:
        """A model at an address where nobody answers."""
        models = {
            Provider.HOSTED: "openai/hosted-refused",
            Provider.RESPONSES: "openai/gpt-5.4-refused",
        }
        return models.get(self, f"{self}/refused")


def router(
    server: ModelServer, *, refused: str = "http://127.0.0.1:9", key: str = OPENAI_KEY
) -> Router:
    models = {
        "openai/refused": ModelSettings(base_url=f"{refused}/v1"),
        "anthropic/refused": ModelSettings(base_url=refused),
        "gemini/refused": ModelSettings(base_url=refused),
        "openai/gpt-5.4-refused": ModelSettings(base_url=f"{refused}/v1"),
        "openai/gpt-4o-mini": ModelSettings(reasoning_effort="high", options={"temperature": 0.5}),
        "anthropic/claude-opus-4-5": ModelSettings(
            reasoning_effort="low", headers={"x-team": "blue"}
        ),
        HOSTED_MODEL: ModelSettings(wire="litellm"),
        "openai/hosted-refused": ModelSettings(base_url=f"{refused}/v1", wire="litellm"),
        "openai/local": ModelSettings(base_url=server.openai_url, api_key_env="NO_SUCH_VARIABLE"),
        "ollama/qwen3": ModelSettings(base_url=server.url, context_window=16_384),
    }
    providers = {
        "openai": ProviderSettings(base_url=server.openai_url),
        "anthropic": ProviderSettings(base_url=server.url),
        "gemini": ProviderSettings(base_url=server.url),
    }
    keys = {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": ANTHROPIC_KEY, "GEMINI_API_KEY": OPENAI_KEY}
    # The catalog takes the servers for the providers' own, so that windows and prices are theirs.
    return Router(
        Catalog({"ollama/qwen3": models["ollama/qwen3"]}), keys, models=models, providers=providers
    )


def host_client(
    server: ModelServer,
    *,
    log_path: Path | None = None,
    refused: str = "http://127.0.0.1:9",
    **options: Any,
) -> ProviderClient:
    settings, key = options.pop("host", PATIENT), options.pop("key", OPENAI_KEY)
    return ProviderClient(
        router(server, refused=refused, key=key), host=settings, log_path=log_path, **options
    )


def ask(model: str, text: str = "hello", *, tools: bool = False, **fields: Any) -> ModelRequest:
    messages = fields.pop("messages", (user(text),))
    return ModelRequest(model, tuple(messages), (READ,) if tools else (), **fields)


def user(text: str, **fields: Any) -> Message:
    return Message("user", (ContentText(text),), **fields)


async def collect(client: ProviderClient, request: ModelRequest) -> Heard:
    """Take a stream to its end, or to its error."""
    events: list[ModelEvent] = []
    try:
        async for event in client.stream(request):
            events.append(event)
    except ModelError as error:
        return Heard(events, error)
    return Heard(events)
