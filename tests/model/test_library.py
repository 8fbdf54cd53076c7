"""litellm as the host loads it."""

import subprocess
import sys

LOADED = """
import os, sys
os.environ["OPENAI_API_KEY"] = "not to be used"
from tui_agent.model.hosted.library import load
litellm = load()
import tiktoken.registry
assert not tiktoken.registry.ENCODINGS, "an encoding was loaded"
assert len(litellm.model_cost) > 1000
assert litellm.num_retries == 0 and litellm.REPEATED_STREAMING_CHUNK_LIMIT > 1_000_000
"""


def test_litellm_comes_quietly_and_without_a_tokenizer() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADED], capture_output=True, text=True, check=False, timeout=500
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
