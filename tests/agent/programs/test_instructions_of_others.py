"""Instructions that users wrote for other programs are read as those programs read them."""

from pathlib import Path

import pytest

from tests.support.knowledge import folders, knowledge, write
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.markdown_imports import imports_of, without_comments
from tui_agent.resources import prompt
from tui_agent.trust import TrustStore, project_state


def sent(loaded: Knowledge) -> str:
    return "\n".join(item.section for item in loaded.instructions)


def names(loaded: Knowledge) -> list[str]:
    return [item.name for item in loaded.instructions]


def test_every_file_of_claude_code_counts_from_broad_to_narrow(tmp_path: Path) -> None:
    for path in (
        "home/.claude/CLAUDE.md", "home/.claude/rules/own.md", "project/.claude/CLAUDE.md", "project/CLAUDE.local.md",
        "project/.claude/rules/deep/all.md", "project/web/CLAUDE.md", "project/web/CLAUDE.local.md",
    ):  # fmt: skip
        write(tmp_path / path, f"rule of {path}")
    loaded = knowledge(tmp_path, cwd="web")
    assert names(loaded) == [
        "~/.claude/CLAUDE.md", "~/.claude/rules/own.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "web/CLAUDE.md",
        "web/CLAUDE.local.md", ".claude/rules/deep/all.md",
    ]  # fmt: skip
    assert loaded.problems == ()


def test_other_programs_home_files_and_overrides_count(tmp_path: Path) -> None:
    for path in (
        "home/.codex/AGENTS.md",
        "home/.pi/agent/AGENTS.md",
        "home/.config/opencode/AGENTS.md",
    ):
        write(tmp_path / path, path)
    write(tmp_path / "project/AGENTS.md", "plain")
    write(tmp_path / "project/AGENTS.override.md", "override")
    loaded = knowledge(tmp_path)
    assert names(loaded) == [
        "~/.codex/AGENTS.md", "~/.config/opencode/AGENTS.md", "~/.pi/agent/AGENTS.md", "AGENTS.override.md"
    ]  # fmt: skip
    write(tmp_path / "home/.codex/AGENTS.override.md", "mine")
    assert names(knowledge(tmp_path))[0] == "~/.codex/AGENTS.override.md"


def test_imports_are_followed_four_hops_and_name_where_they_come_from(tmp_path: Path) -> None:
    write(
        tmp_path / "project/CLAUDE.md",
        "# Rules\n\nSee @docs/one.md, and\nmore in @docs/a\\ name.md.\n",
    )
    for number, name in enumerate(("one", "two", "three", "four", "five"), 2):
        following = ("two", "three", "four", "five", "six")[number - 2]
        write(tmp_path / f"project/docs/{name}.md", f"text {name} @./{following}.md")
    write(tmp_path / "project/docs/a name.md", "spaced")
    loaded = knowledge(tmp_path)
    assert names(loaded) == [
        "CLAUDE.md",
        *(f"docs/{name}.md" for name in ("one", "two", "three", "four", "a name")),
    ]
    assert '<instructions path="docs/one.md" imported="CLAUDE.md:3">' in sent(loaded)
    assert '<instructions path="docs/a name.md" imported="CLAUDE.md:4">' in sent(loaded)


def test_a_file_of_nothing_but_an_import_is_that_file(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "@CLAUDE.md\n")
    write(tmp_path / "project/CLAUDE.md", "the rules")
    assert [(item.name, item.text) for item in knowledge(tmp_path).instructions] == [
        ("CLAUDE.md", "the rules")
    ]


def test_of_two_main_files_the_one_that_imports_the_other_counts(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "for all")
    write(tmp_path / "project/CLAUDE.md", "@AGENTS.md\n\nfor one")
    assert names(knowledge(tmp_path)) == ["CLAUDE.md", "AGENTS.md"]


def test_where_two_disagree_the_setting_decides_and_the_other_is_known(tmp_path: Path) -> None:
    write(tmp_path / "project/AGENTS.md", "tabs")
    write(tmp_path / "project/CLAUDE.md", "spaces")
    assert names(first := knowledge(tmp_path)) == ["AGENTS.md"]
    assert first.passed_over == {"CLAUDE.md": "AGENTS.md"}
    turned = Knowledge(Sources(folders(tmp_path), order=("CLAUDE.md",)), prompt=prompt)
    turned.load()
    assert names(turned) == ["CLAUDE.md"]


@pytest.mark.parametrize(
    "text",
    [
        "`@docs/x.md`",
        "```\n@docs/x.md\n```",
        "    @docs/x.md",
        "mail me@docs/x.md",
        "<!-- @docs/x.md -->",
        "a@b.c @ x",
    ],
)
def test_code_comments_and_addresses_import_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path / "project/docs/x.md", "imported")
    write(tmp_path / "project/CLAUDE.md", f"Rules.\n\n{text}\n")
    loaded = knowledge(tmp_path)
    assert names(loaded) == ["CLAUDE.md"]
    assert loaded.problems == ()


def test_what_an_import_names_in_vain_is_said_and_names_of_people_are_not(tmp_path: Path) -> None:
    write(tmp_path / "project/CLAUDE.md", "Ask @ann or @types/node. See @docs/gone.md. Keys: @.env")
    write(tmp_path / "project/.env", "KEY=1")
    assert knowledge(tmp_path).problems == (
        "CLAUDE.md:1: @docs/gone.md is left out: there is no such file.",
        "CLAUDE.md:1: @.env is left out: it usually holds secrets.",
    )


def test_imports_that_lead_out_of_the_project_wait_for_trust_and_the_users_own_do_not(
    tmp_path: Path,
) -> None:
    write(tmp_path / "home/.claude/CLAUDE.md", "mine @team.md")
    write(tmp_path / "home/.claude/team.md", "team")
    outside = write(tmp_path / "shared/style.md", "style")
    write(tmp_path / "project/CLAUDE.md", f"See @{outside} and @inner.md")
    write(tmp_path / "project/inner.md", f"deeper @{tmp_path / 'shared/other.md'}")
    write(tmp_path / "shared/other.md", "never asked about")
    careful = knowledge(tmp_path, trusted=lambda: False)
    assert names(careful) == ["~/.claude/CLAUDE.md", "~/.claude/team.md", "CLAUDE.md", "inner.md"]
    assert "outside the project, and you do not trust" in careful.problems[0]
    trusting = knowledge(tmp_path, trusted=lambda: True)
    assert outside.as_posix() in names(trusting)
    assert not any("other.md" in name for name in names(trusting))
    project = tmp_path / "project"
    items = project_state(project, TrustStore(tmp_path / "trust.json")).items
    assert [(item.kind, item.name, item.text) for item in items] == [
        ("import from outside", "CLAUDE.md", f"@{outside}")
    ]


def test_a_rule_with_paths_comes_when_such_a_file_is_read(tmp_path: Path) -> None:
    write(
        tmp_path / "project/.claude/rules/ts.md",
        '---\npaths: "src/**/*.{ts,tsx}"\n---\nUse strict.',
    )
    write(
        tmp_path / "project/.claude/rules/py.md",
        "---\npaths:\n  - lib/*.py\n  - '*.pyi'\n---\nType it.",
    )
    write(tmp_path / "home/.claude/rules/sql.md", "---\npaths: '*.sql'\n---\nUpper case.")
    loaded = knowledge(tmp_path)
    assert loaded.instructions == ()
    near = {
        path: [item.text for item in loaded.nearby([path], set())]
        for path in ("src/a/b.tsx", "x.pyi", "d/q.sql")
    }
    assert near == {
        "src/a/b.tsx": ["Use strict."],
        "x.pyi": ["Type it."],
        "d/q.sql": ["Upper case."],
    }
    assert loaded.nearby(["lib/deep/a.py"], set()) == ()


def test_comments_on_lines_of_their_own_are_not_sent(tmp_path: Path) -> None:
    text = "One\n\n<!-- not\nthis -->\n\nTwo <!-- stays -->\n\n```\n<!-- code -->\n```"
    assert without_comments(text) == "One\n\n\nTwo <!-- stays -->\n\n```\n<!-- code -->\n```"
    assert [item.path for item in imports_of("@a.md\n@~/b.md and (@c/d.md)")] == [
        "a.md",
        "~/b.md",
        "c/d.md",
    ]
