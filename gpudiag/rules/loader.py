"""Is the input pipeline set up for this host?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures.loader import LoaderProfile, measure_loader
from gpudiag.rules._engine.evidence import Evidence, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

LOG = (
    "Put the training log into the run folder (or give it with --artifacts); gpudiag reads lines such as "
    "'DataLoader avg: 25.3ms' and '30 batch/s'. In a loop of your own, gd.Recorder measures it: rec.timed(loader)."
)
WAIT_PCT = 5.0
"""Of a step: so much of a wait is none (PyTorch's TensorBoard plugin)."""


@rule(
    measure=measure_loader,
    severity="warning",
    title="Training waits for the data loader",
    checks="Wait for the data loader",
    says=(
        "Each step waits {avg_ms} for the data loader",
        Given("rank", " of rank {rank}"),
        Given("of_step_pct", ", {share_pct} of its {step_ms}"),
        "; the worst of {n_lines:report} is {worst_ms}.",
    ),
    remedy="Use more loader workers and prefetch as far as memory allows, persistent_workers=True and "
    "pin_memory=True. Then look at the disk and at augmentation on the CPU.",
    refuted_by="Not a problem if the logged time includes the transfer to the GPU or the step itself.",
    explained_by=("cpu-bound-input", "io-wait"),
)
def loader_slow(
    loader: LoaderProfile, *, max_avg_ms: float = 30.0, max_step_pct: float = WAIT_PCT, severe_step_pct: float = 25.0
) -> Outcome:
    """Each millisecond that a step waits for its batch is a millisecond without training.

    Where the time of a step is known: a mean wait above 5 % of it (PyTorch's TensorBoard plugin), a warning from a
    quarter on (a default without a published source). Where it is not: a mean wait above 30 ms (a default without a
    published source). The cost is that share of the work, and no more than was without a kernel.
    """
    share = loader.of_step_pct
    if share > max_step_pct or (not share <= max_step_pct and loader.avg_ms > max_avg_ms):
        return Evidence(
            values={
                "avg_ms": loader.avg_ms,
                "worst_ms": loader.worst_ms,
                "step_ms": loader.step_ms,
                "of_step_pct": share,
                "n_lines": loader.n_lines,
            },
            margin=share - max_step_pct if share > 0 else loader.avg_ms - max_avg_ms,
            severity=Severity.NOTE if share < severe_step_pct else None,
            lost_gpu_h=loader.waited_gpu_h if loader.waited_gpu_h > 0 else None,
            held_gpu_h=loader.held_gpu_h if loader.held_gpu_h > 0 else None,
            extra={
                "share_pct": min(share, 100),
                "rank": str(int(loader.slow_rank)) if loader.slow_rank >= 0 else "",
            },
        )
    if not loader.n_lines:
        raise NotMeasurable("No log line states how long the loader is waited for.", LOG)
    return Passed(
        (
            "{avg_ms} a step",
            Given("of_step_pct", ", {of_step_pct} of it (limit {max_step_pct}).", " (limit {max_avg_ms})."),
        ),
        avg_ms=loader.avg_ms,
        of_step_pct=share,
    )


@rule(
    measure=measure_loader,
    severity="note",
    title="Loader workers do not match the CPU cores",
    checks="Loader workers per CPU core",
    says=(
        "{n_per_trial:loader worker} for each of {parallel:trial} make {n_workers} on {cores:core}: {of_cores_pct} "
        "configured (not CPU load), ",
        Given("few", "below", "above"),
        " the usual 70–200 %.",
    ),
    remedy="Set num_workers × trials at once to 0.7–2 times the cores, and measure. More workers help only where the "
    "loader is the limit.",
    refuted_by="Not a problem if the input needs no workers (it is on the GPU), or steps never wait for the loader.",
)
def loader_workers_cores(
    loader: LoaderProfile, *, min_cores_pct: float = 70.0, max_cores_ratio: float = 2.0
) -> Outcome:
    """Too few workers leave cores idle, too many fight for them.

    Loader workers times trials at once over cores: SageMaker Dataloader's 70 to 200 %. This is what was configured,
    not how busy the CPU was. Few are enough where steps are stated to wait for no more than 5 % of their time, as
    loader-slow asks.
    """
    few = loader.of_cores_pct < min_cores_pct
    if few and (loader.of_step_pct <= WAIT_PCT or loader.avg_ms == 0):
        return None
    if few or loader.of_cores_pct > 100 * max_cores_ratio:
        return Evidence(
            values={"n_workers": loader.n_workers, "cores": loader.cores, "of_cores_pct": loader.of_cores_pct},
            margin=min_cores_pct - loader.of_cores_pct if few else loader.of_cores_pct - 100 * max_cores_ratio,
            extra={"n_per_trial": loader.workers_per_trial, "parallel": loader.parallel, "few": few},
        )
    if not loader.of_cores_pct >= min_cores_pct:
        raise NotMeasurable(
            "Loader workers, CPU cores or trials at once are unknown.",
            "State num_workers under [dataloader], cpu_cores and parallel under [settings] in run.toml.",
        )
    return Passed(
        "{n_workers} on {cores:core}, {of_cores_pct} (limits {min_cores_pct} and {max_cores_pct}).",
        n_workers=loader.n_workers,
        cores=loader.cores,
        of_cores_pct=loader.of_cores_pct,
        max_cores_pct=100 * max_cores_ratio,
    )
