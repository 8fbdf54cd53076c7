"""Writes the table of providers in docs/models.md from the program's own: ``python scripts/provider_table.py``."""

from pathlib import Path

from tui_agent.model.providers import PROVIDERS, Provider

DOCUMENT = Path(__file__).parents[1] / "docs" / "models.md"
BEGIN, END = "<!-- providers: written by scripts/provider_table.py -->\n", "<!-- end of providers -->\n"

_FORMATS = {
    "chat": "chat completions",
    "responses": "Responses",
    "messages": "Messages",
    "gemini": "generateContent",
    "ollama": "Ollama's own",
    None: "litellm",
}


def table() -> str:
    """Return the table as Markdown."""
    head = "| models | provider | key | address | format |\n|---|---|---|---|---|\n"
    return head + "".join(map(_row, PROVIDERS.values()))


def _row(provider: Provider) -> str:
    keys = _or(provider.keys)
    if provider.local_url is not None:
        keys = "none needed"
    parameters = [variables[0] for name, variables in provider.variables.items() if name in provider.required]
    if parameters:
        keys = " and ".join(filter(None, [keys, *(f"`{name}`" for name in parameters)]))
    address = _or(provider.url_variables) if provider.wire is not None else ""
    if provider.local_url is not None:
        address = f"`{provider.local_url.removeprefix('http://')}` or {address}"
    formats = [_FORMATS[wire] for wire in dict.fromkeys((provider.wire, *(wire for _pattern, wire in provider.wires)))]
    return f"| `{provider.id}/…` | {provider.name} | {keys} | {address} | {', '.join(formats)} |\n"


def _or(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def written(text: str) -> str:
    """Return the document with the table as it should be."""
    before, _begin, rest = text.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
