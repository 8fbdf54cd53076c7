"""One table of exit codes: the help, the manual page and the documents say the same."""

from pathlib import Path

import pytest

from tui_agent.cli.arguments import EPILOG, UsageError, parse
from tui_agent.cli.output import ExitCode, exit_codes_line, exit_codes_table

ROOT = Path(__file__).parents[2]


def test_the_documents_have_the_table() -> None:
    assert exit_codes_table() in (ROOT / "docs/headless.md").read_text(encoding="utf-8")
    assert exit_codes_line() in EPILOG
    assert exit_codes_line() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_code_is_used() -> None:
    used = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tui_agent/cli").glob("*.py"))
    assert not [code.name for code in ExitCode if f"ExitCode.{code.name}" not in used]


@pytest.mark.parametrize("text", ["0", "-1", "5$", "$5", "nan", "inf", "1e3", "", "five", "٥"])
@pytest.mark.parametrize("option", ["--max-cost", "--max-tokens", "--timeout"])
def test_a_budget_that_makes_no_sense_is_one_sentence(option: str, text: str) -> None:
    with pytest.raises(UsageError, match=option):
        parse(["-p", "hi", f"{option}={text}"])


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("2h", 7200)])
def test_times(text: str, seconds: float) -> None:
    assert parse(["-p", "hi", "--timeout", text]).timeout == seconds
