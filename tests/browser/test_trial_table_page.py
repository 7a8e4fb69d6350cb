"""The table of all trials in a real browser: filter, sort, copy, the way to the timeline; and 10,000 trials."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sampleruns import diagnosed, report_of
from test_accessibility import TAGS
from test_timeline_page import opened
from toyrun import START, toy_run

from gpudiag.diagnosis import diagnose
from gpudiag.schema import TRIALS, conform

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SAMPLE = "memory-exhaustion"
LOOKS = [(1280, "light"), (390, "dark")]
MOST_BYTES = 5_000_000
MOST_MS = 400
"""For sorting or filtering 10,000 trials; it takes some 30 ms on an idle machine."""
COPIED = "() => { window.held = []; navigator.clipboard.writeText = async (text) => { held.push(text); }; }"


@pytest.fixture(scope="module")
def path() -> Path:
    return report_of(SAMPLE) / "report.html"


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def page(browser: Any, path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The report with the table open; on leaving, nothing was said and nothing asked of a network."""
    width, scheme = request.param
    said: list[str] = []
    page = opened(browser, path, said, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.locator(".gd-timeline").wait_for(state="visible")
    shown(page)
    yield page
    page.close()
    assert said == []


ANY_WIDTH = pytest.mark.parametrize("page", LOOKS[:1], ids=["1280-light"], indirect=True)


def shown(page: Any) -> None:
    page.locator(".gd-few > summary").click()
    page.locator(".gd-trials tbody tr").first.wait_for()


def cells(page: Any, label: str) -> list[str]:
    """A column of the rows on the page, sorted out by its label."""
    found: list[str] = page.locator(f'.gd-trials td[data-column="{label}"]').all_inner_texts()
    return found


def found(page: Any, wanted: str) -> int:
    """How many trials pass a filter."""
    page.get_by_role("searchbox", name="Filter").fill(wanted)
    said = page.locator(".gd-trials [role=status]").inner_text()
    return int(said.split(" ")[0].replace(",", ""))


@ANY_WIDTH
def test_conditions_and_words_choose_rows(page: Any) -> None:
    trials = diagnosed(SAMPLE).run.trials
    failed, lr = trials["state"] == "FAIL", trials["params.lr"]
    lasted = (trials["end"] - trials["start"]).dt.total_seconds()
    assert found(page, "") == len(trials)
    assert found(page, "fail") == failed.sum() == found(page, "state=FAIL")
    assert found(page, "state != FAIL") == (~failed).sum()
    assert found(page, "lr > 0.001") == (lr > 0.001).sum()
    assert (
        found(page, "lr>1e-3 params.model=base state=COMPLETE")
        == ((lr > 0.001) & (trials["params.model"] == "base") & (trials["state"] == "COMPLETE")).sum()
    )
    assert found(page, "duration>=2min") == (lasted >= 120).sum() and found(page, "duration<90") == (lasted < 90).sum()
    assert found(page, '"out of memory"') == found(page, 'ended="out of memory"') > 0
    day = trials["start"].dt.tz_convert(diagnosed(SAMPLE).run.info.timezone).dt.strftime("%Y-%m-%d")
    assert found(page, "start=2025-12-03") == (day == "2025-12-03").sum() > 0
    assert found(page, "trial<10") == (trials["trial"] < 10).sum()
    assert found(page, "lr>") == len(trials)
    page.get_by_role("searchbox", name="Filter").fill("nothing>3")
    assert page.locator(".gd-trials [role=status]").inner_text() == "No column is named nothing."


@ANY_WIDTH
def test_a_column_sorts_both_ways_and_the_unknown_stay_last(page: Any) -> None:
    found(page, "state=COMPLETE")
    button = page.get_by_role("button", name="Value", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    head = page.locator(".gd-trials th", has=button)
    assert head.get_attribute("aria-sort") == "ascending"
    best = sorted(diagnosed(SAMPLE).run.trials.query("state == 'COMPLETE'")["value"])
    first = [float(text) for text in cells(page, "Value")]
    assert first == pytest.approx(best[: len(first)], rel=1e-4) and first == sorted(first)
    button.click()
    assert head.get_attribute("aria-sort") == "descending"
    assert float(cells(page, "Value")[0]) == pytest.approx(best[-1], rel=1e-4)
    found(page, "")
    assert float(cells(page, "Value")[0]) >= best[-1] * (1 - 1e-4)


def test_pages_turn_by_keyboard(page: Any) -> None:
    first = cells(page, "Trial")
    turn = page.get_by_role("button", name="Next")
    turn.focus()
    page.keyboard.press("Enter")
    second = cells(page, "Trial")
    n = 20 if page.viewport_size["width"] > 560 else 10
    assert len(first) == len(second) == n and set(first).isdisjoint(second)
    assert page.locator(".gd-trials [role=status]").inner_text() == f"452 trials: {n + 1}–{2 * n}"
    page.get_by_role("button", name="Previous").click()
    assert cells(page, "Trial") == first
    page.get_by_role("button", name="Previous").focus()
    page.keyboard.press("Enter")
    assert cells(page, "Trial") == first, "there is nothing before the first page"


def test_a_click_on_a_row_shows_the_trial_on_the_timeline(page: Any) -> None:
    window = "document.querySelector('.gd-timeline').dataset.window"
    whole = page.evaluate(window)
    page.locator(".gd-trials tbody tr td:nth-child(2)").nth(3).click()
    there = page.evaluate(window)
    assert there != whole and page.locator(".gd-tl-stage").evaluate("e => e === document.activeElement")
    page.locator(".gd-tt-name").nth(5).focus()
    page.keyboard.press("Enter")
    assert page.evaluate(window) not in (whole, there)
    name = page.locator(".gd-tt-name").nth(5).inner_text()
    timeline = "document.querySelector('.gd-timeline').timeline"
    chosen = page.evaluate(f"{timeline}.focus.trials.map(i => {timeline}.content.trials.names[i])")
    assert chosen == [name.removeprefix("Trial ")]


@ANY_WIDTH
def test_the_copy_holds_what_is_chosen_in_all_digits(page: Any) -> None:
    page.evaluate(COPIED)
    n = found(page, "state=COMPLETE model=base")
    page.get_by_role("button", name="Copy as CSV").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = pd.read_csv(io.StringIO(page.evaluate("held[0]")))
    trials = diagnosed(SAMPLE).run.trials
    expected = trials[(trials["state"] == "COMPLETE") & (trials["params.model"] == "base")].reset_index(drop=True)
    assert len(copied) == n == len(expected) and copied["trial"].tolist() == expected["trial"].tolist()
    np.testing.assert_array_equal(copied["value"], expected["value"])
    np.testing.assert_allclose(copied["lr"], expected["params.lr"], rtol=1e-6)
    starts = pd.to_datetime(copied["start"], utc=True)
    assert ((starts - expected["start"]).abs() <= pd.Timedelta("1ms")).all()
    lasted = (expected["end"] - expected["start"]).dt.total_seconds()
    np.testing.assert_allclose(copied["duration_s"], lasted, atol=0.001)


def test_no_part_is_wider_than_the_screen_and_axe_finds_nothing(page: Any, axe: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.locator(".gd-tt-box").evaluate("box => box.scrollWidth <= box.clientWidth")
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}}
    found = axe.run(page, context=".gd-few", options=options).response
    assert [violation["id"] for violation in found["violations"]] == [] and len(found["passes"]) > 5


def test_on_paper_and_without_a_script_stand_a_few(page: Any, browser: Any, path: Path) -> None:
    few = page.locator(".gd-few > .gd-scroll")
    assert not few.is_visible()
    page.emulate_media(media="print")
    assert few.is_visible() and not page.locator(".gd-trials").is_visible()
    bare = browser.new_page(java_script_enabled=False)
    bare.goto(path.as_uri())
    bare.get_by_text("Some of 452 trials").click()
    assert bare.locator(".gd-few > .gd-scroll tbody tr").count() >= 5
    assert not bare.locator(".gd-trials").is_visible()
    bare.close()


def test_open_all_shows_it_too(browser: Any, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri())
    page.locator("#open-all").set_checked(True)
    page.locator(".gd-trials tbody tr").first.wait_for()
    page.close()


def test_text_of_a_run_stays_text_and_becomes_no_formula(browser: Any, evil: str, tmp_path: Path) -> None:
    run = toy_run(evil)
    columns = {
        f"params.{evil}": evil,
        "params.=1+1": "@SUM(1)",
        "params.loss": -0.5,
        "worker": evil,
        "detail": '="a",b',
    }
    run = replace(run, trials=conform(run.trials.assign(**columns), TRIALS))
    said: list[str] = []
    page = opened(browser, diagnose(run).showing("trial_table").save(tmp_path / "report.html"), said)
    shown(page)
    assert page.locator(".gd-trials :is(img, td script)").count() == 0
    page.evaluate(COPIED)
    page.get_by_role("button", name="Copy as CSV").click()
    page.get_by_role("button", name="Copied").wait_for()
    head, *rows = csv.reader(io.StringIO(page.evaluate("held[0]")))
    row = dict(zip(head, rows[0], strict=True))
    assert row["'=1+1"] == "'@SUM(1)" and row["loss"] == "-0.5" and len(rows) == 12
    assert not any(cell.startswith(("=", "+", "@")) for line in (head, *rows) for cell in line)
    page.close()
    assert said == []


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 10,000 trials of eight parameters."""
    rng, n = np.random.default_rng(7), 10_000
    start = START + pd.to_timedelta(np.arange(n) // 8 * 30.0, unit="s")
    state = rng.choice(["COMPLETE", "PRUNED", "FAIL"], n)
    trials = pd.DataFrame(
        {"study": "s", "trial": np.arange(n), "state": state, "start": start,
         "end": start + pd.to_timedelta(rng.uniform(5, 28, n), unit="s"), "worker": [f"w{i % 8}" for i in range(n)],
         "value": np.where(state == "FAIL", np.nan, rng.normal(size=n)), "params.kind": rng.choice(["a", "b"], n),
         **{f"params.p{i}": rng.lognormal(-5, 2, n) for i in range(7)}}
    )  # fmt: skip
    run = replace(toy_run(), trials=conform(trials, TRIALS))
    return diagnose(run).save(tmp_path_factory.mktemp("large") / "report.html")


def test_ten_thousand_trials_are_light_and_quick(browser: Any, large: Path) -> None:
    assert large.stat().st_size <= MOST_BYTES
    said: list[str] = []
    page = opened(browser, large, said, viewport={"width": 1280, "height": 900})
    assert page.locator(".gd-trials tr").count() == 0, "no row is made before the table is looked at"
    shown(page)
    assert found(page, "kind=a p1>0.01") > 1000
    for column in ("Trial", "Value", "p3", "Start", "Worker"):
        page.locator(".gd-trials th").get_by_role("button", name=column, exact=True).click()
    took = page.locator(".gd-trials").evaluate("e => [e.dataset.filterMs, e.dataset.sortMs].map(Number)")
    assert max(took) < MOST_MS and page.locator(".gd-trials tbody tr").count() == 20
    page.close()
    assert said == []
