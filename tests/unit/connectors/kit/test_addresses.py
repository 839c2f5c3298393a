"""Private, special and metadata addresses are refused, in every spelling."""

import pytest

from connectors.kit.addresses import refusal

PRIVATE = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "0.0.0.0",
    "100.64.0.1", "169.254.1.1", "192.0.2.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1",
    "fec0::1", "3fff::1", "192.88.99.1",
]  # fmt: skip
DISGUISED = [
    "::ffff:127.0.0.1",  # mapped
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "2002:7f00:1::",  # 6to4
    "2002:a00:1::1",
    "64:ff9b::127.0.0.1",  # NAT64
    "64:ff9b::a00:1",
    "64:ff9b:1::10.0.0.1",
    "2a00:1450::5efe:127.0.0.1",  # ISATAP
    "2a00:1450::200:5efe:10.0.0.1",
    "::127.0.0.1",  # compatible
    "::10.0.0.1",
    "2001:0:7f00:1::f5ff:fffe",  # Teredo: a private server, and a private client
    "2001:0:808:808::f5ff:fffe",
]
METADATA = [
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
    "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::ffff:168.63.129.16",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE + DISGUISED + METADATA)
def test_refused(address: str) -> None:
    assert refusal(address) is not None


@pytest.mark.parametrize("address", ["8.8.8.8", "52.96.0.1", "2a00:1450:4001:800::200e", "2603:1026::1"])
def test_public_addresses_pass(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.7"])
def test_a_trusted_origin_may_be_private(address: str) -> None:
    assert refusal(address, private_allowed=True) is None


@pytest.mark.parametrize("address", METADATA)
def test_metadata_is_refused_even_where_private_is_trusted(address: str) -> None:
    assert refusal(address, private_allowed=True) == "a metadata service"


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "127.0.0.1:80"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert refusal(text, private_allowed=True) == "not an address"
