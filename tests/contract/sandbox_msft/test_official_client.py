"""The sandbox is faithful enough for a client nobody here wrote: the official msgraph-sdk, and msal for the sign-in."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msal
import pytest
from kiota_abstractions.authentication import (
    AccessTokenProvider,
    AllowedHostsValidator,
    BaseBearerTokenAuthenticationProvider,
)
from kiota_abstractions.base_request_configuration import RequestConfiguration
from msgraph.generated.models.o_data_errors.o_data_error import ODataError
from msgraph.generated.sites.sites_request_builder import SitesRequestBuilder
from msgraph.generated.users.item.calendar_view.delta.delta_request_builder import (
    DeltaRequestBuilder as CalendarDelta,
)
from msgraph.graph_request_adapter import GraphRequestAdapter
from msgraph.graph_service_client import GraphServiceClient

from connectors.sandbox.msft.seed import HOSTILE_NAMES
from connectors.sandbox.server import RunningSandbox
from tests.fixtures.sandboxes import REDIRECT, Control, click_consent, msft_sign_in

pytestmark = pytest.mark.filterwarnings("ignore:This class is deprecated:DeprecationWarning")


class SignedIn(AccessTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def get_authorization_token(self, uri: str, additional_authentication_context: Any = None) -> str:
        return self._token

    def get_allowed_hosts_validator(self) -> AllowedHostsValidator:
        return AllowedHostsValidator(["127.0.0.1"])


def official(sandbox: RunningSandbox, user: str = "ada@demo.example") -> GraphServiceClient:
    token = msft_sign_in(sandbox, user)["access_token"]
    adapter = GraphRequestAdapter(BaseBearerTokenAuthenticationProvider(SignedIn(token)))
    adapter.base_url = sandbox.endpoints["graph"]
    return GraphServiceClient(request_adapter=adapter)


@pytest.fixture
def client(msft_demo_sandbox: RunningSandbox) -> GraphServiceClient:
    return official(msft_demo_sandbox)


@pytest.fixture
def truth(msft_demo_sandbox: RunningSandbox) -> dict[str, Any]:
    control = Control(msft_demo_sandbox.control_url)
    found = control.state("ada@demo.example")
    control.close()
    return found


def _of(truth: dict[str, Any], surface: str, *kinds: str) -> dict[str, dict[str, Any]]:
    return {
        each["id"]: each for each in truth["objects"] if each["surface"] == surface and each["kind"] in kinds
    }


async def test_it_knows_who_signed_in(client: GraphServiceClient) -> None:
    me = await client.me.get()
    assert me
    assert (me.display_name, me.mail) == ("Ada Brook", "ada@demo.example")


async def test_it_finds_every_file_of_every_site_by_delta(
    client: GraphServiceClient, truth: dict[str, Any]
) -> None:
    query = SitesRequestBuilder.SitesRequestBuilderGetQueryParameters(search="*")
    sites = await client.sites.get(request_configuration=RequestConfiguration(query_parameters=query))
    assert sites
    assert sites.value
    seen: dict[str, str] = {}
    for site in sites.value:
        drives = await client.sites.by_site_id(str(site.id)).drives.get()
        assert drives
        assert drives.value
        for drive in drives.value:
            delta = client.drives.by_drive_id(str(drive.id)).items.by_drive_item_id("root").delta
            page = await delta.get()
            while page:
                seen |= {str(item.id): str(item.name) for item in page.value or [] if item.file}
                if not page.odata_next_link:
                    assert page.odata_delta_link
                    break
                page = await delta.with_url(page.odata_next_link).get()
    wanted = {key: each["name"] for key, each in _of(truth, "sharepoint", "file").items()}
    assert seen == wanted
    assert set(HOSTILE_NAMES) <= set(seen.values())


async def test_a_finished_round_goes_on_with_what_changed(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    site = msft_control.create("site", name="Plant")
    kept = msft_control.create("file", driveId=site["driveId"], name="kept.txt", text="one")
    gone = msft_control.create("file", driveId=site["driveId"], name="gone.txt", text="two")
    delta = official(msft_sandbox).drives.by_drive_id(site["driveId"]).items.by_drive_item_id("root").delta
    first = await delta.get()
    assert first
    assert first.odata_delta_link
    msft_control.edit(kept["id"], text="three")
    msft_control.delete(gone["id"])
    second = await delta.with_url(first.odata_delta_link).get()
    assert second
    assert second.value
    assert {str(item.id): item.deleted is not None for item in second.value if item.root is None} == {
        kept["id"]: False,
        gone["id"]: True,
    }


async def test_it_downloads_the_manual(client: GraphServiceClient, truth: dict[str, Any]) -> None:
    manual = next(
        each for each in _of(truth, "sharepoint", "file").values() if each["name"] == "Operating manual.pdf"
    )
    item = client.drives.by_drive_id(manual["containerId"]).items.by_drive_item_id(manual["id"])
    data = await item.content.get()
    shown = await item.get()
    assert data
    assert shown
    assert data.startswith(b"%PDF-1.4")
    assert len(data) == manual["size"] == shown.size
    assert shown.parent_reference
    assert shown.parent_reference.name == "Manuals"
    assert shown.additional_data["@microsoft.graph.downloadUrl"]


async def test_it_reads_permissions(client: GraphServiceClient, truth: dict[str, Any]) -> None:
    notes = next(
        each for each in _of(truth, "sharepoint", "file").values() if each["name"] == "Turbine notes.md"
    )
    answer = (
        await client.drives.by_drive_id(notes["containerId"])
        .items.by_drive_item_id(notes["id"])
        .permissions.get()
    )
    assert answer
    assert answer.value
    people = {
        each.granted_to_v2.user.display_name
        for each in answer.value
        if each.granted_to_v2 and each.granted_to_v2.user
    }
    assert people == {"Ada Brook", "Grace Weir"}


async def test_it_lists_the_own_drive(client: GraphServiceClient, truth: dict[str, Any]) -> None:
    drive = await client.me.drive.get()
    assert drive
    assert drive.drive_type == "business"
    children = await client.drives.by_drive_id(str(drive.id)).items.by_drive_item_id("root").children.get()
    assert children
    assert children.value
    own = [each for each in _of(truth, "onedrive", "file", "package").values() if not each["sharedWithMe"]]
    assert {item.name for item in children.value} == {each["name"] for each in own}


async def test_it_reads_every_message_of_every_folder(
    client: GraphServiceClient, truth: dict[str, Any]
) -> None:
    folders: list[str] = []
    waiting = [await client.me.mail_folders.get()]
    for page in waiting:
        assert page
        for folder in page.value or []:
            folders.append(str(folder.id))
            if folder.child_folder_count:
                waiting.append(
                    await client.me.mail_folders.by_mail_folder_id(str(folder.id)).child_folders.get()
                )
    subjects: list[str] = []
    for folder_id in folders:
        delta = client.me.mail_folders.by_mail_folder_id(folder_id).messages.delta
        page = await delta.get()
        while page:
            subjects += [str(message.subject or "") for message in page.value or []]
            page = await delta.with_url(page.odata_next_link).get() if page.odata_next_link else None
    wanted = [each["name"] for each in _of(truth, "outlook", "message").values()]
    assert sorted(subjects) == sorted(wanted)


async def test_it_reads_attachments_of_three_kinds(client: GraphServiceClient, truth: dict[str, Any]) -> None:
    letters = _of(truth, "outlook", "message").values()
    offer = next(each for each in letters if each["name"] == "Offer for the bearing")
    forwarded = next(each for each in letters if each["name"].startswith("Fwd"))
    files = await client.me.messages.by_message_id(offer["mutableId"]).attachments.get()
    others = await client.me.messages.by_message_id(forwarded["mutableId"]).attachments.get()
    assert files
    assert files.value
    assert others
    assert others.value
    assert [(each.name, each.is_inline) for each in files.value] == [
        ("Offer 2026-118.pdf", False),
        ("logo.gif", True),
    ]
    assert files.value[0].content_bytes.startswith(b"%PDF")  # pyright: ignore[reportAttributeAccessIssue]
    assert [type(each).__name__ for each in others.value] == ["ItemAttachment", "ReferenceAttachment"]
    raw = await client.me.messages.by_message_id(offer["mutableId"]).content.get()
    assert raw
    assert b"Offer for the bearing" in raw


async def test_it_reads_the_calendar_with_its_series(
    client: GraphServiceClient, truth: dict[str, Any]
) -> None:
    query = CalendarDelta.DeltaRequestBuilderGetQueryParameters(
        start_date_time="2020-01-01T00:00:00Z", end_date_time="2040-01-01T00:00:00Z"
    )
    delta = client.me.calendar_view.delta
    page = await delta.get(request_configuration=RequestConfiguration(query_parameters=query))
    found: list[tuple[str, str]] = []
    while page:
        found += [(str(event.id), str(event.type.value if event.type else "")) for event in page.value or []]
        page = await delta.with_url(page.odata_next_link).get() if page.odata_next_link else None
    wanted: list[tuple[str, str]] = []
    for event in _of(truth, "outlook_calendar", "event").values():
        wanted.append((event["id"], "seriesMaster" if event["series"] else "singleInstance"))
        wanted += [
            (each["id"], "exception" if each["exception"] else "occurrence") for each in event["occurrences"]
        ]
    assert sorted(found) == sorted(wanted)
    assert sum(kind == "exception" for _, kind in found) == 1
    assert sum(kind == "occurrence" for _, kind in found) == 10  # twelve dates, one changed, one cancelled


async def test_it_reads_teams_channels_threads_and_chats(
    client: GraphServiceClient, truth: dict[str, Any]
) -> None:
    teams = await client.me.joined_teams.get()
    assert teams
    assert {team.display_name for team in teams.value or []} == {"Operations", "Turbine project"}
    said: list[str] = []
    for team in teams.value or []:
        channels = await client.teams.by_team_id(str(team.id)).channels.get()
        assert channels
        for channel in channels.value or []:
            messages = client.teams.by_team_id(str(team.id)).channels.by_channel_id(str(channel.id)).messages
            listed = await messages.get()
            assert listed
            for root in listed.value or []:
                replies = await messages.by_chat_message_id(str(root.id)).replies.get()
                assert replies
                said += [str(each.id) for each in (root, *(replies.value or [])) if not each.event_detail]
    chats = await client.me.chats.get()
    assert chats
    for chat in chats.value or []:
        talk = await client.chats.by_chat_id(str(chat.id)).messages.get()
        assert talk
        said += [str(each.id) for each in talk.value or []]
    assert sorted(said) == sorted(_of(truth, "teams", "channelMessage", "chatMessage"))


async def test_it_understands_the_errors(client: GraphServiceClient) -> None:
    with pytest.raises(ODataError) as caught:
        await client.me.messages.by_message_id("AAMkNowhere").get()
    assert caught.value.response_status_code == 404
    assert caught.value.error
    assert caught.value.error.code == "ErrorItemNotFound"
    assert caught.value.error.inner_error
    assert caught.value.error.inner_error.request_id


async def test_it_waits_out_a_throttle_by_itself(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    msft_control.fault("throttle", retryAfter=1, times=2, path="/v1.0/me")
    me = await official(msft_sandbox).me.get()
    assert me
    assert me.display_name == "Ada Brook"
    assert msft_control.requests(path="/v1.0/me")["byStatus"] == {"429": 2, "200": 1}


class WithoutTls:
    """What msal is given as its HTTP client: msal insists on https, the sandbox has none."""

    def __init__(self) -> None:
        self._client = httpx.Client(trust_env=False, verify=False)

    def get(self, url: str, **options: Any) -> httpx.Response:
        return self._client.get(url.replace("https://", "http://", 1), **options)

    def post(self, url: str, **options: Any) -> httpx.Response:
        return self._client.post(url.replace("https://", "http://", 1), **options)

    def close(self) -> None:
        self._client.close()


def test_msal_signs_in_and_renews(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    authority = msft_sandbox.url.replace("http://", "https://") + "/common"
    app = msal.ConfidentialClientApplication(
        msft_sandbox.client_id,
        client_credential=msft_sandbox.client_secret,
        authority=authority,
        instance_discovery=False,
        http_client=WithoutTls(),
    )
    flow = app.initiate_auth_code_flow(
        ["Files.Read.All", "Mail.Read"], redirect_uri=REDIRECT, response_mode="query"
    )
    assert flow["auth_uri"].startswith(msft_sandbox.url)
    with httpx.Client(trust_env=False, verify=False) as browser:
        back = click_consent(browser, flow["auth_uri"], user="grace@demo.example")
    answer = {name: values[0] for name, values in parse_qs(urlsplit(str(back)).query).items()}
    signed_in = app.acquire_token_by_auth_code_flow(flow, answer)
    assert signed_in["id_token_claims"]["preferred_username"] == "grace@demo.example", signed_in
    assert "refresh_token" in signed_in

    account = app.get_accounts()[0]
    renewed = app.acquire_token_silent(["Mail.Read"], account, force_refresh=True)
    assert renewed
    assert renewed["access_token"] != signed_in["access_token"]

    msft_control.revoke(user="grace@demo.example")
    refused = app.acquire_token_silent_with_error(["Mail.Read"], account, force_refresh=True)
    assert refused
    assert refused["error"] == "invalid_grant"
