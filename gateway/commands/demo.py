"""What `catchment up --demo` has to show: people now, documents as far as the product can take them."""

from uuid import UUID

from gateway.db import Database
from gateway.tenancy import repository

PEOPLE = {
    "ada@demo.example": ("Ada Brook", "admin"),
    "grace@demo.example": ("Grace Weir", "member"),
    "linus@demo.example": ("Linus Ford", "member"),
}


async def seed_demo(db: Database, mandate_id: UUID) -> None:
    """Adds what is missing; whoever was removed since comes back with the next start."""
    async with db.tenant_session(mandate_id) as session:
        for email, (name, role) in PEOPLE.items():
            await repository.insert_user(session, email=email, display_name=name)
            person = await repository.user_by_email(session, email)
            if person is not None:
                await repository.insert_member(session, person.id, role)
