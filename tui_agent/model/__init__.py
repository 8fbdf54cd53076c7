"""The model layer: one protocol, the formats it is spoken in, litellm's process, the catalog."""

import sys

# httpx's own command line, with the packages it draws with: 3 MB and a third of its import. httpx is made to work
# without it.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # how a module is said not to be there
