"""Consent, renewal and refusal at the identity platform, through MSAL and the guarded way out."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from connectors import registry
from connectors.kit.contract import AuthRevoked, Client, ConsentRefused, Throttled, VendorUnavailable
from connectors.msft.auth import scopes_for
from connectors.sandbox.server import RunningSandbox
from tests.contract.msft.account import ADA, MICROSOFT, REDIRECT, answer_consent, client_of, consent
from tests.fixtures.sandboxes import Control


def begin(sandbox: RunningSandbox, state: str = "s-1"):
    return MICROSOFT.begin(
        client_of(sandbox), redirect_uri=REDIRECT, state=state, surfaces=["sharepoint", "outlook"]
    )


def test_consent_asks_for_the_least(msft_sandbox: RunningSandbox) -> None:
    begun = begin(msft_sandbox)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
    assert begun.url.startswith(f"{msft_sandbox.url}/common/oauth2/v2.0/authorize?")
    assert set(asked["scope"].split()) == {
        "Mail.Read",
        "Sites.Read.All",
        "offline_access",
        "openid",
        "profile",
    }
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == REDIRECT
    assert asked["state"] == "s-1"


def test_beginning_a_consent_asks_nobody(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    begin(msft_sandbox)
    assert msft_control.requests()["total"] == 0


async def test_a_consent_brings_tokens_and_says_whose(msft_sandbox: RunningSandbox) -> None:
    begun = begin(msft_sandbox)
    tokens, account = await MICROSOFT.finish(
        client_of(msft_sandbox), flow=begun.flow, answer=answer_consent(begun.url)
    )
    assert tokens.access_token
    assert tokens.refresh_token
    assert tokens.expires_at
    assert 3000 < (tokens.expires_at - datetime.now(UTC)).total_seconds() < 3700
    assert {"Mail.Read", "Sites.Read.All"} <= {scope.rpartition("/")[2] for scope in tokens.scopes}
    assert (account.name, account.email) == ("Ada Brook", ADA)
    assert account.id


async def test_a_declined_consent(msft_sandbox: RunningSandbox) -> None:
    begun = begin(msft_sandbox)
    answer = answer_consent(begun.url, decision="decline")
    with pytest.raises(ConsentRefused) as refused:
        await MICROSOFT.finish(client_of(msft_sandbox), flow=begun.flow, answer=answer)
    assert refused.value.code == "access_denied"


async def test_a_code_is_redeemed_once_and_only_with_its_own_consent(msft_sandbox: RunningSandbox) -> None:
    client = client_of(msft_sandbox)
    begun, other = begin(msft_sandbox), begin(msft_sandbox, state="s-2")
    answer = answer_consent(begun.url)
    with pytest.raises(ConsentRefused):  # another state
        await MICROSOFT.finish(client, flow=other.flow, answer=answer)
    with pytest.raises(ConsentRefused):  # the same state, another verifier
        await MICROSOFT.finish(client, flow={**other.flow, "state": "s-1"}, answer=answer)
    await MICROSOFT.finish(client, flow=begun.flow, answer=answer)
    with pytest.raises(ConsentRefused):
        await MICROSOFT.finish(client, flow=begun.flow, answer=answer)


async def test_a_code_for_another_nonce_is_refused(msft_sandbox: RunningSandbox) -> None:
    begun = begin(msft_sandbox)
    with pytest.raises(ConsentRefused):
        await MICROSOFT.finish(
            client_of(msft_sandbox),
            flow={**begun.flow, "nonce": "another"},
            answer=answer_consent(begun.url),
        )


async def test_what_was_granted_is_read_from_the_answer(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    assert MICROSOFT.granted_surfaces((await consent(msft_sandbox)).scopes) == list(MICROSOFT.surfaces)
    told = ("https://graph.microsoft.us/mail.read", "Chat.Read", "openid")
    assert MICROSOFT.granted_surfaces(told) == ["outlook"]
    assert MICROSOFT.granted_surfaces(()) == MICROSOFT.surfaces


async def test_a_refresh_brings_a_new_refresh_token(msft_sandbox: RunningSandbox) -> None:
    client = client_of(msft_sandbox)
    first = await consent(msft_sandbox)
    second = await MICROSOFT.refresh(client, first)
    third = await MICROSOFT.refresh(client, second)
    assert len({first.refresh_token, second.refresh_token, third.refresh_token}) == 3
    assert set(third.scopes) == set(first.scopes)


async def test_a_dead_grant_is_told_from_everything_else(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    client, tokens = client_of(msft_sandbox), await consent(msft_sandbox)
    wrong = replace(client, client_secret="wrong")
    with pytest.raises(VendorUnavailable):  # our secret is wrong: not the user's fault, nothing is forgotten
        await MICROSOFT.refresh(wrong, tokens)
    msft_control.fault("token_error", error="interaction_required")
    with pytest.raises(AuthRevoked):
        await MICROSOFT.refresh(client, tokens)
    msft_control.fault("server_error", path="/token", status=503)
    with pytest.raises(VendorUnavailable):
        await MICROSOFT.refresh(client, tokens)
    msft_control.fault("throttle", path="/token", retryAfter=7)
    with pytest.raises(Throttled) as throttled:
        await MICROSOFT.refresh(client, tokens)
    assert throttled.value.after == 7
    # MSAL by itself would not repeat a refused request for a minute.
    begun = time.monotonic()
    assert (await MICROSOFT.refresh(client, tokens)).access_token
    assert time.monotonic() - begun < 30
    msft_control.revoke()
    with pytest.raises(AuthRevoked):
        await MICROSOFT.refresh(client, tokens)
    with pytest.raises(AuthRevoked):
        await MICROSOFT.refresh(client, replace(tokens, refresh_token=None))


async def test_tokens_that_were_handed_in_say_whose_they_are(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    client, tokens = client_of(msft_sandbox), await consent(msft_sandbox)
    assert (await MICROSOFT.account(client, tokens)).email == ADA
    with pytest.raises(AuthRevoked):
        await MICROSOFT.account(client, replace(tokens, access_token="forged"))
    msft_control.revoke()
    with pytest.raises(AuthRevoked):
        await MICROSOFT.account(client, tokens)


async def test_there_is_no_way_to_take_a_grant_back_by_api(msft_sandbox: RunningSandbox) -> None:
    assert await MICROSOFT.revoke(client_of(msft_sandbox), await consent(msft_sandbox)) is False


def test_a_national_cloud_names_its_own_graph() -> None:
    endpoints = {
        **registry.default_endpoints("msft"),
        "login": "https://login.microsoftonline.us",
        "graph": "https://graph.microsoft.us/v1.0",
    }
    assert scopes_for(endpoints, ["outlook"]) == ["https://graph.microsoft.us/Mail.Read"]
    begun = MICROSOFT.begin(
        Client(client_id="c", client_secret="s", endpoints=endpoints),
        redirect_uri=REDIRECT,
        state="s",
        surfaces=["outlook"],
    )
    assert begun.url.startswith("https://login.microsoftonline.us/common/oauth2/v2.0/authorize?")


def test_no_secret_is_in_the_address_of_the_consent(msft_sandbox: RunningSandbox) -> None:
    begun = begin(msft_sandbox)
    assert msft_sandbox.client_secret not in begun.url
    assert begun.flow["code_verifier"] not in begun.url
