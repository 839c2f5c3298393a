"""Which network addresses a name may stand for, however the address is dressed up."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

# Where clouds hand credentials to whoever asks: refused even for an origin that was trusted with private addresses.
METADATA: frozenset[Address] = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.0.23",
        "100.100.100.200",
        "168.63.129.16",  # Azure's, and public
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)
# NAT64: the last four bytes are the IPv4 address that is really reached.
TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
# Not public either, though `is_global` of some Python versions says so: old site-local addresses, documentation, 6to4 relays.
NOT_PUBLIC = tuple(map(ip_network, ("fec0::/10", "3fff::/20", "192.88.99.0/24")))
ISATAP = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


def disguised(address: Address) -> Iterator[Address]:
    """The address itself, and every IPv4 address that is hidden in it."""
    yield address
    if not isinstance(address, IPv6Address):
        return
    last = IPv4Address(address.packed[12:])
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in TRANSLATED) or address.packed[8:12] in ISATAP:
        yield last
    if (
        address.packed[:12] == bytes(12) and int(last) > 1
    ):  # ::a.b.c.d, long obsolete; :: and ::1 are their own
        yield last


def refusal(text: str, *, private_allowed: bool = False) -> str | None:
    """Why this address must not be connected to; None if it may."""
    try:
        address = ip_address(text)
    except ValueError:
        return "not an address"
    for seen in disguised(address):
        if seen in METADATA:
            return "a metadata service"
        if private_allowed:
            continue
        if not seen.is_global or seen.is_multicast or seen.is_reserved:
            return "not a public address"
        if any(seen in network for network in NOT_PUBLIC):
            return "not a public address"
    return None
