"""Does the GPU wait for its input, or is the work too small for it?"""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from gpudiag.errors import NotGiven, NotMeasurable
from gpudiag.measures._gpu.idle_power import RECORD_IDLE
from gpudiag.measures.feed import FeedProfile, measure_feed
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed, worst_gpu
from gpudiag.rules._engine.judging import MIN_EXPLAINED, RECORD_COMMAND
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import WORST_GPU, Given
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Values

RECORD_HOST = (
    f"Record the CPU and the disks beside the GPU for ten minutes of work: {RECORD_COMMAND}. A core near 100 % means a "
    "slow feed; with none, steps are small or wait for storage or a network."
)
AT_MOST = Given("at_most", "at most ")
RECORD_ACTIVITY = "Record it beside the work: dcgmi dmon -e 203,252,155,1002,1004,1005 -d 1000 > dcgmi.log."
NO_CORE_FREE = (
    "No core is left for more loader workers: move decoding and augmentation to the GPU, or do them once beforehand. "
    "Ask for more cores where the machine has them."
)
SEE_OWN_CORES = "See in the job whether all cores that it may use (nproc) are busy: mpstat -P ALL 5."
OWN_CORES_FIRST = (
    f"{SEE_OWN_CORES} If they are, more loader workers bring nothing: ask for more cores, move augmentation to the "
    "GPU, or do it once beforehand. If not, give the loader more workers (num_workers)."
)
TEST_ONE_BATCH = (
    "Time 100 steps on one batch that stays in memory. If they are as slow as now, steps are too small: try twice the "
    "batch size, several trials at once, or a smaller GPU. If they are faster, the input is slow: look at storage, "
    "network and loader workers, and let the log state how long each step waits for its batch."
)
MIN_WORK_S = 60.0
MOSTLY = 0.95
"""Of the work: a record of the host that covers so much needs no word."""
OF_THE_RECORD = Given("partly", ", of the {host_s} of it beside which the host was recorded,")


@rule(
    measure=measure_feed,
    severity="warning",
    title="The CPU feeds the GPU too slowly",
    checks="CPU load while the GPU waits",
    says=(
        *WORST_GPU,
        " was below ",
        Given("strict", "10 %", Given("full", "70 %", "50 %")),
        " for {share_pct} of its work",
        OF_THE_RECORD,
        " while ",
        Given("full", "all CPU cores together were", "a CPU core or process was"),
        " above 90 %.",
    ),
    remedy="Give the loader more workers (num_workers), and move augmentation to the GPU or do it once beforehand. "
    "Check that no single thread does all the work.",
    refuted_by="Not a problem if the busy core does something else: see which process owns it.",
)
def cpu_bound_input(
    feed: FeedProfile, *, min_starved_pct: float = 50.0, min_soft_pct: float = 50.0, min_host_s: float = 60.0
) -> Evidence | None:
    """A GPU cannot be faster than the CPU that prepares its input.

    GPU below 10 % (a warning) or below 50 % (a note) while a core or a process is above 90 %, in half of the work or
    more: SageMaker CPUBottleneck(50, 10, 90). The mean over cores hides one hot thread; where it is above 90 % itself,
    no core is left to feed a GPU below 70 % (SageMaker BatchSize) faster: a note too. A job that may use only some of
    the cores has none left long before: where so many are busy, nobody knows whether it is its own.
    Where a log or a recording states waits for the loader, they must hold half of the time without a kernel on some
    GPU: else the busy core does something else, such as launching kernels.
    """
    table = feed.per_gpu
    known = table[table["host_s"] >= min_host_s]
    strict = known[known["starved_pct"] >= min_starved_pct]
    soft = known[known["soft_starved_pct"] >= min_soft_pct]
    full = known[known["full_starved_pct"] >= min_soft_pct]
    may_be_full = known[known["most_full_starved_pct"] >= min_soft_pct]
    if (len(soft) or len(strict) or len(full)) and not _is_fed(feed):
        kinds = (strict, "starved_pct"), (soft, "soft_starved_pct"), (full, "full_starved_pct")
        found, column = next(kind for kind in kinds if len(kind[0]))
        worst = found[column].idxmax()
        share = float(found.at[worst, column])
        return worst_gpu(
            worst,
            found,
            ("starved_pct", column, "hot_pct", "host_s", "mean_pct") if len(strict) else (column, "host_s", "mean_pct"),
            lost_gpu_h=_gpu_h(strict, "starved_pct", "host_s") if len(strict) else None,
            margin=share - (min_starved_pct if len(strict) else min_soft_pct),
            severity=None if len(strict) else Severity.NOTE,
            held_gpu_h=_gpu_h(found, column, "work_s"),
            remedy=NO_CORE_FREE if found is full else OWN_CORES_FIRST if worst in may_be_full.index else "",
            extra={
                "strict": len(strict),
                "full": found is full,
                "share_pct": share,
                "partly": _is_partly(found.loc[worst]),
            },
        )
    _need_host(table, "starved_pct", "CPU per core or per process", min_host_s)
    if len(may_be_full) and not _is_fed(feed):
        raise NotMeasurable(
            "The training may use only some cores of the host, and so many were busy while {gpus} stayed below 70 %: "
            "these may have been full.",
            SEE_OWN_CORES,
            gpus=may_be_full.index,
        )
    return None


SOME_PROCESS = "Some process on the host waits for I/O beside a GPU with little work"
WHOSE_WAIT = (
    "Find out which process waits for I/O (iotop -o, or pidstat -d 5). Only if it is of this run, put the data on a "
    "faster disk."
)


@rule(
    measure=measure_feed,
    severity="warning",
    title="The GPU waits for storage",
    checks="Disk waits while the GPU waits",
    says=(
        *WORST_GPU,
        Given(
            "strict",
            (" was below 10 % for {io_starved_pct} of its work", OF_THE_RECORD, " while I/O wait was above 50 %."),
            Given(
                "soft",
                (
                    " worked beside I/O wait above 50 % for {io_wait_pct} of its work",
                    OF_THE_RECORD,
                    " and each step waits {of_step_pct} of its time for the data loader.",
                ),
                (
                    " was below 50 % for {io_soft_starved_pct} of its work",
                    OF_THE_RECORD,
                    " while some process on this host waited for I/O (CPU cores in I/O wait: {io_cores} on average).",
                ),
            ),
        ),
    ),
    remedy="Put the data on a local disk or in memory, read fewer and larger files, or cache what is read each epoch.",
    refuted_by="Not a problem if another job on the same storage caused the wait.",
)
def io_wait(
    feed: FeedProfile, *, min_starved_pct: float = 50.0, min_host_s: float = 60.0, min_step_pct: float = 25.0
) -> Evidence | None:
    """Waiting for the disk is no lack of CPU, and more loader workers can make it worse.

    GPU below 10 % while I/O wait is above 50 %, in half of the work or more: SageMaker IOBottleneck(50, 10, 50). Where
    steps wait a quarter of their time for the loader, as stated, I/O wait in half of the work is enough (a default
    without a published source): steps shorter than a sample leave none below 10 %. I/O wait is a share of all cores:
    on 16 of them, 8 workers that wait all the time make 50 %. So GPU below 50 % while it holds 90 % of one core or
    more, as of a busy core, in half of the work is enough too, for a note, but for steps that are stated to wait less
    than half of the time without a kernel. Any process of the host may be what waits there, so the note says no more,
    and a place for the data is advised only where steps are stated to wait. Where the cores of the host are unknown,
    so is whether I/O wait holds one.
    """
    table = feed.per_gpu
    known = table[(table["host_s"] >= min_host_s) & table["io_starved_pct"].notna()]
    strict = known[known["io_starved_pct"] >= min_starved_pct]
    soft = known[(known["io_wait_pct"] >= min_starved_pct) & (feed.stated_wait_pct >= min_step_pct)]
    some = known[(known["io_soft_starved_pct"] >= min_starved_pct) & (not _is_fed(feed))]
    if strict.empty and soft.empty and some.empty:
        _need_host(table, "io_starved_pct", "I/O wait", min_host_s)
        _need_host_cores(known if not _is_fed(feed) else known.iloc[:0], min_starved_pct)
        return None
    kinds = (strict, "io_starved_pct"), (soft, "io_wait_pct"), (some, "io_soft_starved_pct")
    found, column = next(kind for kind in kinds if len(kind[0]))
    worst, anybodys = found[column].idxmax(), found is some
    evidence = worst_gpu(
        worst,
        found,
        (column, *(("io_cores",) if anybodys else ()), "host_s", "mean_pct"),
        lost_gpu_h=_gpu_h(strict, "io_starved_pct", "host_s") if len(strict) else None,
        severity=Severity.NOTE if anybodys else None,
        remedy=WHOSE_WAIT if anybodys and not feed.stated_wait_pct >= min_step_pct else "",
        held_gpu_h=_gpu_h(found, column, "work_s"),
        margin=float(found.at[worst, column] - min_starved_pct),
        extra={
            "strict": len(strict),
            "soft": len(soft),
            "of_step_pct": feed.stated_wait_pct,
            "partly": _is_partly(found.loc[worst]),
        },
    )
    return replace(evidence, title=SOME_PROCESS if anybodys else "")


@rule(
    measure=measure_feed,
    severity="warning",
    title="The GPU gets too little work",
    checks="Work per step",
    says=(
        "For 95 % of its work {gpu} stayed below {p95_pct} utilization and {p95_used_pct} of its memory, with no CPU "
        "core or process above {p95_cpu_pct}",
        Given("partly", " in 95 % of the {host_s} of it beside which the host was recorded"),
        ".",
        Given("open", " Steps may be too small, or wait for storage or a network, which keeps no core busy."),
    ),
    remedy="Steps are too small: try twice the batch size (results change: adapt the learning rate), several trials at "
    "once, or a smaller GPU.",
    refuted_by="Not a problem if the framework reserves all memory at start.",
    explained_by=("io-wait", "cpu-bound-input"),
)
def batch_or_kernels_small(
    feed: FeedProfile,
    *,
    max_p_util_pct: float = 70.0,
    max_p_memory_pct: float = 70.0,
    max_p_cpu_pct: float = 70.0,
    max_power_ratio: float = 0.35,
    max_cv_ratio: float = 0.5,
) -> Evidence | None:
    """Neither GPU nor CPU nor memory is near its limit: each step is over before it fills the GPU, or waits for
    something that keeps no core busy.

    95th percentiles of utilization, memory and CPU below 70 %: SageMaker BatchSize(70, 70, 70); steady (variation
    below 0.5) and light (power fraction below 0.35, or unknown). Without CPU readings small work and a slow feed
    look alike. So they do with the mean of all cores alone: 1.6 % of 64 may be one core that is full. A loader that
    waits for storage or a network looks so even with them: both are said, unless a log states how long steps wait.
    Waits that hold half of the time without a kernel are the cause, and no small work is found.
    """
    table = feed.per_gpu[(feed.per_gpu["work_s"] >= MIN_WORK_S) & ~_waits_are_stated(feed)]
    light = table[
        (table["p95_pct"] < max_p_util_pct)
        & (table["p95_used_pct"] < max_p_memory_pct)
        & ~(table["power_ratio"] >= max_power_ratio)
        & (table["cv"] < max_cv_ratio)
    ]
    if light.empty:
        _need_memory(table)
        return None
    most, least = (light[name].mask(light["host_s"] < MIN_WORK_S) for name in ("p95_cpu_pct", "least_p95_cpu_pct"))
    small = light[most < max_p_cpu_pct]
    if small.empty:
        if not (least >= max_p_cpu_pct).all():
            raise NotMeasurable(
                "For 95 % of its work {gpus} stayed below {most_pct}, steadily. Small steps and a slow CPU both look "
                "like that; "
                + (
                    "{cpu_pct} of all CPU cores together may be one core that is full."
                    if least.notna().any()
                    else "CPU readings are missing."
                ),
                RECORD_HOST,
                gpus=light.index,
                most_pct=light["p95_pct"].max(),
                cpu_pct=least.max(),
            )
        return None
    worst, open_ = small["p95_pct"].idxmin(), math.isnan(feed.stated_wait_pct)
    return worst_gpu(
        worst,
        small,
        ("p95_pct", "p95_used_pct", "p95_cpu_pct", "power_ratio", "cv"),
        margin=float(max_p_util_pct - small.at[worst, "p95_pct"]),
        held_gpu_h=float(small["work_s"].sum() / 3600),
        extra={"partly": _is_partly(small.loc[worst]), "open": open_},
        remedy=TEST_ONE_BATCH if open_ else "",
    )


@rule(
    measure=measure_feed,
    severity="warning",
    title="One CPU thread limits the GPU",
    checks="Kernel launches",
    says=(
        "{gpu} averaged {mean_pct} at ",
        AT_MOST,
        "{power_pct} of its power range, while one CPU core or process was above 90 % for {hot_pct} of the work",
        Given("partly", ", of the {host_s} of it beside which the host was recorded"),
        ".",
    ),
    remedy="Test CUDA graphs, torch.compile or a larger batch: the thread that launches the kernels is the limit. "
    "More loader workers do not help it.",
    refuted_by="Not a problem if the busy process is not the one that trains.",
    explained_by=("cpu-bound-input",),
)
def launch_bound(
    feed: FeedProfile,
    *,
    min_util_pct: float = 30.0,
    max_util_pct: float = 90.0,
    min_hot_pct: float = 80.0,
    max_power_ratio: float = 0.35,
    max_cv_ratio: float = 0.3,
    min_host_s: float = 60.0,
) -> Evidence | None:
    """Kernels that are shorter than the time to launch them leave the GPU half empty, steadily.

    Mean utilization of 30 to 90 % with little variation, a core or process above 90 % in four fifths of the work, and
    a power fraction below 0.35 (METHODS 9). These are defaults without a published source.
    """
    table = feed.per_gpu
    known = table[(table["host_s"] >= min_host_s) & table["hot_pct"].notna()]
    steady = known[
        (known["mean_pct"] >= min_util_pct)
        & (known["mean_pct"] < max_util_pct)
        & (known["hot_pct"] >= min_hot_pct)
        & (known["cv"] < max_cv_ratio)
    ]
    found = steady[steady["power_ratio"] < max_power_ratio]
    if found.empty:
        if steady["power_ratio"].isna().any():
            raise NotMeasurable(
                "{gpus} ran steadily beside a hot core, but power or its limit is unknown.",
                "Record power.draw and power.limit of every GPU.",
                gpus=steady.index,
            )
        _need_idle_power(steady, "", max_power_ratio)
        _need_host(table, "hot_pct", "CPU per core or per process", min_host_s)
        return None
    worst = found["hot_pct"].idxmax()
    return worst_gpu(
        worst,
        found,
        ("mean_pct", "hot_pct", "power_ratio", "cv", "host_s"),
        margin=float(found.at[worst, "hot_pct"] - min_hot_pct),
        held_gpu_h=_gpu_h(found, "hot_pct", "work_s"),
        extra={**_power_pct(found.loc[worst], "power_ratio"), "partly": _is_partly(found.loc[worst])},
    )


@rule(
    measure=measure_feed,
    severity="note",
    title="The GPU is busy with light kernels",
    checks="Power drawn while busy",
    says=("{gpu} drew ", AT_MOST, "{power_pct} of its power range in {busy_s} at 90 % utilization or more."),
    remedy="Profile one step (nsys or the framework's profiler) and look for many short kernels. Larger batches, "
    "fused kernels or lower precision use the same busy time better.",
    refuted_by="Not a problem if memory bandwidth limits this kind of work, or the power limit is not this board's.",
    explained_by=("busy-without-progress", "thermal-throttling", "hardware-slowdown", "clocks-low", "sm-activity-low"),
)
def gpu_busy_but_light(
    feed: FeedProfile, *, max_power_ratio: float = 0.35, min_busy_s: float = 300.0, max_sm_pct: float = 50.0
) -> Outcome:
    """Utilization counts time with any kernel: one small kernel after the other makes 100 %.

    Power fraction (power - idle) / (limit - idle) below 0.35 at utilization of 90 % or more, over 5 minutes
    (METHODS 1). SM activity of 50 % or more refutes it, and so does the power cap (0x4): it holds the GPU to a lower
    limit than the driver states. An idle power that the record does not show is taken for 0 W,
    which makes the fraction an upper limit; where the greatest possible one would make the GPU light, it is not
    assessed.
    """
    busy = _busy(feed, min_busy_s)
    found = busy[(busy["busy_power_ratio"] < max_power_ratio) & ~(busy["busy_sm_pct"] >= max_sm_pct)]
    if found.empty:
        if busy["busy_power_ratio"].isna().all():
            raise NotMeasurable("Power or its limit is unknown.", "Record power.draw and power.limit of every GPU.")
        _need_idle_power(busy[~(busy["busy_sm_pct"] >= max_sm_pct)], "busy_", max_power_ratio)
        if not (busy["busy_power_ratio"] >= max_power_ratio).all():
            return None
        says = "{power_pct} of the range from idle power to the limit"
        power = busy.assign(power_pct=100 * busy["busy_power_ratio"])
        return Passed.least(power, "power_pct", says, "limit {limit_pct}", limit_pct=100 * max_power_ratio)
    worst = found["busy_power_ratio"].idxmin()
    ratio = float(found.at[worst, "busy_power_ratio"])
    return worst_gpu(
        worst,
        found,
        ("busy_power_ratio", "busy_sm_pct", "busy_s"),
        margin=max_power_ratio - ratio,
        extra=_power_pct(found.loc[worst], "busy_power_ratio"),
    )


@rule(
    measure=measure_feed,
    severity="warning",
    title="Kernels leave most SMs idle",
    checks="SM activity while busy",
    says=(*WORST_GPU, " used {busy_sm_pct} of its SMs on average in {busy_s} at 90 % utilization or more."),
    remedy="Give each kernel more work: a larger batch, fused kernels (torch.compile), or several trials at once. "
    "Profile one step to see which kernels are small.",
    refuted_by="Not a problem if a neighbor shares the GPU, or its work cannot be split further.",
)
def sm_activity_low(feed: FeedProfile, *, max_sm_pct: float = 50.0, min_busy_s: float = 300.0) -> Outcome:
    """Utilization is 100 % while one SM of a hundred computes; SM activity counts the others too.

    Below 50 % "likely indicates ineffective GPU usage", 80 % and more is needed for effective use (NVIDIA DCGM,
    feature overview, field 1002), over 5 minutes at a utilization of 90 % or more.
    """
    busy = _with(feed, "busy_sm_pct", min_busy_s)
    found = busy[busy["busy_sm_pct"] < max_sm_pct]
    if found.empty:
        return Passed.least(busy, "busy_sm_pct", "{busy_sm_pct} of the SMs", "limit {max_sm_pct}")
    worst = found["busy_sm_pct"].idxmin()
    return worst_gpu(
        worst,
        found,
        ("busy_sm_pct", "busy_dram_pct", "busy_s"),
        margin=max_sm_pct - float(found.at[worst, "busy_sm_pct"]),
    )


@rule(
    measure=measure_feed,
    severity="note",
    title="The tensor cores are not used",
    checks="Tensor cores while busy",
    says=(
        *WORST_GPU,
        " used {busy_sm_pct} of its SMs and its tensor cores for {busy_tensor_pct} of the cycles, in {busy_s} at "
        "90 % utilization or more.",
    ),
    remedy="Let matrix products use them: bfloat16 (torch.autocast), or TF32 "
    "(torch.set_float32_matmul_precision('high')). Sizes that are multiples of 8 help.",
    refuted_by="Not a problem if the work has few matrix products or convolutions, or needs all of float32.",
)
def tensor_cores_unused(
    feed: FeedProfile, *, max_tensor_pct: float = 1.0, min_sm_pct: float = 50.0, min_busy_s: float = 300.0
) -> Evidence | None:
    """Matrix products in float32 leave the fastest part of the GPU idle. On an A100 the dense peak of TF32 is 8 times
    that of float32, and 16 times in bfloat16 (NVIDIA A100 data sheet).

    Tensor cores active below 1 % of the cycles (DCGM field 1004; a default: work that uses them at all shows more)
    while half of the SMs or more have work, over 5 minutes at a utilization of 90 % or more.
    """
    busy = _with(feed, "busy_tensor_pct", min_busy_s)
    found = busy[(busy["busy_tensor_pct"] < max_tensor_pct) & (busy["busy_sm_pct"] >= min_sm_pct)]
    if found.empty:
        return None
    worst = found["busy_tensor_pct"].idxmin()
    return worst_gpu(
        worst,
        found,
        ("busy_tensor_pct", "busy_sm_pct", "busy_s"),
        margin=max_tensor_pct - float(found.at[worst, "busy_tensor_pct"]),
    )


def _waits_are_stated(feed: FeedProfile) -> pd.Series:
    """True for each GPU of whose time without a kernel the stated waits for the loader hold half or more."""
    return feed.stated_wait_pct >= MIN_EXPLAINED * (100 - feed.per_gpu["mean_pct"])


def _is_fed(feed: FeedProfile) -> bool:
    """Whether stated waits hold less than half of the time without a kernel on all GPUs: a rank that waits for
    another's data runs the kernels of a collective meanwhile.
    """
    return bool((feed.stated_wait_pct < MIN_EXPLAINED * (100 - feed.per_gpu["mean_pct"])).all())


def _need_host(table: pd.DataFrame, column: str, what: str, min_host_s: float) -> None:
    """Raises NotMeasurable where the host was not recorded beside the work of any GPU, or not for long enough."""
    host_s = float(table.loc[table[column].notna(), "host_s"].max())
    if host_s >= min_host_s:
        return
    if host_s > 0:
        raise NotMeasurable(
            "{what} was recorded for {host_s} of the GPU's work; {min_host_s} is needed.",
            RECORD_HOST,
            what=what,
            host_s=host_s,
            min_host_s=min_host_s,
        )
    raise NotMeasurable("{what} was not recorded while the GPU worked.", RECORD_HOST, what=what)


def _need_host_cores(known: pd.DataFrame, min_starved_pct: float) -> None:
    """Raises NotMeasurable where it depends on the cores of the host, which are unknown, whether I/O wait holds one."""
    open_ = known.index[~(known["io_soft_starved_pct"] >= 0) & (known["most_io_soft_starved_pct"] >= min_starved_pct)]
    if len(open_):
        raise NotMeasurable(
            "I/O wait is a share of all cores of the host, and how many there are was not recorded. {gpus} stayed "
            "below 50 % beside some that may be all of a core.",
            RECORD_HOST,
            gpus=open_,
        )


def _busy(feed: FeedProfile, min_busy_s: float) -> pd.DataFrame:
    """GPUs that were busy long enough. Raises NotApplicable where none was."""
    busy = feed.per_gpu[feed.per_gpu["busy_s"] >= min_busy_s]
    if busy.empty:
        raise NotApplicable("No GPU was at 90 % utilization or more for {min_busy_s}.", min_busy_s=min_busy_s)
    return busy


def _with(feed: FeedProfile, column: str, min_busy_s: float) -> pd.DataFrame:
    """The same. Raises NotGiven where none was recorded with that activity."""
    busy = _busy(feed, min_busy_s)
    if busy[column].isna().all():
        raise NotGiven("The activity of SMs and tensor cores was not recorded.", RECORD_ACTIVITY)
    return busy


def _need_idle_power(table: pd.DataFrame, when: str, max_power_ratio: float) -> None:
    """Raises NotMeasurable where it depends on the idle power, which is unknown, whether a GPU draws as little."""
    open_ = table.index[
        (table[f"least_{when}power_ratio"] < max_power_ratio) & (table[f"{when}power_ratio"] >= max_power_ratio)
    ]
    if len(open_):
        raise NotMeasurable(
            "{gpus} drew {least_pct} to {most_pct} of the power range: no idle time shows the idle power.",
            RECORD_IDLE,
            gpus=open_,
            least_pct=max(0.0, 100 * float(table.loc[open_, f"least_{when}power_ratio"].min())),
            most_pct=100 * float(table.loc[open_, f"{when}power_ratio"].max()),
        )


def _gpu_h(found: pd.DataFrame, share_pct: str, of_s: str) -> float:
    """GPU-hours of that share: of what was recorded, or of all the work if the rest is like it."""
    return float((found[share_pct] / 100 * found[of_s]).sum() / 3600)


def _is_partly(row: pd.Series) -> bool:
    """Whether the host was recorded beside a part of the work only."""
    return bool(row["host_s"] < MOSTLY * row["work_s"])


def _power_pct(row: pd.Series, ratio: str) -> Values:
    """The share of the power range in percent, and whether it is an upper limit."""
    return {"power_pct": 100 * float(row[ratio]), "at_most": bool(row[f"least_{ratio}"] < row[ratio])}


def _need_memory(table: pd.DataFrame) -> None:
    unknown = table.index[(table["p95_pct"] < 70) & table["p95_used_pct"].isna()]
    if len(unknown):
        raise NotMeasurable(
            "How full the memory of {gpus} was is unknown.", "Record memory.used and .total.", gpus=unknown
        )
