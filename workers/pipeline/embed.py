"""Embed: every text once per mandate and model, in batches across documents, outside any transaction.

Texts without a vector are claimed first, so that two workers never embed the same one; whoever loses a claim waits for
the winner's vector. Vectors are committed as they come, batches that finish during a commit together in the next one: a
crash repeats at most the batches in flight.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import vector_repository as vectors
from gateway.corpus.embedders import Embedder
from gateway.corpus.embedders.protocol import Vectors
from gateway.crashpoints import crash_point
from gateway.db import Database
from gateway.insights import spend_repository as spend
from gateway.metrics import EMBEDDED_CHUNKS, EMBEDDING_TOKENS

BATCHES_IN_FLIGHT = 3  # an API embedder is mostly waiting; a local one is bounded by its own threads


class BudgetReached(Exception):
    """The mandate's embedding budget of this month is used up."""


@dataclass(frozen=True)
class Budget:
    tokens: int | None
    cost: Decimal | None


class EmbedStage:
    """Embeds for one slice of jobs. `claimant` names the slice in the claims it holds."""

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        mandate_id: UUID,
        claimant: UUID,
        budget: Budget,
        claim_seconds: float,
    ) -> None:
        self.db, self.embedder, self.mandate_id, self.claimant = db, embedder, mandate_id, claimant
        self._budget, self._claim_seconds = budget, claim_seconds

    async def run(self, texts: dict[bytes, str]) -> set[bytes]:
        """Sees to it that every text has a vector; returns the hashes embedded here."""
        embedded: set[bytes] = set()
        missing = set(texts)
        delay = 0.02
        while missing:
            async with self.db.tenant_session(self.mandate_id) as session:
                missing -= await vectors.known(session, self.embedder.model, sorted(missing))
                if not missing:
                    break
                await self._check_budget(session, [texts[h] for h in missing])
                won = await vectors.claim(
                    session, self.embedder.model, sorted(missing), self.claimant, seconds=self._claim_seconds
                )
                # Between the first look and the claim another worker may have finished the text: look again.
                finished = await vectors.known(session, self.embedder.model, sorted(won))
                won -= finished
                missing -= finished
            if won:
                await self._embed(texts, sorted(won))
                embedded |= won
                missing -= won
                delay = 0.02
            elif missing:
                await asyncio.sleep(delay * random.uniform(0.5, 1))  # noqa: S311 - jitter
                delay = min(delay * 2, 0.5)
        return embedded

    async def _check_budget(self, session: AsyncSession, texts: Sequence[str]) -> None:
        if self._budget.tokens is None and self._budget.cost is None:
            return
        used = await spend.month(session)
        tokens = used.tokens + self.embedder.count_tokens(texts)
        cost = used.cost + self.embedder.price_per_million_tokens * (tokens - used.tokens) / 1_000_000
        if (self._budget.tokens is not None and tokens > self._budget.tokens) or (
            self._budget.cost is not None and cost > self._budget.cost
        ):
            raise BudgetReached

    async def _embed(self, texts: dict[bytes, str], hashes: Sequence[bytes]) -> None:
        gate, keeping = asyncio.Semaphore(BATCHES_IN_FLIGHT), asyncio.Lock()
        finished: list[tuple[Sequence[bytes], Vectors]] = []

        async def one(batch: Sequence[bytes]) -> None:
            async with gate:
                made = await self.embedder.embed([texts[text_hash] for text_hash in batch])
            finished.append((batch, made))
            async with keeping:
                if finished:  # else the one before has taken it along
                    taken = finished.copy()
                    finished.clear()
                    await self._keep(texts, taken)

        size = self.embedder.max_batch
        try:
            async with asyncio.TaskGroup() as group:
                for start in range(0, len(hashes), size):
                    group.create_task(one(hashes[start : start + size]))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _keep(
        self, texts: dict[bytes, str], batches: Sequence[tuple[Sequence[bytes], Vectors]]
    ) -> None:
        hashes = [text_hash for batch, _ in batches for text_hash in batch]
        tokens = self.embedder.count_tokens([texts[text_hash] for text_hash in hashes])
        model = self.embedder.model
        crash_point("embed.before_commit")
        async with self.db.tenant_session(self.mandate_id) as session:
            await vectors.insert(session, model, hashes, np.concatenate([made for _, made in batches]))
            cost = self.embedder.price_per_million_tokens * tokens / 1_000_000
            await spend.add(session, model, texts=len(hashes), tokens=tokens, cost=cost)
        crash_point("embed.after_commit")
        EMBEDDED_CHUNKS.labels(model).inc(len(hashes))
        EMBEDDING_TOKENS.labels(model).inc(tokens)
