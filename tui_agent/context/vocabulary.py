"""Counts the tokens of text in OpenAI's byte-pair encodings, with the same results as tiktoken.

An encoding is a file that is mapped into memory and read in place, so the first count takes
milliseconds. (tiktoken spends half a second building tables of 50 MB first, during which the program
wouldn't react to keys.) ``scripts/model_data.py`` writes the files.

The file of an encoding of N tokens has, with little-endian numbers:

- ``SLOTS[name]`` numbers of four bytes: an open-addressing hash table by the CRC-32 of a token's
  bytes; each slot has the token's rank + 1, or 0 if it is free;
- N + 1 numbers of four bytes: the offset of each token in the tokens' bytes;
- the tokens' bytes, in order of rank.
"""

import mmap
import re
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path

FOLDER = Path(__file__).with_name("encodings")
"""The directory with the files of the encodings."""

COUNTS = {"o200k_base": 199_998, "cl100k_base": 100_256}
"""Number of tokens in each encoding."""

SLOTS = {"o200k_base": 1 << 19, "cl100k_base": 1 << 18}
"""Number of slots of each encoding's hash table. It is a power of two, and about 0.4 of the slots
are in use."""

PIECE_CHARS = 128
"""Maximum length, in characters, of a piece of text that is counted at once, because the time to
count it grows with the square of its length."""

REMEMBERED_PIECES = 16_384
"""Number of pieces of text whose token counts are cached, because the same pieces recur in many
texts. The cache takes about 3 MB."""

NUMBER_BYTES = 4
"""Number of bytes of each number in an encoding's file."""
_NO_RANK = 1 << 30
"""Rank that is used for bytes that are not a token. It is higher than the rank of every token."""

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS = {
    # The pattern by which each encoding splits text before merging bytes, from its definition
    # (tiktoken_ext/openai_public.py), with slots for the classes of letters and numbers.
    "o200k_base": "|".join(
        (
            rf"[^\r\n<letters><numbers>]?[<upper>]*[<lower>]+{_CONTRACTIONS}",
            rf"[^\r\n<letters><numbers>]?[<upper>]+[<lower>]*{_CONTRACTIONS}",
            r"[<numbers>]{1,3}",
            r" ?[^\s<letters><numbers>]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n<letters><numbers>]?+[<letters>]++|[<numbers>]{1,3}+"
        r"| ?[^\s<letters><numbers>]++[\r\n]*+|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}
_ASCII = {"letters": "A-Za-z", "numbers": "0-9", "upper": "A-Z", "lower": "a-z"}
_UNICODE = {
    "letters": r"\p{L}",
    "numbers": r"\p{N}",
    "upper": r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}",
    "lower": r"\p{Ll}\p{Lm}\p{Lo}\p{M}",
}


class Vocabulary:
    """The tokens of one encoding. All methods are thread-safe."""

    def __init__(self, name: str) -> None:
        """Map the file of the encoding ``name``, one of ``COUNTS``.

        Raises:
            OSError: the file can't be read.
        """
        self._name = name
        self._mask = SLOTS[name] - 1
        with (FOLDER / f"{name}.bin").open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        table = SLOTS[name] * NUMBER_BYTES
        self._tokens_at = table + (COUNTS[name] + 1) * NUMBER_BYTES
        view = memoryview(self._bytes)
        self._table = _numbers(view[:table])
        self._begins = _numbers(view[table : self._tokens_at])
        self._counted = lru_cache(REMEMBERED_PIECES)(self._count_piece)

    def count(self, text: str) -> tuple[int, int]:
        """Return a text's number of tokens, and how many of them contain a non-ASCII byte."""
        tokens = 0
        outside = 0
        for piece, times in Counter(self._split(text)).items():
            for start in range(0, len(piece), PIECE_CHARS):
                of_part, outside_of_part = self._counted(piece[start : start + PIECE_CHARS])
                tokens += of_part * times
                outside += outside_of_part * times
        return tokens, outside

    def _split(self, text: str) -> Sequence[str]:
        if text.isascii():
            return _ascii_splitter(self._name)(text)
        return _unicode_splitter(self._name)(text)

    def _count_piece(self, piece: str) -> tuple[int, int]:
        data = piece.encode("utf-8", "replace")
        if self._rank(data) != _NO_RANK:
            return 1, int(not data.isascii())
        parts = self._merged(data)
        return len(parts), sum(not part.isascii() for part in parts)

    def _merged(self, data: bytes) -> list[bytes]:
        """Return the tokens of a piece's bytes.

        The method starts with single bytes, and repeatedly merges the two neighbours that form the
        token with the lowest rank, until no two neighbours form a token.
        """
        parts = [data[at : at + 1] for at in range(len(data))]
        ranks = [self._rank(data[at : at + 2]) for at in range(len(data) - 1)]
        while ranks:
            lowest = min(ranks)
            if lowest == _NO_RANK:
                break
            at = ranks.index(lowest)
            parts[at] += parts.pop(at + 1)
            ranks.pop(at)
            if at < len(ranks):
                ranks[at] = self._rank(parts[at] + parts[at + 1])
            if at > 0:
                ranks[at - 1] = self._rank(parts[at - 1] + parts[at])
        return parts

    def _rank(self, token: bytes) -> int:
        """Return the rank of a token's bytes, ``_NO_RANK`` if they are not a token."""
        slot = zlib.crc32(token) & self._mask
        while number := self._table[slot]:
            start = self._tokens_at + self._begins[number - 1]
            end = self._tokens_at + self._begins[number]
            if self._bytes[start:end] == token:
                return number - 1
            slot = (slot + 1) & self._mask
        return _NO_RANK


@cache
def vocabulary(name: str) -> Vocabulary:
    """Return the encoding ``name``, a key of ``COUNTS``. Each encoding is loaded only once."""
    return Vocabulary(name)


def _numbers(view: memoryview) -> Sequence[int]:
    if sys.byteorder == "little":
        return view.cast("I")
    numbers = array("I", view.tobytes())
    numbers.byteswap()
    return numbers


def _filled(name: str, classes: dict[str, str]) -> str:
    pattern = _PATTERNS[name]
    for word, characters in classes.items():
        pattern = pattern.replace(f"<{word}>", characters)
    return pattern


@cache
def _ascii_splitter(name: str) -> Callable[[str], Sequence[str]]:
    return re.compile(_filled(name, _ASCII), re.ASCII).findall


@cache
def _unicode_splitter(name: str) -> Callable[[str], Sequence[str]]:
    import regex

    splitter: Callable[[str], Sequence[str]] = regex.compile(_filled(name, _UNICODE)).findall
    return splitter
