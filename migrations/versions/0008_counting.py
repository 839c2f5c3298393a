"""Counting a large corpus without reading it: who may see what, and which document a passage belongs to, by index alone."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        -- Few combinations of these occur, so the index keeps each once and is a fiftieth of the table. Totals are
        -- counted in it, and what failed or waits is found in it.
        CREATE INDEX document_tally ON document
            (mandate_id, status, source_kind, type, scope, user_id, connection_id, feature_instance_id);

        -- What became of a connection's items and documents, by surface.
        DROP INDEX document_data_source;
        CREATE INDEX document_data_source ON document (mandate_id, data_source_id, status)
            WHERE data_source_id IS NOT NULL;
        CREATE INDEX remote_item_state ON remote_item (mandate_id, data_source_id, state);
        CREATE INDEX remote_item_undocumented ON remote_item (mandate_id, data_source_id)
            WHERE state = 'handed' AND document_id IS NULL;

        -- A frequent word is in thousands of passages; their documents are told without their texts.
        DROP INDEX chunk_number_lookup;
        CREATE INDEX chunk_number_lookup ON chunk (mandate_id, number) INCLUDE (document_id);
        """
    )


def downgrade() -> None:
    op.execute(
        """
        DROP INDEX chunk_number_lookup;
        CREATE INDEX chunk_number_lookup ON chunk (mandate_id, number);
        DROP INDEX remote_item_undocumented;
        DROP INDEX remote_item_state;
        DROP INDEX document_data_source;
        CREATE INDEX document_data_source ON document (mandate_id, data_source_id) WHERE data_source_id IS NOT NULL;
        DROP INDEX document_tally;
        """
    )
