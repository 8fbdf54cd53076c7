"""The formats that are spoken without a library: a request as bytes going out, an answer's events coming in."""

import sys

# What httpx and httpcore bring along that nothing here uses, and that takes longer to import than the rest of them: a
# command line (click, rich and pygments: 0.1 s), and HTTP/2. Where these can't be imported they do without.
for _unused in ("httpx._main", "httpcore._async.http2", "httpcore._sync.http2"):
    sys.modules.setdefault(_unused, None)  # type: ignore[arg-type]
