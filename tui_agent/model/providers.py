"""Each provider's address, format, key sources and differences from the format."""

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
"""The formats spoken without a library: chat completions, OpenAI's Responses, Anthropic's, Google's
and Ollama's."""

Parameters = dict[str, tuple[str, ...]]
"""Parameters of litellm and the environment variables, in order, that they come from."""

EffortField = Literal[
    "reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template", "none"
]
"""How a chat format says how much to think.

``reasoning_effort``: OpenAI's field. ``reasoning``: OpenRouter's object with effort. ``thinking``: an object whose type
is enabled or disabled, and OpenAI's field beside it. ``enable_thinking``: a switch. ``chat_template``: the switch among
the arguments of the model's chat template, and OpenAI's field beside it.
"""

ReasoningBack = Literal[
    "none", "reasoning_content", "reasoning", "details", "as_received", "with_tags"
]
"""In what field a model's reasoning goes back with its answer.

``details`` are OpenRouter's ``reasoning_details`` as they came. ``as_received`` is the field it came in; ``with_tags``
also the tags in the text, where it came in those.
"""

LEVELS: Mapping[Effort, str] = {
    Effort.OFF: "none",
    Effort.MINIMAL: "low",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.MAX: "high",
}
"""Names of levels that every server with ``reasoning_effort`` takes."""

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
"""OpenAI's models that think, whatever number the next has, and deployments named after them: all have Responses.

Models called chat, and those that hear and draw, stay with chat completions.
"""

_TO_MAX: Mapping[Effort, str] = {**LEVELS, Effort.MAX: "max"}

OWN_SERVER_PICTURES = _PNG_OR_JPEG
"""The pictures that every model server of one's own takes: llama.cpp reads no WebP."""

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
    """How a provider's chat completions differ from most.

    Sources are the providers' API references.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    effort: EffortField = "reasoning_effort"
    levels: Mapping[Effort, str] = field(default_factory=lambda: LEVELS)
    """Its names for the levels of effort."""
    thinking: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the object ``thinking``, where that carries the effort."""
    reasoning_back: ReasoningBack = "none"
    reasoning_required: bool = False
    """Refuses calls of tools that come back without any reasoning."""
    reasoning_apart: str = ""
    """Pattern of the models whose reasoning is counted beside their output instead of within it."""
    cache_key: str = ""
    """The field that takes the session's id, so that its requests meet the same cache; "" where
    there is none."""
    cache_key_header: str = ""
    """Header that takes the session's id as a cache key; "" if there is none."""
    asks_for_usage: bool = True
    """Takes ``stream_options``, without which most report no usage."""
    prompt_progress: bool = False
    """May take llama.cpp's ``return_progress``; other servers of one's own pass it over."""
    call_id_chars: int = 0
    """The longest id of a call it takes, 0 for any; nine are letters and digits only."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Sent with every request."""


@frozen
class MessagesFormat:
    """How a provider's Anthropic messages differ."""

    betas: bool = False
    """Takes Anthropic's beta headers and the fields that go with them."""
    compacts: bool = False
    """Can compact a conversation into a signed block on request."""
    searches: bool = False
    """Has a tool that searches the web at the provider."""


@frozen
class ResponsesFormat:
    """Extensions of a provider's Responses to the format itself.

    Sources are the providers' API references.
    """

    thinking: str = ""
    """Pattern of the models that think, known to the catalog or not; they hand out their reasoning
    encrypted."""
    summary: str = ""
    """How detailed a summary of the reasoning is asked for; "" where one comes unasked."""
    system: Literal["system", "developer", "instructions"] = "system"
    """Whose message the prompt's head is, or that it is a field beside the messages."""
    cache_key: bool = False
    """Takes the session's id, so that its requests meet the same cache."""
    images_in_results: bool = False
    """Takes images in a tool's result."""
    compacts: bool = False
    """Has ``/responses/compact``, which makes one opaque item of a conversation."""
    searches: bool = False
    """Has a tool that searches the web at the provider."""


@frozen
class Endpoint:
    """Where requests are posted: the base of a wire's path, and the query."""

    url: str
    query: Mapping[str, str] = field(default_factory=dict)


@frozen
class SignIn:
    """Browser sign-in of a provider that gives any program a lasting key of the user's."""

    exchange: str
    """Where the code that the browser brings is exchanged."""
    page: str
    """The page where the user agrees."""
    key_prefix: str
    """The beginning of the provider's keys, so that a pasted key is not taken for a code."""


@frozen
class Provider:
    """A provider.

    ``keys`` are variables with its key, alternatives; a provider without any needs no key.

    ``parameters`` are its other variables, by litellm's names; ``required`` names those without
    which nothing works: one of these, or ``api_base`` where it has no address of its own.
    """

    id: str
    name: str
    keys: tuple[str, ...] = ()
    parameters: Parameters = field(default_factory=dict)
    required: tuple[str, ...] = ()
    local_url: str | None = None
    """Where a server on this machine usually listens."""
    wire: WireName | None = None
    """The format it is spoken to in; None goes through litellm."""
    wires: tuple[tuple[str, WireName], ...] = ()
    """Patterns of model names that are spoken to in another; the first that matches counts."""
    url: str = ""
    """Base URL, including the API version if the provider has one."""
    url_variables: tuple[str, ...] = ()
    """Environment variables with another address, in order."""
    auth: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"] = "bearer"
    """How the key is sent."""
    bearer_keys: tuple[str, ...] = ()
    """Variables in ``keys`` whose keys are sent as bearer tokens, whatever ``auth`` says."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request."""
    chat: ChatFormat = ChatFormat()
    chat_elsewhere: ChatFormat | None = None
    """Chat completions of a server at another address, but for models with the provider's own
    names."""
    own_names: str = ""
    """Pattern of the names the provider gives its models."""
    responses: ResponsesFormat = ResponsesFormat()
    messages: MessagesFormat = MessagesFormat()
    address: Callable[[str, str, WireName, Mapping[str, str]], Endpoint] | None = None
    """Makes an address from url, model, format and parameters, where it is not the same for all
    models."""
    model_name: Callable[[str], str] | None = None
    """Makes the name the provider knows a model by, where it is not the text behind the slash."""
    empty_body_is_overflow: bool = False
    lists_models: bool = False
    """Its list of models says windows and prices, of many more than any file knows."""
    keys_page: str = ""
    """URL of the page where users create keys."""
    key_path: str = "/models"
    """A path that needs a key and costs nothing: by it a key is tried."""
    pictures: PictureLimits = STANDARD
    """Limits of the pictures the provider accepts."""
    documents: bool = False
    """It takes PDFs as they are, in other formats than chat completions."""
    sign_in: SignIn | None = None
    """How its users sign in instead of pasting a key; None where that is not offered to other
    programs."""
    sign_in_note: str = ""
    """Sentence that tells users of this provider how to sign in."""
    account: tuple[str, str, str] = ("", "", "")
    """A header that names the account, and where a token (RFC 7519) says it: a claim and its
    field."""

    def key_header(self, key: str, *, bearer: bool = False) -> dict[str, str]:
        """Return the headers with a key. ``bearer``: send it as a bearer token whatever ``auth`` says."""
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
    """Return a signed token's claims, unproven; nothing of one that is no such token."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    except (ValueError, IndexError):
        return {}
    return as_dict(claims)


def _azure(url: str, name: str, wire: WireName, parameters: Mapping[str, str]) -> Endpoint:
    """Azure: one address for all deployments since 2025, and dated ones for each deployment."""
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
    # Responses never stand below a deployment.
    return Endpoint(f"{url}/openai/v1", {"api-version": version} if version and not dated else {})


def _hugging_face(name: str) -> str:
    """Return ``org/model:provider`` for ``provider/org/model``."""
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
    levels={**LEVELS, Effort.MINIMAL: "minimal", Effort.MAX: "xhigh"},
    cache_key="prompt_cache_key",
    call_id_chars=40,
)
_THINKING_BACK = ChatFormat(effort="thinking", levels=_TO_MAX, reasoning_back="reasoning_content")
_OWN_SERVER = ChatFormat(reasoning_back="as_received", prompt_progress=True)
"""Templates of models that think between calls of tools want it back; others leave it out."""
_MISTRAL = ChatFormat(
    levels={**dict.fromkeys(Effort, "high"), Effort.OFF: "none"},
    asks_for_usage=False,
    call_id_chars=9,
)


def _chat(id: str, name: str, url: str, *keys: str, **fields: Any) -> Provider:  # noqa: A002 - as the field's name
    """Return a provider of chat completions; a variable ``<ID>_API_BASE`` names another address."""
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
        sign_in_note="Claude subscriptions are for Anthropic's own programs; here Anthropic takes keys only.",
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
        # It advises keeping reasoning of earlier turns for coding; that keeps its cache.
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
    """Return the provider of a name; an unknown one gets the key variable ``<NAME>_API_KEY``."""
    if name.startswith("vertex_ai-"):
        name = name.partition("-")[0]
    name = _ALIASES.get(name, name)
    known = PROVIDERS.get(name)
    if known is not None:
        return known
    variable = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
    return Provider(name, name.replace("_", " ").title(), (f"{variable}_API_KEY",))
