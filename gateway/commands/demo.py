"""What `catchment up --demo` has to show: people, and a few documents that went through the one door like any other."""

from pathlib import Path
from uuid import UUID

from gateway.corpus.blobs import BlobStore
from gateway.db import Database
from gateway.ingestion.facade import request_ingestions
from gateway.ingestion.schemas import IngestionRequest
from gateway.settings import Settings
from gateway.tenancy.schemas import Role
from gateway.tenancy.service import ensure_member

PEOPLE: dict[str, tuple[str, Role]] = {
    "ada@demo.example": ("Ada Brook", "admin"),
    "grace@demo.example": ("Grace Weir", "member"),
    "linus@demo.example": ("Linus Ford", "member"),
}

HANDBOOK = """# Handbook of the water works

## Reading the gauges

The gauges at the upper weir are read every morning at seven. Write the level into the log book and ring the control
room when it is above 240 cm. Spare gauge glasses have the part number WW-4711-B.

## When the alarm sounds

1. Close sluice two before sluice one, never the other way round.
2. Call the engineer on duty; the number hangs beside the telephone.
3. Note the time. The insurance asks for it.

| sluice | opens at | closes at |
| --- | --- | --- |
| one | 180 cm | 230 cm |
| two | 160 cm | 210 cm |
"""

HANDBUCH = """# Betriebsanweisung für das Stauwehr

Die Pegel am oberen Wehr werden jeden Morgen um sieben Uhr abgelesen. Steht das Wasser über 240 cm, ist die Leitwarte
sofort anzurufen. Ersatzgläser für die Pegel tragen die Teilenummer WW-4711-B.

## Verhalten bei Alarm

Zuerst wird Schütz zwei geschlossen, dann Schütz eins. Danach ist der diensthabende Ingenieur zu verständigen.
"""

CODE = '''"""How full the basin will be."""


def level_after(hours: float, level_cm: float, inflow_cm_per_hour: float) -> float:
    """The level some hours from now if nobody touches a sluice."""
    return level_cm + hours * inflow_cm_per_hour


def hours_until(alarm_cm: float, level_cm: float, inflow_cm_per_hour: float) -> float | None:
    """How long until the alarm; None when the water falls."""
    return (alarm_cm - level_cm) / inflow_cm_per_hour if inflow_cm_per_hour > 0 else None
'''

DOCUMENTS = (
    ("handbook.md", "Handbook of the water works", HANDBOOK, "text/markdown"),
    ("handbuch.md", "Betriebsanweisung für das Stauwehr", HANDBUCH, "text/markdown"),
    ("basin.py", "basin.py", CODE, "text/x-python"),
)


async def seed_demo(db: Database, mandate_id: UUID, owner_id: UUID, data_dir: Path) -> None:
    """Adds what is missing; whoever was removed since comes back with the next start."""
    async with db.tenant_session(mandate_id) as session:
        for email, (name, role) in PEOPLE.items():
            await ensure_member(session, email, name, role)
        requests = [
            IngestionRequest.model_validate(
                {
                    "sourceKind": "upload",
                    "sourceId": f"demo/{name}",
                    "title": title,
                    "content": {"text": text},
                    "mimeType": mime_type,
                    "scope": "mandate",
                    "userId": owner_id,
                    "tags": ["demo"],
                }
            )
            for name, title, text, mime_type in DOCUMENTS
        ]
        await request_ingestions(session, requests, blobs=BlobStore.of(Settings(data_dir=data_dir)))
