"""Plugins in Claude Code's layout: shown, added, held to what was added, removed."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.cli.extensions import Extensions, folders_of
from tui_agent.cli.main import run
from tui_agent.config import load_config
from tui_agent.paths import data_dir
from tui_agent.plugins import PluginError, PluginStore, digest_of, market_of, read_plugin
from tui_agent.resources import prompt


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin that brings everything along; a home and a project of nothing."""
    root = tmp_path / "market/plugins/kit"
    manifest = {
        "name": "kit",
        "version": "1.2",
        "description": "a kit",
        "skills": "./more",
        "lspServers": {},
    }
    write(root / ".claude-plugin/plugin.json", json.dumps(manifest))
    for folder, name in (("skills", "ship"), ("more", "extra")):
        write(
            root / f"{folder}/{name}/SKILL.md",
            f"---\nname: {name}\ndescription: d\n---\nIn ${{CLAUDE_PLUGIN_ROOT}}.",
        )
    write(root / "commands/fix.md", "Fix $0")
    write(root / "agents/rev.md", "---\nname: rev\ndescription: d\ntools: Read\n---\nbody")
    hook = {
        "matcher": "Bash",
        "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/guard.sh"}],
    }
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [hook]}}))
    write(
        root / ".mcp.json",
        json.dumps({"mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/db"}}}),
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project")
    return root


def known() -> Knowledge:
    loaded = Knowledge(Sources(folders_of(Path.cwd(), load_config().config)), prompt=prompt)
    loaded.load()
    return loaded


def names() -> set[str]:
    loaded = known()
    own = {spec.name for spec in loaded.specs if spec.origin}
    return {*loaded.skills, *(command.name for command in loaded.commands), *own}


def test_a_plugin_is_shown_added_used_and_removed(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plugin", "add", str(plugin)]) == 2
    told = capsys.readouterr()
    assert "kit 1.2\n  a kit\n  skill: ship, extra\n  command: fix\n  agent: rev\n" in told.out
    assert f"hook: PreToolUse: runs {plugin}/guard.sh" in told.out
    assert f"MCP server: db: runs {plugin}/db" in told.out
    assert "no effect here: language servers" in told.out
    assert "add --yes" in told.err
    assert names() == set()
    assert run(["plugin", "add", str(plugin), "--yes"]) == 0
    assert names() == {"kit:ship", "kit:extra", "kit:fix", "kit:rev"}
    root = data_dir() / "plugins/kit"
    assert known().skills["kit:ship"].text().startswith(f"In {root}.")
    extensions = Extensions(lambda _cwd: False)
    assert [spec.settings.command for spec in extensions.servers(Path.cwd()).specs] == [
        f"{root}/db"
    ]
    (hook,) = extensions.load_hooks(Path.cwd()).handlers
    assert hook.settings.command == f"{root}/guard.sh"
    capsys.readouterr()
    assert run(["plugin"]) == 0
    assert capsys.readouterr().out.split()[:2] == ["kit", "1.2"]
    assert run(["plugin", "remove", "kit"]) == 0
    assert names() == set()
    assert not root.exists()
    assert run(["plugin", "remove", "kit"]) == 2


def test_a_plugin_that_changed_does_not_act(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["plugin", "add", str(plugin), "--yes"])
    write(data_dir() / "plugins/kit/commands/new.md", "sly")
    assert names() == set()
    capsys.readouterr()
    run(["plugin", "list"])
    assert "has changed since you added it" in capsys.readouterr().err


def test_a_marketplace_is_a_folder_or_a_clone(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market = plugin.parents[1]
    rows = [
        {"name": "kit", "source": "./plugins/kit"},
        {"name": "far", "source": {"source": "github", "repo": "a/b"}},
    ]
    write(market / ".claude-plugin/marketplace.json", json.dumps({"name": "m", "plugins": rows}))
    assert run(["plugin", "add", str(market), "--yes"]) == 2
    assert "Name one of its plugins: far, kit." in capsys.readouterr().err
    assert run(["plugin", "add", str(market), "far", "--yes"]) == 2
    assert "Add it from there" in capsys.readouterr().err
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(market)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    assert run(["plugin", "add", f"file://{market}", "kit", "--yes"]) == 0
    assert "kit:ship" in names()


def test_a_git_that_cannot_be_run_is_not_taken_for_a_slow_one(
    plugin: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = plugin.parents[2] / "bin"
    broken.mkdir()
    (broken / "git").write_bytes(b"\x00no program")
    (broken / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(broken))
    assert run(["plugin", "add", "https://plugins.example/kit", "--yes"]) == 2
    told = capsys.readouterr().err
    assert "could not be cloned: " in told
    assert "seconds" not in told


STOP = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
AGENT = "---\ndescription: d\n---\nx"
MANIFEST = ".claude-plugin/plugin.json"


@pytest.mark.parametrize(
    "files",
    [
        {"skills/a/SKILL.md": "---\nname: a\ndescription: d\n---\nx"},
        {"commands/a.md": "x"},
        {"agents/a.md": AGENT},
        {".mcp.json": '{"a": {"command": "x"}}'},
        {"hooks/hooks.json": STOP},
        {MANIFEST: '{"name": "a", "commands": ["./deep/cmds"]}', "deep/cmds/a.md": "x"},
        {MANIFEST: '{"name": "a", "agents": "./who"}', "who/a.md": AGENT},
        {MANIFEST: '{"name": "a", "mcpServers": {"s": {"url": "https://x.test"}}}'},
        {MANIFEST: '{"name": "a", "mcpServers": "./s.json"}', "s.json": '{"mcpServers": {"s": {"command": "x"}}}'},
        {MANIFEST: f'{{"name": "a", "hooks": {STOP}}}'},
        {MANIFEST: '{"name": "a", "hooks": "./h.json"}', "h.json": STOP},
        {MANIFEST: '{"name": "a"}', "output-styles/a.md": "x"},
        {MANIFEST: '{"name": "a", "commands": ["./one/a.md"]}', "one/a.md": "x"},
        {MANIFEST: '{"name": "a", "commands": {"a": {"source": "./a.md"}}}', "a.md": "x"},
        {MANIFEST: '{"name": "a", "mcpServers": ["./a.mcpb"]}'},
        {MANIFEST: f'{{"name": "a", "hooks": ["./h.json", {STOP}]}}', "h.json": STOP},
    ],
)  # fmt: skip
def test_layouts_load_or_say_what_they_cannot(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(tmp_path / "a" / name, text)
    assert list(read_plugin(tmp_path / "a").brings())


def test_what_is_no_plugin_or_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(PluginError, match="is not a plugin"):
        read_plugin(tmp_path / "none")
    write(tmp_path / "odd/.claude-plugin/plugin.json", "{")
    with pytest.raises(PluginError, match="can't be read"):
        read_plugin(tmp_path / "odd")
    write(tmp_path / "secret.txt", "x")
    write(tmp_path / "sly/commands/a.md", "x")
    (tmp_path / "sly/commands/b.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(PluginError, match="leads out"):
        digest_of(tmp_path / "sly")
    with pytest.raises(PluginError, match="leads out"):
        PluginStore(tmp_path / "store").add(read_plugin(tmp_path / "sly"), "sly", "")
    write(tmp_path / "sly2/commands/a.md", "x")
    (tmp_path / "sly2/skills").symlink_to(tmp_path / "none")
    with pytest.raises(PluginError, match="leads out"):
        digest_of(tmp_path / "sly2")
    (tmp_path / "sly2/skills").unlink()
    (tmp_path / "sly2/circle").symlink_to("circle")
    with pytest.raises(PluginError, match="can't be read"):
        digest_of(tmp_path / "sly2")
    write(
        tmp_path / "m/.claude-plugin/marketplace.json",
        '{"plugins": [{"name": "x", "source": "../../secret"}, 3]}',
    )
    assert market_of(tmp_path / "m") == {"x": '"../../secret"'}


def test_what_changed_while_the_user_looked_at_it_is_not_added(
    tmp_path: Path, plugin: Path
) -> None:
    seen = digest_of(plugin)
    write(plugin / "commands/other.md", "x")
    store = PluginStore(tmp_path / "store")
    with pytest.raises(PluginError, match="has changed since its contents"):
        store.add(read_plugin(plugin), "kit", seen)
    assert not store.plugins()
