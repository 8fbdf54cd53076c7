"""Which commands build, test or check a project, and which change its files: free where a sandbox holds them.

These run whatever the project's code says, so nothing here is harmless as such. In a sandbox they can change the
project and nothing else, the repository and secrets are out of their reach, and there is no network. What throws work
away on purpose (``make deploy``, ``npm run db:reset``) is not in them, by name; nor is code on the command line, which
would be an edit that nobody sees.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Literal

from tui_agent.tools.permission import Permission, PermissionNeed
from tui_agent.tools.sensitive import is_sensitive, rules_programs
from tui_agent.tools.shell.special import SPECIAL
from tui_agent.tools.shell.words import Word, listed, literal

Inside = Literal["", "builds", "edits"]

_TOOLS = listed(
    """
    pytest py.test mypy pyright basedpyright pylint flake8 pyflakes pycodestyle pydocstyle vulture bandit
    coverage tsc vue-tsc jest vitest mocha ava jasmine nyc c8 tap rollup esbuild tsup webpack rspec rubocop phpunit
    phpstan psalm ctest gcc g++ cc c++ clang clang++ clang-tidy cppcheck rustc javac kotlinc ghc nvcc shellcheck
    hadolint yamllint actionlint markdownlint markdownlint-cli2 sphinx-build golangci-lint staticcheck cargo-nextest
    lint-imports import-linter deptry ty tokei cloc
    """
)
"""Programs that build, test or check whatever they are given."""

_TASKS = listed("make gmake ninja just task rake mage invoke inv nox tox gradle ./gradlew mvn ./mvnw meson bazel")
"""Programs that run tasks by name."""

_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "cargo": listed("build b check c test t nextest clippy doc d bench run r tree metadata"),
    "go": listed("build test vet list run doc"),
    "npm": listed("test t tst run run-script start"),
    "pnpm": listed("test t run start lint build typecheck"),
    "yarn": listed("test run start lint build typecheck"),
    "bun": listed("test run build"),
    "deno": listed("test check lint bench"),
    "dotnet": listed("build test run"),
    "swift": listed("build test run"),
    "zig": listed("build test"),
    "mix": listed("compile test credo dialyzer"),
    "sbt": listed("compile test"),
    "stack": listed("build test"),
    "cabal": listed("build test check"),
    "flutter": listed("analyze test"),
    "dart": listed("analyze test"),
    "hatch": listed("test"),
    "vite": listed("build"),
    "next": listed("build lint"),
    "mkdocs": listed("build"),
    "rails": listed("test"),
    "composer": listed("test"),
}
_REWRITES: dict[str, re.Pattern[str]] = {
    "eslint": re.compile(r"--fix.*"),
    "stylelint": re.compile(r"--fix"),
    "biome": re.compile(r"--(?:write|apply|fix).*|format|migrate"),
    "prettier": re.compile(r"-w|--write"),
    "rubocop": re.compile(r"-[aA]|--(?:auto|fix).*"),
    "golangci-lint": re.compile(r"--fix|fmt"),
    "gofmt": re.compile(r"-w.*"),
    "goimports": re.compile(r"-w.*"),
    "clang-format": re.compile(r"-i|--i.*"),
    "clang-tidy": re.compile(r"-{1,2}fix.*"),
    "cargo": re.compile(r"--fix|fix|fmt"),
    "markdownlint": re.compile(r"-f|--fix"),
    "markdownlint-cli2": re.compile(r"--fix"),
    "autoflake": re.compile(r"-i|--in-place"),
}
"""Programs that check, and with these words rewrite."""
_FORMATTERS: dict[str, re.Pattern[str]] = {
    "black": re.compile(r"--check|--diff"),
    "isort": re.compile(r"-c|--check(?:-only)?|--diff"),
    "yapf": re.compile(r"-d|--diff"),
    "autopep8": re.compile(r"-d|--diff"),
    "rustfmt": re.compile(r"--check"),
    "shfmt": re.compile(r"-d|-l"),
}
"""Programs that rewrite, and with these words only check."""
_RUFF_REWRITES = re.compile(r"--fix.*|--unsafe-fixes|--add-noqa")
_RUNNERS: dict[str, tuple[str, ...]] = {
    "uv": ("run",), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "rye": ("run",),
    "bundle": ("exec",), "npx": (), "bunx": (), "pnpm": ("exec",), "yarn": ("exec",), "npm": ("exec",),
}  # fmt: skip
"""What follows these words is a command of its own."""
_MODULES = listed(
    """
    pytest unittest doctest mypy ruff black isort flake8 pylint pyflakes compileall py_compile coverage tox nox
    json.tool build trace timeit tabnanny
    """
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_INTERPRETERS = listed("node ruby perl php bash sh dash zsh tsx ts-node Rscript lua source .")
_SHELL_FLAGS = re.compile(r"-[xeuvn]+")
_FLAGS = re.compile(r"-(?:[uBOqIEsSPb]+|W\w+)")
"""Options of Python that take nothing and run nothing."""
_RISKY = re.compile(
    r"(?:^|[^a-z])(?:un)?(?:deploy|publish|release|drop|reset|destroy|delete|remove|purge|prune|wipe|flush|rollback|"
    r"revert|truncate|nuke|migrate|downgrade|seed|push|upload|install|distclean|eject|clobber|commit|tag|bump)(?:$|[^a-z])"
)
"""Names of tasks that are meant to change more than a build."""
_EDITORS = listed("cp mv patch")
_DISCARDS = re.compile(r"-[A-Za-z]*[ft]|--(?:force|target-directory|remove-source-files|output|backup).*|-[a-zA-Z]*o")


def inside(words: Sequence[Word]) -> Inside:
    """Return what a simple command does in a project: builds and tests, edits files, or "" for anything else."""
    values = [word.value for word in words]
    if None in values or any(word.tilde for word in words):
        return ""
    return _inside([value for value in values if value is not None])


def is_held(needs: Iterable[PermissionNeed]) -> bool:
    """Whether a sandbox can hold a whole command line to the project: everything in it reads, builds or edits.

    One that is to use the network or write into the repository can't be.
    """
    return all(map(_is_held, needs))


def _is_held(need: PermissionNeed) -> bool:
    match need.permission:
        case Permission.BASH:
            return bool(need.harmless or need.inside) and not need.unclear
        case Permission.EDIT:
            return ".git" not in PurePath(need.pattern).parts
        case other:
            return other is not Permission.NETWORK


def _inside(texts: list[str]) -> Inside:
    program, rest = texts[0], texts[1:]
    if program.removeprefix("./").startswith((".venv/bin/", "venv/bin/", "node_modules/.bin/", "vendor/bin/")):
        program = program.rpartition("/")[2]
    for known in (_run, _rewriting, _building):
        found = known(program, rest)
        if found is not None:
            return found
    return ""


def _run(program: str, rest: list[str]) -> Inside | None:
    """What runs another command or a file of the project."""
    runner = _RUNNERS.get(program)
    if runner is not None and tuple(rest[: len(runner)]) == runner:
        inner = rest[len(runner) :]
        return _inside(inner) if inner and not inner[0].startswith("-") else ""
    if _PYTHON.fullmatch(program):
        return _python(rest)
    if program in _INTERPRETERS:
        if program == "node" and rest[:1] == ["--test"]:
            return "builds"
        traced = program in {"bash", "sh"} and bool(rest) and _SHELL_FLAGS.fullmatch(rest[0])
        return _file(rest[1:] if traced else rest)
    if "/" in program and program not in _TASKS and not program.startswith(("/", "~")):
        return _file([program, *rest])
    return None


def _python(rest: list[str]) -> Inside:
    while rest and _FLAGS.fullmatch(rest[0]):
        rest = rest[1:]
    if len(rest) > 1 and rest[0] == "-m":
        return (_inside(rest[1:]) or "builds") if rest[1] in _MODULES else ""
    return _file(rest)


def _file(rest: list[str]) -> Inside:
    """A program of the project: it does what its code says, unless its words tell of more."""
    if not rest or rest[0].startswith(("-", "/dev/", "/proc/")):
        return ""
    return "" if _is_risky(rest) else "builds"


def _rewriting(program: str, rest: list[str]) -> Inside | None:
    if program == "ruff":
        checks = rest[:1] == ["check"] and not any(map(_RUFF_REWRITES.fullmatch, rest))
        formats = rest[:1] == ["format"] and bool({"--check", "--diff"} & set(rest))
        return "builds" if checks or formats else "edits" if rest[:1] in (["check"], ["format"]) else ""
    if program in _FORMATTERS:
        return "builds" if any(map(_FORMATTERS[program].fullmatch, rest)) else "edits"
    if program in _REWRITES and any(map(_REWRITES[program].fullmatch, rest)):
        return "edits"
    if program in {"eslint", "stylelint", "biome", "prettier", "gofmt", "goimports", "clang-format", "autoflake"}:
        return "builds"
    return _editing(program, rest)


def _editing(program: str, rest: list[str]) -> Inside | None:
    """``sed -i``, ``cp``, ``mv``: edits of ordinary files."""
    in_place = program == "sed" and any(re.fullmatch(r"-[nErsz]*i.*|--in-place.*", text) for text in rest)
    if not in_place and program not in _EDITORS:
        return None
    plain = [PurePath(text) for text in rest if not text.startswith("-")]
    guarded = any(rules_programs(path) or is_sensitive(path) for path in plain)
    if in_place:
        # A script of sed may run commands and write files: only one that would just print otherwise is an edit.
        plain_script = [literal(text) for text in rest if text not in {"-i", "--in-place"}]
        return "edits" if not guarded and SPECIAL["sed"](plain_script) is not None else ""
    return "" if guarded or any(map(_DISCARDS.fullmatch, rest)) else "edits"


def _building(program: str, rest: list[str]) -> Inside | None:
    if program in _TOOLS:
        return "builds"
    builds = program in _TASKS or bool(rest and rest[0] in _SUBCOMMANDS.get(program, ()))
    if program == "cmake":
        builds = rest[:1] not in (["-E"], ["-P"])
    if program == "yarn" and rest:
        builds = builds or rest[0] in _TOOLS
    return "builds" if builds and not _is_risky(rest) else None


def _is_risky(texts: Sequence[str]) -> bool:
    return any(_RISKY.search(text.lower()) for text in texts)
