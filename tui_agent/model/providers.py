"""The table of providers with their addresses, API formats, key variables and other differences."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from tui_agent.json_text import as_dict
from tui_agent.lazy import frozen
from tui_agent.pictures import STANDARD, PictureLimits
from tui_agent.session.effort import Effort

WireName = Literal["chat", "responses", "messages", "gemini", "ollama"]
"""The formats that have a module in ``wires``: chat completions, OpenAI's Responses, Anthropic's
Messages, Google's generateContent and Ollama's chat."""

Parameters = dict[str, tuple[str, ...]]
"""The environment variables that can set each parameter, by litellm's name of the parameter. The
first variable that is set is used."""

EffortField = Literal[
    "reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template", "none"
]
"""The field of a chat completions request that carries the effort.

``reasoning_effort`` is OpenAI's field, and ``reasoning`` is OpenRouter's object that contains the
effort. ``thinking`` is an object with the type ``enabled`` or ``disabled``; if it is enabled,
OpenAI's field is sent as well. ``enable_thinking`` is True or False. With ``chat_template``,
``enable_thinking`` is sent among the arguments of the model's chat template; if it is True,
OpenAI's field is sent as well. With ``none``, the effort is never sent.
"""

ReasoningBack = Literal[
    "none", "reasoning_content", "reasoning", "details", "as_received", "with_tags"
]
"""The field in which the reasoning of earlier answers is sent back.

With ``none``, reasoning isn't sent back. ``details`` means OpenRouter's ``reasoning_details``,
unchanged. ``as_received`` means the field in which the reasoning was received; ``with_tags`` means
the same, but reasoning that was received in ``<think>`` tags is put before the answer's text again.
"""

LEVELS: Mapping[Effort, str] = {
    Effort.OFF: "none",
    Effort.MINIMAL: "low",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.XHIGH: "high",
    Effort.MAX: "high",
}
"""Values of ``reasoning_effort`` that every server with this field accepts. The keys are the effort
levels that the values stand for."""

OPENAI_LEVELS: Mapping[Effort, str] = {
    **LEVELS,
    Effort.MINIMAL: "minimal",
    Effort.XHIGH: "xhigh",
    Effort.MAX: "max",
}
"""OpenAI's names for the effort levels. Most of OpenAI's models accept only some of these
levels."""

_PNG_OR_JPEG = PictureLimits(("image/png", "image/jpeg"))

_AWS: Parameters = {
    "aws_access_key_id": ("AWS_ACCESS_KEY_ID",),
    "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "aws_session_token": ("AWS_SESSION_TOKEN",),
    "aws_region_name": ("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION"),
    "aws_profile_name": ("AWS_PROFILE", "AWS_PROFILE_NAME"),
}

_OPENAI_THINKING = (
    r"(?i)^(?!.*(?:-chat|audio|search|realtime|image|tts|transcribe))"
    r"(?:.*[^a-z\d])?(?:gpt-?(?:[5-9]|[12]\d)|o[1-9](?![a-z\d])|codex|computer-use)"
)
"""Matches names of OpenAI's reasoning models, including newer ones and Azure deployments.

Requests to the models that match have the Responses format. Names that contain chat, audio, search,
image or the like don't match, because requests to those models are chat completions.
"""

_TO_MAX: Mapping[Effort, str] = {**LEVELS, Effort.MAX: "max"}

OWN_SERVER_PICTURES = _PNG_OR_JPEG
"""Limits of pictures for the user's own model servers. WebP is left out because llama.cpp can't
read it."""

_ALIASES = {
    "ollama_chat": "ollama",
    "bedrock_converse": "bedrock",
    "bedrock_mantle": "bedrock",
    "cohere_chat": "cohere",
    "vertex_ai_beta": "vertex_ai",
    "google": "gemini",
    "together": "together_ai",
    "fireworks": "fireworks_ai",
}


@frozen
class ChatFormat:
    """A provider's variant of chat completions. The defaults fit most providers.

    Sources are the providers' API references.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The field that limits the answer's length."""
    effort: EffortField = "reasoning_effort"
    levels: Mapping[Effort, str] = field(default_factory=lambda: LEVELS)
    """The provider's names for the effort levels."""
    thinking: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the object ``thinking``, for providers where it carries the effort."""
    reasoning_back: ReasoningBack = "none"
    reasoning_required: bool = False
    """Whether the provider refuses earlier tool calls that are sent back without reasoning."""
    reasoning_apart: str = ""
    """Pattern of names of models whose ``completion_tokens`` omit reasoning; "" if none do."""
    cache_key: str = ""
    """Field for the session's id, so that its requests reach the same prompt cache; "" if there is
    none."""
    cache_key_header: str = ""
    """Header for the session's id, so that its requests reach the same prompt cache; "" if there is
    none."""
    asks_for_usage: bool = True
    """Whether to send ``stream_options``, without which most providers report no usage."""
    prompt_progress: bool = False
    """Whether to send llama.cpp's ``return_progress``; other model servers ignore it."""
    call_id_chars: int = 0
    """Length, in characters, of the longest call id that the provider accepts; 0 for any length. If
    it is 9, ids must have exactly nine letters and digits."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the request's body, which are sent with every request."""


@frozen
class MessagesFormat:
    """A provider's extensions of Anthropic's Messages format."""

    betas: bool = False
    """Whether the provider accepts Anthropic's beta headers and the fields that they enable."""
    compacts: bool = False
    """Whether the provider can compact a conversation into a signed block on request."""
    searches: bool = False
    """Whether the provider itself runs a web search tool."""


@frozen
class ResponsesFormat:
    """A provider's extensions of the Responses format.

    Sources are the providers' API references.
    """

    thinking: str = ""
    """Pattern of names of models that return encrypted reasoning, even if the catalog doesn't know
    them; "" if the provider has no such models."""
    summary: str = ""
    """Value of ``reasoning.summary`` to send; "" if the provider sends a summary unasked."""
    system: Literal["system", "developer", "instructions"] = "system"
    """Role of the message with the system text. With ``instructions``, the text is sent in the
    field of this name instead."""
    cache_key: bool = False
    """Whether to send the session's id, so that its requests reach the same prompt cache."""
    images_in_results: bool = False
    """Whether the provider accepts images in a tool's result."""
    compacts: bool = False
    """Whether the provider has ``/responses/compact``, which turns a conversation into one opaque
    item."""
    searches: bool = False
    """Whether the provider itself runs a web search tool."""


@frozen
class Endpoint:
    """The URL to which a wire's path is appended, and the query parameters of every request."""

    url: str
    query: Mapping[str, str] = field(default_factory=dict)


@frozen
class SignIn:
    """URLs for the browser sign-in of a provider that issues keys to any program (OAuth PKCE)."""

    exchange: str
    """URL that exchanges the code from the browser for a key."""
    page: str
    """URL of the page on which the user agrees to the sign-in."""
    key_prefix: str
    """The beginning of the provider's keys. It tells a pasted key from a pasted sign-in code."""


@frozen
class Provider:
    """A provider of models: how to reach it, and its variants of the formats."""

    id: str
    """The prefix of the provider's model ids, such as ``openai``."""
    name: str
    """The name by which screens and messages call the provider."""
    keys: tuple[str, ...] = ()
    """Environment variables for the API key; the first that is set is used. It is empty if no key
    is needed."""
    parameters: Parameters = field(default_factory=dict)
    """The provider's other environment variables, by the name that litellm uses for the
    parameter."""
    required: tuple[str, ...] = ()
    """Names of the parameters that must be set. ``api_base`` is one of them if the provider has no
    fixed address."""
    local_url: str | None = None
    """Usual base URL if the provider is a server on this machine; None for a provider on the
    internet."""
    wire: WireName | None = None
    """The usual format of requests; None if they go through litellm."""
    wires: tuple[tuple[str, WireName], ...] = ()
    """Exceptions to the format ``wire``, as patterns of model names with their formats. The first
    match is used."""
    url: str = ""
    """Base URL, including the API version if the provider has one."""
    url_variables: tuple[str, ...] = ()
    """Environment variables that replace ``url``. The first variable that is set is used."""
    auth: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"] = "bearer"
    """How the key is sent: "bearer" for a bearer token; otherwise the name of the header for the
    key."""
    bearer_keys: tuple[str, ...] = ()
    """Variables in ``keys`` whose keys are sent as bearer tokens, whatever ``auth`` says."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """HTTP headers that are sent with every request."""
    chat: ChatFormat = ChatFormat()
    chat_elsewhere: ChatFormat | None = None
    """The format's variant that replaces ``chat`` at an address set by the user, except for models
    with the provider's own names. It is None if ``chat`` is used there, too."""
    own_names: str = ""
    """Pattern that the names of the provider's own models match."""
    responses: ResponsesFormat = ResponsesFormat()
    messages: MessagesFormat = MessagesFormat()
    address: Callable[[str, str, WireName, Mapping[str, str]], Endpoint] | None = None
    """Returns the endpoint for a base URL, a model name, a format and the parameters. It is None if
    the base URL is the endpoint for all models."""
    model_name: Callable[[str], str] | None = None
    """Returns the provider's name for a model, given the part of the model's id after the slash. It
    is None if both are the same."""
    empty_body_is_overflow: bool = False
    """Whether status 400 with an empty body means that the request is too long."""
    lists_models: bool = False
    """Whether to request the provider's list of models, which states the windows and prices of
    many."""
    keys_page: str = ""
    """URL of the page where users create keys."""
    key_path: str = "/models"
    """Path of a free GET request that tests a key. It is appended to the base URL."""
    pictures: PictureLimits = STANDARD
    """Limits of the pictures that the provider accepts, such as their size."""
    documents: bool = False
    """Whether the provider accepts PDF files unchanged. Chat completions ignore this field."""
    sign_in: SignIn | None = None
    """URLs of the provider's browser sign-in; None if other programs can't use it."""
    sign_in_note: str = ""
    """Note about signing in that the login page shows; "" for none."""
    account: tuple[str, str, str] = ("", "", "")
    """(header, claim, field), that is, the header that carries the account's id, and the claim and
    the field in which the id is found in the key, a JSON Web Token (RFC 7519). The strings are
    empty if there is no such header."""

    def key_header(self, key: str, *, bearer: bool = False) -> dict[str, str]:
        """Return the header with the key and, if there is one, the header with the account's id.

        With ``bearer``, the key is sent as a bearer token, whatever ``auth`` says.
        """
        header, claim, name = self.account
        claims = None
        if header:
            claims = claims_of(key).get(claim)
        account = {}
        if isinstance(claims, dict) and name in claims:
            account = {header: str(claims[name])}
        if bearer or self.auth == "bearer":
            return {"authorization": f"Bearer {key}", **account}
        return {self.auth: key, **account}

    @property
    def variables(self) -> Parameters:
        return {
            **self.parameters,
            **({"api_base": self.url_variables} if self.url_variables else {}),
        }

    def wire_of(self, name: str) -> WireName | None:
        return next((wire for pattern, wire in self.wires if re.search(pattern, name)), self.wire)


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JSON Web Token without checking its signature; {} for other texts."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    except (ValueError, IndexError):
        return {}
    return as_dict(claims)


def _azure(url: str, name: str, wire: WireName, parameters: Mapping[str, str]) -> Endpoint:
    """Return the endpoint for a model at an Azure address.

    A dated ``api_version`` with chat completions needs a path for each deployment; otherwise the
    path is ``/openai/v1``, which all deployments have shared since 2025. A URL that already
    contains ``/openai/`` stays as it is.
    """
    url = url.rstrip("/")
    version = parameters.get("api_version", "")
    dated = version[:2].isdigit()
    if "/openai/" in url:
        return Endpoint(
            url, {"api-version": version} if version and not (dated and url.endswith("/v1")) else {}
        )
    url = url.removesuffix("/openai")
    if dated and wire == "chat":
        return Endpoint(f"{url}/openai/deployments/{name}", {"api-version": version})
    # The Responses format has no path for each deployment.
    return Endpoint(f"{url}/openai/v1", {"api-version": version} if version and not dated else {})


def _hugging_face(name: str) -> str:
    """Return ``org/model:provider`` for ``provider/org/model``, and any other name unchanged."""
    provider, slash, model = name.partition("/")
    if slash and "/" in model:
        return f"{model}:{provider}"
    return name


_OPENAI_RESPONSES = ResponsesFormat(
    thinking=_OPENAI_THINKING,
    summary="auto",
    system="developer",
    cache_key=True,
    images_in_results=True,
    compacts=True,
)

_OPENAI_CHAT = ChatFormat(
    max_tokens="max_completion_tokens",
    levels={**OPENAI_LEVELS, Effort.MAX: "xhigh"},
    cache_key="prompt_cache_key",
    call_id_chars=40,
)
_THINKING_BACK = ChatFormat(effort="thinking", levels=_TO_MAX, reasoning_back="reasoning_content")
_OWN_SERVER = ChatFormat(reasoning_back="as_received", prompt_progress=True)
"""Variant for the user's own model servers and proxies. Reasoning is sent back because the chat
templates of models that think between tool calls need it; others ignore it."""
_NO_NAME = r"(?!)"
"""Pattern that matches no name."""
_MISTRAL = ChatFormat(
    levels={**dict.fromkeys(Effort, "high"), Effort.OFF: "none"},
    asks_for_usage=False,
    call_id_chars=9,
)


def _chat(id: str, name: str, url: str, *keys: str, **fields: Any) -> Provider:  # noqa: A002 - as the field's name
    """Return a provider that uses chat completions.

    Unless ``fields`` says otherwise, the variable ``<ID>_API_BASE`` replaces the provider's
    address.
    """
    return Provider(
        id,
        name,
        keys,
        **{"wire": "chat", "url": url, "url_variables": (f"{id.upper()}_API_BASE",)} | fields,
    )


_TABLE = (
    Provider(
        "anthropic",
        "Anthropic",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        keys_page="https://platform.claude.com/settings/keys",
        sign_in_note="Claude subscriptions are for Anthropic's own programs; here Anthropic accepts only API keys.",
        bearer_keys=("ANTHROPIC_AUTH_TOKEN",),
        messages=MessagesFormat(betas=True, compacts=True, searches=True),
        documents=True,
        wire="messages",
        url="https://api.anthropic.com/v1",
        url_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
        auth="x-api-key",
    ),
    Provider(
        "openai",
        "OpenAI",
        ("OPENAI_API_KEY",),
        {"organization": ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID")},
        keys_page="https://platform.openai.com/api-keys",
        wire="chat",
        url="https://api.openai.com/v1",
        wires=((_OPENAI_THINKING, "responses"),),
        url_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        responses=replace(_OPENAI_RESPONSES, searches=True),
        documents=True,
        chat=_OPENAI_CHAT,
        chat_elsewhere=_OWN_SERVER,
        own_names=r"(?i)^(?:gpt-\d|chatgpt|o\d|codex|computer-use)",
    ),
    Provider(
        "gemini",
        "Google Gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        keys_page="https://aistudio.google.com/apikey",
        wire="gemini",
        url="https://generativelanguage.googleapis.com/v1beta",
        url_variables=("GEMINI_API_BASE", "GOOGLE_GEMINI_BASE_URL"),
        auth="x-goog-api-key",
        pictures=PictureLimits(("image/png", "image/jpeg", "image/webp")),
        documents=True,
    ),
    Provider(
        "vertex_ai",
        "Google Vertex AI",
        (),
        {
            "vertex_project": ("VERTEXAI_PROJECT", "GOOGLE_CLOUD_PROJECT"),
            "vertex_location": ("VERTEXAI_LOCATION", "GOOGLE_CLOUD_LOCATION"),
            "vertex_credentials": ("VERTEXAI_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS"),
        },
        ("vertex_project",),
    ),
    Provider(
        "bedrock", "Amazon Bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), _AWS, ("aws_region_name",)
    ),
    Provider(
        "azure",
        "Azure OpenAI",
        ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        {"api_version": ("AZURE_API_VERSION", "OPENAI_API_VERSION")},
        ("api_base",),
        wire="chat",
        wires=((_OPENAI_THINKING, "responses"),),
        responses=_OPENAI_RESPONSES,
        url_variables=("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"),
        auth="api-key",
        address=_azure,
        chat=replace(_OPENAI_CHAT, cache_key=""),
    ),
    Provider(
        "azure_ai",
        "Azure AI",
        ("AZURE_AI_API_KEY",),
        required=("api_base",),
        url_variables=("AZURE_AI_API_BASE",),
    ),
    _chat(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        keys_page="https://openrouter.ai/settings/keys",
        key_path="/key",
        sign_in=SignIn(
            page="https://openrouter.ai/auth",
            exchange="https://openrouter.ai/api/v1/auth/keys",
            key_prefix="sk-",
        ),
        lists_models=True,
        chat=ChatFormat(
            effort="reasoning",
            levels=OPENAI_LEVELS,
            reasoning_back="details",
            cache_key="session_id",
            fields={"usage": {"include": True}},
        ),
    ),
    Provider(
        "github_copilot",
        "GitHub Copilot",
        ("COPILOT_GITHUB_TOKEN",),
        keys_page="https://github.com/settings/personal-access-tokens/new (permission “Copilot Requests”)",
        wire="chat",
        url="https://api.githubcopilot.com",
        wires=((r"codex", "responses"),),
        lists_models=True,
        responses=replace(_OPENAI_RESPONSES, compacts=False),
    ),
    Provider(
        "chatgpt",
        "ChatGPT",
        ("CHATGPT_ACCESS_TOKEN",),
        wire="responses",
        url="https://chatgpt.com/backend-api/codex",
        responses=replace(_OPENAI_RESPONSES, system="instructions", compacts=False),
        account=("chatgpt-account-id", "https://api.openai.com/auth", "chatgpt_account_id"),
    ),
    _chat(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        keys_page="https://console.mistral.ai/api-keys",
        chat=_MISTRAL,
    ),
    _chat(
        "codestral",
        "Codestral",
        "https://codestral.mistral.ai/v1",
        "CODESTRAL_API_KEY",
        chat=_MISTRAL,
    ),
    _chat(
        "groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        keys_page="https://console.groq.com/keys",
        chat=ChatFormat(max_tokens="max_completion_tokens"),
        pictures=PictureLimits(bytes=2_900_000),
    ),
    _chat(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
        keys_page="https://platform.deepseek.com/api_keys",
        chat=replace(_THINKING_BACK, reasoning_required=True),
    ),
    Provider(
        "xai",
        "xAI",
        ("XAI_API_KEY",),
        keys_page="https://console.x.ai",
        wire="responses",
        url="https://api.x.ai/v1",
        url_variables=("XAI_API_BASE",),
        responses=ResponsesFormat(
            thinking=r"^grok-(?!.*non-reasoning)(?:[4-9]|\d\d|build|code)",
            cache_key=True,
            compacts=True,
        ),
        chat=ChatFormat(cache_key_header="x-grok-conv-id"),
        pictures=_PNG_OR_JPEG,
    ),
    _chat(
        "together_ai",
        "Together AI",
        "https://api.together.xyz/v1",
        "TOGETHER_AI_API_KEY",
        "TOGETHERAI_API_KEY",
        "TOGETHER_API_KEY",
        keys_page="https://api.together.ai/settings/api-keys",
    ),
    _chat(
        "fireworks_ai",
        "Fireworks AI",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_AI_API_KEY",
        "FIREWORKS_API_KEY",
        url_variables=("FIREWORKS_API_BASE",),
        keys_page="https://app.fireworks.ai/settings/users/api-keys",
        chat=ChatFormat(reasoning_back="reasoning_content"),
        model_name=lambda name: (
            name
            if name.startswith("accounts/") or "#" in name
            else f"accounts/fireworks/models/{name}"
        ),
    ),
    _chat(
        "cerebras",
        "Cerebras",
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
        keys_page="https://cloud.cerebras.ai",
        chat=ChatFormat(max_tokens="max_completion_tokens"),
        empty_body_is_overflow=True,
    ),
    _chat(
        "cohere",
        "Cohere",
        "https://api.cohere.ai/compatibility/v1",
        "COHERE_API_KEY",
        "CO_API_KEY",
        keys_page="https://dashboard.cohere.com/api-keys",
    ),
    _chat(
        "moonshot",
        "Moonshot AI",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        keys_page="https://platform.moonshot.ai/console/api-keys",
        chat=replace(_THINKING_BACK, reasoning_required=True, cache_key="prompt_cache_key"),
    ),
    _chat(
        "minimax",
        "MiniMax",
        "https://api.minimax.io/v1",
        "MINIMAX_API_KEY",
        chat=ChatFormat(effort="none", reasoning_back="with_tags"),
    ),
    _chat(
        "zai",
        "Z.ai",
        "https://api.z.ai/api/paas/v4",
        "ZAI_API_KEY",
        keys_page="https://z.ai/manage-apikey/apikey-list",
        # Z.ai advises keeping the reasoning of earlier turns for coding, which also keeps the cache valid.
        chat=replace(_THINKING_BACK, thinking={"clear_thinking": False}),
        pictures=_PNG_OR_JPEG,
    ),
    _chat(
        "xiaomi_mimo",
        "Xiaomi MiMo",
        "https://api.xiaomimimo.com/v1",
        "XIAOMI_MIMO_API_KEY",
        chat=_THINKING_BACK,
    ),
    _chat(
        "dashscope",
        "Alibaba DashScope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        chat=ChatFormat(effort="enable_thinking"),
    ),
    _chat(
        "perplexity",
        "Perplexity",
        "https://api.perplexity.ai",
        "PERPLEXITYAI_API_KEY",
        "PERPLEXITY_API_KEY",
        keys_page="https://www.perplexity.ai/settings/api",
    ),
    _chat(
        "deepinfra",
        "DeepInfra",
        "https://api.deepinfra.com/v1/openai",
        "DEEPINFRA_API_KEY",
        keys_page="https://deepinfra.com/dash/api_keys",
    ),
    _chat("nebius", "Nebius", "https://api.studio.nebius.ai/v1", "NEBIUS_API_KEY"),
    _chat("novita", "Novita", "https://api.novita.ai/v3/openai", "NOVITA_API_KEY"),
    _chat("hyperbolic", "Hyperbolic", "https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    _chat("sambanova", "SambaNova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    _chat(
        "nvidia_nim",
        "NVIDIA NIM",
        "https://integrate.api.nvidia.com/v1",
        "NVIDIA_NIM_API_KEY",
        "NVIDIA_API_KEY",
        keys_page="https://build.nvidia.com/settings/api-keys",
    ),
    _chat(
        "huggingface",
        "Hugging Face",
        "https://router.huggingface.co/v1",
        "HF_TOKEN",
        "HUGGINGFACE_API_KEY",
        url_variables=("HF_API_BASE",),
        keys_page="https://huggingface.co/settings/tokens",
        model_name=_hugging_face,
    ),
    _chat(
        "vercel_ai_gateway",
        "Vercel AI Gateway",
        "https://ai-gateway.vercel.sh/v1",
        "VERCEL_AI_GATEWAY_API_KEY",
        "AI_GATEWAY_API_KEY",
        keys_page="https://vercel.com/dashboard/ai-gateway/api-keys",
        key_path="/credits",
        lists_models=True,
        chat=ChatFormat(effort="reasoning", reasoning_back="details", reasoning_apart="^google/"),
    ),
    Provider(
        "databricks",
        "Databricks",
        ("DATABRICKS_API_KEY", "DATABRICKS_TOKEN"),
        required=("api_base",),
        url_variables=("DATABRICKS_API_BASE",),
    ),
    Provider(
        "cloudflare",
        "Cloudflare Workers AI",
        ("CLOUDFLARE_API_KEY",),
        {"account_id": ("CLOUDFLARE_ACCOUNT_ID",)},
    ),
    Provider(
        "litellm_proxy",
        "LiteLLM proxy",
        ("LITELLM_PROXY_API_KEY",),
        required=("api_base",),
        wire="chat",
        url_variables=("LITELLM_PROXY_API_BASE",),
        chat=_OWN_SERVER,
    ),
    Provider(
        "ollama",
        "Ollama",
        ("OLLAMA_API_KEY",),
        local_url="http://127.0.0.1:11434",
        wire="ollama",
        url_variables=("OLLAMA_API_BASE",),
    ),
    Provider(
        "lm_studio",
        "LM Studio",
        local_url="http://127.0.0.1:1234/v1",
        wire="chat",
        url_variables=("LM_STUDIO_API_BASE",),
        chat=_OWN_SERVER,
    ),
    Provider(
        "hosted_vllm",
        "vLLM",
        local_url="http://127.0.0.1:8000/v1",
        wire="chat",
        url_variables=("HOSTED_VLLM_API_BASE",),
        chat=replace(_OWN_SERVER, effort="chat_template"),
    ),
    Provider(
        "llamafile",
        "llama.cpp",
        local_url="http://127.0.0.1:8080/v1",
        wire="chat",
        url_variables=("LLAMAFILE_API_BASE",),
        chat=replace(_OWN_SERVER, effort="chat_template"),
    ),
)

PROVIDERS = {provider.id: provider for provider in _TABLE}


def provider_of(name: str) -> Provider:
    """Return the provider with an id or an alias such as ``google``.

    For an unknown name, returns a new provider with the key variable ``<NAME>_API_KEY``. It is
    called through litellm or, if litellm doesn't know it either, as the user's own server.
    """
    if name.startswith("vertex_ai-"):
        name = name.partition("-")[0]
    name = _ALIASES.get(name, name)
    known = PROVIDERS.get(name)
    if known is not None:
        return known
    variable = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
    return Provider(
        name,
        name.replace("_", " ").title(),
        (f"{variable}_API_KEY",),
        chat_elsewhere=_OWN_SERVER,
        own_names=_NO_NAME,
    )
