"""The front door: façade, HTTP API, console, and the corpus behind them.

Feature modules call the façade in-process, in their own transaction:

    from gateway import IngestionRequest, request_ingestion, tenant_session

    async with tenant_session(mandate_id) as session:
        ...  # the feature's own writes
        handle = await request_ingestion(session, IngestionRequest(...))
"""

from importlib import import_module
from typing import Any

# Loaded on first use: a parser child imports rooms of this house without paying for the front door.
_PUBLIC = {
    "IngestionHandle": "gateway.ingestion.schemas",
    "IngestionRequest": "gateway.ingestion.schemas",
    "IngestionStatus": "gateway.ingestion.schemas",
    "get_ingestion_status": "gateway.ingestion.facade",
    "request_ingestion": "gateway.ingestion.facade",
    "request_ingestions": "gateway.ingestion.facade",
    "tenant_session": "gateway.db",
}
__all__ = list(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gateway' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
