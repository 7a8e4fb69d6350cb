"""The timeline in a real browser: zoom, hover, keys, touch and links to it; and what stands there without a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sampleruns import report_of
from test_accessibility import TAGS
from toyrun import toy_run

from gpudiag.diagnosis import diagnose
from gpudiag.plots._draw.palette import STATE_COLORS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOOKS = [(1280, "light"), (390, "dark")]
LINKS = """targets => { for (const target of targets) {
  const button = document.createElement("button");
  button.dataset.gdGoto = target; button.textContent = target; button.className = "test";
  document.querySelector("main").prepend(button); } }"""
SETTLED = "() => !document.querySelector('.gd-timeline').timeline.waiting"


@pytest.fixture(scope="module")
def sample_report() -> Path:
    return report_of("memory-exhaustion") / "report.html"


def opened(browser: Any, path: Path, said: list[str], **options: Any) -> Any:
    page = browser.new_page(reduced_motion="reduce", **options)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda ask: said.append(ask.url) if ask.url.split(":")[0] not in ("file", "data") else None)
    page.goto(path.as_uri())
    return page


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def alive(browser: Any, sample_report: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The report with its timeline alive; on leaving, nothing was said and nothing asked of a network."""
    width, scheme = request.param
    said: list[str] = []
    page = opened(browser, sample_report, said, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.locator(".gd-timeline").wait_for(state="visible")
    page.wait_for_function(SETTLED)
    yield page
    page.close()
    assert said == []


@pytest.fixture
def page(alive: Any) -> Iterator[Any]:
    """The same page for all tests of a look, each of which finds it at its top with everything shown."""
    yield alive
    alive.emulate_media(media="screen")
    alive.mouse.move(2, 2)
    alive.locator(".gd-tl-stage").focus()
    alive.keyboard.press("0")
    alive.evaluate("() => { document.querySelectorAll('button.test').forEach(one => one.remove()); scrollTo(0, 0); }")
    alive.wait_for_function(SETTLED)


def window(page: Any) -> tuple[float, float]:
    low, high = page.locator(".gd-timeline").get_attribute("data-window").split()
    return float(low), float(high)


def box_of(page: Any, lane: str) -> dict[str, float]:
    """Where a lane is drawn, on the screen."""
    pane = page.locator(f".gd-tl-{lane} .gd-tl-pane").first
    pane.scroll_into_view_if_needed()
    box: dict[str, float] = pane.bounding_box()
    return box


def drag(page: Any, lane: str, first: float, last: float) -> None:
    """Across a lane, from one part of its width to another."""
    box = box_of(page, lane)
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + first * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + last * box["width"], y, steps=4)
    page.mouse.up()


def test_a_drag_zooms_and_a_double_click_shows_everything_again(page: Any) -> None:
    whole = window(page)
    drag(page, "trials", 0.4, 0.6)
    low, high = window(page)
    assert whole[0] < low < high < whole[1] and (high - low) < 0.3 * (whole[1] - whole[0])
    said = page.locator(".gd-tl-span").inner_text()
    assert said.startswith("2025-12-0") and " to " in said
    box = box_of(page, "trials")
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + 5)
    assert window(page) == whole


def test_keys_zoom_pan_and_reset(page: Any) -> None:
    whole = window(page)
    stage = page.get_by_role("group", name="Timeline of memory-exhaustion: 452 trials and 1 GPU")
    stage.focus()
    page.keyboard.press("+")
    low, high = window(page)
    assert high - low == pytest.approx((whole[1] - whole[0]) / 2, rel=1e-3)
    page.keyboard.press("ArrowRight")
    assert window(page)[0] == pytest.approx(low + (high - low) / 4, rel=1e-3)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("-")
    assert window(page) == whole
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert window(page) == whole
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_buttons_have_names_and_do_the_same(page: Any) -> None:
    whole = window(page)
    page.get_by_role("button", name="Zoom in").click()
    assert window(page) != whole
    page.get_by_role("button", name="Show everything").click()
    assert window(page) == whole


def test_the_wheel_scrolls_the_page_and_with_control_it_zooms(page: Any) -> None:
    whole = window(page)
    box = box_of(page, "chart")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, -120)
    page.wait_for_function("before => scrollY < before", arg=before)
    assert window(page) == whole
    box = box_of(page, "chart")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function("document.querySelector('.gd-timeline').timeline.window.a > 0")


def test_the_box_says_what_is_under_the_pointer_and_stays_on_the_screen(page: Any) -> None:
    page.evaluate("document.querySelector('.gd-timeline').timeline.goto('trial:2')")
    page.wait_for_function(SETTLED)
    box = box_of(page, "trials")
    page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 2.5 * 18)
    said = page.locator(".gd-tl-box").inner_text()
    for part in ("Trial 2", "FAIL", "2025-12-02 18:20:16 to 18:22:51, 2 min 35 s", "batch_size", "64", "out of memory"):
        assert part in said, part
    edges = page.locator(".gd-tl-box").bounding_box()
    assert edges["x"] >= 0 and edges["x"] + edges["width"] <= page.viewport_size["width"]
    box = box_of(page, "chart")
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 30)
    assert "GPU utilization" in page.locator(".gd-tl-box").inner_text()
    page.mouse.move(2, 2)
    assert not page.locator(".gd-tl-box").is_visible()


def test_links_lead_to_findings_trials_and_times(page: Any) -> None:
    iso = "time:2025-12-03T00:00:00+00:00:2025-12-03T01:00:00.500000Z"
    page.evaluate(LINKS, ["finding:memory-near-limit", "trial:231", iso, "finding:none-such"])
    buttons = page.locator("button.test")
    seen = set()
    for place in range(4):
        page.evaluate("scrollTo(0, 0)")
        buttons.nth(place).click()
        low, high = window(page)
        seen.add((low, high))
        assert page.locator(".gd-tl-stage").evaluate("e => e === document.activeElement")
        top = page.locator(".gd-timeline").bounding_box()
        assert top["y"] < 900 and top["y"] + top["height"] > 0
    assert len(seen) == 4
    page.evaluate("target => document.querySelector('.gd-timeline').timeline.goto(target)", iso)
    low, high = window(page)
    assert high - low == pytest.approx(1.5 * 3600.5, rel=0.01)


def test_a_finding_with_a_place_in_time_has_a_way_there(page: Any) -> None:
    ways = page.locator("button.gd-goto:visible")
    rules = ways.evaluate_all("ways => ways.map(way => way.dataset.gdGoto)")
    assert {"finding:trials-abandoned", "finding:failures-device-assert"} <= set(rules)
    assert page.locator("button.gd-goto").count() > len(rules), "failure-rate-high has none"
    whole = window(page)
    page.locator('button.gd-goto[data-gd-goto="finding:trials-abandoned"]:visible').first.focus()
    page.keyboard.press("Enter")
    assert window(page) != whole and page.locator(".gd-tl-stage").evaluate("e => e === document.activeElement")


def test_it_is_no_wider_than_the_screen_and_axe_finds_nothing(page: Any, axe: Any) -> None:
    room = page.locator(".gd-timeline").bounding_box()
    assert room["x"] >= 0 and room["x"] + room["width"] <= page.viewport_size["width"]
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}}
    found = axe.run(page, context=".gd-both", options=options).response
    assert [violation["id"] for violation in found["violations"]] == [] and len(found["passes"]) > 5


def test_the_lanes_are_drawn_in_colors_of_their_states(page: Any) -> None:
    page.evaluate("document.querySelector('.gd-timeline').timeline.goto('finding:failures-out-of-memory')")
    page.wait_for_function(SETTLED)
    colors = page.locator(".gd-tl-trials canvas").evaluate(
        """c => { const {data} = c.getContext('2d').getImageData(0, 0, c.width, c.height), seen = new Set();
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) seen.add(data.slice(i, i + 3).join());
        return [...seen]; }"""
    )
    drawn = {
        ",".join(str(int(STATE_COLORS[state][at : at + 2], 16)) for at in (1, 3, 5)) for state in ("COMPLETE", "FAIL")
    }
    assert drawn <= set(colors)
    assert page.locator(".uplot canvas").count() == 3


def test_on_paper_stands_the_figure(page: Any) -> None:
    figure = page.locator("#figure-timeline")
    assert figure.locator("img").get_attribute("alt").startswith("Timeline of 452 trials")
    assert figure.bounding_box()["width"] <= 2
    page.emulate_media(media="print")
    assert not page.locator(".gd-timeline").is_visible()
    assert figure.bounding_box()["width"] > 300


def test_without_a_script_the_figure_is_all(browser: Any, sample_report: Path) -> None:
    said: list[str] = []
    page = opened(browser, sample_report, said, viewport={"width": 1280, "height": 900}, java_script_enabled=False)
    assert page.locator("#figure-timeline img").is_visible() and not page.locator(".gd-timeline").is_visible()
    page.close()
    assert said == []


def test_where_the_browser_cannot_unpack_the_figure_stays(browser: Any, sample_report: Path) -> None:
    page = browser.new_page()
    page.add_init_script("delete globalThis.DecompressionStream")
    page.goto(sample_report.as_uri())
    assert page.locator("#figure-timeline img").is_visible() and not page.locator(".gd-timeline").is_visible()
    page.close()


def test_a_finger_taps_for_the_box_drags_for_a_zoom_and_taps_twice_to_reset(browser: Any, sample_report: Path) -> None:
    said: list[str] = []
    page = opened(browser, sample_report, said, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.locator(".gd-timeline").wait_for(state="visible")
    box = box_of(page, "trials")
    x, y = box["x"] + box["width"] / 2, box["y"] + 9
    page.touchscreen.tap(x, y)
    assert "Trial" in page.locator(".gd-tl-box").inner_text()
    whole = window(page)
    touch = page.context.new_cdp_session(page)

    def send(kind: str, *points: float) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at, "y": y} for at in points]})

    send("touchStart", x)
    for step in range(1, 8):
        send("touchMove", x + 12 * step)
    send("touchEnd")
    zoomed = window(page)
    assert zoomed[1] - zoomed[0] < 0.4 * (whole[1] - whole[0])
    page.wait_for_timeout(400)
    page.touchscreen.tap(x, y)
    page.touchscreen.tap(x, y)
    assert window(page) == whole
    page.close()
    assert said == []


def test_names_from_a_run_stay_text(browser: Any, evil: str, tmp_path: Path) -> None:
    run = toy_run(evil)
    run = replace(run, trials=run.trials.assign(**{f"params.{evil}": evil, "detail": evil, "worker": evil}))
    said: list[str] = []
    page = opened(browser, diagnose(run).timeline().save(tmp_path / "timeline.html"), said)
    page.locator(".gd-timeline").wait_for(state="visible")
    box = box_of(page, "trials")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 9)
    assert "Trial" in page.locator(".gd-tl-box").inner_text()
    assert page.locator("img").count() == 0 and page.locator("script").count() == 2
    page.close()
    assert said == []


def test_it_lives_in_the_frame_of_a_notebook(browser: Any, tmp_path: Path) -> None:
    frame = diagnose(toy_run()).timeline()._repr_mimebundle_()["text/html"]
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><title>cell</title>{frame}", encoding="utf-8")
    said: list[str] = []
    page = opened(browser, tmp_path / "cell.html", said)
    inside = page.frame_locator("iframe")
    inside.locator(".gd-timeline").wait_for(state="visible")
    inside.get_by_role("button", name="Zoom in").click()
    low, _ = inside.locator(".gd-timeline").get_attribute("data-window").split()
    assert float(low) > 0
    assert page.locator("iframe").evaluate("e => e.clientHeight") >= inside.locator("main").bounding_box()["height"] - 1
    page.close()
    assert said == []


def test_times_change_with_the_clocks_on_the_wall(browser: Any, tmp_path: Path) -> None:
    run = toy_run()
    autumn = pd.Timestamp("2025-10-26 00:58", tz="UTC") - run.gpu["time"].min()
    moved = run.map_tables(lambda name, table: table.assign(**{
        column: table[column] + autumn for column in table if str(table[column].dtype).startswith("datetime")
    }))  # fmt: skip
    moved = replace(moved, info=replace(moved.info, timezone="Europe/Berlin"))
    page = browser.new_page()
    page.goto(diagnose(moved).timeline().save(tmp_path / "timeline.html").as_uri())
    page.locator(".gd-timeline").wait_for(state="visible")
    clock = "t => document.querySelector('.gd-timeline').timeline.clock.full(t)"
    start = page.evaluate("document.querySelector('.gd-timeline').timeline.content.start")
    change = pd.Timestamp("2025-10-26 01:00", tz="UTC").timestamp() - start
    assert page.evaluate(clock, change - 1) == "2025-10-26 02:59:59"
    assert page.evaluate(clock, change + 1) == "2025-10-26 02:00:01"
    page.close()
