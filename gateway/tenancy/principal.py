"""Who is asking, once that is known, and what they may. Knows nothing of HTTP, so that workers need not either."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from gateway.tenancy import schemas

RANK: dict[schemas.Role, int] = {"member": 0, "admin": 1, "owner": 2}
ROLE_SCOPES: dict[schemas.Role, frozenset[schemas.Scope]] = {
    "member": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
    "owner": frozenset({"read", "write", "admin"}),
}


@dataclass(frozen=True)
class Principal:
    mandate_id: UUID
    user_id: UUID | None  # None: a service that acts for nobody
    role: schemas.Role
    scopes: frozenset[schemas.Scope]
    via: Literal["key", "session"]
    credential_id: UUID
    service: str | None = None
    csrf_token: str | None = None

    @property
    def name(self) -> str:
        """Stable across keys and sessions: what belongs to a caller is filed under it."""
        return f"user:{self.user_id}" if self.user_id else f"service:{self.service}"

    @property
    def acting(self) -> bool:
        """A service in the place of a user."""
        return self.service is not None and self.user_id is not None

    @property
    def is_admin(self) -> bool:
        return self.may("admin", "admin")

    def outranks(self, role: schemas.Role) -> bool:
        """At least as high."""
        return RANK[self.role] >= RANK[role]

    def may(self, role: schemas.Role, scope: schemas.Scope) -> bool:
        return self.outranks(role) and scope in self.scopes


def new_token(kind: Literal["ck", "cs", "cl"]) -> str:
    """A key, a session cookie or a one-time login link."""
    return f"{kind}_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> bytes:
    # 256 random bits need no slow hash.
    return hashlib.sha256(token.encode()).digest()
