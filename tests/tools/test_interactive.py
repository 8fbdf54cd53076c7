"""Commands that ask: what they print, and what the model is told to use instead."""

import pytest

from tests.support.tooling import Workspace
from tui_agent.tools.bash import BashTool, advice

NO_ANSWER = "The command asked a question and got no answer"
NO_TERMINAL = "The command needs a terminal"


@pytest.mark.parametrize(
    ("command", "output", "hint"),
    [
        (
            "sudo ls",
            "sudo: a terminal is required to read the password; either use ...\n",
            "sudo can't ask",
        ),
        (
            "git commit",
            "Aborting commit due to empty commit message.\n",
            "Give the message with -m",
        ),
        (
            "git push",
            "fatal: could not read Username for 'https://a.b': terminal prompts disabled\n",
            "Git can't ask",
        ),
        ("ssh host", "Host key verification failed.\r\n", "ssh can't ask about an unknown host"),
        (
            "git fetch",
            "git@example.com: Permission denied (publickey).\n",
            "load a key into ssh-agent",
        ),
        ("npm init", "Press ^C at any time to quit.\npackage name: (r) ", NO_ANSWER),
        (
            "python3 a.py",
            "name: Traceback (most recent call last):\nEOFError: EOF when reading a line\n",
            "Pipe the input in",
        ),
        ("docker run -it x", "the input device is not a TTY\n", "Leave out -t"),
        ("read x </dev/tty", "bash: line 1: /dev/tty: No such device or address\n", NO_TERMINAL),
        ("apt-get install x", "Do you want to continue? [Y/n] Abort.\n", NO_ANSWER),
        ("read -r x", "", "read found no input"),
    ],
)
def test_what_failed_for_want_of_an_answer(command: str, output: str, hint: str) -> None:
    assert hint in advice(command, output, failed=True)


@pytest.mark.parametrize(
    "output", ["rm: remove regular empty file 'f'? ", "Overwrite? (y/N) ", "Proceed [yes/no]: "]
)
def test_a_question_at_the_end_counts_though_nothing_failed(output: str) -> None:
    assert NO_ANSWER in advice("x", output, failed=False)


@pytest.mark.parametrize(
    ("command", "output", "failed"),
    [
        ("grep 'not a tty' log.txt", "it is not a tty\n", False),
        ("cat readme", "Why does it do that?\n", False),
        ("false", "", True),
        ("echo already read; false", "already read\n", True),
        (
            "ssh h",
            "Pseudo-terminal will not be allocated because stdin is not a terminal.\nssh: no host\n",
            True,
        ),
    ],
)
def test_ordinary_output_gets_no_advice(command: str, output: str, failed: bool) -> None:
    assert advice(command, output, failed=failed) == ""


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("git init -q . && git config user.email a@b && git config user.name n && touch f && git add f && git commit",
         "Give the message with -m"),
        ("read answer", "read found no input"),
        ("read answer </dev/tty", NO_TERMINAL),
        ("touch f && rm -i f", NO_ANSWER),
        ("python3 -c 'input(\"name: \")'", "Pipe the input in"),
        ("git ls-remote https://127.0.0.1:1/x.git", ""),
    ],
)  # fmt: skip
async def test_real_commands_end_at_once_and_say_why(
    space: Workspace, command: str, hint: str
) -> None:
    result = await space.call(BashTool(), command=command, timeout=20)
    assert hint in result.output
    assert "Stopped after" not in result.output


async def test_a_rebase_takes_no_editor_from_the_users_environment(space: Workspace) -> None:
    space.environ["GIT_SEQUENCE_EDITOR"] = "sleep 60; false"
    command = (
        "git init -q . && git config user.email a@b && git config user.name n && "
        "for i in 1 2; do echo $i > f; git add f; git commit -qm $i; done; "
        "git rebase -i HEAD~1 && git log --oneline | wc -l"
    )
    result = await space.call(BashTool(), command=command, timeout=30)
    assert result.output.splitlines()[-1].strip() == "2"
