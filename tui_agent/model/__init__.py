"""The model layer: one protocol, the formats it is spoken in, litellm's process, the catalog."""

import sys

# httpx's own command line, with the packages it draws with, and HTTP/2: 4 MB and half of its
# import. httpx and httpcore are made to work without them.
for _module in ("httpx._main", "httpcore._async.http2", "httpcore._sync.http2"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]  # how a module is said not to be there
