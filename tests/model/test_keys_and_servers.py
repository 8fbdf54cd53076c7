"""A key is sent only to a server that it belongs to."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from tui_agent.model.addresses import Addresses, is_same_server
from tui_agent.model.catalog import Catalog
from tui_agent.model.discovery import servers
from tui_agent.model.errors import Failure, classify
from tui_agent.model.keys import Keys
from tui_agent.model.protocol import ModelError
from tui_agent.model.providers import PROVIDERS, provider_of
from tui_agent.model.route import Route, Router
from tui_agent.model.settings import ModelSettings, ProviderSettings

OF_MODEL = "http://model.example:8080/v1"
OF_PROVIDER = "https://provider.example/v1"
OF_ENVIRONMENT = "https://environment.example/v1"

WIRES = ("chat", "responses", "messages", "gemini", "ollama", "litellm", None)


class Setup:
    """Settings and environment with keys and addresses in the given places."""

    def __init__(
        self, provider: str, keys: frozenset[str], addresses: frozenset[str], wire: object = None
    ) -> None:
        self.provider = provider_of(provider)
        self.model = f"{self.provider.id}/bench"
        self.environ = {"AWS_REGION": "x", "VERTEXAI_PROJECT": "x"}
        if "environment" in keys:
            self.environ |= dict.fromkeys(self.provider.keys, "secret-of-environment")
        if "environment" in addresses:
            self.environ |= dict.fromkeys(self.provider.url_variables[:1], OF_ENVIRONMENT)
        settings = ModelSettings(
            base_url=OF_MODEL if "model" in addresses else None,
            api_key=SecretStr("secret-of-model") if "model" in keys else None,
            wire=wire,  # type: ignore[arg-type]
        )
        common = ProviderSettings(
            base_url=OF_PROVIDER if "provider" in addresses else None,
            api_key=SecretStr("secret-of-provider") if "provider" in keys else None,
            headers={"x-api-token": "secret-of-header", "x-team": "blue"},
        )
        self.models = {self.model: settings}
        self.providers = {self.provider.id: common}

    def route(self) -> Route:
        catalog = Catalog(models=self.models, providers=self.providers)
        router = Router(catalog, self.environ, models=self.models, providers=self.providers)
        return router.route(self.model)

    def asked(self) -> dict[str, str]:
        """Return what each server that is asked for its models is told, as text."""
        addresses = Addresses(self.environ, self.models, self.providers)
        keys = Keys(self.environ, models=self.models, providers=self.providers)
        found = servers(addresses, keys, [self.model])
        return {server.place.url: str(dict(server.headers)) for server in found}


def may_have(setup: Setup, url: str) -> set[str]:
    """Return the secrets that a server may be sent."""
    allowed = set()
    if url == OF_MODEL:
        allowed.add("secret-of-model")
    else:
        # One of the provider's addresses: a key set for the model is sent there with its requests.
        allowed |= {"secret-of-model", "secret-of-provider", "secret-of-header"}
    if url != OF_MODEL:
        allowed.add("secret-of-environment")
    return allowed


def secrets_in(text: str) -> set[str]:
    names = ("environment", "provider", "model", "header")
    return {f"secret-of-{name}" for name in names if f"secret-of-{name}" in text}


PLACES = st.frozensets(st.sampled_from(("model", "provider", "environment")))


@given(
    provider=st.sampled_from((*PROVIDERS, "mycorp")),
    keys=PLACES,
    addresses=PLACES,
    wire=st.sampled_from(WIRES),
)
def test_no_server_is_sent_the_key_of_another(
    provider: str, keys: frozenset[str], addresses: frozenset[str], wire: object
) -> None:
    setup = Setup(provider, keys, addresses, wire)

    for url, told in setup.asked().items():
        assert secrets_in(told) <= may_have(setup, url)
    try:
        route = setup.route()
    except ModelError:
        return
    place = Addresses(setup.environ, setup.models, setup.providers).of(setup.provider, setup.model)
    told = f"{route.secret_headers()} {route.parameters} {dict(route.headers)}"
    assert secrets_in(told) <= may_have(setup, place.url)


@pytest.mark.parametrize(
    ("provider", "place"),
    [*product(("openai", "anthropic", "gemini"), ("provider", "environment"))],
)
def test_a_key_is_sent_to_the_address_set_beside_it(provider: str, place: str) -> None:
    setup = Setup(provider, frozenset({place}), frozenset({place}))

    assert f"secret-of-{place}" in str(setup.route().secret_headers())


def test_the_settings_may_name_the_variable_for_another_address() -> None:
    environ = {"OPENAI_API_KEY": "sk-1"}
    models = {"openai/bench": ModelSettings(base_url=OF_MODEL, api_key_env="OPENAI_API_KEY")}

    key = Keys(environ, models=models).find(provider_of("openai"), "openai/bench")

    assert key is not None
    assert key.secret.get_secret_value() == "sk-1"


def test_a_refusal_without_a_key_says_what_to_set() -> None:
    setup = Setup("openai", frozenset({"environment"}), frozenset({"model"}))

    error = classify(Failure('{"error": "no key"}', status=401), setup.route().target, now=0)

    assert str(error) == (
        "model.example:8080 needs a key: no key. What to do: set api_key_env = "
        '"OPENAI_API_KEY" under [models."openai/bench"]; otherwise the key in that variable is '
        "sent only to OpenAI's own server."
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://api.openai.com/v1", "https://API.openai.com:443/other", True),
        ("https://api.openai.com/v1", "http://api.openai.com/v1", False),
        ("https://api.openai.com/v1", "https://api.openai.com.evil.example/v1", False),
        ("https://api.openai.com/v1", "https://api.openai.com@evil.example/v1", False),
        ("http://localhost:1", "http://localhost:2", False),
        ("", "", False),
    ],
)
def test_what_is_the_same_server(one: str, other: str, same: bool) -> None:
    assert is_same_server(one, other) is same
