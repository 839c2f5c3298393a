"""The corpus: originals, documents, chunks, vectors and the packed lexical index."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import BigInteger, ForeignKeyConstraint, UniqueConstraint, false, func
from sqlalchemy.orm import Mapped, mapped_column

from gateway.schema import Base, Tenant


def _of_mandate() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["mandate_id"], ["mandate.mandate_id"], ondelete="CASCADE")


def _of_document() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["mandate_id", "document_id"], ["document.mandate_id", "document.id"], ondelete="CASCADE"
    )


class Blob(Tenant, Base):
    __tablename__ = "blob"
    __table_args__ = (_of_mandate(),)

    sha256: Mapped[bytes] = mapped_column(primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    data: Mapped[bytes | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class BlobUpload(Tenant, Base):
    __tablename__ = "blob_upload"
    __table_args__ = (
        ForeignKeyConstraint(
            ["mandate_id", "sha256"], ["blob.mandate_id", "blob.sha256"], ondelete="CASCADE"
        ),
    )

    sha256: Mapped[bytes] = mapped_column(primary_key=True)
    principal: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    used: Mapped[bool] = mapped_column(server_default=false())  # by a document; until then it keeps its bytes


class Document(Tenant, Base):
    """One logical object: `(mandate, connection or none, sourceKind, sourceId)`."""

    __tablename__ = "document"
    __table_args__ = (
        _of_mandate(),
        UniqueConstraint(
            "mandate_id", "connection_id", "source_kind", "source_id", postgresql_nulls_not_distinct=True
        ),
        ForeignKeyConstraint(["mandate_id", "connection_id"], ["connection.mandate_id", "connection.id"]),
        ForeignKeyConstraint(["mandate_id", "blob_sha256"], ["blob.mandate_id", "blob.sha256"]),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID | None]
    source_kind: Mapped[str]
    source_id: Mapped[str]
    title: Mapped[str] = mapped_column(server_default="")
    uri: Mapped[str | None]
    mime_type: Mapped[str | None]
    language: Mapped[str | None]
    type: Mapped[str | None]
    tags: Mapped[list[str]]
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata")
    feature_code: Mapped[str | None]
    scope: Mapped[str]
    user_id: Mapped[UUID | None]
    feature_instance_id: Mapped[UUID | None]
    data_source_id: Mapped[UUID | None]
    parent_document_id: Mapped[UUID | None]
    neutralize: Mapped[bool] = mapped_column(server_default="false")
    content_version: Mapped[str | None]
    content_hash: Mapped[bytes]
    fingerprint: Mapped[bytes]
    revision: Mapped[int] = mapped_column(server_default="1")
    blob_sha256: Mapped[bytes]
    content_form: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str]
    reason: Mapped[str | None]
    indexed_revision: Mapped[int | None]
    indexed_version: Mapped[str | None]
    indexed_hash: Mapped[bytes | None]
    indexed_at: Mapped[datetime | None]
    verified_at: Mapped[datetime | None]
    chunk_count: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class FormerOriginal(Tenant, Base):
    """The bytes of an earlier revision: while that one is served still, until they are collected, and under legal hold."""

    __tablename__ = "former_original"
    __table_args__ = (
        _of_document(),
        ForeignKeyConstraint(["mandate_id", "sha256"], ["blob.mandate_id", "blob.sha256"]),
    )

    document_id: Mapped[UUID] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[bytes]
    content_hash: Mapped[bytes]
    mime_type: Mapped[str | None]
    size: Mapped[int] = mapped_column(BigInteger)
    replaced_at: Mapped[datetime] = mapped_column(server_default=func.now())


class DocumentText(Tenant, Base):
    """The kept (neutralised) text; every citation's offsets point into it."""

    __tablename__ = "document_text"
    __table_args__ = (_of_document(),)

    document_id: Mapped[UUID] = mapped_column(primary_key=True)
    text: Mapped[str]


class Segment(Tenant, Base):
    __tablename__ = "segment"
    __table_args__ = (_of_mandate(),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    owner_id: Mapped[UUID | None]
    directory: Mapped[bytes]
    chunks: Mapped[int]
    first_number: Mapped[int] = mapped_column(BigInteger)
    last_number: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[int] = mapped_column(server_default="1")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Posting(Tenant, Base):
    __tablename__ = "posting"

    term: Mapped[str] = mapped_column(primary_key=True)
    segment_id: Mapped[UUID] = mapped_column(primary_key=True)
    data: Mapped[bytes]


class Chunk(Tenant, Base):
    __tablename__ = "chunk"
    __table_args__ = (_of_document(),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    document_id: Mapped[UUID]
    ordinal: Mapped[int]
    text: Mapped[str]
    text_hash: Mapped[bytes]
    locator: Mapped[dict[str, Any]]
    heading_path: Mapped[str] = mapped_column(server_default="")
    title: Mapped[str] = mapped_column(server_default="")
    token_count: Mapped[int]
    language: Mapped[str]
    model: Mapped[str]


class TextVector(Tenant, Base):
    __tablename__ = "text_vector"
    __table_args__ = (_of_mandate(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    text_hash: Mapped[bytes] = mapped_column(primary_key=True)
    embedding: Mapped[Any] = mapped_column(HALFVEC())
    settled: Mapped[bool] = mapped_column(server_default="false")


class VectorClaim(Tenant, Base):
    __tablename__ = "vector_claim"
    __table_args__ = (_of_mandate(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    text_hash: Mapped[bytes] = mapped_column(primary_key=True)
    claimant: Mapped[UUID]
    claimed_until: Mapped[datetime]
