"""What protects tenants, read from Postgres' own catalogue. Used by the catalogue test and by its mutations."""

import psycopg

from gateway.schema import TENANT_FREE_TABLES

TABLES = """
SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'mandate_id' AND a.attnotnull
               AND NOT a.attisdropped) AS has_mandate,
       pg_get_userbyid(c.relowner) AS owner
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY 1
"""
POLICIES = """
SELECT tablename, policyname, cmd, roles::text[], qual, with_check FROM pg_policies WHERE schemaname = 'public'
"""
# Primary, unique and foreign keys, and unique indexes that no constraint stands for.
KEYS = """
SELECT c.relname, con.conname AS key, a.attname AS leading
FROM pg_constraint con
JOIN pg_class c ON c.oid = con.conrelid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = con.conkey[1]
WHERE con.connamespace = 'public'::regnamespace AND con.contype IN ('p', 'u', 'f', 'x')
UNION ALL
SELECT c.relname, i.relname, coalesce(a.attname, '(expression)')
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class c ON c.oid = x.indrelid
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
WHERE c.relnamespace = 'public'::regnamespace AND x.indisunique AND c.relkind IN ('r', 'p')
"""
FOREIGN_TARGETS = """
SELECT c.relname, con.conname, f.relname AS target, a.attname AS leading
FROM pg_constraint con
JOIN pg_class c ON c.oid = con.conrelid
JOIN pg_class f ON f.oid = con.confrelid
JOIN pg_attribute a ON a.attrelid = f.oid AND a.attnum = con.confkey[1]
WHERE con.connamespace = 'public'::regnamespace AND con.contype = 'f'
"""
VIEWS = """
SELECT c.relname, c.relkind = 'v' AND coalesce('security_invoker=true' = ANY (c.reloptions), false) AS invoker
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('v', 'm')
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
"""
OWNED_BY_RUNTIME = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND pg_has_role('catchment_runtime', c.relowner, 'MEMBER')
"""
SWEEPER_GRANTS = """
SELECT table_name, privilege_type FROM information_schema.role_table_grants
WHERE grantee = 'catchment_sweeper' AND table_schema = 'public'
"""

TENANT_TEST = "mandate_id = (NULLIF(current_setting('app.mandate_id'::text, true), ''::text))::uuid"


def findings(owner_url: str) -> list[str]:
    """Everything in the database that would let tenants mix, one sentence each; empty is good."""
    with psycopg.connect(owner_url) as connection:
        tables = connection.execute(TABLES).fetchall()
        policies = connection.execute(POLICIES).fetchall()
        keys = connection.execute(KEYS).fetchall()
        targets = connection.execute(FOREIGN_TARGETS).fetchall()
        views = connection.execute(VIEWS).fetchall()
        owned = connection.execute(OWNED_BY_RUNTIME).fetchall()
        swept = connection.execute(SWEEPER_GRANTS).fetchall()
    tenant_tables = {name for name, *_ in tables} - set(TENANT_FREE_TABLES)
    found = [f"{name} is owned by the runtime role" for (name,) in owned]
    found += [f"the sweeper may {what} all of {name}" for name, what in swept]
    found += [f"{name} is a view without security_invoker" for name, invoker in views if not invoker]
    found += [f"{name} is on the list of tenant-free tables but not there" for name in _missing(tables)]
    for name, enabled, forced, has_mandate, _owner in tables:
        if name in tenant_tables:
            if not has_mandate:
                found.append(f"{name} has no mandate_id and is not on the list of tenant-free tables")
            if not (enabled and forced):
                found.append(f"{name}: row-level security is {'not forced' if enabled else 'off'}")
            found += _policy_findings(name, [row[1:] for row in policies if row[0] == name])
    found += [
        f"{table}: key {key} starts with {leading}"
        for table, key, leading in keys
        if table in tenant_tables and leading != "mandate_id"
    ]
    found += [
        f"{table}: foreign key {key} leads to {target}.{leading}"
        for table, key, target, leading in targets
        if table in tenant_tables and (target not in tenant_tables or leading != "mandate_id")
    ]
    return found


def _missing(tables: list[tuple[object, ...]]) -> set[str]:
    return set(TENANT_FREE_TABLES) - {str(row[0]) for row in tables}


def _policy_findings(table: str, policies: list[tuple[object, ...]]) -> list[str]:
    """One policy binds everybody to the tenant; a second one may only let the sweeper read."""
    found: list[str] = []
    binding = [policy for policy in policies if policy[2] == ["public"]]
    if len(binding) != 1:
        found.append(f"{table}: {len(binding)} policies for everybody instead of one")
    for name, cmd, roles, qual, check in policies:
        if roles == ["public"] and not (cmd == "ALL" and _same(qual) and _same(check)):
            found.append(f"{table}: policy {name} does not bind both reading and writing to the tenant")
        if roles != ["public"] and not (roles == ["catchment_sweeper"] and cmd == "SELECT"):
            found.append(f"{table}: policy {name} lets {roles} {cmd}")
    return found


def _same(expression: object) -> bool:
    return isinstance(expression, str) and expression.strip("()").startswith(TENANT_TEST.strip("()")[:60])
