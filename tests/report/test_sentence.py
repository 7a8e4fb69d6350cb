"""Templates with values in words: the unit from the name, counts with nouns, GPUs, unknown values, unsafe text."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from gpudiag.report.sentence import render


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("{mean_pct} over {observed_s}.", {"mean_pct": 97.4, "observed_s": 551}, "97 % over 9 min 11 s."),
        ("{mean_pct:exact}", {"mean_pct": 97.4}, "97.4 %"),
        ("{lost_gpu_h}, {peak_mib}, {mean_w}", {"lost_gpu_h": 47.3, "peak_mib": 640, "mean_w": 212.4},
         "47 GPU-h, 640 MiB, 212 W"),
        ("{a_gpu_h} of {b_gpu_h}, {c_gpu_h}", {"a_gpu_h": 0.09, "b_gpu_h": 0.11, "c_gpu_h": 5.1 / 3600},
         "324 GPU-s of 396 GPU-s, 5.1 GPU-s"),
        ("{a_gpu_h} of {b_gpu_h}", {"a_gpu_h": 0.004, "b_gpu_h": 2.0}, "< 0.01 GPU-h of 2 GPU-h"),
        ("{n:trial} and {m:failed trial}", {"n": 1, "m": 4758.0}, "1 trial and 4,758 failed trials"),
        ("{n:study|studies}", {"n": 2}, "2 studies"),
        ("{gpu} of {gpus}", {"gpu": "4", "gpus": ["4", "5", "7"]}, "GPU 4 of GPUs 4, 5 and 7"),
        ("{gpu}", {"gpu": np.int64(3)}, "GPU 3"),
        ("{names}", {"names": ("a", "b")}, "a and b"),
        ("{shares_pct}", {"shares_pct": [97.4, 8.61]}, "97 % and 8.6 %"),
        ("{rate:=trials/h}", {"rate": 12.34}, "12.3 trials/h"),
        ("{why}", {"why": "a\x1b[31mb\nc"}, "a[31mb c"),
        ("{a_pct}, {b_s}, {c}", {"a_pct": float("nan"), "b_s": None, "c": None}, "–, –, –"),
        ("{flag} {x}", {"flag": True, "x": np.float64(1.234)}, "yes 1.23"),
        ("{first}", {"first": pd.Timestamp("2025-10-24 19:40:07.6", tz="Asia/Taipei")}, "2025-10-24 11:40:07"),
        ("at {first} UTC.", {"first": pd.Timestamp("2025-10-24 19:40:07", tz="UTC")}, "at 2025-10-24 19:40:07 UTC."),
        ("at {first} UTC.", {"first": pd.Timestamp("1970-01-01 10:02:00.6", tz="UTC")}, "at 10:02:00 (no date)."),
        ("{offset_s:as shift} with {fit:as ratio}", {"offset_s": -12600.0, "fit": 0.8}, "-3 h 30 min with 0.80"),
        ("{p:as significance}; {change_pct:as points}", {"p": 0.031, "change_pct": 4.5}, "p = 0.03; +4.5 %"),
        ("{each_s:as precise} of {each_s}", {"each_s": 41.27}, "41.3 s of 41 s"),
        ("{n:as count}", {"n": 4758.4}, "4,758"),
        ("{at:as minute}", {"at": pd.Timestamp("2025-10-24 19:40:07", tz="Asia/Taipei")}, "2025-10-24 11:40"),
        ("100 % {{braces}}", {}, "100 % {braces}"),
    ],
)  # fmt: skip
def test_render(template: str, values: dict[str, object], expected: str) -> None:
    assert render(template, values) == expected


def test_a_form_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(KeyError, match="furlong"):
        render("{n:as furlong}", {"n": 1})


def test_a_time_is_in_the_zone_that_the_sentence_is_for() -> None:
    """At noon in UTC it is 13:00 in Berlin in winter; what the template calls UTC is named by its own zone then."""
    values = {"since": datetime(2026, 2, 3, 12, tzinfo=UTC), "n": 2}
    template = "Since {since} UTC, {n:rank} waited."
    assert render(template, values) == "Since 2026-02-03 12:00:00 UTC, 2 ranks waited."
    assert render(template, values, "Europe/Berlin") == "Since 2026-02-03 13:00:00 (Europe/Berlin), 2 ranks waited."
    assert render("By {since:as minute} UTC.", values, "Asia/Taipei") == "By 2026-02-03 20:00 (Asia/Taipei)."
    undated = {"since": datetime(1970, 1, 1, 10, 2, tzinfo=UTC)}
    assert render("Since {since} UTC.", undated, "Europe/Berlin") == "Since 10:02:00 (no date)."


def test_values_are_not_templates() -> None:
    assert render("{a} {b}", {"a": "{b}", "b": "x"}) == "{b} x"


def test_a_name_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="mean_pct"):
        render("{mean_pct}", {"mean_s": 1})


@pytest.mark.parametrize("template", ["{a.__class__}", "{a[0]}", "{}", "{a!r}", "{0}"])
def test_only_names_stand_in_braces(template: str) -> None:
    with pytest.raises(ValueError, match="names a value"):
        render(template, {"a": [1]})
