"""The use of the GPUs of jobs, by what jobstats left in sacct's AdminComment."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from smallruns import gpu, run

import gpudiag as gd
from gpudiag.errors import NotGiven
from gpudiag.measures.jobs import measure_jobs
from gpudiag.report._sections.topics import utilization
from gpudiag.report.sections import verdict

HEADER = "JobID|JobName|State|ExitCode|Start|End|Elapsed|AllocTRES|NodeList|AdminComment"


class Job(NamedTuple):
    """A job of some hours, and by node the mean utilization of its GPUs; None where jobstats recorded nothing."""

    hours: int
    nodes: Mapping[str, Sequence[object]] | None
    n_gpus: int = 1
    state: str = "COMPLETED"


def written(folder: Path, *jobs: Job) -> Path:
    rows = []
    for at, job in enumerate(jobs):
        comment = ""
        if job.nodes is not None:
            nodes = {
                node: {"gpu_utilization": {str(i): pct for i, pct in enumerate(use)}} for node, use in job.nodes.items()
            }
            packed = gzip.compress(json.dumps({"nodes": nodes, "gpus": job.n_gpus}).encode())
            comment = "JS1:" + base64.b64encode(packed).decode()
        end = f"2026-01-1{at}T{job.hours:02d}:00:00"
        rows.append(
            f"{at}|train|{job.state}|0:0|2026-01-1{at}T00:00:00|{end}|{job.hours:02d}:00:00|"
            f"gres/gpu={job.n_gpus}|{','.join(job.nodes or ['n'])}|{comment}"
        )
    path = folder / "jobs.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return path


def test_gpu_time_and_mean_are_weighted_by_the_length_of_jobs(tmp_path: Path) -> None:
    """10 h of two GPUs, one of them unused; 5 h of four on two nodes; 2 h of one that failed; one not on record."""
    jobs = (
        Job(10, {"a": [90.0, 0.0]}, 2), Job(5, {"a": [50.0, 60.0], "b": [55.0, 65.0]}, 4),
        Job(2, {"c": [80.0]}, state="FAILED"), Job(9, None, 8),
    )  # fmt: skip
    p = measure_jobs(gd.load_run(written(tmp_path, *jobs), timezone="UTC"))
    gpu_h = 10 * 2 + 5 * 4 + 2
    assert (p.n_recorded_jobs, p.recorded_gpus, p.recorded_gpu_h) == (3, 7, gpu_h)
    assert p.mean_util_pct == pytest.approx((10 * 90 + 5 * (50 + 60 + 55 + 65) + 2 * 80) / gpu_h)
    assert (p.unused_gpus, p.unused_gpu_h) == (1, 10)


def test_a_gpu_of_unknown_utilization_is_in_no_number(tmp_path: Path) -> None:
    p = measure_jobs(gd.load_run(written(tmp_path, Job(10, {"a": [90.0, 400, "N/A"]}, 3)), timezone="UTC"))
    assert (p.recorded_gpus, p.recorded_gpu_h, p.mean_util_pct, p.unused_gpus) == (1, 10, 90, 0)


def test_next_to_nothing_is_not_unused(tmp_path: Path) -> None:
    p = measure_jobs(gd.load_run(written(tmp_path, Job(10, {"a": [0.1, 0.0]}, 2)), timezone="UTC"))
    assert (p.unused_gpus, p.unused_gpu_h, p.mean_util_pct) == (1, 10, pytest.approx(0.05))


def test_without_a_record_nothing_is_known(tmp_path: Path) -> None:
    for one in (gd.load_run(written(tmp_path, Job(9, None)), timezone="UTC"), run(gpu=gpu(range(60), util_pct=50.0))):
        with pytest.raises(NotGiven):
            measure_jobs(one)


@pytest.mark.slow
def test_the_first_screen_and_the_section_say_it(tmp_path: Path) -> None:
    jobs = (Job(10, {"a": [90.0, 0.0]}, 2), Job(5, {"b": [55.0, 65.0]}, 2))
    document = gd.diagnose(gd.load_run(written(tmp_path, *jobs), timezone="UTC")).document
    assert document.headline.sentences[0] == "The 4 GPUs of 2 jobs were partly used (50 %)."
    (section,) = [block.text for block in utilization(document)]  # type: ignore[attr-defined]
    assert section.startswith(
        "jobstats recorded 4 GPUs of 2 jobs, 30 GPU-h: their mean utilization was 50 %, weighted by time. "
        "1 GPU was at 0 % for a whole job, 10 GPU-h: ask for fewer."
    )
    top = dict(verdict(document)[0].numbers)  # type: ignore[attr-defined]
    assert top["mean utilization of 4 GPUs of 2 jobs, as jobstats recorded it"] == "50 %"
    assert top["of GPU time, 33 % of it on 1 GPU at 0 % for a whole job"] == "30 GPU-h"


@pytest.mark.slow
def test_telemetry_says_more_than_means_over_jobs(tmp_path: Path) -> None:
    path = written(tmp_path, Job(10, {"a": [0.0]}))
    rows = "".join(f"2026-01-10 05:{s // 60:02d}:{s % 60:02d}.000, 0, 90 %\n" for s in range(600))
    (tmp_path / "gpu.csv").write_text("timestamp, index, utilization.gpu [%]\n" + rows, encoding="utf-8")
    document = gd.diagnose(gd.load_run([path, tmp_path / "gpu.csv"], timezone="UTC")).document
    assert document.headline.sentences[0].startswith("The GPU was well used while recorded (90 %)")
