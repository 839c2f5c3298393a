"""Which language a text is written in, well enough to choose a stemmer."""

from functools import lru_cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

FALLBACK = "en"
SAMPLE_CHARACTERS = 2_000  # under a millisecond; more adds no certainty
_LEAST_CONFIDENCE = 0.5

# Living languages that a company's documents are written in. Each one less is one less wrong guess for short texts.
_CODES = """ar bg ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl sr sv th tr uk vi
    zh"""
LANGUAGES = frozenset(_CODES.split())


def detect_language(text: str) -> str:
    """An ISO 639-1 code of `LANGUAGES`; English where the text does not tell (too short, only code or numbers)."""
    language, confidence = _identifier().classify(text[:SAMPLE_CHARACTERS])
    return language if confidence >= _LEAST_CONFIDENCE else FALLBACK


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    # From the wheel, about a second once per process. Our own instance: the package's global one is shared.
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(LANGUAGES)
    return identifier
