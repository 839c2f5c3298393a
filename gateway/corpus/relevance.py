"""Is this passage about that question at all? A ranking always has a first place; a context must know when to stop.

Two signs, either of which is enough:

    similarity   the cosine of question and passage is at least what the model's own scale calls related. Every model has
                 a scale of its own, so the figure is measured per model (`calibration.py`, wiki/calibration.md): it lets 95
                 of 100 questions keep a passage that answers them. A floor that merely looks sensible can hide everything.
    words        the passage holds three fifths of the telling words of the question, or one of its codes, names or
                 addresses exactly. This is what finds `ACME-4711-X`, whatever the model makes of it.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from gateway.corpus.lexical.terms import EXACT, count_terms, query_terms

# Model → least cosine. Measured where it says so; see wiki/calibration.md for the distributions.
LEAST_SIMILARITY = {
    "wordllama-256@1": 0.37,  # measured on Cranfield and CISI
    "all-minilm-l6-v2-384@1": 0.37,  # measured on a sample of both
    "text-embedding-3-small-1536@1": 0.35,  # from practice (the unified indexing plan, 2026-04-21); not measured here
}
LEAST_SHARE_OF_WORDS = (
    0.6  # measured: 4 of 100 questions about something else find a passage that has so many
)
# What makes a sentence a question. No answer says it again, so it must not count among the words that an answer lacks:
# of "How do I reset my SSO?" two words are telling. A search keeps them; a title may well be called "How to …".
_ASKING = {
    language: frozenset(words.split())
    for language, words in {
        "en": """am can could did do does had has have how me must my our please should tell we were what when
            where which who whom whose why would you your""",
        "de": """bitte dürfen gibt haben habe heißt ich können kann lautet man mein meine meinem meinen meiner muss müssen mir soll
            sollen unser unsere unserem unseren unserer wann warum was welche welchem welchen welcher welches wer wen wem
            wieso wir wo wofür wohin womit""",
        "fr": """ait as avez avons combien comment dois doit faut ma mes mon notre nos peut peux pourquoi puis quand
            quel quelle quelles quels quoi va vos votre""",
        "es": """cómo cuál cuáles cuándo cuánta cuántas cuánto cuántos debe debo dónde hay mi mis nuestra nuestro puede
            puedo qué quién quiénes tengo tiene""",
    }.items()
}


def least_similarity(model: str) -> float:
    """What an unmeasured model gets is no floor: showing too much can be seen and corrected, hiding everything cannot."""
    if model.startswith("lookup-"):
        return math.inf  # its vectors mean nothing; words alone decide
    return LEAST_SIMILARITY.get(model, -1.0)


class Question:
    """A question's words, to be held against many passages, each in its own language."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._groups: dict[str, list[tuple[str, ...]]] = {}

    def shares_words(self, passage: str, language: str) -> bool:
        if language not in self._groups:
            self._groups[language] = telling(self._text, language)
        groups, held = self._groups[language], count_terms(passage, language)
        if any(term.startswith(EXACT) and term in held for group in groups for term in group):
            return True
        return share(groups, held) >= LEAST_SHARE_OF_WORDS


def telling(question: str, language: str) -> list[tuple[str, ...]]:
    """What an answer can be known by: each word once, without those that only ask; these too if there is nothing else."""
    groups = list(dict.fromkeys(query_terms(question, [language])))
    asking = _asking(language)
    return [group for group in groups if asking.isdisjoint(group)] or groups


@lru_cache(maxsize=len(_ASKING))
def _asking(language: str) -> frozenset[str]:
    """As a question's words are stemmed."""
    words = " ".join(_ASKING.get(language, ()))
    return frozenset(term for group in query_terms(words, [language]) for term in group)


def share(groups: Sequence[Sequence[str]], held: Iterable[str]) -> float:
    """How much of a question a passage mentions, from 0 to 1."""
    terms = set(held)
    return sum(not terms.isdisjoint(group) for group in groups) / len(groups) if groups else 0.0
