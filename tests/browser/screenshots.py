"""`make screenshots`: the console's pages in light, dark and phone width, from a demo with connected accounts."""

import asyncio
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from playwright.async_api import Page

from tests.browser.chromium import Eye, chromium, window
from tests.fixtures.demo import Demo

LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1200, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1200, "height": 800}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
PAGES = {
    "home": "/",
    "connections": "/connections",
    "knowledge": "/knowledge",
    "search": "/search?q=when does the alarm sound",
    "ask": "/ask?q=when does the alarm sound&plain=true",
    "insights": "/insights",
    "activity": "/activity",
    "settings": "/settings",
}


async def _connect(page: Page, running: Demo) -> str:
    for vendor in ("Google", "ClickUp", "Microsoft"):
        await page.goto(f"{running.url}/connections")
        await page.get_by_role("button", name=f"Connect {vendor}").click()
        await page.wait_for_selector("button[value=accept]")
        await page.locator("button[value=accept]").click()
        await page.wait_for_selector("[data-state=done]", timeout=180_000)
    return page.url.removeprefix(running.url).partition("?")[0]


async def _cited_page(running: Demo) -> str:
    query = {"q": "manual page", "sourceKinds": "sharepoint_item", "limit": "50"}
    async with running.asking() as api:
        hits = (await api.get("/search", params=query)).json()["hits"]
    hit = next(hit for hit in hits if hit["citation"]["locator"]["kind"] == "pdf")
    return f"/knowledge/{hit['documentId']}?chunk={hit['chunkId']}#cited"


async def take(target: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="catchment-demo-") as place,
        closing(Demo(Path(place) / "data")) as running,
    ):
        await _photograph(running, target)


async def _photograph(running: Demo, target: Path) -> None:
    async with chromium() as browser:
        async with window(browser, Eye()) as page:
            await page.goto(await running.login_url())
            pages = PAGES | {
                "connection": await _connect(page, running),
                "document": await _cited_page(running),
            }
        for look, options in LOOKS.items():
            async with window(browser, Eye(), **options) as page:
                await page.goto(await running.login_url())
                for name, path in pages.items():
                    await page.goto(f"{running.url}{path}")
                    await page.wait_for_load_state("load")
                    await page.screenshot(path=target / f"{name}-{look}.png")
                    print(target / f"{name}-{look}.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(folder))
