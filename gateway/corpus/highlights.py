"""What a person looks for in a hit: the words they asked for, and where in its source the passage stands."""

import re
from collections.abc import Callable
from typing import Any

from gateway.corpus.lexical.terms import count_terms, query_terms

LANGUAGES = ("en", "de", "fr", "es")  # whose endings the marking knows
_WORD = re.compile(r"\w+(?:[.@'-]\w+)*")


def wanted_terms(query: str) -> set[str]:
    """The stems of a question's words, in any of the languages."""
    return {term for group in query_terms(query, LANGUAGES) for term in group}


def matches(text: str, wanted: set[str]) -> list[tuple[int, int]]:
    """Spans of the words that are one of the terms in any of the languages."""

    def is_wanted(word: str) -> bool:
        return any(not wanted.isdisjoint(count_terms(word, language)) for language in LANGUAGES)

    return [found.span() for found in _WORD.finditer(text) if is_wanted(found[0])]


def place(locator: dict[str, Any], words: Callable[[str], str] = str) -> str:
    """Where in its source a passage stands, in words. A mail's own id says nothing to anybody."""
    match locator:
        case {"kind": "pdf", "page": page}:
            return f"{words('page')} {page}"
        case {"kind": "code", "path": path, "lineStart": first, "lineEnd": last}:
            cell = f"{words('cell')} {locator['cell']}, " if locator.get("cell") is not None else ""
            symbol = f" ({locator['symbol']})" if locator.get("symbol") else ""
            return f"{cell}{path}:{first}–{last}{symbol}"
        case {"kind": "ticket", "ticketId": ticket}:
            return f"{words('ticket')} {ticket}"
        case {"kind": "mail", "part": str(part)}:
            return f"{words('part')} {part}" if part[:1].isdigit() else words(part)
        case {"kind": "office"}:
            sections = dict.fromkeys(filter(None, map(locator.get, ("section", "sectionEnd"))))
            names = {"slide": "slide", "sheet": "sheet", "cellRange": "cells"}
            named = (
                ("section", " – ".join(map(str, sections)) or None),
                *((word, locator.get(name)) for name, word in names.items()),
            )
            if said := ", ".join(f"{words(word)} {value}" for word, value in named if value is not None):
                return said
        case {"kind": "text", "lineStart": first, "lineEnd": last}:
            return f"{words('line')} {first}" if first == last else f"{words('lines')} {first}–{last}"
        case {"kind": "text", "cell": cell}:
            return f"{words('cell')} {cell}"
        case {"kind": "text", "path": str(inside)} | {"kind": "text", "pointer": str(inside)} if inside:
            return inside
        case _:
            pass
    return f"{words('characters')} {locator.get('charStart', 0)}–{locator.get('charEnd', 0)}"
