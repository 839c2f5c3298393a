"""What is personal is somebody's own: two users may bring the same thing without meeting each other."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        -- The logical object: (mandate, connection or none, kind, source id) and, where no connection says whose it is,
        -- the user of a personal one.
        CREATE UNIQUE INDEX document_object ON document (mandate_id, connection_id, source_kind, source_id,
            (CASE WHEN connection_id IS NULL AND scope = 'personal' THEN user_id END)) NULLS NOT DISTINCT;
        ALTER TABLE document DROP CONSTRAINT document_mandate_id_connection_id_source_kind_source_id_key;
        """
    )


def downgrade() -> None:
    op.execute(
        """
        ALTER TABLE document ADD CONSTRAINT document_mandate_id_connection_id_source_kind_source_id_key
            UNIQUE NULLS NOT DISTINCT (mandate_id, connection_id, source_kind, source_id);
        DROP INDEX document_object;
        """
    )
