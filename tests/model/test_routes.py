"""Keys, routes, and the message format."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.model.catalog import Catalog
from tui_agent.model.keys import Keys
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.providers import PROVIDERS, provider_of
from tui_agent.model.redaction import redact
from tui_agent.model.route import NO_KEY, Router
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.model.wire import build_call, build_messages


def router(environ: dict[str, str], **settings: object) -> Router:
    return Router(Catalog(**settings), environ, **settings)  # type: ignore[arg-type]


def test_keys_come_from_model_provider_then_environment() -> None:
    environ = {"OPENAI_API_KEY": "usual", "MINE": "own", "TEAM": "team"}
    models = {"openai/mine": ModelSettings(api_key_env="MINE")}
    providers = {"openai": ProviderSettings(api_key_env="TEAM")}
    openai = provider_of("openai")

    def found(keys: Keys, model: str) -> tuple[str, str]:
        key = keys.find(openai, model)
        assert key is not None
        return key.secret.get_secret_value(), key.source

    assert found(Keys(environ, models=models, providers=providers), "openai/mine") == ("own", "MINE")
    assert found(Keys(environ, models=models, providers=providers), "openai/other") == ("team", "TEAM")
    assert found(Keys(environ), "openai/mine") == ("usual", "OPENAI_API_KEY")
    assert Keys({}).find(openai) is None


def test_a_key_in_the_configuration_stays_out_of_sight() -> None:
    settings = ProviderSettings(api_key=SecretStr("sk-very-secret"))
    keys = Keys({}, providers={"groq": settings})
    key = keys.find(provider_of("groq"))

    assert key is not None
    assert key.source == "api_key under [providers.groq]"
    assert "very-secret" not in f"{settings!r} {key!r} {router({}, providers={'groq': settings}).route('groq/x')!r}"


def test_what_is_available_names_its_source() -> None:
    environ = {"ANTHROPIC_API_KEY": "x", "GOOGLE_API_KEY": "y", "AWS_REGION": "eu-central-1"}

    assert Keys(environ).available() == {
        "anthropic": "ANTHROPIC_API_KEY",
        "gemini": "GOOGLE_API_KEY",
        "bedrock": "AWS_REGION_NAME",
    }


def test_an_unknown_provider_is_assumed_to_have_the_usual_variable() -> None:
    assert provider_of("some-new.ai").keys == ("SOME_NEW_AI_API_KEY",)
    assert provider_of("vertex_ai-anthropic_models") is PROVIDERS["vertex_ai"]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("gpt-4o", "openai/gpt-4o"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("ollama/qwen3", "ollama_chat/qwen3"),
        ("together/meta-llama/x", "together_ai/meta-llama/x"),
        ("google/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
    ],
)
def test_names_litellm_knows(model: str, name: str) -> None:
    environ = {key: "x" for provider in PROVIDERS.values() for key in provider.keys}

    assert router(environ).route(model).parameters["model"] == name


def test_an_own_server_needs_no_key() -> None:
    models = {"openai/mine": ModelSettings(base_url="http://localhost:8080/v1/")}
    route = router({}, models=models).route("openai/mine")

    assert route.call() == {"model": "openai/mine", "api_base": "http://localhost:8080/v1", "api_key": NO_KEY}
    assert route.target.address == "localhost:8080"


def test_ollama_is_told_the_window() -> None:
    models = {"ollama/qwen3": ModelSettings(context_window=16_384)}
    route = router({}, models=models).route("ollama/qwen3")

    assert route.parameters["num_ctx"] == 16_384
    assert route.parameters["api_base"] == "http://127.0.0.1:11434"


def test_cloud_parameters_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    providers = {"groq": ProviderSettings(api_key_env="TEAM_GROQ")}

    with pytest.raises(ModelError, match="set TEAM_GROQ"):
        router({}, providers=providers).route("groq/x")


def test_a_call_without_text_has_no_content() -> None:
    message = Message("assistant", tool_calls=(RequestToolCall("c", "ls", "{}"),))
    request = ModelRequest("openai/gpt-4o", (message,))

    (wire,) = build_messages(request, router({"OPENAI_API_KEY": "x"}).route(request.model))

    assert wire["content"] is None
    assert wire["tool_calls"][0]["function"] == {"name": "ls", "arguments": "{}"}


def test_a_lost_image_is_said_to_be_lost() -> None:
    request = ModelRequest("openai/gpt-4o", (Message("user", (ImageRef("gone", "image/png"),)),))

    (wire,) = build_messages(request, router({"OPENAI_API_KEY": "x"}).route(request.model))

    assert wire["content"] == "[image: no longer available]"


def test_reasoning_that_cannot_be_read_is_left_out() -> None:
    message = Message("assistant", (ContentText("x"),), reasoning=("not json", "[]", '{"thinking_blocks": 5}'))
    request = ModelRequest("anthropic/claude-sonnet-4-5", (message,))

    (wire,) = build_messages(request, router({"ANTHROPIC_API_KEY": "x"}).route(request.model))

    assert wire == {"role": "assistant", "content": [{"type": "text", "text": "x"}]}


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5"])
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

    with_marks = build_messages(marked, route)
    assert "cache_control" in json.dumps(with_marks)
    assert unmarked(with_marks) == build_messages(ModelRequest(model, messages), route)


def test_plain_reasoning_goes_back_to_those_who_want_it() -> None:
    blob = json.dumps({"reasoning_content": "hm"})
    message = Message("assistant", (ContentText("x"),), reasoning=(blob,))
    environ = {"DEEPSEEK_API_KEY": "x", "MISTRAL_API_KEY": "x"}

    def wire(model: str) -> dict[str, object]:
        return build_messages(ModelRequest(model, (message,)), router(environ).route(model))[0]

    assert wire("deepseek/deepseek-reasoner")["reasoning_content"] == "hm"
    assert "reasoning_content" not in wire("mistral/magistral-medium-latest")


def test_the_same_request_gives_the_same_call() -> None:
    request = ModelRequest("openai/gpt-4o", (Message("user", (ContentText("hi"),)),), max_output_tokens=5)
    route = router({"OPENAI_API_KEY": "x"}).route(request.model)

    assert json.dumps(build_call(request, route)) == json.dumps(build_call(request, route))


@pytest.mark.parametrize(
    "text",
    [
        "key sk-ant-api03-abcdefghijklmnop wrong",
        "Authorization: Bearer abcdefgh12345678",
        '{"api_key": "abcdefgh"}',
        "x-api-key: abcdefgh",
        "https://host/path?key=abcdefgh&x=1",
        "https://user:abcdefgh@host/",
        "AIzaSyabcdefghijklmnopqrstuvwxyz",
        "AKIAABCDEFGHIJKLMNOP",
        "aws_secret_access_key=abcdefgh/1",
    ],
)
def test_secrets_are_taken_out(text: str) -> None:
    cleaned = redact(text)

    assert "abcdefgh" not in cleaned.lower()
    assert "[redacted]" in cleaned
    assert redact(cleaned) == cleaned


def test_known_secrets_and_plain_words() -> None:
    assert redact("the hunter22 key", ["hunter22"]) == "the [redacted] key"
    assert redact("the basics of tokens: skip api keys, 12 tokens") == "the basics of tokens: skip api keys, 12 tokens"
