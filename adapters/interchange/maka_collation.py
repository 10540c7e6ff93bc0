"""The order in which an ECMAScript engine compares strings in a root or English locale.

Needed only to recompute the arguments hash of foreign dispatches. Punctuation stands before digits and digits before
letters; letters compare without accents and case first, then by accents, then lower case before upper. Letters outside
ASCII that do not decompose follow by code point, which is right within a script and a guess between scripts.
"""

from __future__ import annotations

import unicodedata
from typing import TypeAlias

CollationKey: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...]]

_ASCII_ORDER = "\t\n\x0b\x0c\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_RANKS = {character: rank for rank, character in enumerate(_ASCII_ORDER, 1)}


def collation_key(text: str) -> CollationKey:
    """A key that sorts strings by base letters, then accents, then case."""
    decomposed = unicodedata.normalize("NFD", text)
    bases = [character for character in decomposed if not unicodedata.combining(character)]
    letters = tuple(_rank(character) for character in bases)
    accents = tuple(ord(character) for character in decomposed if unicodedata.combining(character))
    return (letters, accents, tuple(character.isupper() for character in bases))


def _rank(character: str) -> int:
    folded = character.lower()
    return _RANKS.get(folded, len(_RANKS) + ord(folded[0]))
