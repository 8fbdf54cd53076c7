"""Families of commands: what "always" stands for, and what it does not."""

import re
import subprocess
from pathlib import Path

import pytest

from tui_agent.agent.permissions import Action, Rule, decide, reason_for
from tui_agent.shell.families import option_table
from tui_agent.shell.needs import command_needs

REACHING = {
    "git grep": "-O'touch x' word; --open-files-in-pager='touch x' word; -nO",
    "git fetch": "--upload-pack='touch x' origin; 'ext::sh -c true'",
    "git log": "-1 --format=x --output=.git/config; --outp=x",
    "git diff": "--no-index --output=.git/config a b; -O.git/x; --ext-diff",
    "go test": "-exec ./x ./...; -execute; -toolexec=x; -p=1 -o /bin/x",
    "go vet": "-vettool=./x ./...",
    "pylint": "--init-hook='print()' src; --rcfile=x src; --load-plugins=x",
    "pytest": "-p evil; -c other.ini; -o addopts=x; --pastebin=all; -W error::x.Y; --junit-xml=.envrc",
    "mypy": "--config-file=x; --python-executable=./x; -c x",
    "eslint": "-f ./x.js src; --rulesdir=x; -c x; --resolve-plugins-relative-to=.",
    "cargo build": "--config build.rustc-wrapper='x'; --manifest-path=x",
    "npm run test": "--script-shell=./x",
    "uv run pytest": "-p evil",
    "docker ps": "--host=x; --config=x",
}
WITHIN = {
    "git grep": "-niw word src; -A3 -e x --and -e y; --max-depth=2 x",
    "git log": "-20 --oneline -p -- src; -n5 --format=%h",
    "git commit": "-am 'fix: it'; --amend --no-edit",
    "go test": "-race -run TestX -count=1 ./...",
    "pytest": "-xvs -k name tests; --lf --tb=short -n4",
    "npm run test": "-- --anything=./x",
}


def rows(table: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (family, f"{family} {end.strip()}")
        for family, ends in table.items()
        for end in ends.split(";")
    ]


@pytest.mark.parametrize(("family", "command"), rows(REACHING))
def test_a_rule_for_a_family_allows_no_option_that_reaches_further(
    tmp_path: Path, family: str, command: str
) -> None:
    rule = Rule("bash", f"{family} *", Action.ALLOW, "flag")
    asked = [
        need for need in command_needs(command, tmp_path, tmp_path) if need.permission == "bash"
    ]
    assert [decide(need, [rule]).action for need in asked] == [Action.ASK]
    assert [need.always for need in asked] != [f"{family} *"]
    assert family in reason_for(asked[0], rule)


@pytest.mark.parametrize(("family", "command"), rows(WITHIN))
def test_what_belongs_to_a_family_is_allowed_with_it(
    tmp_path: Path, family: str, command: str
) -> None:
    (need,) = (
        need for need in command_needs(command, tmp_path, tmp_path) if need.permission == "bash"
    )
    assert decide(need, [Rule("bash", f"{family} *", Action.ALLOW, "here")]).action is Action.ALLOW
    assert need.always == f"{family} *"


LIKE_LOG = {"log", "diff", "show", "stash", "rev-list", "rev-parse", "shortlog", "blame"}
"""Commands whose short help leaves out the options they share."""


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in option_table()
        if name.startswith("git ") and name.split()[1] not in LIKE_LOG
    ],
)
def test_every_option_of_git_is_in_its_help(name: str) -> None:
    done = subprocess.run(
        [*name.split(), "-h"], capture_output=True, text=True, check=False, timeout=60
    )
    taken = set(re.findall(r"--?[\w-]+", (done.stdout + done.stderr).replace("--[no-]", "--")))
    taken |= {option.replace("--no-", "--") for option in taken}
    assert {
        option.rstrip(":").replace("--no-", "--") for option in option_table()[name]
    } - taken == set()
