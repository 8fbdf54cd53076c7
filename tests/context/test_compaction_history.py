"""How often a path was compacted and pruned, for whoever asks how the session fares."""

from tests.support.session_paths import PathBuilder
from tui_agent.agent.context_inspector import room_made


def test_compactions_and_prunes_are_counted_and_the_newest_is_named() -> None:
    build = PathBuilder()
    build.user("go")
    assert room_made(build.path).sentence == ""
    build.prune(1, tokens_freed=900)
    assert room_made(build.path).sentence == "So far cleared old outputs once (900 tokens)."
    build.compaction("first", 1)
    build.prune(1, tokens_freed=1_100)
    newest = build.compaction("second", None, tokens_before=12_000, tokens_after=3_000)
    made = room_made(build.path)
    assert (made.compactions, made.prunes, made.freed, made.newest) == (2, 2, 2_000, newest)
    assert made.sentence == (
        "So far compacted 2 times, last at #5 (12,000 → 3,000 tokens of history), "
        "cleared old outputs 2 times (2,000 tokens)."
    )
