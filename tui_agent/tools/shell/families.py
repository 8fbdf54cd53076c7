"""Which rule "always" offers for a command: never more than the family it belongs to.

``git commit -m x`` belongs to ``git commit *``; ``npm run test`` is a family of its own. How many words name a family
depends on the program. Where arguments decide whether a command is harmless, only the very same command is offered.
"""

import re
from collections.abc import Sequence

from tui_agent.tools.shell.words import Word, listed

_WORDS: dict[str, int] = {
    **dict.fromkeys(
        listed(
            """
            git npm pnpm yarn bun deno cargo go uv poetry pipenv docker podman kubectl helm terraform tofu dotnet
            mvn gradle ./gradlew ./mvnw bundle rails composer systemctl brew apt apt-get dnf pacman rustup conda
            mamba hatch pdm nox flutter dart swift mix sbt stack cabal zig nix rake just task turbo nx lerna
            pre-commit alembic flask ng ruff
            """
        ),
        2,
    ),
    **dict.fromkeys(
        ("git stash", "git remote", "git worktree", "git submodule", "git bisect", "git notes", "git lfs", "npm run",
         "npm run-script", "pnpm run", "yarn run", "bun run", "deno task", "go mod", "go tool", "uv pip", "uv tool",
         "docker compose", "docker image", "docker container", "docker volume", "docker network", "docker buildx",
         "podman compose", "yarn workspace", "cargo nextest", "hatch run", "hatch env", "php artisan", "gh", "aws",
         "gcloud", "az", "terraform state", "kubectl config", "rails db", "turbo run", "nx run", "flutter pub",
         "dart pub", "npm workspace", "conda env"),
        3,
    ),
}  # fmt: skip

_RUNNERS = (
    "uv run",
    "poetry run",
    "pipenv run",
    "bundle exec",
    "npx",
    "bunx",
    "pnpm exec",
    "pnpm dlx",
    "yarn dlx",
    "pdm run",
)
"""What follows is a command with a family of its own."""

_EXACT = listed(
    """
    rm rmdir unlink shred dd truncate chmod chown chgrp chattr ln kill killall pkill shutdown reboot halt
    mount umount curl wget http nc ncat socat telnet ftp sftp ssh scp rsync sudo su doas eval source . exec
    trap alias crontab at batch make gmake cmake ninja perl ruby php lua osascript watch parallel script
    expect screen tmux nohup setsid chroot unshare nsenter iptables useradd usermod passwd visudo systemctl
    launchctl service openssl gpg base64 tar zip unzip cpio install sed awk gawk tee xargs find export
    declare typeset readonly local unset bash sh zsh dash ksh fish env sqlite3 psql mysql
    """
)
_EXACT_FAMILIES = frozenset(
    {
        "git push", "git reset", "git clean", "git config", "git filter-branch", "git gc", "git clone",
        "git rm", "git rebase", "git restore", "git checkout", "git switch", "git apply", "git am",
        "git update-ref", "npm install", "npm i", "npm add", "npm exec", "npm publish", "npm config", "npm ci",
        "pnpm add", "pnpm install", "pnpm publish", "yarn add", "yarn publish", "bun add", "bun install",
        "bun x", "deno run", "deno eval", "cargo install", "cargo publish", "go install", "go generate",
        "go get", "go env", "pip install", "pip3 install", "uv add", "uv pip install", "uv tool install",
        "uv publish", "poetry add", "poetry publish", "docker run", "docker exec", "docker rm", "docker rmi",
        "docker system", "docker volume rm", "docker compose exec", "docker compose run", "podman run",
        "kubectl delete", "kubectl apply", "kubectl exec", "terraform apply", "terraform destroy",
        "brew install", "apt install", "apt-get install", "git submodule foreach", "git bisect run",
        "git worktree remove", "gh api", "gh repo delete", "gem install", "composer require",
    }
)  # fmt: skip
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SCRIPTED = re.compile(r"(?:python|pypy)[\d.]*|node|ts-node|tsx|bash|sh|zsh|ruby|perl|php")
_PLAIN = re.compile(r"[\w.@/:+-]+", re.ASCII)


def family(words: Sequence[Word]) -> str:
    """Return the pattern of the rule that "always" creates for a simple command."""
    shown = [word.shown for word in words]
    exact = escaped(" ".join(shown))
    names = _names([word.value for word in words])
    if names is None or any(not _PLAIN.fullmatch(name) for name in names):
        return exact
    return escaped(" ".join(names)) + " *" if len(shown) >= len(names) else exact


def run_by(words: Sequence[str]) -> list[str]:
    """Return what a runner (``uv run``, ``npx``) may be given to run, for rules against that: all of it, or less."""
    size = next((r.count(" ") + 1 for r in _RUNNERS if " ".join(words[: r.count(" ") + 1]) == r), 0)
    return [" ".join(words[first:]) for first in range(size, min(len(words), size + 6))] if size else []


def escaped(text: str) -> str:
    """Return a pattern that matches a text only."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _names(values: Sequence[str | None]) -> list[str] | None:
    """Return the words that name the family; None when only the very same command may be offered."""
    known = [value if value is not None else "$" for value in values]
    for runner in _RUNNERS:
        size = runner.count(" ") + 1
        if " ".join(known[:size]) == runner:
            rest = _names(known[size:]) if len(known) > size and not known[size].startswith("-") else None
            return [*known[:size], *rest] if rest is not None else None
    program = known[0]
    if program in _EXACT:
        return None
    if _SCRIPTED.fullmatch(program):
        return _script_names(program, known)
    size = next((_WORDS[" ".join(known[:count])] for count in (2, 1) if " ".join(known[:count]) in _WORDS), 1)
    names = known[:size]
    if len(names) < size or any(name.startswith("-") for name in names[1:]):
        return None
    # ``npm run test`` as it stands is what was asked about; with arguments it is a family.
    if size == 3 and len(known) == 3 and names[0] in {"npm", "pnpm", "yarn", "bun", "deno"}:
        return None
    return None if any(" ".join(names[:count]) in _EXACT_FAMILIES for count in (2, 3)) else names


def _script_names(program: str, known: Sequence[str]) -> list[str] | None:
    if _PYTHON.fullmatch(program) and known[1:2] == ["-m"] and len(known) > 2:
        return None if known[2] in {"pip", "code", "timeit", "pdb", "http.server"} else [program, "-m", known[2]]
    if len(known) > 1 and not known[1].startswith("-") and "." in known[1]:
        return [program, known[1]]
    return None
