"""What `CATCHMENT_EMBEDDER` may say."""

from decimal import Decimal
from pathlib import Path

import pytest

from gateway.corpus.embedders import build_embedder, embedding_model
from gateway.corpus.embedders.lookup import LookupEmbedder
from gateway.errors import ConfigurationError

LOCAL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("spec", "model", "dimensions", "price"),
    [
        ("wordllama", "wordllama-256@1", 256, "0"),
        ("lookup:64", "lookup-64@1", 64, "0"),
        ("lookup:8?price=1.5&batch=3&delayMs=7", "lookup-8@1", 8, "1.5"),
        ("openai:text-embedding-3-small", "text-embedding-3-small-1536@1", 1536, "0.02"),
        ("openai:text-embedding-3-large?dimensions=256", "text-embedding-3-large-256@1", 256, "0.13"),
        ("openai:text-embedding-3-small?price=0", "text-embedding-3-small-1536@1", 1536, "0"),
        ("openai:nomic-embed-text:v1.5?dimensions=768", "nomic-embed-text:v1.5-768@1", 768, "0"),
    ],
)
async def test_a_setting_names_an_embedder(spec: str, model: str, dimensions: int, price: str):
    embedder = build_embedder(spec, base_url=LOCAL)
    assert embedder.model == embedding_model(spec) == model
    assert embedder.dimensions == dimensions
    assert embedder.price_per_million_tokens == Decimal(price)
    assert embedder.max_batch > 0
    assert 0 <= embedder.dense_share <= 1
    await embedder.aclose()


async def test_a_path_with_odd_characters_is_taken_as_it_is(tmp_path: Path):
    journal = tmp_path / "a+b c%d"
    embedder = build_embedder(f"lookup:8?journal={tmp_path}/a+b%20c%25d")
    assert isinstance(embedder, LookupEmbedder)
    await embedder.embed(["x"])
    assert journal.exists()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "wordllama"),
        ("word2vec", "wordllama"),
        ("wordllama:512", "no argument"),
        ("wordllama?batch=2", "no option batch"),
        ("lookup", "width"),
        ("lookup:0", "width"),
        ("lookup:wide", "width"),
        ("lookup:8?delay=5", "no option delay"),
        ("lookup:8?delayMs=-5", "delayMs"),
        ("lookup:8?price=free", "price"),
        ("lookup:8?price=NaN", "price"),
        ("openai:", "dimensions"),
        ("openai:some-model", "dimensions"),
        ("openai:some-model?dimensions=none", "dimensions"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_a_hint(spec: str, says: str):
    with pytest.raises(ConfigurationError, match=says):
        build_embedder(spec, base_url=LOCAL)


def test_openai_itself_needs_a_key():
    with pytest.raises(ConfigurationError, match="CATCHMENT_OPENAI_API_KEY"):
        build_embedder("openai:text-embedding-3-small")


@pytest.mark.parametrize("address", ["ftp://example.org", "localhost:8000", "http://"])
def test_an_address_that_is_none_is_refused(address: str):
    with pytest.raises(ConfigurationError, match="BASE_URL"):
        build_embedder("openai:text-embedding-3-small", base_url=address)
