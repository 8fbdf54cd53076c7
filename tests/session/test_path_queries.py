"""What is asked of the end of a path."""

from tests.support.session_paths import PathBuilder
from tui_agent.session.entries import AssistantEntry, CompactionEntry, SystemEntry
from tui_agent.session.path_queries import newest, newest_message, newest_sent, since


def test_the_newest_of_some_kinds_is_found_from_the_end() -> None:
    build = PathBuilder()
    build.system()
    build.say("done")
    shown = build.shell("make", "ok")
    build.model("other/model")
    path = build.path
    assert newest(path, SystemEntry, AssistantEntry) is path[1] is newest_message(path)
    assert newest(path, CompactionEntry) is None
    assert [entry.id for entry in since(path, AssistantEntry)] == [4, 3]
    assert [entry.id for entry in since(path, CompactionEntry)] == [4, 3, 2, 1]
    build.shell("env", "secret", excluded=True)
    assert newest_sent(build.path) is shown, "what is hidden is not sent"
