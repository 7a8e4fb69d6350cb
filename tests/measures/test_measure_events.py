"""Events about hardware: each once, and of the GPU that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from verdicts import verdict_of, verdicts_of

import gpudiag as gd
from gpudiag.measures.events import measure_events
from gpudiag.run import Run
from gpudiag.schema import EVENTS, GPU, conform

NAN = float("nan")
AT = pd.Timestamp("2026-03-01 10:00", tz="UTC")


def run_of(*rows: tuple[float, str, str, str | None]) -> Run:
    """Events from (seconds, kind, detail, GPU)."""
    seconds, kinds, details, gpus = zip(*rows, strict=True)
    frame = {"time": AT + pd.to_timedelta(seconds, unit="s"), "kind": kinds, "detail": details, "gpu": gpus}
    return replace(Run(), events=conform(pd.DataFrame(frame), EVENTS))


def test_the_events_own_gpu_stands_beside_it() -> None:
    found = measure_events(run_of((2, "gpu_lost", "lost", "3"), (1, "xid", "Xid 48", None), (0, "epoch", "1", "0")))
    assert list(found.events) == ["time", "gpu", "kind", "xid", "sxid", "origin", "detail"]
    assert found.events["gpu"].fillna("-").tolist() == ["-", "3"]
    assert (found.n_lost, found.n_hardware) == (1, 1)


def test_two_gpus_lost_at_once_are_two_and_one_told_twice_is_one() -> None:
    lost = (5, "gpu_lost", "[GPU is lost]")
    found = measure_events(run_of((*lost, None), (*lost, "1"), (*lost, "0"), (*lost, "1")))
    assert found.events["gpu"].tolist() == ["0", "1"] and found.n_lost == 2


def test_a_training_log_that_names_a_gpu_is_diagnosed(tmp_path: Path) -> None:
    lines = [
        "2026-03-01 10:00:00 INFO Trial 2 using GPU 3",
        "2026-03-01 10:00:30 INFO epoch 1/3 loss 0.9",
        "2026-03-01 10:01:30 INFO epoch 2/3 loss 0.7",
        "2026-03-01 10:02:00 ERROR GPU has fallen off the bus",
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert "3" in set(run.events["gpu"].dropna())
    assert verdict_of(run, "gpu-lost").status.value == "found"


def test_a_lost_gpu_in_a_table_of_nvidia_smi_is_named(tmp_path: Path) -> None:
    head = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
    rows = [
        f"2026/03/01 10:{minute:02d}:00.000, {gpu}, A100, " + ("[GPU is lost]" if gpu and minute > 20 else "90 %")
        + ", " + ("[GPU is lost]" if gpu and minute > 20 else "900 MiB") + ", 81920 MiB"
        for minute in range(40) for gpu in (0, 1)
    ]  # fmt: skip
    (tmp_path / "gpu.csv").write_text("\n".join([head, *rows]) + "\n")
    lost = verdict_of(gd.load_run(tmp_path, timezone="UTC"), "gpu-lost")
    assert lost.status.value == "found" and lost.where == {"gpu": "1"}


def counting(**counts: list[float]) -> Run:
    """A sample a minute of GPUs with these counters of uncorrectable ECC errors."""
    parts = [
        pd.DataFrame(
            {"time": AT + pd.to_timedelta(range(len(own)), unit="min"), "gpu": gpu[1:], "ecc_uncorrected": own}
        )
        for gpu, own in counts.items()
    ]
    return replace(Run(), gpu=conform(pd.concat(parts).assign(util_pct=90.0), GPU))


@pytest.mark.parametrize(
    ("counts", "within", "before", "minute"),
    [
        ([0, 0, 2, 2, 3], 3, 0, 2),
        ([4, 4, 4], 0, 4, None),
        ([4, 4, 5], 1, 4, 2),
        ([0, 0], 0, 0, None),
        ([NAN, 1, NAN, 3], 2, 1, 3),
        ([2, 0, 2, 2], 0, 2, None),
        ([2, 0, 3], 1, 2, 2),
    ],
)
def test_a_counter_tells_of_what_came_within_the_record_and_before(
    counts: list[float], within: int, before: int, minute: int | None
) -> None:
    row = measure_events(counting(g7=counts)).counters.loc["7"]
    assert (row["n_ecc"], row["n_ecc_before"]) == (within, before)
    assert pd.isna(row["first_ecc"]) if minute is None else row["first_ecc"] == AT + pd.Timedelta(minutes=minute)


def hardware(run: Run) -> gd.Verdict:
    return verdicts_of(run, "gpu-hardware-errors", "gpu-lost")["gpu-hardware-errors"]


def test_a_rise_is_critical_and_what_was_counted_before_a_warning_of_unknown_time() -> None:
    rise = hardware(counting(g0=[0, 0], g1=[0, 7], g2=[3, 3]))
    assert (rise.severity.value, rise.where) == ("critical", {"gpu": "1, 2"})
    assert rise.summary == (
        "GPU 1 counted 7 uncorrectable ECC errors, first seen at 2026-03-01 10:01:00 UTC. GPU 2 had counted 3 "
        "uncorrectable ECC errors when the record began: since the driver was loaded, at an unknown time."
    )
    assert rise.evidence == {"n_ecc": 7, "n_ecc_before": 3}
    old = hardware(counting(g0=[1, 1], g1=[2, 2]))
    assert old.severity.value == "warning" and old.summary.startswith(
        "GPU 0 and GPU 1 together had counted 3 uncorrectable ECC errors"
    )
    both = hardware(counting(g0=[0, 1], g1=[0, 2]))
    assert both.summary.startswith("GPU 0 and GPU 1 together counted 3 uncorrectable ECC errors, first seen")


def test_counters_at_zero_or_without_a_value_clear_nothing() -> None:
    for counts in ([0, 0, 0], [NAN, NAN]):
        assert hardware(counting(g0=counts)).status.value == "not_assessed"


def test_only_hardware_xids_are_listed() -> None:
    run = run_of((1, "xid", "Xid 48", "0"), (2, "xid", "Xid 45", "1"), (3, "xid", "Xid 31", None))
    found = hardware(run)
    assert found.summary == "The logs hold 1 hardware error of a GPU (Xid 48), first at 2026-03-01 10:00:01 UTC."
    assert found.where == {"gpu": "0"}


def test_errors_of_another_gpu_are_not_explained_by_a_lost_one() -> None:
    lost = run_of((60, "gpu_lost", "Xid 79", "1"))
    alone, beside = hardware(lost), hardware(replace(lost, gpu=counting(g0=[0, 2], g1=[0, 0]).gpu))
    assert (alone.caused_by, alone.where) == ("gpu-lost", {"gpu": "1"})
    assert (beside.caused_by, beside.where) == (None, {"gpu": "0"})


def test_a_lost_gpu_is_named_in_the_sentence_where_each_event_names_one() -> None:
    def said(*rows: tuple[float, str, str, str | None]) -> str:
        return verdict_of(run_of(*rows), "gpu-lost").summary

    assert said((0, "gpu_lost", "lost", "n2/2")) == "GPU n2/2 was lost at 2026-03-01 10:00:00 UTC."
    assert said((0, "gpu_lost", "lost", "1"), (5, "gpu_lost", "lost", "0")).startswith("GPUs 0 and 1 were lost, first")
    assert said((0, "gpu_lost", "lost", "1"), (5, "gpu_lost", "off the bus", None)).startswith("GPU 1 was lost, first")
    assert said((5, "gpu_lost", "off the bus", None)) == "A GPU was lost at 2026-03-01 10:00:05 UTC."
