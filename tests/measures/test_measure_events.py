"""Events about hardware: each once, and of the GPU that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

import gpudiag as gd
from gpudiag.measures.events import measure_events
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform

AT = pd.Timestamp("2026-03-01 10:00", tz="UTC")


def run_of(*rows: tuple[float, str, str, str | None]) -> Run:
    """Events from (seconds, kind, detail, GPU)."""
    seconds, kinds, details, gpus = zip(*rows, strict=True)
    frame = {"time": AT + pd.to_timedelta(seconds, unit="s"), "kind": kinds, "detail": details, "gpu": gpus}
    return replace(Run(), events=conform(pd.DataFrame(frame), EVENTS))


def test_the_events_own_gpu_stands_beside_it() -> None:
    found = measure_events(run_of((2, "gpu_lost", "lost", "3"), (1, "xid", "Xid 48", None), (0, "epoch", "1", "0")))
    assert list(found.events) == ["time", "gpu", "kind", "xid", "detail"]
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
    found = gd.diagnose(run)
    assert [v.status.value for v in found.verdicts if v.rule == "gpu-lost"] == ["found"]


def test_a_lost_gpu_in_a_table_of_nvidia_smi_is_named(tmp_path: Path) -> None:
    head = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
    rows = [
        f"2026/03/01 10:{minute:02d}:00.000, {gpu}, A100, " + ("[GPU is lost]" if gpu and minute > 20 else "90 %")
        + ", " + ("[GPU is lost]" if gpu and minute > 20 else "900 MiB") + ", 81920 MiB"
        for minute in range(40) for gpu in (0, 1)
    ]  # fmt: skip
    (tmp_path / "gpu.csv").write_text("\n".join([head, *rows]) + "\n")
    found = gd.diagnose(gd.load_run(tmp_path, timezone="UTC"))
    lost = next(v for v in found.verdicts if v.rule == "gpu-lost")
    assert lost.status.value == "found" and lost.where == {"gpu": "1"}
