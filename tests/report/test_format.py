"""Numbers in words: a table of cases for every form, and properties that hold for any number."""

from __future__ import annotations

import math
import re
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.report import format as fmt

NAN = float("nan")
FORMS = (
    fmt.share, fmt.points, fmt.duration, fmt.shift, fmt.hours, fmt.energy, fmt.memory, fmt.times, fmt.ratio,
    fmt.p_value, fmt.number, fmt.count, fmt.abbreviated,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "unit", "said", "exact"),
    [
        (97.4, "%", "97 %", "97.4 %"),
        (84.0, "%", "84 %", "84 %"),
        (10.04, "%", "10 %", "10 %"),
        (9.96, "%", "10 %", "10 %"),
        (9.94, "%", "9.9 %", "9.9 %"),
        (8.6, "%", "8.6 %", "8.6 %"),
        (0.1, "%", "0.1 %", "0.1 %"),
        (0.04, "%", "< 0.1 %", "< 0.1 %"),
        (1e-12, "%", "< 0.1 %", "< 0.1 %"),
        (0, "%", "0 %", "0 %"),
        (-0.0, "%", "0 %", "0 %"),
        (99.4, "%", "99 %", "99.4 %"),
        (99.6, "%", "> 99 %", "99.6 %"),
        (99.96, "%", "> 99 %", "> 99.9 %"),
        (100.0, "%", "100 %", "100 %"),
        (134.56, "%", "135 %", "134.6 %"),
        (12_345.6, "%", "12,346 %", "12,346 %"),
        (-5.55, "%", "-5.5 %", "-5.5 %"),
        (-0.01, "%", "> -0.1 %", "> -0.1 %"),
        (551, "s", "9 min 11 s", None),
        (540, "s", "9 min", None),
        (0, "s", "0 s", None),
        (1e-9, "s", "< 0.001 ms", None),
        (0.0004, "s", "0.4 ms", None),
        (0.04126, "s", "41.3 ms", None),
        (0.9996, "s", "1 s", None),
        (5.0, "s", "5 s", None),
        (7.31, "s", "7.3 s", None),
        (9.96, "s", "10 s", None),
        (59.4, "s", "59 s", None),
        (59.6, "s", "1 min", None),
        (3599, "s", "59 min 59 s", None),
        (3599.6, "s", "1 h", None),
        (7500, "s", "2 h 05 min", None),
        (9180, "s", "2 h 33 min", None),
        (86_399, "s", "1 d", None),
        (273_600, "s", "3 d 4 h", None),
        (1e8, "s", "1,157 d 10 h", None),
        (1e15, "s", "1.00e+15 s", None),
        (-90, "s", "-1 min 30 s", None),
        (41.26, "ms", "41.3 ms", None),
        (5300, "ms", "5.3 s", None),
        (2.0833, "h", "2 h 05 min", None),
        (0.134, "GPU-h", "0.13 GPU-h", "0.13 GPU-h"),
        (2.54, "GPU-h", "2.5 GPU-h", "2.54 GPU-h"),
        (9.96, "GPU-h", "10 GPU-h", "10 GPU-h"),
        (47.26, "GPU-h", "47 GPU-h", "47.3 GPU-h"),
        (1234.4, "GPU-h", "1,234 GPU-h", "1,234 GPU-h"),
        (23 / 3600, "GPU-h", "23 GPU-s", "23 GPU-s"),
        (1e-9, "GPU-h", "< 0.01 GPU-s", "< 0.01 GPU-s"),
        (3600, "GPU-s", "1 GPU-h", "1 GPU-h"),
        (0, "GPU-h", "0 GPU-h", "0 GPU-h"),
        (-0.5, "GPU-h", "-0.5 GPU-h", "-0.5 GPU-h"),
        (9000, "worker-s", "2.5 worker-h", "2.5 worker-h"),
        (640, "MiB", "640 MiB", None),
        (0, "MiB", "0 MiB", None),
        (0.01, "MiB", "< 0.1 MiB", None),
        (1.26, "MiB", "1.3 MiB", None),
        (1023.4, "MiB", "1,023 MiB", None),
        (1023.9, "MiB", "1.0 GiB", None),
        (23_654, "MiB", "23.1 GiB", None),
        (2_000_000, "MiB", "1,953 GiB", None),
        (-300, "MiB", "-300 MiB", None),
        (1.5, "GiB", "1.5 GiB", None),
        (0.000113, "kWh", "0.11 Wh", "0.11 Wh"),
        (1.44, "kWh", "1.4 kWh", "1.44 kWh"),
        (0.9996, "kWh", "1 kWh", "1 kWh"),
        (7200, "J", "2 Wh", "2 Wh"),
        (1.27, "x", "1.3×", "1.27×"),
        (1.03, "x", "1.03×", "1.03×"),
        (0.87, "x", "0.87×", "0.87×"),
        (1, "x", "1×", "1.00×"),
        (12.4, "x", "12×", "12.40×"),
        (1e-5, "x", "< 0.01×", "< 0.01×"),
        (212.44, "W", "212 W", None),
        (559_738, "1", "559,738", None),
        (99.97, "1", "100", None),
        (1.8934, "1", "1.89", None),
        (0.00012, "1", "0.00012", None),
        (np.float64(1.8934), "1", "1.89", None),
        (np.int64(4758), "1", "4,758", None),
        (np.bool_(True), "1", "yes", None),
        (True, "1", "yes", None),
        ("text\x1b[31m", "1", "text[31m", None),
        (None, "%", "–", "–"),
        (NAN, "s", "–", "–"),
        (math.inf, "1", "–", "–"),
        (np.float64("nan"), "GPU-h", "–", "–"),
    ],
)
def test_quantity(value: object, unit: str, said: str, exact: str | None) -> None:
    assert fmt.quantity(value, unit) == said
    assert fmt.quantity(value, unit, exact=True) == (said if exact is None else exact)


def test_bounds_are_said_once_with_their_unit() -> None:
    assert fmt.interval(92.1, 97.9, "%") == "92–98 %" and fmt.interval(81.1, 90.64, "%") == "81–91 %"
    assert fmt.interval(0.2, 12, "%") == "0.2–12 %" and fmt.interval(4.7, 12.2, "%") == "4.7–12 %"
    assert fmt.interval(42.1, 43.4, "%") == "42.1–43.4 %", "whole numbers would be wider than the interval"
    assert fmt.interval(0.01, 0.02, "%") == "< 0.1 %"
    assert fmt.interval(1.2, 1.51, "x") == "1.2–1.51×"
    assert fmt.interval(0, 0.13, "GPU-h") == "0–0.13 GPU-h"
    assert fmt.interval(23_552, 24_576, "MiB") == "23.0–24.0 GiB"
    assert fmt.interval(40, 70, "s") == "40 s – 1 min 10 s" and fmt.interval(551, 570, "s") == "9 min 11 s – 9 min 30 s"
    assert fmt.interval(-0.1, 0.3, "GPU-h") == "-0.1 GPU-h – 0.3 GPU-h"
    assert fmt.interval(1, 2) == "1–2" and fmt.interval(3, 3, "W") == "3 W"
    assert fmt.interval(None, 3.0) == fmt.interval(3.0, NAN) == "–"
    assert fmt.estimate(95.6, 92.0, 98.0, "%") == "95.6 % (92–98 %)"
    assert fmt.estimate(NAN, 92.0, 98.0, "%") == "92–98 %" and fmt.estimate(95.6, NAN, 98.0, "%") == "95.6 %"
    assert fmt.interval(1.207, 1.5001, "x") == "1.2–1.51×" and fmt.interval(9.5, 15.7, "×") == "9.5–16×"
    assert fmt.gain(1.31, 1.2, 1.5) == "1.31× faster (1.2–1.5×)"
    assert fmt.gain(0.87, NAN, NAN) == "0.87× as fast" and fmt.gain(None, 1, 2) == "–"


@pytest.mark.parametrize(
    ("factor", "least", "most"),
    [
        (1.15, "1.15×", "1.15×"),
        (100 / 54.8075, "1.82×", "1.83×"),
        (1.2541, "1.25×", "1.26×"),
        (64 / 63, "1.01×", "1.02×"),
        (0.599, "0.59×", "0.6×"),
        (0.004, "0×", "0.01×"),
        (9.999, "9.99×", "10×"),
        (15.7, "15×", "16×"),
        (200.0, "200×", "200×"),
        (NAN, "–", "–"),
    ],
)
def test_bounds_of_a_ratio_hold_it(factor: float, least: str, most: str) -> None:
    assert (fmt.factors(factor, factor)[0], fmt.at_most(factor)) == (least, most)


@given(st.floats(0.001, 1000), st.floats(0, 100), st.integers(0, 4))
def test_rounding_makes_no_interval_narrower(low: float, width: float, decimals: int) -> None:
    first, last = fmt.outward(low, low + width, decimals)
    assert first <= low * (1 + 1e-6) and last >= (low + width) * (1 - 1e-6)
    assert low - first < 10.0**-decimals and last - low - width < 10.0**-decimals
    texts = fmt.factors(low, low + width)
    assert float(texts[0][:-1].replace(",", "")) <= low + 1e-6 <= float(texts[1][:-1].replace(",", "")) + 2e-6


def test_other_forms() -> None:
    assert fmt.points(4.52) == "+4.5 %" and fmt.points(-12.2) == "-12 %" and fmt.points(0) == "0 %"
    assert [fmt.ratio(x) for x in (0.873, -0.2, -0.001, 1234.5)] == ["0.87", "-0.20", "0.00", "1,234.50"]
    assert fmt.ratio(1.27, 1.19, 1.354) == "1.27 (1.19–1.35)" and fmt.ratio(1.27, None, 1.3) == "1.27"
    assert [fmt.p_value(p) for p in (0.5, 0.034, 0.004, 1e-9)] == ["0.50", "0.03", "0.004", "< 0.001"]
    shifts = [fmt.shift(s) for s in (28_800, -12_600, 18_045, 900, -40, 0.2)]
    assert shifts == ["+8 h", "-3 h 30 min", "+5 h 45 s", "+15 min", "-40 s", "0 h"]
    assert fmt.money(1204.5, "USD") == "1,204.50 USD" and fmt.money(None, "USD") == "–"
    assert fmt.count(4758.0) == "4,758"
    assert [fmt.plural(n, "trial") for n in (0, 1, 1200, NAN)] == ["0 trials", "1 trial", "1,200 trials", "– trials"]
    assert fmt.plural(2, "study", "studies") == "2 studies"
    sizes = {
        7700.0: "7,700",
        9999.4: "9,999",
        9999.6: "10 k",
        142_300.0: "142 k",
        999_600.0: "1 M",
        8_030_261_248: "8.03 B",
    }
    assert {size: fmt.abbreviated(size) for size in sizes} == sizes and fmt.abbreviated(2.5e15) == "2,500 T"
    assert [fmt.abbreviated(x) for x in (None, NAN, 0.5, -124e6)] == ["–", "–", "0.5", "-124 M"]
    assert [fmt.listed(x) for x in ([], "a", "ab", "abc")] == ["–", "a", "a and b", "a, b and c"]
    assert fmt.gpus([0]) == "GPU 0" and fmt.gpus(["0", "2"]) == "GPUs 0 and 2"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@given(value=st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_has_words(form: object, value: float) -> None:
    text = form(value)  # type: ignore[operator]
    assert text and "nan" not in text and "inf" not in text
    assert (text == "–") == (not math.isfinite(value))


@given(
    st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["%", "s", "h", "GPU-h", "MiB", "kWh", "W", "1"])
)
def test_unknown_is_a_dash_in_every_unit(value: float, unit: str) -> None:
    for exact in (False, True):
        assert (fmt.quantity(value, unit, exact=exact) == "–") == (not math.isfinite(value))


@given(st.floats(min_value=1e-9, max_value=99.9999, exclude_max=True))
def test_a_share_is_never_rounded_to_nothing_or_everything(value: float) -> None:
    for text in (fmt.share(value), fmt.share(value, exact=True)):
        assert text.strip("0. %") or text == "10 %"
        assert text not in ("0 %", "100 %")


@given(st.floats(min_value=0.1, max_value=99.4))
def test_a_share_is_off_by_half_its_last_digit(value: float) -> None:
    assert abs(float(fmt.share(value).removesuffix(" %")) - value) <= (0.05 if value < 9.95 else 0.5) + 1e-9
    assert abs(float(fmt.share(value, exact=True).removesuffix(" %")) - value) <= 0.05 + 1e-9


@given(st.integers(min_value=0, max_value=10_000_000))
def test_a_duration_is_off_by_less_than_its_smaller_unit(seconds: int) -> None:
    size = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    parts = fmt.duration(seconds).split()
    total = sum(int(n) * size[u] for n, u in zip(parts[::2], parts[1::2], strict=True))
    step = 3600 if seconds >= 86_370 else 60 if seconds >= 3600 else 1
    assert abs(total - seconds) <= step / 2 + 30 * (step == 3600)
    assert all(int(n) < 60 for n in parts[2::2])


@given(st.floats(min_value=0.1, max_value=1e6))
@pytest.mark.slow
def test_memory_is_off_by_half_its_last_digit(mib: float) -> None:
    number, unit = fmt.memory(mib).replace(",", "").split()
    if unit == "MiB":
        assert mib < 1024 and abs(float(number) - mib) <= 0.5
    else:
        assert mib >= 1023.5 and abs(float(number) - mib / 1024) <= 0.05 + 1e-9


def test_names() -> None:
    assert fmt.label("max_util_pct") == "max utilization"
    assert fmt.label("n_fail") == "fail count" and fmt.label("n_gaps") == "gaps" and fmt.label("n") == "n"
    assert fmt.label("gpu") == "GPU"
    assert fmt.named("mean_power_w", 212.4) == "212 W"
    assert fmt.named("energy_kwh", 0.4) == "400 Wh" and fmt.named("worst_ms", 41.0) == "41 ms"


def test_times_are_shown_in_the_zone_of_the_run() -> None:
    taipei = ZoneInfo("Asia/Taipei")
    assert fmt.timestamp("2026-03-01T10:00:00+00:00", taipei) == "2026-03-01 18:00:00"
    same_day = fmt.span("2026-03-01T10:00:00+00:00", "2026-03-01T11:30:00+00:00", taipei)
    assert same_day == "2026-03-01 18:00:00 to 19:30:00"
    assert "03-02" in fmt.span("2026-03-01T10:00:00+00:00", "2026-03-01T17:00:00+00:00", taipei)
    assert fmt.length("2026-03-01T10:00:00+00:00", "2026-03-01T11:30:00+00:00") == "1 h 30 min"
    assert fmt.span(None, "x", taipei) == fmt.length(None, None) == fmt.timestamp(None, taipei) == "–"
    assert fmt.zone("no such zone") == ZoneInfo("UTC")


@pytest.mark.parametrize("unit", ["GPU-s", "GPU-h", "s", "%", "MiB", "kWh"])
@pytest.mark.parametrize("size", [0.3, 1.391, 2.5, 9.6, 31.0, 340.0, 1500.0])
def test_values_have_the_digits_that_their_ratio_takes(unit: str, size: float) -> None:
    """'1 GPU-s → 2 GPU-s, 1.19' would be two roundings that contradict a third."""
    scale = {"GPU-s": 1.0, "GPU-h": 3600.0, "GiB": 1024.0, "ms": 1e-3, "Wh": 1e-3, "min": 60.0}
    shown = []
    for value in (size, 1.19 * size):
        said = fmt.precise(value, unit)
        parts = re.findall(r"([\d,.]+) (GPU-s|GPU-h|GiB|Wh|ms|min|s|h|\S+)", said)
        shown.append(sum(float(n.replace(",", "")) * scale.get(u, 1.0) for n, u in parts))
    assert shown[1] / shown[0] == pytest.approx(1.19, rel=0.01)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (fmt.interval(0, 0.04, "%"), "0 % – < 0.1 %"),
        (fmt.interval(99.96, 100, "%"), "> 99 % – 100 %"),
        (fmt.interval(-3, 5, "%"), "-3 to 5 %"),
        (fmt.points(0.04), "< 0.1 %"),
        (fmt.ratio(-0.001), "0.00"),
    ],
)
def test_bounds_are_told_apart(text: str, wanted: str) -> None:
    assert text == wanted


@pytest.mark.parametrize(
    ("value", "digits", "wanted"),
    [
        (3.456, 2, "3.5"), (-3.456, 2, "-3.5"), (9.96, 2, "10"), (10.4, 2, "10"), (34.56, 3, "34.6"), (99.4, 3, "99.4"),
        (345.6, 3, "346"), (3.456, 1, "3"), (0.3456, 1, "0.3"), (1234.6, 2, "1,235"), (None, 2, fmt.UNKNOWN),
    ],
)  # fmt: skip
def test_so_many_digits_and_whole_beyond(value: float | None, digits: int, wanted: str) -> None:
    assert fmt.significant(value, digits) == wanted


@pytest.mark.parametrize(
    ("low", "high", "unit", "said"),
    [
        (3.3, 40.0, "GPU-s", "3.3–40 GPU-s"),
        (20.0, 7200.0, "GPU-s", "0–2 GPU-h"),
        (0.005, 0.02, "GPU-h", "18–72 GPU-s"),
        (0.5, 2.0, "GPU-h", "0.5–2 GPU-h"),
    ],
)
def test_both_ends_of_an_interval_have_one_unit(low: float, high: float, unit: str, said: str) -> None:
    assert fmt.interval(low, high, unit) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((32 / 3600, 79 / 3600), ["32 GPU-s", "79 GPU-s"]),
        ((0.02, 0.5), ["0.02 GPU-h", "0.5 GPU-h"]),
        ((0.005, 42.0), ["< 0.01 GPU-h", "42 GPU-h"]),
        ((0.0, 0.005), ["0 GPU-s", "18 GPU-s"]),
        ((0.0, 0.5), ["0 GPU-h", "0.5 GPU-h"]),
    ],
)
def test_hours_side_by_side_are_in_one_unit(values: tuple[float, ...], said: list[str]) -> None:
    assert fmt.alike("GPU-h", *values) == said


def test_a_log_that_counts_from_its_own_beginning_has_no_date() -> None:
    utc = ZoneInfo("UTC")
    assert fmt.span("1970-01-01T00:00:00+00:00", "1970-01-01T02:10:55+00:00", utc) == fmt.NO_DATE
    taipei = fmt.zone("Asia/Taipei")
    assert fmt.timestamp("1970-01-01T10:02:00+00:00", taipei) == "10:02:00 (no date)"
    assert fmt.timestamp("1970-01-03T00:00:05+00:00", taipei) == "day 3, 00:00:05 (no date)"
    assert fmt.span("2026-01-01T00:00:00+00:00", "2026-01-01T02:10:55+00:00", utc) == "2026-01-01 00:00:00 to 02:10:55"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 1.234, None], ["1.00 GPU-h", "1.23 GPU-h", "–"]),
        ([119.0, 4.8], ["119.0 GPU-h", "4.8 GPU-h"]),
        ([12.34, 1.5, 0.001, 0.0], ["12.3 GPU-h", "1.5 GPU-h", "< 0.01 GPU-h", "0 GPU-h"]),
        ([2.0, 3.0], ["2 GPU-h", "3 GPU-h"]),
        ([], []),
    ],
)
def test_hours_of_a_column_have_the_same_decimals(values: list[float | None], expected: list[str]) -> None:
    assert fmt.hours_below("GPU-h", values) == expected


def test_a_value_never_reads_outside_of_its_interval() -> None:
    """Whatever is rounded: the numbers of the text are in order."""
    rng = np.random.default_rng(7)
    for unit in ("%", "x", "GPU-h", "trials/h"):
        for _ in range(2000):
            low, value, high = np.sort(10 ** rng.uniform(-1, 2, 3))
            told = fmt.estimate(value, low, high, unit)
            numbers = [float(one) for one in re.findall(r"[\d.]+", told)]
            assert len(numbers) < 3 or numbers[1] <= numbers[0] <= numbers[2], told
    assert fmt.estimate(10.4, 8.1, 10.45, "%") == "10 % (8.1–10 %)"
    assert fmt.estimate(10.4, 9.1, 12.2, "%") == "10.4 % (9.1–12 %)"


def test_the_hours_of_a_table_are_in_one_unit() -> None:
    assert fmt.hours_below("GPU-h", [1.32, 0.0028, 0.0161, 0.0, None]) == [
        "1.32 GPU-h", "< 0.01 GPU-h", "0.02 GPU-h", "0 GPU-h", "–",
    ]  # fmt: skip
    assert fmt.hours_below("GPU-h", [0.5, 0.005, 0.0]) == ["1,800 GPU-s", "18 GPU-s", "0 GPU-s"]
    seconds = [672.1, 16.01, 0.3, 0.001, 0.0, None]
    assert fmt.hours_below("GPU-h", [one and one / 3600 for one in seconds]) == [
        "672 GPU-s", "16 GPU-s", "< 1 GPU-s", "< 1 GPU-s", "0 GPU-s", "–",
    ]  # fmt: skip
