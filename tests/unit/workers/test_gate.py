"""Many together or one alone, never both."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from workers.gate import Gate


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_whoever_is_alone_is_alone(kinds: list[bool]):
    inside: list[str] = []
    violations: list[list[str]] = []

    async def visit(gate: Gate, alone: bool) -> None:
        async with gate.alone() if alone else gate.together():
            inside.append("alone" if alone else "together")
            for _ in range(3):
                if "alone" in inside and len(inside) > 1:
                    violations.append(list(inside))
                await asyncio.sleep(0)  # a turn of the loop, not a wait
            inside.pop()

    async def everyone() -> None:
        gate = Gate()
        async with asyncio.timeout(5):
            await asyncio.gather(*(visit(gate, alone) for alone in kinds))

    asyncio.run(everyone())
    assert violations == []
