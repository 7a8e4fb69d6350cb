"""Remedies for memory that runs out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpudiag.advice._engine.capacity import FULL_PCT, held_levels, net_rates, safe_level
from gpudiag.advice._engine.gains import NOTHING, fewer_gain, saved_gain
from gpudiag.advice._engine.processes import AT_FIRST, started
from gpudiag.advice._engine.proposal import Change, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.failure_rates import FailureRatesProfile
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.leak import LeakProfile
from gpudiag.measures.memory import GpuMemory, MemoryProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.report.format import count, duration, memory, plural, quantity, share

if TYPE_CHECKING:
    from gpudiag.forecast.memory.capacity import MemoryCapacity

OVERFLOWS = ("memory-near-limit", "failures-out-of-memory", "failures-after-full-memory", "failures-share-parameter")
BY_NUMBER = "failures-by-number-at-once"
"""Of failures for any reason: what is done about memory answers it beside one of the others only."""
MOST_FREE_PCT = 50.0
"""Other trials that start or end meanwhile hide the falls of some (a default without a published source)."""
POISONED = ("failures-poisoned", "memory-leak", "memory-residual")


@remedy(
    title="Begin where this run ended",
    answers=(*OVERFLOWS, BY_NUMBER),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("seen to fit: the search ended so", "nothing about the search space changes"),
    cons=("fewer trials at once: it may end fewer good trials a day, though by less than their number",),
    refute="Memory per process shows that the largest trials fit together at the larger number after all.",
    rollback="Start the worker again.",
)
def keep_fewer(now: Situation) -> Proposal | None:
    """For a search that began with more trials at once than fit and ended with a number at which memory was never above
    90 %: the next one should begin there. Nothing where the capacity of the memory recommends another number.
    """
    levels = held_levels(now.profiles)
    most, safe, last = int(levels.index.max()) if len(levels) else 0, safe_level(now.profiles), now.workers_at_last
    if not (safe and last and last <= safe < most and last in levels.index and now.has(*OVERFLOWS)):
        return None
    seen = float(levels.at[last, "max_used_pct"])
    if now.capacity is not None and math.isfinite(now.capacity.recommended_k) and now.capacity.recommended_k != last:
        return None
    saved = saved_gain(now.bounds, "failures", now.failed_part(("oom",)))
    lost = saved.high / now.bounds.trial_gpu_h if saved and now.bounds.trial_gpu_h > 0 else math.nan
    price = f"Trials out of memory cost {quantity(saved.high, 'GPU-h')} at most. " if saved else ""
    return Proposal(
        (Change(AT_FIRST, most, last, started(now.settings.command, last, f"it began with {most}")),),
        fewer_gain(now.capacity, most, last, lost),
        f"The run went from {most} to {last} at once itself. {price}With "
        f"{last} at once memory was filled up to {share(seen, exact=True)} in "
        f"{duration(float(levels.at[last, 'time_s']))}.{net_rates(now.capacity, most, last)}",
        (SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT), *_fewer_failures(now)),
        (now.memory_as_seen(seen),),
    )


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
        return _as_capacity_says(now, now.capacity)
    if not now.torch:  # the allocator that can be limited is PyTorch's
        return None
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
    title="Leave out of the search what runs out of memory",
    answers=("failures-out-of-memory", "failures-share-parameter"),
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("these trials end before they take any GPU time", "the sampler learns the limit"),
    cons=("results change: some of the space is left out",),
    refute="Trials with these values run well where nothing else holds memory.",
    rollback="Remove the check.",
)
def leave_out(now: Situation) -> Proposal | None:
    """Proposed where a value of a parameter tells trials out of memory from others: most trials with it ran out of
    memory, and most trials out of memory had it.
    """
    rates = now.profile(FailureRatesProfile)
    if rates is None or not now.optuna or not now.has("failures-share-parameter"):
        return None
    with_it, without = rates.n_oom_with, rates.n_oom_compared - rates.n_oom_with
    if with_it <= max(rates.n_well_with, without):
        return None
    said = rates.condition.values
    sign = next(of for name, of in (("text", "=="), ("least", ">="), ("most", "<=")) if name in said)
    limit = next(value for name, value in said.items() if name != "name")
    shown = f"str(trial.params[{said['name']!r}])" if sign == "==" else f"trial.params[{said['name']!r}]"
    code = (
        " def objective(trial):\n     ...  # all suggest_ calls\n"
        f"+    if {shown} {sign} {_whole(limit)!r}:\n"
        "+        raise optuna.TrialPruned()  # or leave these values out of suggest_"
    )
    return Proposal(
        (Change("trials that run out of memory", None, "not started", code),),
        saved_gain(now.bounds, "failures", now.failed_part(("oom",)) * with_it / rates.n_oom_compared),
        f"{with_it:,} of {plural(rates.n_oom_compared, 'trial')} out of memory had {rates.condition}, and "
        f"{rates.n_well_with:,} of {rates.n_well_compared:,} that ended well meanwhile.",
        _fewer_failures(now),
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
    """Within one process the caching allocator keeps what a trial freed, and references keep the rest.

    Nothing where nothing stays in use: memory does not grow, and is free after the last trial or falls at most ends.
    """
    freed = "memory-residual" in now.passed or now.fact(LeakProfile.freed_pct) >= MOST_FREE_PCT
    if not (now.torch and now.has_trials) or ("memory-leak" in now.passed and freed):
        return None
    code = "del model, optimizer\ngc.collect()\ntorch.cuda.empty_cache()   # in a finally: block of the objective"
    return Proposal(
        (Change("after a trial", None, "memory freed", code),),
        saved_gain(now.bounds, "failures", now.failed_part(("oom",))),
        "At most the time of failed trials comes back, if they lacked memory that earlier ones left in use.",
        (SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT), *_fewer_failures(now)),
    )


@remedy(
    title="Find the operation that asserts",
    answers=("failures-device-assert",),
    tier=0,
    effort="minutes",
    pros=("the traceback names the line whose index or label is out of range",),
    cons=("kernels run one after another: for one trial, not for the study",),
    refute="The same trial passes: then its data or seed differed.",
    rollback="Unset the variable.",
)
def find_assert(now: Situation) -> Proposal | None:
    """Kernels run asynchronously, so that the traceback of an assert names a later line (PyTorch, CUDA semantics)."""
    code = 'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"   # before CUDA starts, in a run of one trial that asserted\n'
    change = Change("kernel launches", "asynchronous", "blocking", code)
    return Proposal((change,), NOTHING, "It shows the cause and speeds nothing up.")


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
    if not now.has_trials:
        return None
    given = "trial.params" if now.optuna else "task"
    code = (
        'with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as once:\n'
        f"    return once.submit(train, {given}).result()"
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


def _as_capacity_says(now: Situation, capacity: MemoryCapacity) -> Proposal | None:
    """The constraint of the memory capacity, from the peaks of this run's own trials: for those who run more at once
    than it recommends, where the largest trials fit together at the recommended number.
    """
    one = capacity.needed_constraint()
    if one is None or not (now.optuna and (now.torch or "torch." not in one.code)):
        return None
    recommended = capacity.recommended_k
    most_pct = 100 * capacity.room.usable_mib / capacity.room.total_mib
    k, limit = one.k, int(one.limit_mib)
    share = f"an equal share for {k} at once, so that any {k} fit" if k > 1 else "what is usable"
    best = {None: "", True: " The best trial was among them.", False: " The best trial was not among them."}
    return Proposal(
        (Change("memory of one trial, MiB", None, limit, one.code),),
        saved_gain(now.bounds, "failures", now.failed_part(("oom",))),
        f"At most the time of the trials that ran out of memory comes back. {memory(limit)} is "
        f"{share}. It would have refused {one.n_refused} of "
        f"{one.n} trials whose peak is judged, and "
        f"{one.n_oom_refused} of the {one.n_oom} that ran out of memory.{best[one.best_refused]}",
        _fewer_failures(now),
        now.memory_predicted(0.0, most_pct / now.fact(MemoryProfile.max_used_pct), f"Any {k} trials fit together."),
        f"Of use only with {k} at once: at the recommended {count(recommended)} the largest trials fit together."
        if k > recommended
        else "",
    )


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fewer_failures(now: Situation) -> tuple[SuccessCheck, ...]:
    """Fewer failures than this run's interval allows."""
    low = now.fact(TrialsProfile.fail_low_pct)
    return (SuccessCheck.of(TrialsProfile.fail_pct, "<", round(low, 1)),) if low > 0 else ()
