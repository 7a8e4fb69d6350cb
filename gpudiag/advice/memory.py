"""Remedies for memory that runs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudiag.advice._engine.capacity import FULL_PCT, safe_level
from gpudiag.advice._engine.gains import saved_gain
from gpudiag.advice._engine.proposal import Change, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.memory import GpuMemory, MemoryProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.report.format import count, memory, share

if TYPE_CHECKING:
    from gpudiag.forecast.memory.constraint import Constraint

OVERFLOWS = ("memory-near-limit", "failures-out-of-memory", "failures-after-full-memory", "failures-share-parameter")
BY_NUMBER = "failures-by-number-at-once"
"""Of failures for any reason: what is done about memory answers it beside one of the others only."""
POISONED = ("failures-poisoned", "failures-device-assert", "memory-leak", "memory-residual")


@remedy(
    title="Reject trials that are too large for the GPU",
    answers=(*OVERFLOWS, BY_NUMBER),
    tier=2,
    effort="an hour",
    apply="next study",
    pros=("large trials no longer take the others down", "the sampler learns the limit"),
    cons=("results change: some of the space is left out", "needs an estimate of a trial's memory"),
    refute="Memory by trial shows that no combination of parameters is larger than its share.",
    rollback="Remove the check.",
)
def memory_constraint(now: Situation) -> Proposal | None:
    """A trial's memory follows from its parameters (model, batch size); the limit is its share of the GPU."""
    from gpudiag.forecast.memory.constraint import share_code

    k, total = safe_level(now.profiles) or now.parallel, now.least(GpuMemory.total_mib)
    if not (k and total > 0 and now.has(*OVERFLOWS)):
        return None
    if now.capacity is not None:  # where no trial was larger than its share there is nothing to refuse
        return _as_capacity_says(now, now.capacity.needed_constraint())
    limit = int(FULL_PCT / 100 * total / k)
    return Proposal(
        (Change("memory of one trial, MiB", None, limit, share_code(limit)),),
        saved_gain(now.bounds, "failures", now.failed_part(("oom",))),
        f"At most the time of the trials that ran out of memory comes back. {memory(limit)} is "
        f"{share(FULL_PCT)} of the GPU's {memory(total)}, shared by {k} at once; what a trial takes is not known.",
        (SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT), *_fewer_failures(now)),
        now.memory_predicted(0.0, FULL_PCT / max(now.fact(MemoryProfile.max_used_pct), FULL_PCT), "By construction."),
    )


@remedy(
    title="Let one trial fail when memory runs out, not the worker",
    answers=OVERFLOWS,
    tier=1,
    effort="minutes",
    pros=("an overflow costs one trial", "the failure says what it was"),
    cons=("does not prevent it", "helps for out-of-memory only: after a device-side assert the process must end"),
    refute="The log holds no OutOfMemoryError.",
    rollback="Remove the handler.",
)
def catch_oom(now: Situation) -> Proposal | None:
    """torch.cuda.OutOfMemoryError can be survived; a worker that dies of it leaves its trial RUNNING for ever."""
    if not (now.torch and now.optuna) or _one_trial_fails(now):
        return None
    code = (
        "try:                                           # in the objective\n    return train(trial)\n"
        "except torch.cuda.OutOfMemoryError:\n"
        '    trial.set_user_attr("failure", "oom")\n'
        "    raise\n"
        "finally:\n    gc.collect()\n    torch.cuda.empty_cache()\n"
        "study.optimize(objective, catch=(torch.cuda.OutOfMemoryError,))  # the trial is FAIL, the worker goes on"
    )
    return Proposal(
        (Change("out of memory", None, "ends one trial", code),),
        saved_gain(now.bounds, "abandoned"),
        "At most the time of trials left RUNNING by a dead worker comes back.",
        (SuccessCheck.of(TrialsProfile.abandoned, "<=", 0.0),),
    )


@remedy(
    title="Free the memory of a trial before the next one",
    answers=(*OVERFLOWS, "memory-leak", "memory-residual"),
    tier=1,
    effort="minutes",
    pros=("a trial starts with an empty GPU", "tensors kept by mistake show up"),
    cons=("the next trial allocates anew, which takes a moment",),
    refute="Memory in use after a trial is what it was before the first.",
    rollback="Remove the lines.",
)
def free_memory(now: Situation) -> Proposal | None:
    """Within one process the caching allocator keeps what a trial freed, and references keep the rest."""
    if not now.torch or {"memory-leak", "memory-residual"} <= now.passed:  # nothing stays in use: there is none to free
        return None
    code = "del model, optimizer\ngc.collect()\ntorch.cuda.empty_cache()   # in a finally: block of the objective"
    return Proposal(
        (Change("after a trial", None, "memory freed", code),),
        saved_gain(now.bounds, "failures", now.failed_part(("oom",))),
        "At most the time of failed trials comes back, if they lacked memory that earlier ones left in use.",
        (SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT), *_fewer_failures(now)),
    )


@remedy(
    title="Run each trial in its own process",
    answers=POISONED,
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("a poisoned CUDA context ends with its trial", "all memory is freed for certain"),
    cons=("each trial pays its own start-up",),
    refute="Failures are not followed by others on the same worker.",
    rollback="Call the objective in the worker again.",
)
def isolate_trials(now: Situation) -> Proposal | None:
    """After a device-side assert every CUDA call of that process fails, so later trials fail too (METHODS 0)."""
    code = (
        'with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as once:\n'
        "    return once.submit(train, trial.params).result()"
    )
    streak = now.fact(TrialsProfile.fail_streak)
    return Proposal(
        (Change("process of a trial", "the worker's", "its own", code),),
        saved_gain(now.bounds, "failures", now.failed_part(follows=True)),
        f"Failures follow each other in one process (longest streak {count(streak)}); those after the first come back.",
        (SuccessCheck.of(TrialsProfile.fail_streak, "<=", 1.0), *_fewer_failures(now)),
    )


def _one_trial_fails(now: Situation) -> bool:
    """True where an overflow already costs its trial alone: more trials failed so than were left RUNNING."""
    failures = now.profile(FailuresProfile)
    if failures is None:
        return False
    n_oom = int((failures.failures["kind"] == "oom").sum())
    return n_oom > now.fact(TrialsProfile.abandoned)


def _as_capacity_says(now: Situation, one: Constraint | None) -> Proposal | None:
    """The constraint of the memory capacity, from the peaks of this run's own trials."""
    if one is None:
        return None
    k, limit = one.k, int(one.limit_mib)
    share = f"an equal share for {k} at once, so that any {k} fit" if k > 1 else "what is usable"
    best = {None: "", True: " The best trial was among them.", False: " The best trial was not among them."}
    return Proposal(
        (Change("memory of one trial, MiB", None, limit, one.code),),
        saved_gain(now.bounds, "failures", now.failed_part(("oom",))),
        f"At most the time of the trials that ran out of memory comes back. {memory(limit)} is "
        f"{share}. It would have refused {one.n_refused} of "
        f"{one.n} trials whose peak is known, and "
        f"{one.n_oom_refused} of the {one.n_oom} that ran out of memory.{best[one.best_refused]}",
        (SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT), *_fewer_failures(now)),
        now.memory_predicted(0.0, FULL_PCT / max(now.fact(MemoryProfile.max_used_pct), FULL_PCT), "By construction."),
    )


def _fewer_failures(now: Situation) -> tuple[SuccessCheck, ...]:
    """Fewer failures than this run's interval allows."""
    low = now.fact(TrialsProfile.fail_low_pct)
    return (SuccessCheck.of(TrialsProfile.fail_pct, "<", round(low, 1)),) if low > 0 else ()
