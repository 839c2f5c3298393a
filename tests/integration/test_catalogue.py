"""No table without protection: the catalogue says so, and taking any part of the protection away is noticed."""

import psycopg
import pytest

from tests.fixtures.stores import DatabaseUrls
from tests.integration.catalogue import findings


def test_every_table_is_protected_or_on_the_explicit_list(database_urls: DatabaseUrls) -> None:
    assert findings(database_urls.owner_url) == []


@pytest.mark.parametrize(
    ("mutation", "finding"),
    [
        ('ALTER TABLE "user" NO FORCE ROW LEVEL SECURITY', "user: row-level security is not forced"),
        ("ALTER TABLE api_key DISABLE ROW LEVEL SECURITY", "api_key: row-level security is off"),
        ("DROP POLICY tenant ON membership", "membership: 0 policies for everybody instead of one"),
        (
            "ALTER POLICY tenant ON session USING (true)",
            "session: policy tenant does not bind both reading and writing to the tenant",
        ),
        (
            "ALTER POLICY tenant ON session WITH CHECK (true)",
            "session: policy tenant does not bind both reading and writing to the tenant",
        ),
        ("CREATE POLICY more ON mandate USING (true)", "mandate: 2 policies for everybody instead of one"),
        (
            "CREATE POLICY more ON mandate TO catchment_runtime USING (true)",
            "mandate: policy more lets ['catchment_runtime'] ALL",
        ),
        (
            "CREATE TABLE loose (id uuid PRIMARY KEY)",
            "loose has no mandate_id and is not on the list of tenant-free tables",
        ),
        ("CREATE UNIQUE INDEX by_name ON mandate (name)", "mandate: key by_name starts with name"),
        (
            'CREATE UNIQUE INDEX by_mail ON "user" (lower(email))',
            "user: key by_mail starts with (expression)",
        ),
        (
            "ALTER TABLE mandate ADD FOREIGN KEY (slug) REFERENCES mandate_route (slug)",
            "mandate: foreign key mandate_slug_fkey leads to mandate_route.slug",
        ),
        ('CREATE VIEW everyone AS SELECT * FROM "user"', "everyone is a view without security_invoker"),
        ("ALTER TABLE heartbeat OWNER TO catchment_runtime", "heartbeat is owned by the runtime role"),
        ("GRANT SELECT ON mandate TO catchment_sweeper", "the sweeper may SELECT all of mandate"),
    ],
)
def test_a_missing_protection_is_found(scratch: DatabaseUrls, mutation: str, finding: str) -> None:
    with psycopg.connect(scratch.superuser_url, autocommit=True) as admin:
        admin.execute(mutation)
    assert finding in findings(scratch.superuser_url)
