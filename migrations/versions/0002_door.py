"""The door and the corpus behind it: ledger, documents, chunks, vectors, postings, receipts."""

from alembic import op

from migrations.tenant_tables import let_sweep, protect

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = (
    "connection",
    "blob",
    "blob_upload",
    "document",
    "document_text",
    "segment",
    "posting",
    "chunk",
    "text_vector",
    "vector_claim",
    "job",
    "outbox",
    "timeline",
    "receipt",
    "spend",
)


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE connection (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            authority text NOT NULL,
            user_id uuid NOT NULL,
            state text NOT NULL CHECK (state IN ('pending', 'active', 'needs_reauth', 'revoked')),
            generation integer NOT NULL DEFAULT 1,
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id)
        );

        -- Original bytes. Small ones live here, so that a caller's transaction carries them; large ones in the blob store.
        CREATE TABLE blob (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            sha256 bytea NOT NULL CHECK (length(sha256) = 32),
            size bigint NOT NULL,
            data bytea,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, sha256)
        );
        -- Who uploaded which bytes: a request may refer only to what its own principal brought.
        CREATE TABLE blob_upload (
            mandate_id uuid NOT NULL,
            sha256 bytea NOT NULL,
            principal text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, sha256, principal),
            FOREIGN KEY (mandate_id, sha256) REFERENCES blob (mandate_id, sha256) ON DELETE CASCADE
        );

        CREATE TABLE document (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            connection_id uuid,
            source_kind text NOT NULL,
            source_id text NOT NULL,
            -- description
            title text NOT NULL DEFAULT '',
            uri text,
            mime_type text,
            language text,
            type text,
            tags text[] NOT NULL DEFAULT '{}',
            metadata jsonb NOT NULL DEFAULT '{}',
            feature_code text,
            -- who may see it
            scope text NOT NULL CHECK (scope IN ('personal', 'featureInstance', 'mandate', 'global')),
            user_id uuid,
            feature_instance_id uuid,
            -- provenance
            data_source_id uuid,
            parent_document_id uuid,
            neutralize boolean NOT NULL DEFAULT false,
            -- idempotency: written by the façade alone
            content_version text,
            content_hash bytea NOT NULL,
            fingerprint bytea NOT NULL,
            revision integer NOT NULL DEFAULT 1,
            blob_sha256 bytea NOT NULL,
            content_form text NOT NULL,
            size bigint NOT NULL,
            -- what is served
            status text NOT NULL CHECK (status IN
                ('pending', 'extracted', 'embedding', 'indexed', 'failed', 'skipped', 'cancelled')),
            reason text,
            indexed_revision integer,
            indexed_version text,
            indexed_hash bytea,
            indexed_at timestamptz,
            verified_at timestamptz,
            chunk_count integer NOT NULL DEFAULT 0,
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id),
            UNIQUE NULLS NOT DISTINCT (mandate_id, connection_id, source_kind, source_id),
            FOREIGN KEY (mandate_id, connection_id) REFERENCES connection (mandate_id, id),
            FOREIGN KEY (mandate_id, blob_sha256) REFERENCES blob (mandate_id, sha256),
            CHECK (scope <> 'personal' OR user_id IS NOT NULL),
            CHECK (scope <> 'featureInstance' OR feature_instance_id IS NOT NULL)
        );
        CREATE INDEX document_browse ON document (mandate_id, created_at DESC, id DESC);
        CREATE INDEX document_source ON document (mandate_id, source_id);
        CREATE INDEX document_blob ON document (mandate_id, blob_sha256);
        CREATE INDEX document_user ON document (mandate_id, user_id) WHERE user_id IS NOT NULL;
        CREATE INDEX document_data_source ON document (mandate_id, data_source_id) WHERE data_source_id IS NOT NULL;
        CREATE INDEX document_parent ON document (mandate_id, parent_document_id)
            WHERE parent_document_id IS NOT NULL;

        CREATE TABLE document_text (
            mandate_id uuid NOT NULL,
            document_id uuid NOT NULL,
            text text NOT NULL,
            PRIMARY KEY (mandate_id, document_id),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE
        );

        -- A segment of the lexical index belongs to one owner (a connection, a source, or neither), so that a purge
        -- drops whole segments. `directory` maps local ordinals to chunk numbers and lengths; the numbers lie between first
        -- and last, which finds the segment of a chunk without a column on the chunk that every merge would rewrite.
        CREATE TABLE segment (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            owner_id uuid,
            directory bytea NOT NULL,
            chunks integer NOT NULL,
            first_number bigint NOT NULL,
            last_number bigint NOT NULL,
            version integer NOT NULL DEFAULT 1,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id)
        );
        -- No foreign key: a store batch writes thousands of rows, and a trigger per row would cost more than the row.
        CREATE TABLE posting (
            mandate_id uuid NOT NULL,
            term text NOT NULL,
            segment_id uuid NOT NULL,
            data bytea NOT NULL,
            PRIMARY KEY (mandate_id, term, segment_id)
        );
        ALTER TABLE posting ALTER COLUMN data SET STORAGE MAIN;
        CREATE INDEX posting_segment ON posting (mandate_id, segment_id);

        CREATE SEQUENCE chunk_number;
        GRANT USAGE ON SEQUENCE chunk_number TO catchment_runtime;
        CREATE TABLE chunk (
            mandate_id uuid NOT NULL,
            id uuid NOT NULL,
            number bigint NOT NULL,
            document_id uuid NOT NULL,
            ordinal integer NOT NULL,
            text text NOT NULL,
            text_hash bytea NOT NULL CHECK (length(text_hash) = 32),
            locator jsonb NOT NULL,
            heading_path text NOT NULL DEFAULT '',
            token_count integer NOT NULL,
            language text NOT NULL,
            model text NOT NULL,
            PRIMARY KEY (mandate_id, id),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE
        );
        CREATE INDEX chunk_document ON chunk (mandate_id, document_id, ordinal);
        CREATE INDEX chunk_text_hash ON chunk (mandate_id, text_hash);
        CREATE INDEX chunk_number_lookup ON chunk (mandate_id, number);

        -- (`vector` is the name of pgvector's type.) Narrow and immutable: renames and metadata never touch the index over it. `settled` rows are in the HNSW
        -- index; the unsettled tail is searched exactly and moved in the background.
        CREATE TABLE text_vector (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            model text NOT NULL,
            text_hash bytea NOT NULL,
            embedding halfvec NOT NULL,
            settled boolean NOT NULL DEFAULT false,
            PRIMARY KEY (mandate_id, model, text_hash)
        );
        ALTER TABLE text_vector ALTER COLUMN embedding SET STORAGE PLAIN;
        CREATE INDEX vector_tail ON text_vector (mandate_id, model) WHERE NOT settled;
        -- Who is embedding a text right now, so that nobody else does.
        CREATE TABLE vector_claim (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            model text NOT NULL,
            text_hash bytea NOT NULL,
            claimant uuid NOT NULL,
            claimed_until timestamptz NOT NULL,
            PRIMARY KEY (mandate_id, model, text_hash)
        );

        CREATE TABLE job (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            kind text NOT NULL,
            lane text NOT NULL CHECK (lane IN ('interactive', 'delta', 'backfill')),
            status text NOT NULL CHECK (status IN ('pending', 'extracted', 'embedding', 'indexed', 'failed', 'skipped',
                'superseded', 'cancelled')),
            document_id uuid,
            revision integer,
            connection_id uuid,
            connection_generation integer,
            dedupe_key text,
            payload jsonb NOT NULL DEFAULT '{}',
            attempts integer NOT NULL DEFAULT 0,
            crashes integer NOT NULL DEFAULT 0,
            deaths integer NOT NULL DEFAULT 0,
            solo boolean NOT NULL DEFAULT false,
            run_after timestamptz NOT NULL DEFAULT now(),
            lease_until timestamptz,
            fence integer NOT NULL DEFAULT 0,
            reason text,
            error text,
            created_at timestamptz NOT NULL DEFAULT now(),
            finished_at timestamptz,
            PRIMARY KEY (mandate_id, id),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE,
            -- a finished job has an end and holds no lease
            CHECK ((finished_at IS NOT NULL) = (status NOT IN ('pending', 'extracted', 'embedding'))),
            CHECK (finished_at IS NULL OR lease_until IS NULL)
        );
        CREATE UNIQUE INDEX job_one_live ON job (mandate_id, dedupe_key)
            WHERE status IN ('pending', 'extracted', 'embedding');
        CREATE INDEX job_due ON job (mandate_id, lane, run_after, id)
            WHERE status IN ('pending', 'extracted', 'embedding');
        CREATE INDEX job_document ON job (mandate_id, document_id, created_at DESC);
        CREATE INDEX job_browse ON job (mandate_id, created_at DESC, id DESC);

        CREATE TABLE outbox (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            topic text NOT NULL CHECK (topic IN ('bell', 'event')),
            lane text NOT NULL,
            payload jsonb NOT NULL DEFAULT '{}',
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id)
        );

        CREATE TABLE timeline (
            mandate_id uuid NOT NULL,
            id uuid NOT NULL,
            document_id uuid NOT NULL,
            job_id uuid,
            status text NOT NULL,
            reason text,
            detail jsonb NOT NULL DEFAULT '{}',
            at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE
        );
        CREATE INDEX timeline_document ON timeline (mandate_id, document_id, at);

        CREATE TABLE receipt (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            subject text NOT NULL CHECK (subject IN ('document', 'user', 'source', 'connection', 'mandate')),
            subject_id text NOT NULL,
            status text NOT NULL CHECK (status IN ('running', 'done')),
            reason text NOT NULL,
            counts jsonb NOT NULL DEFAULT '{}',
            created_at timestamptz NOT NULL DEFAULT now(),
            finished_at timestamptz,
            PRIMARY KEY (mandate_id, id)
        );

        CREATE TABLE spend (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            day date NOT NULL,
            model text NOT NULL,
            texts bigint NOT NULL,
            tokens bigint NOT NULL,
            cost numeric(18, 6) NOT NULL,
            PRIMARY KEY (mandate_id, day, model)
        );
        """
    )
    protect(*TABLES)
    let_sweep("job", "mandate_id, id, lane, status, run_after, lease_until, created_at")
    let_sweep("outbox", "mandate_id, id, topic, lane, created_at")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.execute(f'DROP TABLE "{table}"')
    op.execute("DROP SEQUENCE chunk_number")
