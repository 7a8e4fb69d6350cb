"""Memory capacity in words and tables."""

from __future__ import annotations

import math

import numpy as np

from gpudiag.advice._engine.misreadings import CLEAN_RUN
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.capacity import MemoryCapacity
from gpudiag.forecast.memory.crashes import LOST, MIN_SEEN
from gpudiag.forecast.memory.levels import ENDS
from gpudiag.forecast.memory.overflow import SPARED_SHARE
from gpudiag.forecast.memory.rates import clean_chance, most_if_none, rate_without_streak, trials_to_show
from gpudiag.forecast.memory.recommended import MOST_NET
from gpudiag.report._render.blocks import (
    Block,
    Folded,
    Heading,
    Note,
    Number,
    RecommendationBlock,
    TableBlock,
    TableCell,
)
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import (
    UNKNOWN,
    count,
    duration,
    gib,
    memory,
    number,
    plural,
    points,
    quantity,
    share,
    significance,
)
from gpudiag.report.kinds.parallelism import between, room_at_once

MAX_COMBINATIONS = 12
SHOWN_RATE = 0.05
MANY_PER_DAY = 2000
"""Trials per day from which they are told per hour."""
CLASSES = {
    "oom": "out of GPU memory", "device_assert": "device-side assert", "illegal_access": "illegal memory access",
    "host_killed": "killed from outside (host memory, or a limit)", "gpu_lost": "GPU lost", "nccl": "NCCL",
    "shm": "shared memory full",
    "time_limit": "time limit", "nan": "not a number (NaN)",
    "other": "another error", "unknown": "failed without a text", LOST: "left RUNNING: the process ended",
}  # fmt: skip
NOT_MEMORY = {
    "device_assert": "An assert is a logic error such as an index out of range: no limit on memory prevents it, and it "
    "poisons its process.",
    "host_killed": "That is the host's memory, not the GPU's.",
}


@shown_as.register
def tell(capacity: MemoryCapacity) -> list[Block]:
    """What fits, what crashes cost, which parameters take the memory, and the constraint."""
    out: list[Block] = [Heading(f"Memory capacity of {capacity.run}")]
    if capacity.reason:
        out.append(Note(capacity.reason, "unknown"))
    else:
        out.append(Note(_sources(capacity)))
    out += _levels(capacity)
    out += [Note(text) for text in (_advice(capacity), _steps(capacity)) if text]
    out += _grounds(capacity)
    out += [Note(text) for text in _evidence(capacity)]
    if len(capacity.combinations):
        out += [Heading("Memory by parameters"), _combinations(capacity)]
    return [*out, *_constraint(capacity)]


def by_number(capacity: MemoryCapacity) -> list[Block]:
    """For the report of a run: the number to choose and why, and folded what each number takes and each parameter."""
    advised = _advice(capacity).partition(". ")[0]
    parts: list[Block] = [*([Note(_sources(capacity))] if not capacity.reason else []), *_levels(capacity)]
    if len(capacity.combinations):
        parts += [Heading("Memory by parameters"), _combinations(capacity)]
    k = _chosen(capacity)
    other = _alternative(capacity, k) if k else ""
    said: list[Block] = [] if math.isnan(capacity.recommended_k) else [Note(f"{advised.removesuffix('.')}.{other}")]
    return [*said, Folded("Memory, failures and trials a day by number at once", tuple(parts))] if parts else said


def to_run(capacity: MemoryCapacity, now: int) -> str:
    """How many trials to run at once, and what speaks for another number; '' where memory does not decide."""
    k, on_all = _chosen(capacity), capacity.workers(now)
    if not on_all:
        return ""
    where = f", {k} on each GPU" if capacity.n_gpus > 1 and on_all == k * capacity.n_gpus else ""
    advised = f"Stay at {plural(on_all, 'trial')}" if on_all == now else f"Run {plural(on_all, 'trial')}"
    instead = "" if on_all == now else f" instead of {now}"
    brings = _over_now(capacity, on_all, now) or _alternative(capacity, k)
    return f"{advised} at once{instead}{where}, {capacity.because}.{brings}"


def _over_now(capacity: MemoryCapacity, on_all: int, now: int) -> str:
    """What another number brings of trials that end well, where it is forecast; '' for that of now."""
    gain = capacity.gains.by_k.get(on_all // capacity.n_gpus)
    if gain is None or not gain.known or on_all == now or now != capacity.gains.now:
        return ""
    return f" That would end {between(gain)} times as many trials well as now."


def _chosen(capacity: MemoryCapacity) -> int:
    """The number that memory recommends, 0 where it recommends or limits none."""
    return int(capacity.recommended_k) if capacity.limits else 0


def _sources(capacity: MemoryCapacity) -> str:
    room, method = capacity.room, capacity.trials["method"].value_counts()
    text = f"GPU {capacity.gpu} has {memory(room.total_mib)}, of which {memory(room.baseline_mib)} are in use without "
    text += f"trials; {share(100 * SPARED_SHARE)} are spared, so that {memory(room.usable_mib)} are usable. "
    separated = int(method.get("end", 0) + method.get("sum", 0))
    if not {"process", "attribute"} & set(method.index):
        told = f"Peaks of {plural(separated, 'trial')} were" if separated else "No trial's peak could be"
        text += f"{told} worked out from the memory of all together"
        if not math.isnan(capacity.error_pct):
            text += f" (off by {share(capacity.error_pct)} in the mean, by their intervals)"
        rest = int(method.get("parameters", 0) + method.get("typical", 0))
        if rest:
            by = " and ".join(capacity.parameters) or "the others"
            text += f"; {plural(rest, 'trial')} {'is' if rest == 1 else 'are'} judged by {by}"
        if open_ended := int(method.get("bounds", 0)):
            text += f"; of {plural(open_ended, 'trial')} there are bounds only"
        return text + "."
    return (
        text
        + f"Peaks of {plural(int(method.get('process', 0)), 'trial')} come from the record of processes"
        + (
            f", of {int(method['attribute'])} from what they stored, plus a CUDA context."
            if "attribute" in method
            else "."
        )
    )


def _levels(capacity: MemoryCapacity) -> list[Block]:
    """Trials at once against memory, margin, failures and throughput."""
    rows = capacity.table.to_dict("records")
    columns = {
        "GiB": [gib(row["typical_mib"]) for row in rows],
        "Margin GiB": [_margin(row) for row in rows],
    }
    if capacity.reason:
        columns = {"Seen max": [_seen_max(row) for row in rows]}
    hours = 1 if capacity.table["rate_day_high"].max() >= MANY_PER_DAY else 24
    per = "Trials/h" if hours == 1 else "Trials/day"
    columns |= {
        "Failed %": [_pct(Estimate(row["failed_pct"], row["failed_low_pct"], row["failed_high_pct"])) for row in rows],
        per: [_rate(row, "rate", hours) for row in rows],
        "with crashes": [_rate(row, "net", hours) for row in rows],
    }
    restart = capacity.restart
    low, usual, high = (quantity(x, "h") for x in (restart.hours.low, restart.hours.value, restart.hours.high))
    cost = {
        "given": f"{usual}, as given,",
        "seen": f"{usual} ({low} to {high}), as seen after failures,",
        "unknown": f"{low} to {high}, for nobody said and no failure shows it,",
    }[restart.how]
    words = {
        "GiB": "GiB: memory of so many trials together, the median.",
        "Margin GiB": "Margin: what is usable less what one set in twenty takes.",
        "Seen max": "Seen max: the greatest reading while so many ran.",
        "Failed %": "Failed: trials that fail for any reason, by how many ran when each ended (a finding may count "
        f"by workers, whose gaps between trials make these fewer), as counted where {MIN_SEEN} or more ended, else as "
        "forecast.",
        per: f"{per}: as if none crashed, all GPUs together.",
        "with crashes": "With crashes: those that end well, as counted where so many workers ran "
        f"for {MIN_SEEN} trials, else with restarts. A restart takes {cost} and stops "
        f"{'all trials' if restart.whole else 'its own worker'}.",
    }  # fmt: skip
    return _table(capacity, columns, words, "In brackets 95 %; At once: trials on a GPU.")


def _grounds(capacity: MemoryCapacity) -> list[Block]:
    """What the crash risk rests on: overflows that were seen, and those that the peaks of single trials let expect."""
    rows = capacity.table.to_dict("records")
    columns = {
        "Largest": [memory(row["worst_mib"]) for row in rows],
        "All fit": [_all_fit(row, capacity.room.usable_mib) for row in rows],
        "Overflow %": [_short(row["p_overflow_pct"]) for row in rows],
        "at most": [_short(row["p_high_pct"]) for row in rows],
        "Any overflow %": [
            _risk(Estimate(row["study_risk_pct"], row["study_low_pct"], row["study_high_pct"])) for row in rows
        ],
    }
    if capacity.reason:
        columns = {}
    columns["Out of memory"] = [_out_of_memory(row) for row in rows]
    words = {
        "Largest": "Largest: the largest trials together, in the mean over what the log leaves open of their peaks.",
        "Overflow %": "Overflow: an estimate of the share of trials at whose end so many at once hold more than there "
        "is; at most: as if all peaks came at the same time and one trial more had been seen, twice as large as the "
        "largest (95 %).",
        "Any overflow %": f"Any overflow: at least one in {plural(capacity.n_trials, 'trial')} like those seen.",
        "Out of memory": "Out of memory: trials that ended so with so many at once.",
    }  # fmt: skip
    return _table(capacity, columns, words, "In brackets 95 %, in percent; At once: trials on a GPU.")


def _table(capacity: MemoryCapacity, columns: dict[str, list[str]], words: dict[str, str], last: str) -> list[Block]:
    """A table by number at once, without columns and rows of which nothing is known, and words for what it shows."""
    shown = {name: cells for name, cells in columns.items() if set(cells) != {UNKNOWN}}
    rows = [
        (
            Number(f"{k} (recommended)" if k == _chosen(capacity) else str(k)),
            *(cells[i] if cells[i] in ("yes", "no", "not sure") else Number(cells[i]) for cells in shown.values()),
        )
        for i, k in enumerate(capacity.table["k"])
        if any(cells[i] != UNKNOWN for cells in shown.values())
    ]
    caption = " ".join([words[name] for name in shown if name in words] + [last])
    return [TableBlock(("At once", *shown), tuple(rows), caption)] if rows else []


def _all_fit(row: dict[str, float], usable_mib: float) -> str:
    if row["hard_fit"]:
        return "yes"
    return "no" if row["p_low_pct"] > 0 or row["worst_low_mib"] > usable_mib else "not sure"


def _out_of_memory(row: dict[str, float]) -> str:
    if not row["seen_n"] >= 1:
        return UNKNOWN
    ends = f"{_short(row['oom_low_pct'])}–{_short(row['oom_high_pct'])}"
    return f"{count(row['oom_events'])} of {count(row['seen_n'])} ({ends})"


def _seen_max(row: dict[str, float]) -> str:
    return memory(row["seen_max_mib"]) if row["seen_max_mib"] >= 0 else UNKNOWN


def _rate(row: dict[str, float], name: str, hours: int) -> str:
    value, low, high = (hours / 24 * row[f"{name}_day{end}"] for end in ENDS)
    return between(Estimate(value, low, high, "trials/h", math.isnan(value)))


def _margin(row: dict[str, float]) -> str:
    return f"{gib(row['margin_mib'])} ({gib(row['margin_low_mib'])} to {gib(row['margin_high_mib'])})"


def _pct(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return UNKNOWN
    return f"{_short(estimate.value)} ({_short(estimate.low)}–{_short(estimate.high)})"


def _risk(estimate: Estimate) -> str:
    """The same of a risk; an interval from hardly ever to nearly always tells nothing."""
    return UNKNOWN if estimate.low < 1 and estimate.high > 99 else _pct(estimate)


def _short(value: float) -> str:
    """A share without its sign, which stands in the heading."""
    return share(value).removesuffix(" %").replace(" ", "")


def _advice(capacity: MemoryCapacity) -> str:
    if math.isnan(capacity.recommended_k):
        return f"No number of trials at once is recommended: {capacity.because}."
    k = int(capacity.recommended_k)
    where = " on each GPU" if capacity.n_gpus > 1 else ""
    if capacity.limits:
        text = f"Recommended: {k} at once{where}, {capacity.because}.{_alternative(capacity, k)}"
    else:
        most = int(capacity.table.loc[capacity.table["k"] <= capacity.hard_fit_k, "k"].max())
        more = " or more" if most == capacity.table["k"].max() else ""
        held = room_at_once(most, capacity.overflow(most).high, f"{more}{where}")
        looked_at = (
            f"Up to {k} at once were looked at" if k == capacity.table["k"].max() else f"At most {k} ran at once"
        )
        ran = f"{looked_at}, and memory"
        if capacity.because == MOST_NET:
            ran = f"Recommended: {k} at once{where}, {capacity.because}.{_alternative(capacity, k)} Memory"
        text = f"{ran} is not what limits: {held}"
    if k > capacity.hard_fit_k:
        least = (
            "not even the largest trial is sure to fit alone"
            if capacity.hard_fit_k == 0
            else f"the largest trials are sure to fit up to {int(capacity.hard_fit_k)} at once only"
        )
        text += (
            f" But {least}: beyond that an overflow will come in a long study, and must cost one trial only (catch "
            "torch.OutOfMemoryError, free, fail) or be refused before it starts."
        )
    row = capacity.table.set_index("k").loc[k]
    if row["p_overflow_pct"] < 0.05 and row["hard_fit"]:
        n = int(capacity.trials["peak_mib"].notna().sum()) // k
        text += (
            f" No set of {k} of the trials seen overflows; {n} such sets without a trial in common show only that "
            f"fewer than {share(100 * most_if_none(max(n, 1)))} do."
        )
    check = trials_to_show(SHOWN_RATE)
    limit = 100 * min(row["p95_mib"], capacity.room.usable_mib) / capacity.room.total_mib
    if limit == limit:
        text += (
            f" It worked if memory stays below {share(math.ceil(limit))} in 19 of 20 readings, and {check} trials in "
        )
    else:
        text += f" It worked if {check} trials in "
    return text + f"a row pass without an overflow (which shows a rate below {share(100 * SHOWN_RATE)}, no more)."


def _alternative(capacity: MemoryCapacity, k: int) -> str:
    """The number at once with more trials per day that end well, if there is one."""
    table = capacity.table.set_index("k")
    best = table["net_day"].idxmax() if table["net_day"].notna().any() else k
    if best == k or not table.at[best, "net_day"] > table.at[k, "net_day"]:
        return ""
    rates = [
        between(Estimate(table.at[n, "net_day"], table.at[n, "net_day_low"], table.at[n, "net_day_high"], "trials/d"))
        for n in (best, k)
    ]
    surely = table.at[best, "net_day_low"] > table.at[k, "net_day_high"]
    return (
        f" {best} at once would end {rates[0]} trials per day well, against {rates[1]} with {k}"
        f"{'' if surely else ': more is not shown'}."
    )


def _steps(capacity: MemoryCapacity) -> str:
    """What one trial less at once costs, with crashes and without, between levels that were seen."""
    table = capacity.table[(capacity.table["seen_n"] >= 1) & capacity.table["net_day"].notna()].set_index("k")
    said = []
    for k in sorted(table.index, reverse=True):
        if k - 1 in table.index and k > 1:
            plain, net = (100 * (table.at[k - 1, name] / table.at[k, name] - 1) for name in ("rate_day", "net_day"))
            said.append(
                f"{k} to {k - 1}: {points(plain)}, with crashes {points(net)} (in proportion {points(-100 / k)})"
            )
    return f"Trials per day from {'; '.join(said)}." if said else ""


def _evidence(capacity: MemoryCapacity) -> list[str]:
    """Crashes by class, streaks, and what restarts took."""
    crashes = capacity.crashes
    out = [_one_class(row, crashes.ok_before_pct) for row in crashes.by_class.to_dict("records")]
    events = crashes.events()
    if not events:
        most = share(100 * most_if_none(crashes.n)) if crashes.n else UNKNOWN
        return [f"No trial crashed: 0 in {crashes.n} shows only that fewer than {most} do (95 %)."]
    streak = crashes.success_streak
    text = f"The longest run without a failure was {plural(streak, 'trial')}. " if streak else "Every trial failed. "
    pooled = [row for row in capacity.table.to_dict("records") if row["crash_how"] == "seen"]
    if pooled:
        chances = ", ".join(f"{_clean_run(row)} at {row['k']} at once" for row in pooled)
        text += f"The chance of {CLEAN_RUN} in a row without a crash is {chances}. "
    if crashes.success_streak < CLEAN_RUN <= crashes.n:
        low, middle = (100 * rate_without_streak(crashes.n, CLEAN_RUN, chance) for chance in (0.05, 0.5))
        text += (
            f"That {CLEAN_RUN} in a row never came in {crashes.n} shows a rate of {share(low)} or more (95 %; median "
            f"{share(middle)}). "
        )
    text += f"{CLEAN_RUN} in a row would show only a rate below {share(100 * most_if_none(CLEAN_RUN))}."
    out.append(text)
    if len(crashes.restart_s):
        usual = float(np.median(crashes.restart_s))
        total = usual * len(crashes.restart_s)
        part = share(100 * total / (float(capacity.trials["duration_s"].sum()) + total))
        out.append(
            f"After {plural(len(crashes.restart_s), 'failure')} the worker was idle, for {duration(usual)} as a rule: "
            f"{part} of all worker time."
        )
    return out


def _clean_run(row: dict[str, float]) -> str:
    """Chance of so many trials without a crash, with its interval where that says more."""
    value, low, high = (
        share(100 * clean_chance(row[name] / 100, CLEAN_RUN))
        for name in ("crash_pct", "crash_high_pct", "crash_low_pct")
    )
    return value if value == low == high else f"{value} ({low} to {high})"


def _one_class(row: dict[str, float], well_pct: float) -> str:
    kind = str(row["kind"])
    name = CLASSES.get(kind, kind)
    text = f"{name[:1].upper()}{name[1:]}: {plural(int(row['n_events']), 'event')}"
    if row["n_trials"] > row["n_events"]:
        text += f" in {plural(int(row['n_trials']), 'trial')} (the rest followed in the same process)"
    text += f", {share(row['event_pct'])} of the trials ({share(row['low_pct'])} to {share(row['high_pct'])})."
    if not math.isnan(row["before_pct"]) and not math.isnan(well_pct):
        text += (
            f" In the minute before, memory stood at {share(row['before_pct'])} (median), against "
            f"{share(well_pct)} before trials that ended well"
        )
        if not math.isnan(row["p_memory"]):
            shown = "fuller" if row["p_memory"] < 0.01 else "not shown to be fuller"
            text += f" ({shown}, Mann-Whitney {significance(row['p_memory'])})"
        text += "."
        if row["p_memory"] < 0.01 and kind not in ("oom",):
            text += " Full memory goes with them; that is no proof of a cause."
    return f"{text} {NOT_MEMORY[kind]}" if kind in NOT_MEMORY else text


def _combinations(capacity: MemoryCapacity) -> TableBlock:
    names = [name for name in capacity.parameters if name in capacity.combinations]
    head = capacity.combinations.head(MAX_COMBINATIONS)
    rows = []
    for row in head.to_dict("records"):
        cells: list[TableCell] = [str(row[name]) for name in names]
        ends = f"{gib(row['low_mib'])}–{gib(row['high_mib'])}"
        cells += [Number(f"{gib(row['peak_mib'])} ({ends})"), Number(memory(row["max_mib"]))]
        cells += [Number(f"{row['n_trials']}"), Number(_short(row["share_pct"])), Number(f"{row['n_oom']}")]
        rows.append(tuple(cells))
    more = len(capacity.combinations) - len(head)
    caption = "Largest first. In brackets the ends of its trials' intervals" + (
        f"; {more} smaller ones more" if more else ""
    )
    columns = (*names, "Peak GiB", "Largest", "Trials", "% of all", "Out of memory")
    return TableBlock(columns, tuple(rows), caption + ".")


def _constraint(capacity: MemoryCapacity) -> list[Block]:
    """The constraint to propose, and what others would refuse."""
    one = capacity.needed_constraint()
    if one is None:
        return []
    beyond = [each for each in capacity.constraints if each.k > capacity.hard_fit_k and each.leaves_some]
    best = {True: "The best trial was among them", False: "The best trial was not among them", None: ""}[
        one.best_refused
    ]
    limit = f"an equal share, {memory(one.limit_mib)}: then any {one.k} fit together"
    if one.k == 1:
        limit = f"what is usable, {memory(one.limit_mib)}"
    text = (
        f"No trial larger than {limit}. It would have "
        f"refused {plural(one.n_refused, 'trial')} of {one.n} ({share(100 * one.n_refused / one.n)})"
    )
    if one.n_oom:
        text += f", {one.n_oom_refused} of the {one.n_oom} that ran out of memory; the others are within the limit"
    others = ", ".join(
        f"{each.k} at once: {each.n_refused} ({memory(each.limit_mib)})" for each in beyond if each is not one
    )
    notes = [("changes results", "The sampler sees a smaller space." + (f" {best}." if best else ""))]
    if others:
        notes.append(("refused", others))
    title = f"Refuse trials that do not fit {one.k} at once"
    return [
        RecommendationBlock(
            "memory-constraint", title, number(one.n_refused) + " refused", text + ".", one.code, tuple(notes)
        )
    ]
