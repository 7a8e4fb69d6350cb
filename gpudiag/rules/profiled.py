"""What did the GPU wait for in the profiled steps?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Fact
from gpudiag.measures.profiled import PROFILE, ProfiledProfile, measure_profiled
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

NAME_RANKS = "Profile each rank with torch.profiler, begun after torch.distributed was set up: it then writes the rank."
ONE_EACH = "Give one trace of each rank."
MIN_STEPS = 3
"""Fewer steps may be the first ones, or an odd one."""
RUN = Given(
    "lost_gpu_h", ". The run's steps are like these", Given("unlike_run", ". The run's steps are not like these")
)


def _found(profiled: ProfiledProfile, share: Fact[float], limit_pct: float, lost: Fact[float] | None) -> Outcome:
    """Evidence where a share of the profiled time is above its limit. Raises NotMeasurable where it is unknown."""
    value = share.of(profiled)
    if not profiled.n_profiled_steps >= MIN_STEPS:
        raise NotMeasurable("The trace holds {n:profiled step}; {least} are needed.", PROFILE,
                            n=profiled.n_profiled_steps, least=MIN_STEPS)  # fmt: skip
    if value is None or not value >= 0:
        raise NotMeasurable("The trace does not have what the host did.", PROFILE)
    if not value > limit_pct:
        return Passed("{share_pct} of the profiled time (limit {limit_pct}).", share_pct=value, limit_pct=limit_pct)
    hours = lost.of(profiled) if lost else None
    hours = hours if hours is not None and hours > 0 else None
    return Evidence(
        values={
            share.name: value,
            "profiled_idle_pct": profiled.profiled_idle_pct,
            "n_profiled_steps": profiled.n_profiled_steps,
            "profiled_step_s": profiled.profiled_step_s,
        },
        margin=value - limit_pct,
        severity=_severity(profiled),
        lost_gpu_h=hours,
        extra={"lost_gpu_h": hours, "unlike_run": profiled.unlike_run},
    )


def _severity(profiled: ProfiledProfile) -> Severity | None:
    """What steps unlike the run's show is a note: the run need not have it."""
    return Severity.NOTE if profiled.unlike_run else None


@rule(
    measure=measure_profiled,
    severity="warning",
    title="The GPU waits for kernels to be launched",
    checks="Launching of kernels",
    says=("In {n_profiled_steps:profiled step} the GPU was idle for {launch_pct} of the time while the host prepared "
          "kernels", RUN, "."),
    remedy="Launch fewer kernels, each with more work: torch.compile(model, mode='reduce-overhead'), a fused "
    "optimizer, or a larger batch.",
    refuted_by="Not a problem if the profiler itself slows the host: time the steps with and without it.",
    explained_by=("steps-blocked",),
)  # fmt: skip
def steps_launch(profiled: ProfiledProfile, *, max_launch_pct: float = 10.0) -> Outcome:
    """A GPU cannot run kernels faster than one thread of Python launches them.

    Above 10 % of the profiled time (a default: PyTorch's TensorBoard plugin advises from 5 % for the loader and 10 %
    for communication, and a profiler adds to launches).
    """
    return _found(profiled, ProfiledProfile.launch_pct, max_launch_pct, ProfiledProfile.launch_gpu_h)


@rule(
    measure=measure_profiled,
    severity="warning",
    title="Blocking calls leave the GPU idle",
    checks="Blocking calls",
    says=("In {n_profiled_steps:profiled step} the GPU was idle for {sync_pct} of the time while the host was in a "
          "blocking call", RUN, "."),
    remedy="Block less often: .item(), .cpu() and print(loss) hold the host until the GPU is done. Log every 50 steps.",
    refuted_by="Not a problem if the value is needed in each step, as for a loss that decides the next one.",
)  # fmt: skip
def steps_blocked(profiled: ProfiledProfile, *, max_sync_pct: float = 5.0) -> Outcome:
    """A call that waits for the GPU empties its queue: it is idle until the host has launched again.

    Above 5 % of the profiled time (PyTorch's TensorBoard plugin, for the loader).
    """
    return _found(profiled, ProfiledProfile.sync_pct, max_sync_pct, ProfiledProfile.sync_gpu_h)


@rule(
    measure=measure_profiled,
    severity="warning",
    title="Copies to the GPU stand alone",
    checks="Copies beside computing",
    says=("In {n_profiled_steps:profiled step} copies took {copy_pct} of the time with nothing computed", RUN, "."),
    remedy="Copy beside computing: pin_memory=True in the loader, batch.to(device, non_blocking=True), and the next "
    "batch copied in a stream of its own.",
    refuted_by="Not a problem if the copies are checkpoints or results that are needed at once.",
)
def steps_copies(profiled: ProfiledProfile, *, max_copy_pct: float = 10.0) -> Outcome:
    """A copy engine works beside the kernels; a copy that stands alone is time lost. Of pageable memory the host first
    copies into pinned memory, and the GPU waits for that too.

    Above 10 % of the profiled time (a default, that of PyTorch's TensorBoard plugin for communication).
    """
    return _found(profiled, ProfiledProfile.copy_pct, max_copy_pct, ProfiledProfile.copy_gpu_h)


@rule(
    measure=measure_profiled,
    severity="warning",
    title="Memory is taken and freed within the steps",
    checks="Memory taken within steps",
    says=("In {n_profiled_steps:profiled step} the GPU was idle for {memory_pct} of the time while the host took or "
          "freed memory, or set CUDA up", RUN, "."),
    remedy="Take memory once: no torch.cuda.empty_cache() in the loop, buffers used again, batches of one shape. "
    "Profile later steps if CUDA was still being set up.",
    refuted_by="Not a problem if the profiled steps are the first ones.",
)  # fmt: skip
def steps_allocation(profiled: ProfiledProfile, *, max_memory_pct: float = 5.0) -> Outcome:
    """CudaMalloc and cudaFree wait for the GPU; a caching allocator calls them in the first steps alone.

    Above 5 % of the profiled time (PyTorch's TensorBoard plugin, for the loader).
    """
    return _found(profiled, ProfiledProfile.memory_pct, max_memory_pct, ProfiledProfile.memory_gpu_h)


@rule(
    measure=measure_profiled,
    severity="warning",
    title="Profiled steps wait for data",
    checks="Waits for data in profiled steps",
    says=("In {n_profiled_steps:profiled step} the GPU was idle for {data_pct} of the time while the host waited for "
          "the next batch", RUN, "."),
    remedy="Load batches ahead: more loader workers (num_workers), persistent_workers=True, pin_memory=True.",
    refuted_by="Not a problem if only the first steps of an epoch were profiled.",
    explained_by=("loader-slow",),
)  # fmt: skip
def steps_data(profiled: ProfiledProfile, *, max_data_pct: float = 5.0) -> Outcome:
    """A batch that is not there when the step begins is idle time of the GPU.

    Above 5 % of the profiled time (PyTorch's TensorBoard plugin).
    """
    return _found(profiled, ProfiledProfile.data_pct, max_data_pct, ProfiledProfile.data_gpu_h)


@rule(
    measure=measure_profiled,
    severity="warning",
    title="Communication is not hidden behind computing",
    checks="Communication beside computing",
    says=("In {n_profiled_steps:profiled step} a GPU communicated for {communication_pct} of the time with nothing "
          "computed beside it", RUN, "."),
    remedy="Hide it or do less of it: smaller buckets (bucket_cap_mb) begin earlier, model.no_sync() skips it while "
    "gradients accumulate, and a faster link or fewer ranks shorten it.",
    refuted_by="Not a problem if one rank is late: then the others wait for it, and it has to become faster.",
    explained_by=("rank-behind",),
)  # fmt: skip
def steps_communication(profiled: ProfiledProfile, *, max_communication_pct: float = 10.0) -> Outcome:
    """Gradients can be exchanged while earlier layers are still computed.

    Above 10 % of the profiled time (PyTorch's TensorBoard plugin).
    """
    return _found(profiled, ProfiledProfile.communication_pct, max_communication_pct, None)


@rule(
    measure=measure_profiled,
    severity="warning",
    title="One rank keeps the others waiting",
    checks="Ranks beside each other",
    says=(
        "Rank {late_rank:as count} spent {communication_low_pct} of its profiled steps in collectives, others up to "
        "{communication_high_pct}: they wait for it",
        RUN,
        ".",
    ),
    remedy="Look at that rank: its GPU's clock and temperature, its loader, its share of the data, and what else runs "
    "on its host.",
    refuted_by="Not a problem if ranks do different work, as the stages of a pipeline do.",
)
def rank_behind(profiled: ProfiledProfile, *, min_difference_pct: float = 10.0) -> Outcome:
    """A collective ends when the last rank has joined it: that rank spends least time in it, and the others wait.

    10 points of the profiled time between the rank with least and that with most (a default without a published
    source). Traces of two ranks or more are needed, taken at the same steps. Each other rank waits, and at their pace
    the late one would be done as much sooner: both are the cost.
    """
    if not profiled.late_rank >= 0:
        raise _no_ranks(profiled)
    difference = profiled.communication_high_pct - profiled.communication_low_pct
    if not difference > min_difference_pct:
        return Passed(
            "{difference_pct:=points} between the ranks' time in collectives (limit {limit_pct:=points}).",
            difference_pct=difference,
            limit_pct=min_difference_pct,
        )
    names = ("late_rank", "communication_low_pct", "communication_high_pct", "behind_pct")
    hours = profiled.late_gpu_h if profiled.late_gpu_h > 0 else None
    return Evidence(
        values={name: getattr(profiled, name) for name in names},
        margin=difference - min_difference_pct,
        severity=_severity(profiled),
        lost_gpu_h=hours,
        extra={"lost_gpu_h": hours, "unlike_run": profiled.unlike_run},
    )


def _no_ranks(profiled: ProfiledProfile) -> NotApplicable | NotMeasurable:
    """Why no rank can be called late."""
    if profiled.n_traces < 2:
        return NotApplicable("There are no traces of two ranks or more.")
    if not profiled.n_ranks >= 1:
        return NotMeasurable("The traces do not say of which ranks they are.", NAME_RANKS)
    if profiled.n_ranks < profiled.n_gpus:
        return NotMeasurable("Several traces or GPUs are of one rank ({n:trace}).", ONE_EACH, n=profiled.n_traces)
    return NotMeasurable("How long the ranks communicated is unknown.", PROFILE)
