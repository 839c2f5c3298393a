"""What is sealed opens where it was written, with a key we have, and nowhere else."""

from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from gateway.connections.vault import Place, SealBroken, Vault
from gateway.errors import ConfigurationError
from gateway.settings import Settings

SECRET, OTHER = "a secret key of the house", "another key of the house"
PLACE = Place(uuid4(), "connection", str(uuid4()), "tokens")
values = st.binary(max_size=2000)


@given(value=values)
def test_what_is_sealed_opens_again_and_never_looks_the_same_twice(value: bytes) -> None:
    vault = Vault(SECRET)
    first, second = vault.seal(value, PLACE), vault.seal(value, PLACE)
    assert first != second
    assert len(value) < 8 or value not in first
    assert Vault(SECRET).open(first, PLACE) == value


@given(value=values, table=st.text(), row=st.text(), purpose=st.text())
def test_it_opens_at_no_other_place(value: bytes, table: str, row: str, purpose: str) -> None:
    vault = Vault(SECRET)
    envelope = vault.seal(value, PLACE)
    elsewhere = [
        replace(PLACE, mandate_id=uuid4()),
        replace(PLACE, table=table),
        replace(PLACE, row_id=row),
        replace(PLACE, purpose=purpose),
        # the same characters, cut differently
        replace(PLACE, table=PLACE.table + PLACE.row_id[0], row_id=PLACE.row_id[1:]),
    ]
    for place in elsewhere:
        if place != PLACE:
            with pytest.raises(SealBroken):
                vault.open(envelope, place)


@given(value=values, data=st.data())
def test_a_changed_byte_is_noticed(value: bytes, data: st.DataObject) -> None:
    envelope = bytearray(Vault(SECRET).seal(value, PLACE))
    position = data.draw(st.integers(0, len(envelope) - 1))
    envelope[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealBroken):
        Vault(SECRET).open(bytes(envelope), PLACE)


@given(envelope=st.binary(max_size=200))
def test_nonsense_is_refused_and_never_crashes(envelope: bytes) -> None:
    with pytest.raises(SealBroken):
        Vault(SECRET).open(envelope, PLACE)


def test_keys_can_be_changed_while_everything_stays_readable() -> None:
    old, new = Vault(SECRET), Vault(OTHER, previous=[SECRET])
    envelope = old.seal(b"value", PLACE)
    assert new.open(envelope, PLACE) == b"value"
    renewed = new.reseal(envelope, PLACE)
    assert Vault(OTHER).open(renewed, PLACE) == b"value"
    for vault, broken in ((Vault(OTHER), envelope), (old, renewed)):
        with pytest.raises(SealBroken):
            vault.open(broken, PLACE)


def test_a_piece_of_one_envelope_does_not_fit_another() -> None:
    vault = Vault(SECRET)
    one, other = vault.seal(b"one", PLACE), vault.seal(b"two", PLACE)
    for cut in (21, 69, 81):
        with pytest.raises(SealBroken):
            vault.open(one[:cut] + other[cut:], PLACE)


@pytest.mark.parametrize(
    ("key", "previous"),
    [
        (None, None),
        ("short", None),
        ("long enough for everybody", "short"),
    ],
)
def test_without_a_real_key_nothing_starts(key: str | None, previous: str | None) -> None:
    settings = Settings(
        secret_key=SecretStr(key) if key else None,
        previous_secret_keys=SecretStr(previous) if previous else None,
    )
    with pytest.raises(ConfigurationError, match=r"SECRET_KEY|secret key"):
        Vault.of(settings)


def test_earlier_keys_come_from_the_settings() -> None:
    envelope = Vault(SECRET).seal(b"value", PLACE)
    settings = Settings(
        secret_key=SecretStr("the key of tomorrow"), previous_secret_keys=SecretStr(f"{OTHER},{SECRET}")
    )
    assert Vault.of(settings).open(envelope, PLACE) == b"value"
