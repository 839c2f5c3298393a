"""`catchment mandates open`: the way into a house on servers of its own, where nobody has a key yet."""

import json
import subprocess

import httpx
import pytest

from gateway.db import COMMONS
from tests.fixtures import preloaded
from tests.fixtures.stores import DatabaseUrls


def _open(urls: DatabaseUrls, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = {
        "CATCHMENT_DATABASE_URL": urls.runtime_url,
        "CATCHMENT_PUBLIC_URL": "https://catchment.example",
    }
    return preloaded.run("mandates", "open", *arguments, **where)


async def test_its_key_is_an_operators_and_its_link_signs_in(
    client: httpx.AsyncClient, database_urls: DatabaseUrls
) -> None:
    done = _open(database_urls, "acme-first", "--owner", "Ann@acme.example", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["loginUrl"].startswith("https://catchment.example/login?token=")
    headers = {"Authorization": f"Bearer {made['ownerKey']}"}
    me = (await client.get("/v1/whoami", headers=headers)).json()
    assert (me["mandateId"], me["userId"], me["role"]) == (made["mandateId"], made["ownerId"], "owner")
    mandates = (await client.get("/v1/mandates", headers=headers, params={"limit": 200})).json()["items"]
    assert {str(COMMONS), made["mandateId"]} <= {item["mandateId"] for item in mandates}
    signed_in = await client.get(made["loginUrl"].replace("https://catchment.example", ""))
    assert signed_in.status_code == 303
    again = _open(database_urls, "acme-first", "--owner", "ann@acme.example")
    assert (again.returncode, again.stderr) == (1, "There is already a mandate 'acme-first'.\n")


@pytest.mark.parametrize(
    ("slug", "owner", "named"), [("Not A Slug", "a@b.example", "slug"), ("fine", "nobody", "ownerEmail")]
)
def test_what_is_not_valid_is_named(database_urls: DatabaseUrls, slug: str, owner: str, named: str) -> None:
    done = _open(database_urls, slug, "--owner", owner)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{named}: ")
    assert done.stderr.count("\n") == 1
