"""Planted faults of the search: workers, gaps, abandoned, start-up, repeats, drift, the tail, counts that differ."""

from __future__ import annotations

import numpy as np

from gpudiag.manifest import Settings
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run, RunInfo
from planted.base import Edge, fault, in_workers, log, run, study, ticks, trials


@fault(
    "parallelism-below-configured",
    edges={"min_share_pct": Edge({"alone_s": 500.0}, {"alone_s": 510.0})},
    bigger=({"alone_s": 700.0}, {"alone_s": 1000.0}),
)
def below(*, alone_s: float = 600.0) -> Run:
    """Two workers are configured for 1,000 s, and one is missing for the first ``alone_s``."""
    rows = [("COMPLETE", 100.0 * i, 100.0 * (i + 1)) for i in range(10)]
    rows += [("COMPLETE", alone_s + i, 1000.0) for i in range(1 if alone_s < 1000 else 0)]
    return run(trials=trials(rows), settings={"parallel": 2})


@fault(
    "parallelism-above-configured",
    edges={"max_above_s": Edge({"above_s": 5.0}, {"above_s": 5.1})},
    bigger=({"above_s": 60.0}, {"above_s": 500.0}),
)
def above(*, above_s: float = 20.0) -> Run:
    """Two workers are configured, and a third trial runs beside theirs for ``above_s``."""
    rows = [*in_workers([100.0] * 20, 2), ("COMPLETE", 500.0, 500.0 + above_s)]
    quiet = [row for row in rows if not 490.0 < row[1] < 510.0][:-1]
    return run(trials=trials([*quiet, ("COMPLETE", 510.0, 560.0), ("COMPLETE", 510.0, 560.0),
                              ("COMPLETE", 520.0, 520.0 + above_s)] if above_s <= 40 else rows),
               settings={"parallel": 2})  # fmt: skip


@fault(
    "trial-gaps",
    edges={
        "max_gap_s": Edge({"gap_s": 5.0, "trial_s": 90.0}, {"gap_s": 5.1, "trial_s": 90.0}),
        "max_handover_pct": Edge({"at_once": 10}, {"at_once": 9}),
        "min_share_pct": Edge({"trial_s": 365.0}, {"trial_s": 360.0}),
    },
    bigger=({"gap_s": 60.0}, {"gap_s": 600.0}),
)
def gaps(*, gap_s: float = 20.0, at_once: int = 0, trial_s: float = 100.0) -> Run:
    """The trials of one worker follow each other after ``gap_s``; 20 gaps beside 21 trials."""
    rows, free = [], 0.0
    for i in range(21):
        rows.append(("COMPLETE", free, free + trial_s))
        free += trial_s + (1.0 if i < at_once else gap_s)
    return run(trials=trials(rows), settings={"parallel": 1})


@fault(
    "trials-serialised",
    edges={"max_effective": Edge({"both_s": 210.0}, {"both_s": 200.0})},
    bigger=({"both_s": 100.0}, {"both_s": 0.0}),
)
def serial(*, both_s: float = 100.0) -> Run:
    """The second of two workers runs for ``both_s`` of 1,000 s."""
    rows = [("COMPLETE", 100.0 * i, 100.0 * (i + 1)) for i in range(10)] + [("COMPLETE", 300.0, 300.0 + both_s)]
    return run(trials=trials(rows), settings={"parallel": 2})


@fault(
    "trials-abandoned",
    edges={"max_abandoned": Edge({"n": 0}, {"n": 1})},
    bigger=({"n": 3}, {"n": 10}),
)
def abandoned(*, n: int = 1) -> Run:
    """Beside 30 trials that ended the study lists ``n`` as RUNNING, which began long before their end."""
    rows = in_workers([100.0] * 30)
    dead = [("RUNNING", 205.0, np.nan)] * n
    workers = ["w0"] * len(rows) + [None] * n
    return run(trials=trials([*rows, *dead], worker=workers))


@fault(
    "startup-dominated",
    edges={
        "max_worker_share_pct": Edge(
            {"startup_s": 56.0, "waits": False}, {"startup_s": 64.0, "waits": False}, Status.OK, Severity.NOTE
        ),
        "max_gpu_share_pct": Edge({"startup_s": 10.0}, {"startup_s": 15.0}, Status.OK, Severity.WARNING),
    },
    bigger=({"startup_s": 40.0}, {"startup_s": 70.0}),
)
def startup(*, startup_s: float = 30.0, waits: bool = True) -> Run:
    """Trials of 100 s run one by one and begin to compute after ``startup_s``."""
    # without waits beside one that uses half of the GPU
    n = 12 if waits else 40
    seconds = 140.0 * n
    at = ticks(seconds, 1.0)
    phase = at % 140.0
    working = (phase >= 20.0 + startup_s) & (phase < 120.0)
    alive = (phase >= 20.0) & (phase < 120.0)
    used = 350.0 + np.where(alive & (phase >= 20.0 + 0.5 * startup_s), 400.0, 0.0) + np.where(working, 3000.0, 0.0)
    rows = [("COMPLETE", 140.0 * i + 20.0, 140.0 * i + 120.0) for i in range(n)]
    if waits:
        return run(log(at, util_pct=np.where(working, 95.0, 0.0), mem_used_mib=used), trials=trials(rows, gpu="0"))
    return run(
        log(at, util_pct=np.where(working, 95.0, 50.0), mem_used_mib=used + 4000.0),
        trials=trials([("COMPLETE", 0.0, seconds), *rows], gpu="0"),
    )


@fault(
    "duplicate-trials",
    edges={
        "max_share_pct": Edge({"n": 2}, {"n": 3}, Status.OK, Severity.NOTE),
        "severe_cost_pct": Edge({"n": 3, "each_s": 110.0}, {"n": 3, "each_s": 160.0}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"n": 10}, {"n": 39}),
)
def duplicates(*, n: int = 6, each_s: float = 100.0) -> Run:
    """Of 40 trials the last ``n`` have the parameters of the first."""
    rates = [0.1 * (i + 1) if i < 40 - n else 0.1 for i in range(40)]
    rows = in_workers([100.0] * (40 - n) + [each_s] * n)
    return run(trials=trials(rows, **{"params.lr": rates}), studies=study())


@fault(
    "worst-value-shared",
    edges={
        "max_share_pct": Edge({"n": 4, "others": 76}, {"n": 4, "others": 75}, Status.OK, Severity.NOTE),
        "min_worst_trials": Edge({"n": 2}, {"n": 3}, Status.OK, Severity.NOTE),
        "min_values_pct": Edge({"others": 36, "alike": 4}, {"others": 36, "alike": 3}, Status.NOT_ASSESSED),
    },
    bigger=({"n": 10}, {"n": 200}),
)
def worst(*, n: int = 5, others: int = 34, alike: int = 0) -> Run:
    """An objective whose errors are caught returns 1,000,000 for ``n`` trials; ``others`` have values about 1, of which
    ``alike`` and one more are the same.
    """
    found = np.round(np.random.default_rng(4).normal(1.0, 0.1, others), 9)
    found[: alike + 1] = found[0]
    values = [*found, *[1e6] * n]
    rows = in_workers([100.0] * others + [50.0] * n)
    rates = [0.001 * (i + 1) for i in range(others + n)]
    return run(trials=trials(rows, **{"value": values, "params.lr": rates}), studies=study())


@fault(
    "trial-duration-outliers",
    edges={
        "": Edge({"longest_s": 290.0}, {"longest_s": 310.0}, Status.OK, Severity.NOTE),
        "severe_cost_pct": Edge({"longest_s": 1000.0}, {"longest_s": 1100.0}, Severity.NOTE, Severity.WARNING),
        "min_cost_s": Edge(
            {"usual_s": 8.0, "longest_s": 59.0}, {"usual_s": 8.0, "longest_s": 61.0}, Status.OK, Severity.NOTE
        ),
    },
    bigger=({"longest_s": 900.0}, {"longest_s": 9000.0}),
)
def outlier(*, longest_s: float = 600.0, usual_s: float = 98.0) -> Run:
    """Of 32 trials 31 take ``usual_s`` or at most 4 s more, and one takes ``longest_s``."""
    return run(trials=trials(in_workers([usual_s + i % 5 for i in range(31)] + [longest_s])))


@fault(
    "trial-duration-drift",
    edges={
        "max_p_pct": Edge({"n": 20, "noise_s": 30.0}, {"n": 20, "noise_s": 25.0}),
        "min_rho_ratio": Edge({"n": 400, "noise_s": 82.0, "rise_s": 80.0}, {"n": 400, "noise_s": 75.0, "rise_s": 80.0}),
        "min_change_ratio": Edge({"rise_s": 25.0, "noise_s": 0.1}, {"rise_s": 40.0, "noise_s": 0.1}),
    },
    bigger=({"rise_s": 100.0}, {"rise_s": 1000.0}),
)
def drift(*, rise_s: float = 60.0, n: int = 60, noise_s: float = 5.0) -> Run:
    """Trials take about 100 s at first, and ``rise_s`` more at the end of the search."""
    noise = np.random.default_rng(12).standard_normal(n)
    return run(
        trials=trials(in_workers(np.clip(100.0 + rise_s * np.linspace(0, 1, n) + noise_s * noise, 5, None).tolist()))
    )


@fault(
    "trial-gap-growth",
    edges={
        "max_p_pct": Edge({"n": 25, "spread": 2.5}, {"n": 25, "spread": 2.0}),
        "min_rho_ratio": Edge({"n": 400, "spread": 2.6}, {"n": 400, "spread": 2.4}),
        "min_gap_s": Edge({"last_s": 5.0}, {"last_s": 7.0}),
    },
    bigger=({"last_s": 60.0}, {"last_s": 600.0}),
)
def growth(*, last_s: float = 30.0, n: int = 60, spread: float = 0.01) -> Run:
    """Gaps between trials grow to about ``last_s`` over the search."""
    times = np.exp(spread * np.random.default_rng(3).standard_normal(n))
    rows, free = [], 0.0
    for i in range(n):
        rows.append(("COMPLETE", free, free + 100.0))
        # below an hour: then nothing would run, and no worker wait
        free += 100.0 + min(times[i] * (0.5 + last_s * i / n), 3500.0)
    return run(trials=trials(rows))


@fault(
    "study-tail",
    edges={
        "max_tail_pct": Edge({"before": 60, "alone_s": 660.0}, {"before": 60, "alone_s": 680.0}),
        "min_tail_s": Edge({"before": 10, "alone_s": 300.0}, {"before": 10, "alone_s": 302.0}),
    },
    bigger=({"alone_s": 3000.0}, {"alone_s": 30000.0}),
)
def tail(*, alone_s: float = 600.0, before: int = 20) -> Run:
    """Two workers run trials of 100 s, then the last trial runs alone for ``alone_s``."""
    rows = [("COMPLETE", 100.0 * i, 100.0 * (i + 1)) for i in range(before)]
    rows += [("COMPLETE", 100.0 * i, 100.0 * (i + 1)) for i in range(before - 1)]
    rows.append(("COMPLETE", 100.0 * (before - 1), 100.0 * before + alone_s))
    return run(trials=trials(rows))


@fault(
    "stated-counts-differ",
    edges={"max_difference_trials": Edge({"stated": 10}, {"stated": 11})},
    bigger=({"stated": 20}, {"stated": 200}),
)
def stated(*, stated: int = 12) -> Run:
    """Ten trials are COMPLETE, and run.toml says ``stated``."""
    info = RunInfo(settings=Settings(), stated={"COMPLETE": float(stated)})
    return run(trials=trials(in_workers([100.0] * 10)), info=info)


@fault(
    "search-paused",
    edges={
        "max_longest_s": Edge({"pause_s": 86_300.0, "n": 4000}, {"pause_s": 86_500.0, "n": 4000}),
        "max_share_pct": Edge({"pause_s": 3700.0, "n": 150}, {"pause_s": 3700.0, "n": 140}),
    },
    bigger=({"pause_s": 90_000.0}, {"pause_s": 400_000.0}),
)
def paused(*, pause_s: float = 20_000.0, n: int = 100) -> Run:
    """The trials of one worker, of 99 s each, stop once in the middle, for ``pause_s`` behind one that failed."""
    rows = in_workers([99.0] * n)
    half = n // 2
    end = rows[half - 1][2]
    later = [(state, end + pause_s + start, end + pause_s + stop) for state, start, stop in rows[: n - half]]
    return run(trials=trials([*rows[: half - 1], ("FAIL", *rows[half - 1][1:]), *later]))
