"""The tools never wait on the event loop and load nothing heavy."""

import subprocess
import sys

FORBIDDEN = ("litellm", "textual", "tiktoken", "httpx", "pathspec")


def test_tools_load_without_heavy_modules() -> None:
    code = (
        "import sys; from tui_agent.tools.registry import builtin_tools; builtin_tools(); "
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
