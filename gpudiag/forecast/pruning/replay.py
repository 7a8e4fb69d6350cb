"""``replay_pruner``: what another pruner would have done with the curves that a study recorded (METHODS 5)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpudiag.forecast.progress import ReplayProgress
from gpudiag.forecast.pruning.cost_bounds import Plays, fates_of
from gpudiag.forecast.pruning.judge import SMALL, has_rule, judge_for
from gpudiag.forecast.pruning.play import (
    Judge,
    ReplayBacktest,
    Retimed,
    as_recorded,
    backtest,
    carried_on,
    jittered,
    logged_order,
    not_asked,
    play,
)
from gpudiag.forecast.pruning.pruner import in_words, quiet, resolve_pruner
from gpudiag.forecast.pruning.recorded import Recorded, recorded_studies
from gpudiag.forecast.pruning.result import PrunerReplay
from gpudiag.forecast.pruning.saved_time import gpu_shares
from gpudiag.forecast.pruning.summary import compares_trials, summarize
from gpudiag.load import RunLike, as_run
from gpudiag.measures._trials.pruner_spec import PrunerSpec, stated_pruner
from gpudiag.measures.base import need_all
from gpudiag.memo import MemoRun, once
from gpudiag.run import Run

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

JITTERED = 4
LARGE = 300_000
"""Events from which on a study is replayed in fewer orders: its totals hardly depend on them."""


def replay_pruner(
    run: RunLike,
    pruner: BasePruner | PrunerSpec | str,
    *,
    study: str | None = None,
    direction: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PrunerReplay:
    """Feed the recorded learning curves to another pruner and see which trials it would have cut, and where.

    The real Optuna pruner is asked, report by report, in a study of the same name with the same trial numbers (both
    decide on a trial's bracket in Hyperband); the same rules of our own judge studies of more than 400 trials, and
    what else might have happened where they agree with Optuna on what was recorded. Where a curve ends because the
    logging pruner cut it, only bounds are known. The sampler would have proposed other points too: that is outside the
    replay.

    >>> replay = gd.replay_pruner("data/samples/hpo-aggressive-pruning", "median(n_startup_trials=5)")
    >>> replay.n_trials, replay.level
    (181, 'bounds')

    Args:
        run: a run, or what :func:`gpudiag.load_run` reads, with trials and intermediate values.
        pruner: an Optuna pruner, or text such as ``"patient(hyperband(min_resource=3), patience=4)"``.
        study: the study to replay; by default every one that has reports and one objective.
        direction: 'minimize' or 'maximize', for a record that does not say.
        progress: called with (events done, events in all) now and then; what it raises ends the replay.

    Raises:
        ConfigError: the text names no pruner, Optuna refuses its parameters, or there is no such study.
        NotMeasurable: there are no intermediate values, several objectives, or trials were selected away.
    """
    held = MemoRun.of(as_run(run))
    need_all(held, "study")
    with quiet():
        template, spec = resolve_pruner(pruner)
        records = recorded_studies(held, study=study, direction=direction)
        tests = once(held, ("tests", study, direction), lambda: _tests(held, records, progress))
        shares = gpu_shares(held)
        plays = [_play_study(*each, template, spec, progress) for each in zip(records, tests, strict=True)]
        words = in_words(spec) if spec else type(template).__name__
        return summarize(words, spec, plays, shares)


def _tests(run: Run, records: Sequence[Recorded], progress: ReplayProgress | None) -> list[ReplayBacktest | None]:
    """The stated pruner asked again over each study; None where none is stated."""
    stated = stated_pruner(run)
    if stated is None:
        return [None] * len(records)
    template, spec = resolve_pruner(stated)
    words = in_words(spec) if spec else ""
    judges = (judge_for(copy.deepcopy(template), spec, record) for record in records)
    return [backtest(as_recorded(r), judge, words, progress) for r, judge in zip(records, judges, strict=True)]


def _play_study(
    record: Recorded,
    tested: ReplayBacktest | None,
    template: BasePruner,
    spec: PrunerSpec | None,
    progress: ReplayProgress | None,
) -> Plays:
    def fresh(*, quick: bool = False) -> Judge:
        return judge_for(copy.deepcopy(template), spec, record, quick=quick)

    plain = as_recorded(record)
    large = plain.events > LARGE
    cuts = [play(plain, fresh(), logged_order(plain), progress)]
    # What might have been is judged by our own rules, if they cut what was recorded exactly where Optuna does.
    quick = spec is not None and has_rule(spec) and len(record) <= SMALL
    quick = quick and np.array_equal(play(plain, fresh(quick=True), logged_order(plain), progress), cuts[0])
    held = carried_on(record, cuts[0])
    if held.events > plain.events:
        cuts.append(play(held, fresh(quick=quick), logged_order(held), progress))
    point = len(cuts) - 1
    died = not_asked(held)
    if died.events < held.events:
        cuts.append(play(died, fresh(quick=quick), logged_order(died), progress))
    if record.workers > 1 and compares_trials(spec):
        point = len(cuts)
        rng = np.random.default_rng(0)
        ends = [held] if large else [held, plain] if held.events > plain.events else [plain]
        scripts = [*ends, *(jittered(ends[k % len(ends)], rng) for k in range(0 if large else JITTERED))]
        cuts += [play(s, fresh(quick=quick), Retimed(s), progress) for s in scripts]
    return Plays(record, cuts, [fates_of(record, cut) for cut in cuts], point, tested)
