"""Everything that is handed to a user shows itself, in a terminal's width, escaped, without attributes of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from toyrun import toy_run

import gpudiag as gd
from gpudiag.report._render import terminal
from gpudiag.report._render.blocks import Heading, Number, TableBlock, Tiles
from gpudiag.report._render.frames import pairs, table
from gpudiag.shown import Shown

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "samples" / "hpo-aggressive-pruning"


@pytest.fixture(scope="module")
def shown() -> dict[str, Shown]:
    run = toy_run()
    return {
        "run": run,
        "telemetry": gd.read_telemetry(SAMPLE / "gpu.csv"),
        "trials": gd.read_trials(SAMPLE / "optuna.db"),
        **gd.diagnose(run).profiles,
    }


@pytest.mark.slow
def test_every_profile_is_shown(shown: dict[str, Shown]) -> None:
    assert len(shown) > 15
    assert all(isinstance(result, Shown) for result in shown.values())


@pytest.mark.slow
def test_text_fits_the_terminal(shown: dict[str, Shown], monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (60, 88, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        for name, result in shown.items():
            lines = repr(result).splitlines()
            assert lines, name
            assert max(map(len, lines)) <= min(columns, 120), name


@pytest.mark.slow
def test_html_follows_the_notebook_and_markdown_has_its_tables(shown: dict[str, Shown]) -> None:
    for result in shown.values():
        html = result._repr_html_()  # type: ignore[operator]
        assert "var(--jp-content-font-color1" in html
        assert "<script" not in html
        assert result._repr_markdown_().startswith("###")


def test_text_from_inputs_is_escaped_and_user_attributes_stay_out() -> None:
    run = toy_run(name="<img src=x onerror=alert(1)>\x1b[31m")
    assert "<img" not in run._repr_html_()
    assert "<img" not in run._repr_markdown_().replace(r"\<img", "")
    for text in (run._repr_html_(), run._repr_markdown_(), repr(run)):
        assert "\x1b" not in text
        assert "hunter2" not in text


def test_a_run_without_anything_shows_itself() -> None:
    assert "Run run" in repr(gd.Run())
    assert repr(replace(toy_run(trials=0)))


def test_a_wide_table_names_the_columns_that_did_not_fit() -> None:
    names = tuple(f"column number {n}" for n in range(9))
    lines = terminal.render([TableBlock(names, (tuple(Number(str(n)) for n in range(9)),))], 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert "column number 8" in " ".join(lines)


def test_the_head_of_a_frame_says_how_much_follows() -> None:
    frame = pd.DataFrame({"trial": range(20), "duration_s": [90.0] * 19 + [float("nan")], "used_mib": 2048.0})
    made = table(frame)
    assert made.columns == ("trial", "duration", "used")
    assert made.rows[0] == (Number("0"), Number("1 min 30 s"), Number("2.0 GiB"))
    assert made.caption == "... and 12 more rows"


def test_two_names_that_read_the_same_are_told_apart_by_their_unit() -> None:
    assert [name for name, _ in pairs({"fail_pct": 1.0, "fail_worker_h": 2.0, "n": 3})] == [
        "fail (%)",
        "fail (worker-h)",
        "n",
    ]


def test_blocks_as_lines() -> None:
    assert terminal.render([Heading("Title"), Tiles((("mean", "3 s"),))]) == "Title\n  mean  3 s"
