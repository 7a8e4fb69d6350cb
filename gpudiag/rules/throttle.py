"""Do heat, power limits or low clocks hold the GPU back?"""

from __future__ import annotations

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import RECORD_GPU
from gpudiag.measures.throttle import SLOWDOWN_C, ThrottleProfile, measure_throttle
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, Sentence

MIN_BUSY_S = 60.0


def _share_says(what: str) -> Sentence:
    """The sentence that a share of busy time is above its limit."""
    return (
        "{gpu} " + what + " for {share_pct} of its busy time",
        Given("max_clock_mhz", ", at {busy_clock_mhz} of {max_clock_mhz}"),
        ".",
    )


@rule(
    measure=measure_throttle,
    severity="warning",
    title="Heat slows the GPU down",
    checks="Slowdown by heat",
    says=_share_says("was slowed down by heat"),
    remedy="Clean and open the air path, raise the fan curve, or move the neighbor card. A slightly lower power limit "
    "(nvidia-smi -pl) is often as fast.",
    refuted_by="Not a problem if the throttle flag shows up only in single samples when clocks change.",
)
def thermal_throttling(t: ThrottleProfile, *, max_share_pct: float = 5.0) -> Evidence | None:
    """A GPU that is too hot halves its clocks or worse, and utilization does not show it.

    Thermal slow-down bits (0x20, 0x40 of NVML's clocks-event reasons) in more than 5 % of busy time (METHODS 8).
    Without bits: a clock below 0.85 of the highest seen while within 5 °C of 87 °C, for as large a share.
    """
    return _share(t, "thermal_pct", "warm_low_pct", max_share_pct)


@rule(
    measure=measure_throttle,
    severity="warning",
    title="The power limit slows the GPU down",
    checks="Slowdown by the power limit",
    says=_share_says("ran below 80 % of its clock at the power limit"),
    remedy="Compare the limit in force with the default (nvidia-smi -q -d POWER). On laptops check the power adapter "
    "and the performance mode, in servers the power brake of the chassis.",
    refuted_by="Not a problem if the limit was lowered on purpose to save energy.",
    explained_by=("power-fault-throttling",),
)
def power_throttling(t: ThrottleProfile, *, max_share_pct: float = 5.0) -> Evidence | None:
    """The power cap alone is normal for an efficient job; with clocks far down it costs time.

    Power bits (0x4 cap, 0x80 brake) together with a clock below 0.8 of the highest seen, in more than 5 % of busy
    time (METHODS 1 and 8).
    """
    if t.per_gpu["power_pct"].notna().any() and not t.per_gpu["capped_low_pct"].notna().any():
        raise NotMeasurable("The SM clock was not recorded, so what the power cap costs is unknown.", RECORD_GPU)
    return _share(t, "capped_low_pct", None, max_share_pct)


@rule(
    measure=measure_throttle,
    severity="warning",
    title="Clocks are low while the GPU is busy",
    checks="GPU clocks under load",
    says="{gpu} ran at {busy_clock_mhz} while busy (median), {clock_pct} of the {max_clock_mhz} that it reached.",
    remedy="Look for locked clocks (nvidia-smi -q -d CLOCK; nvidia-smi -rgc resets them), a power-saving profile, or "
    "a low performance state.",
    refuted_by="Not a problem if clocks were locked on purpose, or kernels are so short that the GPU never speeds up.",
    explained_by=("power-fault-throttling", "thermal-throttling", "power-throttling"),
)
def clocks_low(t: ThrottleProfile, *, max_clock_pct: float = 60.0, min_share_pct: float = 50.0) -> Evidence | None:
    """Utilization says that kernels run, not how fast: at half the clock they take twice as long.

    The median SM clock of busy time is below 60 % of the highest clock seen, and clocks below 80 % of it fill
    half of the busy time or more (METHODS 8). These are defaults without a published source.
    """
    table = _busy(t)
    if not table["low_pct"].notna().any():
        raise NotMeasurable("The SM clock was not recorded while a GPU was busy.", RECORD_GPU)
    ratio = 100 * table["busy_clock_mhz"] / table["max_clock_mhz"]
    found = table[(ratio < max_clock_pct) & (table["low_pct"] >= min_share_pct)]
    if found.empty:
        return None
    worst = ratio[found.index].idxmin()
    return worst_gpu(
        worst,
        found,
        ("busy_clock_mhz", "max_clock_mhz", "low_pct", "busy_s"),
        margin=float(max_clock_pct - ratio[worst]),
        extra={"clock_pct": float(ratio[worst])},
    )


@rule(
    measure=measure_throttle,
    severity="warning",
    title="The GPU is hot",
    checks="GPU temperature",
    says="{gpu} reached {max_temp_c}; it was at {slowdown_c} or more for {hot_s} ({hot_pct} of the time).",
    remedy="Improve cooling before clocks fall: air path, fan curve, distance to the next card, power limit.",
    refuted_by="Not a problem if this board slows down at a higher temperature (nvidia-smi -q -d TEMPERATURE prints "
    "it).",
)
def temperature_high(t: ThrottleProfile, *, max_hot_s: float = 60.0) -> Evidence | None:
    """Near its slow-down threshold a GPU has no reserve, and ages faster.

    At 87 °C or more, where slow-down begins on many boards, 87-93 °C (METHODS 8), for more than a minute.
    """
    table = t.per_gpu
    if not table["hot_s"].notna().any():
        raise NotMeasurable("Temperature was not recorded.", RECORD_GPU)
    hot = table[table["hot_s"] > max_hot_s]
    if hot.empty:
        return None
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
    title="A faulty power reading slows the GPU down",
    checks="Slowdown by faulty power readings",
    says="{gpu} reported impossible power for {frozen_cap_s} while its power cap was active and its clocks low.",
    remedy="Reboot or reload the driver, and try another driver version. The fault is known on AD107 laptops "
    "(NVIDIA/open-gpu-kernel-modules issues 1237 and 1287).",
    refuted_by="Not a problem if the power limit is not this board's: state power_limit_w in run.toml.",
)
def power_fault_throttling(t: ThrottleProfile, *, max_frozen_s: float = 60.0) -> Evidence | None:
    """The driver believes the frozen reading and caps a GPU that draws next to nothing.

    Implausible power together with the software power cap bit and clocks below 80 % of the highest seen, unbroken
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


def _share(t: ThrottleProfile, column: str, other: str | None, limit_pct: float) -> Evidence | None:
    """The finding that a share of busy time is above its limit; ``other`` stands in where the bits are unknown."""
    table = _busy(t)
    share = table[column].fillna(table[other]) if other else table[column]
    if not share.notna().any():
        raise NotMeasurable("Clocks-event reasons were not recorded while a GPU was busy.", RECORD_GPU)
    found = share[share > limit_pct]
    if found.empty:
        silent = share.index[share.isna()]
        if len(silent):
            raise NotMeasurable("Clocks-event reasons of {gpus} are unknown.", RECORD_GPU, gpus=silent)
        return None
    worst = found.idxmax()
    return worst_gpu(
        worst,
        table.loc[found.index].assign(share_pct=found),
        ("share_pct", "busy_s", "max_temp_c"),
        margin=float(found[worst] - limit_pct),
    )
