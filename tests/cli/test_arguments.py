"""The command line: every argument is explained, one table of exit codes, and what its words mean."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tui_agent.cli.arguments import EPILOG, SUBCOMMANDS, UsageError, parse, whole_parser
from tui_agent.cli.main import run
from tui_agent.cli.models import DEFAULT_MODELS, choose_model
from tui_agent.cli.names_elsewhere import COMMANDS, MCP_ACTIONS, MODES, OPTIONS
from tui_agent.cli.output import ExitCode, exit_codes_line
from tui_agent.config import Config

ROOT = Path(__file__).parents[2]
MINE = {"base_url": "http://localhost:8080/v1", "context_window": 32_768}


def test_every_argument_has_help() -> None:
    parsers, shown = [whole_parser()], 0
    for parser in parsers:
        for action in parser._actions:
            if isinstance(action.choices, dict):
                parsers += action.choices.values()
            else:
                shown += 1
                assert action.help, f"{parser.prog}: {action.option_strings or action.dest}"
    assert shown > 100


def test_the_help_names_every_subcommand() -> None:
    lines = [line.split()[1] for line in EPILOG.splitlines() if line.startswith("  tui-agent ")]
    assert {word for line in lines for word in line.split("|")} == {*SUBCOMMANDS, "run"}


def test_the_documents_have_the_table() -> None:
    table = "\n".join(
        [
            "| exit code | |",
            "|---|---|",
            *(f"| {code.value} | {code.meaning} |" for code in ExitCode),
        ]
    )
    assert table in (ROOT / "docs/headless.md").read_text(encoding="utf-8")
    assert exit_codes_line() in EPILOG
    assert exit_codes_line() in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["0", "-1", "5$", "nan", "inf", "1e3", "", "five", "٥"])
@pytest.mark.parametrize("option", ["--max-cost", "--max-tokens", "--timeout"])
def test_a_budget_that_makes_no_sense_is_one_sentence(option: str, text: str) -> None:
    with pytest.raises(UsageError, match=option):
        parse(["-p", "hi", f"{option}={text}"])


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("2h", 7200)]
)
def test_times(text: str, seconds: float) -> None:
    assert parse(["-p", "hi", "--timeout", text, "--max-cost", f"${seconds}"]).timeout == seconds


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (["-p", "do it"], "do it"),
        (["-p"], ""),
        (["-p", "--json", "do it"], "do it"),
        (["--json", "-p", "x"], "x"),
    ],
)
def test_where_the_prompt_may_stand(words: list[str], prompt: str) -> None:
    arguments = parse(words)
    assert (arguments.print, arguments.prompt) == (prompt, None)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-p", "fix", "this"], "put it in quotes"),
        (["--race", "3"], "--race needs -p"),
        (["--key", "k"], "--key needs -p"),
        (["-p", "x", "--key", " "], "--key needs a name"),
        (["-p", "x", "--key", "k", "-c", "--demo"], "leave out -c and --demo"),
        (["-p", "x", "--pick", "best"], "--pick needs --race"),
        (["-p", "x", "--check-rounds", "2"], "--check-rounds needs --check"),
        (["-p", "x", "--race", "2", "--check", "", "--pick", "first-green"], "needs a --check"),
        (["--take-over"], "--take-over needs -c or -r ID"),
        (["-p", "x", "-r"], "-r needs a session's id"),
        (["-p", "x", "-r", ""], "-r needs a session's id"),
        (["x", "-r"], "-r needs a session's id"),
        (["-p", "x", "--fork", ""], "--fork needs a session's id"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse(words)


@pytest.mark.parametrize(
    ("models", "providers", "chosen"),
    [
        ({"openai/my-model": MINE}, (), "openai/my-model"),
        ({"openai/my-model": MINE}, ("anthropic",), "openai/my-model"),
        ({"openai/one": MINE, "openai/two": MINE}, (), ""),
        ({"openai/one": MINE, "openai/two": MINE}, ("anthropic",), DEFAULT_MODELS[0]),
        ({"anthropic/claude-haiku-4-5": {"threshold": "80%"}}, ("anthropic",), DEFAULT_MODELS[0]),
        ({}, (), ""),
        ({"openai/my-model": MINE, "chosen": "openai/other"}, ("anthropic",), "openai/other"),
        ({"chosen": "demo"}, ("anthropic",), DEFAULT_MODELS[0]),
    ],
)
def test_the_only_server_of_the_settings_is_used_and_a_correction_of_the_catalog_is_none(
    models: Mapping[str, object], providers: tuple[str, ...], chosen: str
) -> None:
    tables = {name: table for name, table in models.items() if name != "chosen"}
    config = Config.model_validate({"model": models.get("chosen"), "models": tables})
    assert choose_model(config, providers, lambda _model: True) == chosen


def test_the_demo_by_its_model_is_the_demo() -> None:
    """It plays with files of its own, and is no model for the project's."""
    arguments = parse(["-m", "demo"])
    assert arguments.demo
    assert arguments.model is None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "tui-agent" in script
    assert "sessions" in script


def test_the_manual_page_is_up_to_date() -> None:
    """`python scripts/man_page.py` writes it."""
    done = subprocess.run(
        [sys.executable, "scripts/man_page.py", "--check"], cwd=ROOT, check=False, timeout=60
    )
    assert done.returncode == 0, "run: python scripts/man_page.py"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_manual_page_is_set_without_a_warning() -> None:
    command = ["groff", "-ww", "-man", "-Tutf8", "-rLL=80n", "docs/man/tui-agent.1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert "…" in done.stdout


@pytest.mark.parametrize(("name", "instead"), OPTIONS.items())
def test_an_option_of_another_program_names_one_that_exists(name: str, instead: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(["-p", "hello", name, "value"])
    assert f"tui-agent has no {name}: {instead}" in str(caught.value)
    ours = {option for action in whole_parser()._actions for option in action.option_strings}
    assert name not in ours
    assert ours.issuperset(re.findall(r"(?<!\S)--?[a-z][a-z-]*", instead))


@pytest.mark.parametrize(("action", "instead"), MCP_ACTIONS.items())
def test_an_action_of_another_program_names_one_that_exists(action: str, instead: str) -> None:
    with pytest.raises(UsageError, match=f"tui-agent has no mcp {action}: "):
        parse(["mcp", action, "name", "{}"])
    for words in re.findall(r"tui-agent ([a-z]+)", instead):
        assert words in SUBCOMMANDS


@pytest.mark.parametrize(("word", "instead"), COMMANDS.items())
def test_a_word_that_is_a_command_elsewhere_is_not_sent(word: str, instead: str) -> None:
    words = word.split()
    for arguments in (words, [*words, "more"]):
        with pytest.raises(UsageError, match=re.escape(instead)):
            parse(arguments)
    assert parse(["--", words[0]]).prompt == words[0]
    assert parse([f"{words[0]} the code"]).prompt == f"{words[0]} the code"
    assert not set(words[:1]) & set(SUBCOMMANDS)
    assert {"run", *SUBCOMMANDS}.issuperset(re.findall(r"tui-agent ([a-z]+)", instead))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-c", "model=bench/other"], "use -m PROVIDER/MODEL"),
        (["-cmodel=x"], "use -m PROVIDER/MODEL"),
        (["-c", "model=x", "-p", "y"], "use -m PROVIDER/MODEL"),
        (["-c", "model_reasoning_effort=high", "fix it"], "use --effort LEVEL"),
        (["-c", 'model_providers.x={ name = "a b" }'], "write [providers.NAME] in config.toml"),
        (["--config", "ui.plain=true"], "TUI_AGENT_UI__PLAIN=true in the environment"),
        (
            ["-c", "compaction.threshold=80%"],
            "tui-agent config set compaction.threshold 80% saves it",
        ),
        (["-c", "tui.foo=1"], "tui-agent config get lists"),
    ],
)
def test_a_setting_after_c_is_not_sent(arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        parse(arguments)


def test_a_message_with_an_equals_sign_is_sent() -> None:
    assert parse(["-c", "x=1 is wrong, why?"]).prompt == "x=1 is wrong, why?"
    assert parse(["-c", "--", "model=x"]).prompt == "model=x"


@pytest.mark.parametrize(("mode", "instead"), MODES.items())
def test_a_mode_of_another_program_names_what_to_use(mode: str, instead: str) -> None:
    with pytest.raises(UsageError, match=f"There is no --mode {mode}: {re.escape(instead)}"):
        parse(["--mode", mode, "-p", "hello"])


def test_a_file_before_the_prompt_is_named_in_it() -> None:
    with pytest.raises(UsageError, match=r'Name a file within the prompt: tui-agent "@a\.py …"'):
        parse(["@a.py", "explain this"])
    assert parse(["@a.py"]).prompt == "@a.py"
