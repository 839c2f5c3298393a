"""Some items are only ever told by a listing, content and all: what was kept out of those cannot be fetched later."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE remote_item ADD COLUMN with_listing boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    op.execute("ALTER TABLE remote_item DROP COLUMN with_listing")
