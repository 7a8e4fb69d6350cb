"""Planted faults of failing trials: their rate, their kinds, what they follow, and what was full before them."""

from __future__ import annotations

import numpy as np

from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run
from planted.base import TOTAL_MIB, Edge, fault, in_workers, log, run, study, ticks, trials

OTHER = "ValueError: wrong number of classes"
TEXTS = {
    "failures-out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "failures-device-assert": "RuntimeError: CUDA error: device-side assert triggered",
    "failures-not-finite": "The value nan is not acceptable.",
    "failures-host-killed": "worker exited with code 137",
}


@fault(
    "failure-rate-high",
    edges={
        "max_pct": Edge({"n": 4}, {"n": 5}, Status.OK, Severity.WARNING),
        "severe_pct": Edge({"n": 33}, {"n": 34}, Severity.WARNING, Severity.CRITICAL),
        "chance_pct": Edge(
            {"n": 10, "in_a_row": 3}, {"n": 10, "in_a_row": 6}, Severity.WARNING, says="more than by chance"
        ),
        "min_trials": Edge({"n": 4, "of": 4}, {"n": 5, "of": 5}, Severity.NOTE, Severity.CRITICAL),
    },
    bigger=({"n": 50}, {"n": 99}),
)
def rate(*, n: int = 20, in_a_row: int = 1, of: int = 100) -> Run:
    """Of ``of`` trials ``n`` fail, spread evenly."""
    failed = np.zeros(of, bool)
    spread = n - (in_a_row if in_a_row > 1 else 0)
    failed[np.floor(np.arange(spread) * of / max(spread, 1)).astype(int)] = True
    if in_a_row > 1:
        failed[:] = np.isin(np.arange(100), np.floor(np.arange(spread) * 85 / max(spread, 1)).astype(int))
        failed[92 : 92 + in_a_row] = True
    states = np.where(failed, "FAIL", "COMPLETE")
    rows = [(str(state), start, end) for state, (_, start, end) in zip(states, in_workers([100.0] * of), strict=True)]
    return run(trials=trials(rows))


def _texts(rule: str, n: int, of: int = 40) -> Run:
    """Ten failures of which ``n`` carry the text of a rule."""
    rows = in_workers([100.0] * of)
    failed = [("FAIL", *row[1:]) if i < 10 else row for i, row in enumerate(rows)]
    details = [TEXTS[rule] if i < n else OTHER if i < 10 else None for i in range(of)]
    return run(trials=trials(failed, detail=details))


@fault("failures-out-of-memory", edges={"max_trials": Edge({"n": 0}, {"n": 1})}, bigger=({"n": 5}, {"n": 10}))
def out_of_memory(*, n: int = 3) -> Run:
    """Of ten failures ``n`` ran out of GPU memory."""
    return _texts("failures-out-of-memory", n)


@fault("failures-device-assert", edges={"max_trials": Edge({"n": 0}, {"n": 1})}, bigger=({"n": 5}, {"n": 10}))
def device_assert(*, n: int = 3) -> Run:
    """Of ten failures ``n`` are device-side asserts."""
    return _texts("failures-device-assert", n)


@fault(
    "failures-not-finite",
    edges={
        "max_trials": Edge({"n": 0}, {"n": 1}),
        "max_pct": Edge({"n": 1, "of": 50}, {"n": 2, "of": 50}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"n": 5}, {"n": 10}),
)
def ended_in_nan(*, n: int = 3, of: int = 40) -> Run:
    """Of ten failures ``n`` are NaN, of ``of`` trials in all."""
    return _texts("failures-not-finite", n, of)


@fault("failures-host-killed", edges={"max_trials": Edge({"n": 0}, {"n": 1})}, bigger=({"n": 5}, {"n": 10}))
def killed(*, n: int = 3) -> Run:
    """Of ten failures ``n`` are processes that were killed."""
    return _texts("failures-host-killed", n)


@fault(
    "failures-poisoned",
    edges={"max_followers_trials": Edge({"n": 2}, {"n": 3})},
    bigger=({"n": 8}, {"n": 18}),
)
def poisoned(*, n: int = 5) -> Run:
    """An assert is followed by ``n`` failures of 3 s on the same worker."""
    rows = in_workers([300.0] * 20)
    end = rows[-1][2]
    rows += [("FAIL", end + 1.0, end + 200.0)] + [("FAIL", end + 201.0 + 4 * i, end + 204.0 + 4 * i) for i in range(n)]
    details = [None] * 20 + [TEXTS["failures-device-assert"]] * (n + 1)
    return run(trials=trials(rows, worker="w0", detail=details))


@fault(
    "failures-after-full-memory",
    edges={
        "max_p_pct": Edge({"mixed": 5}, {"mixed": 0}),
        "min_before_pct": Edge({"full_pct": 84.0}, {"full_pct": 86.0}),
    },
    bigger=({"full_pct": 95.0}, {"full_pct": 99.0, "n": 15}),
)
def after_full(*, full_pct: float = 93.0, n: int = 10, mixed: int = 0) -> Run:
    """Trials of 100 s run one by one; memory is at ``full_pct`` in ``n`` that fail and below 65 % in 20 others."""
    rows = [("FAIL" if i < n else "COMPLETE", 120.0 * i, 120.0 * i + 100.0) for i in range(n + 20)]
    at = ticks(120.0 * len(rows))
    which = (at // 120.0).astype(int)
    full = (which < n) | (which >= n + 20 - 4 * mixed)
    steady = np.where(full, full_pct + 0.1 * (which % 3), 60.0 + which % 5)
    used = np.where(at % 120.0 < 102.0, steady, 5.0)
    return run(log(at, mem_used_mib=used / 100 * TOTAL_MIB), trials=trials(rows, gpu="0"))


@fault(
    "failures-bimodal",
    edges={
        "max_p_pct": Edge({"ratio": 6.0, "spread": 0.35}, {"ratio": 6.0, "spread": 0.25}),
        "min_times_ratio": Edge({"ratio": 4.9}, {"ratio": 5.1}),
    },
    bigger=({"ratio": 50.0}, {"ratio": 500.0}),
)
def bimodal(*, ratio: float = 20.0, spread: float = 0.02) -> Run:
    """Five failures last about 20 s, and five ``ratio`` times as long."""
    # spread is in natural logarithms
    around = spread * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    lengths = [float(x) for x in 20.0 * np.exp(np.concatenate([around, np.log(ratio) + around]))]
    order = [lengths[i] for i in (0, 5, 1, 6, 2, 7, 3, 8, 4, 9)]
    return run(trials=trials([*in_workers(order, gap_s=5.0, state="FAIL")], detail=OTHER))


@fault(
    "failures-by-number-at-once",
    edges={
        "max_p_pct": Edge({"n": 7}, {"n": 8}),
        "max_aligned_pct": Edge({"n": 20, "until": 76}, {"n": 20, "until": 79}),
    },
    bigger=({"n": 20}, {"n": 40}),
)
def by_number(*, n: int = 16, until: int = 80) -> Run:
    """Four workers run 80 trials, of which ``n`` fail; then two run 80 more, of which none does."""
    rows = in_workers([100.0] * 80, 4)
    end = max(row[2] for row in rows)
    rows += [(state, start + end + 1.0, stop + end + 1.0) for state, start, stop in in_workers([100.0] * 80, 2)]
    # those that fail are among the first until
    failed = np.unique(np.linspace(0, until - 5, n).astype(int))
    return run(trials=trials([("FAIL", *row[1:]) if i in failed else row for i, row in enumerate(rows)]))


@fault(
    "failures-share-parameter",
    edges={"max_p_pct": Edge({"n": 10}, {"n": 11})},
    bigger=({"n": 12}, {"n": 20}),
)
def share_parameter(*, n: int = 16) -> Run:
    """Of 80 trials 20 run out of memory, ``n`` of them with a model that a sixth of the others have."""
    rows = in_workers([100.0] * 80)
    states = [("FAIL", *row[1:]) if i % 4 == 0 else row for i, row in enumerate(rows)]
    large = [i // 4 < n if i % 4 == 0 else i % 4 == 1 and i % 8 < 4 for i in range(80)]
    texts = [TEXTS["failures-out-of-memory"] if i % 4 == 0 else None for i in range(80)]
    models = ["large" if yes else "base" for yes in large]
    return run(trials=trials(states, detail=texts, **{"params.model": models}), studies=study())
