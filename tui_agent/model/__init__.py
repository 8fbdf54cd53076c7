"""The model layer: the model protocol, the providers' formats, litellm's process, the catalog."""

import sys

# Two parts of httpx, its command line (with its dependencies) and HTTP/2, take 4 MB and half of its
# import time. httpx and httpcore work without them.
for _module in ("httpx._main", "httpcore._async.http2", "httpcore._sync.http2"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]  # None makes its import fail
