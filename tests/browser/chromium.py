"""The system's Chromium, driven by Playwright, with an eye on everything a page complains about."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Quiet and without a sandbox of its own: CI runs as root, and nothing here is a stranger's page.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@dataclass
class Eye:
    """What went wrong on the pages of one context: errors in the console, refused by the policy, failed requests."""

    problems: list[str] = field(default_factory=list[str])

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(f"{message.text} ({message.location.get('url', '')})")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise RuntimeError("No Chromium here: `make browser` installs it.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def window(browser: Browser, eye: Eye, **options: Any) -> AsyncIterator[Page]:
    context: BrowserContext = await browser.new_context(**options)
    context.set_default_timeout(30_000)
    context.set_default_navigation_timeout(
        120_000
    )  # a host may stand still for half a minute; how fast pages are has a test of its own
    context.on("page", eye.watch)
    try:
        yield await context.new_page()
    finally:
        await context.close()
