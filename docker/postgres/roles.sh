#!/bin/bash
# Runs once, when the database volume is new: what gateway/migration.py asks an administrator for.
#
# owner     runs migrations and builds indexes; owns the database and nothing else does
# runtime   gateway and workers; row-level security binds it
# sweeper   never logs in: the runtime role becomes it for one transaction, to see job ids across tenants
# readonly  support; bound by row-level security too
set -euo pipefail

: "${OWNER_PASSWORD:?}" "${RUNTIME_PASSWORD:?}" "${READONLY_PASSWORD:?}"

# Passwords travel in the environment and not in the arguments, which everybody in the container could read.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\getenv owner_password OWNER_PASSWORD
\getenv runtime_password RUNTIME_PASSWORD
\getenv readonly_password READONLY_PASSWORD
BEGIN;
CREATE ROLE catchment_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE catchment_runtime LOGIN PASSWORD :'runtime_password';
CREATE ROLE catchment_sweeper NOLOGIN;
CREATE ROLE catchment_readonly LOGIN PASSWORD :'readonly_password';
GRANT catchment_sweeper TO catchment_runtime WITH INHERIT FALSE, SET TRUE;
CREATE EXTENSION IF NOT EXISTS vector;
ALTER DATABASE :"DBNAME" OWNER TO catchment_owner;
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
-- TEMPORARY because rows are copied into a temporary table on their way past row-level security
GRANT CONNECT, TEMPORARY ON DATABASE :"DBNAME" TO catchment_runtime;
GRANT CONNECT ON DATABASE :"DBNAME" TO catchment_readonly;
COMMIT;
SQL
