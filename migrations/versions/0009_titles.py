"""A document is found by its title too, through its first chunk, which keeps the title whose words the index holds."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # What is indexed already gets its title from the workers' housekeeping.
    op.execute("ALTER TABLE chunk ADD COLUMN title text NOT NULL DEFAULT ''")


def downgrade() -> None:
    op.execute("ALTER TABLE chunk DROP COLUMN title")
