"""A replay in words, tables and blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.pruning.rank import FEWEST
from gpudiag.forecast.pruning.result import PrunerReplay
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock, TableCell, Tiles
from gpudiag.report._render.shown import sentences_of, shown_as
from gpudiag.report.format import UNKNOWN, estimated, interval, number, plural, quantity, ratio, share

CONTROL = (
    "What pruning kills can be learned from trials that are not pruned: run 15 trials or more of the next study to "
    "the end, one in ten of 150: `if trial.number % 10 and trial.should_prune(): raise optuna.TrialPruned`."
)
OUTSIDE = (
    "Under another pruner the sampler would also propose other points, and freed time would go to further trials: "
    "both are outside the replay."
)
LEVELS = {
    "exact": "Every curve reaches far enough: steps are exact for these trials, and hours have an interval.",
    "value": "Nearly every curve reaches far enough: values with bounds.",
    "bounds": "Bounds only.",
}


@sentences_of.register
def notes(replay: PrunerReplay) -> tuple[str, ...]:
    """The sentences that belong to a replay, most important first."""
    said = [replay.reason or LEVELS[replay.level], _tested(replay), _best(replay), _rank(replay), _length(replay)]
    if not replay.ordered and replay.n_replays > 1:
        said.append(
            f"Optuna keeps no time of reports, and up to {plural(replay.workers, 'trial')} ran at once: the interval "
            f"holds {replay.n_replays} replays in different orders."
        )
    if replay.level != "exact":
        said.append(CONTROL)
    return (*filter(None, said), OUTSIDE)


@shown_as.register
def blocks(replay: PrunerReplay) -> Sequence[Block]:
    """Title, what would change, how early values rank, and the notes."""
    known = f"{share(replay.identified_pct)} of {plural(replay.n_trials, 'trial')}"
    rows = tuple(
        (NAMES.get(name, name), _logged(name, logged, e), _value(e), _span(e))
        for name, logged, e in replay.quantities()
    )
    rank: tuple[tuple[TableCell, ...], ...] = tuple(
        (
            Number(number(row["step"])),
            Number(str(row["n"])),
            Number(ratio(row["spearman"], row["spearman_low"], row["spearman_high"])),
            Number(str(row["n_pairs"])),
            Number(ratio(row["concordance"], row["concordance_low"], row["concordance_high"])),
            str(row["reading"]),
        )
        for row in replay.rank.to_dict("records")
        if max(row["n"], row["n_pairs"]) >= FEWEST
    )
    return [
        Heading(f"Replay of {replay.pruner}"),
        Tiles((("outcome known", known), ("replays", f"{replay.n_replays}, {plural(replay.workers, 'worker')}"))),
        TableBlock(("", "as logged", "replayed", "bounds"), rows),
        TableBlock(("step", "n", "rank at end", "n of pairs", "concordance", "reading"), rank, RANK_CAPTION),
        *(Note(text) for text in notes(replay)),
    ]


NAMES = {
    "pruned, of decided": "pruned, of those finished",
    "regret": "loss of best value",
}
RANK_CAPTION = (
    "How a value at that step ranks trials: Spearman with the final value of COMPLETE trials, and Kendall concordance "
    f"of all pairs at the deepest step both reached; 95 %, from {FEWEST} trials on."
)


def _logged(name: str, logged: float, e: Estimate) -> Number:
    saved = name.endswith("saved") or name == "regret"
    return Number("" if saved else _with_unit(logged, e.unit))


def _value(e: Estimate) -> Number:
    if e.unit == "%" and e.known:
        return Number(estimated(e.value, e.low, e.high, "%"))
    return Number(_with_unit(e.value, e.unit) if e.known else UNKNOWN)


def _span(e: Estimate) -> Number:
    if math.isnan(e.low) and math.isnan(e.high):
        return Number(UNKNOWN)
    if e.low == e.high:
        return Number(_with_unit(e.low, e.unit))
    if e.unit in ("", "steps"):
        return Number(f"{quantity(e.low)} to {quantity(e.high)}" + (f" {e.unit}" if e.unit else ""))
    if e.unit == "%":
        return Number(interval(e.low, e.high, "%"))
    return Number(f"{quantity(e.low, e.unit)} to {quantity(e.high, e.unit)}")


def _with_unit(value: float, unit: str) -> str:
    return (
        quantity(round(value), "1") + " steps"
        if unit == "steps" and math.isfinite(value)
        else quantity(value, unit or "1")
    )


def _tested(replay: PrunerReplay) -> str:
    """What the back-test says."""
    if not replay.backtests:
        return (
            "Which pruner ran is not stated, so the replay can't be tested on its own log: set `pruner` under "
            "`[settings]` in run.toml."
        )
    test = replay.backtests[0]
    repeated, prunes, others, reports = (
        sum(getattr(t, name) for t in replay.backtests) for name in ("repeated", "prunes", "others", "reports")
    )
    head = f"Back-test: `{test.pruner}`, as stated, repeats {repeated} of {plural(prunes, 'prune')}"
    tail = f" and would prune at {others} of {reports} other reports." if others else " and prunes nowhere else."
    if prunes and repeated < prunes / 2:
        tail += " It is not the pruner that ran."
    elif repeated < prunes or others:
        tail += " The rest is the unknown order of reports." if not replay.ordered else ""
    return head + tail


def _best(replay: PrunerReplay) -> str:
    if replay.best_trial is None:
        return "No trial completed, so what the pruner kills is not known."
    fate = {
        True: f"would be pruned at step {replay.best_cut_step}",
        False: "would be kept",
        None: "would be pruned or kept, depending on the order of reports",
    }[replay.best_killed]
    text = f"The best trial of the log, {replay.best_trial}, {fate}."
    if replay.logged_pruned_pct > 0:
        text += " It survived the logging pruner, so this says little about better ones that did not."
    return text


def _length(replay: PrunerReplay) -> str:
    """A stated length that no COMPLETE trial reached makes the upper bound doubtful."""
    if not 0 < replay.longest_complete < replay.max_steps:
        return ""
    return (
        f"The upper bound has cut-off trials run to {replay.max_steps} steps, yet no COMPLETE trial went beyond "
        f"{replay.longest_complete}."
    )


def _rank(replay: PrunerReplay) -> str:
    if replay.rank.empty or (replay.rank["n"] < FEWEST).all():
        most = 0 if replay.rank.empty else int(replay.rank["n"].max())
        return (
            f"Whether early values rank trials as final ones do is not known: {plural(most, 'trial')} completed with "
            f"reports, {FEWEST} are needed."
        )
    return ""
