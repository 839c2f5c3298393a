"""What search reads on every query: the languages a mandate holds, and whether its vectors are in the HNSW index."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # One hop per language instead of a scan; entries repeat, so the index is small.
    op.execute("CREATE INDEX chunk_language ON chunk (mandate_id, language)")
    # The HNSW indexes themselves, one per model, are built by the settler when a mandate is large enough.
    op.execute("CREATE INDEX vector_settled ON text_vector (mandate_id, model) WHERE settled")


def downgrade() -> None:
    op.execute("DROP INDEX vector_settled")
    op.execute("DROP INDEX chunk_language")
