"""Who of a race is taken by itself. The arguments of the program need these names, and nothing else of a race."""

from typing import Literal, get_args

Pick = Literal["none", "first-green", "best"]
"""What happens by itself at the end: nothing; the first that passes is taken, and the others are stopped; the one that
comes first in the order of the result is taken."""
PICKS: tuple[Pick, ...] = get_args(Pick)
