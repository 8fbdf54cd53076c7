"""The program ends though a thread goes on."""

import subprocess
import sys

ENDLESS = """
import asyncio, atexit, threading
from tui_agent.cli.ending import leave, run_to_end

async def work():
    going = asyncio.Event()
    loop = asyncio.get_running_loop()
    def compute():
        loop.call_soon_threadsafe(going.set)
        threading.Event().wait()
    asyncio.ensure_future(asyncio.to_thread(compute))
    await going.wait()
    return 3

atexit.register(print, "cleaned up")
leave(run_to_end(work()))
"""


def test_a_thread_that_goes_on_does_not_hold_the_program() -> None:
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "cleaned up\n", "")
