"""SharePoint against the sandbox: what is listed, what a delta brings, what goes wrong and what that costs."""

from dataclasses import replace
from typing import Any

import pytest

from connectors.kit.contract import CursorLost, ItemFailed, ItemGone, Throttled, VendorUnavailable
from tests.contract.msft.account import ADA, Account, Mirror
from tests.fixtures.sandboxes import Control


def files(control: Control, surface: str = "sharepoint") -> dict[str, Any]:
    """The truth: every file Ada can see."""
    return {
        one["id"]: one
        for one in control.state(ADA)["objects"]
        if one["surface"] == surface and one["kind"] == "file" and not one.get("sharedWithMe")
    }


def asked(control: Control, word: str) -> int:
    return sum(count for path, count in control.requests()["byPath"].items() if word in path)


async def assert_equal(mirror: Mirror, control: Control) -> None:
    truth = files(control)
    assert set(mirror.documents()) == set(truth)
    for external_id, item in mirror.documents().items():
        assert item.name == truth[external_id]["name"]
        assert item.version == truth[external_id]["version"]
        assert f"/{item.path}" == (truth[external_id]["path"] or "/")


@pytest.fixture
def site(msft_control: Control) -> dict[str, Any]:
    return msft_control.create("site", name="Plant")


def put(control: Control, site: dict[str, Any], name: str, text: str = "words", **more: Any) -> str:
    return control.create("file", driveId=site["driveId"], name=name, text=text, **more)["id"]


async def test_a_listing_brings_all_libraries_of_all_sites(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    other = msft_control.create("site", name="Quay")
    library = msft_control.create("library", siteId=site["id"], name="Drawings")
    folder = msft_control.create("folder", driveId=site["driveId"], name="Äpfel & Birnen 100%")["id"]
    put(msft_control, site, "a.txt")
    put(msft_control, site, "b.txt", parentId=folder)
    put(msft_control, other, "c.txt")
    put(msft_control, library, "d.txt")
    mirror = Mirror(account.surface("sharepoint"))
    pages = await mirror.sync()
    await assert_equal(mirror, msft_control)
    named = {item.name: item for item in mirror.documents().values()}
    assert named["b.txt"].path == "Äpfel & Birnen 100%"
    assert named["b.txt"].parent_id == folder
    assert named["d.txt"].metadata["site"] == "Plant"
    assert named["d.txt"].metadata["library"] == "Drawings"
    assert named["a.txt"].metadata["author"] == "Ada Brook"
    assert {one for page in pages for one in page.container_complete} == {
        site["driveId"], other["driveId"], library["id"]
    }  # fmt: skip
    assert all(page.listing for page in pages)


async def test_a_delta_brings_edits_moves_renames_deletions_and_returns(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    old = "2019-01-01T00:00:00Z"
    folder = msft_control.create("folder", driveId=site["driveId"], name="archive")["id"]
    edited, moved, renamed, deleted, inside = (
        put(msft_control, site, f"{name}.txt", modifiedAt=old)
        for name in ("edited", "moved", "renamed", "deleted", "inside")
    )
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    versions = {one.external_id: one.version for one in mirror.documents().values()}
    msft_control.edit(edited, text="other words")
    msft_control.edit(moved, parentId=folder)
    msft_control.edit(renamed, name="new name.txt")
    msft_control.delete(deleted)
    msft_control.edit(inside, parentId=folder)
    added = put(msft_control, site, "added.txt", modifiedAt=old)
    pages = await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert not any(page.listing for page in pages)
    changed = {
        one.external_id for one in mirror.documents().values() if one.version != versions.get(one.external_id)
    }
    assert changed == {edited, added}  # a new name or place is no new content
    msft_control.delete(folder)  # Graph says only that the folder is gone
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert moved not in mirror.items
    msft_control.restore(folder)
    msft_control.restore(deleted)
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert mirror.lost == []


async def test_nothing_new_costs_one_request_per_drive_and_one_page(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    put(msft_control, site, "a.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.forget_requests()
    pages = await mirror.sync()
    assert len(pages) == 1
    assert pages[0].last
    assert asked(msft_control, "delta") == 1
    assert msft_control.requests()["total"] == 3  # sites, their drives in one batch, one drive


async def test_pages_are_resumed_where_they_were_left(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    for number in range(450):
        put(msft_control, site, f"{number}.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync(stop_after=1)
    assert 0 < len(mirror.documents()) <= 200
    msft_control.forget_requests()
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert asked(msft_control, "delta") == 2


async def test_what_changes_during_a_listing_is_found_by_the_next_delta(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    ids = [put(msft_control, site, f"{number}.txt") for number in range(250)]
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync(stop_after=1)
    msft_control.edit(ids[0], text="changed while listing")
    msft_control.delete(ids[1])
    put(msft_control, site, "late.txt")
    await mirror.sync()
    await mirror.sync()
    await assert_equal(mirror, msft_control)


async def test_a_lost_token_relists_that_drive_alone(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    other = msft_control.create("site", name="Quay")
    gone, kept = put(msft_control, site, "gone.txt"), put(msft_control, site, "kept.txt")
    put(msft_control, other, "elsewhere.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.delete(gone)
    put(msft_control, other, "new.txt")
    msft_control.fault("cursor_expiry", path=site["driveId"][2:20])
    pages = await mirror.sync()
    assert mirror.lost == [site["driveId"]]
    await assert_equal(mirror, msft_control)
    assert kept in mirror.items
    assert {one for page in pages for one in page.container_complete} == {site["driveId"]}
    assert {
        item.name for page in pages if not page.listing for item in page.upserts if not item.is_folder
    } == {"new.txt"}


async def test_every_token_lost_at_once(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    others = [msft_control.create("site", name=f"Quay {number}") for number in range(3)]
    ids = [put(msft_control, one, "x.txt") for one in (site, *others)]
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    for one in ids[:2]:
        msft_control.delete(one)
    msft_control.fault("cursor_expiry", times=4)
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert len(mirror.lost) == 1  # the others join the listing that is running


async def test_a_next_link_that_dies_begins_that_drive_again(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    for number in range(250):
        put(msft_control, site, f"{number}.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync(stop_after=1)
    msft_control.fault("cursor_expiry")
    await mirror.sync()
    await assert_equal(mirror, msft_control)


@pytest.mark.parametrize("fault", ["empty_page", "repeat_page", "repeat_item", "child_first"])
async def test_odd_pages(account: Account, msft_control: Control, site: dict[str, Any], fault: str) -> None:
    folder = msft_control.create("folder", driveId=site["driveId"], name="f")["id"]
    put(msft_control, site, "a.txt", parentId=folder)
    msft_control.fault(fault, path="delta", times=2)
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    put(msft_control, site, "b.txt", parentId=folder)
    msft_control.fault(fault, path="delta", times=2)
    await mirror.sync()
    await assert_equal(mirror, msft_control)


async def test_a_drive_that_refuses_fails_alone_and_deletes_nothing(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    other = msft_control.create("site", name="Quay")
    put(msft_control, site, "a.txt")
    put(msft_control, other, "b.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    mirror.relist()
    msft_control.fault("forbid_container", path=other["driveId"][2:20])
    pages = await mirror.sync()
    assert [one for page in pages for one in page.containers_failed] == [other["driveId"]]
    assert mirror.names() == {"a.txt", "b.txt"}
    await mirror.sync()  # tried again with the next round
    await assert_equal(mirror, msft_control)


@pytest.mark.parametrize(("code", "word"), [("generalException", "refused"), ("accessDenied", "forbidden")])
async def test_one_refusal_is_no_loss(
    account: Account, msft_control: Control, site: dict[str, Any], code: str, word: str
) -> None:
    put(msft_control, site, "a.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.fault("server_error", status=403, code=code, path="/drives/.*delta")
    pages = await mirror.sync()
    assert [page.refusals for page in pages if page.refusals] == [{site["driveId"]: word}]
    assert not any(page.containers_gone for page in pages)
    put(msft_control, site, "b.txt")
    await mirror.sync()
    assert mirror.names() == {"a.txt", "b.txt"}


async def test_a_site_that_does_not_tell_its_libraries_leaves_a_gap(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    put(msft_control, site, "a.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    mirror.relist()  # what is not named would be taken for gone
    msft_control.fault("forbid_container", path=f"/sites/{site['id'].split(',')[0]}.*drives")
    pages = await mirror.sync()
    assert [one for page in pages for one in page.containers_failed] == [site["id"]]
    assert mirror.names() == {"a.txt"}


async def test_lost_access_is_told(account: Account, msft_control: Control, site: dict[str, Any]) -> None:
    other = msft_control.create("site", name="Quay")
    shared = put(msft_control, site, "a.txt")
    put(msft_control, other, "b.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.edit(shared, unshare=[ADA])
    await mirror.sync()
    assert mirror.names() == {"b.txt"}
    msft_control.edit(other["id"], members=["grace@demo.example"])
    pages = await mirror.sync()
    assert [one for page in pages for one in page.containers_gone] == [other["driveId"]]
    assert mirror.names() == set()
    msft_control.edit(other["id"], members=[ADA])
    msft_control.edit(shared, share=[ADA])
    await mirror.sync()
    assert mirror.names() == {"a.txt", "b.txt"}


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (404, "SyncStateNotFound", CursorLost),
        (400, "resyncRequired", CursorLost),
        (503, "activityLimitReached", Throttled),
    ],
)
async def test_a_code_nobody_knows_inside_one_we_know_changes_nothing(
    account: Account, msft_control: Control, site: dict[str, Any], status: int, code: str, error: type
) -> None:
    put(msft_control, site, "a.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.fault("server_error", status=status, code=code, inner="brandNew", path="delta", times=None)
    with pytest.raises(error):
        [page async for page in account.surface("sharepoint").pages(mirror.cursor, "delta")]


async def test_a_locked_site_keeps_what_it_has(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    put(msft_control, site, "a.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.fault("server_error", status=423, code="notAllowed", times=1, path="/root/delta")
    pages = await mirror.sync()
    assert [one for page in pages for one in page.containers_failed] == [site["driveId"]]
    assert mirror.names() == {"a.txt"}
    put(msft_control, site, "b.txt")
    await mirror.sync()
    assert mirror.names() == {"a.txt", "b.txt"}


async def test_what_is_not_wanted_is_named_with_its_reason(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    system = msft_control.create("folder", driveId=site["driveId"], name="Forms")["id"]
    wanted = put(msft_control, site, "report.txt")
    reasons = {
        put(msft_control, site, "~$report.docx"): "filtered",
        put(msft_control, site, "upload.tmp"): "filtered",
        put(msft_control, site, "Thumbs.db"): "filtered",
        put(msft_control, site, "AllItems.aspx", parentId=system): "filtered",
        put(msft_control, site, "inside.txt", parentId=system): "filtered",
        put(msft_control, site, "picture.bin"): "filtered",
        put(msft_control, site, "large.txt", text="x" * 101): "too_large",
        msft_control.create("package", driveId=site["driveId"], name="Notebook")["id"]: "unsupported",
    }
    mirror = Mirror(account.surface("sharepoint", file_types=["txt", ".DOCX"], max_file_bytes=100))
    await mirror.sync()
    assert {one.external_id: one.skip for one in mirror.items.values() if one.skip} == reasons
    assert set(mirror.documents()) == {wanted}


async def test_allowlists(account: Account, msft_control: Control, site: dict[str, Any]) -> None:
    other = msft_control.create("site", name="Quay")
    library = msft_control.create("library", siteId=site["id"], name="Drawings")
    inside = msft_control.create("folder", driveId=site["driveId"], name="2026")["id"]
    deeper = msft_control.create("folder", driveId=site["driveId"], parentId=inside, name="may")["id"]
    put(msft_control, other, "other.txt")
    put(msft_control, library, "drawing.txt")
    put(msft_control, site, "top.txt")
    put(msft_control, site, "in.txt", parentId=inside)
    put(msft_control, site, "deep.txt", parentId=deeper)
    everything = Mirror(account.surface("sharepoint"))
    await everything.sync()
    for policy, names in (
        ({"sites": ["quay"]}, {"other.txt"}),
        ({"libraries": ["Drawings"]}, {"drawing.txt"}),
        ({"sites": ["Plant"], "folders": ["2026"]}, {"in.txt", "deep.txt"}),
        ({"folders": ["2026/m*"]}, {"deep.txt"}),
    ):
        mirror = Mirror(account.surface("sharepoint", **policy))
        await mirror.sync()
        assert mirror.names() == names, policy
    narrowed = replace(everything, surface=account.surface("sharepoint", sites=["Plant"]))
    pages = await narrowed.sync()
    assert [one for page in pages for one in page.containers_left_out] == [other["driveId"]]
    assert "other.txt" not in narrowed.names()


# -- bytes


async def test_bytes_come_without_our_token_from_another_origin(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    external_id = put(msft_control, site, "a.txt", text="the words")
    surface = account.surface("sharepoint")
    mirror = Mirror(surface)
    await mirror.sync()
    fetched = await surface.fetch(mirror.items[external_id])
    assert fetched.data == b"the words"
    assert fetched.file_name == "a.txt"


async def test_a_file_that_is_gone_or_too_large(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    gone = put(msft_control, site, "gone.txt")
    large = put(msft_control, site, "large.txt", text="x" * 50)
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.delete(gone)
    with pytest.raises(ItemGone):
        await mirror.surface.fetch(mirror.items[gone])
    with pytest.raises(ItemFailed) as failed:
        await account.surface("sharepoint", max_file_bytes=20).fetch(mirror.items[large])
    assert (failed.value.reason, failed.value.permanent) == ("too_large", True)


async def test_a_stale_ticket_gets_a_new_one(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    external_id = put(msft_control, site, "a.txt", text="the words")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    msft_control.fault("expired_download")
    assert (await mirror.surface.fetch(mirror.items[external_id])).data == b"the words"
    assert account.tokens.renewals == 0


async def test_a_file_that_changes_between_listing_and_download_comes_again(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    external_id = put(msft_control, site, "a.txt", text="the words")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    before = mirror.items[external_id].version
    msft_control.fault("edit_before_download")
    assert b"meanwhile" in (await mirror.surface.fetch(mirror.items[external_id])).data
    await mirror.sync()
    assert mirror.items[external_id].version != before


# -- bad days


async def test_an_expired_token_is_renewed_in_the_middle(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    put(msft_control, site, "a.txt")
    msft_control.fault("unauthorized", path="delta")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert account.tokens.renewals == 1


async def test_throttling_is_typed_and_shared(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    put(msft_control, site, "a.txt")
    for status in (429, 503):
        msft_control.fault("throttle", path="delta", retryAfter=60, status=status)
        with pytest.raises(Throttled) as throttled:
            await Mirror(account.surface("sharepoint")).sync()
        assert throttled.value.after == 60
        assert account.window.closed[-1] == 60
    msft_control.fault("throttle", path="delta")
    with pytest.raises(Throttled) as throttled:
        await Mirror(account.surface("sharepoint")).sync()
    assert throttled.value.after == 10
    msft_control.fault("throttle", path="delta", retryAfter=0)
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    await assert_equal(mirror, msft_control)
    assert account.window.inside == 0


@pytest.mark.parametrize(
    "fault", [{"kind": "cut_json"}, {"kind": "server_error", "status": 500}, {"kind": "drop"}]
)
async def test_a_vendor_that_stumbles(
    account: Account, msft_control: Control, site: dict[str, Any], fault: dict[str, Any]
) -> None:
    put(msft_control, site, "a.txt")
    kind = fault.pop("kind")
    msft_control.fault(kind, path="delta", times=None, **fault)
    mirror = Mirror(account.surface("sharepoint"))
    with pytest.raises(VendorUnavailable):
        await mirror.sync()
    msft_control.clear_faults()
    await mirror.sync()
    await assert_equal(mirror, msft_control)


async def test_an_estimate_counts_what_would_come(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    for number in range(5):
        put(msft_control, site, f"{number}.txt", text="x" * 10)
    put(msft_control, site, "~$0.docx")
    estimate = await account.surface("sharepoint").estimate()
    assert (estimate.items, estimate.size, estimate.exact) == (5, 50, True)
    assert estimate.containers == ["Plant / Documents"]


async def test_the_cursor_holds_links_and_nothing_about_items(
    account: Account, msft_control: Control, site: dict[str, Any]
) -> None:
    external_id = put(msft_control, site, "a-name-to-look-for.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    assert mirror.cursor is not None
    assert external_id not in mirror.cursor
    assert "a-name-to-look-for" not in mirror.cursor
    assert account.client.endpoints["graph"] not in mirror.cursor
