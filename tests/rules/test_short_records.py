"""What a record of less than a minute says, and one that a lost GPU left short."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.rules._engine.verdict import Status, Verdict
from tests.measures.test_recorded_ends import row, start


def verdicts(tmp_path: Path, seconds: int, util_pct: tuple[int, ...], lost_at: int = 999) -> dict[str, Verdict]:
    """A host at work beside as many GPUs, of which the last may be lost."""
    body = []
    for at in range(seconds):
        for gpu, pct in enumerate(util_pct):
            if gpu < len(util_pct) - 1 or at < lost_at:
                body.append(row(at, record="gpu", gpu=str(gpu), util_pct=str(pct + at % 3)))
        body.append(row(at, record="host", cpu_pct="30", cpu_max_core_pct="40", io_wait_pct="0"))
    if lost_at < seconds:
        body.append(row(lost_at, record="event", gpu=str(len(util_pct) - 1), kind="gpu_lost", detail="GPU is lost"))
    head = "\n".join(start(0.0, took_s=0.0, command="").splitlines()[:3])
    (tmp_path / "gpu.csv").write_text("\n".join([head, *body]) + "\n", encoding="utf-8")
    return {one.rule: one for one in gd.diagnose(tmp_path).verdicts}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["cpu-bound-input", "launch-bound", "io-wait"])
def test_a_host_that_was_recorded_too_shortly_was_recorded(tmp_path: Path, rule: str) -> None:
    found = verdicts(tmp_path, 50, (90,))[rule]
    assert found.status is Status.NOT_ASSESSED
    assert "was recorded for 50 s of the GPU's work; 1 min is needed" in found.reason


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "status"), [(26, Status.NOT_ASSESSED), (90, Status.FOUND)])
def test_an_uneven_share_needs_a_minute(tmp_path: Path, seconds: int, status: Status) -> None:
    assert verdicts(tmp_path, seconds, (90, 10))["gpu-imbalance"].status is status


@pytest.mark.slow
def test_a_gpu_that_was_lost_explains_its_missing_samples(tmp_path: Path) -> None:
    found = verdicts(tmp_path, 90, (90, 90), lost_at=30)["sampling-coverage"]
    assert found.status is Status.FOUND and found.caused_by == "gpu-lost"
