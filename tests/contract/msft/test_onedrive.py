"""OneDrive against the sandbox: the own drive, and what others shared only when asked."""

from typing import Any

from tests.contract.msft.account import ADA, Account, Mirror
from tests.fixtures.sandboxes import Control

GRACE = "grace@demo.example"


def put(control: Control, name: str, user: str = ADA, **more: Any) -> str:
    return control.create("file", user=user, name=name, text=f"words of {name}", **more)["id"]


async def test_the_own_drive_and_nobody_elses(account: Account, msft_control: Control) -> None:
    folder = msft_control.create("folder", user=ADA, name="Notes")["id"]
    ids = {put(msft_control, "a.txt"), put(msft_control, "b.txt", parentId=folder)}
    put(msft_control, "c.txt", user=GRACE)
    msft_control.create("site", name="Plant")
    mirror = Mirror(account.surface("onedrive"))
    await mirror.sync()
    assert set(mirror.documents()) == ids
    assert {one.source_kind for one in mirror.documents().values()} == {"onedrive_item"}
    fetched = await mirror.surface.fetch(
        next(one for one in mirror.documents().values() if one.name == "b.txt")
    )
    assert fetched.data == b"words of b.txt"


async def test_sharepoint_does_not_index_it_a_second_time(account: Account, msft_control: Control) -> None:
    put(msft_control, "a.txt")
    mirror = Mirror(account.surface("sharepoint"))
    await mirror.sync()
    assert mirror.documents() == {}


async def test_what_others_shared_only_when_asked_and_only_while_shared(
    account: Account, msft_control: Control
) -> None:
    shared = put(msft_control, "shared.txt", user=GRACE)
    msft_control.edit(shared, share=[ADA])
    own = put(msft_control, "own.txt")
    plain = Mirror(account.surface("onedrive"))
    await plain.sync()
    assert set(plain.documents()) == {own}
    mirror = Mirror(account.surface("onedrive", shared_with_me=True))
    await mirror.sync()
    assert set(mirror.documents()) == {own, shared}
    assert (await mirror.surface.fetch(mirror.items[shared])).data == b"words of shared.txt"
    before = mirror.items[shared].version
    msft_control.edit(shared, text="new words")
    await mirror.sync()
    assert mirror.items[shared].version != before
    msft_control.edit(shared, unshare=[ADA])
    await mirror.sync()
    assert set(mirror.documents()) == {own}


async def test_an_account_without_a_onedrive_is_empty_and_says_so(
    account: Account, msft_control: Control
) -> None:
    own = put(msft_control, "a.txt")
    mirror = Mirror(account.surface("onedrive"))
    await mirror.sync()
    drive = mirror.items[own].container_id
    msft_control.edit(drive, members=[])
    fresh = Mirror(account.surface("onedrive"))
    pages = await fresh.sync()
    assert [(page.refusals, list(page.containers_failed)) for page in pages] == [
        ({"own": "no_onedrive"}, []),
        ({}, []),
    ]
    assert (await account.surface("onedrive").estimate()).items == 0
    assert await account.surface("onedrive").watch("https://hooks.example/", []) == []
    pages = await mirror.sync()  # it had one before
    assert pages[0].refusals == {"own": "no_onedrive", drive: "forbidden"}
    assert set(mirror.documents()) == {own}
    msft_control.edit(drive, members=[ADA])
    await mirror.sync()
    assert set(mirror.documents()) == {own}


async def test_a_list_of_what_was_shared_that_refuses_ends_nothing(
    account: Account, msft_control: Control
) -> None:
    shared = put(msft_control, "shared.txt", user=GRACE)
    msft_control.edit(shared, share=[ADA])
    mirror = Mirror(account.surface("onedrive", shared_with_me=True))
    await mirror.sync()
    msft_control.fault("forbid_container", path="sharedWithMe")
    pages = await mirror.sync()
    assert not any(page.containers_gone for page in pages)
    assert set(mirror.documents()) == {shared}


async def test_sharing_is_told_with_the_file(account: Account, msft_control: Control) -> None:
    external_id = put(msft_control, "a.txt")
    mirror = Mirror(account.surface("onedrive"))
    await mirror.sync()
    assert "sharing" not in mirror.items[external_id].metadata
    msft_control.edit(external_id, link="organization")
    await mirror.sync()
    assert mirror.items[external_id].metadata["sharing"]["scope"] == "organization"
