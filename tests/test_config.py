"""Settings come from where people put them, and a mistake says what to do."""

import os
import shlex
import stat
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from tui_agent.agent.permissions import Action, Rule
from tui_agent.cli.kept_rules import forget_rule, keep_rule
from tui_agent.config import (
    MAX_TOLD,
    ConfigError,
    get_value,
    load_config,
    set_value,
    without_secrets,
)
from tui_agent.permission import NEVER_ASK
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.setting_rows import UNSET, setting_rows
from tui_agent.web.settings import SearchSettings


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_later_sources_win_and_every_value_knows_its_origin(tmp_path: Path) -> None:
    rules = '[permissions]\nbash = {"rm *" = "%s"}\n'
    project = tmp_path / "project.toml"
    project.write_text(
        'model = "a/project"\nretry.attempts = 9\n[compaction]\nauto = true\n' + rules % "allow"
    )
    path = write(
        tmp_path,
        'max_steps = 7\nretry.attempts = 3\n[compaction]\nthreshold = "80%"\n' + rules % "deny",
    )
    environ = {
        "TUI_AGENT_MODEL": "a/environment",
        "TUI_AGENT_COMPACTION__AUTO": "false",
        "TUI_AGENT_DATA_DIR": "/x",
    }
    loaded = load_config(path, environ, {"model": "a/flag"}, project=project)
    assert (loaded.config.model, loaded.origin("model")) == ("a/flag", "flag")
    assert (loaded.config.compaction.auto, loaded.origin("compaction.auto")) == (
        False,
        "environment",
    )
    assert (loaded.config.compaction.threshold, loaded.origin("compaction.threshold")) == (
        "80%",
        "file",
    )
    assert loaded.origin("max_steps") == "file"
    assert loaded.origin("prune.when") == "default"
    assert (loaded.config.retry.attempts, loaded.origin("retry.attempts")) == (9, "project")
    assert loaded.config.permissions == {"bash": {"rm *": "deny"}}
    assert loaded.project_permissions == {"bash": {"rm *": "allow"}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = ", ["config.toml", "not valid TOML"]),
        ("max_steps = 0", ["max_steps = 0", "greater than or equal to 1"]),
        ('compaction.threshold = "lots"', ["compaction.threshold = 'lots'", "80%"]),
        ('mode = "turbo"', ["mode = 'turbo'", "build"]),
        ("compaction = 3", ["compaction = 3"]),
        ('models."a/b" = 3', ["models.a/b = 3"]),
    ],
)
def test_a_mistake_names_file_key_value_and_what_is_accepted(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_config(path, {})
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert path.read_text() == text


def test_a_setting_of_an_earlier_version_is_taken_without_a_word(tmp_path: Path) -> None:
    loaded = load_config(write(tmp_path, "[host]\nkeep_warm = 300\nstall_timeout = 5\n"), {})

    assert (loaded.warnings, loaded.config.host.stall_timeout) == ((), 5)


def test_the_memorys_former_name_counts_unless_the_new_one_is_there(tmp_path: Path) -> None:
    loaded = load_config(write(tmp_path, "notes_tokens = 300\n"), {})
    assert loaded.config.memory.tokens == 300
    assert loaded.warnings == ()
    both = write(tmp_path, "notes_tokens = 300\n[memory]\ntokens = 5\n")
    assert load_config(both, {}).config.memory.tokens == 5
    wrong = write(tmp_path, "notes_tokens = 300\nmemory = 7\n")
    with pytest.raises(ConfigError, match="memory"):
        load_config(wrong, {})


def test_a_project_cannot_have_a_model_asked_for_its_memory(tmp_path: Path) -> None:
    brought = tmp_path / "project.toml"
    brought.write_text('[memory]\npropose = "always"\ntokens = 100\n')
    memory = load_config(tmp_path / "config.toml", environ={}, project=brought).config.memory
    assert memory.propose == "attended"
    assert memory.tokens == 100


@pytest.mark.parametrize(
    ("name", "ours"),
    [("compaction.keepRecentTokens", "compaction.keep_recent"), ("compaction.prune", "prune")],
)
def test_a_setting_by_another_programs_name_is_answered_with_the_right_one(
    tmp_path: Path, name: str, ours: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"{name} = 1\n", encoding="utf-8")
    loaded = load_config(path, {})
    assert f"does not know: {name}. Here it is called {ours}." in loaded.warnings[0]
    assert name not in loaded.origins, "the doctor lists what is in force"


def test_a_variable_that_sets_nothing_is_named(tmp_path: Path) -> None:
    environ = {
        "TUI_AGENT_MODLE": "x",
        "TUI_AGENT_UI__PLIAN": "1",
        "TUI_AGENT_UI__PLAIN": "true",
        "TUI_AGENT_DATA_DIR": "/x",
        "TUI_AGENT_CALL": "7",
    }
    loaded = load_config(tmp_path / "config.toml", environ=environ)
    assert loaded.config.ui.plain
    assert loaded.warnings == (
        "The variable TUI_AGENT_UI__PLIAN names no setting that this version knows. Did you mean ui.plain?",
        "The variable TUI_AGENT_MODLE names no setting that this version knows. Did you mean model or mode?",
    )


def test_unknown_keys_are_reported_and_kept(tmp_path: Path) -> None:
    path = write(tmp_path, 'future = 1\n[compaction]\nmagic = true\n[models."a/b"]\nodd = 2\n')
    loaded = load_config(path, {})
    assert len(loaded.warnings) == 3
    set_value("model", "x/y", path)
    table = tomllib.loads(path.read_text())
    assert table == {
        "model": "x/y",
        "future": 1,
        "compaction": {"magic": True},
        "models": {"a/b": {"odd": 2}},
    }


def test_a_proxy_that_cannot_be_used_is_told_of(tmp_path: Path) -> None:
    (warning,) = load_config(tmp_path / "none.toml", {"all_proxy": "gopher://corp"}).warnings
    assert warning == "ALL_PROXY is ignored: “gopher://corp” is not an HTTP or SOCKS 5 proxy."


def test_each_mistake_is_told_in_a_line_of_its_own_with_its_source(tmp_path: Path) -> None:
    path = write(tmp_path, 'max_steps = 0\n[compaction]\nauto = "maybe"\n')
    environ = {"TUI_AGENT_RETRY__ATTEMPTS": "many"}
    with pytest.raises(ConfigError) as raised:
        load_config(path, environ)
    lines = str(raised.value).splitlines()
    assert [line.partition(": ")[0] for line in lines].count(str(path)) == 2
    assert [line.partition(": ")[2].partition(" ")[0] for line in lines] == [
        "max_steps",
        "compaction.auto",
        "retry.attempts",
    ]
    assert lines[2].startswith("the environment: ")


@pytest.mark.parametrize(
    "text",
    [
        '[[providers.openai]]\napi_key = "sk-SECRET"\n',
        '[providers]\nopenai = "sk-SECRET"\n',
        '[mcp.gh]\nenv = {GH_TOKEN = "sk-SECRET"}\n',
        '[mcp.gh]\ncommand = "x"\nenv.OPENAI_API_KEY = ["sk-SECRET"]\n',
        '[[websearch]]\napi_key = "sk-SECRET"\n',
        '[models."a/b"]\nheaders = "Authorization: Bearer SECRET"\n',
        'timeout = "ghp_SECRETabcdefghijklmnopqrstuvwxyz01234"\n',
    ],
)
def test_a_mistake_shows_no_secret(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(write(tmp_path, text), {})
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '[permissions]\nbash = {"rm *" = 3}\n',
            "permissions.bash.rm * = 3 is not accepted: it takes text in quotes.",
        ),
        (
            '[projects."/a"]\npermissions = {bash = {str = 3}}\n',
            "projects./a.permissions.bash.str = 3 is not accepted: it takes text in quotes.",
        ),
        (
            'sandbox = "no"\n',
            "sandbox = 'no' is not accepted: it takes 'auto', 'off' or 'required'.",
        ),
        ('[[hooks]]\nevent = "run_end"\n', "hooks.0.command is missing."),
    ],
)
def test_a_mistake_names_the_keys_that_are_in_the_file(
    tmp_path: Path, text: str, line: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_config(path, {})
    assert str(raised.value) == f"{path}: {line}"


@pytest.mark.parametrize(
    ("users", "projects", "key"),
    [
        ("", "[permissions]\nbash = {a = 3}\n", "permissions.bash.a"),
        ("", "[permissions]\nbash = 3\n", "permissions.bash"),
        ('[mcp.a]\ncommand = "x"\n', "[mcp.b]\nsandboxed = true\n", "mcp.b"),
        (
            '[[hooks]]\nevent = "run_end"\ncommand = "x"\n',
            '[[hooks]]\nevent = "run_end"\n',
            "hooks.0.command",
        ),
    ],
)
def test_a_projects_mistake_names_the_projects_file(
    tmp_path: Path, users: str, projects: str, key: str
) -> None:
    project = tmp_path / "project" / ".tui-agent" / "config.toml"
    project.parent.mkdir(parents=True)
    project.write_text(projects)
    with pytest.raises(ConfigError) as raised:
        load_config(write(tmp_path, users), {}, project=project)
    assert str(raised.value).startswith(f"{project}: {key} ")


def test_a_users_mistake_beside_a_projects_settings_names_the_users_file(tmp_path: Path) -> None:
    project = tmp_path / "project" / ".tui-agent" / "config.toml"
    project.parent.mkdir(parents=True)
    project.write_text('[[hooks]]\nevent = "run_end"\ncommand = "x"\n')
    path = write(tmp_path, '[[hooks]]\ncommand = "x"\n')
    with pytest.raises(ConfigError) as raised:
        load_config(path, {}, project=project)
    assert str(raised.value) == f"{path}: hooks.0.event is missing."


def test_a_number_of_tokens_is_no_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_tokens = -3 is not accepted"):
        load_config(write(tmp_path, "max_tokens = -3\n"), {})


def test_of_many_mistakes_the_first_are_told(tmp_path: Path) -> None:
    wrong = "".join(f'[models."a/{at}"]\nwire = "smoke"\n' for at in range(MAX_TOLD + 3))
    with pytest.raises(ConfigError) as raised:
        load_config(write(tmp_path, wrong), {})
    lines = str(raised.value).splitlines()
    assert len(lines) == MAX_TOLD + 1
    assert lines[-1] == "… and 3 more"


def test_writing_refuses_what_reading_would_refuse_and_leaves_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "max_steps = 5\n")
    for key, value in [
        ("max_steps", -1),
        ("nonsense", 1),
        ("compaction.nonsense", 1),
        ("max_steps.x", 1),
        ('models."x".foo', 1),
        ("models.x.foo.bar", 1),
        ("ui.nothing.x", 1),
        ("ui", {"nothing": 1}),
        ("models", {"a/b": {"nothing": 1}}),
    ]:
        with pytest.raises(ConfigError):
            set_value(key, value, path)
    assert path.read_text() == "max_steps = 5\n"


def test_a_removed_setting_takes_the_tables_that_are_empty_without_it(tmp_path: Path) -> None:
    path = write(
        tmp_path, 'future = 1\n[ui]\ntheme = "nord"\n[models."a/b"]\nodd = 2\n[keys]\nx = "f1"\n'
    )
    for key in ("ui.theme", "ui.vim", "compaction.auto", 'models."a/b".odd', "future"):
        set_value(key, None, path)
    assert tomllib.loads(path.read_text()) == {"keys": {"x": "f1"}}
    with pytest.raises(ConfigError, match="no setting “future”"):
        set_value("future", None, path)


@pytest.mark.parametrize(
    "key",
    [
        "model_dump",
        "model_fields",
        "context",
        "ui.copy",
        "ui.__class__",
        "model.title",
        "mcp.x.y",
        "prune.pressure",
    ],
)
def test_only_settings_are_read(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="There is no setting"):
        get_value(load_config(tmp_path / "config.toml", {}), key)


def test_a_table_is_read_without_constants(tmp_path: Path) -> None:
    loaded = load_config(tmp_path / "config.toml", {})
    known = {row.key for row in setting_rows(loaded)}
    for name in type(loaded.config).model_fields:
        value = get_value(loaded, name)
        if isinstance(getattr(loaded.config, name), BaseModel):
            assert {f"{name}.{inner}" for inner in value} <= known


def test_a_row_says_what_an_optional_setting_accepts(tmp_path: Path) -> None:
    rows = {row.key: row for row in setting_rows(load_config(tmp_path / "config.toml", {}))}
    assert not rows["prune.protected_tools"].editable
    assert rows["prune.protected_tools"].accepts == "a table or list; write it in the file"
    assert rows["compaction.reserved"].accepts == "a whole number, at least 0"
    assert rows["websearch.address"].value == UNSET


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("max_stepz", "max_steps"),
        ("context", "models.NAME.context_window"),
        ("theme", "ui.theme"),
        ("steps", "max_steps"),
        ("sandbox.hots", "sandbox.hosts"),
        ('models."a/b".context', "models.a/b.context_window"),
        ("providers.openai.api_kye", "providers.openai.api_key"),
        ("compaction.enabled", "Here it is called compaction.auto"),
        ("temperatur", ""),
    ],
)
def test_an_unknown_setting_names_the_one_that_may_be_meant(
    tmp_path: Path, key: str, meant: str
) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError) as caught:
        set_value(key, "x", path)
    said = f"{meant}." if meant.startswith("Here") else f"Did you mean {meant}?"
    assert (said in str(caught.value)) is bool(meant)
    table, _, name = key.rpartition(".")
    path.write_text(f"[{table}]\n{name} = 1\n" if table else f"{name} = 1\n")
    assert (said in load_config(path, {}).warnings[0]) is bool(meant)


def test_a_written_file_is_private_and_a_key_others_can_read_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    loaded = set_value("providers.openai.api_key", "sk-secret", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert loaded.warnings == ()
    path.chmod(0o644)
    warnings = load_config(path, {}).warnings
    if os.name == "posix":
        assert any("chmod 600" in warning for warning in warnings)
    assert not any("sk-secret" in warning for warning in warnings)


def test_a_wrong_key_is_never_printed(tmp_path: Path) -> None:
    path = write(tmp_path, 'providers.openai.api_key = ["sk-secret"]')
    with pytest.raises(ConfigError) as raised:
        load_config(path, {})
    assert "sk-secret" not in str(raised.value)


def permissions(path: Path) -> object:
    return tomllib.loads(path.read_text()).get("permissions")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration file."""
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    return tmp_path / "config.toml"


def test_a_rule_of_a_session_is_kept_beside_those_there_are(path: Path) -> None:
    path.write_text('model = "a/b"\n[permissions]\nbash = "ask"\n')
    assert keep_rule(Rule("bash", "git commit *", Action.ALLOW, "session"), path.parent) is None
    assert (
        keep_rule(Rule("bash", "rm *.tmp", Action.ALLOW, "session", syntax="literal"), path.parent)
        is None
    )
    assert permissions(path) == {
        "bash": {"*": "ask", "git commit *": "allow", "rm [*].tmp": "allow"}
    }
    assert load_config(path, {}).config.model == "a/b"


def test_a_rule_is_removed_from_where_it_is_kept_or_said_why_not(path: Path) -> None:
    path.write_text('[permissions]\nedit = "allow"\nbash = {"rm *" = "deny", "*" = "ask"}\n')
    assert forget_rule(Rule("bash", "rm *", Action.DENY, "user"), path.parent) is None
    assert forget_rule(Rule("edit", "*", Action.ALLOW, "user"), path.parent) is None
    assert permissions(path) == {"bash": {"*": "ask"}}
    assert "environment" in (forget_rule(Rule("read", "*", Action.DENY, "user"), path.parent) or "")
    assert ".tui-agent/config.toml" in (
        forget_rule(Rule("bash", "*", Action.ALLOW, "project"), path.parent) or ""
    )
    assert forget_rule(Rule("bash", "x", Action.ALLOW, "session"), path.parent) is None


def test_a_rule_for_one_project_is_kept_apart_and_taken_out_again(path: Path) -> None:
    project = path.parent / "my app"
    rule = Rule("bash", "make *", Action.ALLOW, "here")
    assert keep_rule(rule, project) is None
    assert keep_rule(Rule("bash", "ls", Action.ALLOW, "user"), project) is None
    loaded = load_config(path, environ={})
    assert loaded.config.permissions == {"bash": {"ls": "allow"}}
    assert loaded.config.projects[str(project)].permissions == {"bash": {"make *": "allow"}}
    assert forget_rule(rule, project) is None
    assert load_config(path, environ={}).config.projects == {}


def test_a_project_does_not_make_rules_in_its_users_name(tmp_path: Path) -> None:
    brought = tmp_path / "project.toml"
    brought.write_text(f'[projects."{tmp_path}".permissions]\nedit = "allow"\n')
    assert load_config(tmp_path / "config.toml", environ={}, project=brought).config.projects == {}


def test_a_project_does_not_say_where_searches_go_and_with_which_key(tmp_path: Path) -> None:
    brought = tmp_path / "project.toml"
    brought.write_text(
        '[websearch]\naddress = "http://evil.test"\nservice = "searxng"\napi_key = "x"\n'
    )
    loaded = load_config(tmp_path / "config.toml", environ={}, project=brought)
    assert loaded.config.websearch == SearchSettings()


WIDER = {
    "mode": '"off"', "write": '["~/x"]', "read": '["~/.npmrc"]', "env": '["TOKEN"]', "hosts": '["10.0.0.0/8"]',
    "exclude": '["*"]', "mask": '{ TOKEN = ["evil.example"] }',
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SandboxSettings.model_fields))
@pytest.mark.parametrize("own", ["", 'sandbox = "required"\n'])
def test_a_project_can_only_tighten_the_sandbox(tmp_path: Path, name: str, own: str) -> None:
    """Every setting of it, those to come too: a new one needs a row above."""
    brought = tmp_path / "project.toml"
    brought.write_text(f"[sandbox]\n{name} = {WIDER[name]}\n")
    loaded = load_config(write(tmp_path, own), environ={}, project=brought)
    assert loaded.config.sandbox == load_config(tmp_path / "config.toml", environ={}).config.sandbox
    assert any(f"ignoring sandbox.{name}:" in warning for warning in loaded.warnings)


@pytest.mark.parametrize(
    "text", ['sandbox = "required"', '[sandbox]\nmode = "required"', "[sandbox]\nrequired = true"]
)
def test_a_project_can_require_the_sandbox(tmp_path: Path, text: str) -> None:
    brought = tmp_path / "project.toml"
    brought.write_text(f"{text}\n")
    loaded = load_config(write(tmp_path, 'sandbox = "off"\n'), environ={}, project=brought)
    assert (loaded.config.sandbox.mode, loaded.warnings) == ("required", ())


def test_a_value_with_another_way_to_get_it_is_refused_with_that_way(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('mode = "yolo"', encoding="utf-8")

    with pytest.raises(
        ConfigError, match="choose it at each start: tui-agent --mode yolo"
    ) as raised:
        load_config(path)
    assert str(raised.value).endswith(NEVER_ASK), "and how to be asked nothing at every start"


def test_the_command_that_ends_all_questions_sets_the_rule_for_everything(tmp_path: Path) -> None:
    *_program, key, value = shlex.split(NEVER_ASK)
    path = tmp_path / "config.toml"
    set_value(key, value, path)
    assert permissions(path) == {"*": "allow"}


def test_what_helps_to_find_a_mistake_is_shown_without_what_is_secret() -> None:
    provider = {
        "base_url": "https://me:SECRET@host.example/v1?key=SECRET",
        "api_key": "SECRET",
        "api_key_env": "ACME_KEY",
        "headers": {"X-Org": "SECRET"},
        "max_tokens": 300,
    }
    assert without_secrets(("providers", "acme"), provider) == {
        "base_url": "https://host.example/v1",
        "api_key": "…",
        "api_key_env": "ACME_KEY",
        "headers": {"X-Org": "…"},
        "max_tokens": 300,
    }
