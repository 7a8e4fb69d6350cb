"""Remedies for the time of a training outside of its steps: evaluation, checkpoints, and what resumptions cost."""

from __future__ import annotations

import math

from gpudiag.advice._engine.proposal import Change, Gain, Prediction, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.facts import Numeric
from gpudiag.measures.steps import StepsProfile, some_wait, unnamed_is_most
from gpudiag.report.format import duration
from gpudiag.rules.steps import CLEAR_S

EVALUATE = {
    "mmengine": "train_cfg = dict(..., val_interval=2)           # was: each time; in the unit of the training loop",
    "detectron2": "cfg.TEST.EVAL_PERIOD = 2 * cfg.TEST.EVAL_PERIOD",
    "nanogpt": "python train.py --eval_interval=4000            # was: 2000, or half of what you state",
}
SAVE = {
    "torchtitan": "python -m torchtitan.train ... --checkpoint.async_mode async",
    "megatron": "python pretrain_gpt.py ... --ckpt-format torch_dist --async-save",
}
"""By the dialect of the log: how its framework says it."""
SPLIT = (
    "sampler = torch.utils.data.DistributedSampler(dataset, shuffle=False)\n"
    "loader = torch.utils.data.DataLoader(dataset, batch_size=..., sampler=sampler)\n"
    "torch.distributed.all_reduce(sums)                  # was: on rank 0 alone; then divide by the sum of counts"
)
EVALUATIONS = StepsProfile.evaluations_low_s, StepsProfile.evaluations_s
CHECKPOINTS = StepsProfile.checkpoints_low_s, StepsProfile.checkpoints_s
"""Their time in pauses, at least and at most."""
STATED = "It takes as long as the log states."
OPEN = "The log does not state how long it takes: at most the pauses with it."
LESS_WORK = " It is work left out, so that it may save more than the GPUs wait in pauses."
PAUSES_PCT = 10.0
"""The limit of the check."""
CONFIDENCE = 0.95


@remedy(
    title="Evaluate on all GPUs",
    answers=("steps-paused",),
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("the same metric, as often as before", "no GPU waits for another"),
    cons=("the metric must be summed over ranks",),
    refute="Compare the metric of one checkpoint by both ways: they must agree but for rounding.",
    rollback="Evaluate on one GPU as before.",
)
def evaluate_on_all(now: Situation) -> Proposal | None:
    """At most the time of evaluations but for the part that each GPU keeps, where some work in them and others wait."""
    steps = now.profile(StepsProfile)
    if steps is None or not some_wait(steps) or unnamed_is_most(steps):
        return None
    working, waiting = steps.evaluating_gpus, steps.waiting_gpus
    code = SPLIT if now.torch else "data = data[rank::world_size]   # was: all of them on one; add the sums up"
    change = Change("evaluation", None, "on all GPUs", code)
    return _outside(now, change, waiting / (working + waiting), EVALUATIONS, same_work=True)


@remedy(
    title="Evaluate half as often",
    answers=("steps-paused",),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("the same model comes out", "nothing but a number changes"),
    cons=("the best checkpoint and an early stop are seen later",),
    refute="If the metric must be seen as often, evaluate on a fixed part of the data instead.",
    rollback="Restore the interval.",
)
def evaluate_less(now: Situation) -> Proposal | None:
    """At most half of the time of evaluations; of a single one there is no half. Where GPUs wait for one that
    evaluates, to share that work is better. Where the log does not name the largest part of the pauses, that part comes
    first: what the check says of it.
    """
    steps = now.profile(StepsProfile)
    if (
        steps is None
        or some_wait(steps)
        or unnamed_is_most(steps)
        or not steps.evaluations_s > 0
        or not steps.n_evaluations > 1
    ):
        return None
    code = _of_log(now, EVALUATE) or "if epoch % 2 == 0:   # was: after each epoch\n    evaluate(model)"
    return _outside(now, Change("evaluation", None, "half as often", code), 0.5, EVALUATIONS)


@remedy(
    title="Save checkpoints in the background",
    answers=("steps-paused",),
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("the training goes on while the file is written", "the same checkpoints come out"),
    cons=("host memory for one copy of the state", "a crash while it is written leaves the one before"),
    refute="Time one save: if most of it is the copy to host memory, little is won.",
    rollback="Save as before.",
)
def save_in_background(now: Situation) -> Proposal | None:
    """At most the time of checkpoints; the copy to host memory remains. Not proposed where pauses without a name hold
    most.
    """
    steps = now.profile(StepsProfile)
    if steps is None or not steps.checkpoints_s > 0 or unnamed_is_most(steps):
        return None
    code = _of_log(now, SAVE)
    if not code and now.torch:
        code = (
            'state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}\n'
            "torch.distributed.checkpoint.async_save(state, checkpoint_id=path)   # was: torch.save"
        )
    if not code:
        return None
    return _outside(now, Change("checkpoints", None, "in the background", code), 1.0, CHECKPOINTS, same_work=True)


@remedy(
    title="Save at the best interval",
    answers=("steps-lost", "steps-paused"),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("fewest seconds in checkpoints and repeated steps together",),
    cons=("the time between failures is known from few of them",),
    refute="Count the failures of the next runs: the interval follows the square root of the time between them.",
    rollback="Restore the interval.",
)
def save_interval(now: Situation) -> Proposal | None:
    """√(2·C·M) for a checkpoint of C and a failure every M (Young 1974, doi 10.1145/361147.361115). M is between the
    ends of the 95 % interval for a Poisson rate (Garwood 1936); proposed where today's interval lies outside of it.
    A shorter one saves at most the steps that were done twice: how long a training stands still does not depend on it.
    A longer one saves at most the checkpoints that are then left out.
    """
    cost_s, every_s = now.fact(StepsProfile.checkpoint_s), now.fact(StepsProfile.checkpoint_every_s)
    between_s, n = now.fact(StepsProfile.mttf_s), now.fact(StepsProfile.n_resumed)
    if not (cost_s > 0 and every_s > 0 and n >= 1 and between_s > 0):
        return None
    low_s, best_s, high_s = (math.sqrt(2 * cost_s * each_s) for each_s in _between_failures(between_s, int(n)))
    if low_s <= every_s <= high_s or not (every_s < low_s or now.has("steps-lost")):
        return None
    likely = f"{duration(low_s)} to {duration(high_s)}"
    code = f"save_every_s = {round(best_s)}   # was: {round(every_s)}"
    change = Change("checkpoint interval", duration(every_s), duration(best_s), code)
    if every_s < low_s:
        saved_s, source = now.fact(StepsProfile.checkpoints_s) * (1 - every_s / best_s), "checkpoints"
        less, cost_h = StepsProfile.pauses_pct, _waited_gpu_h(now)
    else:
        saved_s, source = now.fact(StepsProfile.resumption_s) - now.fact(StepsProfile.down_s), "restart"
        less, cost_h = StepsProfile.resumption_pct, now.fact(StepsProfile.resumption_gpu_h)
    saved_h = saved_s * now.fact(StepsProfile.logged_gpus) / 3600
    saved_h = cost_h if cost_h < saved_h else saved_h
    return Proposal(
        (change,),
        Gain(0.0, saved_h, "GPU-h", source) if saved_h > 0 else None,
        f"A checkpoint takes {duration(cost_s)}, and failures come as often as in this run: the best interval is then "
        f"{likely}.",
        (SuccessCheck.of(less, "<", now.fact(less)),),
    )


def _between_failures(between_s: float, n: int) -> tuple[float, float, float]:
    """Ends of the interval for the mean time between n failures, and the mean between them."""
    from scipy.special import gammaincinv  # only where a training was resumed

    tail = (1 - CONFIDENCE) / 2
    low, high = (n * between_s / float(gammaincinv(*at)) for at in ((n + 1, 1 - tail), (n, tail)))
    return low, between_s, high


def _outside(
    now: Situation, change: Change, part: float, held: tuple[Numeric, Numeric], *, same_work: bool = False
) -> Proposal | None:
    """A change that saves at most a part of some of the time outside of steps, which is between ``held``. It worked
    where half of the part is gone that is sure to be there, if any is: the run is shorter then, too. ``same_work``: it
    takes no work away, and so saves no more than what GPUs wait in pauses; nothing where they never do.
    """
    low_s, high_s = (part * now.fact(seconds) for seconds in held)
    hours = high_s * now.fact(StepsProfile.logged_gpus) / 3600
    waited_h = _waited_gpu_h(now)
    if same_work and waited_h == 0:
        return None
    if same_work and waited_h < hours:
        hours = waited_h
    less = LESS_WORK if hours > waited_h else ""
    logged_s, pauses_pct = now.fact(StepsProfile.logged_s), now.fact(StepsProfile.pauses_pct)
    worked_pct, least_pct = (_left_pct(pauses_pct, saved_s / logged_s) for saved_s in (low_s / 2, high_s))
    return Proposal(
        (change,),
        Gain(0.0, hours, "GPU-h", change.what) if hours > 0 else None,
        (STATED if high_s - low_s < CLEAR_S else OPEN) + less,
        (SuccessCheck.of(StepsProfile.pauses_pct, "<", max(PAUSES_PCT, worked_pct)),) if low_s > 0 else (),
        (Prediction.of(StepsProfile.pauses_pct, pauses_pct, least_pct, pauses_pct),) if least_pct >= 0 else (),
    )


def _waited_gpu_h(now: Situation) -> float:
    """GPU-hours without a kernel in pauses, those that were not recorded counted whole; NaN unknown."""
    paused_s, recorded_s = now.fact(StepsProfile.pauses_s), now.fact(StepsProfile.recorded_pauses_s)
    unseen_h = max(paused_s - recorded_s, 0.0) * now.fact(StepsProfile.logged_gpus) / 3600
    return now.fact(StepsProfile.idle_paused_gpu_h) + unseen_h


def _left_pct(pauses_pct: float, saved: float) -> float:
    """Share of pauses where so much of the time is saved in them."""
    return max(100 * (pauses_pct / 100 - saved) / (1 - saved), 0.0)


def _of_log(now: Situation, code: dict[str, str]) -> str:
    """The lines for the framework whose log was read; '' for another."""
    seen = set(now.analysis.run.steps["series"])
    return next((lines for dialect, lines in code.items() if dialect in seen), "")
