"""What is asked, what is cited, what was answered: the query log, citations and answers."""

from alembic import op

from migrations.tenant_tables import protect

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = ("query_log", "query_hit", "citation", "answer")


def upgrade() -> None:
    op.execute(
        """
        -- One row per search. `q` and `filters` are blanked when a document the search had found is erased: the words of a
        -- question can give away what it found (promise 5). Counts and times stay.
        CREATE TABLE query_log (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            at timestamptz NOT NULL,
            origin text NOT NULL CHECK (origin IN ('sdk', 'dashboard', 'cli', 'mcp')),
            agent_deployment_id text,
            user_id uuid,
            q text,
            filters jsonb NOT NULL DEFAULT '{}',
            result_count integer NOT NULL,
            answered boolean NOT NULL, -- a hit was about the question, not merely nearest to it
            top_score real,
            took_ms integer NOT NULL,
            PRIMARY KEY (mandate_id, id)
        );
        CREATE INDEX query_log_at ON query_log (mandate_id, at);
        CREATE INDEX query_log_user ON query_log (mandate_id, user_id) WHERE user_id IS NOT NULL;

        -- Which documents a search found, so that an erasure knows whose words to forget.
        CREATE TABLE query_hit (
            mandate_id uuid NOT NULL,
            document_id uuid NOT NULL,
            query_id uuid NOT NULL,
            PRIMARY KEY (mandate_id, document_id, query_id),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE,
            FOREIGN KEY (mandate_id, query_id) REFERENCES query_log (mandate_id, id) ON DELETE CASCADE
        );
        CREATE INDEX query_hit_query ON query_hit (mandate_id, query_id);

        -- One row per turn and cited chunk. It goes with its document; an edit that replaces the chunk leaves it, so that
        -- an entry keeps its citations.
        CREATE TABLE citation (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            turn_id text NOT NULL,
            chunk_id uuid NOT NULL,
            document_id uuid NOT NULL,
            agent_deployment_id text,
            user_id uuid,
            cited_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, turn_id, chunk_id),
            FOREIGN KEY (mandate_id, document_id) REFERENCES document (mandate_id, id) ON DELETE CASCADE
        );
        CREATE INDEX citation_document ON citation (mandate_id, document_id, cited_at);
        CREATE INDEX citation_at ON citation (mandate_id, cited_at);

        -- One row per turn; `id` is the turn. `model` is the chat model, or 'extracts' when none was configured.
        CREATE TABLE answer (
            mandate_id uuid NOT NULL REFERENCES mandate ON DELETE CASCADE,
            id uuid NOT NULL,
            conversation_id uuid NOT NULL,
            asked_by text NOT NULL,
            user_id uuid,
            question text NOT NULL,
            text text NOT NULL,
            model text NOT NULL,
            complete boolean NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (mandate_id, id)
        );
        CREATE INDEX answer_conversation ON answer (mandate_id, conversation_id, created_at);
        CREATE INDEX answer_at ON answer (mandate_id, created_at);
        CREATE INDEX answer_user ON answer (mandate_id, user_id) WHERE user_id IS NOT NULL;

        -- What retention goes by.
        CREATE INDEX timeline_at ON timeline (mandate_id, at);
        """
    )
    protect(*TABLES)


def downgrade() -> None:
    op.execute("DROP INDEX timeline_at")
    for table in reversed(TABLES):
        op.execute(f'DROP TABLE "{table}"')
