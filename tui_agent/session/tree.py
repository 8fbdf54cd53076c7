"""Pure functions on the tree of entry headers.

Every function takes the headers of a session as a mapping by id or as any iterable of headers; give a mapping
(`by_id`) when you call several of them. A parent that is missing ends a path like a root.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from tui_agent.session.records import EntryHeader

__all__ = ["Headers", "by_id", "children"]

Headers: TypeAlias = Mapping[int, EntryHeader] | Iterable[EntryHeader]
"""A session's headers, whole or in part."""


def by_id(headers: Headers) -> Mapping[int, EntryHeader]:
    """Return the headers as a mapping by id; a mapping is returned as it is."""
    if isinstance(headers, Mapping):
        return cast("Mapping[int, EntryHeader]", headers)
    return {header.id: header for header in headers}


def children(headers: Headers) -> dict[int | None, list[int]]:
    """Return the ids of the entries below each entry in ascending order; roots are under None.

    Entries without children have no key.
    """
    index = by_id(headers)
    below: dict[int | None, list[int]] = {}
    for entry_id in sorted(index):
        parent = index[entry_id].parent_id
        below.setdefault(parent if parent in index else None, []).append(entry_id)
    return below
