"""The vault: what we must be able to read again, but nobody who reads the database may.

Every value is sealed with a data key of its own (AES-256-GCM); the data key is sealed with the key of the house. Both are
bound to a place – mandate, table, row, purpose – so that a ciphertext opens where it was written and nowhere else. The
envelope names its key, so that keys can be changed while everything stays readable:

    version (1) · key id (8) · nonce (12) · sealed data key (48) · nonce (12) · sealed value
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.errors import CatchmentError, ConfigurationError
from gateway.settings import Settings

VERSION = b"\x01"
KEY_ID, NONCE, KEY, TAG = 8, 12, 32, 16
SHORTEST_SECRET = 16  # characters; 32 random bytes in base64 have 44
_HEAD = len(VERSION) + KEY_ID
_WRAPPED = NONCE + KEY + TAG


class SealBroken(CatchmentError):
    """A sealed value does not open here."""

    code = "vault.sealed"


@dataclass(frozen=True)
class Place:
    """Where a sealed value belongs. It opens in no other row, table or mandate, and for no other purpose."""

    mandate_id: UUID
    table: str
    row_id: str
    purpose: str

    def associated_data(self, key_id: bytes) -> bytes:
        parts = (str(self.mandate_id), self.table, self.row_id, self.purpose)
        # Lengths in front: no two places read alike.
        framed = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in parts)
        return VERSION + key_id + framed


class Vault:
    def __init__(self, secret: str, previous: Sequence[str] = ()) -> None:
        self._keys = {_key_id(key): AESGCM(key) for key in map(_derive, (secret, *previous))}
        self.key_id = _key_id(_derive(secret))

    @classmethod
    def of(cls, settings: Settings) -> "Vault":
        if settings.secret_key is None:
            raise ConfigurationError(
                "Set CATCHMENT_SECRET_KEY: it seals what must not be readable, and every process needs the same one."
            )
        earlier = settings.previous_secret_keys.get_secret_value() if settings.previous_secret_keys else ""
        keys = [settings.secret_key.get_secret_value(), *(key for key in earlier.split(",") if key)]
        if any(len(key) < SHORTEST_SECRET for key in keys):
            raise ConfigurationError(
                f"A secret key needs at least {SHORTEST_SECRET} characters; take 32 random bytes in base64."
            )
        return cls(keys[0], keys[1:])

    def seal(self, value: bytes, place: Place) -> bytes:
        associated = place.associated_data(self.key_id)
        data_key, outer, inner = os.urandom(KEY), os.urandom(NONCE), os.urandom(NONCE)
        wrapped = self._keys[self.key_id].encrypt(outer, data_key, associated)
        return (
            VERSION
            + self.key_id
            + outer
            + wrapped
            + inner
            + AESGCM(data_key).encrypt(inner, value, associated)
        )

    def open(self, envelope: bytes, place: Place) -> bytes:
        key_id, rest = envelope[len(VERSION) : _HEAD], envelope[_HEAD:]
        key = self._keys.get(key_id)
        if envelope[: len(VERSION)] != VERSION or key is None or len(rest) < _WRAPPED + NONCE + TAG:
            raise SealBroken(
                "It was sealed with a key this process does not have; see CATCHMENT_PREVIOUS_SECRET_KEYS."
            )
        associated = place.associated_data(key_id)
        try:
            data_key = key.decrypt(rest[:NONCE], rest[NONCE:_WRAPPED], associated)
            inner = rest[_WRAPPED : _WRAPPED + NONCE]
            return AESGCM(data_key).decrypt(inner, rest[_WRAPPED + NONCE :], associated)
        except InvalidTag:
            raise SealBroken("It was changed, or belongs to another row.") from None

    def seal_json(self, value: Mapping[str, Any], place: Place) -> bytes:
        return self.seal(orjson.dumps(dict(value)), place)

    def open_json(self, envelope: bytes, place: Place) -> dict[str, Any]:
        return orjson.loads(self.open(envelope, place))

    def reseal(self, envelope: bytes, place: Place) -> bytes:
        """The same value under the current key."""
        return self.seal(self.open(envelope, place), place)


def _derive(secret: str) -> bytes:
    return HKDF(SHA256(), KEY, salt=None, info=b"catchment vault").derive(secret.encode())


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"catchment key id" + key).digest()[:KEY_ID]


# -- the places there are


def tokens_place(mandate_id: UUID, connection_id: UUID) -> Place:
    return Place(mandate_id, "connection", str(connection_id), "tokens")


def watch_place(mandate_id: UUID, watch_id: UUID) -> Place:
    return Place(mandate_id, "watch", str(watch_id), "secret")


def flow_place(mandate_id: UUID, state_hash: bytes) -> Place:
    return Place(mandate_id, "oauth_state", state_hash.hex(), "flow")
