"""Lets a pilot wait until the program has nothing left to do, instead of until the machine looks idle.

Textual's pilot takes a process that used little processor time for idle; one that was given little looks the same.
Importing this module replaces that guess for every application of the process.
"""

import asyncio
from asyncio import base_events
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from textual import app as textual_app
from textual import pilot as textual_pilot
from textual._context import active_app
from textual.app import App
from textual.pilot import Pilot
from textual.timer import Timer

HELD_BACK = 5.0
"""Seconds after which a thread counts as held back by the test itself, and is waited for no longer.

A test that holds threads back sets it to 0 and waits for what it asserts.
"""
PATIENCE = 60.0
"""Seconds after which an application that still finds something to do counts as one that never rests."""
SOON = 0.5
"""Seconds: an application that puts something off for no longer than this only spares itself work."""
ROUNDS = 3
"""How often what is put off may be put off again within one wait; what asks a clock held still would do so for ever."""

_set: WeakSet[Any] = WeakSet()
_start = Timer._start
_in_threads: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Future[Any]]] = (
    WeakKeyDictionary()
)
_run_in_executor = base_events.BaseEventLoop.run_in_executor


def _run_counted(loop: Any, executor: Any, function: Any, *arguments: Any) -> "asyncio.Future[Any]":
    """Run a function in a thread; it counts as under way until the loop has its result."""
    future = _run_in_executor(loop, executor, function, *arguments)
    under_way = _in_threads.setdefault(loop, set())
    under_way.add(future)
    future.add_done_callback(under_way.discard)
    return future


async def _until_quiet(held_back: set["asyncio.Future[Any]"]) -> None:
    """Wait until nothing is left to call: no callback is ready, no input waits, no thread works for the loop."""
    loop: Any = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(0)
        if loop._ready or loop._selector.select(0):
            continue
        threads = _in_threads.get(loop, set()) - held_back
        if not threads:
            return
        done, _ = await asyncio.wait(
            threads, timeout=HELD_BACK, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            held_back |= threads


async def settle(app: App[Any], *, soon: bool = True) -> None:
    """Wait until an application has handled, laid out and painted everything that has reached it.

    With ``soon`` what it puts off for a moment is done at once. What waits longer, or for another process or the
    network, is not waited for.

    Raises:
        TimeoutError: the application does not come to rest.
    """
    held_back: set[asyncio.Future[Any]] = set()
    rounds = ROUNDS if soon else 0
    async with asyncio.timeout(PATIENCE):
        while True:
            await _until_quiet(held_back)
            if app._exit or not app.screen_stack:
                return
            if _paint(app):
                continue
            if not rounds or not await _ring():
                return
            rounds -= 1


def _paint(app: App[Any]) -> bool:
    """Lay out and paint what Textual would with its next frame; returns whether there was anything."""
    shown = [*app._background_screens, app.screen]
    late = [screen for screen in shown if screen._update_timer._active.is_set()]
    for screen in late:
        screen._on_timer_update()
    resized = app._resize_event is not None
    if resized:
        app._check_resize()
    return bool(late) or resized


async def _ring() -> bool:
    """Let the timers go off that would soon; returns whether there were any."""
    rung = False
    for timer in list(_set):
        _set.discard(timer)
        target = timer._target()
        if timer._task is None or timer._task.done() or target is None or not target.is_attached:
            continue
        rung = True
        timer.stop()
        with target._context():
            await timer._tick(next_timer=0, count=1)
    return rung


def _set_timer(timer: Any) -> None:
    if timer._repeat == 0 and timer._interval <= SOON:
        _set.add(timer)
    _start(timer)


async def _pause(pilot: Pilot[Any], delay: float | None = None) -> None:
    if delay is not None:
        await asyncio.sleep(delay)
    await settle(pilot.app)


async def _wait_for_idle(_min_sleep: float = 0, _max_sleep: float = 1) -> None:
    await settle(active_app.get(), soon=False)


base_events.BaseEventLoop.run_in_executor = _run_counted  # type: ignore[method-assign,assignment]
Timer._start = _set_timer  # type: ignore[method-assign]
Pilot.pause = _pause  # type: ignore[method-assign]
textual_app.wait_for_idle = textual_pilot.wait_for_idle = _wait_for_idle
