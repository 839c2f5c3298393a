"""The sandbox is faithful: Google's own client talks to it, and every answer fits Google's own description, strictly."""

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaIoBaseDownload

from connectors.google.auth import SCOPES
from connectors.sandbox.server import RunningSandbox, start
from tests.contract.google.account import Account, consent
from tests.contract.google.strict import document, methods, problems

VERSIONS = {"drive": "v3", "gmail": "v1", "calendar": "v3"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    running = start("google", seed="demo")
    yield running
    running.stop()


@pytest.fixture
async def ada(sandbox: RunningSandbox):
    account = Account(sandbox, await consent(sandbox, SCOPES))
    account.reset("demo")
    yield account
    await account.aclose()


class Library:
    """Google's client as anybody would set it up, with the endpoint pointed here."""

    def __init__(self, account: Account) -> None:
        tokens = account.tokens.tokens
        credentials = Credentials(
            tokens.access_token,
            refresh_token=tokens.refresh_token,
            token_uri=account.client.endpoints["token"],
            client_id=account.client.client_id,
            client_secret=account.client.client_secret,
        )
        self._services = {
            name: build(
                name,
                version,
                credentials=credentials,
                client_options={"api_endpoint": account.client.endpoints[name]},
            )
            for name, version in VERSIONS.items()
        }
        self.asked: set[str] = set()

    def ask(self, api: str, make: Callable[[Any], Any]) -> Any:
        request = make(self._services[api])
        answer = request.execute()
        self.asked.add(request.methodId)
        assert problems(f"{api}.{VERSIONS[api]}", request.methodId, answer) == []
        return answer

    def download(self, make: Callable[[Any], Any]) -> bytes:
        kept = io.BytesIO()
        loader = MediaIoBaseDownload(kept, make(self._services["drive"]))
        done = False
        while not done:
            _, done = loader.next_chunk()
        return kept.getvalue()


def test_the_check_itself_is_strict() -> None:
    assert problems("drive.v3", "drive.files.get", {"id": "1", "size": "12"}) == []
    assert problems("drive.v3", "drive.files.get", {"id": "1", "size": 12})
    assert problems("drive.v3", "drive.files.get", {"id": "1", "invented": True})
    assert problems("gmail.v1", "gmail.users.history.list", {"history": [{"id": "7", "what": []}]})
    assert "calendar.events.list" in methods(document("calendar.v3"))


def _everything(library: Library) -> None:
    files = library.ask("drive", lambda api: api.files().list(fields="*", pageSize=3))
    page = library.ask(
        "drive", lambda api: api.files().list(fields="*", pageSize=3, pageToken=files["nextPageToken"])
    )
    assert page["files"]
    library.ask("drive", lambda api: api.about().get(fields="*"))
    drives = library.ask("drive", lambda api: api.drives().list())
    library.ask("drive", lambda api: api.drives().get(driveId=drives["drives"][0]["id"]))
    for file in [*files["files"], *page["files"]]:
        library.ask("drive", lambda api, file=file: api.files().get(fileId=file["id"], fields="*"))
        library.ask("drive", lambda api, file=file: api.permissions().list(fileId=file["id"], fields="*"))
    start = library.ask("drive", lambda api: api.changes().getStartPageToken())
    library.ask("drive", lambda api: api.changes().list(pageToken="2000", fields="*"))
    library.ask("drive", lambda api: api.changes().list(pageToken=start["startPageToken"]))
    for message in library.ask("gmail", lambda api: api.users().messages().list(userId="me"))["messages"]:
        for form in ("full", "metadata", "minimal", "raw"):
            found = library.ask(
                "gmail",
                lambda api, message=message, form=form: (
                    api.users().messages().get(userId="me", id=message["id"], format=form)
                ),
            )
            _attachments(library, found)
    library.ask("gmail", lambda api: api.users().getProfile(userId="me"))
    library.ask("gmail", lambda api: api.users().labels().list(userId="me"))
    library.ask("gmail", lambda api: api.users().history().list(userId="me", startHistoryId="9000"))
    calendars = library.ask("calendar", lambda api: api.calendarList().list())
    for calendar in calendars["items"]:
        _calendar(library, calendar["id"])


def _attachments(library: Library, message: dict[str, Any]) -> None:
    for part in message["payload"].get("parts", ()) if "payload" in message else ():
        if attachment := part["body"].get("attachmentId"):
            library.ask(
                "gmail",
                lambda api, attachment=attachment: (
                    api.users()
                    .messages()
                    .attachments()
                    .get(userId="me", messageId=message["id"], id=attachment)
                ),
            )


def _calendar(library: Library, calendar_id: str) -> None:
    events = library.ask("calendar", lambda api: api.events().list(calendarId=calendar_id))
    assert "nextSyncToken" in events
    library.ask("calendar", lambda api: api.events().list(calendarId=calendar_id, singleEvents=True))
    for event in events["items"]:
        library.ask(
            "calendar", lambda api, event=event: api.events().get(calendarId=calendar_id, eventId=event["id"])
        )
        if "recurrence" in event:
            library.ask(
                "calendar",
                lambda api, event=event: api.events().instances(calendarId=calendar_id, eventId=event["id"]),
            )


async def test_every_answer_fits_googles_description(ada: Account) -> None:
    library = Library(ada)
    _everything(library)
    assert len(library.asked) >= 17, sorted(library.asked)


async def test_answers_after_changes_fit_too(ada: Account) -> None:
    library = Library(ada)
    start = library.ask("drive", lambda api: api.changes().getStartPageToken())["startPageToken"]
    events = library.ask("calendar", lambda api: api.events().list(calendarId="primary"))
    history = library.ask("gmail", lambda api: api.users().getProfile(userId="me"))["historyId"]
    state = ada.state()
    files = [file for file in state["drive"] if file["kind"] == "file" and file["owner"].startswith("ada")]
    ada.edit(files[0]["id"], name="renamed")
    ada.delete(files[1]["id"])
    ada.delete(files[2]["id"], for_good=True)
    ada.delete(state["gmail"][0]["id"])
    ada.delete(state["gmail"][1]["id"], for_good=True)
    for event in state["google_calendar"]:
        ada.delete(event["id"])
    changes = library.ask("drive", lambda api: api.changes().list(pageToken=start, fields="*"))["changes"]
    assert [change["removed"] for change in changes] == [False, False, True]
    assert "file" not in changes[2]
    records = library.ask(
        "gmail", lambda api: api.users().history().list(userId="me", startHistoryId=history)
    )
    assert {key for record in records["history"] for key in record} >= {"labelsAdded", "messagesDeleted"}
    gone = library.ask(
        "calendar", lambda api: api.events().list(calendarId="primary", syncToken=events["nextSyncToken"])
    )
    assert {event["status"] for event in gone["items"]} == {"cancelled"}


async def test_channels_fit_and_end(ada: Account) -> None:
    library = Library(ada)
    until = str(int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1000))
    body = {
        "id": "c-1",
        "type": "web_hook",
        "address": "https://catchment.example/hook",
        "token": "t",
        "expiration": until,
    }
    files = library.ask("drive", lambda api: api.changes().watch(pageToken="2000", body=body))
    assert files["token"] == "t"
    assert files["expiration"] == until
    events = library.ask(
        "calendar", lambda api: api.events().watch(calendarId="primary", body={**body, "id": "c-2"})
    )
    library.ask("drive", lambda api: api.channels().stop(body=files))
    library.ask("calendar", lambda api: api.channels().stop(body=events))
    mail = library.ask(
        "gmail", lambda api: api.users().watch(userId="me", body={"topicName": "projects/p/topics/t"})
    )
    assert int(mail["expiration"]) > 0
    library.ask("gmail", lambda api: api.users().stop(userId="me"))


async def test_downloads_and_exports_as_the_library_does_them(ada: Account) -> None:
    library = Library(ada)
    note = ada.create("file", name="note.txt", text="abc" * 100)
    empty = ada.create("file", name="empty.txt", text="")
    text = ada.create("document", name="Text", text="# Title\nWords")
    assert library.download(lambda api: api.files().get_media(fileId=note)) == b"abc" * 100
    assert library.download(lambda api: api.files().get_media(fileId=empty)) == b""
    assert (
        library.download(lambda api: api.files().export_media(fileId=text, mimeType="text/plain"))
        == b"# Title\nWords"
    )


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ({"kind": "throttle"}, 429, "rateLimitExceeded"),
        ({"kind": "throttle", "status": 403}, 403, "userRateLimitExceeded"),
        ({"kind": "server_error"}, 503, "backendError"),
    ],
)
async def test_errors_carry_the_reason_the_library_reads(
    ada: Account, fault: dict[str, Any], status: int, reason: str
) -> None:
    library = Library(ada)
    ada.fault(fault.pop("kind"), path="/drive/v3/about", **fault)
    with pytest.raises(HttpError) as caught:
        library.ask("drive", lambda api: api.about().get(fields="*"))
    assert caught.value.status_code == status
    assert caught.value.error_details[0]["reason"] == reason


async def test_the_library_renews_a_token_by_itself(ada: Account) -> None:
    library = Library(ada)
    ada.fault("unauthorized", path="/drive/v3/about")
    assert library.ask("drive", lambda api: api.about().get(fields="*"))["user"]["me"]
    assert ada.requests()["token"] >= 1


async def test_editors_files_cannot_be_downloaded_and_lost_places_are_told(ada: Account) -> None:
    library = Library(ada)
    text = ada.create("document", name="Text", text="Words", weight=11 * 2**20)
    for make, reason in (
        (lambda api: api.files().get_media(fileId=text), "fileNotDownloadable"),
        (
            lambda api: api.files().export_media(
                fileId=text,
                mimeType="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            "exportSizeLimitExceeded",
        ),
    ):
        with pytest.raises(HttpError) as caught:
            library.download(make)
        assert caught.value.error_details[0]["reason"] == reason
    ada.fault("cursor_expiry", path="/history")
    with pytest.raises(HttpError) as caught:
        library.ask("gmail", lambda api: api.users().history().list(userId="me", startHistoryId="9000"))
    assert caught.value.status_code == 404
    token = library.ask("calendar", lambda api: api.events().list(calendarId="primary"))["nextSyncToken"]
    ada.fault("cursor_expiry", path="/events")
    with pytest.raises(HttpError) as caught:
        library.ask("calendar", lambda api: api.events().list(calendarId="primary", syncToken=token))
    assert caught.value.status_code == 410
    assert caught.value.error_details[0]["reason"] == "fullSyncRequired"
