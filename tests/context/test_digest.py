from tests.support.session_paths import PathBuilder
from tui_agent.context.preserved import digest, fit
from tui_agent.session.entries import ToolMetadata, ToolStatus


def words(text: str) -> int:
    return len(text.split())


def test_one_line_per_step_with_its_address_and_outcome():
    build = PathBuilder()
    build.user("not told: carried elsewhere")
    build.call(("bash", {"command": "make"}), text="Let me\nbuild it.")
    build.result("c1", "boom", title="make", metadata=ToolMetadata(exit_code=2))
    build.run("edit", {"path": "a.py"}, "no match", status=ToolStatus.ERROR)
    build.call(("read", {"path": "b.py"}))
    build.shell("git status", "clean", exit_code=0)
    assert digest(build.path, 1_000, words).splitlines() == [
        "- #2 Let me build it.",
        "- #3 bash make → exit 2",
        '- #5 edit {"path": "a.py"} → error',
        '- #6 read {"path": "b.py"} → interrupted',
        "- #7 user ran `git status` → exit 0",
    ]


def test_the_newest_lines_fit_first():
    build = PathBuilder()
    for number in range(20):
        build.say(f"step {number}")
    lines = digest(build.path, 20, words).splitlines()
    assert lines == [f"- #{number + 1} step {number}" for number in range(16, 20)]
    assert digest(build.path, 2, words) == ""


def test_fit_cuts_the_middle_and_never_exceeds_the_budget():
    def tokens(text):
        return -(-len(text) // 4)

    text = "START " + "中文内容" * 500 + " END"
    for budget in (12, 50, 300):
        shown = fit(text, budget, tokens)
        assert tokens(shown) <= budget
    assert fit(text, 300, tokens).startswith("START")
    assert fit(text, 300, tokens).endswith("END")
    assert fit(text, 10_000, tokens) == text
    assert fit(text, 5, tokens) == ""
