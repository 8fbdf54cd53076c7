"""The real program in a real terminal, from its start to its end."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import TIMEOUT, Terminal, ask
from tests.support.thoroughness import NIGHTLY

LIGHT_BACKGROUND = b"48;2;255;255;255"
"""How the background of the light theme is asked for; the cursor of the dark one has it too."""


def quit_program(terminal: Terminal) -> None:
    terminal.wait_gone("esc interrupt")
    terminal.press("ctrl+q")
    assert terminal.wait_exit() == 0


def test_it_paints_asks_for_the_background_and_gives_the_terminal_back(place: Place) -> None:
    terminal = place.start(size=(80, 24))
    terminal.wait_until(lambda: b"\x1b]11;?" in terminal.raw, "the question")
    assert PROMPT_HINT in terminal.text
    assert terminal.raw.count(LIGHT_BACKGROUND) < 10
    terminal.type("\x1b]11;rgb:ffff/ffff/ffff\x1b\\hello")
    terminal.wait_until(lambda: terminal.raw.count(LIGHT_BACKGROUND) > 20, "a light background")
    terminal.wait_for("hello")
    assert "rgb:" not in terminal.text
    assert terminal.modes[1049]
    terminal.press("ctrl+u")
    quit_program(terminal)
    assert not any(terminal.modes.get(mode) for mode in (1049, 1000, 1002, 1003, 1004, 1006, 2004))
    assert terminal.modes[25]
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize("size", [(80, 24), (200, 50)] if NIGHTLY else [(80, 24)])
def test_a_newcomer_can_follow_the_tour_to_its_end(own_place: Place, size: tuple[int, int]) -> None:
    terminal = own_place.start("--demo", size=size)
    terminal.wait_for("This is the demo")
    cart = the_cart(own_place, terminal)
    broken = cart.read_text(encoding="utf-8")
    ask(terminal, "tour")
    terminal.wait_for("Begin with fix the bug")
    ask(terminal, "fix the bug")
    allow_tests_until(terminal, "cart.py (+1 −1)?")
    terminal.wait_for("y  yes, once")
    assert cart.read_text(encoding="utf-8") == broken
    terminal.press("y")
    terminal.wait_for("Next: go")
    assert "item.price * item.quantity for item in self.items" in cart.read_text(encoding="utf-8")
    ask(terminal, "go round in circles")
    terminal.wait_for("The agent repeats itself. Run it again?")
    terminal.wait_for("n  no, try something else")
    terminal.press("3")
    terminal.wait_for("Next: fill")
    ask(terminal, "fill the window")
    terminal.wait_for("That was more than my window holds")
    terminal.wait_for("3. the tree")
    terminal.wait_gone("esc interrupt")
    ask(terminal, "/compact")
    # Near the limit the summary may be ready already.
    if terminal.wait_for_any("enter summarise", "ctrl+s apply") == "enter summarise":
        terminal.press("enter")
        terminal.wait_for("ctrl+s apply")
    terminal.press("ctrl+s")
    terminal.wait_gone("ctrl+s apply")
    # A large screen shows an earlier compaction, too.
    terminal.wait_for("↑ compacted")
    ask(terminal, "/undo")
    terminal.wait_for("Undone: compaction")
    ask(terminal, "the tree")
    terminal.wait_for("You are back at the")
    terminal.wait_gone("esc interrupt")
    terminal.wait_gone("esc stops it")
    terminal.press("ctrl+t")
    terminal.wait_for("Session tree")
    terminal.type("/")
    terminal.wait_for("Search")
    terminal.type("fixed")
    terminal.wait_for("2 matches")
    terminal.press("up", "enter")
    terminal.wait_for("enter go")
    terminal.press("enter")
    terminal.wait_for("Summarise this branch?")
    terminal.press("2")
    terminal.wait_for("Summary of the branch left")
    ask(terminal, "the map")
    terminal.wait_for("That was the tour.")
    terminal.wait_gone("esc interrupt")
    terminal.press("ctrl+g")
    terminal.wait_for("order: request order")
    terminal.press("escape")
    terminal.wait_gone("order: request order")
    quit_program(terminal)


def test_quit_and_continue_shows_the_same(place: Place, warm_server: ModelServer) -> None:
    terminal = place.start()
    ask(terminal, "look for the lighthouse")
    terminal.wait_for("You said: look for the lighthouse")
    before = conversation(terminal)
    quit_program(terminal)
    assert "Continue with: tui-agent -c" in "\n".join(terminal.lines)
    again = place.start("-c")
    again.wait_for("You said: look for the lighthouse")
    assert conversation(again) == before
    ask(again, "and now the harbour")
    again.wait_for("You said: and now the harbour")
    assert len(warm_server.calls[-1].json["messages"]) > len(warm_server.calls[0].json["messages"])
    quit_program(again)


def test_what_was_streamed_survives_a_crash(own_place: Place, server: ModelServer) -> None:
    own_place.configure(server.openai_url)
    server.play(Turn(text="The tide table says high water at noon.", fault=Fault("stall", after=6)))
    terminal = own_place.start()
    ask(terminal, "when is high water?")
    terminal.wait_for("The tide table")
    terminal.wait_until(lambda: "tide table" in draft(own_place), "the draft in the store")
    children = psutil.Process(terminal.process.pid).children(recursive=True)
    terminal.kill()
    _, alive = psutil.wait_procs(children, timeout=TIMEOUT)
    assert not alive, "the model host outlives the program"
    again = own_place.start("-c")
    again.wait_for("The tide table")
    again.wait_for("nterrupted")
    server.play(Turn(text="It goes on."))
    ask(again, "go on")
    again.wait_for("It goes on.")
    quit_program(again)


def test_what_was_not_sent_survives_a_crash(own_place: Place, server: ModelServer) -> None:
    own_place.configure(server.openai_url)
    terminal = own_place.start()
    terminal.type("half a thought")
    terminal.wait_until(lambda: "half a thought" in unsent(own_place), "the prompt in the store")
    terminal.kill()
    again = own_place.start()
    again.wait_for("half a thought")
    server.play(Turn(text="The tide turns.", fault=Fault("stall", after=2)))
    again.press("enter")
    again.wait_for("The")
    again.type("and the moon?")
    again.press("enter")
    again.type("later")
    again.press("alt+enter")
    again.wait_until(
        lambda: "and the moon?" in unsent(own_place) and "later" in unsent(own_place), "what waits"
    )
    again.kill()
    last = own_place.start("-c")
    last.wait_for("2 waiting messages are back")
    last.wait_for("and the moon?")
    last.wait_for("later")
    last.type(" gator")
    last.wait_for("later gator")
    assert len(server.calls) == 1
    quit_program(last)


def test_a_resize_there_and_back_leaves_no_hole(place: Place) -> None:
    terminal = place.start(size=(100, 30))
    terminal.type("still here")
    terminal.wait_for("still here")
    terminal.wait_for("[ Compact ]")  # the session is open
    terminal.wait_for("%")  # and what the next request takes is known
    terminal.wait_quiet(1.0)
    before = terminal.lines
    terminal.resize(20, 6)
    terminal.resize(100, 30)
    terminal.wait_until(lambda: terminal.lines == before, "the screen as it was")
    quit_program(terminal)


@pytest.mark.parametrize("size", [(10, 3), (60, 20), (200, 60)] if NIGHTLY else [(10, 3)])
def test_a_resize_while_an_answer_streams_loses_nothing(
    place: Place, warm_server: ModelServer, size: tuple[int, int]
) -> None:
    words = " ".join(f"word{number}" for number in range(80))
    warm_server.play(Turn(text=f"{words} the-very-end", delay=0.02))
    terminal = place.start()
    ask(terminal, "go")
    terminal.wait_for("word5")
    terminal.resize(*size)
    terminal.read_for(0.5)
    terminal.resize(100, 30)
    terminal.wait_for("the-very-end")
    terminal.wait_for(PROMPT_HINT)
    assert "word40" in terminal.text
    quit_program(terminal)


def test_escape_sequences_of_a_model_or_a_tool_do_not_reach_the_terminal(
    place: Place, warm_server: ModelServer
) -> None:
    place.configure(warm_server.openai_url, more='[permissions]\nbash = "allow"\n')
    nasty = "\x1b]0;stolen\x07\x1b]52;c;c3RvbGVu\x07\x1b[?1049l"
    command = r"printf '\033]52;c;c3RvbGVu\a\033]0;stolen\a\033[?1049lx[bold]y'"
    call = Call("bash", {"command": command})
    warm_server.play(Turn(tool_calls=(call,)), Turn(text=f"before {nasty} after [red]it[/red]"))
    terminal = place.start()
    ask(terminal, "go")
    terminal.wait_for("[red]it[/red]")
    assert b"\x1b]52;" not in terminal.raw
    assert "stolen" not in terminal.title
    assert terminal.modes[1049]
    quit_program(terminal)


def allow_tests_until(terminal: Terminal, text: str) -> None:
    """Wait for a text; where there is no sandbox, running the tests is asked about once on the way."""
    terminal.wait_until(
        lambda: text in terminal.text or "Run this command?" in terminal.text,
        f"{text} or a question",
    )
    if text not in terminal.text:
        terminal.wait_for("y  yes, once")
        terminal.press("y")
        terminal.wait_for(text)


def the_cart(place: Place, terminal: Terminal) -> Path:
    """The file of the demo's project that has the bug; the project is laid out after the first paint."""
    terminal.wait_until(lambda: any(place.root.glob("**/tests/test_cart.py")), "the demo's project")
    (cart,) = place.root.glob("**/shop/cart.py")
    return cart


def conversation(terminal: Terminal) -> list[str]:
    """The rows between the header and the prompt that hold words."""
    terminal.wait_quiet(0.5)
    rows = terminal.lines
    end = next(index for index, row in enumerate(rows) if PROMPT_HINT in row)
    return [row.strip() for row in rows[1:end] if any(letter.isalpha() for letter in row)]


def draft(place: Place) -> str:
    """What the store holds of the answer being streamed."""
    (database,) = (place.root / "data").glob("*.db")
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return "".join(row[0] for row in connection.execute("SELECT body FROM drafts"))


def test_a_message_survives_a_crash_while_a_hook_runs(
    own_place: Place, server: ModelServer
) -> None:
    held = own_place.root / "held"
    command = f"test -f {held} || {{ touch {held}; sleep 60; }}"
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}
    (own_place.root / ".claude").mkdir()
    (own_place.root / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    own_place.configure(server.openai_url)
    terminal = own_place.start()
    ask(terminal, "is it high water?")
    terminal.wait_for("↳ hook   is it high water?")
    terminal.wait_for("hook “test -f")
    terminal.kill()
    again = own_place.start("-c")
    again.wait_for("A waiting message is back in the prompt")
    server.play(Turn(text="At noon."))
    again.press("enter")
    again.wait_for("At noon.")
    assert "is it high water?" in str(server.calls[-1].json["messages"])
    quit_program(again)


def unsent(place: Place) -> str:
    """What the store holds of the prompt and of the messages that wait, once there is a store."""
    for database in (place.root / "data").glob("*.db"):
        with (
            contextlib.suppress(sqlite3.Error),
            sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection,
        ):
            return "".join(
                text + waiting
                for text, waiting in connection.execute("SELECT text, waiting FROM unsent")
            )
    return ""


def test_a_question_calls_whoever_looks_elsewhere(own_place: Place, server: ModelServer) -> None:
    own_place.configure(server.openai_url)
    own_place.variables["TERM_PROGRAM"] = "WezTerm"
    server.play(
        Turn(tool_calls=(Call("write", {"path": "made.txt", "content": "x"}),)), Turn(text="Done.")
    )
    terminal = own_place.start()
    ask(terminal, "make it")
    # After the last key: whoever types looks.
    terminal.send(b"\x1b[O")
    terminal.wait_for("waiting for your answer")
    notified = b"\a\x1b]777;notify;tui-agent;make it asks about write: made.txt\a"
    terminal.wait_until(lambda: notified in terminal.raw, "it")
    assert terminal.title.startswith("? ")
    terminal.send(b"\x1b[I")
    terminal.wait_for("y  yes, once")
    terminal.press("y")
    terminal.wait_for("Done.")
    terminal.wait_until(
        lambda: not terminal.title.startswith(("?", "◐")), "the title of an idle program"
    )
    quit_program(terminal)


def at_caret(terminal: Terminal, text: str, *, columns: int) -> None:
    """Wait until the cursor stands ``columns`` cells after the prompt's bar, on the row that holds ``text``."""

    def there() -> bool:
        rows = [
            (row, line.index("▌"))
            for row, line in enumerate(terminal.lines)
            if "▌" in line and text in line
        ]
        return bool(rows) and terminal.cursor == (rows[-1][1] + 2 + columns, rows[-1][0])

    terminal.wait_until(there, f"the cursor {columns} cells into “{text}”")


def test_the_cursor_is_where_the_next_character_goes(place: Place) -> None:
    terminal = place.start(size=(80, 24))
    at_caret(terminal, PROMPT_HINT, columns=0)
    terminal.type("ab你好")
    at_caret(terminal, "ab", columns=6)
    terminal.press("left")
    at_caret(terminal, "ab", columns=4)
    terminal.resize(70, 18)
    at_caret(terminal, "ab", columns=4)
    terminal.press("end")
    terminal.type("\nsecond")
    at_caret(terminal, "second", columns=6)
    terminal.type("\x7f" * 7)
    at_caret(terminal, "ab", columns=6)
    terminal.press("escape")


def test_keys_that_come_in_one_burst_act_in_the_order_they_were_typed(place: Place) -> None:
    terminal = place.start(size=(80, 24))
    at_caret(terminal, PROMPT_HINT, columns=0)
    terminal.type("teh\x7f\x7fhe \x1b[D\x1b[Dk\x1b[Fway\nnext")
    terminal.wait_for("▌ thke way")
    at_caret(terminal, "next", columns=4)


MINUTES = float(os.environ.get("TUI_AGENT_RANDOM_MINUTES", "5"))


@pytest.mark.skipif(
    not NIGHTLY, reason="takes minutes: make nightly, or python -m scripts.random_use"
)
@pytest.mark.parametrize("seed", range(1, 4))
def test_nothing_breaks(seed: int) -> None:
    command = [
        sys.executable,
        "-m",
        "scripts.random_use",
        "--seed",
        str(seed),
        "--minutes",
        str(MINUTES),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=MINUTES * 60 + 300, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]
