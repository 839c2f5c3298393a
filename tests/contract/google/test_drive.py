"""Drive as the engine sees it: the whole tree once, then only what changed, and nothing indexed twice."""

import asyncio
import zipfile
from io import BytesIO

import pytest

from connectors.google import drive
from connectors.google.drive_files import MY_DRIVE
from connectors.kit.contract import CursorLost, ItemFailed, ItemGone, Throttled, VendorUnavailable
from tests.contract.google.account import Account, text_of, walk

MIB = 1024 * 1024


async def test_a_listing_names_everything_newest_first_and_knows_where_it_lies(ada: Account) -> None:
    folder = ada.create("folder", name="Plans")
    inner = ada.create("folder", name="Old", parentId=folder)
    for number in range(3):
        ada.create(
            "file",
            name=f"{number}.txt",
            text=f"text {number}",
            parentId=inner,
            modifiedTime=f"2026-01-0{number + 1}T00:00:00+00:00",
        )
    surface = ada.surface("drive")
    found = await walk(surface)
    assert [name for name in found.order if name.endswith(".txt")] == ["2.txt", "1.txt", "0.txt"]
    item = found.by_name("1.txt")
    assert (item.path, item.parent_id, item.container_id) == ("Plans/Old", inner, MY_DRIVE)
    assert found.by_name("Old").is_folder
    assert found.complete == {MY_DRIVE}
    assert await text_of(surface, item) == "text 1"


@pytest.mark.parametrize("status", [400, 410])
async def test_a_refused_token_of_the_changes_is_a_lost_cursor(ada: Account, status: int) -> None:
    ada.create("file", name="a.txt", text="words")
    before = await walk(ada.surface("drive"))
    ada.fault("refuse", status=status, reason="invalid", path="/changes")
    with pytest.raises(CursorLost):
        await walk(ada.surface("drive"), before.cursor)


async def test_what_changes_during_the_listing_is_in_the_next_delta(
    ada: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "PAGE", 20)
    for number in range(45):
        ada.create("file", name=f"{number}.txt", text="old")
    surface = ada.surface("drive")
    pages = surface.pages(None, "bootstrap")
    first = await anext(pages)
    while not first.upserts:
        first = await anext(pages)
    ada.edit(first.upserts[0].external_id, text="new")
    late = ada.create("file", name="late.txt", text="late")
    cursor = ""
    async for page in pages:
        cursor = page.next_cursor
    delta = await walk(ada.surface("drive"), cursor)
    assert {first.upserts[0].external_id, late} <= set(delta.items)


async def test_a_listing_goes_on_where_it_was_left(ada: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "PAGE", 20)
    for number in range(45):
        ada.create("file", name=f"{number}.txt", text="x")
    seen: list[str] = []
    cursor: str | None = None
    while True:  # a new surface for every page, as after a crash
        page = await anext(ada.surface("drive").pages(cursor, "bootstrap"))
        seen += [item.external_id for item in page.upserts]
        cursor = page.next_cursor
        if page.last:
            break
    assert len(seen) == len(set(seen)) == 45


async def test_a_delta_brings_edits_and_costs_nothing_for_names(ada: Account) -> None:
    edited = ada.create("file", name="a.txt", text="one")
    renamed = ada.create("file", name="b.txt", text="two")
    native = ada.create("document", name="Doc", text="three")
    before = await walk(ada.surface("drive"))
    assert not (await walk(ada.surface("drive"), before.cursor)).items
    ada.edit(edited, text="one and more")
    ada.edit(renamed, name="c.txt")
    ada.edit(native, name="Document")
    after = await walk(ada.surface("drive"), before.cursor)
    assert set(after.items) == {edited, renamed, native}
    assert after.items[edited].version != before.items[edited].version
    for one in (renamed, native):
        assert after.items[one].version == before.items[one].version
        assert after.items[one].name != before.items[one].name


async def test_trash_deletion_and_lost_access_end_an_item(ada: Account) -> None:
    trashed = ada.create("file", name="a.txt", text="one")
    deleted = ada.create("file", name="b.txt", text="two")
    shared = ada.create(
        "file", name="c.txt", text="three", user="ben@demo.example", sharedWith=["ada@demo.example"]
    )
    before = await walk(ada.surface("drive", shared_with_me=True))
    assert set(before.documents) == {trashed, deleted, shared}
    ada.delete(trashed)
    ada.delete(deleted, for_good=True)
    ada.edit(shared, sharedWith=[])
    after = await walk(ada.surface("drive", shared_with_me=True), before.cursor)
    assert after.gone == {trashed: "trashed", deleted: "access_lost", shared: "access_lost"}
    ada.restore(trashed)
    assert set((await walk(ada.surface("drive"), after.cursor)).documents) == {trashed}


async def test_a_folder_that_comes_back_brings_what_lies_in_it(ada: Account) -> None:
    """Google tells of the folder alone."""
    outer = ada.create("folder", name="Outer")
    inner = ada.create("folder", name="Inner", parentId=outer)
    file = ada.create("file", name="deep.txt", text="deep", parentId=inner)
    before = await walk(ada.surface("drive"))
    ada.delete(outer)
    gone = await walk(ada.surface("drive"), before.cursor)
    assert gone.gone == {outer: "trashed"}  # what hangs on it goes with it, by parent
    assert before.items[file].parent_id == inner
    assert before.items[inner].parent_id == outer
    ada.restore(outer)
    back = await walk(ada.surface("drive"), gone.cursor)
    assert set(back.items) == {outer, inner, file}
    ada.edit(outer, name="Renamed")
    renamed = await walk(ada.surface("drive"), back.cursor)
    assert renamed.items[file].path == "Renamed/Inner"
    assert renamed.items[file].version == before.items[file].version


async def test_shared_drives_come_and_go(ada: Account) -> None:
    team = ada.create("drive", name="Team", members=["ada@demo.example"])
    file = ada.create("file", name="team.txt", text="team", parentId=team)
    native = ada.create("document", name="Minutes", text="minutes", parentId=team)
    surface = ada.surface("drive")
    before = await walk(surface)
    assert before.complete == {MY_DRIVE, team}
    assert await text_of(surface, before.items[file]) == "team"
    assert (await surface.fetch(before.items[native])).file_name == "Minutes.docx"
    assert before.items[file].container_id == team
    second = ada.create("drive", name="Second", members=["ada@demo.example"])
    other = ada.create("file", name="second.txt", text="second", parentId=second)
    after = await walk(ada.surface("drive"), before.cursor)
    assert set(after.items) == {other}
    ada.edit(team, members=["ben@demo.example"])
    left = await walk(ada.surface("drive"), after.cursor)
    assert left.left == {team}


async def test_a_move_between_drives_is_not_a_deletion(ada: Account) -> None:
    team = ada.create("drive", name="Team", members=["ada@demo.example"])
    file = ada.create("file", name="a.txt", text="moved")
    before = await walk(ada.surface("drive"))
    ada.edit(file, parentId=team)
    after = await walk(ada.surface("drive"), before.cursor)
    stones = [stone for page in after.pages for stone in page.tombstones]
    assert [(stone.external_id, stone.container_id) for stone in stones] == [(file, MY_DRIVE)]
    assert after.items[file].container_id == team
    assert after.items[file].version == before.items[file].version


async def test_one_drive_that_cannot_be_read_costs_that_drive(ada: Account) -> None:
    team = ada.create("drive", name="Team", members=["ada@demo.example"])
    file = ada.create("file", name="mine.txt", text="mine")
    ada.fault("refuse", path=team, status=403, reason="insufficientFilePermissions", times=None)
    found = await walk(ada.surface("drive"))
    assert set(found.items) == {file}
    assert found.failed == {team}
    assert found.complete == {MY_DRIVE}


async def test_googles_own_kinds_are_exported(ada: Account) -> None:
    ada.create("document", name="Text", text="# Title\nWords")
    ada.create("spreadsheet", name="Table", text="a,b\n1,2")
    ada.create("presentation", name="Slides", text="# One\nbody")
    ada.create("file", name="form", mimeType="application/vnd.google-apps.form")
    surface = ada.surface("drive")
    found = await walk(surface)
    for name, ending, member in (
        ("Text", ".docx", "word/document.xml"),
        ("Table", ".xlsx", "xl/workbook.xml"),
        ("Slides", ".pptx", "ppt/presentation.xml"),
    ):
        fetched = await surface.fetch(found.by_name(name))
        again = await surface.fetch(found.by_name(name))
        assert fetched.file_name == f"{name}{ending}"
        assert member in zipfile.ZipFile(BytesIO(fetched.data)).namelist()
        assert fetched.data == again.data
    assert found.by_name("form").skip == "unsupported"


async def test_over_ten_megabytes_there_is_the_text_and_then_nothing(ada: Account) -> None:
    heavy = ada.create("document", name="Heavy", text="few words", weight=11 * MIB)
    endless = ada.create("document", name="Endless", text="x" * (11 * MIB))
    surface = ada.surface("drive")
    found = await walk(surface)
    fetched = await surface.fetch(found.items[heavy])
    assert (fetched.data, fetched.mime_type) == (b"few words", "text/plain")
    with pytest.raises(ItemFailed, match="larger") as caught:
        await surface.fetch(found.items[endless])
    assert (caught.value.reason, caught.value.permanent) == ("too_large", True)


async def test_a_shortcut_is_indexed_only_where_its_target_is_not(ada: Account) -> None:
    own = ada.create("file", name="own.txt", text="own")
    foreign = ada.create(
        "file", name="foreign.txt", text="foreign", user="ben@demo.example", sharedWith=["ada@demo.example"]
    )
    to_own = ada.create("shortcut", name="to own", targetId=own)
    first = ada.create("shortcut", name="to foreign", targetId=foreign)
    second = ada.create("shortcut", name="to foreign again", targetId=foreign)
    ada.create("shortcut", name="to nothing", targetId="nowhere")
    surface = ada.surface("drive")
    found = await walk(surface)
    assert found.items[to_own].skip == "shortcut"
    assert found.items[foreign].skip == "filtered"
    standing = [one for one in (first, second) if found.items[one].skip is None]
    assert len(standing) == 1
    assert await text_of(surface, found.items[standing[0]]) == "foreign"
    ada.edit(foreign, text="foreign, changed")
    after = await walk(ada.surface("drive"), found.cursor)
    changed = [item for item in after.documents.values() if item.external_id in {first, second}]
    assert len(changed) == 1
    assert changed[0].version != found.items[standing[0]].version
    everything = await walk(ada.surface("drive", shared_with_me=True))
    assert {own, foreign} == set(everything.documents)


async def test_policy_decides_what_is_wanted(ada: Account) -> None:
    folder = ada.create("folder", name="Plans")
    inner = ada.create("folder", name="2026", parentId=folder)
    wanted = ada.create("file", name="a.txt", text="x", parentId=inner)
    ada.create("file", name="b.pdf", text="x", parentId=inner)
    ada.create("file", name="c.txt", text="x")
    ada.create("file", name="~$a.txt", text="x", parentId=inner)
    large = ada.create("file", name="d.txt", text="x" * 2000, parentId=inner)
    found = await walk(ada.surface("drive", folders=["plans"], file_types=["txt"], max_file_bytes=1000))
    assert set(found.documents) == {wanted}
    assert found.items[large].skip == "too_large"
    ada.create("drive", name="Team", members=["ada@demo.example"])
    assert (await walk(ada.surface("drive", libraries=["team"]))).items == {}


@pytest.mark.parametrize("kind", ["empty_page", "repeat_page"])
async def test_strange_pages_lose_nothing(ada: Account, kind: str) -> None:
    files = {ada.create("file", name=f"{number}.txt", text="x") for number in range(5)}
    ada.fault("empty_page", path="/files")
    before = await walk(ada.surface("drive"))
    assert set(before.items) == files
    more = {ada.create("file", name=f"more {number}.txt", text="x") for number in range(5)}
    ada.fault(kind, path="/changes")
    after = await walk(ada.surface("drive"), before.cursor)
    assert more <= set(after.items)
    assert after.gone == {}


async def test_a_page_told_again_before_anything_has_changed_comes_to_an_end(ada: Account) -> None:
    before = await walk(ada.surface("drive"))
    ada.fault("repeat_page", path="/changes")
    async with asyncio.timeout(10):
        assert (await walk(ada.surface("drive"), before.cursor)).items == before.items == {}


async def test_a_download_that_fails_says_how(ada: Account) -> None:
    ids = {name: ada.create("file", name=name, text="x" * 100) for name in ("gone", "bad", "big", "no")}
    surface = ada.surface("drive", max_file_bytes=1000)
    found = await walk(surface)
    ada.delete(ids["gone"], for_good=True)
    with pytest.raises(ItemGone):
        await surface.fetch(found.items[ids["gone"]])
    ada.fault("abusive", path=ids["bad"])
    with pytest.raises(ItemFailed) as caught:
        await surface.fetch(found.items[ids["bad"]])
    assert caught.value.permanent
    ada.edit(ids["big"], text="x" * 2000)  # grew after it was listed
    with pytest.raises(ItemFailed) as caught:
        await surface.fetch(found.items[ids["big"]])
    assert caught.value.reason == "too_large"
    ada.fault("refuse", path=ids["no"], status=403, reason="insufficientFilePermissions")
    with pytest.raises(ItemFailed) as caught:
        await surface.fetch(found.items[ids["no"]])
    assert (caught.value.reason, caught.value.permanent) == ("forbidden", False)


async def test_google_says_wait_in_three_ways(ada: Account) -> None:
    surface = ada.surface("drive")
    ada.fault("throttle", path="/drives", retryAfter=600)
    with pytest.raises(Throttled) as caught:
        await surface.estimate()
    assert caught.value.after == 600
    assert ada.window.closed == [600]
    ada.fault("throttle", path="/drives", status=403)
    assert (await surface.estimate()).items == 0  # a short wait is waited out
    ada.fault("refuse", path="/drives", status=403, reason="dailyLimitExceeded", domain="usageLimits")
    with pytest.raises(Throttled) as caught:
        await surface.estimate()
    assert caught.value.after >= 600


@pytest.mark.parametrize("kind", ["server_error", "cut_json"])
async def test_an_outage_is_no_empty_answer(ada: Account, kind: str) -> None:
    ada.create("file", name="a.txt", text="x")
    ada.fault(kind, path="/drive/v3/files", times=None)
    with pytest.raises(VendorUnavailable):
        await walk(ada.surface("drive"))


async def test_an_unknown_refusal_is_no_empty_answer(ada: Account) -> None:
    ada.create("file", name="a.txt", text="x")
    ada.fault("refuse", path="/drive/v3/drives", status=403, reason="accessNotConfigured", times=None)
    with pytest.raises(VendorUnavailable):
        await walk(ada.surface("drive"))


@pytest.mark.parametrize(
    ("refusal", "word"),
    [
        ({"reason": "domainPolicy"}, "admin_policy"),
        ({"reason": "accessNotConfigured"}, "not_enabled"),
        ({"reason": "forbidden", "detail": "SERVICE_DISABLED"}, "not_enabled"),
        ({"reason": "insufficientPermissions"}, "not_granted"),
        ({"reason": "downloadQuotaExceeded"}, "refused"),
        ({"reason": "somethingNew"}, "refused"),
        ({"reason": "forbidden"}, "forbidden"),
        ({"reason": "teamDriveMembershipRequired"}, "forbidden"),
    ],
)
async def test_a_drive_that_refuses_keeps_its_place_and_says_why(
    ada: Account, refusal: dict[str, str], word: str
) -> None:
    ada.create("file", name="a.txt", text="x")
    before = await walk(ada.surface("drive"))
    ada.fault("refuse", path=r"/changes\?", status=403, **refusal)
    late = ada.create("file", name="late.txt", text="y")
    after = await walk(ada.surface("drive"), before.cursor)
    assert (after.failed, after.left, after.gone) == ({"my-drive"}, set(), {})
    assert [page.refusals for page in after.pages if page.refusals] == [{"my-drive": word}]
    assert set((await walk(ada.surface("drive"), after.cursor)).items) == {late}


async def test_a_folder_or_target_that_refuses_says_nothing_about_the_file(ada: Account) -> None:
    """One word about what is beside a file must not end it as a file nobody wants."""
    folder = ada.create("folder", name="Ours")
    theirs = ada.create(
        "file", user="ben@demo.example", name="theirs.txt", text="x", sharedWith=["ada@demo.example"]
    )
    shortcut = ada.create("shortcut", name="to theirs", targetId=theirs, parentId=folder)
    before = await walk(ada.surface("drive"))
    assert shortcut in before.documents
    ada.edit(shortcut, name="renamed")
    ada.fault("refuse", path=rf"/files/{theirs}", status=403, reason="domainPolicy")
    after = await walk(ada.surface("drive"), before.cursor)
    [failure] = [one for page in after.pages for one in page.failures]
    assert (failure.external_id, failure.reason) == (shortcut, "admin_policy")
    assert shortcut not in after.items


async def test_drives_nobody_may_list_any_more_are_asked_themselves(ada: Account) -> None:
    team = ada.create("drive", name="Team", members=["ada@demo.example"])
    ada.create("file", name="ours.txt", text="x", parentId=team)
    before = await walk(ada.surface("drive"))
    ada.fault("refuse", path=r"/drive/v3/drives", status=403, reason="insufficientPermissions")
    after = await walk(ada.surface("drive"), before.cursor)
    assert (after.left, after.failed) == (set(), set())


async def test_an_estimate_counts_without_downloading(ada: Account) -> None:
    ada.create("file", name="a.txt", text="x" * 500)
    ada.create("drive", name="Team", members=["ada@demo.example"])
    ada.forget_requests()
    found = await ada.surface("drive").estimate()
    assert (found.items, found.size, found.exact) == (1, 500, True)
    assert set(found.containers) == {"My Drive", "Team"}
    assert ada.requests()["drive_download"] == 0
