"""One headless Chromium for all tests in a browser, and what they all ask of a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toyrun import TOY_RULES, toy_run

from gpudiag.diagnosis import diagnose
from gpudiag.report.index import Index, failed
from gpudiag.rules import RULES

EVIL = "<img src=x onerror=\"console.error('pwned')\"> & <script>console.error('pwned')</script>"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows to draw, and takes less than half the processor time for the same page."""
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
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
def axe() -> Any:
    """axe-core, with Playwright imported only in the process that has a browser."""
    from axe_playwright_python.sync_playwright import Axe

    return Axe()


@pytest.fixture(scope="session")
def contrast() -> str:
    """A script that lists the text whose contrast is below 4.5 (WCAG AA) against the nearest opaque ground."""
    return (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def evil() -> str:
    """A name that would be noticed if it were taken for HTML anywhere."""
    return EVIL


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every section, every level and every kind of finding."""
    diagnosis = diagnose(toy_run(EVIL), rules=(*RULES, *TOY_RULES))
    return diagnosis.save(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def index_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of a batch: three reports, one of them of a run without telemetry, and a run that has none."""
    folder = tmp_path_factory.mktemp("batch")
    runs = {"plain": toy_run("plain"), "50 % #2": toy_run("50 % <b>not bold</b>"), "dark": toy_run("dark", samples=0)}
    for name, run in runs.items():
        diagnosis = diagnose(run)
        diagnosis.save(folder / name / "diagnosis.json")
        (folder / name / "report.md").write_text(f"# {name}", encoding="utf-8")
        if name == "50 % #2":
            diagnosis.showing(minimal=True).save(folder / name / "report.html")
        else:  # pages that links lead to; a whole one takes seconds
            (folder / name / "report.html").write_text(f"<title>{name}</title>", encoding="utf-8")
    bad = failed("broken", "broken", "broken/run.toml: 'nonsense' is no key; expected one of timezone, settings")
    Index.of([*Index.read(folder).rows, bad]).write(folder)
    return folder / "index.html"
