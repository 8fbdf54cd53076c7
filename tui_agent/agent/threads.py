"""Runs blocking functions in threads."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread and return its result, or raise its exception.

    A StopIteration is raised as a RuntimeError, because with a StopIteration in its future the
    await would never end.
    """

    def run() -> T:
        try:
            return work(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(
                f"{getattr(work, '__name__', 'the work')} raised StopIteration"
            ) from error

    return await asyncio.to_thread(run)
