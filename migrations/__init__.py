"""Alembic migrations, shipped in the wheel so that `catchment migrate` works from anywhere."""
