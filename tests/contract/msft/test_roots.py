"""A data source may be for a part of an account only."""

from tests.contract.msft.account import ADA, Account, Mirror
from tests.fixtures.sandboxes import Control


async def names(account: Account, part: str, root: str) -> set[str]:
    mirror = Mirror(account.surface(part, root=root))
    await mirror.sync()
    return mirror.names()


async def test_one_site_or_library(account: Account, msft_control: Control) -> None:
    plant, quay = (msft_control.create("site", name=name) for name in ("Plant", "Quay"))
    for site, name in ((plant, "a.txt"), (quay, "b.txt")):
        msft_control.create("file", driveId=site["driveId"], name=name, text="x")
    assert await names(account, "sharepoint", "") == {"a.txt", "b.txt"}
    assert await names(account, "sharepoint", plant["id"]) == {"a.txt"}
    assert await names(account, "sharepoint", quay["driveId"]) == {"b.txt"}
    assert await names(account, "sharepoint", "nowhere") == set()


async def test_one_mail_folder_and_what_lies_below(account: Account, msft_control: Control) -> None:
    above = msft_control.create("mailFolder", user=ADA, name="Projects")["id"]
    below = msft_control.create("mailFolder", user=ADA, name="Weir", parentId=above)["id"]
    for folder, subject in (("inbox", "one"), (above, "two"), (below, "three")):
        msft_control.create("message", user=ADA, subject=subject, text="x", folder=folder)
    assert await names(account, "outlook", "Projects") == {"two", "three"}
    assert await names(account, "outlook", below) == {"three"}


async def test_one_team(account: Account, msft_control: Control) -> None:
    teams = [msft_control.create("team", name=name) for name in ("Locks", "Gates")]
    for team, text in zip(teams, ("first", "second"), strict=True):
        msft_control.create("channelMessage", channelId=team["channelId"], text=text, **{"from": ADA})
    assert await names(account, "teams", teams[1]["id"]) == {"second"}
