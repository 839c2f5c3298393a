"""A mandate to put passages into and search, for the tests of search."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from gateway.connections import repository as connections
from gateway.corpus.embedders import Embedder, build_embedder
from gateway.corpus.loading import Loaded, ReadyDocument, load_documents
from gateway.corpus.search import Hit, Member, SearchQuery, search
from gateway.db import Database, new_id
from gateway.tenancy import repository as tenancy
from tests.fixtures.tenants import TestMandate, make_mandate

T = TypeVar("T")
_names = count()

# Runs something to its end while the search that calls it, in a thread, waits.
Meanwhile = Callable[[Coroutine[Any, Any, T]], T]


@lru_cache(maxsize=1)
def wordllama() -> Embedder:
    return build_embedder("wordllama")


@dataclass(frozen=True)
class Library:
    db: Database
    mandate_id: UUID
    users: dict[str, UUID]

    @classmethod
    async def open(cls, db: Database) -> "Library":
        mandate: TestMandate = await make_mandate(db)
        return cls(db, mandate.id, {str(role): user for role, user in mandate.users.items()})

    async def put(self, *texts: str, language: str = "en", heading: str = "", **described: Any) -> Loaded:
        """One document whose chunks are these texts."""
        document = ReadyDocument(
            texts=texts,
            source_id=described.pop("source_id", f"s{next(_names)}"),
            language=language,
            heading_path=heading,
            described=described,
        )
        return await self.put_documents([document])

    async def put_documents(self, documents: list[ReadyDocument]) -> Loaded:
        texts = [text for document in documents for text in document.texts]
        vectors = np.concatenate(
            [await wordllama().embed(texts[at : at + 256]) for at in range(0, len(texts), 256)]
        )
        async with self.db.tenant_session(self.mandate_id) as session:
            return await load_documents(session, wordllama().model, documents, vectors)

    async def revoke(self, connection_id: UUID) -> None:
        async with self.db.tenant_session(self.mandate_id) as session:
            await connections.revoke(session, connection_id)

    async def connect(self, who: str = "owner", state: str = "active") -> UUID:
        connection_id = new_id()
        async with self.db.tenant_session(self.mandate_id) as session:
            await connections.add(session, connection_id, "msft", self.users[who], state)
        return connection_id

    async def instance(self, *members: str) -> UUID:
        async with self.db.tenant_session(self.mandate_id) as session:
            instance_id = await tenancy.insert_feature_instance(session, "crm", "CRM")
            await tenancy.set_feature_members(session, instance_id, [self.users[who] for who in members])
        return instance_id

    async def find(self, q: str, who: str | None = "owner", **options: Any) -> list[Hit]:
        viewer = Member(self.mandate_id, self.users[who] if who else None)
        return (await search(self.db, wordllama(), viewer, SearchQuery(q=q, **options))).hits

    async def texts(self, q: str, who: str | None = "owner", **options: Any) -> list[str]:
        return [hit.text for hit in await self.find(q, who, **options)]
