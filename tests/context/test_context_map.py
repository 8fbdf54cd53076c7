"""The next request block by block."""

from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import MODELS, paths
from tests.support.numbered import MODEL, answer, call, result, user
from tests.support.thoroughness import EXAMPLES
from tui_agent.agent.context_map import context_map
from tui_agent.context.budget import ModelLimits, estimate_tokens
from tui_agent.context.calibration import Calibration
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.view import EntryState
from tui_agent.session.entries import SystemEntry, ToolSchema, Usage

COUNTER = TokenCounter(MODEL, Calibration(learnt={"text": 1.1}))
LIMITS = ModelLimits(MODEL, 128_000, 16_384)
SETTINGS = ContextSettings()
TEXT = "The quick brown fox jumps over the lazy dog. "


HEAD = SystemEntry(
    id=1,
    blocks=("You are an agent.", '<instructions path="AGENTS.md">\nBe kind.\n</instructions>'),
    tools=(ToolSchema(name="read", description="Read a file", parameters={}),),
    model=MODEL,
)
READ = call("a", '{"path": "src/app.py"}')
PATH = [HEAD, user(2, TEXT), answer(3, TEXT, READ), result(4, "a", TEXT * 50), answer(5, TEXT), user(6, TEXT)]


def mapped(path, **fields):
    return context_map(path, LIMITS, SETTINGS, COUNTER, **fields)


def block(path, entry_id, **fields):
    return next(b for b in mapped(path, **fields).blocks if b.origin == (entry_id,))


def test_a_result_names_where_it_is_from_and_a_report_how_wrong_the_estimate_is():
    told = block(PATH, 4)

    assert (told.tool, told.path) == ("read", "src/app.py")
    assert (told.age_entries, told.age_steps) == (2, 1)
    assert told.state is EntryState.LIVE
    assert told.hidden == 0

    path = [*PATH, answer(7, TEXT, usage=Usage(input=5_000, output=9))]

    told = mapped(path)
    assert told.size.total == 5_009


def test_what_the_provider_remembers_is_marked_and_changing_a_block_costs_all_from_it_on():
    blocks = mapped(PATH, cached=frozenset({1, 2, 3})).blocks

    assert [b.cached for b in blocks] == [True, True, True, True, True, False, False, False]

    blocks = mapped(PATH).blocks

    assert blocks[0].following == mapped(PATH).estimate
    assert blocks[-1].following == blocks[-1].tokens
    assert all(a.following == a.tokens + b.following for a, b in pairwise(blocks))


@given(paths(), st.sampled_from(MODELS), st.booleans(), st.sampled_from([0.7, 1.0, 1.3]))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
def test_the_blocks_of_any_path_add_up(path, model, vision, factor):
    limits = ModelLimits(model, 32_768, vision=vision)
    counter = TokenCounter(model, Calibration(learnt={"text": factor}))

    told = context_map(path, limits, SETTINGS, counter)
    assert abs(told.estimate - estimate_tokens(path, limits, counter)) <= 1
    assert all(b.tokens >= 0 and b.hidden >= 0 for b in told.blocks)
