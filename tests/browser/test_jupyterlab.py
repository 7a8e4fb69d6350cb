"""Notebooks in a real JupyterLab, started as a user starts it: they run, they show something, in light and in dark.

No call waits without limit: Playwright's ``evaluate`` has none, and a command of JupyterLab that asks a question in a
dialog never returns. Commands are therefore only begun, and what comes of them is read from the page until it is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labserver import PATIENCE_S, TOKEN, Lab
from playwright.sync_api import TimeoutError as TookTooLong

from gpudiag.diagnosis import diagnose
from gpudiag.load import load_run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# How many of our own displays, and how many pictures, each must show at the least.
NOTEBOOKS = {"run_report": (13, 8), "hpo_report": (9, 4), "gpu_report": (9, 4), "compare_report": (8, 1),
             "capacity_report": (5, 1), "batch_index": (1, 0), "tour": (8, 3), "ad_hoc": (6, 1)}  # fmt: skip
# All of them on a busy machine take minutes: GPUDIAG_LAB=all; papermill runs each of them in test_notebooks.py.
CHOSEN = [*NOTEBOOKS] if os.environ.get("GPUDIAG_LAB") == "all" else ["run_report", "tour", "ad_hoc"]
SAMPLE = "hpo-aggressive-pruning"

READY = """name => { const panel = globalThis.jupyterapp?.shell.currentWidget;
  return panel?.context?.path === name && panel.context.isReady && panel.sessionContext.isReady
    && panel.sessionContext.session?.kernel?.status === "idle"; }"""
BEGIN = """([name, known]) => {
  globalThis.refused = null;
  jupyterapp.commands.execute(name, known).catch(error => { globalThis.refused = String(error); });
  return true; }"""
RAN = """() => { const panel = jupyterapp.shell.currentWidget;
  if (globalThis.refused) return {refused: globalThis.refused, outputs: []};
  const cells = panel.content.model.toJSON().cells.filter(c => c.cell_type === "code" && String(c.source).trim());
  const outputs = cells.flatMap(c => c.outputs);
  const idle = panel.sessionContext.session?.kernel?.status === "idle";
  const done = cells.length && idle && cells.every(c => c.execution_count);
  return done || outputs.some(o => o.output_type === "error") ? {refused: "", outputs} : null; }"""
THEME = "name => document.body.dataset.jpThemeName === name"
DRAWN = """() => [...document.querySelectorAll(".jp-Notebook img")].every(i => i.complete)"""
# JupyterLab's own rules for dl and dt would put every tile below the other.
STACKED = """() => ({stacked: [...document.querySelectorAll(".gpudiag .gd-tiles:has(> :nth-child(2))")]
  .filter(e => e.children[0].offsetTop !== e.children[1].offsetTop).length})"""
SCROLLED = """top => { const pane = document.querySelector(".jp-WindowedPanel-outer");
  pane.scrollTop = top; return pane.scrollTop + pane.clientHeight < pane.scrollHeight; }"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Iterator[Lab]:
    """A server, and in its folder what an earlier report of the run has left, so that batch_index has a row."""
    lab = Lab.start(samples / SAMPLE, tmp_path_factory.mktemp("lab"))
    try:
        diagnose(load_run(samples / SAMPLE)).save(lab.folder / "reports" / SAMPLE / "diagnosis.json")
        lab.wait()
        yield lab
    finally:
        lab.end()


@pytest.fixture
def window(browser, lab: Lab) -> Iterator[Any]:
    """JupyterLab in a browser that reaches nothing but its server."""
    page = browser.new_page(viewport={"width": 1500, "height": 1100}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_S * 1000)
    allowed = (lab.address, "data:", "blob:")
    page.route("**/*", lambda ask: ask.continue_() if ask.request.url.startswith(allowed) else ask.abort())
    page.goto(f"{lab.address}/?token={TOKEN}")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    yield page
    page.close()


def _told(page, question: str, argument: object = None) -> Any:
    """What the page answers as soon as that is neither null nor false; fails with what JupyterLab shows instead."""
    try:
        return page.wait_for_function(question, arg=argument, polling=200).json_value()
    except TookTooLong:
        dialog = page.locator(".jp-Dialog").first
        asks = dialog.inner_text(timeout=1000) if dialog.is_visible() else "no dialog is open"
        pytest.fail(f"no answer from JupyterLab in {PATIENCE_S} s ({asks}): {question}")


def _begin(page, command: str, **arguments: str) -> None:
    """Begin one of JupyterLab's commands, as its menus and its palette give it."""
    _told(page, BEGIN, [command, arguments])


def _executed(page, lab: Lab, name: str) -> list[dict[str, Any]]:
    """The outputs of all cells of a notebook, once all have been executed or one has failed."""
    page.goto(f"{lab.address}/lab/workspaces/{name}/tree/{name}.ipynb")  # alone: no tab of another test comes back
    _told(page, READY, f"{name}.ipynb")
    _begin(page, "notebook:run-all-cells")
    end = _told(page, RAN)
    assert end["refused"] == ""
    return end["outputs"]


def test_the_first_page_is_the_notebook_of_the_run(window) -> None:
    assert re.search(r"/lab/tree/run_report\.ipynb$", window.url)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_notebook_runs_and_can_be_read_in_both_themes(name: str, window, lab: Lab, contrast: str) -> None:
    outputs = _executed(window, lab, name)
    assert [output["evalue"] for output in outputs if output["output_type"] == "error"] == []
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []
    _told(window, DRAWN)
    displays, pictures = NOTEBOOKS[name]
    assert window.locator(".jp-Notebook .gpudiag").count() >= displays
    assert window.locator(".jp-OutputArea-output img").count() >= pictures
    assert _told(window, STACKED) == {"stacked": 0}
    for scheme, theme in THEMES.items():
        _begin(window, "apputils:change-theme", theme=theme)
        _told(window, THEME, theme)
        window.wait_for_timeout(500)  # the style sheet of a theme comes a little after its name
        _picture(window, f"{name}-{scheme}")
        assert _told(window, f"within => ({{poor: ({contrast})(within)}})", ".gpudiag") == {"poor": []}, theme


def _picture(page, name: str) -> None:
    """With GPUDIAG_PICTURES=DIR, leave pictures of the whole notebook there, to be looked at."""
    folder = os.environ.get("GPUDIAG_PICTURES")
    below = bool(folder)
    for number in range(40):
        if not below:
            break
        below = page.evaluate(SCROLLED, number * 1000)
        page.wait_for_timeout(200)
        page.screenshot(path=Path(str(folder)) / f"{name}-{number}.png")
