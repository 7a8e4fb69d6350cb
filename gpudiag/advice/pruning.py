"""Remedies for a search that prunes."""

from __future__ import annotations

import math
from dataclasses import replace

from gpudiag.advice._engine.gains import NOTHING
from gpudiag.advice._engine.proposal import Change, Gain, Prediction, Proposal, SuccessCheck, Value
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures._trials.pruner_spec import PrunerSpec, parse_pruner
from gpudiag.measures.agreement import MIN_N, AgreementProfile
from gpudiag.measures.pruning import PruningProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.report.format import duration, hours, plural, share

EARLY = ("pruning-rate-high", "pruned-too-early")
WIDEST_PCT = 50.0
"""Bounds of a replay that lie further apart than half of all trials predict nothing worth checking."""
CLASSES = {
    "median": "MedianPruner", "percentile": "PercentilePruner", "sha": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner", "patient": "PatientPruner", "threshold": "ThresholdPruner",
    "wilcoxon": "WilcoxonPruner", "nop": "NopPruner",
}  # fmt: skip
LAXER = "Trials run longer and fewer end per hour. Whether better ones are found is unknown."
CENSORED = "Curves end where they were pruned: how far these trials would have gone is unknown."
COMPARE = "Read the control trials: if their value at the first cut ranks them as their final value does, cut early."
RESTORE = "Start the next study with the present pruner; the two are not comparable."
NOT_THE_PRUNER = "The stated pruner is not the one that ran: find that one first."


@remedy(
    title="Prune later: raise patience",
    answers=EARLY,
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("slow starters survive",),
    cons=(
        "more GPU time for the same trials, fewer trials per hour",
        "around Hyperband, trials that always improve never compete",
    ),
    refute=COMPARE,
    rollback=RESTORE,
)
def pruner_patience(now: Situation) -> Proposal | None:
    """PatientPruner with patience p asks its pruner from report p + 2 on; a larger p moves the first cut back."""
    spec = _spec(now)
    if spec is None or spec.name != "patient" or not isinstance(spec.params["patience"], int):
        return None
    present = spec.params["patience"]
    return _laxer(now, spec, "patience", present, 2 * present + 1)


@remedy(
    title="Prune later: raise min_resource",
    answers=EARLY,
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("the first comparison is made where values say more",),
    cons=("more GPU time for the same trials, fewer trials an hour", "one bracket of Hyperband less"),
    refute=COMPARE,
    rollback=RESTORE,
)
def pruner_min_resource(now: Situation) -> Proposal | None:
    """Hyperband and successive halving compare first at min_resource; the next rung is reduction_factor times it."""
    spec = _spec(now)
    inner = spec.params.get("wrapped_pruner") if spec and spec.name == "patient" else spec
    if spec is None or not isinstance(inner, PrunerSpec) or inner.name not in ("hyperband", "sha"):
        return None
    present, factor = inner.params["min_resource"], inner.params["reduction_factor"]
    if not isinstance(present, int):
        return None
    return _laxer(now, spec, "min_resource", present, present * factor)


@remedy(
    title="Prune later: raise n_warmup_steps",
    answers=EARLY,
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("the first comparison is made where values say more",),
    cons=("more GPU time for the same trials, fewer trials an hour",),
    refute=COMPARE,
    rollback=RESTORE,
)
def pruner_warmup(now: Situation) -> Proposal | None:
    """Median and percentile pruning compare from step n_warmup_steps on: the first whose values tell the final ones,
    where early ones are known not to; else the first after the median step of the cuts, so that half of them move.
    """
    spec = _spec(now)
    median, tells = now.fact(PruningProfile.median_step), now.fact(AgreementProfile.safe_step)
    if spec is None or "n_warmup_steps" not in spec.params or math.isnan(median):
        return None
    early = now.has("pruned-too-early") and not math.isnan(tells)
    present, proposed = spec.params["n_warmup_steps"], int(tells) if early else math.floor(median) + 1
    return _laxer(now, spec, "n_warmup_steps", present, proposed) if proposed > present else None


@remedy(
    title="Let 15 trials run without pruning",
    answers=EARLY,
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("the only way to see what pruning kills", "decides every other question on the pruner"),
    cons=("the controls cost their full length",),
    refute="Fifteen controls that rank at the first cut as they rank at their end: the pruner kills no good trials.",
    rollback="Take the first condition out again; the controls stay valid trials.",
)
def pruning_control(now: Situation) -> Proposal | None:
    """Only trials that were never up for pruning can show whether pruning kills good ones (METHODS 5).

    One in so many that of a study as long as this one fifteen end without failure, which check pruned-too-early needs;
    not proposed where these were more than half of it.
    """
    n, failed = now.fact(TrialsProfile.n), now.fact(TrialsProfile.fail_pct)
    ended = n * (1 - failed / 100) if failed >= 0 else n
    if not now.optuna or not ended >= 2 * MIN_N:
        return None
    every = int(ended // MIN_N)
    controls = math.ceil(n / every)
    full, cut = now.fact(TrialState.median_s.at("COMPLETE")), now.fact(TrialState.mean_s.at("PRUNED"))
    cost_h = controls * max(full - cut, 0.0) / 3600 / now.bounds.parallel
    known = not math.isnan(cost_h)
    return Proposal(
        (
            Change(
                f"pruning of one trial in {every}", True, False,
                f"if trial.number % {every} and trial.should_prune():  # was: if trial.should_prune():\n"
                "    raise optuna.TrialPruned",
            ),
        ),
        Gain(-cost_h, 0.0, "GPU-h", "control") if known else None,
        f"They show whether the pruner kills good trials: {plural(controls, 'trial')} of full length."
        if known
        else _without_gpu_time(controls, full - cut),
        _less_pruned(now, every),
    )  # fmt: skip


def _less_pruned(now: Situation, every: int) -> tuple[SuccessCheck, ...]:
    """Half of what the controls take from the pruning rate, as rates differ from run to run; of runs of any length."""
    rate = now.fact(PruningProfile.of_decided_pct)
    return (SuccessCheck.of(PruningProfile.of_decided_pct, "<=", round(rate * (1 - 0.5 / every), 1)),)


def _without_gpu_time(n: float, longer_s: float) -> str:
    """What the control costs where nothing tells its GPU time."""
    if math.isnan(longer_s):
        return "The cost of an unpruned trial is unknown: none completed."
    return f"{plural(n, 'trial')} of full length; each takes {duration(max(longer_s, 0.0))} more of its worker."


@remedy(
    title="Record the pruner that really runs",
    answers=("pruned-before-possible",),
    tier=0,
    effort="minutes",
    pros=("ends the contradiction between configuration and data",),
    cons=(),
    refute="The printed pruner is the stated one: then look for code that raises TrialPruned by itself.",
    rollback="Remove the two lines.",
)
def log_pruner(now: Situation) -> Proposal | None:
    """Optuna does not store the pruner; what a note or run.toml says about it can be wrong."""
    if not now.optuna:
        return None
    code = 'study.set_user_attr("pruner", repr(vars(study.pruner)))\nprint(study.pruner, vars(study.pruner))'
    return Proposal(
        (Change("pruner in the record", "as stated" if now.settings.pruner else None, "as it runs", code),),
        NOTHING,
        "It shows the cause and speeds nothing up.",
        (SuccessCheck.of(PruningProfile.before_possible, "<=", 0.0),),
    )


def optuna_code(spec: PrunerSpec) -> str:
    """The call that makes this pruner."""
    parts = [
        optuna_code(value) if isinstance(value, PrunerSpec) else f"{key}={value!r}"
        for key, value in spec.params.items()
        if value is not None
    ]
    return f"optuna.pruners.{CLASSES[spec.name]}({', '.join(parts)})"


def _spec(now: Situation) -> PrunerSpec | None:
    """The stated pruner of Optuna; None where none is stated, or the trials are not Optuna's."""
    return parse_pruner(now.settings.pruner) if now.settings.pruner and now.optuna else None


def _changed(spec: PrunerSpec, key: str, value: Value) -> PrunerSpec:
    """The specification with that parameter changed, in a wrapped pruner if it is there."""
    params = {
        name: _changed(part, key, value) if isinstance(part, PrunerSpec) else part for name, part in spec.params.items()
    }
    return replace(spec, params={**params, **({key: value} if key in params else {})})


def _laxer(now: Situation, spec: PrunerSpec, key: str, present: Value, proposed: Value) -> Proposal:
    usual = TrialState.median_s.at("PRUNED")
    changed = _changed(spec, key, proposed)
    rate, note = _rate(now, changed)
    cost, priced = _cost(now, changed)
    return Proposal(
        (
            Change(
                f"pruner {key}", present, proposed, f"pruner={optuna_code(changed)}  # {key} was {present}",
            ),
        ),
        cost,
        " ".join(filter(None, (LAXER, priced, note))),
        (SuccessCheck.of(PruningProfile.of_decided_pct, "<", round(now.fact(PruningProfile.of_decided_low_pct), 1)),),
        (
            rate,
            Prediction.of(usual, now.fact(usual), now.fact(usual), None, CENSORED),
            *now.memory_predicted(1.0, 1.0, "The same trials at once."),
        ),
        NOT_THE_PRUNER if now.has("pruned-before-possible") else "",
    )  # fmt: skip


def _cost(now: Situation, candidate: PrunerSpec) -> tuple[Gain | None, str]:
    """GPU-hours that the candidate would have saved (negative: cost) on the recorded curves, and the sentence."""
    replay = now.replay(candidate)
    if replay is None or not (math.isfinite(replay.saved_gpu_h.low) and math.isfinite(replay.saved_gpu_h.high)):
        return None, "Its cost in GPU time is unknown: the curves could not be replayed."
    low, high = replay.saved_gpu_h.low, replay.saved_gpu_h.high
    if -low > now.bounds.trial_gpu_h:  # a bound beyond all that the trials took is no price
        return Gain(low, high, "GPU-h", "pruner"), "The recorded curves end too early to tell its cost in GPU time."
    text = f"Replayed over the recorded curves it costs up to {hours(-min(low, 0.0))} of GPU time"
    saves = f", or saves up to {hours(high)}" if high > 0 else ""
    return Gain(low, high, "GPU-h", "pruner"), f"{text}{saves}."


def _rate(now: Situation, candidate: PrunerSpec) -> tuple[Prediction, str]:
    """The pruning rate that the candidate is predicted to have, and the sentence on what it rests on.

    The recorded curves are replayed through the candidate; its bounds hold only for its cuts of these curves, and a
    laxer pruner is not predicted to cut more trials than the present one did.
    """
    rate = now.fact(PruningProfile.of_decided_pct)
    # A laxer pruner may let every pruned trial live on, beyond its record: the bounds are about as wide as the rate.
    replay = now.replay(candidate) if rate <= WIDEST_PCT else None
    low, high = (math.nan, math.nan) if replay is None else (replay.pruned_pct.low, replay.pruned_pct.high)
    if replay is None or not high - low <= WIDEST_PCT:
        return Prediction.of(PruningProfile.of_decided_pct, rate, None, rate, CENSORED), ""
    low, high = min(low, rate), min(high, rate)
    note = (
        f"Replayed over the recorded curves it prunes {share(low)} to {share(high)} of them, where {share(rate)} were "
        f"pruned ({share(replay.identified_pct)} of the trials are recorded far enough to tell)."
    )
    return Prediction.of(PruningProfile.of_decided_pct, rate, low, high, note), note
