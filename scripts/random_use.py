"""Uses the program at random in a real terminal, against a model provider that misbehaves, and reports what broke.

``python -m scripts.random_use --seed 1 --minutes 5``: keys, clicks, resizes, bursts and pastes; the same seed does the
same. Broken is: the program ends by itself, is not redrawn within a second, does not end on ctrl+q, a traceback or an
internal error on the screen or in the log. Where it is slow, the stacks of all its threads are in the report.

Now and then a sentence is typed into the conversation, after a click, a search, a page, a box or in a question. Broken
is, too: a word of it is neither in the prompt, nor sent, nor the answer to a question on the screen; a request that
nobody asked for.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.support.model_script import Call, Fault, Recorded, Turn, status
from tests.support.model_server import ModelServer
from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import Terminal

FREEZE_SECONDS = 1.0
"""After so much processor time of its own without a redraw the program counts as frozen."""
STACKS = 4
"""How often the stacks of a program that is not redrawn are looked at."""
GIVE_UP = 45.0
"""Seconds without a redraw after which the program is ended."""
END_SECONDS = 3.0
"""How long the program is waited for after each key that may end it."""
MOST_PROBLEMS = 20
"""After so many it is known that something is broken."""

WRITING_SECONDS = 15.0
"""How long a sentence may take from the keys to the screen or the provider; a loaded machine is slow."""
REST_SECONDS = 5.0
"""How long the program may take to handle what came before a sentence."""
RESTING_SECONDS = 0.03
"""Less processor time than this in 0.3 s means that the program has nothing left to handle."""
MAIN = "Compact ]"
"""Words of the main screen that no other page has."""
QUESTION = re.compile(r"\b[a-z1-9]  (?:yes|no|always|run|go|the|keep)\b", re.IGNORECASE)
"""An answer of a question with its key."""

STARTER = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1, file=open(sys.argv.pop(1), "a"), all_threads=True)
from tui_agent.__main__ import main
main()
"""

# -- the provider ---------------------------------------------------------------------------------------------

TABLE = "| a | b | c |\n|---|:-:|--:|\n" + "".join(
    f"| {n} | **{n * n}** | `{n:x}` |\n" for n in range(200)
)
FENCE = (
    "```python\n"
    + "".join(f"def f{n}(x):\n    return x + {n}  # {'-' * (n % 90)}\n" for n in range(300))
    + "```\n"
)
LISTING = "".join(
    f"{'  ' * (n % 7)}- item {n} with [a link](http://127.0.0.1:9/{n})\n" for n in range(400)
)
MARKDOWN = (
    "# Heading\n\nSome *text* with `code`.\n\n> a quote\n> > deeper\n\n1. one\n2. two\n\n---\n\n"
    * 20
)
ODD = (
    "नमस्ते 👩‍👩‍👧‍👦 שלום 日本語 e\u0301 \u202eabc\u202c \u200b \ufeff nul\u0000 \x1b[31mred\x1b[0m \x07 \x9b2J \r o\n"
    * 20
)
WORD = "unbreakable" * 9_000


def tools(*calls: Call, text: str = "I look.") -> Turn:
    return Turn(text, tool_calls=calls)


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


BEHAVIOURS: dict[str, Turn | Callable[[random.Random], Turn]] = {
    "words": Turn("All is well. " * 40),
    "markdown": Turn(MARKDOWN),
    "table": Turn(TABLE),
    "fence": Turn(FENCE, chunks=600),
    "list": Turn(LISTING),
    "odd characters": Turn(ODD),
    "lone surrogate": Turn("broken \ud83d pair", chunks=["broken \ud83d", " pair"]),
    "one long word": Turn(WORD),
    "long line at once": Turn("x, " * 100_000, chunks=1),
    "dribble": Turn("slow " * 30, delay=0.2),
    "late": Turn("sorry", first_delay=4.0),
    "torn": Turn("abc def " * 30, wire_bytes=3),
    "repeats itself": Turn("again and again\n" * 4_000),
    "nothing": Turn(""),
    "reasoning alone": Turn("", reasoning="Let me think. " * 200),
    "reasoning": Turn("Done.", reasoning="Let me think.\n\n" * 300),
    "no usage": Turn("No usage.", usage=None),
    "absurd usage": Turn("Much.", usage={"input": 10**12, "output": -5}),
    "finish length": Turn("cut o", finish="length"),
    "finish filter": Turn("", finish="content_filter"),
    "finish unknown": Turn("who knows", finish="whatever"),
    "reads": tools(Call("read", {"path": "big.txt"}), Call("read", {"path": "long.json"})),
    "greps": tools(Call("grep", {"pattern": "x,|line 9+"}), Call("glob", {"pattern": "**/*"})),
    "edits everything": tools(
        Call("edit", {"path": "long.json", "edits": [{"old": "x,", "new": "x,", "all": True}]})
    ),
    "edits in vain": tools(
        Call("edit", {"path": "big.txt", "edits": [{"old": "not there\n" * 40, "new": "y"}]})
    ),
    "writes": lambda chance: tools(
        Call("write", {"path": f"new{chance.randrange(9)}.txt", "content": "new\n" * 900})
    ),
    "commands": tools(
        bash("seq 1 20000"), bash("printf '\\033[2J\\007\\000x'; head -c 30000 /dev/urandom")
    ),
    "slow command": tools(bash("sleep 3; echo done")),
    "background": tools(Call("bash", {"command": "sleep 20", "background": True})),
    "many calls": tools(*(Call("read", {"path": "big.txt", "limit": n + 1}) for n in range(200))),
    "thousands of calls": tools(*(Call("read", {"path": f"none{n}"}) for n in range(2_000))),
    "unknown tool": tools(Call("teleport", {"to": "the moon"})),
    "bad arguments": tools(
        Call("read", '{"path": '), Call("read", '["big.txt"]'), Call("bash", "null")
    ),
    "same ids": tools(
        Call("read", {"path": "big.txt"}, "c1"),
        Call("read", {"path": "long.json"}, "c1"),
        Call("glob", "{}", ""),
    ),
    "subagent": tools(
        Call("task", {"prompt": "look around", "description": "look", "context": "conversation"})
    ),
    "asks": tools(Call("ask", {"questions": [{"question": "Which?", "options": ["a", "b"]}]})),
    "error 500": status(500, "oh dear"),
    "error 503": status(503, "<html>" + "busy " * 500, body=b"<html>busy</html>"),
    "error 429": status(429, "slow down", retry_after="1"),
    "error 429 for ever": status(429, "slow down", retry_after="86400"),
    "error 401": status(401, "who are you?"),
    "error 400": status(400, "\x1b[31mno\x00"),
    "error 404": status(404, "no such model"),
    "too long": status(
        400, "maximum context length is 128000 tokens", code="context_length_exceeded"
    ),
    "too long for Anthropic": status(400, "prompt is too long: 213462 tokens > 200000 maximum"),
    "too long for llama.cpp": status(
        400, "the request exceeds the available context size, try increasing it"
    ),
    "silent": Turn(fault=Fault("silent")),
    "stalls": Turn("one two three four", fault=Fault("stall", after=2)),
    "cut at once": Turn("gone", fault=Fault("cut")),
    "cut": Turn("one two three four", fault=Fault("cut", after=3)),
    "cut in a call": Turn(
        "", tool_calls=(Call("read", {"path": "big.txt"}, pieces=5),), fault=Fault("cut", after=3)
    ),
    "malformed": Turn("one two three", fault=Fault("malformed", after=2)),
    "error in stream": Turn(
        "one two three", fault=Fault("stream_error", after=2, message="overloaded")
    ),
}
"""Ways to answer, more than half of them wrong."""


@dataclass
class Provider:
    """Answers each request in one of the ways."""

    chance: random.Random
    did: deque[str] = field(default_factory=lambda: deque(maxlen=12))

    def __call__(self, request: Recorded) -> Turn:
        # A tool's result is mostly answered in words: a turn has an end.
        last = (request.json.get("messages") or [{}])[-1]
        if last.get("role") == "tool" and self.chance.random() < 0.6:
            return Turn("That is what it says.")
        name = self.chance.choice(list(BEHAVIOURS))
        self.did.append(name)
        turn = BEHAVIOURS[name]
        return turn if isinstance(turn, Turn) else turn(self.chance)


# -- the person -----------------------------------------------------------------------------------------------

COMMANDS = """
    tree context cost compact model sessions settings jobs mcp permissions help status diff rewind find race theme clear
    new rename fork undo redo prune export review memory agents effort mode label copy keys init doctor retry parent
    remember forget result login
""".split()  # noqa: SIM905 - a list of words is read as words
NAMED = "enter escape tab shift+tab backspace space up down left right home end pageup pagedown alt+up alt+enter"
KEYS = (
    *NAMED.split(),
    *(f"ctrl+{key}" for key in "abefgklnoprstuwxy"),
    *"abcdefghijklmnoprstuvwxyz/?[]{}+-12345 ",
)
FUNCTION_KEYS = tuple(
    f"\x1b{rest}"
    for rest in ("OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~", "[20~", "[21~")
)
PROMPTS = (
    "do it",
    "look at @big.txt",
    "!ls",
    "!seq 1 3000",
    "go on",
    "why? " * 40,
    "fix\nthe\nbug",
)
PASTES = ("one line", "many\nlines\n" * 300, ODD, "x" * 60_000, "/tree", "")
SIZES = ((80, 24), (200, 50), (40, 12), (10, 3), (120, 30), (60, 8), (100, 60))


FIRST_WORDS = "yes no now so ok just keep run undo summary back next show edit go jump open".split()  # noqa: SIM905 - a list of words is read as words
"""Words whose first letters do something to a block, in a page or in a question."""


class EndedError(Exception):
    """The program is not there any more."""


@dataclass
class Problem:
    """What broke, and what was done before."""

    what: str
    details: str


class Driver:
    """A person who tries everything."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.place = Place(root)
        self.place.variables = {"EDITOR": "true", "PYTHONPATH": str(Path(__file__).parents[1])}
        self.stacks = root / "stacks.txt"
        self.problems: list[Problem] = []
        self.done: deque[str] = deque(maxlen=40)
        self.slowest = 0.0
        self.actions = 0
        self.starts = 0
        self._read_log = 0
        self.sentences = 0
        self._server: ModelServer | None = None
        project = self.place.project
        (project / "big.txt").write_text("".join(f"line {n}\n" for n in range(20_000)))
        (project / "long.json").write_text("x," * 300_000)

    def use(self, seconds: float) -> None:
        """Use the program for some time."""
        provider = Provider(random.Random(self.chance.random()))
        with ModelServer() as server:
            server.play_function(provider)
            self._server = server
            self.place.configure(server.openai_url)
            until = time.monotonic() + seconds
            while time.monotonic() < until and len(self.problems) < MOST_PROBLEMS:
                try:
                    self._session(until)
                except EndedError:
                    if code := self._terminal.process.wait():  # “quit” is in the list of commands
                        self._report("the program ended by itself", f"exit {code}")
                except AssertionError as error:
                    self._report("the terminal", str(error))
                finally:
                    self.done.append(f"provider: {list(provider.did)}")
                    self._terminal.close()
                self._look_at_log()

    def _session(self, until: float) -> None:
        """Start the program, use it for a while, and end it."""
        self.starts += 1
        start = [
            sys.executable,
            "-c",
            STARTER,
            str(self.stacks),
            "--mode",
            self.chance.choice(["yolo", "build", "yolo"]),
        ]
        start += ["-c"] if self.starts > 1 and self.chance.random() < 0.8 else []
        self._size = self.chance.choice(SIZES[:3])
        self._terminal = Terminal(
            start, size=self._size, env=self.place.env, cwd=self.place.project
        )
        self._note("start " + " ".join(start[3:]))
        self._terminal.wait_for_any(PROMPT_HINT, "needs", "Choose", "open", timeout=60)
        for _ in range(self.chance.randrange(60, 240)):
            if time.monotonic() > until:
                break
            self._act()
            self.actions += 1
            self._check_alive()
        self._end()

    # -- what a person does -----------------------------------------------------------------------------------

    def _act(self) -> None:
        kinds = {
            self._prompt: 10,
            self._command: 12,
            self._key: 20,
            self._burst: 12,
            self._page_and_back: 10,
            self._click: 8,
            self._double_click: 4,
            self._resize: 4,
            self._paste: 3,
            self._calm: 6,
            self._write: 14,
        }
        self.chance.choices(list(kinds), list(kinds.values()))[0]()
        self._terminal.read_for(self.chance.choice([0.0, 0.0, 0.02, 0.1, 0.4]))

    def _prompt(self) -> None:
        self._send(self.chance.choice(PROMPTS) + "\r")

    def _command(self) -> None:
        self._send(
            "\x1b/"
            + self.chance.choice(COMMANDS)
            + self.chance.choice(["\r", "\r", " 1\r", " x\r", " list\r"])
        )

    def _key(self) -> None:
        self._press(self._a_key())

    def _burst(self) -> None:
        self._press(*(self._a_key() for _ in range(self.chance.randrange(2, 12))))

    def _page_and_back(self) -> None:
        """Open a page and leave it while it is built."""
        opening = self.chance.choice(
            ["\x14", "\x10", *FUNCTION_KEYS, "\x14s", "\x14 ", "\x12", "\x06"]
        )
        self._send(
            opening
            + self.chance.choice(["\x1b", "\x1b\x1b", "\r\x1b", "\x1b[6~", "s\x1b", "\x1b[B\r"])
        )

    def _click(self) -> None:
        self._send(self._a_click())

    def _double_click(self) -> None:
        self._send(self._a_click() * self.chance.choice([2, 2, 3]))

    def _resize(self) -> None:
        for size in self.chance.choices(SIZES, k=self.chance.choice([1, 1, 3])):
            self._note(f"resize {size}")
            self._size = size
            self._terminal.resize(*size)

    def _paste(self) -> None:
        text = self.chance.choice(PASTES)
        self._note(f"paste {text[:20]!r} ({len(text)})")
        self._terminal.paste(text)

    def _calm(self) -> None:
        """Go back to the conversation and wait a little."""
        for _ in range(3):
            self._send("\x1b")
            self._terminal.read_for(0.1)
        self._terminal.read_for(self.chance.random() * 3)

    # -- writing ----------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Go to the conversation, do something there, and write a sentence: none of it is lost."""
        self._calm()
        if not self._is_writable():
            return
        distractions = (
            self._click_somewhere,
            self._find_and_back,
            self._read_and_back,
            self._box_and_back,
            lambda: None,
        )
        self.chance.choice(distractions)()
        self._rest()
        if not self._is_writable():
            return
        self._send("\x15" * self.chance.choice([0, 4]))
        self._rest()
        before, idle = self._terminal.text, self._is_idle()
        asked = len(self._calls())
        self.sentences += 1
        sentence = (
            f"{self.chance.choice(FIRST_WORDS)} word{self.sentences} and more{self.sentences}"
        )
        self._type_sentence(sentence)
        if not self._arrives(sentence, before):
            self._report(
                "words are lost",
                f"“{sentence}” was typed. Before:\n{before}\nAfter:\n{self._terminal.framed()}",
            )
        elif idle and len(self._calls()) > asked and self._is_idle():
            self._report(
                "a request that nobody asked for",
                f"{self._calls()[-1].json}\n{self._terminal.framed()}"[:4_000],
            )
        elif self.chance.random() < 0.4:
            self._send("\r")
            if not self._arrives(sentence, before):
                self._report(
                    "a message is lost", f"“{sentence}” was sent.\n{self._terminal.framed()}"
                )

    def _rest(self) -> None:
        """Wait until the program has handled what came before; somebody who writes looks at the screen first.

        On a loaded machine, the page that a click opens comes late, and it takes the keys from then on.
        """
        until = time.monotonic() + REST_SECONDS
        before = -1.0
        while time.monotonic() < until:
            spent = sum(self._process().cpu_times()[:2])
            if spent - before < RESTING_SECONDS:
                return
            before = spent
            self._terminal.read_for(0.3)

    def _click_somewhere(self) -> None:
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            self._send(self._a_click())
            self._terminal.read_for(0.2)

    def _find_and_back(self) -> None:
        self._send("\x06")
        self._terminal.read_for(0.2)
        self._send(self.chance.choice(["line", "a", "line\r", "line\rn"]))
        self._terminal.read_for(0.3)
        self._send("\x1b")
        self._terminal.read_for(0.2)

    def _read_and_back(self) -> None:
        """Go into the conversation by Tab, move there, perhaps open something, and come back."""
        self._send("\t")
        self._send(self.chance.choice(["k", "kk", "k\x1b[5~", "ko", "k ", "N", ""]))
        self._terminal.read_for(0.3)
        for _ in range(2):
            self._send("\x1b")
            self._terminal.read_for(0.3)

    def _box_and_back(self) -> None:
        """Open a box or a page by its key, and leave it."""
        self._press(self.chance.choice(["ctrl+g", "ctrl+t", "ctrl+s", "ctrl+r", "ctrl+p"]))
        self._terminal.read_for(0.5)
        self._send("\x1b")
        self._terminal.read_for(0.3)

    def _type_sentence(self, sentence: str) -> None:
        pace = self.chance.choice([0.0, 0.0, 0.05, 0.3])
        self._note(f"writes “{sentence}” at {pace} s a key")
        for part in [sentence] if not pace else [*sentence[:6], sentence[6:]]:
            self._terminal.type(part)
            self._terminal.read_for(pace)

    def _arrives(self, sentence: str, before: str) -> bool:
        """Whether a sentence comes to the prompt or the provider; its first key may have answered a question."""
        wanted = [_letters(sentence)]
        if QUESTION.search(before):
            wanted.append(wanted[0][1:])
        until = time.monotonic() + WRITING_SECONDS
        while time.monotonic() < until:
            said = _letters(self._terminal.text) + "".join(
                _letters(str(call.json)) for call in self._calls()[-6:]
            )
            if any(text in said for text in wanted):
                return True
            self._terminal.read_for(0.2)
            self._process()
        return False

    def _calls(self) -> list[Recorded]:
        return self._server.calls if self._server is not None else []

    def _is_writable(self) -> bool:
        """Whether the conversation is on the screen and takes messages."""
        self._terminal.read_for(0.3)
        text = self._terminal.text.lower()
        return (
            MAIN.lower() in text
            and "read only" not in text
            and self._size[0] >= 40
            and self._size[1] >= 12
        )

    def _is_idle(self) -> bool:
        return "interrupt" not in self._terminal.text

    # -- keys and clicks --------------------------------------------------------------------------------------

    def _a_key(self) -> str:
        return (
            self.chance.choice(KEYS)
            if self.chance.random() < 0.9
            else self.chance.choice(FUNCTION_KEYS)
        )

    def _a_click(self) -> str:
        column, row = (
            self.chance.randrange(1, self._size[0] + 1),
            self.chance.randrange(1, self._size[1] + 1),
        )
        wheel = self.chance.random() < 0.15
        button = self.chance.choice([64, 65]) if wheel else 0
        return f"\x1b[<{button};{column};{row}M" + (
            "" if wheel else f"\x1b[<{button};{column};{row}m"
        )

    def _press(self, *keys: str) -> None:
        from tests.support.terminal import _key as sent

        self._send("".join(key if key.startswith("\x1b") else sent(key) for key in keys))

    def _send(self, text: str) -> None:
        self._note(repr(text if len(text) < 60 else text[:60] + "…"))
        self._terminal.type(text)

    # -- what is to hold --------------------------------------------------------------------------------------

    def _check_alive(self) -> None:
        """Have the terminal one row larger and wait until that is drawn."""
        terminal = self._terminal
        process = self._process()
        while terminal.pump():
            pass
        begun, busy = time.monotonic(), sum(process.cpu_times()[:2])
        self._size = (
            self._size[0],
            self._size[1] + self.chance.choice([1, -1]) if self._size[1] > 4 else 6,
        )
        terminal.resize(*self._size)
        dumps = 0
        while not terminal.pump(0.2):
            if terminal.process.poll() is not None:
                raise EndedError
            spent = sum(self._process().cpu_times()[:2]) - busy
            waited = time.monotonic() - begun
            if dumps < STACKS and (
                spent > FREEZE_SECONDS * (dumps + 1) or waited > 10 * (dumps + 1)
            ):
                dumps += 1
                self._dump()
            if waited > GIVE_UP:
                self._report(
                    "nothing drawn", f"{waited:.0f} s, {spent:.1f} s computed\n{self._stacks()}"
                )
                terminal.process.send_signal(signal.SIGKILL)
                terminal.process.wait()
                raise AssertionError("killed")
        spent = min(sum(self._process().cpu_times()[:2]) - busy, time.monotonic() - begun)
        self.slowest = max(self.slowest, spent)
        if dumps:
            self._report(
                "slow",
                f"{time.monotonic() - begun:.1f} s, {spent:.1f} s computed\n{self._stacks()}",
            )
        if b"internal error" in terminal.raw:
            self._look_at_log()
        if b"Traceback" in terminal.raw:
            self._report("a traceback on the screen", terminal.framed())
        terminal.raw.clear()

    def _end(self) -> None:
        """Quit; a question whether to is answered."""
        self._note("quit")
        terminal, begun = self._terminal, time.monotonic()
        for press in ("\x11", "\r", "\x1b", "\x11", "\r", "\x11\r") * 2:
            terminal.type(press)
            # Each press may meet a question, or leave a page; a loaded machine is slow.
            terminal.read_for(END_SECONDS)
            with suppress(subprocess.TimeoutExpired):
                terminal.process.wait(1)
            if terminal.process.poll() is not None:
                return
        self._dump()
        self._report(
            "does not end",
            f"{time.monotonic() - begun:.0f} s\n{terminal.framed()}\n{self._stacks()}",
        )

    def _process(self) -> psutil.Process:
        try:
            return psutil.Process(self._terminal.process.pid)
        except psutil.NoSuchProcess:
            raise EndedError from None

    def _dump(self) -> None:
        os.kill(self._terminal.process.pid, signal.SIGUSR1)

    def _stacks(self) -> str:
        time.sleep(0.2)
        text = self.stacks.read_text()
        os.truncate(self.stacks, 0)
        return text

    def _look_at_log(self) -> None:
        for path in self.place.root.rglob("tui-agent.log"):
            text = path.read_text(errors="replace")
            new, self._read_log = text[self._read_log :], len(text)
            for word in ("Traceback (most", "never retrieved", " CRITICAL "):
                if word in new:
                    self._report(f"“{word}” in the log", new[-6_000:])
                    break

    def _note(self, what: str) -> None:
        self.done.append(what)

    def _report(self, what: str, details: str) -> None:
        self.problems.append(Problem(what, f"{details}\n-- before: {' · '.join(self.done)}"))
        print(f"\n== {what}\n{self.problems[-1].details}", flush=True)


def _letters(text: str) -> str:
    """Return letters and digits alone: lines are broken, and drawn with bars beside them."""
    return "".join(filter(str.isalnum, text))


def main(given: Sequence[str] | None = None) -> int:
    """Use the program at random; 1 when something broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5.0)
    arguments = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="ta-", ignore_cleanup_errors=True) as name:
        driver = Driver(Path(name), arguments.seed)
        try:
            driver.use(arguments.minutes * 60)
        finally:
            driver.place.close()
    print(
        f"seed {arguments.seed}: {driver.actions} actions in {driver.starts} starts, {driver.sentences} sentences, "
        f"slowest redraw {driver.slowest:.2f} s of processor time, {len(driver.problems)} problems"
    )
    return 1 if driver.problems else 0


if __name__ == "__main__":
    sys.exit(main())
