"""Embedders: text in, unit vectors out. One setting, `CATCHMENT_EMBEDDER`, names the one in use.

    wordllama                                   the offline default
    minilm                                      better, slower, needs one more package
    openai:MODEL[?dimensions=N&price=DOLLARS]   any OpenAI-compatible service; both known for OpenAI's own models
    lookup:WIDTH[?journal=PATH&delayMs=N&batch=N&price=DOLLARS]   benchmarks and tests; the vectors mean nothing

Values are percent-decoded. Prices are US dollars per million tokens.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from gateway.corpus.embedders.protocol import FREE, Embedder, EmbedderRefused, EmbedderUnavailable
from gateway.errors import ConfigurationError

__all__ = ["Embedder", "EmbedderRefused", "EmbedderUnavailable", "build_embedder", "embedding_model"]

# Each embedder is imported when it is chosen: nobody pays start-up time or needs packages for the others.
# ruff: noqa: PLC0415

_OPTIONS = {
    "wordllama": frozenset[str](),
    "minilm": frozenset[str](),
    "openai": frozenset({"dimensions", "price"}),
    "lookup": frozenset({"journal", "delayMs", "batch", "price"}),
}


class _Spec(NamedTuple):
    kind: str
    argument: str
    options: Mapping[str, str]


def build_embedder(spec: str, *, api_key: str | None = None, base_url: str | None = None) -> Embedder:
    """The embedder a setting names, loaded and ready. `ConfigurationError` says what is wrong with the setting."""
    parsed = _parse(spec)
    options = parsed.options
    match parsed.kind:
        case "wordllama":
            from gateway.corpus.embedders.wordllama import WordLlamaEmbedder

            return WordLlamaEmbedder()
        case "minilm":
            from gateway.corpus.embedders.minilm import MiniLmEmbedder

            return MiniLmEmbedder()
        case "lookup":
            from gateway.corpus.embedders.lookup import LookupEmbedder

            return LookupEmbedder(
                _positive(parsed.argument, "lookup's width"),
                journal=Path(options["journal"]) if "journal" in options else None,
                delay=_positive(options["delayMs"], "delayMs") / 1000 if "delayMs" in options else 0.0,
                max_batch=_positive(options.get("batch", "100"), "batch"),
                price=_price(options) or FREE,
            )
        case _:
            return _openai(parsed, api_key, base_url)


@lru_cache(maxsize=16)
def embedding_model(spec: str) -> str:
    """The model's id, without loading the model: the façade asks on every request."""
    parsed = _parse(spec)
    match parsed.kind:
        case "wordllama":
            from gateway.corpus.embedders import wordllama

            return wordllama.MODEL
        case "minilm":
            from gateway.corpus.embedders import minilm

            return minilm.MODEL
        case "lookup":
            from gateway.corpus.embedders import lookup

            return lookup.model_id(_positive(parsed.argument, "lookup's width"))
        case _:
            from gateway.corpus.embedders import openai_compatible

            return openai_compatible.model_id(parsed.argument, _openai_dimensions(parsed))


def _openai(parsed: _Spec, api_key: str | None, base_url: str | None) -> Embedder:
    from gateway.corpus.embedders.openai_compatible import DEFAULT_BASE_URL, KNOWN_MODELS, OpenAiEmbedder

    if base_url is None and not api_key:
        raise ConfigurationError(
            "OpenAI needs a key: set CATCHMENT_OPENAI_API_KEY, or CATCHMENT_OPENAI_BASE_URL"
        )
    address = urlsplit(base_url or DEFAULT_BASE_URL)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise ConfigurationError("CATCHMENT_OPENAI_BASE_URL is not an http(s) address")
    known_price = KNOWN_MODELS[parsed.argument][1] if parsed.argument in KNOWN_MODELS else FREE
    price = _price(parsed.options)
    return OpenAiEmbedder(
        parsed.argument,
        dimensions=_openai_dimensions(parsed),
        price=known_price if price is None else price,
        api_key=api_key,
        base_url=base_url or DEFAULT_BASE_URL,
    )


def _openai_dimensions(parsed: _Spec) -> int:
    from gateway.corpus.embedders.openai_compatible import KNOWN_MODELS

    if "dimensions" in parsed.options:
        return _positive(parsed.options["dimensions"], "dimensions")
    if parsed.argument not in KNOWN_MODELS:
        raise ConfigurationError(
            f"say how wide the vectors are: openai:{parsed.argument or 'MODEL'}?dimensions=N"
        )
    return KNOWN_MODELS[parsed.argument][0]


def _parse(spec: str) -> _Spec:
    name, _, query = spec.partition("?")
    kind, _, argument = name.partition(":")
    if kind not in _OPTIONS:
        raise ConfigurationError(f"no embedder is called {kind!r}; there are {', '.join(_OPTIONS)}")
    if argument and kind in {"wordllama", "minilm"}:
        raise ConfigurationError(f"the embedder {kind} takes no argument")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    options = {key: unquote(value) for key, _, value in pairs}
    if unknown := sorted(options.keys() - _OPTIONS[kind]):
        raise ConfigurationError(f"the embedder {kind} has no option {', '.join(unknown)}")
    return _Spec(kind, argument, options)


def _positive(text: str, what: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise ConfigurationError(f"{what} must be a whole number above zero, not {text!r}")
    return int(text)


def _price(options: Mapping[str, str]) -> Decimal | None:
    if "price" not in options:
        return None
    try:
        price = Decimal(options["price"])
    except InvalidOperation:
        price = Decimal(-1)
    if not (price.is_finite() and price >= 0):
        raise ConfigurationError(f"a price is a number of dollars, not {options['price']!r}")
    return price
