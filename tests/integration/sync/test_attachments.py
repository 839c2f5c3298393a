"""What hangs on a mail, while the mail itself stays."""

from contextlib import asynccontextmanager

import pytest

from connectors.sandbox.server import start
from gateway.ingestion import facade
from tests.conformance.brook import Brook
from tests.conformance.stages import ADA, raised
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import open_bank
from tests.integration.sync.histories import StagePlaces


@pytest.fixture(scope="module")
def sandbox():
    running = start("msft")
    yield running
    running.stop()


class AttachmentPlaces(StagePlaces):
    @asynccontextmanager
    async def surface(self, mandate_id, source):
        yield self.stage.surface(mail_tier="attachments")


@pytest.fixture
async def mailbox(db, pool, tmp_path, monkeypatch, sandbox):
    bench = Bench(db, pool, tmp_path, retry_base_seconds=0.01)
    monkeypatch.setattr(facade, "get_settings", lambda: bench.settings)
    async with raised("msft.outlook", lambda _: sandbox) as stage:
        yield await open_bank(bench, AttachmentPlaces(stage), Brook()), stage.control


def attachment_ids(control, message):
    return {
        one["name"]: one["id"]
        for one in control.state(ADA)["objects"]
        if one["kind"] == "attachment" and one["parentId"] == message
    }


def letter(control, *names):
    files = [{"name": name, "text": f"The words of {name}."} for name in names]
    return control.create("message", user=ADA, subject="Plans", text="See below.", attachments=files)["id"]


async def test_an_attachment_that_is_taken_off_a_mail_ends(mailbox):
    bank, control = mailbox
    message = letter(control, "a.txt", "b.txt")
    ids = attachment_ids(control, message)
    await bank.sync()
    assert set(await bank.corpus()) == {message, *ids.values()}
    control.edit(message, removeAttachments=[ids["a.txt"]])
    await bank.sync()
    assert set(await bank.corpus()) == {message, ids["b.txt"]}
    assert (await bank.item(ids["a.txt"])).state == "deleted"
    control.edit(message, removeAttachments=[ids["b.txt"]])
    await bank.sync()
    assert set(await bank.corpus()) == {message}


async def test_attachments_that_could_not_be_listed_stay(mailbox):
    bank, control = mailbox
    message = letter(control, "a.txt")
    ids = attachment_ids(control, message)
    await bank.sync()
    control.edit(message, isRead=True)
    control.fault("forbid_container", path="attachments")
    await bank.sync()
    assert set(await bank.corpus()) == {message, *ids.values()}
