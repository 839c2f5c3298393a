"""The console's two languages. Templates speak English; German comes from a dictionary keyed by the English words.

Names of our own vocabulary (`sharepoint_item`, `needs_reauth`) are put into words in both.
"""

import json
from functools import cache
from pathlib import Path

LANGUAGES = {"en": "English", "de": "Deutsch"}


@cache
def _dictionary(language: str) -> dict[str, str]:
    name = {"en": "english.json", "de": "german.json"}[language]
    return json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


class Words:
    """`words("Sign out")` in the visitor's language; what is not in the dictionary stays as it is."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, text: str) -> str:
        return _dictionary(self.language).get(text, text)


# Said of a surface, and no trouble: there is nothing anybody could do.
FACTS = frozenset({"no_onedrive"})


def trouble(words: Words, name: str) -> str:
    """Why something could not be done. What no dictionary knows is a name from inside the house, which would help nobody."""
    if name in _dictionary("de"):
        return words(name)
    return words("something unexpected happened; it is tried again by itself")


def chosen_language(cookie: str | None, locale: str | None, accepted: str) -> str:
    """What was chosen here, then what the profile says, then what the browser asks for."""
    wanted = [cookie or "", (locale or "")[:2] if locale and locale != "en" else ""]
    wanted += [part.partition(";")[0].strip()[:2].lower() for part in accepted.split(",")]
    return next((language for language in wanted if language in LANGUAGES), "en")
