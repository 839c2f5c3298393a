"""A small company that makes water meters: what its people keep in Google."""

from datetime import timedelta
from typing import TYPE_CHECKING

from connectors.sandbox.google.answers import Json

if TYPE_CHECKING:
    from connectors.sandbox.google.world import GoogleWorld

ADA, BEN = "ada@demo.example", "ben@demo.example"
USERS = (ADA, BEN)

DOCUMENTS: dict[str, tuple[str, str]] = {
    "Onboarding guide": (
        "document",
        (
            "# First week\nEvery newcomer receives a laptop, a badge and a named companion on the first morning.\n"
            "The companion shows the workshop and explains how meters are calibrated before delivery.\n"
            "# Accounts\nPasswords live in the vault. Nobody sends a password by mail, not even for a minute."
        ),
    ),
    "Wartungsplan Pumpwerk": (
        "document",
        (
            "# Pumpwerk Nord\nDie Kreiselpumpe wird alle sechs Monate geprüft; die Dichtung wird jährlich ersetzt.\n"
            "# Störung\nBei Druckabfall zuerst das Rückschlagventil prüfen, danach den Filter spülen."
        ),
    ),
    "Budget 2027": (
        "spreadsheet",
        (
            "Position,Amount,Note\nCalibration bench,48000,delivered in March\nTravel,12500,two fairs\n"
            "Licences,7300,per year"
        ),
    ),
    "Board meeting November": (
        "presentation",
        (
            "# Results\nOrders grew by eleven percent against the year before.\n\n"
            "# Outlook\nThe brass housing is replaced by a polymer from spring on."
        ),
    ),
}
FILES: dict[str, str] = {
    "supplier-terms.txt": "Gasket suppliers deliver within ten working days. Late deliveries cost two percent per week.",
    "incident-2026-09.md": "# Incident in September\n\nA firmware update stopped forty meters from reporting. "
    "The rollback took three hours; the missing readings were estimated from the week before.",
    "readme.txt": "Everything about the field test in Thun lies in this folder.",
}
MAILS: list[Json] = [
    {
        "subject": "Offer for the polymer housing",
        "from": "Carla Conti <carla@supplier.example>",
        "text": "Dear Ada\n\nThe polymer housing costs 4.20 per piece from ten thousand pieces on. "
        "Tooling is paid once.\n\nKind regards\nCarla",
        "attachments": [
            {
                "name": "offer.txt",
                "mimeType": "text/plain",
                "text": "Offer 8841: polymer housing, 4.20 per piece, valid until March.",
            }
        ],
    },
    {
        "subject": "Re: Offer for the polymer housing",
        "from": "Ben <ben@demo.example>",
        "text": "I would ask for a second sample before we sign.\n\n"
        "On Mon, Nov 2, 2026 at 9:14 AM Carla Conti <carla@supplier.example> wrote:\n"
        "> The polymer housing costs 4.20 per piece",
    },
    {
        "subject": "Störung im Pumpwerk Nord",
        "from": "Dora <dora@demo.example>",
        "html": "<html><body><p>Guten Tag Ada</p><p>Seit heute früh fällt der Druck. Wir haben den Filter gespült.</p>"
        '<img src="https://track.example/p.gif" width="1" height="1"></body></html>',
    },
    {
        "subject": "Cheap watches",
        "from": "spam@nowhere.example",
        "text": "Buy now",
        "labels": ["SPAM"],
    },
]


def fill(world: "GoogleWorld") -> None:
    _drive(world)
    _mail(world)
    _calendar(world)


def _drive(world: "GoogleWorld") -> None:
    def made(fields: Json) -> str:
        return str(world.create(fields)["id"])

    handbook = made({"kind": "folder", "name": "Handbook"})
    field_test = made({"kind": "folder", "name": "Field test Thun"})
    drive = made({"kind": "drive", "name": "Engineering", "members": [ADA, BEN]})
    for name, (kind, text) in DOCUMENTS.items():
        made({"kind": kind, "name": name, "text": text, "parentId": handbook})
    for name, text in FILES.items():
        made({"kind": "file", "name": name, "text": text, "parentId": field_test})
    made(
        {
            "kind": "document",
            "name": "Calibration procedure",
            "text": "# Bench\nThe reference meter is compared at five flow rates, each held for ninety seconds.",
            "parentId": drive,
        }
    )
    guide = next(file.id for file in world.files.files.values() if file.name == "Onboarding guide")
    made({"kind": "shortcut", "name": "Guide for newcomers", "targetId": guide})
    made(
        {
            "kind": "file",
            "user": BEN,
            "name": "bens-notes.txt",
            "text": "Ben keeps a list of meters that drift in cold weather.",
            "sharedWith": [ADA],
        }
    )


def _mail(world: "GoogleWorld") -> None:
    now = world.clock.now()
    for days, mail in enumerate(MAILS):
        world.create(
            {"kind": "message", "user": ADA, "at": (now - timedelta(days=days + 1)).isoformat(), **mail}
        )
    world.create(
        {
            "kind": "message",
            "user": ADA,
            "at": (now - timedelta(days=3000)).isoformat(),
            "subject": "Old minutes",
            "text": "Minutes of a meeting long ago.",
        }
    )
    world.create({"kind": "message", "user": BEN, "subject": "Cold weather", "text": "Three meters drift."})


def _calendar(world: "GoogleWorld") -> None:
    monday = world.clock.now().replace(hour=9, minute=0, second=0, microsecond=0) + timedelta(days=3)
    zone = "Europe/Zurich"

    def span(begin: timedelta, hours: float) -> Json:
        start = monday + begin
        return {
            "start": {"dateTime": start.isoformat(), "timeZone": zone},
            "end": {"dateTime": (start + timedelta(hours=hours)).isoformat(), "timeZone": zone},
        }

    people = [
        {"email": ADA, "displayName": "Ada", "responseStatus": "accepted", "self": True},
        {"email": BEN, "displayName": "Ben", "responseStatus": "needsAction"},
    ]
    weekly = world.create(
        {
            "kind": "event",
            "name": "Workshop round",
            "text": "Open questions of the week, ten minutes each.",
            "location": "Workshop",
            "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=20"],
            "attendees": people,
            **span(timedelta(), 1),
        }
    )
    series = str(weekly["id"]).rpartition("/")[2]
    world.create(
        {
            "kind": "event",
            "name": "Workshop round with the supplier",
            "text": "Carla brings the second sample.",
            "seriesId": series,
            "originalStart": {"dateTime": (monday + timedelta(days=7)).isoformat(), "timeZone": zone},
            **span(timedelta(days=7, hours=2), 1),
        }
    )
    world.create(
        {
            "kind": "event",
            "name": "Fair in Basel",
            "text": "Stand 41, hall 2. The demonstration unit travels by van.",
            "start": {"date": f"{monday + timedelta(days=30):%Y-%m-%d}"},
            "end": {"date": f"{monday + timedelta(days=32):%Y-%m-%d}"},
        }
    )
