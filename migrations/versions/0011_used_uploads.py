"""An upload that waits to be used keeps its bytes when a document that has the same ones is erased."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Of what is there already nobody knows; taken for used, it holds no erasure up.
    op.execute("ALTER TABLE blob_upload ADD COLUMN used boolean NOT NULL DEFAULT true")
    op.execute("ALTER TABLE blob_upload ALTER COLUMN used SET DEFAULT false")


def downgrade() -> None:
    op.execute("ALTER TABLE blob_upload DROP COLUMN used")
