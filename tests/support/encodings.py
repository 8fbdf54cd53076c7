"""The tokenizers that are loaded, for tests of what loading them costs."""

import tiktoken

from tui_agent.context import tokens


def unload() -> None:
    """Have none loaded, whatever ran before."""
    tokens._loaded.cache_clear()
    tokens._READY.clear()


def loaded(name: str) -> tiktoken.Encoding:
    """Return an encoding as the program puts it together."""
    found = tokens._encoding(name)
    assert found is not None
    return found.encoding
