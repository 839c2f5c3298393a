"""vendors.md E1: what the identity platform does, and what it refuses."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from connectors.sandbox.server import RunningSandbox
from tests.contract.sandbox_msft.conftest import Graph
from tests.fixtures.sandboxes import (
    MSFT_SCOPES,
    Control,
    click_consent,
    msft_authorize_url,
    msft_code,
    msft_redeem,
    msft_sign_in,
)


def _refresh(sandbox: RunningSandbox, refresh_token: str, **fields: str) -> httpx.Response:
    return msft_redeem(sandbox, grant_type="refresh_token", refresh_token=refresh_token, **fields)


def _me(sandbox: RunningSandbox, access_token: str) -> int:
    url = f"{sandbox.endpoints['graph']}/me"
    return httpx.get(
        url, headers={"Authorization": f"Bearer {access_token}"}, trust_env=False, verify=False
    ).status_code


def _claims(token: str) -> dict[str, object]:
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def test_consent_leads_back_with_code_and_state(msft_sandbox: RunningSandbox) -> None:
    with httpx.Client(trust_env=False, verify=False) as browser:
        back = click_consent(browser, msft_authorize_url(msft_sandbox), user="linus@demo.example")
    query = parse_qs(urlsplit(str(back)).query)
    assert query["state"] == ["s1"]
    assert query["code"] and query["session_state"]  # noqa: PT018


def test_whoever_declines_is_sent_back_without_a_code(msft_sandbox: RunningSandbox) -> None:
    with httpx.Client(trust_env=False, verify=False) as browser:
        back = click_consent(
            browser, msft_authorize_url(msft_sandbox), user="ada@demo.example", decision="decline"
        )
    query = parse_qs(urlsplit(str(back)).query)
    assert (query["error"], query["state"]) == (["access_denied"], ["s1"])
    assert "code" not in query


def test_a_page_cannot_be_skipped(msft_sandbox: RunningSandbox) -> None:
    answer = httpx.get(msft_authorize_url(msft_sandbox, prompt="none"), trust_env=False, verify=False)
    assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == ["interaction_required"]


def test_a_form_post_is_a_page_with_the_answer(msft_sandbox: RunningSandbox) -> None:
    with httpx.Client(trust_env=False, verify=False) as browser:
        url = msft_authorize_url(msft_sandbox, response_mode="form_post")
        user = next(each for each in msft_sandbox.world.state(None)["users"])
        page = browser.post(url, data={"user": user["id"], "decision": "accept"})
    assert page.status_code == 200
    assert 'name="code"' in page.text


def test_unknown_clients_tenants_and_redirects_get_a_page_and_no_redirect(
    msft_sandbox: RunningSandbox,
) -> None:
    msft_sandbox.world.redirect_uris = {"http://127.0.0.1:1/registered"}  # pyright: ignore[reportAttributeAccessIssue]
    for url in (
        msft_authorize_url(msft_sandbox, client_id="someone-else"),
        msft_authorize_url(msft_sandbox, redirect_uri="http://evil.example/"),
        msft_authorize_url(msft_sandbox).replace("/common/", "/elsewhere/"),
    ):
        answer = httpx.get(url, trust_env=False, verify=False)
        assert (answer.status_code, "location" in answer.headers) == (400, False)
        assert "AADSTS" in answer.text


def test_a_wrong_verifier_is_refused_and_the_code_stays_good(msft_sandbox: RunningSandbox) -> None:
    code = msft_code(msft_sandbox)
    refused = msft_redeem(msft_sandbox, code=code, code_verifier="another")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert refused.json()["error_codes"] == [501481]
    assert refused.json()["error_description"].startswith("AADSTS501481: ")
    assert msft_redeem(msft_sandbox, code=code).status_code == 200


@pytest.mark.parametrize(
    ("fields", "error", "status"),
    [
        ({"code": "nonsense"}, "invalid_grant", 400),
        ({"redirect_uri": "http://127.0.0.1:9/other"}, "invalid_grant", 400),
        ({"client_secret": "wrong"}, "invalid_client", 401),
        ({"client_id": "wrong"}, "unauthorized_client", 400),
        ({"grant_type": "password"}, "unsupported_grant_type", 400),
    ],
)
def test_bad_token_requests(
    msft_sandbox: RunningSandbox, fields: dict[str, str], error: str, status: int
) -> None:
    answer = msft_redeem(msft_sandbox, **{"code": msft_code(msft_sandbox), **fields})
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert {"trace_id", "correlation_id", "timestamp", "error_codes"} <= set(answer.json())


def test_a_code_works_once_and_for_ten_minutes(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    code = msft_code(msft_sandbox)
    assert msft_redeem(msft_sandbox, code=code).status_code == 200
    assert msft_redeem(msft_sandbox, code=code).json()["error_codes"] == [54005]
    late = msft_code(msft_sandbox)
    msft_control.advance(601)
    assert msft_redeem(msft_sandbox, code=late).json()["error_codes"] == [70008]


def test_the_secret_may_come_as_basic_credentials(msft_sandbox: RunningSandbox) -> None:
    form = {
        "grant_type": "authorization_code",
        "code": msft_code(msft_sandbox),
        "redirect_uri": "http://127.0.0.1:9/callback",
        "code_verifier": "sandbox-verifier-" + "v" * 43,
    }
    answer = httpx.post(
        f"{msft_sandbox.url}/common/oauth2/v2.0/token",
        data=form,
        auth=(msft_sandbox.client_id, msft_sandbox.client_secret),
        trust_env=False,
        verify=False,
    )
    assert answer.status_code == 200, answer.text


def test_the_answer_holds_what_was_asked_for(msft_sandbox: RunningSandbox) -> None:
    with httpx.Client(trust_env=False, verify=False) as browser:
        url = msft_authorize_url(msft_sandbox, "openid profile Mail.Read", nonce="n-1")
        back = click_consent(browser, url, user="ada@demo.example")
    code = parse_qs(urlsplit(str(back)).query)["code"][0]
    body = msft_redeem(msft_sandbox, code=code, client_info="1").json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 3599)
    assert "refresh_token" not in body  # offline_access was not asked for
    claims = _claims(body["id_token"])
    assert (claims["nonce"], claims["aud"]) == ("n-1", msft_sandbox.client_id)
    info = json.loads(base64.urlsafe_b64decode(body["client_info"] + "=="))
    assert info["uid"] == claims["oid"]


def test_refresh_tokens_rotate_and_the_old_one_stays_good(msft_sandbox: RunningSandbox) -> None:
    first = msft_sign_in(msft_sandbox)
    second = _refresh(msft_sandbox, first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert _refresh(msft_sandbox, first["refresh_token"]).status_code == 200
    assert _refresh(msft_sandbox, second["refresh_token"]).status_code == 200


def test_tokens_survive_a_restart_of_the_sandbox(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    tokens = msft_sign_in(msft_sandbox)
    msft_control.ask("POST", "/reset", {"seed": "empty"})
    assert _refresh(msft_sandbox, tokens["refresh_token"]).status_code == 200


def test_a_revoked_grant_is_dead_at_both_ends(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    ada, grace = msft_sign_in(msft_sandbox), msft_sign_in(msft_sandbox, "grace@demo.example")
    msft_control.revoke(user="ada@demo.example")
    assert _refresh(msft_sandbox, ada["refresh_token"]).json()["error"] == "invalid_grant"
    assert _me(msft_sandbox, ada["access_token"]) == 401
    assert _me(msft_sandbox, grace["access_token"]) == 200
    assert _me(msft_sandbox, msft_sign_in(msft_sandbox)["access_token"]) == 200


def test_refresh_only_leaves_the_access_token_its_hour(
    msft_sandbox: RunningSandbox, msft_control: Control
) -> None:
    tokens = msft_sign_in(msft_sandbox)
    msft_control.revoke(refreshOnly=True)
    assert _refresh(msft_sandbox, tokens["refresh_token"]).json()["error_codes"] == [50173]
    assert _me(msft_sandbox, tokens["access_token"]) == 200


def test_tokens_end_with_time(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    tokens = msft_sign_in(msft_sandbox)
    msft_control.advance(3600)
    assert _me(msft_sandbox, tokens["access_token"]) == 401
    msft_control.advance(91 * 24 * 3600)
    assert _refresh(msft_sandbox, tokens["refresh_token"]).json()["error_codes"] == [700082]


def test_failures_on_order(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    tokens = msft_sign_in(msft_sandbox)
    msft_control.fault("token_error", error="interaction_required", code=50076, suberror="basic_action")
    refused = _refresh(msft_sandbox, tokens["refresh_token"]).json()
    assert (refused["error"], refused["suberror"]) == ("interaction_required", "basic_action")
    assert _refresh(msft_sandbox, tokens["refresh_token"]).status_code == 200
    msft_control.fault("unauthorized", path="/v1.0/me")
    assert _me(msft_sandbox, tokens["access_token"]) == 401
    assert _me(msft_sandbox, tokens["access_token"]) == 200
    msft_control.fault("short_token", seconds=5)
    assert _refresh(msft_sandbox, tokens["refresh_token"]).json()["expires_in"] == 5


def test_fewer_scopes_than_asked_for(msft_sandbox: RunningSandbox, msft_control: Control) -> None:
    msft_control.fault("narrow_scope", without=["Mail.Read"])
    tokens = msft_sign_in(msft_sandbox)
    assert "Mail.Read" not in tokens["scope"]
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    answer = httpx.get(
        f"{msft_sandbox.endpoints['graph']}/me/messages", headers=headers, trust_env=False, verify=False
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ErrorAccessDenied")


def test_scopes_nobody_consented_to_are_not_to_be_had(msft_sandbox: RunningSandbox) -> None:
    tokens = msft_sign_in(msft_sandbox, scopes="offline_access Mail.Read")
    refused = _refresh(msft_sandbox, tokens["refresh_token"], scope="Files.Read.All")
    assert refused.json()["error_codes"] == [65001]


def test_the_token_endpoint_is_https_in_the_discovery_document(msft_sandbox: RunningSandbox) -> None:
    url = f"{msft_sandbox.url}/common/v2.0/.well-known/openid-configuration"
    document = httpx.get(url, trust_env=False, verify=False).json()
    assert document["token_endpoint"].startswith("https://127.0.0.1")
    assert document["authorization_endpoint"].startswith(msft_sandbox.url)
    assert "{tenantid}" in document["issuer"]


@pytest.mark.parametrize(
    ("header", "words"),
    [("", "empty"), ("Bearer nonsense", "CompactToken"), ("Bearer a.b.c", "CompactToken")],
)
def test_graph_wants_a_token(msft_sandbox: RunningSandbox, header: str, words: str) -> None:
    headers = {"Authorization": header} if header else {}
    answer = httpx.get(
        f"{msft_sandbox.endpoints['graph']}/me", headers=headers, trust_env=False, verify=False
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "InvalidAuthenticationToken")
    assert words in answer.json()["error"]["message"]


def test_every_user_sees_an_own_world(msft_sandbox: RunningSandbox) -> None:
    names = {
        Graph(msft_sandbox, who, MSFT_SCOPES).get("/me")["mail"]
        for who in ("ada@demo.example", "linus@demo.example")
    }
    assert names == {"ada@demo.example", "linus@demo.example"}
