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

import nbformat
import pytest
from labserver import PATIENCE_S, TOKEN, Lab
from sampleruns import diagnosed, report_of, sample

from gpudiag.run import Run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# How many of our own displays, and how many pictures, each must show at the least.
NOTEBOOKS = {"run_report": (13, 8), "hpo_report": (9, 4), "gpu_report": (9, 4), "compare_report": (8, 1),
             "capacity_report": (5, 1), "batch_index": (1, 0), "tour": (8, 3), "ad_hoc": (6, 1)}  # fmt: skip
# All of them on a busy machine take minutes: GPUDIAG_LAB=all; a kernel runs each of them in test_notebooks.py.
CHOSEN = [*NOTEBOOKS] if os.environ.get("GPUDIAG_LAB") == "all" else ["run_report"]
FIRST = "run_report"
SAMPLE = "hpo-aggressive-pruning"
COARSE = "memory-exhaustion"
"""A sample so long that the page of its timeline holds not each sample of the telemetry."""

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
# A report that was not run here: what is left of it, and tiles whose number does not stand right above its words.
UNTRUSTED = """name => { const panel = globalThis.jupyterapp?.shell.currentWidget;
  if (panel?.context?.path !== name || !panel.context.isReady) return null;
  const all = selector => [...document.querySelectorAll(`.jp-OutputArea ${selector}`)];
  if (all(".gpudiag").length < 12) return null;
  const tiles = all(".gd-tiles > div").filter(e => e.offsetParent);
  const apart = tiles.filter(e => { const [words, number] = [...e.children].map(one => one.getBoundingClientRect());
    return number.left !== words.left || Math.abs(number.bottom - words.top) > 1; });
  return {sheets: all("style").length, buttons: all("button").length, tiles: tiles.length, apart: apart.length,
    styles: [...new Set(all(".gpudiag [style]").map(e => e.getAttribute("style")))]}; }"""
ALIVE = "() => document.querySelector('.jp-OutputArea .gd-timeline')?.timeline?.resolution.textContent || null"
FINE = """() => { const {timeline} = document.querySelector(".jp-OutputArea .gd-timeline");
  const now = timeline.samples(timeline.held);
  if (!now.exact || timeline.waiting) return null;
  const {channel, plot} = timeline.lanes.find(lane => lane.plot);
  return {...timeline.window, start: timeline.content.start, x: [...plot.data[0]], means: plot.data[1],
    name: channel.name, detail: timeline.resolution.textContent}; }"""
# What the canvas of a chart shows with the samples that came, and without them.
PICTURES = """async () => { const {timeline} = document.querySelector(".jp-OutputArea .gd-timeline");
  const frame = () => new Promise(done => setTimeout(done, 50));
  const canvas = document.querySelector(".gd-tl-chart canvas");
  await frame();
  const fine = canvas.toDataURL();
  for (const channel of timeline.content.channels) delete channel.fine;
  timeline.draw();
  await frame();
  return {fine, coarse: canvas.toDataURL()}; }"""
COLORS = """color => { const root = document.querySelector(".jp-OutputArea .gd-timeline");
  return root.timeline.held.ink.line === color && getComputedStyle(root).backgroundColor; }"""
SCROLLED = """top => { const pane = document.querySelector(".jp-WindowedPanel-outer");
  pane.scrollTop = top; return pane.scrollTop + pane.clientHeight < pane.scrollHeight; }"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Iterator[Lab]:
    """A server, and in its folder what an earlier report of the run has left, so that batch_index has a row."""
    lab = Lab.start(samples / SAMPLE, tmp_path_factory.mktemp("lab"))
    try:
        diagnosed(SAMPLE).save(lab.folder / "reports" / SAMPLE / "diagnosis.json")
        lab.wait()
        yield lab
    finally:
        lab.end()


@pytest.fixture(scope="module")
def user(browser, lab: Lab) -> Iterator[Any]:
    """A browser that reaches nothing but the server, which knows it, and that keeps the scripts of JupyterLab."""
    user = browser.new_context(viewport={"width": 1500, "height": 1100}, reduced_motion="reduce")
    user.set_default_timeout(PATIENCE_S * 1000)
    allowed = (lab.address, "data:", "blob:")
    user.route("**/*", lambda ask: ask.continue_() if ask.request.url.startswith(allowed) else ask.abort())
    user.request.get(f"{lab.address}/api/me?token={TOKEN}")
    yield user
    user.close()


@pytest.fixture
def window(user) -> Iterator[Any]:
    page = user.new_page()
    yield page
    page.close()


def _told(page, question: str, argument: object = None) -> Any:
    """What the page answers as soon as that is neither null nor false; fails with what JupyterLab shows instead."""
    from playwright.sync_api import TimeoutError as TookTooLong

    try:
        return page.wait_for_function(question, arg=argument, polling=200).json_value()
    except TookTooLong:
        dialog = page.locator(".jp-Dialog").first
        asks = dialog.inner_text(timeout=1000) if dialog.is_visible() else "no dialog is open"
        pytest.fail(f"no answer from JupyterLab in {PATIENCE_S} s ({asks}): {question}")


def _begin(page, command: str, **arguments: str) -> None:
    """Begin one of JupyterLab's commands, as its menus and its palette give it."""
    _told(page, BEGIN, [command, arguments])


def address(lab: Lab, name: str) -> str:
    """Of a notebook alone: no tab of another test comes back."""
    return f"{lab.address}/lab/workspaces/{name}/tree/{name}.ipynb"


def _executed(page, name: str) -> list[dict[str, Any]]:
    """The outputs of all cells of the open notebook, once all have been executed or one has failed."""
    _told(page, READY, f"{name}.ipynb")
    _begin(page, "notebook:run-all-cells")
    end = _told(page, RAN)
    assert end["refused"] == ""
    return end["outputs"]


@pytest.mark.parametrize("name", CHOSEN)
def test_a_notebook_runs_and_can_be_read_in_both_themes(name: str, window, lab: Lab, contrast: str) -> None:
    """The first page that a user sees is the notebook of the run; others are gone to."""
    window.goto(lab.address if name == FIRST else address(lab, name))
    assert name != FIRST or re.search(r"/lab/tree/run_report\.ipynb\??$", window.url)
    outputs = _executed(window, name)
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


def test_an_untrusted_report_keeps_its_look(window, lab: Lab, contrast: str) -> None:
    notebook = nbformat.read(report_of(SAMPLE) / "report.ipynb", as_version=4)
    nbformat.write(notebook, lab.folder / "untrusted.ipynb")
    asked = {
        tuple(found.split("; "))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for found in re.findall(r' style="([^"<>]*)"', output["data"]["text/html"])
    }
    window.goto(address(lab, "untrusted"))
    shown = _told(window, UNTRUSTED, "untrusted.ipynb")
    assert shown["sheets"] == 0 and shown["buttons"] == 0
    kept = {tuple(one.replace(":", ": ", 1) for one in style.rstrip(";").split(";")) for style in shown["styles"]}
    assert asked == kept and len(kept) > 15
    assert shown["tiles"] >= 4 and shown["apart"] == 0
    for scheme, theme in THEMES.items():
        _begin(window, "apputils:change-theme", theme=theme)
        _told(window, THEME, theme)
        window.wait_for_timeout(500)
        _picture(window, f"untrusted-{scheme}")
        assert _told(window, f"within => ({{poor: ({contrast})(within)}})", ".gpudiag") == {"poor": []}, theme


@pytest.fixture(scope="module")
def coarse() -> Run:
    return sample(COARSE)


@pytest.fixture(scope="module")
def widget(user, lab: Lab, samples: Path) -> Iterator[Any]:
    """A notebook that was run in JupyterLab: one cell, the widget of the run ``coarse``."""
    code = f"import gpudiag as gd\ngd.load_run({str(samples / COARSE)!r}).timeline().widget()"
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    cells = [nbformat.v4.new_code_cell(code)]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, lab.folder / "widget.ipynb")
    page = user.new_page()
    page.goto(address(lab, "widget"))
    outputs = _executed(page, "widget")
    assert [output["evalue"] for output in outputs if output["output_type"] == "error"] == []
    yield page
    page.close()


def test_a_widget_gets_the_samples_of_what_it_shows_from_the_kernel(widget, coarse: Run) -> None:
    assert "detail: 15 s." in _told(widget, ALIVE)
    box = widget.locator(".gd-tl-chart .gd-tl-pane").first.bounding_box()
    widget.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 30)
    widget.keyboard.down("Control")
    for _ in range(9):
        widget.mouse.wheel(0, -200)
    widget.keyboard.up("Control")
    shown = _told(widget, FINE)
    assert "detail: 10 s." in shown["detail"] and shown["name"] == "GPU utilization"
    at_s = coarse.gpu["time"].astype("int64") / 1e6 - shown["start"]
    inside = coarse.gpu[(at_s > shown["a"] + 10) & (at_s < shown["b"] - 10) & coarse.gpu["util_pct"].notna()]
    assert 20 < len(inside) < 300
    drawn = [min(range(len(shown["x"])), key=lambda i: abs(shown["x"][i] - at)) for at in at_s[inside.index]]
    assert [shown["means"][i] for i in drawn] == pytest.approx(inside["util_pct"].tolist(), abs=0.02)
    pictures = _told(widget, PICTURES)
    assert pictures["fine"] != pictures["coarse"]


def test_a_widget_keeps_its_keys_from_jupyterlab_and_follows_its_theme(widget) -> None:
    _told(widget, ALIVE)
    stage = widget.locator(".gd-timeline .gd-tl-stage")
    stage.focus()
    root = widget.locator(".jp-OutputArea .gd-timeline")
    widget.keyboard.press("0")
    whole = root.get_attribute("data-window")
    widget.keyboard.press("+")
    widget.keyboard.press("ArrowRight")
    zoomed = root.get_attribute("data-window")
    assert zoomed != whole and stage.evaluate("e => e === document.activeElement")
    widget.keyboard.press("0")
    widget.keyboard.press("0")  # would ask whether to restart the kernel
    assert root.get_attribute("data-window") == whole and widget.locator(".jp-Dialog").count() == 0
    widget.get_by_role("button", name="Zoom in").focus()
    widget.keyboard.press("Enter")
    assert root.get_attribute("data-window") != whole
    papers = {}
    for theme, line in zip(THEMES.values(), ("#e3e6ea", "#333a45"), strict=True):
        _begin(widget, "apputils:change-theme", theme=theme)
        _told(widget, THEME, theme)
        papers[theme] = _told(widget, COLORS, line)
    assert papers == {"JupyterLab Light": "rgb(255, 255, 255)", "JupyterLab Dark": "rgb(27, 31, 38)"}


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
