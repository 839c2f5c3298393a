"""What every surface of every vendor does, by name. wiki/conformance.md lists them; a test compares."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from connectors.kit.contract import (
    AuthRevoked,
    ConnectorError,
    ContainerForbidden,
    Item,
    ItemGone,
    Surface,
    Throttled,
    VendorUnavailable,
)
from gateway.ingestion.schemas import SOURCE_KINDS
from tests.conformance.mirror import MOST_ON_A_PAGE, Mirror
from tests.conformance.stages import AnyStage, Plan

Behaviour = Callable[[AnyStage], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {}
APPLIES: dict[str, Callable[[Plan], bool]] = {}


def behaviour(applies: Callable[[Plan], bool] = lambda _: True) -> Callable[[Behaviour], Behaviour]:
    def register(function: Behaviour) -> Behaviour:
        BEHAVIOURS[function.__name__] = function
        APPLIES[function.__name__] = applies
        return function

    return register


async def text_of(surface: Surface, item: Item) -> str:
    if item.parts is not None:
        return "\n".join(part.text for part in item.parts)
    fetched = await surface.fetch(item)
    if fetched.parts is not None:
        return "\n".join(part.text for part in fetched.parts)
    return fetched.data.decode()


async def mirrored(stage: AnyStage, count: int = 5) -> tuple[Mirror, dict[str, str]]:
    """Some things, and a mirror that has seen them."""
    made = {
        f"marker-{number}-x": stage.make(f"marker-{number}-x", f"Words of {number}.")
        for number in range(count)
    }
    mirror = Mirror(stage.surface())
    await mirror.round()
    return mirror, made


def shown(mirror: Mirror, made: dict[str, str]) -> set[str]:
    return {marker for marker in made if mirror.find(marker) is not None}


async def again(mirror: Mirror, stage: AnyStage) -> None:
    """The next round, by a new process."""
    mirror.surface = stage.surface()
    await mirror.round()


@behaviour()
async def a_listing_names_everything(stage: AnyStage) -> None:
    """A first listing names every object the account can see, each with a container and a known kind."""
    mirror, made = await mirrored(stage)
    assert shown(mirror, made) == set(made)
    for item in mirror.items.values():
        assert item.external_id
        assert item.container_id
        assert item.is_folder or item.source_kind in SOURCE_KINDS


@behaviour()
async def the_bytes_are_the_truth(stage: AnyStage) -> None:
    """What `fetch` or the listing brings is what the vendor holds."""
    mirror, made = await mirrored(stage, 3)
    for number, marker in enumerate(made):
        item = mirror.find(marker)
        assert item is not None
        assert f"Words of {number}." in await text_of(mirror.surface, item)


@behaviour()
async def only_the_last_page_is_last(stage: AnyStage) -> None:
    """A round ends with exactly one page that says so, and every page has a cursor."""
    mirror, _ = await mirrored(stage)
    assert [page.last for page in mirror.pages] == [False] * (len(mirror.pages) - 1) + [True]
    assert all(page.next_cursor for page in mirror.pages)


@behaviour()
async def pages_and_cursors_are_bounded(stage: AnyStage) -> None:
    """No page and no cursor grows with the size of the account."""
    mirror, _ = await mirrored(stage, 12)
    assert all(len(page.upserts) + len(page.tombstones) <= MOST_ON_A_PAGE for page in mirror.pages)
    assert all(len(page.next_cursor) <= 64 * 1024 for page in mirror.pages)


@behaviour()
async def a_cursor_resumes_after_exactly_its_page(stage: AnyStage) -> None:
    """A new process after any page brings the same set as one that was never interrupted."""
    whole, made = await mirrored(stage)
    for pages in range(1, len(whole.pages) + 1):
        broken = Mirror(stage.surface())
        await broken.round(stop_after=pages)
        await again(broken, stage)
        assert set(broken.documents) == set(whole.documents)
        assert shown(broken, made) == set(made)


@behaviour()
async def the_start_cursor_is_taken_before_the_listing(stage: AnyStage) -> None:
    """What appears while a listing runs is there one delta later at the latest."""
    made = {f"marker-{n}-x": stage.make(f"marker-{n}-x", f"Words of {n}.") for n in range(3)}
    mirror = Mirror(stage.surface())
    await mirror.round(stop_after=1)
    made["marker-late-x"] = stage.make("marker-late-x", "Words that came late.")
    if mirror.pages[-1].last is False:
        await again(mirror, stage)
    await again(mirror, stage)
    assert shown(mirror, made) == set(made)


@behaviour()
async def a_delta_without_news_changes_nothing(stage: AnyStage) -> None:
    """A round after nothing happened ends nothing and leaves every version as it was."""
    mirror, _ = await mirrored(stage)
    before = {key: item.version for key, item in mirror.documents.items()}
    await again(mirror, stage)
    assert {key: item.version for key, item in mirror.documents.items()} == before


@behaviour()
async def what_is_new_arrives(stage: AnyStage) -> None:
    """A new object is there one delta later."""
    mirror, made = await mirrored(stage)
    made["marker-new-x"] = stage.make("marker-new-x", "New words.")
    await again(mirror, stage)
    assert shown(mirror, made) == set(made)


@behaviour(lambda plan: plan.editable)
async def a_version_changes_when_the_content_does(stage: AnyStage) -> None:
    """An edit arrives with another version, and the new bytes with it; what was not edited keeps its version."""
    mirror, made = await mirrored(stage)
    before = {key: item.version for key, item in mirror.documents.items()}
    stage.edit(made["marker-1-x"], "marker-1-x", "Other words.")
    await again(mirror, stage)
    edited = mirror.find("marker-1-x")
    assert edited is not None
    assert edited.version is None or edited.version != before[edited.external_id]
    assert "Other words." in await text_of(mirror.surface, edited)
    for key, item in mirror.documents.items():
        if key != edited.external_id:
            assert item.version == before[key]


@behaviour()
async def ids_survive_listings(stage: AnyStage) -> None:
    """Listing everything twice gives the same ids and the same versions."""
    mirror, _ = await mirrored(stage)
    other = Mirror(stage.surface())
    await other.round()
    assert {k: i.version for k, i in other.documents.items()} == {
        k: i.version for k, i in mirror.documents.items()
    }


@behaviour()
async def what_is_deleted_ends(stage: AnyStage) -> None:
    """A deleted object ends within a round: by a tombstone for an id that was named, or by absence from a listing."""
    mirror, made = await mirrored(stage)
    stage.remove(made.pop("marker-2-x"))
    await again(mirror, stage)
    if mirror.find("marker-2-x") is not None:  # some are only found out by a listing
        mirror.relist()
        await again(mirror, stage)
    assert shown(mirror, {**made, "marker-2-x": ""}) == set(made)


@behaviour()
async def tombstones_name_what_was_named(stage: AnyStage) -> None:
    """The id of a tombstone is the id of an item, so that it finds what it ends."""
    mirror, made = await mirrored(stage)
    for key in made.values():
        stage.remove(key)
    await again(mirror, stage)
    stones = {stone.external_id for page in mirror.pages for stone in page.tombstones}
    assert stones & mirror.named or not stones
    assert not mirror.find("marker-1-x") or not stones


@behaviour(lambda plan: plan.restorable)
async def what_is_restored_comes_back(stage: AnyStage) -> None:
    """An object that was deleted and restored is there again, however old it is."""
    mirror, made = await mirrored(stage)
    stage.remove(made["marker-2-x"])
    await again(mirror, stage)
    stage.restore(made["marker-2-x"])
    await again(mirror, stage)
    assert shown(mirror, made) == set(made)


@behaviour(lambda plan: "empty_page" in plan.strange_pages)
async def an_empty_page_is_not_the_end(stage: AnyStage) -> None:
    """A page without items that leads on is followed; nothing is lost behind it."""
    stage.strange("empty_page")
    mirror, made = await mirrored(stage)
    await again(mirror, stage)
    assert shown(mirror, made) == set(made)


@behaviour(lambda plan: "repeat_page" in plan.strange_pages)
async def repeated_items_are_one_item(stage: AnyStage) -> None:
    """Items told twice, on one page or on two, change nothing."""
    stage.strange("repeat_page")
    mirror, made = await mirrored(stage)
    await again(mirror, stage)
    assert shown(mirror, made) == set(made)
    assert len(mirror.documents) == len(made)


@behaviour(lambda plan: plan.cursor_fault is not None)
async def a_lost_cursor_is_named(stage: AnyStage) -> None:
    """When the vendor forgot the cursor, `CursorLost` leads to a listing that ends in the truth, deletions included."""
    mirror, made = await mirrored(stage)
    stage.remove(made.pop("marker-2-x"))
    made["marker-new-x"] = stage.make("marker-new-x", "New words.")
    stage.lose_cursor()
    await again(mirror, stage)
    await again(mirror, stage)
    assert mirror.losses >= 1
    assert shown(mirror, {**made, "marker-2-x": ""}) == set(made)


async def _trouble(stage: AnyStage) -> ConnectorError:
    with pytest.raises(ConnectorError) as told:
        await Mirror(stage.surface()).round()
    return told.value


@behaviour()
async def being_throttled_is_typed(stage: AnyStage) -> None:
    """Too many requests end in `Throttled` with the vendor's own time, and soon: nobody hammers."""
    await mirrored(stage, 2)
    stage.throttle(120)
    asked = stage.asked()
    error = await _trouble(stage)
    assert isinstance(error, Throttled)
    assert 60 <= error.after <= 240
    assert stage.asked() - asked <= 5


@behaviour()
async def an_outage_is_not_an_empty_account(stage: AnyStage) -> None:
    """A vendor that answers 503 is `VendorUnavailable`, or a container that could not be listed; never silence."""
    mirror, made = await mirrored(stage, 2)
    stage.break_down()
    other = Mirror(stage.surface())
    try:
        await other.round()
    except (VendorUnavailable, Throttled):
        pass
    else:
        assert other.dark
    mirror.surface = stage.surface()
    with suppress(VendorUnavailable, Throttled):
        await mirror.round()
    assert shown(mirror, made) == set(made)


@behaviour()
async def half_an_answer_is_no_answer(stage: AnyStage) -> None:
    """JSON that breaks off is `VendorUnavailable`, or a container that could not be listed."""
    await mirrored(stage, 2)
    stage.babble()
    other = Mirror(stage.surface())
    try:
        await other.round()
    except VendorUnavailable:
        pass
    else:
        assert other.dark


@behaviour()
async def a_dead_grant_is_typed(stage: AnyStage) -> None:
    """A grant that was taken back is `AuthRevoked`, after one try to renew the token."""
    await mirrored(stage, 2)
    stage.refuse()
    assert isinstance(await _trouble(stage), AuthRevoked)


@behaviour()
async def a_vanished_item_is_typed(stage: AnyStage) -> None:
    """Fetching what was deleted meanwhile is `ItemGone`; nothing else is taken along."""
    mirror, made = await mirrored(stage, 2)
    item = mirror.find("marker-1-x")
    assert item is not None
    if item.parts is not None:
        return  # it came with the listing, there is nothing to fetch
    stage.erase(made["marker-1-x"])
    with pytest.raises(ItemGone):
        await stage.surface().fetch(item)


@behaviour(lambda plan: plan.forbid)
async def a_forbidden_container_is_reported(stage: AnyStage) -> None:
    """A container that may no longer be read is named as failed or gone, or typed; never skipped in silence."""
    mirror, made = await mirrored(stage, 3)
    stage.forbid()
    mirror.surface = stage.surface()
    mirror.relist()
    try:
        pages = await mirror.round()
    except (ContainerForbidden, VendorUnavailable):
        pages = []
    else:
        named = [name for page in pages for name in (*page.containers_failed, *page.containers_gone)]
        assert named
    del made


@behaviour()
async def an_estimate_is_near_the_truth(stage: AnyStage) -> None:
    """`estimate` counts within bounds what a listing then brings, without fetching anything."""
    mirror, made = await mirrored(stage, 6)
    found = await stage.surface().estimate()
    assert found.size >= 0
    if found.exact:
        assert len(made) <= found.items <= 2 * len(mirror.items) + 2
    else:
        assert found.items >= 0


@behaviour()
async def items_are_plain_data(stage: AnyStage) -> None:
    """Metadata, handles and locators are JSON; times have a zone; a locator's kind is one of ours."""
    mirror, _ = await mirrored(stage, 2)
    kinds = {"pdf", "web", "code", "ticket", "mail", "office", "text"}
    for item in mirror.items.values():
        json.dumps([dict(item.metadata), dict(item.handle)])
        assert item.modified_at is None or item.modified_at.tzinfo is not None
        for part in item.parts or ():
            located: dict[str, Any] = dict(part.locator or {"kind": "text"})
            json.dumps(located)
            assert located["kind"] in kinds


@behaviour()
async def the_rate_window_is_used(stage: AnyStage) -> None:
    """Every request passes the connection's rate window and leaves it again."""
    await mirrored(stage, 2)
    window = getattr(stage, "window", None)
    if window is not None:
        assert window.costs
        assert window.inside == 0
