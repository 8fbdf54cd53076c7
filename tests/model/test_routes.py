"""Keys, routes, and the message format."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.catalog import Catalog
from tui_agent.model.hosted.client import build_call
from tui_agent.model.keys import Keys
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.providers import PROVIDERS, provider_of
from tui_agent.model.redaction import redact
from tui_agent.model.route import NO_KEY, Route, Router
from tui_agent.model.settings import ModelSettings, ProviderSettings


def router(environ: dict[str, str], **settings: object) -> Router:
    return Router(Catalog(**settings), environ, **settings)  # type: ignore[arg-type]


def test_keys_come_from_model_provider_then_environment() -> None:
    environ = {"OPENAI_API_KEY": "usual", "MINE": "own", "TEAM": "team"}
    models = {"openai/mine": ModelSettings(api_key_env="MINE")}
    providers = {"openai": ProviderSettings(api_key_env="TEAM")}
    openai, keys = provider_of("openai"), Keys(environ, models=models, providers=providers)

    for key, value, source in (
        (keys.find(openai, "openai/mine"), "own", "MINE"),
        (keys.find(openai, "openai/other"), "team", "TEAM"),
        (Keys(environ).find(openai, "openai/mine"), "usual", "OPENAI_API_KEY"),
    ):
        assert key is not None
        assert (key.secret.get_secret_value(), key.source) == (value, source)
    assert Keys({}).find(openai) is None


def test_a_key_in_the_configuration_stays_out_of_sight() -> None:
    settings = ProviderSettings(api_key=SecretStr("sk-very-secret"))
    keys = Keys({}, providers={"groq": settings})
    key = keys.find(provider_of("groq"))

    assert key is not None
    assert key.source == "api_key under [providers.groq]"
    assert (
        "very-secret"
        not in f"{settings!r} {key!r} {router({}, providers={'groq': settings}).route('groq/x')!r}"
    )


def test_what_is_available_names_its_source() -> None:
    environ = {"ANTHROPIC_API_KEY": "x", "GOOGLE_API_KEY": "y", "AWS_REGION": "eu-central-1"}
    sources = {
        "anthropic": "ANTHROPIC_API_KEY",
        "gemini": "GOOGLE_API_KEY",
        "bedrock": "AWS_REGION_NAME",
    }

    assert Keys(environ).available() == sources


@pytest.mark.parametrize(
    ("model", "wire", "name", "url"),
    [
        ("openai/gpt-4o", "chat", "gpt-4o", "https://api.openai.com/v1"),
        ("gpt-4o", "chat", "gpt-4o", "https://api.openai.com/v1"),
        ("claude-sonnet-4-5", "messages", "claude-sonnet-4-5", "https://api.anthropic.com/v1"),
        ("ollama/qwen3", "ollama", "qwen3", "http://127.0.0.1:11434"),
        ("together/meta-llama/x", "chat", "meta-llama/x", "https://api.together.xyz/v1"),
        (
            "fireworks/kimi-k2",
            "chat",
            "accounts/fireworks/models/kimi-k2",
            "https://api.fireworks.ai/inference/v1",
        ),
        (
            "huggingface/groq/moonshotai/Kimi-K2",
            "chat",
            "moonshotai/Kimi-K2:groq",
            "https://router.huggingface.co/v1",
        ),
        (
            "huggingface/moonshotai/Kimi-K2",
            "chat",
            "moonshotai/Kimi-K2",
            "https://router.huggingface.co/v1",
        ),
        (
            "openrouter/anthropic/claude-x",
            "chat",
            "anthropic/claude-x",
            "https://openrouter.ai/api/v1",
        ),
    ],
)
def test_names_and_addresses_of_what_is_spoken_to_directly(
    model: str, wire: str, name: str, url: str
) -> None:
    route = router({key: "x" for provider in PROVIDERS.values() for key in provider.keys}).route(
        model
    )

    assert (route.wire, route.name, route.base_url) == (wire, name, url)


def test_an_own_server_needs_no_key() -> None:
    models = {"openai/mine": ModelSettings(base_url="http://localhost:8080/v1/")}
    route = router({}, models=models).route("openai/mine")

    assert (route.base_url, route.name) == ("http://localhost:8080/v1", "mine")
    assert route.secret_headers() == {"authorization": f"Bearer {NO_KEY}"}
    assert route.target.address == "localhost:8080"


GATE = "https://gate.corp/openai/v1"
AZURE = "https://r.openai.azure.com"
CLAUDE = "anthropic/claude-sonnet-4-5"
BEARER = {"authorization": "Bearer x"}


@pytest.mark.parametrize(
    ("model", "environ", "url", "header"),
    [
        ("openai/gpt-4o", {"OPENAI_BASE_URL": GATE, "OPENAI_API_KEY": "x"}, GATE, BEARER),
        ("openai/gpt-4o", {"OPENAI_API_BASE": GATE, "OPENAI_API_KEY": "x"}, GATE, BEARER),
        ("mistral/codestral-latest", {"MISTRAL_API_BASE": GATE, "MISTRAL_API_KEY": "x"}, GATE, BEARER),
        # Anthropic's address is given with and without the version.
        (CLAUDE, {"ANTHROPIC_BASE_URL": GATE, "ANTHROPIC_API_KEY": "x"}, GATE, {"x-api-key": "x"}),
        (CLAUDE, {"ANTHROPIC_BASE_URL": "https://gate.corp/a", "ANTHROPIC_AUTH_TOKEN": "x"}, "https://gate.corp/a/v1",
         BEARER),
        (CLAUDE, {"ANTHROPIC_BASE_URL": "https://gate.corp/a/v1/messages", "ANTHROPIC_API_KEY": "x"},
         "https://gate.corp/a/v1", {"x-api-key": "x"}),
        # Azure has two kinds of addresses.
        ("azure/mine", {"AZURE_API_BASE": f"{AZURE}/", "AZURE_API_KEY": "x"}, f"{AZURE}/openai/v1", {"api-key": "x"}),
        ("azure/mine", {"AZURE_API_BASE": f"{AZURE}/openai/v1", "AZURE_API_KEY": "x"}, f"{AZURE}/openai/v1",
         {"api-key": "x"}),
        ("azure/mine", {"AZURE_OPENAI_ENDPOINT": AZURE, "AZURE_API_VERSION": "2025-01-01", "AZURE_API_KEY": "x"},
         f"{AZURE}/openai/deployments/mine?api-version=2025-01-01", {"api-key": "x"}),
    ],
)  # fmt: skip
def test_an_address_of_the_environment_gets_what_was_meant_for_it(
    model: str, environ: dict[str, str], url: str, header: dict[str, str]
) -> None:
    route = router(environ).route(model)

    query = "&".join(f"{name}={value}" for name, value in route.query.items())
    assert f"{route.base_url}?{query}".rstrip("?") == url
    assert route.secret_headers() == header
    assert route.target.provider in url


def test_options_named_as_litellm_names_them_mean_what_they_did() -> None:
    options = {
        "temperature": 0.2,
        "extra_headers": {"x-team": "blue"},
        "extra_body": {"top_k": 5},
        "timeout": 5,
    }
    models = {"groq/x": ModelSettings(options=options, headers={"x-a": "b"})}

    route = router({"GROQ_API_KEY": "x"}, models=models).route("groq/x")

    assert dict(route.options) == {"temperature": 0.2, "top_k": 5}
    assert dict(route.headers) == {"x-a": "b", "x-team": "blue"}


def test_a_model_can_be_spoken_to_otherwise() -> None:
    models = {"openai/mine": ModelSettings(base_url="http://localhost:1/v1", wire="litellm")}
    providers = {
        "zai": ProviderSettings(base_url="https://api.z.ai/api/anthropic", wire="messages")
    }
    found = router({"ZAI_API_KEY": "x"}, models=models, providers=providers)

    assert found.route("openai/mine").parameters == {
        "model": "openai/mine",
        "api_base": "http://localhost:1/v1",
    }
    assert found.route("zai/glm-5").wire == "messages"
    assert found.route("zai/glm-5").base_url == "https://api.z.ai/api/anthropic/v1"


def test_a_server_of_the_users_under_a_new_name_is_sent_chat_completions() -> None:
    url = "http://127.0.0.1:9/v1"
    providers = {
        "bench": ProviderSettings(base_url=url),
        "xinference": ProviderSettings(base_url=url),
        "spoken": ProviderSettings(base_url=url, wire="responses"),
    }
    models = {"mine/a": ModelSettings(base_url=url), "lost/a": ModelSettings(context_window=9_000)}
    found = router({"BENCH_API_KEY": "x"}, models=models, providers=providers)

    route = found.route("bench/gpt-5")
    assert (route.wire, route.base_url, route.name) == ("chat", url, "gpt-5")
    assert route.secret_headers() == BEARER
    assert route.chat == provider_of("lm_studio").chat
    assert found.route("mine/a").wire == "chat"
    assert found.route("spoken/a").wire == "responses"
    assert found.route("xinference/a").wire is None  # litellm knows it
    with pytest.raises(
        ModelError, match=r"no provider “lost”.*config set providers\.lost\.base_url"
    ):
        found.route("lost/a")


def test_other_settings_count_from_the_next_route_on() -> None:
    models = {"openai/a": ModelSettings(base_url="http://localhost:1/v1")}
    found = router({}, models=models)
    found.use(models | {"openai/b": ModelSettings(base_url="http://localhost:2/v1")}, {})
    assert found.route("openai/a").base_url == "http://localhost:1/v1"
    assert found.route("openai/b").base_url == "http://localhost:2/v1"


def test_cloud_parameters_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_APPLICATION_CREDENTIALS": "key.json"}

    assert router(environ).route("vertex_ai/gemini-2.5-pro").parameters == {
        "model": "vertex_ai/gemini-2.5-pro",
        "vertex_project": "p",
        "vertex_credentials": str(tmp_path / "key.json"),
    }


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("anthropic/claude-sonnet-4-5", "set ANTHROPIC_API_KEY"),
        ("azure/gpt-4o", "AZURE_API_BASE"),
        ("vertex_ai/gemini-2.5-pro", "VERTEXAI_PROJECT"),
        ("bedrock/anthropic.claude-x", "AWS_REGION_NAME"),
    ],
)
def test_what_is_missing_is_named(model: str, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        router({}).route(model)

    assert caught.value.kind is ErrorKind.AUTH


def test_a_variable_the_user_chose_is_the_one_asked_for() -> None:
    with pytest.raises(ModelError, match="set TEAM_GROQ"):
        router({}, providers={"groq": ProviderSettings(api_key_env="TEAM_GROQ")}).route("groq/x")


def messages_of(request: ModelRequest, route: Route) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = build_call(request, route)["messages"]
    return messages


def test_an_image_is_sent_inline_and_a_lost_one_is_said_to_be_lost() -> None:
    images = (ImageRef("there", "image/png"), ImageRef("gone", "image/png"))
    request = ModelRequest("openai/gpt-4o", (Message("user", images),), blobs={"there": b"png"})

    assert messages_of(request, router({"OPENAI_API_KEY": "x"}).route(request.model))[0][
        "content"
    ] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
        {"type": "text", "text": "[image: no longer available]"},
    ]


@pytest.mark.parametrize(
    "model", ["anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5"]
)
def test_a_mark_that_moves_on_leaves_a_message_as_it_was(model: str) -> None:
    call = RequestToolCall("c1", "read", "{}")
    messages = (
        Message("user", (ContentText("hello"),)),
        Message("assistant", (ContentText("I look."),), tool_calls=(call,)),
        Message("tool", (ContentText("nothing"),), call_id="c1"),
        Message("assistant", (ContentText("Nothing."),)),
    )
    route = router({"ANTHROPIC_API_KEY": "x", "OPENROUTER_API_KEY": "x"}).route(model)
    marked = ModelRequest(model, tuple(replace(message, cache=True) for message in messages))

    def unmarked(value: object) -> object:
        if isinstance(value, dict):
            return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
        return [unmarked(item) for item in value] if isinstance(value, list) else value

    with_marks = messages_of(marked, route)
    assert "cache_control" in json.dumps(with_marks)
    assert ("cache_control" in with_marks[1]["tool_calls"][0]) is model.startswith("anthropic/")
    assert "cache_control" in with_marks[2]
    assert unmarked(with_marks) == messages_of(ModelRequest(model, messages), route)


@pytest.mark.parametrize(
    ("model", "back"), [("deepseek/deepseek-reasoner", "hm"), ("mistral/magistral-medium", None)]
)
def test_plain_reasoning_goes_back_to_those_who_want_it(model: str, back: str | None) -> None:
    message = Message(
        "assistant", (ContentText("x"),), reasoning=(json.dumps({"reasoning_content": "hm"}),)
    )
    route = router({"DEEPSEEK_API_KEY": "x", "MISTRAL_API_KEY": "x"}).route(model)

    assert messages_of(ModelRequest(model, (message,)), route)[0].get("reasoning_content") == back


def test_known_secrets_are_taken_out_and_plain_words_stay() -> None:
    assert redact("the hunter22 key", ["hunter22"]) == "the [redacted] key"
    assert (
        redact("the basics of tokens: skip api keys, 12 tokens")
        == "the basics of tokens: skip api keys, 12 tokens"
    )
