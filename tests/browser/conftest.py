"""One headless Chromium for all tests in a browser, and what they all ask of a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        if os.environ.get("GPUDIAG_REQUIRE_BROWSER") == "1":
            pytest.fail("Chromium is required but not installed")
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def contrast() -> str:
    """A script that lists the text whose contrast is below 4.5 (WCAG AA) against the nearest opaque ground."""
    return (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
