"""Token counts that are split by character class, so that they can be corrected for a model.

The module ``context.calibration`` defines the classes, such as digits and scripts outside ASCII.
"""

from collections.abc import Iterable

Scripts = tuple[tuple[str, int], ...]
"""The number of tokens in each character class (see ``context.calibration``), as sorted pairs."""


class Count(int):
    """A token count that is not yet corrected for a model's tokenizer.

    ``scripts`` contains the number of tokens in each character class except TEXT. Tokenizers differ
    by up to a fifth on English and code, but much more on other scripts. So tokens are counted by
    class, and the count is corrected once the model is known. The sum or difference of a count and
    another number is a count, too; the tokens of a plain ``int`` belong to TEXT.
    """

    scripts: Scripts = ()

    @classmethod
    def of(cls, tokens: int, scripts: Iterable[tuple[str, int]]) -> "Count":
        """Return a count of ``tokens``.

        ``scripts`` contains the number of tokens in each character class except TEXT.
        """
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
