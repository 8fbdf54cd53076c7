"""Sends model requests to providers and streams the answers.

Providers with a format in ``wires`` are called from this process, all others through litellm, which
runs in a separate process (``hosted``). If a server refuses a request, it is sent again in another
form: ``refusals`` finds the refused part, ``forms`` chooses the form, and a form that worked is
stored (``learnt``). The agent does all other retries.
"""

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tui_agent.context.request import ModelRequest
from tui_agent.json_text import as_dict
from tui_agent.lazy import dataclass
from tui_agent.model.error_body import read_body
from tui_agent.model.errors import Failure, classify
from tui_agent.model.forms import (
    MAX_TRIES,
    REMEDIES,
    Refused,
    ServerForm,
    Shape,
    left_out_tools,
    next_shape,
    shaped,
)
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.protocol import (
    ErrorKind,
    Finished,
    ModelError,
    ModelEvent,
    PartLeftOut,
)
from tui_agent.model.providers import OWN_SERVER_PICTURES, WireName
from tui_agent.model.refusals import Part, Refusal, Sent, find_refusal
from tui_agent.model.request_pictures import PictureFitter, images_of
from tui_agent.model.route import Route, Router
from tui_agent.model.settings import HostSettings
from tui_agent.model.tool_schemas import MendedTools
from tui_agent.pictures import PictureLimits

if TYPE_CHECKING:
    from tui_agent.model.hosted.client import HostClient
    from tui_agent.model.wires.http import Http
    from tui_agent.model.wires.wire import Call, Wire

log = logging.getLogger(__name__)

EARLY_ENDS = 2
"""How many answers in a row are reported as failed, so that they are tried again, because a server
that marks the ends of its answers didn't."""


@dataclass
class _Attempt:
    """One attempt at a request: its shape (form), its call, and the failure if it failed."""

    asked: ModelRequest
    """The request before its form was changed. It is the same for all attempts."""
    request: ModelRequest
    """The request in the form of this attempt."""
    shape: Shape
    route: Route
    call: "Call | dict[str, Any]"
    """The HTTP call of a wire, or the arguments of litellm's completion call."""
    optional: tuple[str, ...] = ()
    """Fields of the request's body that can be left out, as ``a`` or ``a.b``. It is empty for calls
    through litellm."""
    failure: Failure | None = None
    """What is known about the failure of this call; None if it has not failed."""

    @property
    def body(self) -> dict[str, Any]:
        return self.call if isinstance(self.call, dict) else self.call.body

    @property
    def sent(self) -> Sent:
        request = self.request
        route = self.route
        return Sent(
            optional=self.optional,
            tools=tuple(tool.name for tool in request.tools),
            blobs=frozenset(images_of(request.messages)),
            answer_tokens=_answer_tokens(self.body),
            has_effort=request.effort is not None,
            can_change_format=route.wire == "responses" and route.is_elsewhere,
        )


@dataclass
class _Tries:
    """The progress of one request: the shape to try next, and what was refused or failed."""

    shape: Shape
    messages: dict[Part, str] = field(default_factory=dict)
    """A message for the user about each refused part."""
    calls: list[object] = field(default_factory=list)

    def report(self) -> PartLeftOut:
        return PartLeftOut(
            tuple(self.messages.values()), self.shape.blobs, reasoning=not self.shape.reasoning
        )


class ProviderClient:
    """Streams the answers of all providers' models.

    The process that runs litellm is started only if a model needs it.
    """

    def __init__(
        self,
        router: Router,
        learnt: LearntFacts | None = None,
        *,
        host: HostSettings | None = None,
        log_path: Path | None = None,
        prompt: Callable[[str], str] = lambda _name: "{tools}",
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create a client; nothing is loaded or connected yet.

        ``log_path`` is the log file of the process that runs litellm. ``prompt`` returns a file of
        ``prompts/`` by name: the instructions for models that can't call tools, in which
        ``{tools}`` is replaced by the tools.
        """
        self._router = router
        self._learnt = learnt or LearntFacts()
        self._now = now
        self._log_path = log_path
        self._prompt = prompt
        self.settings = host or HostSettings.model_construct()
        """Time limits of requests. A change takes effect with the next request."""
        self._hosted: HostClient | None = None
        self._loading: asyncio.Task[Http] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._tools: MendedTools | None = None
        self._pictures = PictureFitter()
        self._early_ends: dict[str, int] = {}
        """How many answers in a row lacked the end mark, for each model that has marked the end of
        an answer since the program started, by served name (see ``Catalog.served_name``)."""

    @property
    def hosted(self) -> "HostClient":
        """The client of the process that runs litellm. Calls start the process when necessary."""
        if self._hosted is None:
            from tui_agent.model.hosted.client import HostClient

            self._hosted = HostClient(self._router.environ, log_path=self._log_path, now=self._now)
        self._hosted.settings = self.settings
        return self._hosted

    def warm(self, model: str) -> None:
        """Start to load, in the background, what requests to a model need.

        For a model called through litellm, this is the process that runs litellm; for other models,
        the modules and the HTTP client, which are loaded only once.
        """
        if self._router.wire(model) is None:
            self.hosted.warm()
        elif self._warming is None:
            self._warming = asyncio.create_task(self._warm(model))

    async def _warm(self, model: str) -> None:
        http = await asyncio.shield(self._load())
        from tui_agent.model.wires.wire import WireFailure

        # An error is reported by the request that needs the client.
        with contextlib.suppress(ModelError, WireFailure):
            route = self._router.route(model)
            if route.wire is not None:
                await asyncio.to_thread(_load_wire, route.wire)
            await http.client(route.base_url)

    async def aclose(self) -> None:
        if self._warming is not None:
            await asyncio.gather(self._warming, return_exceptions=True)
        try:
            if self._loading is not None:
                await (await self._loading).aclose()
        finally:
            if self._hosted is not None:
                await self._hosted.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request.

        If the server refuses a part of the request before the answer begins, the request is sent
        again in another form (see ``refusals`` and ``forms``), up to ``MAX_TRIES`` times in all.
        In that case, or if a picture can't be read, the first event is a ``PartLeftOut``.

        Raises:
            ModelError: the request failed, before or in the middle of the answer.
        """
        served = self._router.catalog.served_name(request.model)
        request, unreadable = await self._pictures.fit(request, self._picture_limits(request.model))
        mended = self._mended(request)
        request = mended.out(request)
        tries = _Tries(Shape(self._learnt.form(served), blobs=frozenset(unreadable)))
        if unreadable:
            reasons = dict.fromkeys(unreadable.values())
            told = [f"A picture can't be sent because it is {reason}." for reason in reasons]
            tries.messages[Part.PICTURE] = " ".join(told)
        while True:
            attempt = self._prepare(request, tries.shape)
            begun = False
            try:
                async with aclosing(self._answer(attempt)) as events:
                    async for event in events:
                        if not begun and tries.messages:
                            self._remember(served, tries.shape.form)
                            yield tries.report()
                        begun = True
                        if isinstance(event, Finished):
                            self._note_end(attempt, event)
                        yield mended.back(event)
            except ModelError as error:
                if begun or not self._changes(error, attempt, tries):
                    raise
            else:
                return

    def _note_end(self, attempt: _Attempt, finished: Finished) -> None:
        """Store whether a model's server marks the ends of answers.

        A server that has marked no end since the program started is stored as never marking ends,
        so its later answers count as complete.

        Raises:
            ModelError: the mark is missing although the server has sent it before, so the answer
                was cut off. After `EARLY_ENDS` such answers in a row no error is raised, because
                another try is unlikely to help and the answers so far would be lost.
        """
        served = self._router.catalog.served_name(attempt.asked.model)
        form = self._learnt.form(served)
        if finished.marked:
            self._early_ends[served] = 0
            if not form.end_marks:
                self._learnt.keep_form(served, form.model_copy(update={"end_marks": True}))
            return
        if not form.end_marks:
            return
        if served not in self._early_ends:
            self._learnt.keep_form(served, form.model_copy(update={"end_marks": False}))
            return
        self._early_ends[served] += 1
        if self._early_ends[served] <= EARLY_ENDS:
            failure = Failure(cause="ended")
            raise classify(failure, attempt.route.target, now=self._now())

    def _changes(self, error: ModelError, attempt: _Attempt, tries: _Tries) -> bool:
        """Set the form of the next try in ``tries`` after an error, and return True.

        Return False if no change can help or all tries are used up.
        """
        tries.calls.append(attempt.call)
        if len(tries.calls) >= MAX_TRIES:
            return False
        after = self._after_refusal(error, attempt, is_last_try=len(tries.calls) == MAX_TRIES - 1)
        if after is None or self._prepare(attempt.asked, after[0]).call in tries.calls:
            return False
        tries.shape, refusal = after
        names = refusal.names or left_out_tools(attempt.asked, tries.shape.form)
        sentence = REMEDIES[refusal.part].sentence(attempt.route.target.provider, names)
        tries.messages[refusal.part] = sentence
        log.warning(
            "%s Sending the request in another form; refused part: %s", error.message, refusal.part
        )
        return True

    def _picture_limits(self, model: str) -> PictureLimits:
        route = self._router.route(model)
        if route.is_small_server:
            return OWN_SERVER_PICTURES
        return route.provider.pictures

    def _mended(self, request: ModelRequest) -> MendedTools:
        """Return the request's tools with their schemas converted for the model's format.

        The result is cached until the tools or the format change.
        """
        wire = self._router.wire(request.model)
        if self._tools is None or not self._tools.are(request.tools, wire):
            self._tools = MendedTools.of(request.tools, wire)
        return self._tools

    def _after_refusal(
        self, error: ModelError, attempt: _Attempt, *, is_last_try: bool
    ) -> tuple[Shape, Refusal] | None:
        """Return the next shape (form of the request) to try, and the refused part.

        Return None if the error refuses no part, if the part can't be changed further, or if the
        request is a compaction or a ping.
        """
        body = read_body(attempt.failure.text if attempt.failure is not None else "")
        if attempt.request.compact or attempt.request.ping:
            refusal = None
        else:
            refusal = find_refusal(error, body, attempt.sent)
        if refusal is None:
            return None
        refused = Refused(
            attempt.asked,
            attempt.shape,
            attempt.body,
            body,
            optional=attempt.optional,
            is_last_try=is_last_try,
        )
        shape = next_shape(refused, refusal)
        if shape is None:
            return None
        return (shape, refusal)

    def _remember(self, served: str, form: ServerForm) -> None:
        """Store the form of requests that a model's server accepts, if it has changed."""
        if form != self._learnt.form(served):
            self._learnt.keep_form(served, form)

    def _prepare(self, request: ModelRequest, shape: Shape) -> _Attempt:
        """Build the HTTP call for a request in a shape (form), without sending it.

        Raises:
            ModelError: an API key or an address is missing, or the request asks for the provider's
                own compaction and the provider has none.
        """
        route = _shaped_route(self._router.route(request.model), shape.form)
        formats = {
            "responses": route.provider.responses.compacts,
            "messages": route.provider.messages.compacts,
        }
        if request.compact and not formats.get(route.wire or ""):
            raise ModelError(
                ErrorKind.INVALID_REQUEST, f"{route.target.provider} has no compaction of its own."
            )
        form = _expected_form(shape.form, route)
        chat = route.provider.chat if route.wire is None else route.chat
        sized = shaped(
            request,
            replace(shape, form=form),
            call_id_chars=0 if route.wire not in (None, "chat") else chat.call_id_chars,
            prompt=self._prompt,
            is_tiny=route.info.tiny,
        )
        if route.wire is None:
            from tui_agent.model.hosted.client import build_call

            arguments = build_call(sized, route, with_reasoning=shape.with_reasoning)
            return _Attempt(request, sized, shape, route=route, call=arguments)
        call = _load_wire(route.wire).call(sized, route, with_reasoning=shape.with_reasoning)
        call = replace(call, body=_left(call.body, shape.left_out))
        optional = []
        for name in call.optional:
            if name not in shape.left_out and name.partition(".")[0] in call.body:
                optional.append(name)
        return _Attempt(request, sized, shape, route=route, call=call, optional=tuple(optional))

    async def _answer(self, attempt: _Attempt) -> AsyncGenerator[ModelEvent, None]:
        from tui_agent.model.wires.wire import WireFailure

        try:
            async with aclosing(self._ask(attempt)) as pieces:
                async for event in pieces:
                    yield event
        except WireFailure as failed:
            attempt.failure = failed.failure
            raise classify(failed.failure, attempt.route.target, now=self._now()) from None

    async def _ask(self, attempt: _Attempt) -> AsyncGenerator[ModelEvent, None]:
        from tui_agent.model.wires import chat

        route = attempt.route
        call = attempt.call
        if isinstance(call, dict):
            async with aclosing(
                self.hosted.answer(call, chat.reader(attempt.request, route))
            ) as heard:
                async for event in heard:
                    yield event
            return
        # Cancelling this request must not cancel the loading that other requests are waiting for.
        http = await asyncio.shield(self._load())
        reader = _load_wire(route.wire or "chat").reader(attempt.request, route)
        async with aclosing(http.answer(call, route, reader, self.settings)) as answer:
            async for events in answer:
                for event in events:
                    yield event

    def _load(self) -> "asyncio.Task[Http]":
        """Return the task that creates the HTTP client in a thread, because its import takes 0.1 s.

        All calls return the same task.
        """
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_open, self._router.environ))
        return self._loading


def _open(environ: Mapping[str, str]) -> "Http":
    from tui_agent.model.wires.http import Http

    return Http(environ)


def _load_wire(name: WireName) -> "Wire":
    return cast("Wire", importlib.import_module(f"tui_agent.model.wires.{name}"))


def _expected_form(form: ServerForm, route: Route) -> ServerForm:
    """Return a server's form, changed where it is known that a route needs another form.

    If the model takes no tools, the form has none. For a model server on the user's own network,
    consecutive messages of one role are joined.
    """
    known: dict[str, Any] = {}
    if route.info.without_tools:
        known["tools"] = False
    if route.is_own_server and form.roles == "apart":
        # Such models' templates often refuse two user messages in a row, or drop one of them.
        known["roles"] = "joined"
    return form.model_copy(update=known)


def _shaped_route(route: Route, form: ServerForm) -> Route:
    """Return the route adapted to what the server accepts.

    The form sets the format of requests, whether cache marks are sent, the maximum length of an
    answer, and whether the server marks the end of an answer.
    """
    info = route.info
    if not form.cache_marks:
        info = replace(info, cache_marks=False)
    if form.answer_tokens:
        info = replace(
            info, max_output=min(info.max_output or form.answer_tokens, form.answer_tokens)
        )
    return replace(route, info=info, wire=form.wire or route.wire, end_marks=form.end_marks)


def _answer_tokens(body: Mapping[str, Any]) -> int:
    """Return the limit for the answer's length in a request body, in tokens; 0 if it has none."""
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        if isinstance(size := body.get(name), int):
            return size
    return 0


def _left(body: dict[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """Return the body without the refused fields; ``a.b`` is field b of object a.

    An object that becomes empty is removed too.
    """
    body = dict(body)
    for name in refused:
        outer, _dot, inner = name.partition(".")
        rest = dict(as_dict(body.get(outer))) if inner else {}
        rest.pop(inner, None)
        if rest:
            body[outer] = rest
        else:
            body.pop(outer, None)
    return body
