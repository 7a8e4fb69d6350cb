"""Model FLOPs utilization: each bracket recomputed by hand, and what is withheld."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st
from smallruns import T0, at, gpu, gpus, run, steps_of

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.manifest import Training
from gpudiag.measures.mfu import MfuProfile, measure_mfu
from gpudiag.report._render.blocks import Note
from gpudiag.report._sections.mfu import mfu
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"
BF16_H100, TF32_H100, FP8_H100 = 989.4e12, 494.7e12, 1978.9e12
NANO = "number of parameters: 123.59M"
LLAMA = "[titan] - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters"
PEFT = "trainable params: 10,485,760 || all params: 8,030,261,248 || trainable%: 0.1306"
LINES = [(10.0 * i, 10 * i) for i in range(1, 31)]
"""A line every 10 steps and 10 s."""


def made(
    *said: str,
    tokens_s: float | list[float] = math.nan,
    tokens_of: str | None = None,
    n_gpus: int = 1,
    name: str = H100,
    lines: list[tuple[float, int]] = LINES,
    columns: dict[str, Any] | None = None,
    **training: Any,
) -> Run:
    """A run of GPUs at work for 300 s, with what a log says of its model and its steps."""
    indices = [str(place) for place in range(n_gpus)]
    events = pd.DataFrame({"time": pd.to_datetime([None] * len(said), utc=True), "detail": list(said)})
    at_work = {"util_pct": 95.0} | (columns or {})
    whole = run(
        gpu=pd.concat([gpu(range(0, 301, 5), one, **at_work) for one in indices]),
        gpus=gpus(gpu=indices, name=name),
        events=conform(events.assign(kind="model", path="train.log"), EVENTS),
        steps=steps_of(lines, tokens_s=tokens_s, tokens_of=tokens_of),
    )
    return replace(whole, info=replace(whole.info, training=Training(**training)))


def bracket(p: MfuProfile) -> tuple[float, float]:
    return p.mfu_low_pct, p.mfu_high_pct


def test_six_flops_a_parameter_and_token_over_the_peak() -> None:
    p = measure_mfu(made(LLAMA, tokens_s=7700.0, tokens_of="gpu", dtype="bf16"))
    by_hand = 100 * 6 * 8_030_261_248 * 7700 / BF16_H100
    assert bracket(p) == pytest.approx((by_hand, by_hand)) and by_hand == pytest.approx(37.50, abs=0.01)
    assert (p.parameters, p.parameters_from, p.dtype, p.formats) == (8_030_261_248, "log", "bf16", "bf16")
    assert (p.low_peak_tflops, p.high_peak_tflops, str(p.withheld)) == (989.4, 989.4, "")


def test_tokens_of_all_gpus_are_divided_by_those_that_worked() -> None:
    whole = made(LLAMA, tokens_s=61_600.0, tokens_of="all", n_gpus=8, dtype="bf16")
    idle = replace(whole, gpu=pd.concat([whole.gpu, gpu(range(0, 301, 5), "8", util_pct=0.0)]))
    for one in (whole, idle):
        p = measure_mfu(one)
        assert (p.training_gpus, p.high_tokens_s_per_gpu) == (8, 7700.0)
        assert bracket(p) == pytest.approx((100 * 6 * 8_030_261_248 * 7700 / BF16_H100,) * 2)


def test_run_toml_says_on_how_many_gpus_it_ran() -> None:
    p = measure_mfu(made(LLAMA, tokens_s=61_600.0, tokens_of="all", n_gpus=4, dtype="bf16", gpus=8))
    assert (p.training_gpus, p.high_tokens_s_per_gpu) == (8, 7700.0)


def test_ranks_in_the_log_are_gpus_that_the_telemetry_lacks() -> None:
    whole = made(LLAMA, tokens_s=61_600.0, tokens_of="all", n_gpus=2, dtype="bf16")
    ranked = replace(whole, steps=whole.steps.assign(rank=pd.array([7] * len(LINES), dtype="Int64")))
    assert measure_mfu(ranked).training_gpus == 8


def test_tokens_of_nobody_knows_whom_are_a_bracket_from_one_gpu_to_all() -> None:
    p = measure_mfu(made(LLAMA, tokens_s=8000.0, n_gpus=4, dtype="bf16"))
    assert (p.low_tokens_s_per_gpu, p.high_tokens_s_per_gpu) == (2000, 8000)
    assert bracket(p) == pytest.approx(tuple(100 * 6 * 8_030_261_248 * t / BF16_H100 for t in (2000, 8000)))


def test_without_a_number_format_the_bracket_spans_those_in_which_it_can_have_been_done() -> None:
    p = measure_mfu(made(LLAMA, tokens_s=7700.0, tokens_of="gpu"))
    flops = 6 * 8_030_261_248 * 7700
    assert flops > 67e12, "more than plain fp32 can do"
    assert p.formats == "tf32, bf16, fp8"
    assert bracket(p) == pytest.approx((100 * flops / FP8_H100, 100 * flops / TF32_H100))


def test_fp32_may_be_tf32_and_a_small_training_may_be_either() -> None:
    p = measure_mfu(made(NANO, tokens_s=20_000.0, tokens_of="gpu", name=A100, dtype="fp32"))
    flops = 6 * 123.59e6 * 20_000
    assert p.formats == "fp32, tf32" and bracket(p) == pytest.approx((100 * flops / 156e12, 100 * flops / 19.5e12))


def test_tokens_per_second_are_the_median_over_steps_at_their_usual_pace() -> None:
    """The second line is of 1 step, and the ninth lies behind a pause of a minute."""
    lines = [(10.0, 10), (11.0, 11), *((10.0 * i, 10 * i) for i in range(3, 9)), (150.0, 90)]
    lines += [(150.0 + 10 * i, 90 + 10 * i) for i in range(1, 10)]
    tokens_s = [5000.0, 1.0, *[7000.0] * 6, 900.0, *[7001.0] * 9]
    p = measure_mfu(made(LLAMA, tokens_s=tokens_s, tokens_of="gpu", lines=lines, dtype="bf16"))
    assert p.high_tokens_s_per_gpu == 7001.0


def test_tokens_of_a_step_over_its_time_where_no_line_states_a_speed() -> None:
    p = measure_mfu(made("tokens per iteration will be: 491,520", NANO, n_gpus=4, name=A100, dtype="bf16"))
    assert p.high_tokens_s_per_gpu == pytest.approx(491_520 / 1.0 / 4)
    assert bracket(p) == pytest.approx((100 * 6 * 123.59e6 * 122_880 / 312e12,) * 2)


def test_tokens_of_a_step_in_run_toml_settle_whose_tokens_a_log_counts() -> None:
    p = measure_mfu(made(LLAMA, tokens_s=8000.0, n_gpus=2, dtype="bf16", tokens_per_step=8000))
    assert (p.low_tokens_s_per_gpu, p.high_tokens_s_per_gpu) == (4000, 4000)


@pytest.mark.parametrize(
    ("said", "parameters", "trained"),
    [
        (("  Number of trainable parameters = 124,439,808",), math.nan, 124_439_808),
        ((NANO,), 123.59e6, 123.59e6),
        ((LLAMA, "Total parameter count: dense 8,030,261,248, sparse 0, active 8,030,261,248"), 8030261248, 8030261248),
        ((PEFT,), 8_030_261_248, 10_485_760),
        (("124 M     Trainable params", "124 M     Total params"), 124e6, 124e6),
        (("1.3 M     Trainable params", "124 M     Total params"), 124e6, 1.3e6),
        (("num. shared model params: 60,526,592 (num. trained: 60,526,592)",), 60_526_592, 60_526_592),
        (("num_parameters: 124475904 => bytes: 248951808",), 124_475_904, 124_475_904),
        (("Total params: 1,804,647 (6.88 MB)", "Trainable params: 1,804,647 (6.88 MB)"), 1_804_647, 1_804_647),
        (("Number of trainable parameters: 1,000", "Number of non trainable parameters: 9,000"), 10_000, 1_000),
        (("Total number of parameters in billions: 8.03",), 8.03e9, 8.03e9),
        ((NANO, "  Number of trainable parameters = 124,439,808"), 123.59e6, 123.59e6),
        (("Total parameter count: dense 1, sparse 9,000, active 3,000", "size: 9,001 total parameters"), 3000, 3000),
        ((LLAMA, LLAMA), 8_030_261_248, 8_030_261_248),
    ],
)  # fmt: skip
def test_what_lines_state_of_the_model(said: tuple[str, ...], parameters: float, trained: float) -> None:
    p = measure_mfu(made(*said, tokens_s=10.0, tokens_of="gpu", dtype="bf16"))
    assert p.parameters == pytest.approx(parameters, nan_ok=True) and p.trained_parameters == trained
    assert str(p.withheld) == ""


def test_a_frozen_model_takes_two_to_four_flops_a_parameter() -> None:
    p = measure_mfu(made(PEFT, tokens_s=7700.0, tokens_of="gpu", dtype="bf16"))
    n, t = 8_030_261_248, 10_485_760
    by_hand = (2 * n + 4 * t) * 7700 / BF16_H100, (4 * n + 2 * t) * 7700 / BF16_H100
    assert bracket(p) == pytest.approx(tuple(100 * part for part in by_hand))
    stated = made(
        "Number of trainable parameters = 10,485,760", tokens_s=7700.0, tokens_of="gpu", dtype="bf16", parameters=n
    )
    assert bracket(measure_mfu(stated)) == pytest.approx(bracket(p)), (
        "run.toml states the whole, the log what is trained"
    )


def test_what_may_be_the_share_of_one_rank_leaves_open_whether_all_are_trained() -> None:
    """With FSDP Hugging Face counts the parameters of one rank: an eighth of all on eight GPUs."""
    n, t = 8_030_261_248, 1_003_782_656
    line, known = f"  Number of trainable parameters = {t:,}", {"tokens_s": 7700.0, "tokens_of": "gpu", "dtype": "bf16"}
    p = measure_mfu(made(line, n_gpus=8, parameters=n, **known))
    by_hand = (2 * n + 4 * t) * 7700 / BF16_H100, 6 * n * 7700 / BF16_H100
    assert p.sharded and bracket(p) == pytest.approx(tuple(100 * part for part in by_hand))
    assert not measure_mfu(made(line.replace("1,003", "1,203"), n_gpus=8, parameters=n, **known)).sharded


def test_trained_parameters_alone_are_a_lower_bound() -> None:
    p = measure_mfu(made("Number of trainable parameters = 124,439,808", tokens_s=1e5, tokens_of="gpu", dtype="bf16"))
    assert p.mfu_low_pct == pytest.approx(100 * 6 * 124_439_808 * 1e5 / BF16_H100) and math.isnan(p.mfu_high_pct)


def test_run_toml_goes_before_the_log() -> None:
    p = measure_mfu(made(LLAMA, "num_experts .... 8", tokens_s=7700.0, tokens_of="gpu", parameters=10**9, dtype="bf16"))
    assert (p.parameters, p.parameters_from) == (1e9, "run.toml")


@pytest.mark.parametrize(
    ("line", "dtype"),
    [
        ("Using bfloat16 Automatic Mixed Precision (AMP)", "bf16"),
        ("Using 16bit Automatic Mixed Precision (AMP)", "fp16"),
        ("Using 16bit native Automatic Mixed Precision (AMP)", "fp16"),
        ("| precision             | BF16                     |", "bf16"),
        ("Using int8 Automatic Mixed Precision (AMP)", ""),
    ],
)
def test_the_log_may_state_the_number_format(line: str, dtype: str) -> None:
    assert measure_mfu(made(LLAMA, line, tokens_s=7700.0, tokens_of="gpu")).dtype == dtype


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        (made(tokens_s=7.0, tokens_of="gpu"), "Nothing states how many parameters"),
        (made(LLAMA, NANO, tokens_s=7.0, tokens_of="gpu"), "different numbers of parameters: 124 M and 8.03 B"),
        (made(LLAMA, "  num_experts ........ 8", tokens_s=7.0, tokens_of="gpu"), "tells of 8 experts"),
        (
            made(" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296", tokens_s=7.0),
            "parameters of single ranks",
        ),
        (made(LLAMA, tokens_s=1e5, tokens_of="gpu", dtype="bf16"), "4,818 TFLOP/s, more than its peak of 989 TFLOP/s"),
        (made(LLAMA, tokens_s=7.0, tokens_of="gpu", name="NVIDIA A10G"), "NVIDIA A10G is not in gpudiag's data sheet"),
        (made(LLAMA, tokens_s=7.0, tokens_of="gpu", name="NVIDIA RTX 9999"), "is not in gpudiag's data sheet"),
        (made(LLAMA, tokens_s=7.0, tokens_of="gpu", name="Tesla T4", dtype="bf16"), "T4 has no tensor cores for bf16"),
        (made(LLAMA, tokens_s=7.0, tokens_of="gpu", columns={"util_pct": 0.0}), "No telemetry shows which GPU"),
    ],
)  # fmt: skip
def test_withheld_with_the_reason(whole: Run, why: str) -> None:
    p = measure_mfu(whole)
    assert why in str(p.withheld) and math.isnan(p.mfu_low_pct) and math.isnan(p.mfu_high_pct)
    assert p.formats == "" and math.isnan(p.high_peak_tflops)


def test_gpus_of_two_models_have_no_one_peak() -> None:
    whole = made(LLAMA, tokens_s=7.0, tokens_of="gpu", n_gpus=2)
    mixed = replace(whole, gpus=gpus(gpu=["0", "1"], name=[H100, A100]))
    assert f"different models: {A100} and {H100}" in str(measure_mfu(mixed).withheld)


def test_several_trainings_have_no_one_mfu() -> None:
    whole = made(LLAMA, tokens_s=7.0, tokens_of="gpu", columns={"tensor_active_pct": 30.0})
    other = whole.steps.assign(path="other.log", time=whole.steps["time"] + pd.Timedelta(seconds=7))
    both = pd.concat([whole.steps, other], ignore_index=True)
    assert "logs of 2 trainings" in str(measure_mfu(replace(whole, steps=both)).withheld)


def test_without_tokens_the_activity_of_tensor_cores_is_what_is_known() -> None:
    """60 s of start and end are no work: a GPU without trials works from its first activity to its last."""
    seconds = list(range(0, 300, 5))
    util = [0.0 if s < 60 or s >= 240 else 90.0 for s in seconds]
    tensor = [0.0 if s < 60 or s >= 240 else 40.0 for s in seconds]
    p = measure_mfu(run(gpu=gpu(seconds, util_pct=util, tensor_active_pct=tensor), gpus=gpus(gpu=["0"], name=H100)))
    assert p.tensor_active_pct == pytest.approx(40.0) and math.isnan(p.mfu_low_pct)


def test_a_run_that_tells_nothing_is_not_measured() -> None:
    with pytest.raises(NotMeasurable) as gap:
        measure_mfu(run(gpu=gpu(range(60), util_pct=50.0)))
    assert "No line of a log states tokens per second" in gap.value.reason and "[training]" in gap.value.remedy


@pytest.mark.slow
def test_what_the_log_states_itself_stands_beside() -> None:
    whole = made(LLAMA, tokens_s=7700.0, tokens_of="gpu", dtype="bf16")
    own = whole.steps.assign(mfu_pct=[40.0] * 29 + [1.0], gpu_tflops=400.0, series="torchtitan")
    p = measure_mfu(replace(whole, steps=own))
    assert (p.log_mfu_pct, p.log_tflops, p.log_kind) == (40.0, 400.0, "torchtitan")
    assert p.log_low_pct == p.log_high_pct == pytest.approx(100 * 400 / 989.4)
    assert p.mfu_low_pct == pytest.approx(37.5, abs=0.01)


@pytest.mark.slow
@settings(max_examples=few_of(20), deadline=None)
@given(
    tokens_s=st.floats(1.0, 2e5),
    n_gpus=st.integers(1, 3),
    tokens_of=st.sampled_from(["gpu", "all", None]),
    dtype=st.sampled_from([None, "fp32", "tf32", "bf16", "fp8"]),
    said=st.sampled_from([LLAMA, PEFT, NANO]),
)
def test_a_bracket_is_in_order_and_within_the_peak(
    tokens_s: float, n_gpus: int, tokens_of: str | None, dtype: str | None, said: str
) -> None:
    p = measure_mfu(made(said, tokens_s=tokens_s, tokens_of=tokens_of, n_gpus=n_gpus, dtype=dtype))
    if str(p.withheld):
        assert math.isnan(p.mfu_low_pct) and math.isnan(p.mfu_high_pct)
        return
    assert 0 < p.mfu_low_pct <= p.mfu_high_pct <= 100
    assert p.low_tokens_s_per_gpu <= p.high_tokens_s_per_gpu and p.low_peak_tflops <= p.high_peak_tflops
    half = measure_mfu(made(said, tokens_s=tokens_s / 2, tokens_of=tokens_of, n_gpus=n_gpus, dtype=dtype))
    assert half.mfu_low_pct == pytest.approx(p.mfu_low_pct / 2), "the fastest format can have been meant in both"


def write(folder: Path) -> Path:
    """20 minutes of an H100, and what torchtitan logs beside."""
    stamps = [T0 + pd.Timedelta(seconds=s) for s in range(0, 1200, 2)]
    head = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
    rows = [f"{t:%Y/%m/%d %H:%M:%S.000}, 0, {H100}, 97 %, 60000 MiB, 81559 MiB" for t in stamps]
    (folder / "gpu.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    first = f"[rank0]:[titan] {at(5):%Y-%m-%d %H:%M:%S},000 - root - INFO - "
    log = [f"{first}\x1b[34mModel llama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m"]
    log += [
        f"[rank0]:[titan] {at(20 + 10 * i):%Y-%m-%d %H:%M:%S},000 - root - INFO - \x1b[31mstep: {10 * i:2}  \x1b[32m"
        "loss:  7.9000  \x1b[38;2;180;60;0mgrad_norm:  1.0000  \x1b[38;2;54;234;195mmemory: 40.00GiB(50.00%)  \x1b[34m"
        "tps: 7,700  \x1b[36mtflops: 400.10  \x1b[35mmfu: 40.46%\x1b[39m"
        for i in range(1, 110)
    ]
    (folder / "train.log").write_text("\n".join(log) + "\n", encoding="utf-8")
    (folder / "run.toml").write_text('timezone = "UTC"\n\n[training]\ndtype = "bf16"\n', encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_folder_with_telemetry_and_a_log_of_torchtitan(tmp_path: Path) -> None:
    d = gd.diagnose(gd.load_run(write(tmp_path)))
    held = d.to_dict()["measures"]["mfu"]
    assert held["mfu_low_pct"] == held["mfu_high_pct"] == {"value": pytest.approx(37.50, abs=0.01), "unit": "%"}
    assert held["high_peak_tflops"] == {"value": 989.4, "unit": "TFLOP/s"}
    assert d.to_dict()["run"]["training"] == {"dtype": "bf16"}
    (note,) = mfu(d.document)
    assert note == Note(
        "The model did 37 % of the FLOPs that the GPU can do (MFU): 6 × 8.03 B parameters × 7,700 tokens/s a GPU, of "
        "989 TFLOP/s (bf16). Attention is not in it; embeddings and all experts of a mixture are, though a token "
        "passes few of them. The log itself states 40 % (with attention, and of an A100's peak where it does not know "
        "the GPU)."
    )


def test_part_of_a_run_is_of_the_same_model(tmp_path: Path) -> None:
    whole = gd.load_run(write(tmp_path))
    part = whole.between("2025-10-24 19:10", None)
    assert measure_mfu(part).parameters == 8_030_261_248


def test_a_second_training_in_a_log_counts_the_tokens_of_the_same_gpus(tmp_path: Path) -> None:
    """An attempt of three lines, too few to count, and one that begins at the first step again."""
    folder = write(tmp_path)
    head, *samples = (folder / "gpu.csv").read_text().splitlines()
    of_both = [one for line in samples for one in (line, line.replace(", 0, ", ", 1, ", 1))]
    (folder / "gpu.csv").write_text("\n".join([head, *of_both]) + "\n")
    log = folder / "train.log"
    lines = log.read_text().splitlines()
    first = [line for line in lines if "step:" in line][:3]
    log.write_text("\n".join([lines[0], *first, *lines]))
    p = measure_mfu(gd.load_run(folder))
    assert p.low_tokens_s_per_gpu == p.high_tokens_s_per_gpu == 7700
