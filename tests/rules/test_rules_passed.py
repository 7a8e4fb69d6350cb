"""A check that found nothing says what it measured, of the worst GPU, and its limit."""

from __future__ import annotations

import ast
import math
from functools import cache
from pathlib import Path
from string import Formatter

import numpy as np
import pandas as pd
import pytest
from sampleruns import SAMPLES, sample
from small_profiles import profile, verdict
from smallruns import gpu, run

import gpudiag as gd
from gpudiag.measures.memory import MemoryProfile, measure_memory
from gpudiag.measures.sampling import measure_sampling
from gpudiag.measures.search import SearchProfile
from gpudiag.measures.throttle import ThrottleProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.report import sections
from gpudiag.rules import Passed, Status, rule
from gpudiag.rules.memory import memory_headroom, memory_near_limit
from gpudiag.rules.sampling import sampling_gaps
from gpudiag.rules.search import study_tail
from gpudiag.rules.throttle import temperature_high, thermal_throttling
from gpudiag.rules.trials import failure_rate_high

FOLDER = Path(gd.rules.__file__).parent


def heat(*rows: tuple[float, float]) -> ThrottleProfile:
    """GPUs 0, 1... from (highest temperature, seconds at 87 °C or more)."""
    gpus = {str(i): {"max_temp_c": temp, "hot_s": hot, "busy_s": 900.0} for i, (temp, hot) in enumerate(rows)}
    return profile(ThrottleProfile, gpus)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([(71.0, 0.0)], "Up to 71 °C, for 0 s at 87 °C or more (GPU 0; limit 1 min)."),
        ([(71.0, 0.0), (83.0, 0.0)], "Up to 83 °C, for 0 s at 87 °C or more (GPU 1, the most of 2; limit 1 min)."),
        ([(90.0, 5.0), (88.0, 40.0)], "Up to 88 °C, for 40 s at 87 °C or more (GPU 1, the most of 2; limit 1 min)."),
        ([(71.0, 0.0), (math.nan, math.nan)], ""),
    ],
)
def test_the_hottest_gpu_is_named_unless_one_is_unknown(rows: list[tuple[float, float]], text: str) -> None:
    found = verdict(temperature_high, heat(*rows))
    assert (found.status, found.summary) == (Status.OK, text)


def test_gpus_that_are_alike_are_named_together() -> None:
    gpus = {name: {"busy_s": 900.0, "thermal_pct": 0.0} for name in "01"}
    assert (
        verdict(thermal_throttling, profile(ThrottleProfile, gpus)).summary
        == "0 % of the busy time (each of 2 GPUs; limit 5 %)."
    )


def test_each_check_of_memory_names_the_gpu_that_is_nearest_to_its_limit() -> None:
    gpus = {
        name: {"max_used_pct": used, "total_mib": 24576.0, "max_util_pct": 99.0}
        for name, used in {"0": 60.0, "1": 89.5, "2": 70.0}.items()
    }
    memory = profile(MemoryProfile, gpus)
    assert verdict(memory_near_limit, memory).summary == (
        "89.5 % of 24.0 GiB in use (GPU 1, the most of 3; limit 90 %)."
    )
    assert verdict(memory_headroom, memory).summary == (
        "60 % of 24.0 GiB in use at the peak (GPU 0, the least of 3; limit 50 %)."
    )


def test_the_limit_said_is_the_one_in_force_and_never_a_number_of_the_run_of_that_name() -> None:
    hot = heat((71.0, 0.0))
    assert verdict(temperature_high, hot, max_hot_s=90.0).summary.endswith("(GPU 0; limit 1 min 30 s).")
    assert Passed("{idle_pct} (limit {low_pct})", idle_pct=3.0, low_pct=84.0).summary({"low_pct": 10.0}) == (
        "3 % (limit 10 %)"
    )


def test_gaps_are_said_as_a_share_of_the_time_with_their_limit() -> None:
    times = np.delete(np.arange(1000.0), slice(500, 520))
    found = sampling_gaps.judge(measure_sampling(run(gpu=gpu(times, util_pct=np.full(len(times), 90.0)))))
    assert isinstance(found, Passed)
    assert (
        found.summary(sampling_gaps.thresholds) == "Gaps leave out 1.8 % of the time (GPU 0; limit 5 %)."
    )  # 21 s less the 3 that samples stand for


@pytest.mark.parametrize(("n", "said"), [(1, "1 trial"), (3, "3 trials")])
def test_the_end_of_a_search_is_said_with_as_many_trials_as_ran_then(n: int, said: str) -> None:
    found = verdict(study_tail, profile(SearchProfile, tail_s=120.0, tail_pct=2.0, n_tail=n, peak=8))
    assert found.summary == f"2 min with {said} (limit 5 min), 2 % of the time (limit 10 %)."


@pytest.mark.parametrize(
    ("n_fail", "low", "share", "high", "text"),
    [
        (0, 0.0, 0.0, 4.0, "0 of 90 finished trials failed (limit 2 %)."),
        (1, 0.2, 1.1, 6.0, "1 of 90 finished trials failed, 1.1 % (0.2–6 %) (limit 2 %)."),
        (3, 1.1, 3.3, 9.3, "3 of 90 finished trials failed, 3.3 % (1.1–9.3 %), which is not surely more than 2 %."),
    ],
)
def test_a_rate_that_may_be_above_its_limit_by_chance_is_not_said_to_be_below(
    n_fail: int, low: float, share: float, high: float, text: str
) -> None:
    found = profile(TrialsProfile, n_fail=n_fail, n_finished=90, fail_pct=share, fail_low_pct=low, fail_high_pct=high)
    assert verdict(failure_rate_high, found).summary == text


def test_what_is_unknown_is_not_said() -> None:
    assert Passed("{a_s} and {b_s}", a_s=1.0, b_s=math.nan).summary({}) == ""
    assert Passed("{a_s} and {b_s}", a_s=1.0, b_s=None).summary({}) == ""
    assert Passed.most(pd.DataFrame({"a_s": []}), "a_s", "{a_s}", "limit {b_s}").summary({"b_s": 1.0}) == ""


@pytest.mark.slow
def test_own_rules_may_say_what_they_measured() -> None:
    @rule(measure=measure_memory, severity="note", title="Little room", remedy="None.", says="{gpu}")
    def room(memory: MemoryProfile, *, min_left_mib: float = 8000.0) -> Passed:
        """A rule."""
        left = memory.per_gpu["headroom_mib"]
        return Passed("{gpu} had {left_mib} left (limit {min_left_mib}).", gpu=left.idxmin(), left_mib=left.min())

    d = gd.diagnose(sample("healthy"), rules=(room,))
    said = "GPU 0 had 8.7 GiB left (limit 7.8 GiB)."
    assert [v.summary for v in d.verdicts] == [said] and not d.findings
    assert said in "".join(map(repr, sections.checks(d.document)))


@cache
def diagnosed(name: str) -> gd.Diagnosis:
    return gd.diagnose(gd.load_run(SAMPLES / name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["healthy", "slow-rank", "memory-exhaustion", "hung-collective"])
def test_on_the_samples_each_sentence_is_one_short_line_and_most_checks_have_one(name: str) -> None:
    passed = [v for v in diagnosed(name).verdicts if v.status is Status.OK]
    said = [v.summary for v in passed if v.summary]
    assert 2 * len(said) > len(passed) > 20
    for text in said:
        assert text[0].isupper() or text[0].isdigit() or text[0] in "<>", text
        assert text.endswith(".") and len(text) <= 110 and "nan" not in text and "–)" not in text, text


def test_every_value_that_such_a_sentence_names_is_given_or_a_threshold() -> None:
    """Of those that have no table: a misspelt name would be an error of the check in a healthy run."""
    seen = 0
    for path in sorted(FOLDER.glob("*.py")):
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(function, ast.FunctionDef):
                continue
            limits = {argument.arg for argument in function.args.kwonlyargs}
            for call in ast.walk(function):
                if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "Passed"):
                    continue
                given = {keyword.arg for keyword in call.keywords}
                texts = [node.value for arg in call.args for node in ast.walk(arg) if isinstance(node, ast.Constant)]
                named = {part for text in texts for _, part, _, _ in Formatter().parse(str(text)) if part}
                if None not in given:
                    assert named <= given | limits, f"{path.name}:{call.lineno}"
                    seen += 1
    assert seen > 15
