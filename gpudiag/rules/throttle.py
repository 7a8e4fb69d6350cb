"""Do heat, power limits or low clocks hold the GPU back?"""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.clocks import SOURCES as SOURCE_NAMES
from gpudiag.measures.base import RECORD_GPU
from gpudiag.measures.throttle import SLOWDOWN_C, ThrottleProfile, measure_throttle
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import WORST_GPU, Given, Sentence
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Value, Values

MIN_BUSY_S = 60.0
MOST_OF_TIME_PCT = 50.0
AT_CAP = 0.9
"""Share of the power limit from which on power is at it (a default without a published source)."""
MIN_SLOWER = 1.05
REFERENCE: tuple[Sentence, ...] = (
    Given("by_seen", "; it reached {reference_mhz}"),
    Given("by_peers", "; its peers ran at {reference_mhz}"),
    Given("by_stated", "; the driver allows {reference_mhz}"),
    Given("by_board", "; its board's boost clock is {reference_mhz}"),
)
OF_REFERENCE: tuple[Sentence, ...] = (
    Given("by_seen", " that it reached"),
    Given("by_peers", " at which its peers ran"),
    Given("by_stated", " that the driver allows"),
    Given("by_board", " of its board's boost clock"),
)
AT_CLOCK: Sentence = Given("clock_mhz", (", at {clock_mhz}", *REFERENCE))
COST: Sentence = Given(
    "together",
    " The {n_busy} GPUs do each step together, at the pace of the slowest: "
    "that cost at most {all_gpu_h} of {busy_gpu_h}.",
    (
        " That cost at most {own_gpu_h}",
        Given("maybe_together", "; if the {n_busy} GPUs do each step together, at most {all_gpu_h} of {busy_gpu_h}"),
        ".",
    ),
)
SLOWER: Sentence = Given(
    "slower_ratio",
    (
        " Kernels that follow the clock took {slower_ratio} times as long.",
        Given("own_gpu_h", COST),
    ),
)
RECORD_MAX = "Record clocks.max.sm beside clocks.sm (nvidia-smi --query-gpu), or the names of the GPUs."


@rule(
    measure=measure_throttle,
    severity="warning",
    title="Heat slows GPUs down",
    checks="Slowdown by heat",
    says=(*WORST_GPU, " was slowed down by heat for {share_pct} of its busy time", AT_CLOCK, ".", SLOWER),
    remedy="Clean and open the air path, raise the fan curve, or move the neighbor card. A slightly lower power limit "
    "(nvidia-smi -pl) is often as fast.",
    refuted_by="Not a problem if the throttle flag shows up only in single samples when clocks change.",
)
def thermal_throttling(t: ThrottleProfile, *, max_share_pct: float = 5.0) -> Outcome:
    """A GPU that is too hot halves its clocks or worse, and utilization does not show it.

    Thermal slow-down bits (0x20, 0x40 of NVML's clocks-event reasons) in more than 5 % of busy time (METHODS 8).
    Without bits: a clock below 0.85 of the highest that it or its peers showed while within 5 °C of 87 °C, for as large
    a share.
    """
    table = t.per_gpu
    told = table["thermal_pct"].notna()
    share = table["thermal_pct"].where(told, table["warm_low_pct"])
    clock_mhz = table["thermal_clock_mhz"].where(told, table["warm_low_clock_mhz"])
    lost_s = table["thermal_lost_s"].where(told, table["warm_low_lost_s"])
    return _share(t, share, clock_mhz, lost_s, max_share_pct, waited="Heat slows one GPU, and the others wait for it")


@rule(
    measure=measure_throttle,
    severity="warning",
    title="The hardware slows GPUs down",
    checks="Slowdown by the hardware",
    says=(
        *WORST_GPU,
        " was slowed down by ",
        Given("braked", "the power brake of its machine", "its hardware"),
        " for {share_pct} of its busy time",
        AT_CLOCK,
        ".",
        SLOWER,
    ),
    remedy="Look at the power supplies and the power budget of the server: they pull the power brake. Then check power "
    "cables, seating and temperature of the GPU (nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE).",
    refuted_by="Not a problem if the flag shows up only in single samples when clocks change.",
)
def hardware_slowdown(t: ThrottleProfile, *, max_share_pct: float = 5.0) -> Outcome:
    """The hardware halves the clocks or worse to protect itself, and utilization does not show it.

    Hardware slow-down (0x8) or power brake (0x80) of NVML's clocks-event reasons, without a thermal bit, in more than
    5 % of busy time (a default without a published source). NVML: both reduce the clocks by a factor of 2 or more. By
    its documentation 0x8 may also show up when clocks change, which single samples would be.
    """
    table = t.per_gpu
    braked = table["brake_pct"] > max_share_pct
    waited = "The hardware slows one GPU, and the others wait for it"
    slow = table["hardware_pct"], table["hardware_clock_mhz"], table["hardware_lost_s"]
    return _share(t, *slow, max_share_pct, waited=waited, braked=braked)


@rule(
    measure=measure_throttle,
    severity="warning",
    title="The power limit slows GPUs down",
    checks="Slowdown by the power limit",
    says=(
        *WORST_GPU,
        " ",
        Given("is_low", "ran below 80 % of its clock at the power limit", "was at its power limit"),
        " for {share_pct} of its busy time",
        AT_CLOCK,
        ".",
        SLOWER,
        Given("lowered", " Its limit was lowered to {limit_w}; {default_w} is its board's own."),
        Given("ordinary", " {limit_w} is its board's own limit, which heavy kernels reach."),
        Given("unclear", " Its own limit is unknown: it may be at it, and hold no such clock under load."),
    ),
    remedy="Compare the limit in force with the default (nvidia-smi -q -d POWER), and restore a lowered one. On "
    "laptops check the power adapter and the performance mode. At the board's own limit nothing is wrong: only kernels "
    "that draw less run faster.",
    refuted_by="Not a problem if the limit was lowered on purpose to save energy.",
    explained_by=("power-fault-throttling",),
)
def power_throttling(
    t: ThrottleProfile, *, max_share_pct: float = 5.0, min_capped_pct: float = MOST_OF_TIME_PCT
) -> Outcome:
    """The power cap alone is normal for an efficient job; with clocks far down it costs time.

    Power cap (0x4) together with a clock below 0.8 of the reference, in more than 5 % of busy time (METHODS 1 and 8).
    It is a note where power is at the board's own limit: there heavy kernels run at such clocks. So it is where that
    limit is unknown, power is at no limit known, and only the driver's highest clock is there to compare with: laptops
    print no limit, and hold that clock under no load. A limit that was
    lowered, to less than 0.95 of the board's own, is told where it holds for half of the busy time, as a note where
    clocks stay above that (defaults without a published source).
    """
    table = _busy(t)
    lowered = table["is_lowered"] == True  # noqa: E712 - NaN is unknown
    low = table["capped_low_pct"] > max_share_pct
    capped = table["power_pct"] >= min_capped_pct
    found = table[low | (lowered & capped)]
    if found.empty:
        _need_cost(table, capped)
        return Passed.most(
            table,
            "capped_low_pct",
            "{capped_low_pct} of the busy time",
            "limit {max_share_pct}",
        )
    ordinary = ~lowered & (table["default_w"] > 0) & (table["capped_power_w"] >= AT_CAP * table["limit_w"])
    share = table["capped_low_pct"].where(low, table["power_pct"])
    at_known = table["capped_power_w"] >= AT_CAP * table["limit_w"]
    unclear = ~lowered & ~(table["default_w"] > 0) & ~at_known & (table["reference_source"] == "stated")
    grave = (low & ~ordinary & ~unclear)[found.index]
    worst = share[grave[grave].index if grave.any() else found.index].idxmax()
    clock_mhz = table["capped_low_clock_mhz"].where(low, table["capped_clock_mhz"])
    return _worst(
        t,
        worst,
        found.assign(share_pct=share, clock_mhz=clock_mhz, lost_s=table["capped_low_lost_s"].where(low)),
        margin=float(share[worst] - max_share_pct) if low[worst] else None,
        severity=None if grave.any() else Severity.NOTE,
        extra={
            "is_low": low[worst],
            "lowered": lowered[worst],
            "ordinary": low[worst] and ordinary[worst],
            "unclear": low[worst] and unclear[worst],
            **({"slower_ratio": math.nan} if unclear[worst] else {}),
        },
    )


def _need_cost(table: pd.DataFrame, capped: pd.Series) -> None:
    """Nothing found is no health where reasons or clocks are unknown, or there is no clock to compare with."""
    if not table["power_pct"].notna().any():
        raise NotMeasurable("Clocks-event reasons were not recorded while a GPU was busy.", RECORD_GPU)
    if not table[["capped_low_pct", "busy_clock_mhz"]].notna().any(axis=None):
        raise NotMeasurable("The SM clock was not recorded, so what the power cap costs is unknown.", RECORD_GPU)
    held = table.index[capped & table["capped_low_pct"].isna()]
    if len(held):
        raise NotMeasurable(
            "{gpus} stood at the power cap for most of the busy time, and no clock without it is known.",
            RECORD_MAX,
            gpus=held,
        )
    silent = table.index[table["power_pct"].isna()]
    if len(silent):
        raise NotMeasurable("Clocks-event reasons of {gpus} are unknown.", RECORD_GPU, gpus=silent)


@rule(
    measure=measure_throttle,
    severity="warning",
    title="Clocks are low while the GPU is busy",
    checks="GPU clocks under load",
    says=(
        *WORST_GPU,
        " ran at {busy_clock_mhz} while busy (median), {clock_pct} of the {reference_mhz}",
        *OF_REFERENCE,
        ".",
    ),
    remedy="Look for locked clocks (nvidia-smi -q -d CLOCK; nvidia-smi -rgc resets them), a power-saving profile, or "
    "a low performance state.",
    refuted_by="Not a problem if clocks were locked on purpose, or kernels are so short that the GPU never speeds up.",
    explained_by=("power-fault-throttling", "thermal-throttling", "hardware-slowdown", "power-throttling"),
)
def clocks_low(t: ThrottleProfile, *, max_clock_pct: float = 60.0, min_share_pct: float = 50.0) -> Outcome:
    """Utilization says that kernels run, not how fast: at half the clock they take twice as long.

    The median SM clock of busy time is below 60 % of the reference, and clocks below 80 % of it fill half of the busy
    time or more without the power cap, which has a check of its own (METHODS 8). The reference is the highest of the
    clock that the GPU showed, the median of its peers, what the driver allows and the board's boost clock. These are
    defaults without a published source.
    """
    table = _busy(t)
    if not table["busy_clock_mhz"].notna().any():
        raise NotMeasurable("The SM clock was not recorded while a GPU was busy.", RECORD_GPU)
    ratio = 100 * table["busy_clock_mhz"] / table["reference_mhz"]
    found = table[(ratio < max_clock_pct) & (table["uncapped_low_pct"] >= min_share_pct)]
    if found.empty:
        alone = table.index[table["busy_clock_mhz"].notna() & table["uncapped_low_pct"].isna()]
        if len(alone):
            raise NotMeasurable("The clocks of {gpus} were held down at all times.", RECORD_MAX, gpus=alone)
        if (ratio < max_clock_pct).any():
            return None
        return Passed.least(
            table.assign(clock_pct=ratio),
            "clock_pct",
            "{busy_clock_mhz}, {clock_pct} of the {reference_mhz} possible",
            "limit {max_clock_pct}",
        )
    worst = ratio[found.index].idxmin()
    return worst_gpu(
        worst,
        found,
        ("busy_clock_mhz", "reference_mhz", "low_pct", "busy_s"),
        margin=float(max_clock_pct - ratio[worst]),
        extra={"clock_pct": float(ratio[worst]), **_source(found.at[worst, "reference_source"])},
    )


@rule(
    measure=measure_throttle,
    severity="warning",
    title="The GPU is hot",
    checks="GPU temperature",
    says=(*WORST_GPU, " reached {max_temp_c}; it was at {slowdown_c} or more for {hot_s} ({hot_pct} of the time)."),
    remedy="Improve cooling before clocks fall: air path, fan curve, distance to the next card, power limit.",
    refuted_by="Not a problem if this board slows down at a higher temperature (nvidia-smi -q -d TEMPERATURE prints "
    "it).",
)
def temperature_high(t: ThrottleProfile, *, max_hot_s: float = 60.0) -> Outcome:
    """Near its slow-down threshold a GPU has no reserve, and ages faster.

    At 87 °C or more, where slow-down begins on many boards, 87-93 °C (METHODS 8), for more than a minute.
    """
    table = t.per_gpu
    if not table["hot_s"].notna().any():
        raise NotMeasurable("Temperature was not recorded.", RECORD_GPU)
    hot = table[table["hot_s"] > max_hot_s]
    if hot.empty:
        by = "hot_s" if table["hot_s"].max() > 0 else "max_temp_c"
        says = "Up to {max_temp_c}, for {hot_s} at {slowdown_c} or more"
        return Passed.most(table, by, says, "limit {max_hot_s}", slowdown_c=SLOWDOWN_C)
    worst = hot["max_temp_c"].idxmax()
    return worst_gpu(
        worst,
        hot,
        ("max_temp_c", "hot_s", "hot_pct"),
        margin=float(hot.at[worst, "hot_s"] - max_hot_s),
        extra={"slowdown_c": SLOWDOWN_C},
    )


@rule(
    measure=measure_throttle,
    severity="warning",
    title="Faulty power readings slow GPUs down",
    checks="Slowdown by faulty power readings",
    says=(
        *WORST_GPU,
        " reported impossible power for {frozen_cap_s} while its power cap was active and its clocks low.",
    ),
    remedy="Reboot or reload the driver, and try another driver version. The fault is known on AD107 laptops "
    "(NVIDIA/open-gpu-kernel-modules issues 1237 and 1287).",
    refuted_by="Not a problem if the power limit is not this board's: state power_limit_w in run.toml.",
)
def power_fault_throttling(t: ThrottleProfile, *, max_frozen_s: float = 60.0) -> Evidence | None:
    """The driver believes the frozen reading and caps a GPU that draws next to nothing.

    Implausible power together with the software power cap bit and clocks below 80 % of the reference, unbroken
    for more than a minute (METHODS 8). A single spike does no harm and does not count.
    """
    table = t.per_gpu
    frozen = table[table["frozen_cap_s"] > max_frozen_s]
    if frozen.empty:
        unknown = table.index[table["frozen_cap_s"].isna()]
        if len(unknown):
            raise NotMeasurable(
                "Power, its limit, clocks and clocks-event reasons of {gpus} are not all known.",
                RECORD_GPU,
                gpus=unknown,
            )
        return None
    worst = frozen["frozen_cap_s"].idxmax()
    return worst_gpu(worst, frozen, ("frozen_cap_s",), margin=float(frozen.at[worst, "frozen_cap_s"] - max_frozen_s))


def _busy(t: ThrottleProfile) -> pd.DataFrame:
    """GPUs that were busy for a minute. Raises NotApplicable where none was."""
    table = t.per_gpu[t.per_gpu["busy_s"] >= MIN_BUSY_S]
    if table.empty:
        raise NotApplicable("No GPU was busy (at 50 % or more) for {least_s}.", least_s=MIN_BUSY_S)
    return table


def _share(
    t: ThrottleProfile,
    share: pd.Series,
    clock_mhz: pd.Series,
    lost_s: pd.Series,
    limit_pct: float,
    *,
    waited: str,
    **flags: pd.Series,
) -> Outcome:
    """The finding that a share of busy time, at that median clock, is above its limit; ``waited`` is its title where
    the other GPUs wait for the one; of ``flags`` the sentence may name the worst GPU's.
    """
    table = _busy(t)
    share = share[table.index]
    if not share.notna().any():
        raise NotMeasurable("Clocks-event reasons that tell of it were not recorded while a GPU was busy.", RECORD_GPU)
    found = share[share > limit_pct]
    if found.empty:
        silent = share.index[share.isna()]
        if len(silent):
            raise NotMeasurable("Clocks-event reasons of {gpus} are unknown.", RECORD_GPU, gpus=silent)
        return Passed.most(
            table.assign(share_pct=share),
            "share_pct",
            "{share_pct} of the busy time",
            "limit {max_share_pct}",
        )
    worst = found.idxmax()
    return _worst(
        t,
        worst,
        table.loc[found.index].assign(share_pct=found, clock_mhz=clock_mhz, lost_s=lost_s),
        margin=float(found[worst] - limit_pct),
        extra={name: bool(flag[worst]) for name, flag in flags.items()},
        waited=waited,
    )


def _worst(
    t: ThrottleProfile,
    worst: object,
    found: pd.DataFrame,
    *,
    margin: float | None,
    severity: Severity | None = None,
    extra: Values | None = None,
    waited: str = "",
) -> Evidence:
    """The finding by the worst GPU. How much slower kernels were meanwhile follows from its median clock then."""
    row = found.loc[worst]
    slower = row["reference_mhz"] / row["clock_mhz"]
    is_slower = bool(slower >= MIN_SLOWER)
    more = {
        "slower_ratio": slower if is_slower else math.nan,
        **_source(row["reference_source"]),
        **_cost(t, found),
    }
    one = worst_gpu(
        worst,
        found,
        ("share_pct", "clock_mhz", "busy_s", "max_temp_c"),
        margin=margin,
        severity=severity,
        extra={**more, **(extra or {})},
    )
    one_holds_all = is_slower and more["together"] and len(found) == 1
    return replace(one, title=waited) if one_holds_all else one


def _cost(t: ThrottleProfile, found: pd.DataFrame) -> dict[str, Value]:
    """What low clocks cost at most: of the GPUs themselves, and of all that were busy where these go at the pace of the
    slowest. Then the losses of several add up, but for what they lost at the same time, and never to more than the
    slowest would lose in all of its time.
    """
    busy, lost = _busy(t)["busy_s"], found["lost_s"]
    slow_s = found["share_pct"] / 100 * found["busy_s"]
    in_all_s = min(float(lost.sum()), float((lost / slow_s).max() * busy.max()))
    several = len(busy) > 1
    return {
        "own_gpu_h": float(lost.sum(skipna=False)) / 3600,
        "all_gpu_h": float(busy.clip(upper=in_all_s).sum()) / 3600,
        "busy_gpu_h": float(busy.sum()) / 3600,
        "n_busy": len(busy),
        "together": several and t.in_step == "yes",
        "maybe_together": several and not t.in_step,
    }


def _source(told_by: object) -> dict[str, Value]:
    """Who told the reference, as conditions of the sentence."""
    return {f"by_{source}": source == told_by for source in SOURCE_NAMES}
