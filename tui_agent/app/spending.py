"""Adds up the cost of a session on all its branches, by branch, model, purpose, cache miss and day.

`session_spending` adds up the requests in the store, and `spending_sections` makes the lines to
show. `look_up_spending` in status_commands.py adds cache misses, the requests on the current
session path, and the costs of other sessions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime

from tui_agent.agent.timeline import Step
from tui_agent.app.context_text import miss_cause
from tui_agent.app.format import money, plural, tokens, visible
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.lazy import dataclass, frozen
from tui_agent.session.entries import KINDS, RaceEntry, Usage
from tui_agent.session.records import Purpose, Reported, RequestRecord, SideCost
from tui_agent.session.session import Session
from tui_agent.session.store import Store

Price = Callable[[str, Reported], float | None]
"""Returns the price of a request to a model, in US dollars; None if unknown."""

MAX_BRANCHES = 8
"""Maximum number of branches that are listed besides the current one.

The most expensive branches come first, and the remaining ones are added up.
"""

MAX_REQUESTS = 40
"""Maximum number of requests, and of pings, that are listed; the newest ones are chosen."""

DAYS = 7
"""Number of days, up to today, for which the cost of all sessions is listed."""

PING_CAUSE = "the prompt cache was about to expire (cache.keep_warm)"

_INDENT = 11
"""Indent of the line with a model's tokens, in characters; the costs above it take this width."""
_NOTHING = 1e-9
"""Costs up to this amount, in US dollars, are taken for rounding errors and not shown."""


@dataclass
class Spent:
    """Totals of requests, with tokens as reported by the provider and costs in US dollars.

    The ``cached`` tokens are included in ``input``. ``saved`` is what the prompt cache saved.
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    saved: float = 0.0
    unpriced: int = 0
    """Number of requests whose cost is not known, so that ``cost`` doesn't include it."""

    def add(self, record: RequestRecord, saved: float) -> None:
        """Add a request; ``saved`` is what the prompt cache saved on it, in US dollars."""
        self.requests += 1
        self.input += record.prompt
        self.output += record.output
        self.cached += record.cache_read
        self.saved += saved
        if record.cost is None:
            self.unpriced += 1
        else:
            self.cost += record.cost

    @property
    def has_no_price(self) -> bool:
        """Whether the cost of some requests is unknown, and all the others cost nothing."""
        return bool(self.unpriced) and not self.cost

    @property
    def dollars(self) -> str:
        """The cost as text, with ``≥`` if some costs are unknown; "" if `has_no_price`."""
        if self.has_no_price:
            return ""
        return f"{'≥ ' if self.unpriced else ''}{money(self.cost)}"


@dataclass
class Missed:
    """Totals of the cache misses that share a reason; ``cost`` is the known extra cost in US dollars."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0


@frozen
class Spending:
    """The cost of a session.

    ``branches`` maps the number of the first entry of each branch off the current path to the
    branch's totals; the key 0 has the totals of the current path. ``steps`` are the requests except
    those of subagents, oldest first. ``days`` contains the US dollars spent on each day, in local
    time.
    """

    total: Spent = field(default_factory=Spent)
    purposes: dict[Purpose, Spent] = field(default_factory=dict)
    models: dict[str, Spent] = field(default_factory=dict)
    branches: dict[int, Spent] = field(default_factory=dict)
    steps: Sequence[RequestRecord] = ()
    days: dict[date, float] = field(default_factory=dict)
    path: list[tuple[Step, float | None]] = field(default_factory=list)
    """Requests on the current session path, oldest first, each with the cost of its cache miss.

    The cost is the extra cost in US dollars; None if there was no miss, or if the cost is unknown.
    """
    misses: dict[str, Missed] = field(default_factory=dict)
    """Totals of the cache misses on all branches; the keys are the reasons, in words."""
    pings: list[SideCost] = field(default_factory=list)
    """Pings that kept the prompt cache warm, oldest first."""
    all_sessions: dict[date, float] = field(default_factory=dict)
    """Cost of all sessions, in US dollars, on each of the last `DAYS` days."""

    def add_step(self, step: Step, dollars: float | None) -> None:
        """Add a request on the current session path, with its cache miss.

        ``dollars`` is the extra cost of its cache miss, None if unknown.
        """
        self.path.append((step, dollars))
        self.add_miss(step, dollars)

    def add_miss(self, step: Step, dollars: float | None) -> None:
        """Add the cache miss of a request on any branch, if there was one."""
        if step.miss is None:
            return
        missed = self.misses.setdefault(miss_cause(step.miss), Missed())
        missed.requests += 1
        missed.tokens += step.miss.missed
        missed.cost += dollars or 0.0


def spending(
    records: Sequence[RequestRecord],
    side_costs: Sequence[SideCost],
    departures: Mapping[int, int],
    price: Price,
    elsewhere: Mapping[int, Purpose],
) -> Spending:
    """Add up the cost of a session.

    ``records`` are its requests on all branches. ``elsewhere`` maps the entry numbers of requests
    by subagents and race runners to their purposes. ``side_costs`` are the costs of model calls
    without an entry. ``departures`` maps the entry number of each request off the current path to
    the number of the first entry of its branch. ``price`` returns what a request would cost.
    """
    own = [record for record in records if elsewhere.get(record.id) is not Purpose.SUBAGENTS]
    found = Spending(steps=own)
    for record in own:
        saved = _add(found, record, elsewhere.get(record.id) or _purpose(record), price)
        found.branches.setdefault(departures.get(record.id, 0), Spent()).add(record, saved)
    for record in records:
        if elsewhere.get(record.id) is Purpose.SUBAGENTS:
            _add(found, record, Purpose.SUBAGENTS, price)
    for purpose, dollars in _by_purpose(side_costs).items():
        if dollars > _NOTHING:
            found.purposes.setdefault(purpose, Spent()).cost += dollars
            found.total.cost += dollars
    found.pings.extend(call for call in side_costs if call.purpose is Purpose.PINGS)
    return found


def _by_purpose(side_costs: Sequence[SideCost]) -> dict[Purpose, float]:
    found: dict[Purpose, float] = {}
    for call in side_costs:
        found[call.purpose] = found.get(call.purpose, 0.0) + call.cost
    return found


def _purpose(record: RequestRecord) -> Purpose:
    return Purpose.ANSWERS if KINDS[record.kind].is_dialogue else Purpose.SUMMARIES


def _add(found: Spending, record: RequestRecord, purpose: Purpose, price: Price) -> float:
    """Add a request to all totals except the totals of its branch.

    Returns what the prompt cache saved on the request, in US dollars.
    """
    without = None
    if record.cache_read:
        without = price(record.model, Usage(input=record.prompt, output=record.output))
    paid = None
    if without is not None:
        paid = price(record.model, record)
    saved = 0.0
    if without is not None and paid is not None:
        saved = without - paid
    found.total.add(record, saved)
    found.purposes.setdefault(purpose, Spent()).add(record, saved)
    found.models.setdefault(record.model or "unknown", Spent()).add(record, saved)
    if record.cost:
        day = _local(record.created_at).date()
        found.days[day] = found.days.get(day, 0.0) + record.cost
    return saved


def _local(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000).astimezone()


def session_spending(
    session: Session,
    store: Store,
    records: Sequence[RequestRecord],
    departures: Mapping[int, int],
    price: Price,
) -> tuple[Spending, dict[int, str]]:
    """Return a session's cost, and the previews of other branches' first entries by entry number.

    In the returned cost, ``path``, ``misses`` and ``all_sessions`` are still empty. ``records`` are
    the session's requests; ``departures`` and ``price`` are as for `spending`. Requests that a fork
    copied are left out, as they were paid for in another session. The function can be called in a
    thread.
    """
    copied = session.reader.copied_until()
    records = [record for record in records if record.id > copied]
    # In older stores, subagents have sessions of their own, and their cost is part of the side
    # cost.
    subagents = store.subagent_requests(session.id)
    side_costs = store.side_costs(session.id)
    rest = session.info.side_cost - sum(call.cost for call in side_costs)
    rest -= sum(record.cost or 0.0 for record in subagents)
    side_costs.append(SideCost(0, Purpose.OTHER, rest))
    found = spending(records, side_costs, departures, price, _elsewhere(session, records))
    for record in subagents:
        _add(found, record, Purpose.SUBAGENTS, price)
    starts = session.reader.load(key for key in found.branches if key)
    return found, {entry.id: plain_preview(entry.kind, entry.preview) for entry in starts}


def _elsewhere(session: Session, records: Sequence[RequestRecord]) -> dict[int, Purpose]:
    """Return the purpose of each request made by a subagent or a race's runner, by entry number."""
    spine = session.reader.spine()
    ids = [header.id for header in session.skeleton() if header.kind == "race"]
    races = [entry for entry in session.reader.load(ids) if isinstance(entry, RaceEntry)]
    branches = []
    for race in races:
        for runner in race.runners:
            if runner.root is not None:
                branches.append((runner.root, runner.leaf))
    found = {}
    for record in records:
        if spine.subagent_of(record.id) is not None:
            found[record.id] = Purpose.SUBAGENTS
            continue
        for root, leaf in branches:
            if spine.is_below(leaf, record.id) and spine.is_below(record.id, root):
                found[record.id] = Purpose.RACES
                break
    return found


def spending_sections(found: Spending, names: Mapping[int, str]) -> list[tuple[str, list[str]]]:
    """Return a session's cost as sections, each with a heading and its lines.

    ``names`` contains the preview of each other branch's first entry, by entry number. For a
    session without requests and costs, returns only the cost of all sessions by day; [] if that is
    0.
    """
    total = found.total
    if not total.requests and not total.cost:
        return _day_sections(found)
    share = ""
    if total.input:
        share = f" ({total.cached / total.input:.0%} from the cache)"
    whole = [
        f"{total.dollars or 'No price'} for {plural(total.requests, 'request')}",
        f"{tokens(total.input)} sent{share}, {tokens(total.output)} answered",
    ]
    if total.saved > 0:
        whole.append(f"The cache saved about {money(total.saved)}.")
    if total.unpriced and not total.has_no_price:
        whole.append(f"The price of {plural(total.unpriced, 'request')} is unknown.")
    sections = [("All branches", whole)]
    priced = not total.has_no_price
    if branches := _branch_rows(found, names, priced=priced):
        sections.append(("By branch", branches))
    models = []
    indent = _INDENT if priced else 2
    for model, spent in _by_cost(found.models):
        models.append(_row(spent, visible(model), priced=priced))
        models.append(f"{'':>{indent}}{_token_words(spent)}")
    sections.append(("By model", models))
    kinds = [_row(spent, str(kind), priced=priced) for kind, spent in _by_cost(found.purposes)]
    sections.append(("By purpose", kinds))
    if found.misses:
        sections.append(("Cache misses, all branches", _miss_rows(found)))
    if found.pings:
        sections.append(("Pings that kept the prompt cache warm", _ping_rows(found.pings)))
    if found.path:
        sections.append((_ledger_heading(found), _ledger_rows(found)))
    return [*sections, *_day_sections(found)]


def _miss_rows(found: Spending) -> list[str]:
    rows = []
    for why, missed in sorted(found.misses.items(), key=lambda one: -one[1].cost):
        dollars = f"~{money(missed.cost)}" if missed.cost else "–"
        times = plural(missed.requests, "request")
        rows.append(f"{dollars:>9}  {times:<13} {tokens(missed.tokens)} read again: {why}")
    return rows


def _ping_rows(pings: Sequence[SideCost]) -> list[str]:
    rows = []
    for ping in pings[-MAX_REQUESTS:]:
        at = f"{_local(ping.at):%Y-%m-%d %H:%M}"
        rows.append(f"{money(ping.cost):>9}  {at}  {PING_CAUSE}")
    return rows


def _ledger_heading(found: Spending) -> str:
    if len(found.path) <= MAX_REQUESTS:
        return "Requests of this branch"
    return f"Requests of this branch, the last {MAX_REQUESTS} of {len(found.path)} (--json: all)"


def _ledger_rows(found: Spending) -> list[str]:
    """Return table rows for the newest requests on the current session path.

    Each row shows the request's cost, its cached share, and its cache miss if there was one.
    """
    rows = []
    for step, dollars in found.path[-MAX_REQUESTS:]:
        cost = "–"
        if step.cost is not None:
            cost = money(step.cost)
        hit = f"{step.cached / step.total:.0%} of {tokens(step.total)} cached"
        row = f"{cost:>9}  #{step.answer:<6} {_local(step.at):%H:%M}  {hit:<20}"
        if step.miss is not None:
            more = f" (~{money(dollars)})" if dollars else ""
            row += f"  {tokens(step.miss.missed)} read again{more}: {miss_cause(step.miss)}"
        rows.append(row.rstrip())
    return rows


def _day_sections(found: Spending) -> list[tuple[str, list[str]]]:
    rows = []
    for day, dollars in reversed(found.all_sessions.items()):
        if dollars > _NOTHING:
            rows.append(f"{money(dollars):>9}  {day:%a %Y-%m-%d}")
    return [(f"All sessions, the last {DAYS} days", rows)] if rows else []


def _branch_rows(found: Spending, names: Mapping[int, str], *, priced: bool) -> list[str]:
    """Return rows for the current branch, the most expensive other branches, and all the rest.

    The list is empty if the session has only one branch with requests.
    """
    left = sorted((key for key in found.branches if key), key=lambda key: -found.branches[key].cost)
    if not left:
        return []
    rows = [_row(found.branches.get(0, Spent()), "this branch", priced=priced)]
    for key in left[:MAX_BRANCHES]:
        name = f"left at #{key}  {visible(names.get(key, ''))}"
        rows.append(_row(found.branches[key], name, priced=priced))
    if rest := [found.branches[key] for key in left[MAX_BRANCHES:]]:
        added = Spent()
        for spent in rest:
            added.requests += spent.requests
            added.cost += spent.cost
        rows.append(_row(added, f"{len(rest)} other branches", priced=priced))
    return rows


def _by_cost(sums: Mapping[str, Spent] | Mapping[Purpose, Spent]) -> list[tuple[str, Spent]]:
    return sorted(sums.items(), key=lambda one: -one[1].cost)


def _row(spent: Spent, name: str, *, priced: bool) -> str:
    """Format a row of totals: cost (only if ``priced``), number of requests, and name."""
    requests = ""
    if spent.requests:
        requests = plural(spent.requests, "request")
    row = f"{requests:<13} {name}".rstrip()
    if not priced:
        return row
    return f"{spent.dollars or '–':>9}  {row}"


def _token_words(spent: Spent) -> str:
    share = 0.0
    if spent.input:
        share = spent.cached / spent.input
    saved = ""
    if spent.saved > 0:
        saved = f", saved {money(spent.saved)}"
    sent = f"{tokens(spent.input)} sent, {share:.0%} cached"
    return f"{sent}{saved}, {tokens(spent.output)} answered"
