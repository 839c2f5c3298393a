"""The one statement of what protects a tenant table, so that no migration can forget a part of it."""

from alembic import op

CURRENT_MANDATE = "nullif(current_setting('app.mandate_id', true), '')::uuid"

RUNTIME, SWEEPER, READONLY = "catchment_runtime", "catchment_sweeper", "catchment_readonly"


def protect(*tables: str) -> None:
    """Row-level security, enabled and forced; the runtime role reads and writes its tenant, read-only reads it."""
    for table in tables:
        op.execute(f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY')
        op.execute(f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY')
        op.execute(
            f'CREATE POLICY tenant ON "{table}" USING (mandate_id = {CURRENT_MANDATE}) '
            f"WITH CHECK (mandate_id = {CURRENT_MANDATE})"
        )
        op.execute(f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{table}" TO {RUNTIME}')
        op.execute(f'GRANT SELECT ON "{table}" TO {READONLY}')


def open_routing(*tables: str) -> None:
    """Tenant-free routing tables hold hashes and ids only; support's read-only role does not need them."""
    for table in tables:
        op.execute(f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{table}" TO {RUNTIME}')


def let_sweep(table: str, columns: str) -> None:
    """The sweeper reads these columns across tenants, and nothing else."""
    op.execute(f'CREATE POLICY sweep ON "{table}" FOR SELECT TO {SWEEPER} USING (true)')
    op.execute(f'GRANT SELECT ({columns}) ON "{table}" TO {SWEEPER}')
