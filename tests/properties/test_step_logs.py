"""Logs of trainings, damaged at random: whatever is left, every share is one and every time is none below zero."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudiag as gd
from gpudiag.measures.loader import measure_loader
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.memo import MemoRun
from tests.readers.steps.written_logs import WRITERS, train

SHARES = ("pauses_pct", "resumption_pct", "productive_pct", "idle_paused_pct")
TIMES = ("logged_s", "step_s", "p95_step_s", "pauses_s", "first_s", "resumption_s", "evaluations_s", "checkpoints_s")


def damaged(rng: random.Random, lines: list[str], share: float) -> list[str]:
    """Some lines with other digits, lost, doubled, or in another place."""
    out = []
    for line in lines:
        if rng.random() >= share:
            out.append(line)
            continue
        kind = rng.random()
        if kind < 0.5 and line:
            at = rng.randrange(len(line))
            line = line[:at] + rng.choice("0123456789./:,-e ") * rng.choice((1, 1, 2, 12)) + line[at + 1 :]
        out += [line] * (2 if kind > 0.8 else int(kind < 0.6))
    for _ in range(int(share * len(out))):
        a, b = rng.randrange(len(out)), rng.randrange(len(out))
        out[a], out[b] = out[b], out[a]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("dialect", WRITERS)
@settings(max_examples=few_of(15), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.02, 0.1, 0.5]))
def test_a_damaged_log_gives_shares_and_times(
    tmp_path_factory: pytest.TempPathFactory, dialect: str, seed: int, share: float
) -> None:
    rng = random.Random(seed)
    run = train(rng, 250, 10 ** rng.uniform(-2, 2), eval_every=rng.choice((0, 100)), eval_s=50.0)
    path = Path(tmp_path_factory.mktemp("log")) / "train.log"
    path.write_text("\n".join(damaged(rng, WRITERS[dialect](run, 10), share)), encoding="utf-8")
    try:
        loaded = MemoRun.of(gd.load_run(artifacts=path, timezone="UTC"))  # what both measures need is made once
        said: StepsProfile = measure_steps(loaded)
    except (gd.InputError, gd.NotMeasurable):
        return
    for name in SHARES:
        value = getattr(said, name)
        assert math.isnan(value) or -1e-6 <= value <= 100 + 1e-6, (name, value)
    for name in TIMES:
        assert not getattr(said, name) < 0 and not math.isinf(getattr(said, name)), name
    assert said.course["each_s"].ge(0).all()
    try:
        waits = measure_loader(loaded)
    except gd.NotMeasurable:
        return
    assert not waits.avg_ms < 0 and not waits.step_ms < 0
