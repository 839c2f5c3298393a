"""Mandates, users, keys, sessions, and the routing tables that lead to them."""

from alembic import op

from migrations.tenant_tables import open_routing, protect

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TENANT_TABLES = ("mandate", "user", "membership", "feature_instance", "feature_member", "api_key", "session")
ROUTING_TABLES = ("mandate_route", "key_route", "session_route", "heartbeat")


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE mandate (
            mandate_id uuid PRIMARY KEY,
            slug text NOT NULL,
            name text NOT NULL,
            policy jsonb NOT NULL DEFAULT '{}',
            created_at timestamptz NOT NULL DEFAULT now()
        );
        CREATE TABLE mandate_route (
            slug text PRIMARY KEY CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
            mandate_id uuid NOT NULL UNIQUE,
            created_at timestamptz NOT NULL DEFAULT now()
        );
        CREATE TABLE "user" (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            email text NOT NULL,
            display_name text NOT NULL,
            locale text NOT NULL DEFAULT 'en',
            timezone text NOT NULL DEFAULT 'UTC',
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id),
            UNIQUE (mandate_id, email)
        );
        CREATE TABLE membership (
            mandate_id uuid NOT NULL,
            user_id uuid NOT NULL,
            role text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
            joined_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, user_id),
            FOREIGN KEY (mandate_id, user_id) REFERENCES "user" (mandate_id, id) ON DELETE CASCADE
        );
        CREATE TABLE feature_instance (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            feature_code text NOT NULL,
            label text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id)
        );
        CREATE TABLE feature_member (
            mandate_id uuid NOT NULL,
            feature_instance_id uuid NOT NULL,
            user_id uuid NOT NULL,
            PRIMARY KEY (mandate_id, feature_instance_id, user_id),
            FOREIGN KEY (mandate_id, feature_instance_id) REFERENCES feature_instance (mandate_id, id) ON DELETE CASCADE,
            FOREIGN KEY (mandate_id, user_id) REFERENCES membership (mandate_id, user_id) ON DELETE CASCADE
        );
        CREATE TABLE api_key (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            name text NOT NULL,
            hint text NOT NULL,
            user_id uuid,
            service text,
            scopes text[] NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            expires_at timestamptz,
            revoked_at timestamptz,
            PRIMARY KEY (mandate_id, id),
            FOREIGN KEY (mandate_id, user_id) REFERENCES membership (mandate_id, user_id) ON DELETE CASCADE,
            CHECK ((user_id IS NULL) <> (service IS NULL))
        );
        CREATE TABLE key_route (
            key_hash bytea PRIMARY KEY,
            mandate_id uuid NOT NULL,
            key_id uuid NOT NULL
        );
        CREATE INDEX key_route_key ON key_route (mandate_id, key_id);
        CREATE TABLE session (
            mandate_id uuid NOT NULL,
            id uuid NOT NULL,
            user_id uuid NOT NULL,
            csrf_token text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            expires_at timestamptz NOT NULL,
            PRIMARY KEY (mandate_id, id),
            FOREIGN KEY (mandate_id, user_id) REFERENCES membership (mandate_id, user_id) ON DELETE CASCADE
        );
        CREATE TABLE session_route (
            token_hash bytea PRIMARY KEY,
            kind text NOT NULL CHECK (kind IN ('login', 'session')),
            mandate_id uuid NOT NULL,
            subject_id uuid NOT NULL,
            expires_at timestamptz NOT NULL
        );
        CREATE INDEX session_route_subject ON session_route (mandate_id, subject_id);
        CREATE TABLE heartbeat (
            name text PRIMARY KEY,
            beat_at timestamptz NOT NULL DEFAULT now()
        );
        """
    )
    protect(*TENANT_TABLES)
    open_routing(*ROUTING_TABLES)
    op.execute("GRANT USAGE ON SCHEMA public TO catchment_runtime, catchment_sweeper, catchment_readonly")
    # /readyz compares the schema with the code, so the runtime role may read the revision.
    op.execute("GRANT SELECT ON alembic_version TO catchment_runtime, catchment_readonly")


def downgrade() -> None:
    for table in (*reversed(TENANT_TABLES), *ROUTING_TABLES):
        op.execute(f'DROP TABLE "{table}"')
