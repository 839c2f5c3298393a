"""What of a connection could not be read is named on its page, wherever on the way it happened, each with its retry."""

import pytest
from sqlalchemy import text

from gateway.db import Database, new_id
from tests.fixtures.tenants import SignIn, TestMandate
from tests.integration.console.conftest import Seen
from tests.integration.console.test_rules import connection_of

pytestmark = pytest.mark.usefixtures("app")


async def test_what_was_fetched_and_could_not_be_read_is_a_failure_too(
    sign_in: SignIn, db: Database, mandate: TestMandate, hostile: Seen
) -> None:
    made, source = await connection_of(db, mandate, "owner"), new_id()
    values = {"mandate": mandate.id, "connection": made, "source": source, "document": hostile.document_id}
    async with db.tenant_session(mandate.id) as session:
        for statement in (
            (
                "INSERT INTO data_source (mandate_id, id, connection_id, surface, adapter_kind, scope) "
                "VALUES (:mandate, :source, :connection, 'sharepoint', 'msft', 'personal')"
            ),
            (
                "UPDATE document SET connection_id = :connection, data_source_id = :source, status = 'failed', "
                "reason = 'damaged' WHERE id = :document"
            ),
            (
                "INSERT INTO remote_item (mandate_id, data_source_id, external_id, connection_id, source_kind, name, "
                "container_id, state, generation, document_id) VALUES (:mandate, :source, 'x', :connection, "
                "'sharepoint_item', 'x', 'drive', 'handed', 1, :document)"
            ),
        ):
            await session.execute(text(statement), values)
    browser = await sign_in(mandate.id, mandate.users["owner"])
    page = await browser.get(f"/connections/{made}")
    assert "No failures." not in page.text
    assert f'action="/connections/{made}/failures/{hostile.document_id}/retry"' in page.text
    assert "<script>alert" not in page.text


async def test_why_it_failed_is_said_in_german_where_there_is_a_word_for_it(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate)
    details = {"a": "the file has no bytes", "b": "status 418"}
    async with db.tenant_session(mandate.id) as session:
        values = {"mandate": mandate.id, "connection": made, "source": new_id()}
        await session.execute(
            text(
                "INSERT INTO data_source (mandate_id, id, connection_id, surface, adapter_kind, scope) "
                "VALUES (:mandate, :source, :connection, 'sharepoint', 'msft', 'personal')"
            ),
            values,
        )
        for name, detail in details.items():
            await session.execute(
                text(
                    "INSERT INTO item_failure (mandate_id, id, data_source_id, external_id, name, reason, detail, attempts) "
                    "VALUES (:mandate, :id, :source, :name, :name, 'empty', :detail, 1)"
                ),
                values | {"id": new_id(), "name": name, "detail": detail},
            )
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = (await browser.get(f"/connections/{made}", headers={"Accept-Language": "de"})).text
    assert '<span class="quiet">die Datei ist leer</span>' in page
    assert '<span class="quiet" lang="en">status 418</span>' in page
