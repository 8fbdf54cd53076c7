"""The formats that are spoken without a library: a request as bytes going out, an answer's events coming in."""

import sys

# httpx brings a command line along, which nothing here uses and which takes longer to import than all the rest of it
# (click, rich and pygments: 0.1 s). Where it can't be imported httpx does without.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
