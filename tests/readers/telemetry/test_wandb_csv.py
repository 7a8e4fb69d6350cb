"""W&B's system metrics as CSV: several runs, steps without time, means over groups, cells without a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.readers.telemetry.wandb_csv import MEANS, RUNS

AT_S = 1_700_000_000


def read(folder: Path, text: str) -> Telemetry:
    (folder / "export.csv").write_text(text)
    return read_telemetry(folder / "export.csv", timezone="Asia/Taipei")


def chart(x_axis: str, *columns: str) -> str:
    start = AT_S if x_axis == "Wall Time" else 0
    header = ",".join(f'"{name}"' for name in (x_axis, *columns))
    rows = [",".join(map(str, (start + 15 * at, *(10 * n + at % 3 for n in range(len(columns)))))) for at in range(9)]
    return "\n".join([header, *rows]) + "\n"


def test_gpus_of_several_runs_are_named_by_run(tmp_path: Path) -> None:
    telemetry = read(tmp_path, chart("Wall Time", "a - system/gpu.0.gpu", "b - 2 - system/gpu.0.gpu"))
    assert telemetry.gpu.groupby("gpu")["util_pct"].mean().to_dict() == {"a/0": 1.0, "b - 2/0": 11.0}
    assert RUNS in telemetry.notes and MEANS not in telemetry.notes and telemetry.clock == "utc"


@pytest.mark.parametrize("x_axis", ["Relative Time (Process)", "Relative Time (Wall)"])
def test_a_run_that_counts_from_its_start(x_axis: str, tmp_path: Path) -> None:
    telemetry = read(tmp_path, chart(x_axis, "a - system/gpu.1.gpu", "a - system/gpu.1.gpu__MIN"))
    assert telemetry.gpu["util_pct"].tolist() == [at % 3 for at in range(9)]
    assert MEANS in telemetry.notes and any("1970" in note for note in telemetry.notes) and telemetry.clock == "count"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (chart("Step", "a - system/gpu.0.gpu"), "says no time"),
        (chart("Relative Time (Process)", "a - system/gpu.0.gpu", "b - system/gpu.0.gpu"), "holds 2 runs"),
        (chart("Wall Time", "Group: a - system/gpu.0.gpu"), "means over groups"),
    ],
)
def test_what_is_no_gpu_at_a_time_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        read(tmp_path, text)


def test_metrics_of_a_tick_in_rows_of_their_own(tmp_path: Path) -> None:
    header = "_timestamp,loss,system.gpu.0.gpu,system.gpu.0.memoryAllocated,system.gpu.0.memoryAllocatedBytes"
    rows = [f"{AT_S + 15 * at}.0,,{90 + at},,\n{AT_S + 15 * at}.1,,,25.0,{2**30}" for at in range(5)]
    telemetry = read(tmp_path, "\n".join([header, *rows, f"{AT_S},,NaN,NaN,NaN", "17000,,5,,"]) + "\n")
    assert telemetry.gpu["util_pct"].tolist() == [90, 91, 92, 93, 94]
    assert set(telemetry.gpu["mem_used_mib"]) == {1024.0} and set(telemetry.gpu["mem_total_mib"]) == {4096.0}
    assert [(problem.kind, problem.count) for problem in telemetry.problems] == [("torn row", 1)]
