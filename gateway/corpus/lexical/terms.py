"""Words to terms: what a chunk can be found by, and what a query looks for.

Three kinds of term, told apart by their first character so that they never collide:

    run            a word: case and accents folded, stemmed in the chunk's language. Only these make up a chunk's
                   length. Parts of a compound and of a camelCase or snake_case name are words too; scripts written
                   without spaces give overlapping pairs of characters.
    =acme-4711-x   a compound exactly as it stands (codes, addresses, versions, file and function names), so that the
                   whole outranks its scattered parts; also single characters of the scripts without spaces.
    ~the           a function word of the language.

Function words are stored but not counted into the length, and a query drops them as long as it has anything else to
go by. So they cost nothing in the ordinary query, scores are those of a BM25 engine with a stop list, and a query made
of nothing but function words still finds what it quotes. In a mandate of several languages a function word of any of
them is dropped, except the few that carry meaning in another ("die"): those stay as one group of alternatives, whose
high frequency takes most of its weight away.

Whenever the same text would give other terms `PIPELINE_VERSION` (`gateway.ingestion.hashing`) goes up: stored postings are stale.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice

import Stemmer

from gateway.corpus.lexical.function_words import FUNCTION_WORDS, HOMOGRAPHS
from gateway.corpus.lexical.spellings import code_written_otherwise, umlauts_spelled_otherwise

EXACT = "="
FUNCTION = "~"
UNCOUNTED = (EXACT, FUNCTION)  # first characters of terms that do not add to a chunk's length

MAX_TERM_CHARACTERS = 100  # well under a btree key in every script; a file name or a sha512 prefix still fits
MAX_TERMS = 10_000  # distinct terms per text; a chunk has about a hundred
MAX_TEXT_CHARACTERS = 1_000_000
MAX_QUERY_GROUPS = 256  # a query of 1,000 characters has fewer words than this
_MAX_CACHED_TOKENS = 200_000  # per language; about 40 MB at worst
_MAX_CACHED_WORDS = 100_000  # per language, punctuation and all; as much again at worst
_MAX_CAMEL_CHARACTERS = 60  # longer "names" are encoded data, whose parts mean nothing

_SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "fa": "persian", "fi": "finnish", "fr": "french", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip

_MARKS = "".join(
    chr(code)
    for code in range(0x300, 0xFB00)  # up to the variation selectors, which belong to pictures, not to words
    if unicodedata.category(chr(code)) in {"Mn", "Mc"}
)
_TOKEN = re.compile(
    rf"\w[\w{_MARKS}]*"  # a word, with the vowel signs that \w leaves out
    rf"(?:[-.@&+'][\w{_MARKS}]+)*"  # and what is tied to it
    r"(?:\+\+|\#(?!\w))?"  # C++, C#
)
_TIES = re.compile(r"[-._@&+#]+")
# Ties between words that make a name or a number of them. A hyphen between plain words is only spelling.
_EXACT_FORM = re.compile(r"[^-_][._@&+][^-_]|[^_]_+[^_]|[+#]$|\d.*-|-.*\d|[A-Z]{2}.*-|-.*[A-Z]{2}")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_CAMEL_PART = re.compile(r"[A-Z0-9]+(?![a-z])|[A-Z]?[a-z0-9]+")
_UNSPACED = re.compile(  # Thai to Khmer, kana, Han, Hangul
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Groups of three digits, as the English, the Swiss and the French tie them: all are read as with points.
_GROUPED = re.compile(
    "(?<![\\w.,'’])[1-9][0-9]{0,2}([,'’\u00a0\u2009\u202f])[0-9]{3}(?:\\1[0-9]{3})*(?!\\1?[0-9])(?:\\.[0-9]{1,2}(?![0-9]))?"
)
_TIED_DIGITS = re.compile("[0-9][,'’\u00a0\u2009\u202f][0-9]{3}")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Letters of their own that people without them write otherwise; ß is folded with the case.
_LETTERS = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})


def count_terms(text: str, language: str) -> dict[str, int]:
    """How often each term occurs. `language` is an ISO 639-1 code; one without a stemmer is simply not stemmed."""
    analyser = _analyser(_base(language))
    words, runs = _split_scripts(text[:MAX_TEXT_CHARACTERS])
    counts = Counter(chain.from_iterable(map(analyser.written.__getitem__, words.split())))
    for run in runs:
        counts.update(_pairs(run))
        counts.update(EXACT + character for character in run)
    return counts if len(counts) <= MAX_TERMS else dict(islice(counts.items(), MAX_TERMS))


def query_terms(query: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
    """One group per thing looked for; the members of a group are one word as the languages stem it.

    A chunk counts once per group, by its best member. A repeated word is a repeated group and weighs more.
    An empty list means that there is nothing to look for (no letters, no digits).
    """
    codes = list(dict.fromkeys(map(_base, languages or ("en",))))
    analysers = [_analyser(code) for code in codes]
    words, runs = _split_scripts(query)
    groups: list[tuple[str, ...]] = []
    for token in _TOKEN.findall(words):
        stemmed = [list(parts) for parts in zip(*(analyser[token] for analyser in analysers), strict=True)]
        if "de" in codes:
            for other in umlauts_spelled_otherwise(token):
                _add_spelling(stemmed, other, analysers)
        if stemmed and not token.isalpha():
            stemmed[0] += code_written_otherwise(token)
        groups.extend(tuple(dict.fromkeys(alternatives)) for alternatives in stemmed)
    for run in runs:
        groups.extend((term,) for term in (_pairs(run) or [EXACT + run]))
    return ([group for group in groups if _telling(group)] or groups)[:MAX_QUERY_GROUPS]


def _add_spelling(stemmed: list[list[str]], spelling: str, analysers: Sequence["_Analyser"]) -> None:
    for analyser in analysers:
        terms = analyser[spelling]
        if len(terms) == len(
            stemmed
        ):  # one that falls apart otherwise has no place beside the first one's parts
            for alternatives, term in zip(stemmed, terms, strict=True):
                alternatives.append(term)


def _telling(group: tuple[str, ...]) -> bool:
    grammar = [term for term in group if term.startswith(FUNCTION)]
    return not grammar or (len(grammar) < len(group) and grammar[0].removeprefix(FUNCTION) in HOMOGRAPHS)


class _Written(dict[str, tuple[str, ...]]):
    """What stands between two blanks, with its punctuation → its terms. No token reaches over a blank, so looking words
    up like this gives what tokenising the whole text would, in half the time.
    """

    def __init__(self, analyser: "_Analyser") -> None:
        super().__init__()
        self._analyser = analyser

    def __missing__(self, word: str) -> tuple[str, ...]:
        terms = tuple(chain.from_iterable(map(self._analyser.__getitem__, _TOKEN.findall(word))))
        if len(word) <= MAX_TERM_CHARACTERS:
            if len(self) >= _MAX_CACHED_WORDS:
                self.clear()
            self[word] = terms
        return terms


class _Analyser(dict[str, tuple[str, ...]]):
    """Token → its terms, remembered: running text repeats its words, and stemming is the dear part.

    Every language splits a token into the same number of terms in the same order; `query_terms` relies on it.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self._english = language == "en"
        self._function_words = FUNCTION_WORDS.get(language, frozenset[str]())
        self._stem: Callable[[str], str] = _stemmer(language)
        self.written = _Written(self)

    def __missing__(self, token: str) -> tuple[str, ...]:
        terms = tuple(self._terms(token))
        if len(token) <= MAX_TERM_CHARACTERS:
            if len(self) >= _MAX_CACHED_TOKENS:
                self.clear()
            self[token] = terms
        return terms

    def _terms(self, token: str) -> Iterator[str]:
        if "'" in token:
            # l'homme, don't, aircraft's: the letter beside the apostrophe is grammar
            for part in token.split("'"):
                if len(part) > 1 or part.isdigit():
                    yield from self._terms(part)
            return
        words = [word for word in _TIES.split(token) if word]
        telling = (
            words if len(words) == 1 else [word for word in words if len(word) > 1]
        )  # not the X of ACME-4711-X
        if words and (not telling or _EXACT_FORM.search(token)):
            yield self._exact(token)
        for word in telling:
            yield self._word(word)
            if len(word) <= _MAX_CAMEL_CHARACTERS and _CAMEL.search(word):
                parts: list[str] = _CAMEL_PART.findall(word)
                yield from (self._word(part) for part in parts if 1 < len(part) < len(word))

    def _exact(self, token: str) -> str:
        folded = token.strip("_").casefold()
        return (FUNCTION if folded in self._function_words else EXACT) + _fold(folded)[:MAX_TERM_CHARACTERS]

    def _word(self, word: str) -> str:
        folded = word.casefold()
        if self._english:
            folded = _fold(folded)  # the English stemmer takes an accented e for a consonant: résumé ≠ resume
        if folded in self._function_words:
            return FUNCTION + _fold(folded)
        return _fold(self._stem(folded))[:MAX_TERM_CHARACTERS]


@lru_cache(maxsize=64)
def _analyser(language: str) -> _Analyser:
    return _Analyser(language)


def _stemmer(language: str) -> Callable[[str], str]:
    if language not in _SNOWBALL:
        return str
    return Stemmer.Stemmer(_SNOWBALL[language], 0).stemWord  # 0: no second cache behind ours


def _base(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _fold(word: str) -> str:
    """Without accents, so that `resume` finds `résumé`; after stemming, because stemmers read accents."""
    if word.isascii():
        return word
    plain = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_LETTERS)
    return unicodedata.normalize("NFC", plain)


def _split_scripts(text: str) -> tuple[str, list[str]]:
    """The text as the tokeniser wants it, and apart from it the runs of scripts written without spaces."""
    if _TIED_DIGITS.search(text):  # seldom, and looked for in a third of the time
        text = _GROUPED.sub(_with_points, text)
    if text.isascii():
        return text, []
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).replace("‐", "-").replace("’", "'")
    runs: list[str] = _UNSPACED.findall(text)
    return (_UNSPACED.sub(" ", text), runs) if runs else (text, runs)


def _with_points(number: re.Match[str]) -> str:
    whole, point, decimals = number.group().partition(".")
    return whole.replace(number.group(1), ".") + ("," + decimals if point else "")


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]
