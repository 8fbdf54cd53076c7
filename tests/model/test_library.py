"""litellm as the host loads it."""

import os
import subprocess
from pathlib import Path

from tui_agent.model.hosted.link import COMMAND

ROOT = Path(__file__).parents[2]

LOADED = """
import os, sys
os.environ["OPENAI_API_KEY"] = "not to be used"
from tui_agent.model.hosted.host import load
litellm = load()
import tiktoken.registry
assert not tiktoken.registry.ENCODINGS, "an encoding was loaded"
assert len(litellm.model_cost) > 1000
assert "OPENAI_BASE_URL" not in os.environ
assert litellm.num_retries == 0 and litellm.REPEATED_STREAMING_CHUNK_LIMIT > 1_000_000
"""


def test_litellm_comes_quietly_without_a_tokenizer_and_not_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "litellm.py").write_text("raise SystemExit('imported from the working directory')")
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=from-dotenv")
    done = subprocess.run(
        [*COMMAND[: COMMAND.index("-m")], "-c", LOADED],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
