"""The operator's scanner has a say before a file is opened; without a verdict nothing passes."""

import stat

import pytest

from tests.fixtures.corpus import Tenant, ask, rows_of
from tests.fixtures.worker import Bench

SCANNER = """#!/bin/sh
text=$(cat)
env > {folder}/environment
case "$text" in *EICAR*) exit 1;; *trouble*) exit 2;; *sleep*) sleep 600;; *) exit 0;; esac
"""


@pytest.fixture
def scanned(db, pool, tmp_path, bench, monkeypatch) -> Bench:
    program = tmp_path / "scanner"
    program.write_text(SCANNER.format(folder=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CATCHMENT_SECRET_KEY", "never-for-a-scanner")
    return Bench(db, pool, tmp_path, scan_command=str(program), scan_seconds=2, max_attempts=1)


async def outcome(db, tenant, bench, text: str) -> tuple[str, str | None]:
    await bench.hand_in(tenant, ask(tenant, text, text))
    await bench.drain(tenant)
    [row] = await rows_of(db, tenant, "SELECT status, reason FROM document WHERE source_id = :id", id=text)
    return row.status, row.reason


async def test_an_infected_file_is_refused_and_a_clean_one_is_not(db, tenant, scanned, tmp_path):
    assert await outcome(db, tenant, scanned, "a clean text") == ("indexed", None)
    assert await outcome(db, tenant, scanned, "an EICAR text") == ("failed", "infected")
    assert await rows_of(db, tenant, "SELECT 1 FROM chunk WHERE text LIKE '%EICAR%'") == []
    assert "never-for-a-scanner" not in (tmp_path / "environment").read_text()


async def test_the_original_of_an_infected_file_is_not_handed_out(db, client, mandate, scanned, app):
    app.state.blobs = scanned.blobs
    answer = await client.post(
        "/v1/files", files={"file": ("a.txt", b"an EICAR text")}, headers=mandate.auth()
    )
    document = answer.json()["documentId"]
    await scanned.drain(type("Owner", (), {"mandate_id": mandate.id})())
    assert (await client.get(f"/v1/documents/{document}", headers=mandate.auth())).json()[
        "reason"
    ] == "infected"
    original = await client.get(f"/v1/documents/{document}/original", headers=mandate.auth())
    assert original.status_code == 404


async def test_what_a_legal_hold_keeps_of_an_infected_file_is_not_handed_out_either(
    db, client, mandate, scanned, app
):
    app.state.blobs = scanned.blobs
    owner = Tenant(mandate.id, mandate.users["owner"], mandate.keys["owner"])
    await rows_of(db, owner, """UPDATE mandate SET policy = '{"legalHold": true}' RETURNING 1""")
    for text in ("clean", "an EICAR text", "clean again"):
        [handle] = await scanned.hand_in(owner, ask(owner, "a", text))
        await scanned.drain(owner)
    path = f"/v1/documents/{handle.document_id}/original"
    found = [
        (await client.get(path, params={"revision": number}, headers=mandate.auth())).status_code
        for number in (1, 2, 3)
    ]
    assert found == [200, 404, 200]


@pytest.mark.parametrize("text", ["makes trouble", "lets it sleep"])
async def test_without_a_verdict_the_document_is_tried_again(db, tenant, scanned, text):
    assert await outcome(db, tenant, scanned, text) == ("failed", "attempts")  # its one try
    [job] = await rows_of(db, tenant, "SELECT error FROM job")
    assert job.error == "ScanUnavailable"
    assert await rows_of(db, tenant, "SELECT 1 FROM chunk") == []


async def test_a_scanner_that_is_not_there_lets_nothing_pass(db, pool, tenant, bench, tmp_path):
    bench = Bench(db, pool, tmp_path, scan_command="/nowhere/scanner -", max_attempts=1)
    assert await outcome(db, tenant, bench, "a clean text") == ("failed", "attempts")
