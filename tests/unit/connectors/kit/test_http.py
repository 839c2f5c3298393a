"""The guarded fetcher: where it goes, what it takes along, and when it stops reading."""

import gzip
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from connectors.kit.contract import VendorUnavailable
from connectors.kit.http import AnswerTooLarge, RequestRefused, VendorHttp, way_out
from tests.fixtures.loopback_vendor import Asked, LoopbackVendor, Reply, loopback_vendor, said


def fine(_: Asked) -> Reply:
    return said({"fine": True})


def way_to(*vendors: LoopbackVendor) -> VendorHttp:
    return VendorHttp(allowed=[], trusted_private=[vendor.url for vendor in vendors], timeout=10)


class Names:
    """A resolver of our own: each name with the answers it gives, one after the other."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        given = self._answers[host]
        return given.pop(0) if len(given) > 1 else given[0]


# -- where it goes


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v1.0/me",
        "https://graph.microsoft.com.evil.example/",
        "https://evilgraph.microsoft.com/",
        "https://sharepoint.com/",  # the wildcard is for what lies below it
        "https://evilsharepoint.com/",
        "http://graph.microsoft.com/v1.0/me",
        "https://graph.microsoft.com:8443/",
        "https://tenant.sharepoint.com:444/",
        "http://tenant.sharepoint.com/",
        "https://user:word@graph.microsoft.com/",
        "https://graph.microsoft.com@evil.example/",
        "ftp://graph.microsoft.com/",
        "file:///etc/passwd",
        "gopher://graph.microsoft.com/",
        "//graph.microsoft.com/",
        "https:///nothing",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "not a url",
        "https://gra\u2044ph.microsoft.com/",
        "https://exa mple.com/",
    ],
)
async def test_only_the_vendors_own_origins(url: str) -> None:
    names = Names()
    async with VendorHttp(
        allowed=["https://graph.microsoft.com/v1.0", "*.sharepoint.com"], resolve=names
    ) as http:
        with pytest.raises(RequestRefused):
            await http.request("GET", url)
    assert names.asked == []


def test_plain_http_must_be_trusted_by_name() -> None:
    with pytest.raises(RequestRefused):
        VendorHttp(allowed=["http://graph.internal"])


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]],
)
async def test_a_name_that_stands_for_a_private_address_is_not_reached(addresses: list[str]) -> None:
    async with loopback_vendor(fine) as vendor:
        origin = f"https://rebound.example:{vendor.port}"
        async with VendorHttp(allowed=[origin], resolve=Names(rebound_example=[addresses])) as http:
            with pytest.raises(RequestRefused):
                await http.request("GET", origin)
        assert vendor.asked == []


async def test_metadata_is_not_reached_even_when_trusted() -> None:
    origin = "http://sandbox.example"
    http = VendorHttp(
        allowed=[], trusted_private=[origin], resolve=Names(sandbox_example=[["169.254.169.254"]])
    )
    async with http:
        with pytest.raises(RequestRefused, match="metadata"):
            await http.request("GET", origin)


async def test_a_name_is_resolved_once_and_the_checked_address_is_reached() -> None:
    """Rebinding: the second answer of the name would be the metadata service. Nobody asks for a second one."""
    names = Names(sandbox_example=[["127.0.0.1"], ["169.254.169.254"]])
    async with loopback_vendor(fine) as vendor:
        origin = f"http://sandbox.example:{vendor.port}"
        async with VendorHttp(allowed=[], trusted_private=[origin], resolve=names) as http:
            answer = await http.request("GET", f"{origin}/me")
            assert answer.status == 200
        assert names.asked == ["sandbox.example"]
        assert vendor.asked[0].headers["host"] == f"sandbox.example:{vendor.port}"


async def test_trust_is_for_one_port_only() -> None:
    async with loopback_vendor(fine) as trusted, loopback_vendor(fine) as other:
        async with way_to(trusted) as http:
            with pytest.raises(RequestRefused):
                await http.request("GET", other.url)
        assert other.asked == []


async def test_a_trailing_dot_is_the_same_host() -> None:
    names = Names(sandbox_example=[["127.0.0.1"]])
    async with loopback_vendor(fine) as vendor:
        origin = f"http://sandbox.example:{vendor.port}"
        async with VendorHttp(allowed=[], trusted_private=[origin], resolve=names) as http:
            assert (await http.request("GET", f"http://SANDBOX.example.:{vendor.port}/")).status == 200
        assert names.asked == ["sandbox.example"]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback_vendor(fine) as vendor, loopback_vendor(fine) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with way_to(vendor) as http:
            await http.request("GET", vendor.url)
        assert len(vendor.asked) == 1
        assert proxy.asked == []


# -- TLS


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context for `name`, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain = folder / f"{name}.pem"
    chain.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return server, ssl.create_default_context(cadata=made.public_bytes(serialization.Encoding.PEM).decode())


async def test_the_certificate_is_checked_for_the_name_although_an_address_is_reached(tmp_path: Path) -> None:
    server, client = certificate(tmp_path, "graph.example")
    shown: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: shown.append(name)
    names = Names(graph_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    async with loopback_vendor(fine, tls=server) as vendor:
        right, wrong = f"https://graph.example:{vendor.port}", f"https://other.example:{vendor.port}"
        async with VendorHttp(allowed=[], trusted_private=[right, wrong], resolve=names, tls=client) as http:
            assert (await http.request("GET", right)).json() == {"fine": True}
            with pytest.raises(VendorUnavailable):
                await http.request("GET", wrong)
    assert shown == ["graph.example", "other.example"]


# -- redirects


async def test_credentials_stay_at_their_origin() -> None:
    async with loopback_vendor(lambda _: Reply(200, b"bytes")) as store:
        async with (
            loopback_vendor(lambda _: Reply(302, headers={"Location": f"{store.url}/file"})) as api,
            way_to(api, store) as http,
        ):
            secret = {"Authorization": "Bearer T", "Cookie": "c=1", "X-Api-Key": "k", "User-Agent": "us"}
            answer = await http.download(f"{api.url}/content", headers=secret, max_bytes=100)
        assert answer.body == b"bytes"
        assert answer.url == f"{store.url}/file"
        assert api.asked[0].headers["authorization"] == "Bearer T"
        assert not {"authorization", "cookie", "x-api-key"} & set(store.asked[0].headers)
        assert store.asked[0].headers["user-agent"] == "us"


async def test_credentials_stay_within_one_origin() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(200, b"x") if asked.path == "/there" else Reply(307, headers={"Location": "/there"})

    async with loopback_vendor(answer) as api, way_to(api) as http:
        await http.download(f"{api.url}/here", headers={"Authorization": "Bearer T"}, max_bytes=10)
        assert [asked.headers["authorization"] for asked in api.asked] == ["Bearer T", "Bearer T"]


async def test_every_hop_is_checked() -> None:
    """Allowed, allowed, then somewhere else: the chain ends before the last one."""
    async with loopback_vendor(fine) as outside:
        async with loopback_vendor(lambda _: Reply(302, headers={"Location": outside.url})) as second:
            async with (
                loopback_vendor(lambda _: Reply(302, headers={"Location": second.url})) as first,
                way_to(first, second) as http,
            ):
                with pytest.raises(RequestRefused):
                    await http.download(first.url, max_bytes=10)
            assert len(second.asked) == 1
        assert outside.asked == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://localhost:1/",
        "//evil.example/",
        "https://[::1]/",
    ],
)
async def test_a_redirect_to_a_strange_place_is_refused(location: str) -> None:
    async with (
        loopback_vendor(lambda _: Reply(302, headers={"Location": location})) as api,
        way_to(api) as http,
    ):
        with pytest.raises(RequestRefused):
            await http.download(api.url, max_bytes=10)


async def test_a_redirect_from_https_to_http_is_refused(tmp_path: Path) -> None:
    server, client = certificate(tmp_path, "graph.example")
    async with loopback_vendor(fine) as plain:
        leads_out = Reply(302, headers={"Location": plain.url})
        async with loopback_vendor(lambda _: leads_out, tls=server) as safe:
            origin = f"https://graph.example:{safe.port}"
            names = Names(graph_example=[["127.0.0.1"]])
            trusted = [origin, plain.url]
            async with VendorHttp(allowed=[], trusted_private=trusted, resolve=names, tls=client) as http:
                with pytest.raises(RequestRefused, match="https to http"):
                    await http.download(origin, max_bytes=10)
        assert plain.asked == []


async def test_a_circle_ends() -> None:
    async with (
        loopback_vendor(lambda _: Reply(302, headers={"Location": "/again"})) as api,
        way_to(api) as http,
    ):
        with pytest.raises(RequestRefused, match="too many"):
            await http.download(api.url, max_bytes=10)
        assert len(api.asked) == 6


async def test_a_plain_request_does_not_follow() -> None:
    async with (
        loopback_vendor(lambda _: Reply(302, headers={"Location": "https://evil.example/"})) as api,
        way_to(api) as http,
    ):
        assert (await http.request("GET", api.url)).status == 302
        assert (await http.request("POST", api.url, json={}, follow=3)).status == 302


# -- reading has an end


async def test_a_body_larger_than_asked_for_is_refused() -> None:
    async with loopback_vendor(lambda _: Reply(200, b"x" * 1001)) as api, way_to(api) as http:
        with pytest.raises(AnswerTooLarge):
            await http.request("GET", api.url, max_bytes=1000)
        assert len((await http.request("GET", api.url, max_bytes=1001)).body) == 1001


async def test_a_body_without_a_length_is_counted_while_it_is_read() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw = head + (b"400\r\n" + b"x" * 0x400 + b"\r\n") * 100
    async with loopback_vendor(lambda _: Reply(raw=raw, hang=True)) as api, way_to(api) as http:
        with pytest.raises(AnswerTooLarge):
            await http.request("GET", api.url, max_bytes=50_000)


async def test_a_bomb_is_not_unpacked() -> None:
    bomb = Reply(200, gzip.compress(bytes(50_000_000)), {"Content-Encoding": "gzip"})
    async with loopback_vendor(lambda _: bomb) as api, way_to(api) as http:
        with pytest.raises(AnswerTooLarge):
            await http.request("GET", api.url, max_bytes=1_000_000)


async def test_gzip_is_read() -> None:
    packed = Reply(200, gzip.compress(b'{"a": 1}'), {"Content-Encoding": "gzip"})
    async with loopback_vendor(lambda _: packed) as api, way_to(api) as http:
        assert (await http.request("GET", api.url)).json() == {"a": 1}


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip"])
async def test_other_encodings_are_refused(encoding: str) -> None:
    reply = Reply(200, b"x", {"Content-Encoding": encoding})
    async with loopback_vendor(lambda _: reply) as api, way_to(api) as http:
        with pytest.raises(VendorUnavailable):
            await http.request("GET", api.url)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, gzip.compress(b"x" * 1000)[:-10], {"Content-Encoding": "gzip"}),
        Reply(200, b"not gzip", {"Content-Encoding": "gzip"}),
        Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"),
        Reply(raw=b"this is not HTTP\r\n\r\n"),
        Reply(raw=b""),
    ],
)
async def test_an_answer_that_breaks_off_is_the_vendors_failure(reply: Reply) -> None:
    async with loopback_vendor(lambda _: reply) as api, way_to(api) as http:
        with pytest.raises(VendorUnavailable):
            await http.request("GET", api.url)


async def test_an_answer_that_never_ends_is_given_up() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow"
    async with loopback_vendor(lambda _: Reply(raw=raw, hang=True)) as api:
        for limits in ({"timeout": 0.2}, {"deadline": 0.2}):
            async with VendorHttp(allowed=[], trusted_private=[api.url], **limits) as http:
                with pytest.raises(VendorUnavailable):
                    await http.request("GET", api.url)


async def test_cut_json_is_the_vendors_failure() -> None:
    async with loopback_vendor(lambda _: Reply(200, b'{"value": [')) as api, way_to(api) as http:
        answer = await http.request("GET", api.url)
        with pytest.raises(VendorUnavailable):
            answer.json()


async def test_answers_are_counted_by_authority_and_status() -> None:
    counted: list[tuple[str, int]] = []
    async with (
        loopback_vendor(lambda _: Reply(503)) as api,
        way_out([api.url, "common"], on_response=lambda *seen: counted.append(seen)) as http,
    ):
        await http.request("GET", api.url, authority="msft")
    assert counted == [("msft", 503)]


# -- which endpoints are trusted


async def test_only_an_override_that_says_so_is_trusted_with_private_addresses() -> None:
    async with (
        loopback_vendor(fine) as vendor,
        way_out([f"{vendor.url}/graph", "https://graph.microsoft.com/v1.0"]) as http,
    ):
        assert (await http.request("GET", f"{vendor.url}/graph/me")).status == 200
        assert not http._allowlist.may_be_private("graph.microsoft.com", 443)
        assert http._allowlist.may_be_private("127.0.0.1", vendor.port)
