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


def conversation() -> PathBuilder:
    build = PathBuilder()
    build.system()  # 1
    build.user("first")  # 2
    build.run("read", {"path": "a"}, "text")  # 3, 4
    build.say("done")  # 5
    build.user("job ended", synthetic="job")  # 6
    build.model("other/model")  # 7
    return build


def test_the_newest_of_some_kinds_is_found_from_the_end() -> None:
    path = conversation().path
    assert newest(path, AssistantEntry) is path[4]
    assert newest(path, SystemEntry, AssistantEntry) is path[4]
    assert newest(path, AssistantEntry, where=lambda entry: bool(entry.tool_calls)) is path[2]
    assert place_of_newest(path, UserEntry) == 5
    assert newest(path, CompactionEntry) is place_of_newest(path, CompactionEntry) is None


def test_a_message_is_what_user_model_or_tool_said() -> None:
    build = conversation()
    assert newest_message(build.path) is build.path[5]
    assert newest_message(build.path[:4]) is build.path[3]
    assert newest_message(build.path[:1]) is None


def test_what_is_sent_counts_commands_of_the_user_but_none_that_are_hidden() -> None:
    build = conversation()
    shown = build.shell("make", "ok")
    build.shell("env", "secret", excluded=True)
    assert newest_sent(build.path) is shown


def test_since_goes_back_to_the_newest_of_a_kind() -> None:
    path = conversation().path
    assert [entry.id for entry in since(path, AssistantEntry)] == [7, 6]
    assert [entry.id for entry in since(path, CompactionEntry)] == [7, 6, 5, 4, 3, 2, 1]
