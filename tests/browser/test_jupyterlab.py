"""Notebooks in a real JupyterLab, started as a user starts it: they run, they show something, in light and in dark."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOKEN = "gpudiag-test"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
NOTEBOOKS = {name: 8 for name in os.environ.get("GPUDIAG_LAB", "run_report,tour").split(",")}
PATIENCE_S = 90


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server that `gpudiag lab RUN` started, and the folder of the copies."""
    folder = tmp_path_factory.mktemp("lab")
    home = folder / "home"
    overrides = home / "settings" / "overrides.json"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(json.dumps({"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: str(home / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    env = {**os.environ, **own, "IPYTHONDIR": str(home / "ipython"), "MPLBACKEND": "", "PYTHONWARNINGS": ""}
    command = [sys.executable, "-m", "gpudiag", "lab", str(samples / "hpo-aggressive-pruning"), "-o"]
    command += [str(folder / "mine"), "--", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root"]
    command += [f"--IdentityProvider.token={TOKEN}", "--ServerApp.port_retries=0"]
    command += ["--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"]
    command += [f"--LabApp.app_settings_dir={overrides.parent}"]
    log = folder / "lab.log"
    with log.open("wb") as said:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=said, start_new_session=True)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api?token={TOKEN}", server, log)
            yield f"http://127.0.0.1:{port}", folder / "mine"
        finally:
            server.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            server.kill()
            server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(PATIENCE_S * 2):
        assert server.poll() is None, log.read_text()
        with suppress(OSError):
            urlopen(url).close()
            return
        time.sleep(0.5)
    pytest.fail(f"JupyterLab did not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def window(browser, lab: tuple[str, Path]) -> Iterator[object]:
    """JupyterLab in a browser that reaches nothing but its server."""
    page = browser.new_page(viewport={"width": 1500, "height": 1100}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_S * 1000)
    address = lab[0]
    page.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith((address, "data:", "blob:")) else route.abort(),
    )
    page.goto(f"{address}/?token={TOKEN}")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    yield page
    page.close()


def _ask(page, command: str, **arguments: str) -> None:
    """One of JupyterLab's commands, as its menus and its palette give it; waits until it is done."""
    page.evaluate("([name, known]) => jupyterapp.commands.execute(name, known)", [command, arguments])


def _run_all(page, address: str, name: str) -> None:
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]:visible')
    _ask(page, "notebook:run-all-cells")


def _executed(path: Path, page) -> nbformat.NotebookNode:
    """The notebook as saved, once every cell with code has been executed or one has failed."""
    for _ in range(PATIENCE_S):
        page.wait_for_timeout(1000)
        _ask(page, "docmanager:save")
        cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code" and c.source]
        failed = any(output.output_type == "error" for cell in cells for output in cell.outputs)
        if failed or all(cell.execution_count for cell in cells):
            return cells
    pytest.fail(f"{path.name} was not executed in {PATIENCE_S} s")


def _choose_theme(page, name: str) -> None:
    _ask(page, "apputils:change-theme", theme=name)
    page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
    page.wait_for_timeout(500)


def test_the_first_page_is_the_notebook_of_the_run(window) -> None:
    assert re.search(r"/lab/tree/run_report\.ipynb$", window.url)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_can_be_read_in_both_themes(
    name: str, window, lab: tuple[str, Path], contrast: str, tmp_path: Path
) -> None:
    address, folder = lab
    _run_all(window, address, name)
    cells = _executed(folder / f"{name}.ipynb", window)
    outputs = [output for cell in cells for output in cell.outputs]
    assert [output.evalue for output in outputs if output.output_type == "error"] == []
    assert [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"] == []
    shown = window.locator(".jp-Notebook .gpudiag")
    assert shown.count() >= NOTEBOOKS[name]
    pictures = Path(os.environ.get("GPUDIAG_PICTURES", tmp_path))
    for scheme, theme in THEMES.items():
        _choose_theme(window, theme)
        height = window.evaluate("document.querySelector('.jp-WindowedPanel-inner').scrollHeight")
        window.set_viewport_size({"width": 1500, "height": min(int(height) + 200, 16000)})
        window.wait_for_timeout(1000)
        window.screenshot(path=pictures / f"{name}-{scheme}.png")
        poor = window.evaluate(contrast, ".gpudiag")
        window.set_viewport_size({"width": 1500, "height": 1100})
        assert poor == [], theme
