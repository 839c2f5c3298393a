"""Documents through the real child: what comes out, and what is said about those that cannot be read."""

import json
import random
from collections.abc import AsyncIterator

import pytest

from gateway.corpus.child import ChildFailed, ChildPool, Limits
from tests.unit.workers.pipeline import prose
from tests.unit.workers.pipeline.formats import pdf_files
from workers.pipeline.chunk import text_hash
from workers.pipeline.parsing import PRELOAD, ParsedDocument, parse_document


@pytest.fixture(scope="module")
async def parser() -> AsyncIterator[ChildPool]:
    async with ChildPool("workers.pipeline.parsing", preload=PRELOAD, size=2) as pool:
        yield pool


def assert_sound(document: ParsedDocument) -> None:
    assert document.chunks
    assert len(document.terms) == len(document.chunks)
    for number, (item, terms) in enumerate(zip(document.chunks, document.terms, strict=True)):
        assert item.ordinal == number
        assert document.text[item.locator["charStart"] : item.locator["charEnd"]] == item.text
        assert item.text_hash == text_hash(item.text)
        assert item.language == document.language
        assert terms


async def test_text_comes_back_as_chunks_with_terms_and_language(parser):
    text = "\n".join(prose.wrapped_paragraphs(random.Random(1), 13_000))
    document = await parse_document(parser, data=text.encode(), mime_type="text/plain")
    assert_sound(document)
    assert document.text == text
    assert document.language == "en"
    assert document.page_count is None
    assert sum(terms.get("aircraft", 0) for terms in document.terms) == text.count("aircraft")


async def test_a_text_larger_than_one_batch_of_chunks_is_whole(parser):
    text = "\n".join(prose.bare_lines(random.Random(2), 600_000))
    document = await parse_document(parser, data=text.encode(), mime_type="text/plain")
    assert_sound(document)
    assert len(document.chunks) > 400


async def test_the_language_is_found_or_taken_as_given(parser):
    german = (
        "Die Lieferung erfolgt innerhalb von vierzehn Tagen nach Eingang der Bestellung beim Verkäufer. " * 5
    )
    found = await parse_document(parser, data=german.encode(), mime_type="text/plain")
    given = await parse_document(parser, data=german.encode(), mime_type="text/plain", language="fr")
    assert (found.language, given.language) == ("de", "fr")


async def test_headings_can_be_searched_but_are_not_hashed(parser):
    body = "\n".join(prose.wrapped_paragraphs(random.Random(3), 4_000)).strip()
    one, other = [
        await parse_document(parser, data=f"# {title}\n\n{body}".encode(), mime_type="text/markdown")
        for title in ("Zeppelin", "Submarine")
    ]
    assert all("zeppelin" in terms for terms in one.terms)
    assert len({c.text_hash for c in one.chunks} - {c.text_hash for c in other.chunks}) == 1


async def test_pdf_code_and_objects(parser, tmp_path):
    path = tmp_path / "book.pdf"
    path.write_bytes(pdf_files.book(5))
    book = await parse_document(parser, data=path, mime_type="application/pdf", file_name="book.pdf")
    assert_sound(book)
    assert (book.page_count, {c.locator["page"] for c in book.chunks}) == (5, {1, 2, 3, 4, 5})
    code = await parse_document(
        parser, data=b"def f():\n    return 1\n", mime_type="text/x-python", file_name="f.py"
    )
    assert_sound(code)
    assert code.chunks[0].locator["symbol"] == "f"
    parts = [
        {"text": "Hello there", "mimeType": "text/plain", "locator": {"kind": "ticket", "ticketId": "1"}}
    ]
    objects = await parse_document(
        parser, data=json.dumps(parts).encode(), mime_type=None, content_form="objects"
    )
    assert_sound(objects)
    assert objects.chunks[0].locator["ticketId"] == "1"


async def test_text_content_is_utf8_whatever_it_looks_like(parser):
    text = "a\x00b\x00c\x00d\x00 é \ud800"
    document = await parse_document(
        parser, data=text.encode("utf-8", "surrogatepass"), mime_type="text/plain", content_form="text"
    )
    assert document.text == "a\ufffdb\ufffdc\ufffdd\ufffd é \ufffd"


@pytest.mark.parametrize(
    ("data", "mime_type", "reason"),
    [
        (b"", "text/plain", "empty"),
        (b"", "application/pdf", "empty"),
        (b" \n ", "text/plain", "no_text"),
        (b"PK\x03\x04", "application/zip", "archive"),
        (b"%PDF-1.4 broken", "application/pdf", "damaged"),
        (pdf_files.encrypted(), "application/pdf", "encrypted"),
        (pdf_files.pdf(lambda canvas: None), "application/pdf", "no_text"),
    ],
)
async def test_what_cannot_be_read_has_its_reason(parser, data, mime_type, reason):
    with pytest.raises(ChildFailed) as caught:
        await parse_document(parser, data=data, mime_type=mime_type)
    assert caught.value.reason == reason
    after = await parse_document(parser, data=b"still well", mime_type="text/plain")
    assert after.text == "still well"


@pytest.mark.parametrize(
    "row",
    [
        [{"charStart": 0, "charEnd": 99}, "", 1, {}],
        [{"charStart": -2, "charEnd": 3}, "", 1, {}],
        [{"charStart": 3, "charEnd": 3}, "", 1, {}],
        [{"charStart": "0", "charEnd": 3}, "", 1, {}],
        [{}, "", 1, {}],
        [7],
    ],
)
async def test_a_child_that_lies_is_not_believed(row):
    async with ChildPool("tests.integration.corpus.lying_handler", limits=Limits()) as pool:
        with pytest.raises(ChildFailed, match="another shape"):
            await parse_document(pool, data=b"short", mime_type="text/plain", policy={"row": row})
