"""Which files of a project hold secrets."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.project_scans import scan_project
from tests.support.secret_shapes import BEGIN, made
from tui_agent.files.secret_files import file_holds_secret, is_secret_file, secrets_among_programs

TOKEN = "ghp" + "_0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f"


@pytest.mark.parametrize(
    ("holds", "name", "text"),
    [
        (True, ".env", ""),
        (True, "deploy/id_rsa", ""),
        (True, "config/production.yml", "db:\n  password: swordfish\n"),
        (True, "settings.json", '{"clientSecret": "0a1b2c3d4e5f6a7b8c9d"}'),
        (True, ".git/config", f'[remote "origin"]\n\turl = https://me:{TOKEN}@github.com/me/x\n'),
        (True, "notes", f"the token is {TOKEN}"),
        (True, "terraform.tfstate", '{"password": "hunter2hunter2"}'),
        (False, ".env.example", f"API_TOKEN={TOKEN}"),
        (False, "test_login.py", f'TOKEN = "{TOKEN}"'),
        (False, "README.md", "curl -u alice:hunter2 x"),
        (False, "config.yml", "db:\n  password: ${DB_PASSWORD}\n"),
        (False, ".git/config", '[remote "origin"]\n\turl = https://github.com/me/x\n'),
        (
            False,
            "package-lock.json",
            '{"integrity": "sha512-z1GiCdq2JWMgUqQwGJ0dBfQbVVYRkvTcLoJNtnGSNV4qXjDkaf3KJ=="}',
        ),
    ],
)
def test_files_that_hold_secrets(tmp_path: Path, name: str, text: str, *, holds: bool) -> None:
    """One is looked at again when it changed."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a: 1\n")
    assert file_holds_secret(path) is name.endswith((".env", "id_rsa"))
    path.write_text(text)
    assert file_holds_secret(path) is holds


@pytest.mark.parametrize(("begin", "whole"), [(BEGIN.format("RSA "), True), ("not a key", False)])
def test_a_private_key_makes_a_secret_of_a_file_however_much_is_around_it(
    tmp_path: Path, begin: str, *, whole: bool
) -> None:
    path = tmp_path / "deploy.txt"
    path.write_text(f"{'How to deploy.' * 200}\n{begin}\n{made(64)}\n{made(64)}\n{TOKEN}\n")
    assert is_secret_file(path) is whole


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not file_holds_secret(tmp_path / "pipe")
    assert not file_holds_secret(tmp_path)
    assert not file_holds_secret(tmp_path / "none")


def test_secrets_of_installed_programs_are_found_and_their_libraries_are_not_gone_through(
    tmp_path: Path,
) -> None:
    secret = f"token = {TOKEN}\n"
    wanted = [
        "bin/.env",
        "bin/deploy",
        "v/node/etc/npmrc",
        "conf/db.properties",
        "ssl/private/server.key",
        ".netrc",
    ]
    for name in (*wanted, "lib/x/.env", "bin/plain", "share/doc/notes.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" if name.endswith("plain") else secret)
    found = {path.relative_to(tmp_path).as_posix() for path in secrets_among_programs([tmp_path])}
    assert found == {*wanted}


UNTRACKED = (
    "new.json", "terraform.tfstate", "main.tf", "a.hcl", "build.gradle", "a.kts", "a.jsonc", "a.cnf", "x.service",
    "a.http", "app.log", "rows.jsonl", "token.dat", "deploy.ps1", "run.bat", "a.zsh", "vpn.ovpn", "id.ppk", "ca.crt",
    "a.jwk", "a.asc", "settings.yml.old", "server.pem.bak", "id_rsa.bak", "config.json~", "env.prod", "id_rsa_work",
    ".htpasswd", ".dockercfg", "kubeconfig", "notes.txt", "x.backup", "x.dump", "data.sql", "page.html", "x.lock",
    "a.ipynb", "x.unheard-of", ".envrc",
)  # fmt: skip


@pytest.mark.parametrize("ignored", ["", "*.log\n*.bak\n*.tf\n"])
def test_commands_do_not_see_secrets_that_git_does_not_track(tmp_path: Path, ignored: str) -> None:
    for name in ("tracked.json", *UNTRACKED):
        (tmp_path / name).write_text(f'{{"password": "{TOKEN}"}}')
    (tmp_path / "huge.log").write_text(f"{TOKEN}\n" * 30_000)
    (tmp_path / ".gitignore").write_text(ignored)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "add", "tracked.json"], cwd=tmp_path, check=True)
    assert {path.name for path in scan_project(tmp_path).secrets} == set(UNTRACKED)
