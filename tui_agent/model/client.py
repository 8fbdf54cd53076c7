"""The model client the program uses: formats it speaks itself in this process, everything else through litellm."""

import asyncio
import contextlib
import importlib
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tui_agent.context.request import Message, ModelRequest
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.model.errors import Failure, classify, concerns
from tui_agent.model.logins import LoginError
from tui_agent.model.protocol import ErrorKind, ModelError, ModelEvent
from tui_agent.model.providers import WireName
from tui_agent.model.route import Route, Router
from tui_agent.model.settings import HostSettings

if TYPE_CHECKING:
    from tui_agent.model.hosted.client import HostClient
    from tui_agent.model.wires.http import Http
    from tui_agent.model.wires.wire import Wire

log = logging.getLogger(__name__)

_UNAUTHORISED = 401
_NOT_THERE = {404, 405, 501}
"""Statuses of an address that has no such path."""
_REFUSED = {400, 422}
"""Statuses of a request that something in it is wrong with."""

_ANSWER_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})
_EFFORT = LazyPattern(r"reasoning[._]?effort", re.IGNORECASE)
_VALUES = LazyPattern(r"(?:supported|allowed|invalid|permitted) values?|must be one of|expected one of", re.IGNORECASE)
"""A field is known, but not its value."""


@dataclass(slots=True)
class _Learnt:
    """Parts of a model's requests a server refused since the program started; they aren't sent again."""

    reasoning: bool = False
    """It refuses to be asked for reasoning."""
    blobs: set[int] = field(default_factory=set)
    """Reasoning it refused to take back."""
    takes_none_back: bool = False
    """It refused reasoning again and again, so it isn't a single one that is wrong."""
    fields: set[str] = field(default_factory=set)
    """Fields of the body it doesn't know."""
    wire: WireName | None = None
    """The format it is spoken to in instead of the one it doesn't have."""


@dataclass(slots=True)
class _Attempt:
    """One request on its way: the call made of it, and how it failed."""

    request: ModelRequest
    route: Route
    with_reasoning: bool
    optional: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    """Fields of the body that only this request goes without."""
    failure: Failure | None = None


class ProviderClient:
    """Answers requests of every provider. A process for litellm is started only where a model needs it."""

    def __init__(
        self,
        router: Router,
        *,
        host: HostSettings | None = None,
        log_path: Path | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._router = router
        self._now = now
        self._log_path = log_path
        self.settings = host or HostSettings()
        """Time limits; they count from the next request on."""
        self._hosted: HostClient | None = None
        self._loading: asyncio.Task[Http] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._learnt: dict[tuple[str, str], _Learnt] = {}
        self._renewing: dict[str, asyncio.Task[bool]] = {}

    @property
    def hosted(self) -> "HostClient":
        """The client for litellm; its process isn't there before it is needed."""
        if self._hosted is None:
            from tui_agent.model.hosted.client import HostClient

            self._hosted = HostClient(self._router.environ, log_path=self._log_path, now=self._now)
        self._hosted.settings = self.settings
        return self._hosted

    def warm(self, model: str) -> None:
        """Get ready for a request to a model, without waiting for it."""
        if self._router.wire(model) is None:
            self.hosted.warm()
        elif self._warming is None:
            self._warming = asyncio.create_task(self._warm(model))

    async def _warm(self, model: str) -> None:
        http = await asyncio.shield(self._load())
        from tui_agent.model.wires.wire import WireFailure

        # An error is reported by the request that meets it.
        with contextlib.suppress(ModelError, WireFailure):
            route = self._router.route(model)
            if route.wire is not None:
                await asyncio.to_thread(_load_wire, route.wire)
            await http.client(route.base_url)

    async def aclose(self) -> None:
        # A token that was given but not kept would end the sign-in.
        busy = [task for task in (self._warming, *self._renewing.values()) if task is not None]
        await asyncio.gather(*busy, return_exceptions=True)
        if self._loading is not None:
            await (await self._loading).aclose()
        if self._hosted is not None:
            await self._hosted.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request.

        A part a server refuses and can be done without is left out and the request sent once more, before anything was
        answered: reasoning that is sent back (a conversation must not end because of a signature), a field it doesn't
        know, a format it hasn't. So is a request after a 401, with a new token, where the user is signed in with one.

        Raises:
            ModelError: the request failed, before or in the middle of the answer.
        """
        with_reasoning, left_out, renewed = True, frozenset[str](), False
        await self._renew(request.model)
        while True:
            attempt = self._prepare(request, with_reasoning=with_reasoning)
            attempt.left_out = left_out
            begun = False
            try:
                async with aclosing(self._answer(attempt)) as events:
                    async for event in events:
                        begun = True
                        yield event
            except ModelError as error:
                if not begun and not renewed and error.status == _UNAUTHORISED:
                    key, renewed = attempt.route.key, True
                    if key is not None and await self._renew(request.model, key.get_secret_value()):
                        continue
                if begun or request.compact or not self._learn(error, attempt):
                    raise
                log.warning("%s Sending again without it.", error.message)
                with_reasoning, left_out = attempt.with_reasoning, attempt.left_out
            else:
                return

    async def _renew(self, model: str, refused: str = "") -> bool:
        """Have a token renewed that ends soon or was refused; return whether there is another now.

        Raises:
            ModelError: the user has to sign in again, or the provider can't be reached.
        """
        provider, logins = self._router.signed_in(model), self._router.logins
        login = logins.find(provider.id) if provider is not None and logins is not None else None
        if provider is None or logins is None or login is None:
            return False
        if not login.is_due(refused, self._now()):
            return bool(refused) and login.key != refused
        from tui_agent.model.sign_in import SignInError, renew

        task = self._renewing.get(provider.id)
        if task is None or task.done():
            task = self._renewing[provider.id] = asyncio.create_task(renew(logins, provider, refused, self._now))
        try:
            return await asyncio.shield(task)
        except SignInError as error:
            raise ModelError(error.kind, str(error)) from None
        except LoginError as error:
            raise ModelError(ErrorKind.AUTH, str(error)) from None

    def _prepare(self, request: ModelRequest, *, with_reasoning: bool) -> _Attempt:
        route = self._router.route(request.model)
        learnt = self._learnt.get(_place(route), _Learnt())
        if learnt.wire is not None:
            route = replace(route, wire=learnt.wire)
        formats = {"responses": route.provider.responses.compacts, "messages": route.provider.messages.compacts}
        if request.compact and not formats.get(route.wire or ""):
            raise ModelError(ErrorKind.INVALID_REQUEST, f"{route.target.provider} has no compaction of its own.")
        if learnt.takes_none_back:
            learnt.blobs |= _blobs(request)
        if learnt.blobs:
            request = replace(request, messages=tuple(_without(message, learnt.blobs) for message in request.messages))
        return _Attempt(request, route, with_reasoning and not learnt.reasoning)

    async def _answer(self, attempt: _Attempt) -> AsyncGenerator[ModelEvent, None]:
        from tui_agent.model.wires.wire import WireFailure

        name = attempt.route.wire
        try:
            async with aclosing(self._ask_host(attempt) if name is None else self._speak(attempt, name)) as pieces:
                async for event in pieces:
                    yield event
        except WireFailure as failed:
            attempt.failure = failed.failure
            raise classify(failed.failure, attempt.route.target, now=self._now()) from None

    def _ask_host(self, attempt: _Attempt) -> AsyncGenerator[ModelEvent, None]:
        from tui_agent.model.hosted.client import build_call
        from tui_agent.model.wires import chat

        call = build_call(attempt.request, attempt.route, with_reasoning=attempt.with_reasoning)
        return self.hosted.answer(call, attempt.route, chat.reader(attempt.request, attempt.route))

    async def _speak(self, attempt: _Attempt, name: WireName) -> AsyncGenerator[ModelEvent, None]:
        # Giving a request up must not stop the loading that others wait for.
        http = await asyncio.shield(self._load())
        route, wire = attempt.route, _load_wire(name)
        call = wire.call(attempt.request, route, with_reasoning=attempt.with_reasoning)
        learnt = self._learnt.get(_place(route), _Learnt())
        refused = learnt.fields | attempt.left_out
        call = replace(call, body=_left(call.body, refused))
        sent = call.body.keys()
        attempt.optional = tuple(
            name for name in call.optional if name not in refused and name.partition(".")[0] in sent
        )
        reader = wire.reader(attempt.request, route)
        async with aclosing(http.answer(call, route, reader, self.settings)) as answer:
            async for events in answer:
                for event in events:
                    yield event

    def _load(self) -> "asyncio.Task[Http]":
        """Import the HTTP client, once, in a thread: it takes a tenth of a second."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_open, self._router.environ))
        return self._loading

    def _learn(self, error: ModelError, attempt: _Attempt) -> bool:
        """Note a server's refusal, for the next attempt and later ones; False where nothing can be left out."""
        learnt = self._learnt.setdefault(_place(attempt.route), _Learnt())
        if attempt.route.wire == "responses" and attempt.route.is_elsewhere and error.status in _NOT_THERE:
            learnt.wire = "chat"
            return True
        if error.kind is ErrorKind.CONTEXT_OVERFLOW:
            limits = frozenset(attempt.optional) & _ANSWER_LIMITS
            fits = error.sent and error.window and error.sent < error.window
            attempt.left_out |= limits if fits else frozenset()
            return bool(limits and fits)
        text = attempt.failure.text if attempt.failure is not None and error.status in _REFUSED else ""
        if attempt.request.effort is not None and _EFFORT.search(text) and _VALUES.search(text):
            # The provider says which levels the model has: that is for whoever chose this one.
            return False
        named = {name for name in attempt.optional if _names(text, name)} if text else set()
        if named:
            learnt.fields |= named
            return True
        if not attempt.with_reasoning or not concerns(error, "reasoning"):
            return False
        attempt.with_reasoning = False
        if blobs := _blobs(attempt.request):
            learnt.takes_none_back = bool(learnt.blobs)
            learnt.blobs |= blobs
        else:
            learnt.reasoning = True
        return True


def _open(environ: Mapping[str, str]) -> "Http":
    from tui_agent.model.wires.http import Http

    return Http(environ)


def _load_wire(name: WireName) -> "Wire":
    return cast("Wire", importlib.import_module(f"tui_agent.model.wires.{name}"))


def _place(route: Route) -> tuple[str, str]:
    """Return the key of a server's refusals: they may differ from model to model."""
    return route.base_url, route.info.id


def _blobs(request: ModelRequest) -> set[int]:
    return {hash(blob) for message in request.messages for blob in message.reasoning}


def _without(message: Message, refused: set[int]) -> Message:
    kept = tuple(blob for blob in message.reasoning if hash(blob) not in refused)
    return message if len(kept) == len(message.reasoning) else replace(message, reasoning=kept)


def _left(body: dict[str, Any], refused: set[str]) -> dict[str, Any]:
    """Return a body without fields; ``a.b`` is the field b of the object a."""
    for name in refused:
        outer, dot, inner = name.partition(".")
        within = body.get(outer)
        rest = {key: value for key, value in within.items() if key != inner} if dot and isinstance(within, dict) else {}
        body = {key: value for key, value in body.items() if key != outer or rest}
        if rest:
            body[outer] = rest
    return body


def _names(text: str, name: str) -> bool:
    """Return whether a refusal names a field. A word that is no field's alone has to be marked as one."""
    if "_" in name or "." in name:
        words = name.split("_")
        camel = words[0] + "".join(word.title() for word in words[1:])
        return re.search(rf"(?<![\w.])(?:{re.escape(name)}|{re.escape(camel)})(?![\w.]*\w)", text) is not None
    marked = rf"[\"'`]{name}[\"'`]|(?:parameter|field|argument|property|supplied)s?\W{{1,3}}{name}(?![\w.]*\w)"
    return re.search(marked, text, re.IGNORECASE) is not None
