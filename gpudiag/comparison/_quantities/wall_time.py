"""Wall time of two runs: in all, and for each item, with how many run at once."""

from __future__ import annotations

from functools import partial

from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import SPEED, TIME, TOTAL, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.comparison.throughput import throughput, throughput_ratio


def wall_time(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    if not (baseline.wall_s > 0 and experiment.wall_s > 0):
        return []
    return [
        make("wall_time", "First start to last end", "s", TOTAL, (baseline.wall_s, experiment.wall_s), tested=False)
    ]


def wall_time_per_item(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Wall time per item that did not fail, and per COMPLETE item: what failed adds time and no result."""
    a, b = throughput(baseline), throughput(experiment)
    results = [len(side.results) for side in (baseline, experiment)]
    out = []
    if a.mean > 0 and b.mean > 0:
        counted = partial(make, n_baseline=float(results[0]), n_experiment=float(results[1]))
        one, many = one_and_many(baseline, experiment)
        ratio = throughput_ratio((a, b), f"wall time over {many}, error from cycles", paired=matched.same_set)
        out = [
            counted("time_per_item", f"Wall time per {one}", "s", TIME, (a.mean, b.mean), ratio),
            counted(
                "throughput",
                f"{many[0].upper()}{many[1:]} per hour",
                "1/h",
                SPEED,
                (3600 / a.mean, 3600 / b.mean),
                ratio.inverse,
                tested=False,
                follows="time_per_item",
            ),
        ]
    a, b = throughput(baseline, "COMPLETE"), throughput(experiment, "COMPLETE")
    if a.mean > 0 and b.mean > 0:
        n = [int((side.finished["state"] == "COMPLETE").sum()) for side in (baseline, experiment)]
        same = bool(out) and n == results
        ratio = throughput_ratio((a, b), "wall time over COMPLETE items, error from cycles", paired=matched.same_set)
        out.append(
            make(
                "time_per_complete",
                "Wall time per COMPLETE item",
                "s",
                TIME,
                (a.mean, b.mean),
                ratio,
                n_baseline=float(n[0]),
                n_experiment=float(n[1]),
                tested=not same,
                follows="time_per_item" if same else "",
            )
        )
    return out


def one_and_many(*sides: Side) -> tuple[str, str]:
    """What counts as an item, in words, one and many: where none failed, every finished one."""
    if any(len(side.results) < len(side.finished) for side in sides):
        return "item that did not fail", "items that did not fail"
    return "finished item", "finished items"


def parallelism(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    a, b = (side.get("parallelism") for side in (baseline, experiment))
    if a is None or b is None:
        return []
    return [
        make(
            "parallelism",
            "Items running at once, mean while any ran",
            "1",
            TOTAL,
            (float(a.effective), float(b.effective)),
            tested=False,
        )
    ]
