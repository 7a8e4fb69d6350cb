"""Numbers in words: a table of cases, and properties that hold for any number."""

from __future__ import annotations

import math
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.display import format as fmt

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (86.5, "%", "86.5 %"),
        (84.0, "%", "84 %"),
        (0.04, "%", "under 0.1 %"),
        (0, "%", "0 %"),
        (99.97, "%", "over 99.9 %"),
        (100.0, "%", "100 %"),
        (551, "s", "9 min 11 s"),
        (540, "s", "9 min"),
        (0.041, "s", "41 ms"),
        (5.0, "s", "5 s"),
        (59.7, "s", "1 min"),
        (7500, "s", "2 h 05 min"),
        (3599.6, "s", "1 h"),
        (86_399, "s", "1 d"),
        (187_200, "s", "2 d 4 h"),
        (-90, "s", "-1 min 30 s"),
        (2.0833, "h", "2 h 05 min"),
        (4.378, "GPU-h", "4.38 GPU-h"),
        (0.0021, "GPU-h", "8 GPU-s"),
        (1234.4, "GPU-h", "1,234 GPU-h"),
        (3600, "GPU-s", "1.00 GPU-h"),
        (0, "GPU-h", "0 GPU-h"),
        (512, "MiB", "512 MiB"),
        (24564, "MiB", "24.0 GiB"),
        (1.5, "GiB", "1.5 GiB"),
        (212.44, "W", "212 W"),
        (559738, "1", "559,738"),
        (1.8934, "1", "1.89"),
        (0.00012, "1", "0.00012"),
        (True, "1", "yes"),
        ("text\x1b[31m", "1", "text[31m"),
        (None, "%", "–"),
        (NAN, "s", "–"),
        (math.inf, "1", "–"),
    ],
)
def test_quantity(value: object, unit: str, expected: str) -> None:
    assert fmt.quantity(value, unit) == expected


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["%", "s", "h", "GPU-h", "MiB", "W", "1"]))
def test_every_number_has_words(value: float, unit: str) -> None:
    text = fmt.quantity(value, unit)
    assert text and "nan" not in text and "inf" not in text


@given(st.floats(min_value=1e-9, max_value=99.9999, exclude_max=True))
def test_a_share_is_never_rounded_to_nothing_or_everything(value: float) -> None:
    assert fmt.percent(value) not in ("0 %", "100 %", "0.0 %", "100.0 %")


@given(st.integers(min_value=0, max_value=10_000_000))
def test_a_duration_is_off_by_less_than_its_smaller_unit(seconds: int) -> None:
    size = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    parts = fmt.duration(seconds).split()
    total = sum(int(n) * size[u] for n, u in zip(parts[::2], parts[1::2], strict=True))
    step = 3600 if seconds >= 86_370 else 60 if seconds >= 3600 else 1
    assert abs(total - seconds) <= step / 2 + 30 * (step == 3600)
    assert all(int(n) < 60 for n in parts[2::2])


def test_names() -> None:
    assert fmt.label("max_util_pct") == "max utilization"
    assert fmt.label("n_fail") == "fail count" and fmt.label("n_gaps") == "gaps" and fmt.label("n") == "n"
    assert fmt.label("gpu") == "GPU"
    assert fmt.named("mean_power_w", 212.4) == "212 W"
    assert fmt.interval(81.1, 90.64, "%") == "81.1–90.6 %"
    assert fmt.interval(None, 3.0) == "–"
    assert fmt.plural(1, "finding") == "1 finding" and fmt.plural(1200, "trial") == "1,200 trials"


def test_times_are_shown_in_the_zone_of_the_run() -> None:
    taipei = ZoneInfo("Asia/Taipei")
    assert fmt.stamp("2026-03-01T10:00:00+00:00", taipei) == "2026-03-01 18:00:00"
    same_day = fmt.span("2026-03-01T10:00:00+00:00", "2026-03-01T11:30:00+00:00", taipei)
    assert same_day == "2026-03-01 18:00:00 to 19:30:00"
    assert "03-02" in fmt.span("2026-03-01T10:00:00+00:00", "2026-03-01T17:00:00+00:00", taipei)
    assert fmt.length("2026-03-01T10:00:00+00:00", "2026-03-01T11:30:00+00:00") == "1 h 30 min"
    assert fmt.span(None, "x", taipei) == fmt.length(None, None) == fmt.stamp(None, taipei) == "–"
    assert fmt.zone("no such zone") == ZoneInfo("UTC")
