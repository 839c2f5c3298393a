"""${message}

Every migration must work with the code that runs now: lock_timeout is set in env.py, removal takes two releases.
"""

from alembic import op

from migrations.tenant_tables import protect

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
