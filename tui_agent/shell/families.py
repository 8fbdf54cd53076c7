"""Which rule "always" offers for a command: the family it belongs to, where that is known; else the very same command.

`git commit -m x` belongs to `git commit *`; `npm run test` is a family of its own. A program is here only when all
it does with other words is of the same kind.
"""

import re
from collections.abc import Sequence

from tui_agent.shell.words import Word, listed

_WHOLE = listed(
    """
    pytest py.test mypy pyright basedpyright pylint flake8 black isort eslint prettier stylelint tsc jest vitest mocha
    rspec rubocop phpunit shellcheck yamllint ctest tokei cloc mkdir touch
    """
)
"""Programs that do one thing, whatever they are told."""

_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "git": listed(
        """
        add commit log diff show status blame grep shortlog describe rev-parse rev-list ls-files branch tag merge-base
        cherry-pick merge mv fetch pull revert
        """
    ),
    "ruff": listed("check format"),
    "cargo": listed("build check test clippy fmt doc bench run tree"),
    "go": listed("build test vet list run fmt doc"),
    "uv": listed("sync lock tree"),
    "npm": listed("test ls outdated audit"),
    "pnpm": listed("test ls list outdated"),
    "yarn": listed("test list outdated"),
    "bun": listed("test"),
    "docker": listed("ps images logs build inspect"),
    "docker compose": listed("ps logs build up down"),
    "kubectl": listed("get describe logs"),
    "terraform": listed("plan validate fmt"),
    "dotnet": listed("build test"),
    "mvn": listed("compile test package"),
    "gradle": listed("build test check"),
    "./gradlew": listed("build test check"),
    "git stash": listed("list show push pop apply"),
    "gh pr": listed("view list diff status checks"),
    "gh issue": listed("view list status"),
    "gh run": listed("view list"),
}
_TASKS = listed("npm pnpm yarn bun")
"""Programs whose `run` takes the name of a task, which is a family."""
_RUNNERS = ("uv run", "poetry run", "pipenv run", "pdm run", "bundle exec", "npx", "bunx", "pnpm exec")
"""What follows is a command with a family of its own."""
_MODULES = listed("pytest unittest doctest mypy ruff black isort flake8 pylint compileall coverage build")
_SCRIPTED = re.compile(r"(?:python|pypy)[\d.]*|node|ts-node|tsx|bash|sh|zsh|ruby|perl|php")
_PLAIN = re.compile(r"[\w.@/:+-]+", re.ASCII)


def family(words: Sequence[Word]) -> str:
    """Return the pattern of the rule that "always" creates for a simple command."""
    exact = escaped(" ".join(word.shown for word in words))
    names = _names([word.value or "$" for word in words])
    if not names or not all(map(_PLAIN.fullmatch, names)):
        return exact
    # A task as it stands is what was asked about; with arguments it is a family.
    return exact if len(names) == len(words) and names[0] in _TASKS and "run" in names else f"{' '.join(names)} *"


def run_by(words: Sequence[str]) -> list[str]:
    """Return what a runner (``uv run``, ``npx``) may be given to run, for rules against that: all of it, or less."""
    size = next((r.count(" ") + 1 for r in _RUNNERS if " ".join(words[: r.count(" ") + 1]) == r), 0)
    return [" ".join(words[first:]) for first in range(size, min(len(words), size + 6))] if size else []


def escaped(text: str) -> str:
    """Return a pattern that matches a text only."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _names(words: Sequence[str]) -> list[str]:
    """Return the words that name the family; none where only the very same command may be offered."""
    for runner in _RUNNERS:
        size = runner.count(" ") + 1
        if " ".join(words[:size]) == runner:
            inner = _names(words[size:])
            return [*words[:size], *inner] if inner else []
    program = words[0] if words else ""
    second = words[1] if len(words) > 1 else ""
    for size in (2, 1):
        if words[size : size + 1] and words[size] in _SUBCOMMANDS.get(" ".join(words[:size]), ()):
            return list(words[: size + 1])
    if program in _TASKS and second == "run" and len(words) > 2:
        return list(words[:3])
    if _SCRIPTED.fullmatch(program):
        if second == "-m" and words[2:3] and words[2] in _MODULES:
            return list(words[:3])
        return list(words[:2]) if "." in second and not second.startswith("-") else []
    return [program] if program in _WHOLE or (program.startswith("./") and len(program) > 2) else []
