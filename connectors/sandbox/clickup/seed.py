"""The demo workspace: the same water works, as its tasks tell it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.sandbox.clickup.world import ClickUpWorld

ADA, GRACE, LINUS = "ada@demo.example", "grace@demo.example", "linus@demo.example"
USERS = {ADA: (183, "Ada Brook"), GRACE: (184, "Grace Weir"), LINUS: (185, "Linus Ford")}

HANDBOOK = """Every inspection follows the same order: first the bolts, then the seals, last the paint.

Bolts are tightened to 85 Nm. Seals older than four years are replaced whether they leak or not.
"""

OFFICE = (
    (
        "Neue Pegelgläser bestellen",
        "Zwölf Gläser mit der Teilenummer WW-4711-B. Das Angebot gilt bis Monatsende.",
        "complete",
    ),
    (
        '<script>alert("task")</script> & "quoted" name',
        "A task with a hostile name must stay text wherever it is shown.",
        "to do",
    ),
)


def fill(world: "ClickUpWorld") -> None:
    works = world.add_list("Operations", "Inspections", "Sluice gates")
    _gate(world, works)
    office = world.add_list("Office", None, "Purchasing")
    for name, text, status in OFFICE:
        world.create({"kind": "task", "list": office, "name": name, "text": text, "status": status})
    doc = world.create({"kind": "doc", "name": "Inspection handbook"})
    page = world.create({"kind": "page", "doc": doc["id"], "name": "The order of work", "text": HANDBOOK})
    paint = "Two coats of RAL 5010, sanded in between."
    world.create({"kind": "page", "doc": doc["id"], "parent": page["id"], "name": "Paint", "text": paint})


def _gate(world: "ClickUpWorld", works: str) -> None:
    """A task with everything that can hang on one."""
    gate = world.create(
        {
            "kind": "task",
            "list": works,
            "name": "Inspect sluice gate three before the spring flood",
            "text": "The hinge squeals. Check the bolts of the lower bearing and order seal set SG-3-2210 if it leaks.",
            "status": "in progress",
            "assignees": [GRACE],
            "tags": ["inspection", "spring"],
        }
    )["id"]
    said = "The lower bearing has 2 mm of play, measured cold."
    comment = world.create({"kind": "comment", "task": gate, "user": LINUS, "text": said})["id"]
    answer = "Two millimetres is the limit: replace it this week."
    world.create({"kind": "reply", "comment": comment, "user": ADA, "text": answer})
    table = "bearing,play_mm\nupper,0.4\nlower,2.0\n"
    world.create(
        {
            "kind": "attachment",
            "task": gate,
            "name": "bearing-measurements.csv",
            "mimeType": "text/csv",
            "text": table,
        }
    )
    order = "Supplier: Dichtungen Brandt. Delivery takes nine working days."
    world.create(
        {"kind": "task", "list": works, "parent": gate, "name": "Order seal set SG-3-2210", "text": order}
    )
