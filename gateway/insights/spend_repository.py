"""What embedding cost, added up per mandate, day and model."""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.db import tenant_of


@dataclass(frozen=True)
class Spent:
    tokens: int
    cost: Decimal


async def month(session: AsyncSession) -> Spent:
    """Spend of the calendar month, for the budget."""
    row = (
        await session.execute(
            text(
                "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0) FROM spend "
                "WHERE mandate_id = :mandate_id AND day >= date_trunc('month', now())::date"
            ),
            {"mandate_id": tenant_of(session)},
        )
    ).one()
    return Spent(int(row[0]), Decimal(row[1]))


async def add(session: AsyncSession, model: str, *, texts: int, tokens: int, cost: Decimal) -> None:
    await session.execute(
        text(
            """
            INSERT INTO spend AS s (mandate_id, day, model, texts, tokens, cost)
            VALUES (:mandate_id, current_date, :model, :texts, :tokens, :cost)
            ON CONFLICT (mandate_id, day, model) DO UPDATE
                SET texts = s.texts + excluded.texts, tokens = s.tokens + excluded.tokens, cost = s.cost + excluded.cost
            """
        ),
        {"mandate_id": tenant_of(session), "model": model, "texts": texts, "tokens": tokens, "cost": cost},
    )
