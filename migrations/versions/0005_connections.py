"""Connected accounts: consent, sealed tokens, what was listed at the vendor's, what failed, what is watched."""

from alembic import op

from migrations.tenant_tables import open_routing, protect

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = ("data_source", "remote_item", "item_failure", "watch", "webhook_delivery")
ROUTING = ("oauth_state", "webhook_route")


def upgrade() -> None:
    op.execute(
        """
        -- After a purge only id, authority, state and times stay: whose it was is gone too.
        ALTER TABLE connection
            ALTER COLUMN user_id DROP NOT NULL,
            ADD COLUMN surfaces text[] NOT NULL DEFAULT '{}',
            ADD COLUMN policy jsonb NOT NULL DEFAULT '{}',
            ADD COLUMN auto_start boolean NOT NULL DEFAULT true,
            ADD COLUMN account jsonb NOT NULL DEFAULT '{}',
            ADD COLUMN sealed_tokens bytea,
            ADD COLUMN token_expires_at timestamptz,
            ADD COLUMN paused boolean NOT NULL DEFAULT false,
            ADD COLUMN reason text,
            ADD COLUMN established_at timestamptz,
            ADD COLUMN reauth_since timestamptz,
            ADD COLUMN revoked_at timestamptz,
            ADD COLUMN purged_at timestamptz,
            ADD CONSTRAINT connection_has_a_user CHECK (user_id IS NOT NULL OR state = 'revoked');
        CREATE INDEX connection_user ON connection (mandate_id, user_id);

        -- One surface of one connection (or, later, a managed source without one). `cursor` is the surface's own word;
        -- `listing` gathers what the running listing has completed; `held` says what waits for a person.
        CREATE TABLE data_source (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            connection_id uuid,
            user_id uuid,
            surface text NOT NULL,
            adapter_kind text NOT NULL,
            external_root text NOT NULL DEFAULT '',
            feature_code text,
            scope text NOT NULL CHECK (scope IN ('personal', 'mandate')),
            cursor text,
            phase text NOT NULL DEFAULT 'new' CHECK (phase IN ('new', 'listing', 'delta', 'lost')),
            listing_generation integer NOT NULL DEFAULT 0,
            listing jsonb NOT NULL DEFAULT '{}',
            held jsonb,
            run jsonb NOT NULL DEFAULT '{}',
            last_sync_at timestamptz,
            last_error text,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id),
            UNIQUE NULLS NOT DISTINCT (mandate_id, connection_id, surface, external_root),
            FOREIGN KEY (mandate_id, connection_id) REFERENCES connection (mandate_id, id) ON DELETE CASCADE
        );

        -- The ledger of what the vendor listed: the answer to "why is this file not here?".
        CREATE TABLE remote_item (
            mandate_id uuid NOT NULL,
            data_source_id uuid NOT NULL,
            external_id text NOT NULL,
            connection_id uuid,
            source_kind text NOT NULL,
            name text NOT NULL DEFAULT '',
            container_id text NOT NULL,
            parent_id text,
            path text NOT NULL DEFAULT '',
            uri text,
            mime_type text,
            size bigint,
            version text,
            fetched_version text,
            modified_at timestamptz,
            metadata jsonb NOT NULL DEFAULT '{}',
            handle jsonb NOT NULL DEFAULT '{}',
            state text NOT NULL CHECK (state IN
                ('pending', 'handed', 'skipped', 'failed', 'deleted', 'held', 'folder')),
            reason text,
            document_id uuid,
            urgent boolean NOT NULL DEFAULT false,
            with_parent boolean NOT NULL DEFAULT false, -- found by reading its parent; no listing names it
            generation integer NOT NULL,
            seen_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, data_source_id, external_id),
            FOREIGN KEY (mandate_id, data_source_id) REFERENCES data_source (mandate_id, id) ON DELETE CASCADE
        );
        CREATE INDEX remote_item_pending ON remote_item
            (mandate_id, data_source_id, urgent DESC, modified_at DESC NULLS LAST) WHERE state = 'pending';
        CREATE INDEX remote_item_parent ON remote_item (mandate_id, data_source_id, parent_id)
            WHERE parent_id IS NOT NULL;
        CREATE INDEX remote_item_container ON remote_item (mandate_id, data_source_id, container_id, generation);
        CREATE INDEX remote_item_external ON remote_item (mandate_id, external_id);
        CREATE INDEX remote_item_document ON remote_item (mandate_id, document_id) WHERE document_id IS NOT NULL;

        -- Failures have a ledger and a retry schedule of their own and never hold the cursor.
        CREATE TABLE item_failure (
            mandate_id uuid NOT NULL,
            id uuid NOT NULL,
            data_source_id uuid NOT NULL,
            external_id text NOT NULL,
            name text NOT NULL DEFAULT '',
            reason text NOT NULL,
            detail text NOT NULL DEFAULT '',
            attempts integer NOT NULL DEFAULT 1,
            retry_at timestamptz,
            first_at timestamptz NOT NULL DEFAULT now(),
            last_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id),
            UNIQUE (mandate_id, data_source_id, external_id),
            FOREIGN KEY (mandate_id, data_source_id) REFERENCES data_source (mandate_id, id) ON DELETE CASCADE
        );

        -- Push subscriptions at the vendor's.
        CREATE TABLE watch (
            mandate_id uuid NOT NULL,
            id uuid NOT NULL,
            data_source_id uuid NOT NULL,
            vendor_id text NOT NULL,
            resource text NOT NULL,
            sealed_secret bytea NOT NULL,
            details jsonb NOT NULL DEFAULT '{}',
            expires_at timestamptz NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id),
            UNIQUE (mandate_id, data_source_id, vendor_id),
            FOREIGN KEY (mandate_id, data_source_id) REFERENCES data_source (mandate_id, id) ON DELETE CASCADE
        );
        -- Deliveries already taken, so that a replay does nothing.
        CREATE TABLE webhook_delivery (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            authority text NOT NULL,
            delivery_id text NOT NULL,
            data_source_id uuid NOT NULL,
            seen_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, authority, delivery_id)
        );
        CREATE INDEX webhook_delivery_age ON webhook_delivery (mandate_id, seen_at);

        -- Tenant-free: what a browser or vendor brings back before a mandate is known. Hashes, ids and sealed flows.
        CREATE TABLE oauth_state (
            state_hash bytea PRIMARY KEY,
            authority text NOT NULL,
            mandate_id uuid NOT NULL,
            connection_id uuid NOT NULL,
            user_id uuid NOT NULL,
            browser_hash bytea NOT NULL,
            sealed_flow bytea NOT NULL,
            expires_at timestamptz NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now()
        );
        CREATE TABLE webhook_route (
            authority text NOT NULL,
            vendor_id text NOT NULL,
            mandate_id uuid NOT NULL,
            watch_id uuid NOT NULL,
            PRIMARY KEY (authority, vendor_id)
        );
        """
    )
    protect(*TABLES)
    open_routing(*ROUTING)


def downgrade() -> None:
    for table in (*reversed(ROUTING), *reversed(TABLES)):
        op.execute(f'DROP TABLE "{table}"')
    op.execute(
        """
        DROP INDEX connection_user;
        ALTER TABLE connection DROP CONSTRAINT connection_has_a_user,
            DROP COLUMN surfaces, DROP COLUMN policy, DROP COLUMN auto_start, DROP COLUMN account,
            DROP COLUMN sealed_tokens, DROP COLUMN token_expires_at, DROP COLUMN paused, DROP COLUMN reason,
            DROP COLUMN established_at, DROP COLUMN reauth_since, DROP COLUMN revoked_at, DROP COLUMN purged_at,
            ALTER COLUMN user_id SET NOT NULL;
        """
    )
