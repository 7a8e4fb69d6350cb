"""The page of a large fleet, in a real browser: what its first screen holds, and that nothing leaves a narrow one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpudiag.fleets.table import FleetTable
from gpudiag.report.fleet.document import Cause, ClusterDocument, FailedTrials, HeatMap, RunRow, UnusedGpu

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOWN = """() => {
    const bottom = selector => document.querySelector(selector)?.getBoundingClientRect().bottom;
    const wide = [...document.querySelectorAll('main *')].filter(one =>
        one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1);
    return {words: document.querySelector('main').innerText.split(/\\s+/).length,
            banner: bottom('.gd-banner'), picture: bottom('#figure-owners'),
            width: document.documentElement.scrollWidth,
            scrolled: [...document.querySelectorAll('.gd-scroll, .gd-pan')]
                .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).length,
            wide: wide.map(one => one.tagName + one.className)};
}"""
TITLES = {
    "pruning-rate-high": "Nearly all trials are pruned",
    "idle-without-trial": "The GPU waited for the next trial",
    "cpu-bound-input": "The CPU prepared too little data",
    "memory-headroom": "Most of the GPU memory was free",
    "failure-rate-high": "Too many trials fail",
    "sensor-stuck": "A sensor did not change",
    "trial-gaps": "Gaps between trials are long",
    "launch-bound": "Launches of kernels took the time",
}


def made(at: int, rng: np.random.Generator) -> RunRow:
    hours = float(rng.uniform(10, 400))
    start = datetime.fromisoformat("2025-10-06T08:00:00+00:00") + timedelta(days=at)
    lost = {rule: float(rng.uniform(0, hours / 4)) for rule in ("idle-without-trial", "cpu-bound-input")}
    rules = [str(rule) for rule in rng.choice(list(TITLES), 3, replace=False)]
    causes = tuple(Cause(rule, TITLES[rule], "warning", lost.get(rule), None) for rule in rules)
    top = max(causes, key=lambda one: one.lost_gpu_h or 0.0)
    return RunRow(
        run=f"project-{at % 9}/experiment-with-a-long-name-{at:03d}",
        source=f"/data/project-{at % 9}/{at}",
        status="diagnosed",
        user=f"a.long-user-name{at % 60}",
        project=f"project-{at % 9}",
        host=f"gpu-node-{at % 30:02d}.cluster",
        gpu_model="NVIDIA H100 80GB HBM3",
        start=start.isoformat(),
        end=(start + timedelta(hours=hours)).isoformat(),
        gpu_s=3600 * hours,
        busy_gpu_s=3600 * hours * 0.6,
        stalled_gpu_s=3600 * hours * 0.3,
        unobserved_gpu_s=3600 * hours * 0.1,
        util_pct=float(rng.uniform(20, 80)),
        pruned_gpu_s=360 * hours,
        failed_gpu_s=180 * hours,
        n_trials=50,
        n_failed=5,
        cost=2.5 * hours,
        currency="USD",
        price_per_gpu_h=2.5,
        energy_kwh=hours / 3,
        level="warning",
        use="partly",
        top_cause=top.rule,
        recoverable_gpu_h=top.lost_gpu_h,
        causes=causes,
        failures=(FailedTrials("oom", 5, 180 * hours),),
        inputs=str(at),
    )


def large_fleet() -> FleetTable:
    rng = np.random.default_rng(3)
    failed = [RunRow(f"bad/{at}", f"/bad/{at}", "not diagnosed", reason="It has no data.") for at in range(20)]
    return FleetTable.of([*(made(at, rng) for at in range(300)), *failed], "all-runs")


def cluster() -> FleetTable:
    rows = [
        replace(one, status="accounted", state="FAILED" if at % 3 else "COMPLETED", n_trials=None, causes=(),
                failures=(), recoverable_gpu_h=None, pruned_gpu_s=None, failed_gpu_s=None, top_cause="",
                cost=None, stalled_gpu_s=0.0, idle_no_trial_gpu_s=one.stalled_gpu_s, energy_kwh=None)
        for at, one in enumerate(large_fleet().rows) if one.gpu_s
    ]  # fmt: skip
    idle = tuple(UnusedGpu(f"node{at // 4:02d}", str(at % 4), "", "NVIDIA H100", 3e6) for at in range(24))
    start = datetime.fromisoformat("2025-10-06T00:00:00+00:00")
    columns = tuple((start + timedelta(days=at)).isoformat() for at in range(90))
    names = tuple(f"gpu-node-{at:02d}.cluster/0" for at in range(40))
    heat = HeatMap(names, 1, columns, 24.0, tuple(tuple(float(at + k) % 100 for at in range(90)) for k in range(40)))
    about = ClusterDocument(30, 240, 0, 1e9, columns[0], columns[-1], True, idle, heat)
    return FleetTable(tuple(rows), "cluster", cluster=about)


@pytest.fixture(scope="module", params=["fleet", "cluster"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    table = large_fleet() if request.param == "fleet" else cluster().divided_by("user")
    yield table.save(tmp_path_factory.mktemp(request.param) / "fleet.html")


@pytest.fixture(scope="module")
def opened(browser, page: Path) -> Iterator[Any]:
    opened = browser.new_page()
    opened.goto(page.as_uri())
    yield opened
    opened.close()


def shown(opened: Any, width: int, height: int) -> dict:
    opened.set_viewport_size({"width": width, "height": height})
    return opened.evaluate(SHOWN)


def test_the_first_screen_holds_the_answers_and_the_picture(opened) -> None:
    assert shown(opened, 1280, 800)["picture"] <= 900
    assert shown(opened, 390, 844)["banner"] <= 844


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_leaves_a_screen(opened, width: int) -> None:
    found = shown(opened, width, 844)
    assert found["width"] == width and found["scrolled"] == 0 and found["wide"] == []


def test_a_large_fleet_is_a_short_and_small_page(opened, page: Path) -> None:
    assert shown(opened, 1280, 800)["words"] <= 950
    assert page.stat().st_size <= 1_100_000


def test_on_paper_it_has_few_pages(opened) -> None:
    assert opened.pdf(format="A4").count(b"/Type /Page\n") <= 8


def test_a_map_keeps_its_colors_on_a_dark_page(opened) -> None:
    """Inverted, bright would mean unused."""
    opened.emulate_media(color_scheme="dark")
    for width in (390, 1280):
        opened.set_viewport_size({"width": width, "height": 844})
        name = "heat" if opened.locator("#figure-heat").count() else "hosts"
        assert opened.evaluate(f"getComputedStyle(document.querySelector('#figure-{name} img')).filter") == "none"
    opened.emulate_media(color_scheme="light")
