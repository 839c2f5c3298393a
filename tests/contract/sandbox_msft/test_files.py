"""vendors.md E2–E4, E6, E8 for files: delta in all spellings, token death, downloads, permissions."""

import re
from typing import Any

import httpx
import pytest

from connectors.sandbox.msft.content import quick_xor_hash
from connectors.sandbox.server import RunningSandbox
from tests.contract.sandbox_msft.conftest import Graph
from tests.fixtures.sandboxes import Control


def _names(found: list[dict[str, Any]]) -> list[str]:
    return [each.get("name", "(deleted)") for each in found]


def _gone(found: list[dict[str, Any]]) -> set[str]:
    return {each["id"] for each in found if "deleted" in each}


@pytest.fixture
def delta(library: dict[str, Any]) -> str:
    return f"/drives/{library['driveId']}/root/delta"


# -- the feed


def test_the_root_is_in_the_feed_and_every_page_has_one_link(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    for number in range(5):
        msft_control.create("file", driveId=library["driveId"], name=f"{number}.txt", text="x")
    found, link, pages = graph.round(f"{delta}?$top=2")
    assert _names(found) == ["root", "0.txt", "1.txt", "2.txt", "3.txt", "4.txt"]
    assert pages == 3
    assert "root" in found[0]
    assert "%24top" not in link or link.startswith(graph.base)


@pytest.mark.parametrize(
    "path",
    [
        "/drives/{drive}/root/delta",
        "/drives/{drive}/root/microsoft.graph.delta()",
        "/drives/{drive}/root/microsoft.graph.delta",
        "/drives('{drive}')/root/delta",
        "/drives/{drive}/items/root/delta",
        "/drives/{drive}/items/root/delta()",
        "/sites/{site}/drive/root/delta",
        "/sites/{site}/drives/{drive}/root/delta",
        "/sites/{site}/drives/{drive}/items/root/delta",
        "/sites('{site}')/drives('{drive}')/root/delta(token='')",
    ],
)
def test_delta_in_every_spelling(
    graph: Graph, msft_control: Control, library: dict[str, Any], path: str
) -> None:
    msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    found, _, _ = graph.round(path.format(drive=library["driveId"], site=library["id"]))
    assert _names(found) == ["root", "a.txt"]


def test_commas_of_a_site_id_may_be_encoded(graph: Graph, library: dict[str, Any]) -> None:
    assert graph.get(f"/sites/{library['id'].replace(',', '%2C')}")["id"] == library["id"]


def test_latest_gives_no_items_and_a_place_to_go_on(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    msft_control.create("file", driveId=library["driveId"], name="old.txt", text="x")
    page = graph.get(f"{delta}(token='latest')")
    assert page["value"] == []
    msft_control.create("file", driveId=library["driveId"], name="new.txt", text="x")
    assert _names(graph.round(page["@odata.deltaLink"])[0]) == ["root", "new.txt"]


def test_a_time_may_stand_for_a_token(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    old = msft_control.create("file", driveId=library["driveId"], name="old.txt", text="x")
    msft_control.advance(60)
    msft_control.create("file", driveId=library["driveId"], name="new.txt", text="x")
    moment = old["modified"].replace("+00:00", "Z")
    assert _names(graph.round(f"{delta}?token={moment.replace(':', '%3A')}")[0]) == ["root", "new.txt"]


def test_a_round_without_changes_is_empty(graph: Graph, delta: str) -> None:
    _, link, _ = graph.round(delta)
    page = graph.get(link)
    assert page["value"] == []
    assert "@odata.deltaLink" in page


def test_a_replayed_token_tells_the_same_again(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    _, link, _ = graph.round(delta)
    msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    first, _, _ = graph.round(link)
    again, _, _ = graph.round(link)
    assert [each["id"] for each in first] == [each["id"] for each in again]


def test_a_change_brings_its_folders_along(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    folder = msft_control.create("folder", driveId=library["driveId"], name="deep")
    file = msft_control.create("file", parentId=folder["id"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.edit(file["id"], text="y")
    assert _names(graph.round(link)[0]) == ["root", "deep", "a.txt"]
    assert _names(graph.round(link, deltaExcludeParent="true")[0]) == ["a.txt"]
    msft_control.fault("child_first")
    assert _names(graph.round(link)[0]) == ["a.txt", "deep", "root"]


def test_a_renamed_folder_does_not_bring_what_is_in_it(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    folder = msft_control.create("folder", driveId=library["driveId"], name="old name")
    msft_control.create("file", parentId=folder["id"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.edit(folder["id"], name="new name")
    assert _names(graph.round(link)[0]) == ["root", "new name"]


def test_a_deleted_file_comes_without_its_name(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    file = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.delete(file["id"])
    found, _, _ = graph.round(link)
    assert found[-1]["deleted"] == {"state": "deleted"}
    assert "name" not in found[-1]
    assert "cTag" not in found[-1]
    assert graph.ask(f"/drives/{library['driveId']}/items/{file['id']}").status_code == 404


def test_a_deleted_folder_tells_of_its_content_only_when_asked_to(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    folder = msft_control.create("folder", driveId=library["driveId"], name="f")
    file = msft_control.create("file", parentId=folder["id"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.delete(folder["id"])
    assert _gone(graph.round(link)[0]) == {folder["id"]}
    msft_control.restore(folder["id"])
    found, link, _ = graph.round(link)
    assert {folder["id"], file["id"]} <= {each["id"] for each in found if "deleted" not in each}
    msft_control.delete(folder["id"], cascade=True)
    assert _gone(graph.round(link)[0]) == {folder["id"], file["id"]}


def test_deleted_and_created_anew_is_another_item(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    old = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.delete(old["id"])
    new = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    found, _, _ = graph.round(link)
    assert _gone(found) == {old["id"]}
    assert new["id"] in {each["id"] for each in found}


def test_a_moved_file_keeps_its_id(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    folder = msft_control.create("folder", driveId=library["driveId"], name="f")
    file = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.edit(file["id"], parentId=folder["id"])
    moved = graph.round(link)[0][-1]
    assert (moved["id"], moved["parentReference"]["id"]) == (file["id"], folder["id"])


def test_a_file_moved_away_during_the_walk_is_not_lost(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    files = [
        msft_control.create("file", driveId=library["driveId"], name=f"{n}.txt", text="x") for n in range(4)
    ]
    page = graph.get(f"{delta}?$top=2")
    msft_control.edit(files[3]["id"], name="renamed.txt")
    msft_control.delete(files[0]["id"])
    rest, link, _ = graph.round(page["@odata.nextLink"])
    later, _, _ = graph.round(link)
    known = {each["id"]: each.get("name") for each in [*page["value"], *rest, *later] if "root" not in each}
    assert known == {
        files[0]["id"]: None,
        files[1]["id"]: "1.txt",
        files[2]["id"]: "2.txt",
        files[3]["id"]: "renamed.txt",
    }


def test_lost_access_looks_like_a_deletion_and_regained_access_brings_all_back(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    folder = msft_control.create("folder", driveId=library["driveId"], name="f")
    file = msft_control.create("file", parentId=folder["id"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.edit(folder["id"], unshare=["ada@demo.example"])
    found, link, _ = graph.round(link)
    assert _gone(found) == {folder["id"]}
    assert graph.ask(f"/drives/{library['driveId']}/items/{file['id']}").status_code == 404
    assert file["id"] in {each["id"] for each in msft_control.state("grace@demo.example")["objects"]}
    msft_control.edit(folder["id"], share=["ada@demo.example"])
    assert {"f", "a.txt"} <= set(_names(graph.round(link)[0]))


def test_empty_and_repeated_pages_and_items_on_order(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    for number in range(3):
        msft_control.create("file", driveId=library["driveId"], name=f"{number}.txt", text="x")
    msft_control.fault("empty_page")
    first = graph.get(delta)
    assert first["value"] == []
    assert _names(graph.round(first["@odata.nextLink"])[0]) == ["root", "0.txt", "1.txt", "2.txt"]
    msft_control.fault("repeat_page")
    assert _names(graph.round(delta)[0]) == ["root", "0.txt", "1.txt", "2.txt"] * 2
    msft_control.fault("repeat_item")
    assert _names(graph.round(delta)[0]) == ["root", "0.txt", "1.txt", "2.txt", "root"]


def test_the_first_query_travels_in_the_token(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    for number in range(3):
        msft_control.create("file", driveId=library["driveId"], name=f"{number}.txt", text="x")
    page = graph.get(f"{delta}?$top=2&$select=name")
    token = re.search(r"token=([^&]+)", page["@odata.nextLink"])
    assert token
    rest = graph.get(f"{delta}?token={token[1]}")
    assert len(rest["value"]) == 2
    assert set(rest["value"][0]) == {"@odata.type", "id", "name"}


def test_a_dead_token_answers_410_with_a_way_to_begin_again(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    _, link, _ = graph.round(delta)
    msft_control.fault("cursor_expiry")
    answer = graph.ask(link)
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "resyncRequired")
    assert answer.json()["error"]["innerError"]["code"] == "resyncChangesApplyDifferences"
    assert _names(graph.round(answer.headers["location"])[0]) == ["root", "a.txt"]


def test_a_token_of_an_earlier_life_is_dead_unless_nothing_had_happened(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    graph = Graph(msft_sandbox)
    _, untouched, _ = graph.round("/me/drive/root/delta")
    msft_control.create("file", user="ada@demo.example", name="a.txt", text="x")
    _, changed, _ = graph.round(untouched)
    msft_control.ask("POST", "/reset", {"seed": "empty"})
    assert graph.ask(untouched).status_code == 200
    assert graph.ask(changed).status_code == 410


# -- items


def test_content_changes_the_ctag_and_everything_changes_the_etag(
    graph: Graph, msft_control: Control, library: dict[str, Any]
) -> None:
    file = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    path = f"/drives/{library['driveId']}/items/{file['id']}"
    before = graph.get(path)
    msft_control.edit(file["id"], name="b.txt")
    renamed = graph.get(path)
    msft_control.edit(file["id"], text="y")
    edited = graph.get(path)
    assert before["cTag"] == renamed["cTag"] != edited["cTag"]
    assert len({before["eTag"], renamed["eTag"], edited["eTag"]}) == 3
    assert before["eTag"].startswith('"{')


def test_download_urls_are_on_items_and_children_but_not_in_delta(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    file = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    drive = f"/drives/{library['driveId']}"
    assert "@microsoft.graph.downloadUrl" in graph.get(f"{drive}/items/{file['id']}")
    assert "@microsoft.graph.downloadUrl" in graph.get(f"{drive}/root/children")["value"][0]
    assert "@microsoft.graph.downloadUrl" not in graph.round(delta)[0][-1]


def test_packages_are_neither_file_nor_folder(graph: Graph, msft_control: Control) -> None:
    msft_control.create("package", user="ada@demo.example", name="Notebook")
    notebook = graph.get("/me/drive/root/children")["value"][0]
    assert notebook["package"] == {"type": "oneNote"}
    assert not {"file", "folder"} & set(notebook)


def test_items_by_path(graph: Graph, msft_control: Control) -> None:
    folder = msft_control.create("folder", user="ada@demo.example", name="My plans")
    msft_control.create("file", parentId=folder["id"], name="a b.txt", text="hello")
    assert graph.get("/me/drive/root:/My%20plans/a%20b.txt")["name"] == "a b.txt"
    assert graph.get("/me/drive/root:/My%20plans:/children")["value"][0]["name"] == "a b.txt"
    assert graph.ask("/me/drive/root:/My%20plans/a%20b.txt:/content").status_code == 302


def test_dates_have_three_precisions_and_fields_may_be_null_or_unknown(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    for number in range(3):
        msft_control.create("file", driveId=library["driveId"], name=f"{number}.txt", text="x")
    found, _, _ = graph.round(delta)
    fractions = {len(each["createdDateTime"].partition(".")[2]) for each in found}
    assert fractions == {0, 4, 8}  # "", "003Z", "0030000Z"
    assert found[-1]["media"] is None
    assert found[-1]["isAuthoritative"] is False


def test_ids_are_case_sensitive(graph: Graph, msft_control: Control, library: dict[str, Any]) -> None:
    file = msft_control.create("file", driveId=library["driveId"], name="a.txt", text="x")
    assert graph.ask(f"/drives/{library['driveId']}/items/{file['id'].lower()}").status_code == 404
    assert graph.ask(f"/drives/{library['driveId'].swapcase()}/root").status_code == 404


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        (b"hello world", "aCgDG9jwBhDc4Q1yawMZAAAAAAA="),
    ],
)
def test_the_hash_is_that_of_onedrive(data: bytes, value: str) -> None:
    """The greeting's is the known example."""
    assert quick_xor_hash(data) == value


# -- permissions and sites


def test_permissions_say_who_and_how(graph: Graph, msft_control: Control) -> None:
    file = msft_control.create("file", user="ada@demo.example", name="a.txt", text="x")
    msft_control.edit(file["id"], share=["grace@demo.example"], link="organization")
    value = graph.get(f"/me/drive/items/{file['id']}/permissions")["value"]
    inherited = [each for each in value if "inheritedFrom" in each]
    assert [each["grantedToV2"]["user"]["email"] for each in inherited] == ["ada@demo.example"]
    assert {each["link"]["scope"] for each in value if "link" in each} == {"organization"}
    assert "grace@demo.example" in {
        each.get("grantedToV2", {}).get("user", {}).get("email") for each in value
    }


def test_what_was_shared_is_found_and_read_by_the_other(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    file = msft_control.create("file", user="ada@demo.example", name="a.txt", text="x")
    msft_control.edit(file["id"], share=["grace@demo.example"])
    grace = Graph(msft_sandbox, "grace@demo.example")
    found = grace.get("/me/drive/sharedWithMe")["value"]
    assert [each["remoteItem"]["id"] for each in found] == [file["id"]]
    assert grace.get(f"/drives/{file['containerId']}/items/{file['id']}")["name"] == "a.txt"
    assert grace.ask(f"/drives/{file['containerId']}/root/delta").status_code == 403
    linus = Graph(msft_sandbox, "linus@demo.example")
    assert linus.ask(f"/drives/{file['containerId']}/items/{file['id']}").status_code == 404


def test_sites_are_searched_in_pages_and_only_the_own_ones(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    for number in range(3):
        msft_control.create("site", name=f"Site {number}", members=["ada@demo.example"])
    msft_control.create("site", name="Hidden", members=["grace@demo.example"])
    graph = Graph(msft_sandbox)
    page = graph.get("/sites?search=*&$top=2")
    rest = graph.get(page["@odata.nextLink"])
    assert [each["displayName"] for each in page["value"] + rest["value"]] == ["Site 0", "Site 1", "Site 2"]
    assert "@odata.nextLink" not in rest
    assert [each["displayName"] for each in graph.get("/sites?search=site%201")["value"]] == ["Site 1"]
    assert graph.get("/sites?search=")["value"]
    assert graph.ask("/sites").status_code == graph.ask("/sites/oneDrive.getAllSites").status_code == 403


def test_a_site_whose_member_one_is_no_more_is_gone(
    graph: Graph, msft_control: Control, library: dict[str, Any], delta: str
) -> None:
    _, link, _ = graph.round(delta)
    msft_control.edit(library["id"], members=["grace@demo.example"])
    assert graph.get("/sites?search=*")["value"] == []
    assert graph.ask(link).status_code == 403
    assert graph.ask(f"/sites/{library['id']}").status_code == 404


def test_system_libraries_are_shown_only_when_asked_for(
    graph: Graph, msft_control: Control, library: dict[str, Any]
) -> None:
    msft_control.create("library", siteId=library["id"], name="Preservation", system=True)
    assert len(graph.get(f"/sites/{library['id']}/drives")["value"]) == 1
    assert len(graph.get(f"/sites/{library['id']}/drives?$select=id,name,system")["value"]) == 2


# -- downloads


@pytest.fixture
def file(msft_control: Control, library: dict[str, Any]) -> dict[str, Any]:
    return msft_control.create("file", driveId=library["driveId"], name="ä b.txt", text="0123456789")


def _content(graph: Graph, file: dict[str, Any]) -> str:
    answer = graph.ask(f"/drives/{file['containerId']}/items/{file['id']}/content")
    assert answer.status_code == 302
    return answer.headers["location"]


def test_content_is_on_another_origin_that_refuses_tokens(
    graph: Graph, msft_sandbox: RunningSandbox, file: dict[str, Any]
) -> None:
    where = _content(graph, file)
    assert httpx.URL(where).port != httpx.URL(msft_sandbox.url).port
    assert graph.ask(where).status_code == 401
    plain = httpx.get(where, trust_env=False, verify=False)
    assert plain.content == b"0123456789"
    assert plain.headers["etag"] == file["eTag"]
    assert plain.headers["content-disposition"] == "attachment;filename*=utf-8''%C3%A4%20b.txt"
    on_the_other_side = where.replace(msft_sandbox.second_url, msft_sandbox.url)
    assert httpx.get(on_the_other_side, trust_env=False, verify=False).status_code == 404


@pytest.mark.parametrize(
    ("asked", "status", "data"),
    [
        ("bytes=2-4", 206, b"234"),
        ("bytes=8-", 206, b"89"),
        ("bytes=-3", 206, b"789"),
        ("bytes=20-", 416, b""),
    ],
)
def test_ranges(graph: Graph, file: dict[str, Any], asked: str, status: int, data: bytes) -> None:
    answer = httpx.get(_content(graph, file), headers={"Range": asked}, trust_env=False, verify=False)
    assert (answer.status_code, answer.content) == (status, data)
    assert answer.headers["content-range"].endswith("/10")


def test_a_known_tag_costs_no_download(graph: Graph, file: dict[str, Any]) -> None:
    path = f"/drives/{file['containerId']}/items/{file['id']}/content"
    for tag in (file["version"], file["eTag"]):
        assert graph.ask(path, **{"If-None-Match": tag}).status_code == 304


def test_a_download_url_expires(graph: Graph, msft_control: Control, file: dict[str, Any]) -> None:
    where = _content(graph, file)
    msft_control.advance(3601)
    assert httpx.get(where, trust_env=False, verify=False).status_code == 401
    msft_control.advance(-3601)
    msft_control.fault("expired_download")
    assert httpx.get(where, trust_env=False, verify=False).status_code == 401
    assert httpx.get(where, trust_env=False, verify=False).status_code == 200


def test_a_file_may_change_or_go_between_listing_and_download(
    graph: Graph, msft_control: Control, file: dict[str, Any]
) -> None:
    msft_control.fault("edit_before_download")
    changed = httpx.get(_content(graph, file), trust_env=False, verify=False)
    assert changed.headers["etag"] != file["eTag"]
    assert changed.text == "0123456789 (edited meanwhile)"
    msft_control.fault("wrong_etag")
    lying = httpx.get(_content(graph, file), trust_env=False, verify=False)
    assert lying.headers["etag"] != changed.headers["etag"]
    where = _content(graph, file)
    msft_control.delete(file["id"])
    assert httpx.get(where, trust_env=False, verify=False).status_code == 404
