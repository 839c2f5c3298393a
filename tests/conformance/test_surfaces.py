"""One suite for every surface of every vendor, and for the brook that the engine is tested with."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connectors.sandbox.server import RunningSandbox, start
from tests.conformance.behaviours import APPLIES, BEHAVIOURS
from tests.conformance.stages import PLANS, names, plan_of, raised

ROOT = Path(__file__).parents[2]
CASES = [(stage, name) for stage in names() for name in BEHAVIOURS if APPLIES[name](plan_of(stage))]


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[Callable[[str], RunningSandbox]]:
    running: dict[str, RunningSandbox] = {}

    def one(authority: str) -> RunningSandbox:
        if authority not in running:
            running[authority] = start(authority)
        return running[authority]

    yield one
    for sandbox in running.values():
        sandbox.stop()


@pytest.mark.parametrize(("stage", "name"), CASES, ids=[f"{stage}-{name}" for stage, name in CASES])
async def test_conformance(stage: str, name: str, sandboxes: Callable[[str], RunningSandbox]) -> None:
    async with raised(stage, sandboxes) as set_up:
        await BEHAVIOURS[name](set_up)


def test_every_surface_has_a_stage() -> None:
    from connectors.registry import SURFACES

    assert set(PLANS) == {(authority, part) for authority, parts in SURFACES.items() for part in parts}


def test_the_wiki_names_every_behaviour() -> None:
    page = (ROOT / "wiki" / "conformance.md").read_text()
    for name, function in BEHAVIOURS.items():
        sentence = " ".join((function.__doc__ or "").split())
        assert f"| `{name}` | {sentence} |" in page
    assert page.count("\n| `") == len(BEHAVIOURS)
