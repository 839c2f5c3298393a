"""One thing, written in two ways: what a query also looks for, so that nobody need know how it was written.

The index holds what the texts say; only the query is spread, as alternatives of one word, of which a chunk counts the best.

    Krueger        also Krüger, and the other way round; where the mandate holds German
    PX900          also PX-900, and the other way round
    12480          also 12.480, and the other way round
"""

import re
from functools import lru_cache

_DIGRAPH = re.compile(r"ae|oe|(?<![aeouq])ue", re.IGNORECASE)  # not the ue of neue, Bauer, Quelle
_UMLAUTS = {"a": "ä", "o": "ö", "u": "ü", "A": "Ä", "O": "Ö", "U": "Ü"}
_TREMA = re.compile("[äöüÄÖÜ]")
_SPREAD = {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}
_SHORTEST = 4
_JOINED_CODE = re.compile(r"[A-Za-z]+\d+[A-Za-z]*|\d+[A-Za-z]+")
_BORDER = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_TIED_CODE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9]+(?:[-._][A-Za-z0-9]+)+")
_NUMBER = re.compile(r"[1-9]\d{4,14}")  # four digits are more often a year
_GROUPED_NUMBER = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")


@lru_cache(maxsize=10_000)
def umlauts_spelled_otherwise(word: str) -> tuple[str, ...]:
    """With umlauts for two letters, and with two letters for umlauts."""
    if len(word) < _SHORTEST:
        return ()
    narrow = _DIGRAPH.sub(lambda found: _UMLAUTS[found.group()[0]], word)
    wide = _TREMA.sub(lambda found: _SPREAD[found.group()], word)
    return tuple(other for other in (narrow, wide.upper() if word.isupper() else wide) if other != word)


@lru_cache(maxsize=10_000)
def code_written_otherwise(word: str) -> tuple[str, ...]:
    """Terms of the same code, or number in groups of three, with or without what ties its parts together."""
    if _NUMBER.fullmatch(word):
        return (f"={int(word):,}".replace(",", "."),)
    if _JOINED_CODE.fullmatch(word):
        return ("=" + _BORDER.sub("-", word).lower(),)
    tied = _TIED_CODE.fullmatch(word) or _GROUPED_NUMBER.fullmatch(word)
    return (re.sub(r"[-._]", "", word).lower(),) if tied else ()
