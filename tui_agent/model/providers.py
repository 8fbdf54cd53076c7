"""What is particular to each provider: its name for people, where its key comes from, what its format takes."""

from dataclasses import dataclass, field

Parameters = dict[str, tuple[str, ...]]
"""Parameters of litellm and the environment variables, in order, that they come from."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider as litellm names it. ``keys`` are alternatives; a provider without any needs no key.

    ``parameters`` are sent besides the key; ``required`` names those without which nothing works.
    """

    id: str
    name: str
    keys: tuple[str, ...] = ()
    parameters: Parameters = field(default_factory=dict)
    required: tuple[str, ...] = ()
    local_url: str | None = None
    takes_reasoning_content: bool = False
    """Wants a model's plain reasoning back with its answer; others refuse the field."""
    empty_body_is_overflow: bool = False


_AWS: Parameters = {
    "aws_access_key_id": ("AWS_ACCESS_KEY_ID",),
    "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "aws_session_token": ("AWS_SESSION_TOKEN",),
    "aws_region_name": ("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION"),
    "aws_profile_name": ("AWS_PROFILE", "AWS_PROFILE_NAME"),
}

_TABLE = (
    Provider("anthropic", "Anthropic", ("ANTHROPIC_API_KEY",)),
    Provider("openai", "OpenAI", ("OPENAI_API_KEY",), {"organization": ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID")}),
    Provider("gemini", "Google Gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
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
    Provider("bedrock", "Amazon Bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), _AWS, ("aws_region_name",)),
    Provider(
        "azure",
        "Azure OpenAI",
        ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        {
            "api_base": ("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"),
            "api_version": ("AZURE_API_VERSION", "OPENAI_API_VERSION"),
        },
        ("api_base",),
    ),
    Provider("azure_ai", "Azure AI", ("AZURE_AI_API_KEY",), {"api_base": ("AZURE_AI_API_BASE",)}, ("api_base",)),
    Provider("openrouter", "OpenRouter", ("OPENROUTER_API_KEY",)),
    Provider("mistral", "Mistral", ("MISTRAL_API_KEY",)),
    Provider("codestral", "Codestral", ("CODESTRAL_API_KEY",)),
    Provider("groq", "Groq", ("GROQ_API_KEY",)),
    Provider("deepseek", "DeepSeek", ("DEEPSEEK_API_KEY",), takes_reasoning_content=True),
    Provider("xai", "xAI", ("XAI_API_KEY",)),
    Provider("together_ai", "Together AI", ("TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", "Fireworks AI", ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY")),
    Provider("cerebras", "Cerebras", ("CEREBRAS_API_KEY",), empty_body_is_overflow=True),
    Provider("cohere", "Cohere", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("moonshot", "Moonshot AI", ("MOONSHOT_API_KEY",), takes_reasoning_content=True),
    Provider("minimax", "MiniMax", ("MINIMAX_API_KEY",), takes_reasoning_content=True),
    Provider("zai", "Z.ai", ("ZAI_API_KEY",), takes_reasoning_content=True),
    Provider("xiaomi_mimo", "Xiaomi MiMo", ("XIAOMI_MIMO_API_KEY",), takes_reasoning_content=True),
    Provider("dashscope", "Alibaba DashScope", ("DASHSCOPE_API_KEY",)),
    Provider("perplexity", "Perplexity", ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY")),
    Provider("deepinfra", "DeepInfra", ("DEEPINFRA_API_KEY",)),
    Provider("nebius", "Nebius", ("NEBIUS_API_KEY",)),
    Provider("novita", "Novita", ("NOVITA_API_KEY",)),
    Provider("hyperbolic", "Hyperbolic", ("HYPERBOLIC_API_KEY",)),
    Provider("sambanova", "SambaNova", ("SAMBANOVA_API_KEY",)),
    Provider("nvidia_nim", "NVIDIA NIM", ("NVIDIA_NIM_API_KEY", "NVIDIA_API_KEY")),
    Provider("huggingface", "Hugging Face", ("HF_TOKEN", "HUGGINGFACE_API_KEY")),
    Provider("vercel_ai_gateway", "Vercel AI Gateway", ("VERCEL_AI_GATEWAY_API_KEY", "AI_GATEWAY_API_KEY")),
    Provider(
        "databricks",
        "Databricks",
        ("DATABRICKS_API_KEY", "DATABRICKS_TOKEN"),
        {"api_base": ("DATABRICKS_API_BASE",)},
        ("api_base",),
    ),
    Provider(
        "cloudflare",
        "Cloudflare Workers AI",
        ("CLOUDFLARE_API_KEY",),
        {"account_id": ("CLOUDFLARE_ACCOUNT_ID",)},
    ),
    Provider("litellm_proxy", "LiteLLM proxy", ("LITELLM_PROXY_API_KEY",), {"api_base": ("LITELLM_PROXY_API_BASE",)}),
    Provider("ollama", "Ollama", parameters={"api_base": ("OLLAMA_API_BASE",)}, local_url="http://127.0.0.1:11434"),
    Provider(
        "lm_studio", "LM Studio", parameters={"api_base": ("LM_STUDIO_API_BASE",)}, local_url="http://127.0.0.1:1234/v1"
    ),
    Provider(
        "hosted_vllm", "vLLM", parameters={"api_base": ("HOSTED_VLLM_API_BASE",)}, local_url="http://127.0.0.1:8000/v1"
    ),
    Provider(
        "llamafile", "llamafile", parameters={"api_base": ("LLAMAFILE_API_BASE",)}, local_url="http://127.0.0.1:8080/v1"
    ),
)

PROVIDERS = {provider.id: provider for provider in _TABLE}

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


def provider_of(name: str) -> Provider:
    """Return the provider of a name; an unknown one is assumed to take ``<NAME>_API_KEY``, as most do."""
    name = name.partition("-")[0] if name.startswith("vertex_ai-") else name
    name = _ALIASES.get(name, name)
    known = PROVIDERS.get(name)
    if known is not None:
        return known
    variable = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
    return Provider(name, name.replace("_", " ").title(), (f"{variable}_API_KEY",))
