"""A document knows the originals of its earlier revisions for as long as somebody needs them."""

from alembic import op

from migrations.tenant_tables import protect

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE former_original (
            mandate_id uuid NOT NULL,
            document_id uuid NOT NULL,
            revision integer NOT NULL,
            sha256 bytea NOT NULL,
            content_hash bytea NOT NULL,
            mime_type text,
            size bigint NOT NULL,
            replaced_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, document_id, revision),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE,
            FOREIGN KEY (mandate_id, sha256) REFERENCES blob (mandate_id, sha256)
        );
        CREATE INDEX former_original_blob ON former_original (mandate_id, sha256);
        """
    )
    protect("former_original")


def downgrade() -> None:
    op.execute("DROP TABLE former_original")
