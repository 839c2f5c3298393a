"""What operators write for everybody is found from every mandate, beside what is its own."""

from uuid import UUID, uuid4

import pytest

from gateway.corpus.search import Member, SearchQuery, search
from gateway.db import COMMONS, Database
from gateway.tenancy import service as tenancy
from tests.integration.corpus.searching import Library, wordllama


@pytest.fixture
async def commons(db: Database) -> Library:
    async with db.routing_session() as session:
        await tenancy.seed_commons(session)
    return Library(db, COMMONS, {})


@pytest.fixture
async def library(db: Database) -> Library:
    return await Library.open(db)


async def test_global_documents_are_found_from_every_mandate(commons: Library, library: Library) -> None:
    await commons.put("giraffe for everybody", scope="global", title="Commons")
    await library.put("giraffe at home")
    hits = await library.find("giraffe")
    assert {(hit.text, hit.scope) for hit in hits} == {
        ("giraffe for everybody", "global"),
        ("giraffe at home", "mandate"),
    }
    for who in ("member", None):
        assert "giraffe for everybody" in await library.texts("giraffe", who=who)
    assert [hit.text for hit in hits] == await library.texts("giraffe")


async def test_a_text_of_both_is_one_hit_with_the_own_source_first(
    commons: Library, library: Library
) -> None:
    await commons.put("okapi for everybody", scope="global", title="Commons")
    await library.put("okapi for everybody", title="Copy")
    [hit] = [hit for hit in await library.find("okapi") if "okapi" in hit.text]
    assert [source.title for source in hit.sources] == ["Copy", "Commons"]


async def test_the_commons_see_no_mandate(commons: Library, library: Library) -> None:
    await library.put("private quagga")
    found = await search(
        library.db, wordllama(), Member(COMMONS, library.users["owner"]), SearchQuery(q="quagga")
    )
    assert "private quagga" not in [hit.text for hit in found.hits]


async def test_what_fits_comes_first_whichever_of_both_is_small(commons: Library, library: Library) -> None:
    """How rare a word is differs from one to the other: among few texts no word is."""
    said = "Acme 9911 heat pump maintenance: bleed the vent and set pressure to 2.5 bar."
    await commons.put(said, scope="global", title="Acme heat pump")
    for number in range(100):
        await library.put(
            f"Minutes of meeting {number}: {['budget', 'holiday', 'parking', 'canteen'][number % 4]}."
        )
    await library.put("Part: Gharial pump | Note: replace seal")
    await library.put("import foo.bar and call it with the name of the part")
    for question in ("Acme 9911 heat pump maintenance", "bleed vent pressure bar"):
        assert (await library.texts(question))[0] == said

    own = f"{said} Ask Vera first."
    small = await Library.open(library.db)
    await small.put(own)
    await small.put("Canteen opens at noon.")
    for number in range(40):
        await commons.put(f"Law {number}: {['tax', 'labour', 'rent', 'data'][number % 4]}.", scope="global")
    first, second = (await small.find("Acme 9911 heat pump maintenance"))[:2]
    assert {first.text, second.text} == {said, own}
    assert second.score > 0.7


async def test_filters_hold_for_the_commons_too(commons: Library, library: Library) -> None:
    tag = uuid4().hex
    await commons.put("tagged kudu", scope="global", tags=[tag])
    assert await library.texts("kudu", tags=[tag]) == ["tagged kudu"]
    assert await library.texts("kudu", tags=[uuid4().hex]) == []
    assert await library.texts("kudu", connection_id=UUID(int=7)) == []
