"""The lexical index of a mandate: segments go in with a batch of chunks, and chunks come out without a trace."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus import chunk_repository as repository
from gateway.corpus.lexical.postings import (
    MAX_CHUNKS,
    Directory,
    PackedSegment,
    build_segment,
    merge_segments,
    remove_from_directory,
    remove_ordinals,
)
from gateway.corpus.lexical.terms import count_terms
from gateway.db import new_id


def chunk_terms(text: str, heading_path: str, language: str, *, title: str = "") -> dict[str, int]:
    """What a chunk is found by: its own words, those of the headings above it and, if it is its document's first, the title's."""
    return count_terms("\n".join(filter(None, (title, heading_path, text))), language)


def titled(terms: dict[str, int], title: str, language: str) -> dict[str, int]:
    """The terms of a chunk that are already counted, with those of its document's title."""
    return Counter(terms) + Counter(count_terms(title, language)) if title else terms


async def put_in(
    session: AsyncSession, owner_id: UUID | None, entries: Sequence[tuple[int, dict[str, int]]]
) -> None:
    """A new segment (or several) of `(chunk number, term counts)` for one owner."""
    for start in range(0, len(entries), MAX_CHUNKS):
        part = entries[start : start + MAX_CHUNKS]
        packed = await asyncio.to_thread(build_segment, part)
        await repository.insert_segment(
            session, new_id(), owner_id, packed.directory, [number for number, _ in part], packed.rows
        )


async def take_out(session: AsyncSession, chunk_ids: Sequence[UUID]) -> None:
    """Removes these chunks' words from every segment, so that no term of an erased text stays behind."""
    words = {row.number: row for row in await repository.chunk_words(session, chunk_ids)}
    if not words:
        return
    for segment in await repository.lock_segments_around(session, sorted(words)):
        directory = Directory(segment.directory)
        ordinals = directory.ordinals_of(words)
        if not ordinals:
            continue
        left = segment.chunks - len(ordinals)
        rows: list[tuple[str, bytes | None]] = []
        if left:
            by_term: dict[str, list[int]] = defaultdict(list)
            for ordinal in ordinals:
                row = words[int(directory.chunk_numbers[ordinal])]
                for term in await asyncio.to_thread(_terms_of, row):
                    by_term[term].append(ordinal)
            stored = await repository.segment_postings(session, segment.id, list(by_term))
            rows = [(term, remove_ordinals(data, by_term[term])) for term, data in stored]
        await repository.rewrite_segment(
            session, segment.id, remove_from_directory(segment.directory, ordinals), left, rows
        )


async def rename(session: AsyncSession, document_ids: Sequence[UUID]) -> None:
    """Lets these documents be found by the titles they have now, and no longer by earlier ones."""
    rows = await repository.misnamed(session, document_ids)
    if not rows:
        return
    await take_out(session, [row.id for row in rows])
    await repository.name_chunks(session, {row.id: row.title for row in rows})
    segments: dict[UUID | None, list[tuple[int, dict[str, int]]]] = defaultdict(list)
    for row in rows:
        segments[row.owner_id].append((row.number, await asyncio.to_thread(_terms_of, row)))
    for owner_id, entries in segments.items():
        await put_in(session, owner_id, entries)


def _terms_of(row: Row[Any]) -> dict[str, int]:
    return chunk_terms(row.text, row.heading_path, row.language, title=row.title)


async def merge_small(
    session: AsyncSession, owner_id: UUID | None, *, fewer_than: int, limit: int = 64
) -> int:
    """Merges small segments of one owner into one; returns how many went in. Chunks are not touched."""
    small = await repository.lock_small_segments(session, owner_id, fewer_than=fewer_than, limit=limit)
    if len(small) < 2:
        return 0
    postings = await repository.all_postings(session, [row.id for row in small])
    packed = await asyncio.to_thread(
        merge_segments, [PackedSegment(row.directory, postings.get(row.id, [])) for row in small]
    )
    await repository.drop_segments(session, [row.id for row in small])
    numbers: list[int] = Directory(packed.directory).chunk_numbers.tolist()
    await repository.insert_segment(session, new_id(), owner_id, packed.directory, numbers, packed.rows)
    return len(small)
