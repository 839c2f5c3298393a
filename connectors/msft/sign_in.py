"""MSAL's requests, through the guarded way out.

MSAL blocks, insists on https and looks up where the token endpoint is. So it runs in a thread; the loop does its requests;
an endpoint that was overridden with plain http (the sandbox) is called https inside MSAL and by its real name outside; and the
discovery document, whose paths Microsoft documents for every cloud, is answered here – a sign-in costs no look-up and
MSAL's day-long memory of one does not matter. Every call gets a new application: MSAL would not repeat a refused request
for a minute, and what it remembers of tokens is the vault's business.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import TimeoutError as TookTooLong
from typing import Any
from urllib.parse import urlsplit

import msal

from connectors.kit.contract import Client, Throttled, VendorUnavailable
from connectors.kit.http import Answer, VendorHttp
from connectors.kit.vendor import retry_after

SECONDS = 60.0


class Reply:
    """An answer in the shape MSAL reads."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        self.status_code, self.text, self.headers = status, text, headers

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise VendorUnavailable(f"sign-in answered {self.status_code}")


class LoginPlace:
    """Where users of this client sign in: as MSAL must see it, and as it is."""

    def __init__(self, client: Client) -> None:
        self._real = client.endpoints["login"].rstrip("/")
        self._shown = f"https://{self._real.split('://', 1)[1]}"
        self.authority = f"{self._shown}/{client.endpoints.get('tenant') or 'common'}"

    def real(self, url: str) -> str:
        return self._real + url.removeprefix(self._shown) if url.startswith(self._shown) else url

    def discovery(self) -> str:
        return json.dumps(
            {
                "authorization_endpoint": f"{self.authority}/oauth2/v2.0/authorize",
                "token_endpoint": f"{self.authority}/oauth2/v2.0/token",
            }
        )


class SignInHttp:
    """MSAL's `http_client`. `send` is missing where nothing may be asked: when a consent is only begun."""

    def __init__(
        self,
        place: LoginPlace,
        send: Callable[[str, Mapping[str, Any]], Answer] | None = None,
    ) -> None:
        self._place, self._send = place, send

    def get(self, url: str, **_: Any) -> Reply:
        if urlsplit(url).path.endswith("/.well-known/openid-configuration"):
            return Reply(200, self._place.discovery(), {})
        raise VendorUnavailable("sign-in wants to look something up that it should not need")

    def post(self, url: str, **options: Any) -> Reply:
        if self._send is None:
            raise VendorUnavailable("nothing is posted while a consent begins")
        answer = self._send(self._place.real(url), options)
        if answer.status == 429:
            raise Throttled(retry_after(answer.headers, default=30.0), "sign-in is throttled")
        if answer.status >= 500:
            raise VendorUnavailable(f"sign-in answered {answer.status}")
        return Reply(answer.status, answer.body.decode("utf-8", "replace"), dict(answer.headers))

    def close(self) -> None:
        pass


def application(
    client: Client, send: Callable[[str, Mapping[str, Any]], Answer] | None = None
) -> msal.ConfidentialClientApplication:
    place = LoginPlace(client)
    return msal.ConfidentialClientApplication(
        client.client_id,
        client_credential=client.client_secret,
        authority=place.authority,
        instance_discovery=False,
        http_client=SignInHttp(place, send),
    )


async def in_thread(
    client: Client, http: VendorHttp, call: Callable[[msal.ConfidentialClientApplication], Any]
) -> Mapping[str, Any]:
    """What MSAL answers. Raises Throttled, VendorUnavailable, and ValueError for what MSAL finds wrong in it."""
    loop = asyncio.get_running_loop()

    def send(url: str, options: Mapping[str, Any]) -> Answer:
        coming: Coroutine[Any, Any, Answer] = http.request(
            "POST", url, headers=options.get("headers"), data=options.get("data"), authority="msft"
        )
        try:
            return asyncio.run_coroutine_threadsafe(coming, loop).result(SECONDS)
        except TookTooLong as error:
            raise VendorUnavailable("sign-in does not answer") from error

    return await asyncio.to_thread(lambda: call(application(client, send)))
