"""Drive items as Graph may also send them: without cTag, without paths, with nulls and fields nobody knows."""

from collections.abc import Callable
from typing import Any

import pytest

from connectors.kit.contract import Item, Page
from connectors.kit.http import way_out
from connectors.kit.policy import SyncPolicy
from connectors.msft.drive_items import Taste, folder_path
from connectors.msft.sharepoint import SharePoint
from tests.fixtures.loopback_vendor import Asked, Reply, loopback_vendor, said
from tests.fixtures.vendor_places import workplace

BARE = {
    "@odata.type": "#microsoft.graph.driveItem",
    "id": "01A",
    "name": "plan.txt",
    "eTag": '"{A},1"',
    "size": 5,
    "file": {"mimeType": None, "hashes": None},
    "parentReference": {"driveId": "b!1", "id": "01F"},
    "createdBy": None,
    "lastModifiedBy": {"application": None, "user": None},
    "lastModifiedDateTime": None,
    "shared": None,
    "neverHeardOf": {"deep": [None]},
}
FOLDER = {
    "id": "01F",
    "name": "2026",
    "folder": {"childCount": 1},
    "parentReference": {"driveId": "b!1", "id": "01R", "path": "/drives/b!1/root:/Reports"},
}


def tenant(
    items: list[dict[str, Any]], parents: Callable[[str], Any] | None = None
) -> Callable[[Asked], Reply]:
    def reply(asked: Asked) -> Reply:
        if asked.path.endswith("/sites"):
            return said({"value": [{"id": "h,s,w", "displayName": None, "name": "plant", "webUrl": None}]})
        if asked.path.endswith("$batch"):
            answers = []
            for one in asked.json()["requests"]:
                body = {"value": [{"id": "b!1", "name": None, "quota": None}]}
                if "/items/" in one["url"] and parents is not None:
                    body = parents(one["url"])
                status = 404 if not body else 403 if "error" in body else 200
                answers.append({"id": one["id"], "status": status, "body": body})
            return said({"responses": answers})
        link = f"http://{asked.headers['host']}/v1.0/drives/b!1/root/delta?token=2"
        return said({"@odata.deltaLink": link, "value": items})

    return reply


async def listed(reply: Callable[[Asked], Reply], **policy: Any) -> list[Page]:
    async with loopback_vendor(reply) as vendor, way_out([vendor.url]) as http:
        place = workplace(http, {"graph": f"{vendor.url}/v1.0"}, **policy)
        return [page async for page in SharePoint(place).pages(None, "bootstrap")]


def items_of(pages: list[Page]) -> dict[str, Item]:
    return {item.external_id: item for page in pages for item in page.upserts}


async def test_the_etag_stands_in_for_a_ctag_that_is_missing() -> None:
    found = items_of(await listed(tenant([BARE, {**BARE, "id": "01B", "cTag": '"c:{B},7"'}])))
    assert found["01A"].version == '"{A},1"'
    assert found["01B"].version == '"c:{B},7"'


async def test_nulls_and_unknown_fields_do_not_hurt() -> None:
    item = items_of(await listed(tenant([BARE])))["01A"]
    assert (item.path, item.mime_type, item.modified_at, item.skip) == ("", None, None, None)
    assert item.parent_id == "01F"


async def test_a_file_whose_folder_refuses_is_neither_wanted_nor_unwanted() -> None:
    refusal = {"error": {"code": "generalException"}}
    pages = await listed(tenant([BARE], parents=lambda _: refusal), folders=["Reports"])
    assert items_of(pages) == {}
    assert [(one.external_id, one.reason) for page in pages for one in page.failures] == [("01A", "refused")]


async def test_a_file_nobody_can_read_costs_itself() -> None:
    odd = [{"size": "many"}, {"parentReference": "elsewhere"}, {"file": "text"}]
    entries = [{**BARE, "id": f"odd{number}", **one} for number, one in enumerate(odd)]
    pages = await listed(tenant([*entries, BARE]), folders=["Reports", ""])
    assert set(items_of(pages)) == {"01A"}
    failures = [failure for page in pages for failure in page.failures]
    assert {(one.external_id, one.name, one.reason) for one in failures} == {
        (f"odd{number}", "plan.txt", "unreadable") for number in range(3)
    }
    assert not any(page.containers_failed for page in pages)


async def test_the_last_word_about_an_id_counts_and_the_root_is_nobodys() -> None:
    root = {"id": "01R", "name": "root", "root": {}, "folder": {"childCount": 1}}
    gone = {"id": "01A", "deleted": {}}
    back = {"id": "01C", "deleted": {"state": "deleted"}}
    pages = await listed(tenant([root, BARE, gone, back, {**BARE, "id": "01C", "name": "back.txt"}]))
    assert set(items_of(pages)) == {"01C"}
    assert [stone.external_id for page in pages for stone in page.tombstones] == ["01A"]


async def test_a_folder_is_remembered_and_a_notebook_is_not_read() -> None:
    notebook = {"id": "01N", "name": "Notes", "package": {"type": "oneNote"}, "folder": {"childCount": 2}}
    found = items_of(await listed(tenant([FOLDER, notebook])))
    assert found["01F"].is_folder
    assert found["01N"].skip == "unsupported"


async def test_parents_are_asked_where_folders_are_chosen_and_paths_are_missing() -> None:
    asked: list[str] = []

    def parents(url: str) -> Any:
        asked.append(url)
        return FOLDER if "01F" in url else None

    orphan = {**BARE, "id": "01O", "parentReference": {"driveId": "b!1", "id": "01X"}}
    found = items_of(await listed(tenant([BARE, orphan], parents), folders=["Reports/2026"]))
    assert found["01A"].path == "Reports/2026"
    assert found["01A"].skip is None
    assert found["01O"].skip == "filtered"
    assert len(asked) == 2
    asked.clear()
    await listed(tenant([BARE], parents))
    assert asked == []  # nobody chose folders: nothing depends on the path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/drives/b!1/root:", ""),
        ("/drive/root:/A%20b/c%25d", "A b/c%d"),
        ("/drives/b!1/root:/A: b", "A: b"),
        (None, None),
        ("elsewhere", None),
    ],
)
def test_paths(path: str | None, found: str | None) -> None:
    assert folder_path({"parentReference": {"path": path}}) == found


@pytest.mark.parametrize(
    ("name", "path", "reason"),
    [
        ("report.docx", "", None),
        ("~$report.docx", "", "filtered"),
        ("a.TMP", "", "filtered"),
        (".DS_Store", "", "filtered"),
        ("view.aspx", "SitePages", "filtered"),
        ("x.txt", "Forms", "filtered"),
        ("x.txt", "a/_Private/b", "filtered"),
        ("x.txt", "Platforms", None),
        ("template.txt", "temp", None),
    ],
)
def test_taste(name: str, path: str, reason: str | None) -> None:
    assert Taste(SyncPolicy()).reason({"name": name, "file": {}, "size": 1}, path) == reason
