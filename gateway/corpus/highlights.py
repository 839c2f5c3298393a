"""What a person looks for in a hit: the words they asked for, and where in its source the passage stands."""

import re
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


def place(locator: dict[str, Any]) -> str:
    """Where in its source a passage stands, in words."""
    match locator.get("kind"):
        case "pdf":
            return f"page {locator['page']}"
        case "code":
            symbol = f" ({locator['symbol']})" if locator.get("symbol") else ""
            return f"{locator['path']}:{locator['lineStart']}–{locator['lineEnd']}{symbol}"
        case "ticket":
            return f"ticket {locator['ticketId']}"
        case "mail":
            return f"message {locator['messageId']}"
        case "office":
            named = ((name, locator.get(name)) for name in ("section", "slide", "sheet", "cellRange"))
            return ", ".join(f"{name} {value}" for name, value in named if value is not None)
        case _:
            return f"characters {locator.get('charStart', 0)}–{locator.get('charEnd', 0)}"
