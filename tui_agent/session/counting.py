"""Token counts that record how many tokens are outside ASCII, by class, and how many are digits."""

from collections.abc import Iterable

Scripts = tuple[tuple[str, int], ...]
"""Token counts by class of characters outside ASCII (``context.calibration``), sorted by class
name."""


class Count(int):
    """A token count before correction for a model; a plain ``int`` counts ASCII only.

    Tokenizers agree on English and code within a fifth, but differ by factors on other scripts. So
    tokens are counted by class, and corrected when a model is asked. Sums and differences of counts
    are counts.
    """

    scripts: Scripts = ()

    @classmethod
    def of(cls, tokens: int, scripts: Iterable[tuple[str, int]]) -> "Count":
        """Return a count of ``tokens``, of which those in ``scripts`` are outside ASCII."""
        count = cls(tokens)
        count.scripts = tuple(sorted((script, number) for script, number in scripts if number))
        return count

    def __add__(self, other: int) -> "Count":
        return self._with(int(self) + int(other), other, 1)

    __radd__ = __add__

    def __sub__(self, other: int) -> "Count":
        return self._with(int(self) - int(other), other, -1)

    def _with(self, tokens: int, other: int, sign: int) -> "Count":
        if not isinstance(other, Count) or not other.scripts:
            count = Count(tokens)
            count.scripts = self.scripts
            return count
        scripts = dict(self.scripts)
        for script, number in other.scripts:
            scripts[script] = scripts.get(script, 0) + sign * number
        return Count.of(tokens, scripts.items())
