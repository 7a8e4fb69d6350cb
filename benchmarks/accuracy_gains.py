"""Whether the gain of one more trial at once comes true, in a world that gpudiag did not make.

    python benchmarks/accuracy_gains.py --runs 120        about 8 minutes of CPU

A run is forecast with one and two more trials at once; then the world is run again with so many: once over the same
trials, and once over 500 others, with both numbers. The table is printed and written into benchmarks/accuracy.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd
from accuracy_ledger import gather, seeds, write_section
from other_world import WORLD, gain_run, rerun_rate

import gpudiag as gd

TITLE = "Gain of more trials at once"
OTHERS = 500


def gains(seed: int) -> dict[str, Any]:
    """What was forecast for one and two more at once, and what they brought."""
    made = gain_run(seed)
    assert made is not None
    run, config = made
    k = config["k"]
    forecast = gd.what_if(run, [k, k + 1, k + 2])
    row: dict[str, Any] = {"loss": config["interf"], "now": forecast.now == k}
    fresh = {"n_trials": OTHERS, "seed": config["seed"] + 1_000_000}
    for more in (1, 2):
        gain = forecast.at(k + more).gain
        same = rerun_rate(config, k=k + more) / rerun_rate(config)
        other = rerun_rate(config, k=k + more, **fresh) / rerun_rate(config, **fresh)
        row |= {
            f"same {more}": gain.low <= same <= gain.high,
            f"others {more}": gain.low <= other <= gain.high,
            f"above {more}": other > gain.high,
            f"below {more}": other < gain.low,
            f"error {more}": 100 * (gain.value / other - 1),
            f"width {more}": gain.high / gain.low,
            f"known {more}": gain.known,
        }
    return row


def section(rows: pd.DataFrame) -> str:
    """A row a number of further trials and loss per process."""
    lines = [
        "Runs of world_b: 1 to 3 trials at once on one GPU, each using 20 to 95 % of it alone, under two laws of "
        "sharing, with none, 3 or 8 % lost per further process; 30 to 110 trials, sampled every 1 to 5 s. The interval "
        "is nominally one of 90 %. The truth is the world run again with the other number, over the same trials and "
        "over 500 others.",
        "",
        "| more at once | lost per process | runs | interval holds it: same trials | 500 others | truth above | below "
        "| error of the value, median | high/low, median |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for more in (1, 2):
        for loss, part in [*rows.groupby("loss"), ("all", rows)]:
            shown = loss if isinstance(loss, str) else f"{100 * float(str(loss)):.0f} %"
            value = part.loc[part[f"known {more}"].astype(bool), f"error {more}"].median()
            lines.append(
                f"| {more} | {shown} | {len(part)} | {100 * part[f'same {more}'].mean():.0f} % "
                f"| {100 * part[f'others {more}'].mean():.0f} % | {int(part[f'above {more}'].sum())} "
                f"| {int(part[f'below {more}'].sum())} | {value:+.1f} % | {part[f'width {more}'].median():.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    if not WORLD.is_file():
        return
    gains(0)  # what the world prepares once, before several processes ask for it
    rows = gather(gains, range(options.first, options.first + options.runs))
    body = section(rows) + seeds(options.first, options.runs)
    print(f"## {TITLE}\n\n{body}\n")
    write_section(TITLE, body)


if __name__ == "__main__":
    main()
