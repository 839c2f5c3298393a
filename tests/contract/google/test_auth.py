"""Consent at Google: what is asked, what comes back, how it is renewed, and how it ends."""

from urllib.parse import parse_qs, urlsplit

import pytest

from connectors import registry
from connectors.google.auth import SCOPES
from connectors.kit.contract import AuthRevoked, ConsentRefused, VendorUnavailable
from connectors.sandbox.server import RunningSandbox
from tests.contract.google.account import REDIRECT, Account, answer_consent, client_of, consent, walk

GOOGLE = registry.authority("google")


def begin(sandbox: RunningSandbox, surfaces: list[str]):
    return GOOGLE.begin(client_of(sandbox), redirect_uri=REDIRECT, state="s-1", surfaces=surfaces)


def test_consent_asks_to_read_and_nothing_more(sandbox: RunningSandbox) -> None:
    query = parse_qs(urlsplit(begin(sandbox, ["drive"]).url).query)
    assert query["access_type"] == ["offline"]
    assert query["prompt"] == ["consent"]
    assert query["code_challenge_method"] == ["S256"]
    assert query["state"] == ["s-1"]
    scopes = query["scope"][0].split()
    assert "https://www.googleapis.com/auth/drive.readonly" in scopes
    assert not [scope for scope in scopes if "gmail" in scope or "calendar" in scope]
    every = [scope for needed in SCOPES.values() for scope in needed]
    assert all(scope.endswith(".readonly") for scope in every)


async def test_a_code_becomes_tokens_and_an_account(sandbox: RunningSandbox) -> None:
    begun = begin(sandbox, ["drive", "gmail"])
    tokens, account = await GOOGLE.finish(
        client_of(sandbox), flow=begun.flow, answer=answer_consent(begun.url, user="ben@demo.example")
    )
    assert tokens.refresh_token
    assert tokens.expires_at is not None
    assert (account.email, account.name) == ("ben@demo.example", "Ben")
    assert account.id


async def test_a_user_may_tick_fewer_boxes(sandbox: RunningSandbox) -> None:
    mail = SCOPES["gmail"][0]
    tokens = await consent(sandbox, ["drive", "gmail"], listed="1", scope=mail)
    assert GOOGLE.granted_surfaces(tokens.scopes) == ["gmail"]
    assert GOOGLE.granted_surfaces(()) == GOOGLE.surfaces


@pytest.mark.parametrize(
    ("part", "container"), [("drive", "my-drive"), ("gmail", "mailbox"), ("google_calendar", "primary")]
)
async def test_a_surface_without_its_scope_is_told_as_forbidden(
    sandbox: RunningSandbox, part: str, container: str
) -> None:
    account = Account(sandbox, await consent(sandbox, SCOPES, listed="1", scope="openid"))
    found = await walk(account.surface(part))
    assert (found.failed, found.items) == ({container}, {})
    await account.aclose()


async def test_a_user_may_decline(sandbox: RunningSandbox) -> None:
    begun = begin(sandbox, ["drive"])
    answer = answer_consent(begun.url, decision="decline")
    with pytest.raises(ConsentRefused, match="access_denied"):
        await GOOGLE.finish(client_of(sandbox), flow=begun.flow, answer=answer)


@pytest.mark.parametrize(
    ("flow", "answer", "word"),
    [
        ({"verifier": "a" * 64}, {}, "invalid_grant"),
        ({"redirect": "http://127.0.0.1:1/elsewhere"}, {}, "redirect_uri_mismatch"),
        ({}, {"state": "another"}, "does not belong"),
        ({}, {"code": "4/made-up"}, "invalid_grant"),
    ],
)
async def test_a_stolen_or_bent_answer_is_refused(
    sandbox: RunningSandbox, flow: dict[str, str], answer: dict[str, str], word: str
) -> None:
    begun = begin(sandbox, ["drive"])
    brought = {**answer_consent(begun.url), **answer}
    with pytest.raises(ConsentRefused, match=word):
        await GOOGLE.finish(client_of(sandbox), flow={**begun.flow, **flow}, answer=brought)


async def test_a_code_works_once(sandbox: RunningSandbox) -> None:
    begun = begin(sandbox, ["drive"])
    answer = answer_consent(begun.url)
    await GOOGLE.finish(client_of(sandbox), flow=begun.flow, answer=answer)
    with pytest.raises(ConsentRefused, match="invalid_grant"):
        await GOOGLE.finish(client_of(sandbox), flow=begun.flow, answer=answer)


async def test_a_renewal_keeps_the_refresh_token(ada: Account) -> None:
    before = ada.tokens.tokens
    after = await GOOGLE.refresh(ada.client, before)
    assert after.refresh_token == before.refresh_token
    assert after.access_token != before.access_token
    assert set(after.scopes) == set(before.scopes)


async def test_a_dead_grant_is_told_from_an_outage(ada: Account) -> None:
    ada.fault("server_error", path="/token")
    with pytest.raises(VendorUnavailable):
        await GOOGLE.refresh(ada.client, ada.tokens.tokens)
    ada.revoke(user="ada@demo.example")
    with pytest.raises(AuthRevoked):
        await GOOGLE.refresh(ada.client, ada.tokens.tokens)


async def test_a_wrong_secret_is_not_the_users_fault(ada: Account) -> None:
    wrong = type(ada.client)(
        client_id=ada.client.client_id, client_secret="another", endpoints=ada.client.endpoints
    )
    with pytest.raises(VendorUnavailable):
        await GOOGLE.refresh(wrong, ada.tokens.tokens)


async def test_disconnecting_takes_the_grant_back_at_google(ada: Account) -> None:
    assert await GOOGLE.revoke(ada.client, ada.tokens.tokens)
    with pytest.raises(AuthRevoked):
        await GOOGLE.refresh(ada.client, ada.tokens.tokens)
    assert await GOOGLE.revoke(ada.client, ada.tokens.tokens)  # already dead is dead enough


async def test_a_401_is_answered_by_one_renewal(ada: Account) -> None:
    ada.create("file", name="a.txt", text="one")
    ada.fault("unauthorized", path="/drive/v3/drives")
    surface = ada.surface("drive")
    assert (await surface.estimate()).items == 1
    assert ada.tokens.renewals == 1
    ada.fault("unauthorized", path="/drive/v3", times=None)
    with pytest.raises(AuthRevoked):
        await surface.estimate()
