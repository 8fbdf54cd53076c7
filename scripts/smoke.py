"""Does what docs/library.md and docs/tools.md say with an installed program: `python scripts/smoke.py PYTHON SCRATCH`.

PYTHON is the interpreter of an environment that has the wheel; of this checkout only the two pages and the example are
used. The model is a script behind a server on 127.0.0.1 that calls the function it is offered and says what came of it.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
TOOL = "count_words"
SENTENCE = "to be or not to be"


class SmokeError(Exception):
    """Something the pages say does not work; the message says what."""


class _Model(BaseHTTPRequestHandler):
    """Calls the tool it is told of once, then repeats its result."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = body["messages"][-1]
        offered = {tool["function"]["name"]: tool["function"] for tool in body.get("tools", [])}
        if last["role"] == "tool":
            delta: dict[str, Any] = {"content": f"It says: {last['content']}"}
        elif TOOL in offered:
            by_path = "path" in offered[TOOL]["parameters"]["properties"]
            arguments = json.dumps({"path": "a.txt"} if by_path else {"text": SENTENCE})
            called = {"name": TOOL, "arguments": arguments}
            delta = {
                "tool_calls": [{"index": 0, "id": "call1", "type": "function", "function": called}]
            }
        else:
            delta = {"content": "Hello."}
        finish = "tool_calls" if "tool_calls" in delta else "stop"
        events = [{"choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]  # fmt: skip
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_what: object) -> None:
        """Say nothing."""


@contextmanager
def scripted_model() -> Iterator[str]:
    """Serve the scripted model while the block runs; gives its base address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def try_documents(python: Path, scratch: Path) -> None:
    """Write the function of docs/tools.md and the programs of docs/library.md into a new directory, and run them.

    Raises:
        SmokeError: one of them fails or does not say what it should.
    """
    place = scratch / "work"
    (place / ".tui-agent" / "tools").mkdir(parents=True)
    (place / "a.txt").write_text(SENTENCE)
    file, program = _block("tools.md"), _block("library.md")
    (place / file.split()[1]).write_text(file)
    (place / "hello.py").write_text(program)
    (place / "word_count.py").write_text(
        (DOCS / "examples" / "library" / "word_count.py").read_text()
    )
    with scripted_model() as url:
        config = scratch / "config"
        config.mkdir()
        table = f'[models."openai/m"]\nbase_url = "{url}"\ncontext_window = 32000\n'
        (config / "config.toml").write_text(f'model = "openai/m"\n{table}')
        for arguments, expected in (
            (("hello.py",), "script"),
            (("word_count.py", "m", url), '"words": 6'),
            (("-m", "tui_agent", "-p", "Count the words of a.txt", "--trust"), '"words": 6'),
            (("-m", "tui_agent", "-p", "/tools", "--trust"), f"{TOOL}: Count the words"),
        ):
            said = _run(python, *arguments, cwd=place, scratch=scratch)
            if expected not in said:
                raise SmokeError(f"{' '.join(arguments)} printed {said[-300:]!r}")


def _block(name: str) -> str:
    return re.findall(
        r"^```python\n(.*?)^```",
        (DOCS / name).read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )[0]


def _run(python: Path, *arguments: str, cwd: Path, scratch: Path) -> str:
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TUI_AGENT_", "XDG_", "PYTHON"))
    }
    env |= {"HOME": str(scratch), "TUI_AGENT_CONFIG_DIR": str(scratch / "config")}
    env |= {"TUI_AGENT_DATA_DIR": str(scratch / "data")}
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    if done.returncode:
        raise SmokeError(f"{' '.join(arguments)}: {(done.stderr or done.stdout)[-500:]}")
    return done.stdout


if __name__ == "__main__":
    try_documents(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
    print("Everything the pages say works.")
