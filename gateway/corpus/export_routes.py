"""All that is stored about a user, as a download."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from gateway.corpus.export import export_user
from gateway.errors import NotAllowed
from gateway.tenancy.access import Reader

router = APIRouter(tags=["corpus"])


@router.get("/users/{user_id}/export", response_class=StreamingResponse)
async def export(request: Request, user_id: UUID, principal: Reader) -> StreamingResponse:
    """A zip archive: JSON Lines of documents, chunks, timeline, queries, answers and connections, and the originals.

    For the user themself, and for an admin.
    """
    if principal.user_id != user_id and not principal.is_admin:
        raise NotAllowed("Only the user or an admin may take out what is stored about a user.")
    pieces = await export_user(request.app.state.db, request.app.state.blobs, principal.mandate_id, user_id)
    headers = {
        "Content-Disposition": f'attachment; filename="{user_id}.zip"',
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)
