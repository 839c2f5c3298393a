"""Catchment from Python, over HTTP. `CatchmentClient` is for asyncio, `SyncCatchmentClient` for everybody else.

    async with CatchmentClient("http://127.0.0.1:8440", key) as catchment:
        handle = await catchment.ingest("Refunds take five days.", source_id="faq-7", title="Refunds")
        await catchment.wait(handle)
        for hit in (await catchment.search("how long do refunds take")).hits:
            print(hit.title, hit.text)

    with SyncCatchmentClient.local() as catchment:   # the instance that `catchment up` started here
        print(catchment.context("refunds", token_budget=800).text)

Errors are those of `gateway.errors`, raised from the problem's `code`. A 503 is tried again after the service's own
`Retry-After`; asking twice is safe, because the service answers `duplicate` to what it already has.
"""

import asyncio
import base64
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar
from uuid import UUID

import httpx
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, Field

from gateway.corpus.citations import Citation
from gateway.corpus.context_schemas import ContextOut
from gateway.corpus.schemas import DocumentOut
from gateway.embedded.instance import find_instance
from gateway.errors import (
    CatchmentError,
    Conflict,
    FieldsInvalid,
    InvalidRequest,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    StoreUnavailable,
    TooLarge,
    UnsupportedContent,
    all_error_types,
)
from gateway.ingestion.schemas import LIVE_STATUSES, IngestionHandle, IngestionStatus
from gateway.wire import Page, Wire

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")

ATTEMPTS = 4
LONGEST_PAUSE = 10.0  # seconds between two tries, whatever the service asks for


class ServiceError(CatchmentError):
    """The service answered with an error that this client does not know by name."""

    code = "client.unknown_error"
    status = 502


class NotFinished(CatchmentError):
    """The ingestion did not end in time."""

    code = "client.not_finished"
    status = 504


class FoundHit(Wire):
    """`text` is for people; a model is given `prompt_text`, which is wrapped as untrusted."""

    chunk_id: UUID
    document_id: UUID
    score: float
    text: str
    prompt_text: str
    title: str
    citation: Citation
    sources: list[Citation] = Field(default_factory=list)  # of a text that came from several, all of them


class Found(Wire):
    """What a search answers. `degraded`: the embedding service was away, so by words alone. Not `answered`: nothing is about the
    question, the hits are merely the nearest there is.
    """

    query_id: UUID
    took_ms: int
    hits: list[FoundHit]
    answered: bool = True
    degraded: bool = False


class CatchmentClient:
    """One connection pool to one instance, with one key. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        act_as: UUID | None = None,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not (key.isascii() and key.isprintable()):
            raise NotAuthenticated("This key cannot be one of ours: it holds characters that no key has.")
        self.key = key
        headers = {"Authorization": f"Bearer {key}"} | ({"X-Act-As-User": str(act_as)} if act_as else {})
        self._http = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/v1", headers=headers, timeout=timeout, transport=transport
        )

    @classmethod
    def local(cls, data_dir: Path | None = None) -> Self:
        """The instance on this data folder, as its local owner."""
        instance = find_instance(data_dir)
        return cls(instance.url, instance.api_key or "")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request(self, method: str, path: str, **options: Any) -> Any:
        """Any call of the API: `await client.request("GET", "/connections")`. Options are httpx's."""
        for attempt in range(1, ATTEMPTS + 1):
            response = await self._http.request(method, path, **options)
            if response.is_success:
                return response.json() if response.content else None
            if response.status_code != 503 or attempt == ATTEMPTS:
                raise problem(response)
            await asyncio.sleep(_pause(response, attempt))
        raise AssertionError("unreachable")

    async def download(self, path: str, target: Path) -> int:
        """An answer too large for memory, into a new file that only its owner may read; its size. Half a file is removed."""
        size = 0
        async with self._http.stream("GET", path, timeout=None) as response:
            if not response.is_success:
                await response.aread()
                raise problem(response)
            try:
                with await asyncio.to_thread(_new_private_file, target) as file:
                    async for piece in response.aiter_bytes():
                        size += await asyncio.to_thread(file.write, piece)
            except BaseException as error:
                if not isinstance(error, FileExistsError):
                    await asyncio.to_thread(target.unlink, missing_ok=True)
                raise
        return size

    # -- handing in

    async def ingest(
        self,
        content: str | bytes | Mapping[str, Any],
        *,
        source_id: str,
        source_kind: str = "paste",
        **fields: Any,
    ) -> IngestionHandle:
        """`requestIngestion`. Text, bytes, or a content object; other fields by their names on the wire."""
        body = {"sourceKind": source_kind, "sourceId": source_id, "content": _content(content), **fields}
        return _read(IngestionHandle, await self.request("POST", "/ingestions", json=body))

    async def upload(self, file: Path | bytes, *, name: str | None = None, **fields: Any) -> IngestionHandle:
        """One file; `sourceId title scope tags neutralize` as the API takes them."""
        data = await asyncio.to_thread(file.read_bytes) if isinstance(file, Path) else file
        called = name or (file.name if isinstance(file, Path) else "upload")
        files = {"file": (called, data)}
        return _read(IngestionHandle, await self.request("POST", "/files", files=files, data=_form(fields)))

    async def status(self, job: UUID | IngestionHandle) -> IngestionStatus:
        """`getIngestionStatus`."""
        return _read(IngestionStatus, await self.request("GET", f"/ingestions/{_job_id(job)}"))

    async def wait(self, job: UUID | IngestionHandle, *, seconds: float = 60.0) -> IngestionStatus:
        """Returns when the job has ended, however it ended; `NotFinished` when it has not by then."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + seconds, 0.05
        while True:
            found = await self.status(job)
            if found.status not in LIVE_STATUSES:
                return found
            if loop.time() + pause > until:
                raise NotFinished(f"Job {found.job_id} is still {found.status} after {seconds:g} s.")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    # -- finding

    async def search(self, q: str, *, limit: int = 20, **filters: Any) -> Found:
        """Filters by their names on the wire: `types sourceKinds connectionId tags from to origin …`."""
        params = {"q": q, "limit": limit, **_form(filters)}
        return _read(Found, await self.request("GET", "/search", params=params))

    async def context(
        self, query: str, *, token_budget: int = 2000, feature_instance_id: UUID | None = None
    ) -> ContextOut:
        """Text ready for a prompt, within the budget, every passage citable."""
        body: dict[str, Any] = {"query": query, "tokenBudget": token_budget}
        if feature_instance_id is not None:
            body["featureInstanceId"] = str(feature_instance_id)
        return _read(ContextOut, await self.request("POST", "/context", json=body))

    async def cite(self, turn_id: str, chunk_ids: Sequence[UUID], **fields: Any) -> int:
        """Says what a turn was given; how many of the citations are new."""
        body = {"turnId": turn_id, "chunkIds": [str(chunk) for chunk in chunk_ids], **fields}
        return int((await self.request("POST", "/citations", json=body))["recorded"])

    # -- looking after

    async def documents(self, **filters: Any) -> Page[DocumentOut]:
        return _read(Page[DocumentOut], await self.request("GET", "/documents", params=_form(filters)))

    async def document(self, document_id: UUID) -> DocumentOut:
        return _read(DocumentOut, await self.request("GET", f"/documents/{document_id}"))

    async def delete(self, document_id: UUID) -> dict[str, Any]:
        """The receipt: what was erased, store by store."""
        return await self.request("DELETE", f"/documents/{document_id}")

    async def connections(self) -> list[dict[str, Any]]:
        return (await self.request("GET", "/connections"))["items"]

    async def connect(self, authority: str, **fields: Any) -> dict[str, Any]:
        """Open `authorizeUrl` of the answer in the user's browser."""
        return await self.request("POST", "/connections", json={"authority": authority, **fields})

    async def disconnect(self, connection_id: UUID) -> dict[str, Any]:
        """Revokes: from now on nothing of it is served. The receipt says what was erased."""
        return await self.request("DELETE", f"/connections/{connection_id}")


class SyncCatchmentClient:
    """`CatchmentClient` without asyncio: the same calls, answered before they return."""

    def __init__(self, url: str, key: str, *, act_as: UUID | None = None, timeout: float = 30.0) -> None:
        self.key = key
        # First: what it refuses must not leave a thread behind that nobody stops.
        self._client = CatchmentClient(url, key, act_as=act_as, timeout=timeout)
        self._lifetime = start_blocking_portal()
        self._portal = self._lifetime.__enter__()

    @classmethod
    def local(cls, data_dir: Path | None = None) -> Self:
        """The instance on this data folder, as its local owner."""
        instance = find_instance(data_dir)
        return cls(instance.url, instance.api_key or "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._call(self._client.aclose)
        self._lifetime.__exit__(None, None, None)

    def _call(self, method: Callable[..., Coroutine[Any, Any, Result]], *args: Any, **options: Any) -> Result:
        return self._portal.call(partial(method, *args, **options))

    def request(self, method: str, path: str, **options: Any) -> Any:
        return self._call(self._client.request, method, path, **options)

    def download(self, path: str, target: Path) -> int:
        return self._call(self._client.download, path, target)

    def ingest(self, content: str | bytes | Mapping[str, Any], **fields: Any) -> IngestionHandle:
        return self._call(self._client.ingest, content, **fields)

    def upload(self, file: Path | bytes, **fields: Any) -> IngestionHandle:
        return self._call(self._client.upload, file, **fields)

    def status(self, job: UUID | IngestionHandle) -> IngestionStatus:
        return self._call(self._client.status, job)

    def wait(self, job: UUID | IngestionHandle, *, seconds: float = 60.0) -> IngestionStatus:
        return self._call(self._client.wait, job, seconds=seconds)

    def search(self, q: str, **filters: Any) -> Found:
        return self._call(self._client.search, q, **filters)

    def context(self, query: str, **fields: Any) -> ContextOut:
        return self._call(self._client.context, query, **fields)

    def cite(self, turn_id: str, chunk_ids: Sequence[UUID], **fields: Any) -> int:
        return self._call(self._client.cite, turn_id, chunk_ids, **fields)

    def documents(self, **filters: Any) -> Page[DocumentOut]:
        return self._call(self._client.documents, **filters)

    def document(self, document_id: UUID) -> DocumentOut:
        return self._call(self._client.document, document_id)

    def delete(self, document_id: UUID) -> dict[str, Any]:
        return self._call(self._client.delete, document_id)

    def connections(self) -> list[dict[str, Any]]:
        return self._call(self._client.connections)

    def connect(self, authority: str, **fields: Any) -> dict[str, Any]:
        return self._call(self._client.connect, authority, **fields)

    def disconnect(self, connection_id: UUID) -> dict[str, Any]:
        return self._call(self._client.disconnect, connection_id)


_BY_CODE = {
    (kind.code, kind.status): kind for kind in all_error_types() if kind.__module__ == "gateway.errors"
}
_BY_STATUS: dict[int, type[CatchmentError]] = {
    400: InvalidRequest,
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    415: UnsupportedContent,
    422: FieldsInvalid,
    503: StoreUnavailable,
}


def problem(response: httpx.Response) -> CatchmentError:
    """The error a problem+json answer stands for; its other members are in `extra`. Its `code` is the service's, also where no
    class of ours has it.
    """
    status = response.status_code
    try:
        body: dict[str, Any] = dict(response.json())
    except (ValueError, TypeError):
        body = {}
    kind = _BY_CODE.get((str(body.get("code")), status)) or _BY_STATUS.get(status, ServiceError)
    detail = str(body.pop("detail", "") or f"The service answers {status}.")
    error = kind(detail, **{"status": status, **body})
    if isinstance(code := body.get("code"), str):
        error.code = code
    return error


def _new_private_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _pause(response: httpx.Response, attempt: int) -> float:
    try:
        asked = float(response.headers.get("Retry-After", ""))
    except ValueError:
        asked = 0.25 * 2**attempt
    return min(asked, LONGEST_PAUSE)


def _read(model: type[Model], body: Any) -> Model:
    # A newer service may say more than this client knows; that is no reason to fail.
    return model.model_validate(body, extra="ignore")


def _content(content: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(content, str):
        return {"text": content}
    if isinstance(content, bytes):
        return {"base64": base64.b64encode(content).decode()}
    return content


def _form(fields: Mapping[str, Any]) -> dict[str, Any]:
    """As forms and query strings take them; None is left out."""
    return {name: _form_value(value) for name, value in fields.items() if value is not None}


def _form_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_form_value(one) for one in value]
    return str(value)


def _job_id(job: UUID | IngestionHandle) -> UUID:
    found = job.job_id if isinstance(job, IngestionHandle) else job
    if found is None:
        reason = job.reason if isinstance(job, IngestionHandle) else None
        raise NotFound(f"Nothing was queued for this request ({reason or 'skipped'}); there is no job.")
    return found
