"""What is asked of the end of a path."""

from tests.support.session_paths import PathBuilder
from tui_agent.session.entries import AssistantEntry, CompactionEntry, SystemEntry, UserEntry
from tui_agent.session.path_queries import (
    newest,
    newest_message,
    newest_sent,
    place_of_newest,
    since,
)


def test_the_newest_of_some_kinds_is_found_from_the_end() -> None:
    build = PathBuilder()
    build.system()
    build.user("first")
    build.run("read", {"path": "a"}, "text")
    build.say("done")
    build.user("job ended", synthetic="job")
    build.model("other/model")
    path = build.path
    assert newest(path, SystemEntry, AssistantEntry) is path[4]
    assert newest(path, AssistantEntry, where=lambda entry: bool(entry.tool_calls)) is path[2]
    assert place_of_newest(path, UserEntry) == 5
    assert newest(path, CompactionEntry) is place_of_newest(path, CompactionEntry) is None
    assert [newest_message(part) for part in (path, path[:4], path[:1])] == [path[5], path[3], None]
    assert [entry.id for entry in since(path, AssistantEntry)] == [7, 6]
    assert [entry.id for entry in since(path, CompactionEntry)] == [7, 6, 5, 4, 3, 2, 1]
    shown = build.shell("make", "ok")
    build.shell("env", "secret", excluded=True)
    assert newest_sent(build.path) is shown, "what is hidden is not sent"
