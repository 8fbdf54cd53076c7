"""Builds and measures a session's requests, and keeps them within the context window.

Pure rules in ``tui_agent.context`` decide; this module applies them to the session path and appends
the resulting entries. The cheapest way to make room comes first: prune old tool outputs, then
summarise, then end the run and offer choices. When to compact is decided here, how in
``compactor``.

Owns the model, mode and effort of the next request (`Agent` sets the user's choice), the change to
a fallback model and back, and what is known of the provider's cache. Teaches ``directory`` the
windows and token counts that providers report.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.attachments import LOOKED_AT, files_back, room_for_files
from tui_agent.agent.channel import EventChannel, Journal
from tui_agent.agent.compaction_outcome import Cancelled, Compacted, CompactionOutcome, Failed
from tui_agent.agent.events import CacheMissed
from tui_agent.agent.fallback import Availability, stands_in_for
from tui_agent.agent.permissions import Mode
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.prompt_head import Head
from tui_agent.agent.reminders import reminder
from tui_agent.agent.threads import in_thread
from tui_agent.context.budget import (
    ContextSize,
    Meter,
    SwitchAhead,
    complaint,
    is_silent_overflow,
    newest_report,
)
from tui_agent.context.cache import (
    BreakCause,
    CacheMiss,
    CacheState,
    PrefixBreak,
    cache_state,
    cache_ttl,
    ever_cached,
    missed_tokens,
    prefix_break,
)
from tui_agent.context.compaction_policy import (
    OVERFLOW_ATTEMPTS,
    SUMMARY_SECONDS,
    HoldReason,
    hold,
    is_due,
    kept_ahead,
    missing_meanwhile,
    step_sizes,
)
from tui_agent.context.projection import project
from tui_agent.context.pruning import (
    Moment,
    PrunePlan,
    PruneRules,
    newest_seen,
    occasion,
    plan_image_prune,
    plan_prune,
    under_pressure,
)
from tui_agent.context.request import CacheTtl, ImageRef, ModelRequest
from tui_agent.context.settings import ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.tokens import picture_tokens
from tui_agent.context.view import ContextView, resolve
from tui_agent.errors import UserFacingError
from tui_agent.lazy import cached_property, frozen
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.say_once import SayOnce
from tui_agent.session.effort import Effort, EffortInForce
from tui_agent.session.entries import (
    AssistantEntry,
    EffortChangeEntry,
    Entry,
    FilePart,
    ModelChangeEntry,
    ReasoningPart,
    SystemEntry,
    TextPart,
    ToolResultEntry,
    Usage,
    UserPart,
)
from tui_agent.session.path_queries import newest, newest_message
from tui_agent.session.session import Session
from tui_agent.tools.registry import tool_traits

if TYPE_CHECKING:
    from tui_agent.agent.compaction_drafts import CompactionOrder
    from tui_agent.agent.compactor import Compactor
    from tui_agent.agent.prepared_summary import PreparedSummary
    from tui_agent.context.compaction import Trigger


log = logging.getLogger(__name__)

_ESTIMATE_ERROR = 0.02
"""Largest relative error that a calibrated estimate of tokens may have."""
_LEAST_WINDOW = 4_000
"""Smallest context window, in tokens, that is assumed if an overflow error has no numbers."""
_FIRST = 50
"""Number of entries at the beginning of a session path that are searched for a head.

A head entry records the system prompt and the tools. Imported sessions have none.
"""

_WAYS_OUT = {
    "/compact": "summarise the history now, with a focus if you like",
    "/context": "see what fills the context, and clear or hide some of it",
    "/model": "switch to a model with a larger window",
    "/tree": "go back to an earlier point of the session",
}


class ContextKeeper:
    """Builds a session's requests, makes room for them, and keeps its model, mode and effort.

    ``model``, ``mode`` and ``effort`` apply until an entry on the session path changes them.
    """

    def __init__(
        self,
        journal: Journal,
        ports: AgentPorts,
        *,
        model: str,
        mode: str,
        effort: Effort | None = None,
    ) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._templates = Templates.load(ports.prompt)
        self.head = Head(journal, ports)
        self._overflows = 0
        self._is_warm = False
        self._said = SayOnce()
        self._known_meter: Meter | None = None
        self._availability = Availability()
        self.first_mode = mode
        """The permission mode that applies until an entry on the session path sets another."""
        self._first_effort = effort
        self.model = model
        """The model of the next request."""
        self.mode = mode
        """The permission mode of the next request."""
        self.chosen_effort: Effort | None = None
        """The reasoning effort chosen on the session path; None for the effort in the settings."""
        self.follow_path()
        self.pending: str | None = None
        """The focus of the compaction that the user requested during a run; "" for no focus.

        None if no compaction was requested.
        """
        self.sent: SentRequest | None = None
        """The last request that was sent; None before the first request."""
        self._pinged = 0, 0
        """Id of the answer whose request was pinged last, and the time of the ping.

        The time is in milliseconds since the epoch.
        """
        self.watch = CacheWatch(journal.session, journal.channel)
        """Reports misses of the provider's cache."""

    @cached_property
    def compactor(self) -> "Compactor":
        from tui_agent.agent.compactor import Compactor

        return Compactor(self._journal, self._ports)

    def follow_path(self) -> None:
        """Take model, mode and effort from the path, after the user has moved to another entry.

        A path in yolo mode continues in build mode, unless the current mode is yolo.
        """
        view = self._view()
        self.model = view.model or self.model
        self.chosen_effort = self._first_effort
        if view.effort is not None:
            self.chosen_effort = view.effort.effort
        if view.mode != self.mode:
            # Continue the session in its own mode, but never in yolo mode.
            is_yolo = view.mode == Mode.YOLO
            self.mode = Mode.BUILD if is_yolo else view.mode or self.first_mode

    @property
    def effort(self) -> EffortInForce:
        ports = self._ports
        model = self.model
        return EffortInForce(
            model,
            ports.directory.traits(model).efforts,
            self.chosen_effort,
            ports.preset_effort(model),
        )

    def announce_effort(self) -> None:
        """Warn the user once if the model doesn't support the requested reasoning effort."""
        problem = self.effort.shortfall
        if problem is not None and self._said.remember(problem):
            self._channel.say(problem, "warning")

    # -- requests -------------------------------------------------------------------------------------------

    async def warm(self) -> None:
        """Load knowledge and tool files, and ask a local server about its model.

        Problems with the files are shown to the user as notices.
        """
        await self._ports.directory.refresh(self.model)
        await asyncio.to_thread(self._ports.knowledge.load)
        await self._ports.read_tool_files()
        for problem in (
            self._ports.knowledge.take_problems(),
            self._ports.tool_files.take_problems(),
        ):
            if problem:
                self._channel.say(problem, "warning")
        self._is_warm = True

    def ensure_head(self) -> None:
        """Append a head if the path needs a new one, and the user's effort if the path has none.

        See `Head.ensure` for when a head is needed.
        """
        self.head.ensure(self.model, self.mode, cache_cold=self._cache_cold())
        if self.chosen_effort is not None and self._view().effort is None:
            self._journal.append(EffortChangeEntry(effort=self.chosen_effort))

    def preview(self) -> SystemEntry | None:
        """Return the head of the session's first request, without appending it to the session.

        None before ``warm`` has ended, and if the path has a head already or more than 50 entries.
        The head records the system prompt and the tools.
        """
        begin = self._session.active_path()[: _FIRST + 1]
        if not self._is_warm or len(begin) > _FIRST:
            return None
        if any(isinstance(entry, SystemEntry) for entry in begin):
            return None
        return self.head.preview(self.model, self.mode)

    def path(self) -> list[Entry]:
        """Return the next request's entries: any head from `preview`, then the session path."""
        path = self._session.active_path()
        head = self.preview()
        if head is None:
            return path
        return [head, *path]

    def size(self, at: int | None = None) -> ContextSize:
        """Return the size of the next request, or of one that would follow the entry ``at``."""
        return self._meter().measure(self.path() if at is None else self._session.path(at))

    def request_to_send(self, *, tools_allowed: bool = True) -> tuple[ModelRequest, int]:
        """Return the next request and the program's own count of its tokens, and set ``sent``.

        The caller has to send it at once. Warns the user, once, if the model can't use the chosen
        effort. If ``tools_allowed`` is False, the request has the tools, but the model must not
        call them.
        """
        self.announce_effort()
        request = self.next_request(tools_allowed=tools_allowed)
        counter = self._ports.directory.counter(self.model)
        counted = self._meter().counted(self._session.active_path())
        self.sent = SentRequest(
            request, self._session.leaf, warm=not self._cache_cold(), counted=counted
        )
        return request, counter.calibrated(counted)

    def answered(self, answer: AssistantEntry) -> None:
        """Process the answer to the last request, whose token usage corrects later estimates.

        Reports a cache miss. Warns the user, once, if the reported usage can't be right.
        """
        implausible = complaint(answer, self.size().window)
        if implausible is not None and self._said.remember(("usage", answer.model)):
            self._channel.say(implausible, "warning")
        if self.sent is not None:
            known = newest_report(self._session.active_path())
            if self.sent.counted and known is answer and answer.usage is not None:
                self._ports.directory.learn(answer.model, self.sent.counted, answer.usage.prompt)
            self.watch.answered(self.sent, answer, least=self.settings().cache.warn_tokens)

    def next_request(self, *, tools_allowed: bool = True) -> ModelRequest:
        """Return the next request for the current path; nothing is appended or remembered."""
        traits = self._ports.directory.traits(self.model)
        request = project(self.path(), traits, self._templates)
        blobs: dict[str, bytes] = {}
        for message in request.messages:
            for part in message.content:
                if isinstance(part, ImageRef) and part.blob not in blobs:
                    data = self._ports.blob(part.blob)
                    if data is not None:
                        blobs[part.blob] = data
        return replace(
            request,
            tool_choice="auto" if tools_allowed else "none",
            max_output_tokens=self._room_for_answer(),
            effort=self.effort.level,
            session=self._ports.cache_session or self._session.id,
            cache_ttl=self.cache_ttl(self._ports.clock()),
            blobs=blobs,
        )

    def _room_for_answer(self) -> int:
        """Return the maximum number of tokens of the next answer.

        The room for the answer is the free part of the window or half the reserve, whichever is
        larger. The result is the model's own limit, but at most the room. If that limit is unknown,
        the reserve is used instead or, if the last answer had reasoning, half the room if that is
        more, because reasoning counts as part of the answer but does not stay in the context. If
        the request's size is only estimated, the possible error is subtracted.
        """
        size = self.size()
        most = self._ports.directory.limits(self.model).max_output
        # Leave some slack, because the provider may count a few more tokens than the estimate.
        slack = 0
        if size.estimated:
            slack = round(size.total * _ESTIMATE_ERROR)
        free = max(size.reserve // 2, size.window - size.total)
        if most is None:
            most = size.reserve
            answer = newest(self._session.active_path(), AssistantEntry)
            if answer is not None and any(isinstance(part, ReasoningPart) for part in answer.parts):
                most = max(size.reserve, free // 2)
        return max(1, min(most, free) - slack)

    # -- making room ----------------------------------------------------------------------------------------

    def room_left(self) -> int:
        """Return how many tokens the next request may grow by before a compaction is due.

        Negative if one is due.
        """
        size = self.size()
        return size.limit - size.total

    async def make_room(self) -> None:
        """Make the next request fit the context window by pruning, then by compacting.

        Also appends a head (the system prompt and the tool definitions) if one is needed, and
        starts to prepare the next summary in the background when it is time. Raises
        ContextFullError if the request does not fit even then, and CompactedError as `compact`
        does.
        """
        self._overflows = 0
        self._prune_images()
        await self.compact_as_asked()
        # A prepared compaction prunes, too, and pruning before it would break the cache twice.
        if self.prepared is None or not self.prepared.holds(self.model):
            await self.prune(
                Moment(model_switched=self._model_switched(), cache_cold=self._cache_cold())
            )
        size = self.size()
        trigger = self._trigger(size)
        if trigger is not None and not await self._defer_compaction(trigger, size):
            await self._compact_when_due(trigger)
        elif size.threshold is None and size.total > size.limit:
            raise ContextFullError(HoldReason.OFF.value, size)
        self.ensure_head()
        # Start the summary before the context is full.
        if self.prepared is not None:
            self.prepared.review(self.model)
        size = self.size()
        if not is_due(size):
            self._begin_summary(size, self._will_prune)

    async def _defer_compaction(self, trigger: "Trigger", size: ContextSize) -> bool:
        """Return True if the run can go on while the summary that is due is written.

        Starts the summary if necessary; once finished, it is committed before the next request. If
        the requests until then would not fit, old outputs are cleared. Also returns True if the
        user put the compaction off and the request fits. Returns False if the trigger is not the
        threshold, if a summary is finished already, if none can be started, or if not enough room
        can be made.
        """
        if trigger != "threshold":
            return False
        if self._is_put_off(size):
            return True
        # If the plan was refused, let an ordinary compaction say what can be done.
        if self.has_summary or (self.prepared is not None and self.prepared.was_refused):
            return False
        missing = missing_meanwhile(size)
        bridge = None
        if missing:
            bridge = await self._plan_bridge(missing, size)
            if bridge is None:
                return False
        self._begin_summary(size, _never)
        if self.prepared is None or self.prepared.task is None:
            return False
        if bridge is not None:
            self._journal.append(bridge.entry())
        return not missing_meanwhile(self.size())

    async def _plan_bridge(self, missing: int, size: ContextSize) -> PrunePlan | None:
        """Return a prune that frees ``missing`` tokens and, if possible, room for another step.

        None if it would free less than ``missing``, or if the path changed meanwhile. A prune
        clears old tool outputs. With it, the run can go on while a summary is written; the summary
        still covers the cleared outputs.
        """
        leaf = self._session.leaf
        wanted = missing + round(step_sizes(self._session.active_path()).mean)
        plan = await self.plan_prune(Moment(), size=size, wanted=wanted)
        if plan is None or plan.tokens_freed < missing or leaf != self._session.leaf:
            return None
        return plan

    def _begin_summary(self, size: ContextSize, needless: Callable[[], Awaitable[bool]]) -> None:
        """Start to write a summary in the background, if it is time and none exists yet.

        ``needless`` is called just before the writing starts; if it returns True, no summary is
        written.
        """
        seconds = SUMMARY_SECONDS if self.prepared is None else self.prepared.seconds
        keep = kept_ahead(
            size,
            step_sizes(self._session.active_path()),
            self.settings().compaction,
            summary_seconds=seconds,
        )
        if keep is None or self._hold("threshold") or not self.compactor.prepared.is_wanted():
            return
        order = replace(self.order("threshold", None), keep_recent=keep, is_ahead=True)
        self.compactor.prepared.begin(order, needless)

    async def _will_prune(self) -> bool:
        """Return True if pruning, not a summary, will make room when the context is full."""
        size = self.size()
        left = self.room_left()
        full = replace(size, history=size.history + left, total=size.total + left)
        return await self.plan_prune(Moment(), size=full) is not None

    @property
    def prepared(self) -> "PreparedSummary | None":
        """The state of the next compaction's summary: not begun, in progress, or finished.

        None before the first use of the compactor.
        """
        if "compactor" in self.__dict__:
            return self.compactor.prepared
        return None

    @property
    def has_summary(self) -> bool:
        """Whether the prepared summary is complete and can be used."""
        prepared = self.prepared
        return prepared is not None and prepared.ready is not None and prepared.holds(self.model)

    async def compact_as_asked(self) -> None:
        """Carry out the compaction that the user asked for during the run, if any."""
        while self.pending is not None:
            focus = self.pending
            self.pending = None
            await self.compact("manual", focus or None)

    async def after_overflow(self, error: ModelError) -> None:
        """Learn the context window from an overflow error, and compact so that resending works.

        Raises ContextFullError if no room can be made or at the second overflow in a row, and
        CompactedError as `compact` does.
        """
        self._learn_from_overflow(error)
        self._overflows += 1
        if self._overflows >= OVERFLOW_ATTEMPTS:
            raise ContextFullError(error.message)
        held = self._hold("overflow")
        outcome = Failed(held.value) if held else await self.compact("overflow")
        # If automatic compaction is off, don't compact without a model either.
        if isinstance(outcome, Failed) and held is not HoldReason.OFF:
            outcome = await self.compact("overflow", by_rule=outcome.problem)
        if outcome.problem:
            said = error.message
            if not said.rstrip().endswith((".", "!", "?")):
                said = f"{said}."
            raise ContextFullError(f"{said} {outcome.problem}", compacted=held is None)
        self.ensure_head()

    def _learn_from_overflow(self, error: ModelError) -> None:
        """Learn the model's context window and token counts from an overflow error.

        Token estimates are calibrated only if the error gives the request's size in tokens. If it
        names no window, a window a little smaller than the refused request is assumed, with a
        warning. Nothing is assumed if the request's size is unknown, very small or not below the
        known window, or if the request had images.
        """
        directory = self._ports.directory
        sent = self.sent
        if error.sent and sent is not None and sent.counted:
            directory.learn(self.model, sent.counted, error.sent)
        if error.window:
            directory.learn_window(self.model, error.window)
            return
        if sent is None or not sent.counted or sent.request.blobs:
            # The provider may have refused the images' size in bytes, not the number of tokens.
            return
        size = error.sent or directory.counter(self.model).calibrated(sent.counted)
        window = round(size * (1 - _ESTIMATE_ERROR))
        if _LEAST_WINDOW <= window < directory.limits(self.model).window:
            directory.learn_window(self.model, window, named=False)
            refused = (
                f"{self.model} refused a request of about {size:,} tokens without naming a limit"
            )
            self._channel.say(
                f"{refused}; assuming a {window:,}-token window until you restart.", "warning"
            )

    async def fall_back(self, error: ModelError) -> bool:
        """Switch to the next usable fallback model after an error, and make room for it.

        Returns False, and stays with the model, if there is none, if another model would not help
        with this error, if the chosen model's API key was refused, or if part of the answer was
        shown already (another model would begin the answer again). Raises the errors of
        `make_room`.
        """
        path = self._session.active_path()
        shown = newest_message(path)
        if isinstance(shown, AssistantEntry) and (shown.text or shown.tool_calls):
            return False
        now = self._ports.clock()
        failed = self.model
        chosen = self.stands_in_for or self.model
        if failed == chosen and error.kind is ErrorKind.AUTH:
            # Report the refused API key instead of switching models, so that the user can enter
            # another.
            return False
        reason = self._availability.note(failed, error, now)
        model = None
        if reason:
            model = self._availability.first_of((chosen, *self._ports.fallback_models), now)
        if model is None:
            return False
        self._use(model, chosen)
        self._channel.say(f"{failed} {reason}: {model} answers instead of {chosen}.", "warning")
        await self.warm()
        await self.make_room()
        return True

    def return_to_chosen(self) -> None:
        """Go back from a fallback model to the chosen model if it may be usable again."""
        chosen = self.stands_in_for
        if chosen is not None and self._availability.is_back(chosen, self._ports.clock()):
            self._use(chosen, chosen)
            self._channel.say(f"Trying {chosen} again.")

    @property
    def stands_in_for(self) -> str | None:
        """The model that the user chose, if a fallback model answers now; None otherwise."""
        return stands_in_for(self._session.active_path())

    def _use(self, model: str, chosen: str) -> None:
        self._journal.append(
            ModelChangeEntry(model=model, stands_in_for=chosen if model != chosen else None)
        )
        self.model = model

    async def compact(
        self,
        trigger: "Trigger",
        focus: str | None = None,
        *,
        for_model: str | None = None,
        boundary: int | None = None,
        by_rule: str | None = None,
    ) -> CompactionOutcome:
        """Summarise the history and return how that ended.

        ``focus`` says what the summary should pay attention to. ``for_model`` is the model whose
        window the result has to fit; the current model writes the summary then, unless the settings
        name another. ``boundary`` is the id of the first entry that is not summarised. ``by_rule``
        is the problem of an earlier attempt: if given, the summary is made by rules, without a
        model. After an automatic compaction in the middle of a turn, a message tells the model to
        continue; with the setting ``compaction.resume`` off, CompactedError is raised instead.
        """
        message = newest_message(self._session.active_path())
        in_turn = trigger != "manual" and isinstance(message, ToolResultEntry)
        if by_rule is None:
            self._prune_images()
        order = self.order(trigger, focus, boundary)
        if for_model is not None:
            order = replace(order, model=for_model, summariser=self.model)
        outcome = await self.compactor.compact(order, without_model=by_rule is not None)
        if by_rule is not None and outcome.problem is None:
            self._channel.say(
                f"{by_rule} Compacted without a model instead, to continue.", "warning", "undo"
            )
        if isinstance(outcome, Compacted) and in_turn:
            if not self.settings().compaction.resume:
                raise CompactedError
            await self._go_on()
        return outcome

    async def prune(self, moment: Moment) -> int:
        """Clear old tool outputs if the settings ask for it now.

        Return the number of tokens freed, 0 if nothing was cleared.
        """
        leaf = self._session.leaf
        plan = await self.plan_prune(moment)
        if plan is None or leaf != self._session.leaf:
            return 0
        self._journal.append(plan.entry())
        return plan.tokens_freed

    def _prune_images(self) -> None:
        path = self._session.active_path()
        settings = self.settings().images
        if not self._ports.directory.traits(self.model).vision or not any(
            entry.images for entry in path
        ):
            return
        counter = self._ports.directory.counter(self.model)

        plan = plan_image_prune(
            resolve(path),
            settings,
            self.size().budget,
            lambda image: counter.calibrated(picture_tokens(image, self.model)),
        )
        if plan is not None:
            self._journal.append(plan.entry())
            seen = newest_seen(path)
            targets = set(plan.targets)
            cleared = [one for one in path if one.id in targets and one.id > seen]
            unseen = sum(len(one.images) for one in cleared)
            if unseen:
                left = "1 new image is" if unseen == 1 else f"{unseen} new images are"
                share = f"{settings.max_tokens_share:.0%} of the history budget"
                limits = f"requests are limited to {settings.max_count} images and {share}"
                self._channel.say(f"{left} not sent: {limits} (settings: images).", "warning")

    async def ahead(self, model: str) -> SwitchAhead:
        """Return the size of the next request now, and after a switch to ``model``.

        The size after the switch is given with and without the pruning that a switch causes.
        """
        now = self.size()
        meter = self._ports.context_meter(model)
        path = self._session.active_path()
        compaction = self._view().compaction
        if compaction is not None and not compaction.is_read_by(model):
            # This model can't read the summary, so it receives the entries themselves.
            path = [*self._session.path(), ModelChangeEntry(id=path[-1].id + 1, model=model)]
        size = await asyncio.to_thread(meter.measure, path)
        plan = await self.plan_prune(Moment(model_switched=True), model, size)
        freed = plan.tokens_freed if plan is not None else 0
        return SwitchAhead(now, size, size.total - freed)

    async def plan_prune(
        self,
        moment: Moment,
        model: str | None = None,
        size: ContextSize | None = None,
        wanted: int | None = None,
    ) -> PrunePlan | None:
        """Return the plan for clearing old tool outputs (a prune).

        None if the settings ask for no prune now, if too little would be freed, or after an
        internal error, which is logged. ``model`` and ``size`` describe the request, by default the
        next one. ``wanted`` is the number of tokens to free, by default as the settings say. The
        plan is made in a thread.
        """
        model = self.model if model is None else model
        size = size or self.size()
        settings = self._ports.settings.for_model(model)
        view = self._view()
        reason = occasion(settings.prune, size, moment)
        if reason is None:
            return None
        counter = self._ports.directory.counter(model)
        minimum = None
        if moment.asked:
            minimum = 1
        elif wanted is not None:
            minimum = wanted
        elif not moment.run_ended:
            wanted = settings.prune.wanted_tokens(size.history, size.budget)
        rules = PruneRules(
            settings.prune,
            size.budget,
            tool_traits(),
            pressure=moment.in_work or under_pressure(settings.prune, size),
            minimum=minimum,
            wanted=wanted,
            count=counter.entry,
        )
        try:
            return await in_thread(plan_prune, view, rules, reason)
        except Exception:
            # An internal error in pruning must not end the run: compacting makes room, too.
            log.exception("nothing was pruned")
            return None

    async def after_run(self) -> None:
        """Clear images beyond the limits, and prune if the settings ask for that after a run."""
        self._prune_images()
        if self.settings().prune.when == "run_end":
            await self.prune(Moment(run_ended=True))

    def _trigger(self, size: ContextSize) -> "Trigger | None":
        answer = newest_report(self._session.active_path())
        cut_off = (
            answer is not None
            and answer.model == self.model
            and is_silent_overflow(answer, size.window)
        )
        if not (cut_off or is_due(size)):
            return None
        if self._model_switched():
            return "model_switch"
        return "overflow" if cut_off else "threshold"

    async def _compact_when_due(self, trigger: "Trigger") -> None:
        held = self._hold(trigger)
        outcome = Failed(held.value) if held else await self.compact(trigger)
        problem = outcome.problem
        if problem is None:
            return
        if _fits(self.size()):
            if held is None:
                self._channel.say(f"Compaction did not help: {problem}", "warning", "compact")
            return
        if held is not HoldReason.OFF and not isinstance(outcome, Cancelled):
            problem = (await self.compact(trigger, by_rule=problem)).problem
        if problem is not None:
            raise ContextFullError(problem, self.size(), compacted=held is None)

    def _is_put_off(self, size: ContextSize) -> bool:
        prepared = self.prepared
        return prepared is not None and prepared.is_put_off and _fits(size)

    async def _go_on(self) -> None:
        """Append a message that tells the model to continue.

        The files that the model last worked on are attached, if there is room for them.
        """
        files: tuple[FilePart, ...] = ()
        if room := room_for_files(self.size(), self.settings()):
            newest_ids = self._session.path_outline().ids[-LOOKED_AT:]
            recent = await asyncio.to_thread(self._session.entries, newest_ids)
            counter = self._ports.directory.counter(self.model)
            files = await asyncio.to_thread(
                files_back, recent, self._view(), self._ports.project, room=room, counter=counter
            )
        back: list[UserPart] = []
        if files:
            back = [TextPart(text=self._ports.prompt("files_back")), *files]
        path = self._session.active_path()
        self._journal.append(reminder(path, "continue", self._ports.prompt("continue"), back))

    def _hold(self, trigger: "Trigger") -> HoldReason | None:
        """Return why this trigger may not start a compaction now; None if it may."""
        return hold(
            self._session.active_path(),
            self.settings().compaction,
            self.compactor.failures,
            trigger,
        )

    def order(
        self, trigger: "Trigger", focus: str | None = None, boundary: int | None = None
    ) -> "CompactionOrder":
        """Return an order to compact the current session path; `Compactor` can carry it out."""
        from tui_agent.agent.compaction_drafts import CompactionOrder

        warm = not self._cache_cold()
        return CompactionOrder(
            trigger, self.model, focus, self.next_request(), cache_warm=warm, boundary=boundary
        )

    # -- from the path ----------------------------------------------------------------------------------------

    def settings(self) -> ContextSettings:
        """Return the settings of the context window for the current model."""
        return self._ports.settings.for_model(self.model)

    def _meter(self) -> Meter:
        """Return the meter that counts the tokens of the current model's requests.

        As long as the limits and settings stay the same, the previous meter is returned again,
        because it has already counted most of the session path.
        """
        new = self._ports.context_meter(self.model)
        known = self._known_meter
        if (
            known is None
            or (known.limits, known.settings) != (new.limits, new.settings)
            or not known.adopt(new.counter)
        ):
            self._known_meter = new
            return new
        return known

    def _view(self) -> ContextView:
        return resolve(self._session.active_path())

    def last_answer(self) -> AssistantEntry | None:
        """Return the newest answer on the path that did not fail; None if there is none."""
        return newest(
            self._session.active_path(), AssistantEntry, where=lambda entry: not entry.error
        )

    def _model_switched(self) -> bool:
        """Return True if the last answer came from a model other than the current one.

        An answer that was imported from another program doesn't count, because there is no head
        (the system prompt and the tools) before it.
        """
        last = self.last_answer()
        if last is None or last.model == self.model:
            return False
        head = next((e for e in self._session.active_path() if isinstance(e, SystemEntry)), None)
        return head is not None and head.id < last.id

    def cache_state(self) -> CacheState:
        """Return whether the provider's cache of the path is warm, and for how many seconds."""
        last = self.last_answer()
        used = None
        if last is not None and last.model == self.model:
            used = last.created_at
            if self._pinged[0] == last.id:
                used = self._pinged[1]
        return cache_state(used, self._ports.clock(), self.settings().cache, ttl=self.cache_ttl())

    def pinged(self, answer: AssistantEntry) -> None:
        """Record that a ping has just repeated the request of ``answer`` to keep the cache warm."""
        self._pinged = answer.id, self._ports.clock()

    def cache_ttl(self, now: int | None = None) -> CacheTtl:
        """Return the provider's cache lifetime that a request made at ``now`` asks for.

        ``now`` is in milliseconds since the epoch. If it is None, the time of the last request is
        used.
        """
        if not self._ports.directory.traits(self.model).hour_cache:
            return "5m"
        return cache_ttl(self._session.active_path(), self.settings().cache, now)

    def _cache_cold(self) -> bool:
        return not self.cache_state().warm


class ContextFullError(UserFacingError):
    """Raised when the next request does not fit the model's context window.

    The message is the sentence ``why``, with the ``size`` if given, and a list of commands that
    help. With ``compacted``, /compact is left out, because a compaction was just tried.
    """

    def __init__(
        self, why: str, size: ContextSize | None = None, *, compacted: bool = False
    ) -> None:
        if size is not None:
            why = f"The context is full: {size.total:,} of {size.window:,} tokens. {why}"
        choices = [f"{command}: {does}" for command, does in _WAYS_OUT.items()]
        super().__init__(f"{why} What you can do: {'; '.join(choices[compacted:])}.")


class CompactedError(UserFacingError):
    """Raised after a compaction in the middle of a turn if the settings end the run then."""

    def __init__(self) -> None:
        super().__init__("Compacted. Send a message to continue, because compaction.resume is off.")


@frozen
class SentRequest:
    """A request that was sent; ``leaf`` is the id of the session's leaf at that time.

    ``warm`` says whether the provider's cache should have held the request's beginning. ``counted``
    is the number of its tokens before calibration; 0 if they were not counted but estimated by a
    rule of thumb.
    """

    request: ModelRequest
    leaf: int | None
    warm: bool = False
    counted: int = 0


class CacheWatch:
    """Finds cache misses from the usage that providers report for a session's requests.

    Reports each miss by an event.

    ``miss`` is the miss of the last answered request; None if it had none.
    """

    def __init__(self, session: Session, channel: EventChannel) -> None:
        self._session = session
        self._channel = channel
        self._answered: tuple[SentRequest, Usage | None] | None = None
        self.miss: CacheMiss | None = None

    def answered(self, sent: SentRequest, answer: AssistantEntry, *, least: int) -> None:
        """Set ``miss`` by comparing the request's usage with the usage of the request before.

        A miss is also emitted as an event, unless ``least`` is 0, the miss is below ``least``
        tokens, or the user expects it. A miss is expected after a compaction, after a change of
        model or effort, and if the cache was cold when the user sent the message.
        """
        before = self._answered
        self._answered = (sent, answer.usage)
        miss = None
        if before is not None:
            miss = self._miss(before, sent, answer)
        self.miss = miss
        if miss is None or not least or miss.missed < least:
            return
        expected = {BreakCause.COMPACTION, BreakCause.MODEL, BreakCause.EFFORT}
        if not any(message.role == "tool" for message in sent.request.messages[-1:]):
            expected.add(BreakCause.COLD)
        if miss.cause not in expected:
            self._channel.emit(CacheMissed(miss.missed, miss.expected, answer.model, miss.cause))

    def _miss(
        self, before: tuple[SentRequest, Usage | None], sent: SentRequest, answer: AssistantEntry
    ) -> CacheMiss | None:
        found = missed_tokens(before[1], answer.usage)
        if found is None or not ever_cached(self._session.active_path(), answer.model):
            return None
        broken = self.prefix_break(before[0], sent.request)
        if not sent.warm and (broken is None or broken.cause is not BreakCause.MODEL):
            return CacheMiss(*found, BreakCause.COLD)
        if broken is None and before[0].request.effort != sent.request.effort:
            return CacheMiss(*found, BreakCause.EFFORT)
        if broken:
            return CacheMiss(*found, broken.cause, broken.entry_id)
        return CacheMiss(*found, None)

    def prefix_break(self, sent: SentRequest, new: ModelRequest) -> PrefixBreak | None:
        """Return where and why ``new`` doesn't extend the request ``sent``; None if it does."""
        path = self._session.active_path()
        on_path = sent.leaf is None or self._session.on_path(sent.leaf)
        since = [entry for entry in path if entry.id > (sent.leaf or 0)]
        return prefix_break(sent.request, new, since, moved=not on_path)


async def _never() -> bool:
    return False


def _fits(size: ContextSize) -> bool:
    """Return True if the request leaves enough room for an answer.

    Enough is a tenth of the context window or the reserve, whichever is smaller.
    """
    return size.total <= size.window - min(size.reserve, size.window // 10)
