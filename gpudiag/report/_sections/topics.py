"""The sections about one topic each: numbers measured, beside the picture of the same profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from gpudiag._run.directions import STATE_DIRECTION
from gpudiag.facts import Column, Fact
from gpudiag.measures.base import NO_SEARCH
from gpudiag.measures.jobs import JobsProfile
from gpudiag.measures.ledger import GpuLedger, LedgerProfile
from gpudiag.measures.memory import GpuMemory, MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile, WorkerCount
from gpudiag.measures.power import GpuPower, PowerProfile
from gpudiag.measures.pruning import PruningProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plain_data import Scalar
from gpudiag.report._render.blocks import Block, Figure, Folded, Note, Number, TableBlock, TableCell, Tiles
from gpudiag.report._sections.bottleneck import bottleneck, limit
from gpudiag.report._sections.causes import causes
from gpudiag.report._sections.failed_trials import failed_trials
from gpudiag.report._sections.key_numbers import gpus_of_jobs, jobs_alone, mean_util_pct, of_studies
from gpudiag.report.document import Document, NotMeasured, TopicValues
from gpudiag.report.format import (
    UNKNOWN,
    at_most,
    duration,
    estimated,
    interval,
    named,
    plural,
    precise,
    quantity,
    safe,
    share,
)
from gpudiag.schema import IDLE_PCT, OUTCOMES

T = TypeVar("T")
Facts = tuple[tuple[Fact[Any], str], ...]
"""Facts and the words beside them."""
TopicColumns = tuple[tuple[Column[Any], str], ...]
"""Columns of a table with a row a GPU, and their headings."""

COURSE: Facts = (
    (TrialsProfile.n, "trials"),
    (TrialsProfile.span_s, "from first start to last end"),
    (TrialsProfile.fail_pct, "of finished trials failed"),
)
PRUNING: Facts = (
    (PruningProfile.cost_pct, "of worker time went to pruned trials"),
    (PruningProfile.median_step, "median last step"),
    (PruningProfile.first_step, "earliest last step"),
    (PruningProfile.budget_pct, "of their full budget was used"),
)
RATES = (
    ("all trials", PruningProfile.of_all_pct, PruningProfile.of_all_low_pct, PruningProfile.of_all_high_pct),
    ("finished trials", PruningProfile.of_finished_pct, PruningProfile.of_finished_low_pct,
     PruningProfile.of_finished_high_pct),
    ("COMPLETE and PRUNED", PruningProfile.of_decided_pct, PruningProfile.of_decided_low_pct,
     PruningProfile.of_decided_high_pct),
)  # fmt: skip
AT_ONCE: Facts = (
    (ParallelismProfile.effective, "trials at once on average"),
    (ParallelismProfile.configured, "were configured"),
    (ParallelismProfile.peak, "at the peak"),
    (ParallelismProfile.efficiency_pct, "of the configured workers used"),
    (ParallelismProfile.median_gap_s, "median gap on a worker"),
    (ParallelismProfile.n_open, "without a known end"),
)
USE: TopicColumns = (
    (GpuLedger.mean_util_pct, "Mean"),
    (GpuLedger.p5_pct, "p5"),
    (GpuLedger.p50_pct, "Median"),
    (GpuLedger.p95_pct, "p95"),
    (GpuLedger.max_pct, "Max"),
    (GpuLedger.idle_pct, "Idle"),
    (GpuLedger.idle_s, "Idle time"),
    (GpuLedger.coverage_pct, "Observed"),
)
POWER: TopicColumns = (
    (GpuPower.mean_w, "Mean power"),
    (GpuPower.max_w, "Max"),
    (GpuPower.limit_w, "Limit"),
    (GpuPower.energy_kwh, "Energy, observed"),
    (GpuPower.mean_temp_c, "Mean temp."),
    (GpuPower.max_temp_c, "Max temp."),
    (GpuPower.n_rejected, "Set aside"),
)
MEMORY: TopicColumns = (
    (GpuMemory.total_mib, "Total"),
    (GpuMemory.mean_mib, "Mean"),
    (GpuMemory.p99_mib, "p99"),
    (GpuMemory.max_mib, "Max"),
    (GpuMemory.max_used_pct, "Max used"),
    (GpuMemory.headroom_mib, "Headroom"),
)


def trials(document: Document) -> list[Block]:
    """What became of the trials, how long they took, and how much was pruned."""
    facts = document.values(TrialsProfile)
    if not facts:
        return [] if of_a_training(document) else [_missing(document, "trials")]
    rows = [_outcome(facts, state) for state in OUTCOMES if facts.get(TrialState.n.at(state))]
    columns = ("State", "Trials", "Share", "95 % interval", "Median", "Longest", "Worker time")
    many = of_studies(document)
    caption = f"Shares are of all trials{many}; durations of those with a known end{' taken together' if many else ''}."
    table = TableBlock(columns, tuple(rows), caption)
    pictures = (Figure("durations"), Figure("duration_ecdf"), Figure("parallel_coordinates"))
    parts = (_tiles(facts, *COURSE, *_abandoned(facts)), *pictures)
    if document.headline.level == "ok":  # nothing to look for: the sentence is enough
        more = Folded("By state, and how long trials took", (table, *parts))
        return [Note(_completed(document)), *_never_best(facts), more, *_pruning(document)]
    more = Folded("How long trials took", parts)
    said = (*failed_trials(document), *_never_best(facts))
    return [Note(_completed(document)), table, *said, more, *_pruning(document)]


def of_a_training(document: Document) -> bool:
    """Whether the run is a training by itself, with no search around it."""
    gap = document.not_measured.get("trials")
    return gap is not None and gap.reason == NO_SEARCH


def _abandoned(facts: TopicValues) -> Facts:
    """How many RUNNING trials are dead: a least number where others may be, nothing where none is known to be."""
    n = facts.get(TrialsProfile.abandoned)
    words = "abandoned" if n == facts.get(TrialsProfile.n_running) else "or more abandoned"
    return ((TrialsProfile.abandoned, words),) if n else ()


def _completed(document: Document) -> str:
    """What became of the trials, and the best of them."""
    facts = document.values(TrialsProfile)
    n, complete = facts.get(TrialsProfile.n), facts.get(TrialState.n.at("COMPLETE")) or 0
    return f"{complete:,} of {plural(n, 'trial')}{of_studies(document)} completed.{_best(facts) or _no_best(document)}"


def _best(facts: TopicValues) -> str:
    """The best trial by number, value and parameters; '' without one, or with several studies."""
    trial, value = facts.get(TrialsProfile.best_trial), facts.get(TrialsProfile.best_value)
    way = facts.get(TrialsProfile.best_direction)
    if not trial or value is None or not way:
        return ""
    params = str(facts.get(TrialsProfile.best_params) or "")
    what = f": {safe(params)}" if params else ""
    return f" Trial {trial} was best, with a value of {precise(value)} ({way.lower()}d){what}."


def _no_best(document: Document) -> str:
    """What would tell the best trial, where nothing says which value is better."""
    unknown = document.values(SearchProfile).get(SearchProfile.n_undirected)
    return (
        f" Which trial was best is not known: nothing says which values are better. {STATE_DIRECTION}"
        if unknown
        else ""
    )


def _outcome(facts: TopicValues, state: str) -> tuple[str | Number, ...]:
    def fact(column: Column[T]) -> T | None:
        return facts.get(column.at(state))

    low, high = fact(TrialState.low_pct), fact(TrialState.high_pct)
    durations = (TrialState.median_s, TrialState.max_s, TrialState.total_worker_s)
    times = [named(one.name, fact(one)) for one in durations] if fact(TrialState.n_timed) else []
    return (
        state,
        Number(named("n", fact(TrialState.n), exact=True)),
        Number(estimated(fact(TrialState.share_pct), low, high, "%")),
        Number(interval(low, high, "%")),
        *(Number(text) for text in times or [UNKNOWN] * 3),
    )


def _never_best(facts: TopicValues) -> list[Block]:
    """How many COMPLETE trials broke a constraint or have an infinite value, where any did."""
    why = {TrialsProfile.n_infeasible: "broke a constraint", TrialsProfile.n_infinite: "ended with an infinite value"}
    of = plural(facts.get(TrialState.n.at("COMPLETE")) or 0, "COMPLETE trial")
    numbers = ((facts.get(n), said) for n, said in why.items())
    return [Note(f"{n:,} of {of} {said}: none counts as best.") for n, said in numbers if n]


def _pruning(document: Document) -> list[Block]:
    facts = document.values(PruningProfile)
    if not facts.get(PruningProfile.n_pruned):
        return []
    rows = tuple(
        (f"of {name}", Number(estimated(facts.get(rate), facts.get(low), facts.get(high), "%")),
         Number(interval(facts.get(low), facts.get(high), "%")))
        for name, rate, low, high in RATES
    )  # fmt: skip
    tiles = _tiles(facts, *PRUNING)
    caption = "The pruning rate in its three definitions: they differ, so a rate without its base says little."
    shown = TableBlock(("Pruned", "Rate", "95 % interval"), rows, caption)
    return [Folded("Pruning: how many, when, and what it cost", (tiles, shown, Figure("prune_steps")))]


def timeline(document: Document) -> list[Block]:
    """Nothing but its picture; without trials and telemetry, what would draw it."""
    known = any(document.values(profile) for profile in (ParallelismProfile, UtilizationProfile, MemoryProfile))
    return [Figure("timeline") if known else _missing(document, "parallelism")]


def parallelism(document: Document) -> list[Block]:
    """How many trials ran at once, against what was asked for."""
    facts = document.values(ParallelismProfile)
    if not facts:
        return [_missing(document, "parallelism")] if document.run.n_trials else []  # the section on trials says it
    tiles = _all_workers(_tiles(facts, *AT_ONCE), facts)
    more = Folded("Over time, and the gaps between trials", (tiles, Figure("concurrency"), Figure("gaps")))
    return [Note(_at_once(facts)), *_staff(facts), more]


def _at_once(facts: TopicValues) -> str:
    """How many trials ran at once, of how many configured, and what trials without an end leave open."""
    effective, configured = facts.get(ParallelismProfile.effective), facts.get(ParallelismProfile.configured)
    of = f"; {plural(configured, 'worker')} {'was' if configured == 1 else 'were'} configured" if configured else ""
    mean = quantity(effective)
    if facts.get(ParallelismProfile.selected):
        return f"Of the selected trials {mean} ran at once on average; others ran meanwhile."
    ran = "trials ran one at a time" if mean == "1" else f"on average {mean} trials ran at once"
    text = f"{ran[0].upper()}{ran[1:]}{of}."
    low, high = facts.get(ParallelismProfile.effective_low), facts.get(ParallelismProfile.effective_high)
    n_open = facts.get(ParallelismProfile.n_open)
    if n_open and low is not None and high is not None:
        text += f" {plural(n_open, 'trial')} never got an end in the study"
        same = quantity(low) == quantity(high)
        text += "." if same else f", so it was at least {quantity(low)} and at most {quantity(high)}."
    return text


def _staff(facts: TopicValues) -> list[Block]:
    """That workers came or went, where they did."""
    steps = sorted(facts.by_row(WorkerCount).items(), key=lambda step: int(step[0]))
    if len(steps) < 2:
        return []
    numbers = " → ".join(str(step["n_workers"]) for _, step in steps)
    when = ", ".join(duration(cast(float, step["from_s"])) for _, step in steps[1:])
    return [Note(f"Workers came or went: {numbers}, changing {when} after the first start.")]


def _all_workers(tiles: Tiles, facts: TopicValues) -> Tiles:
    """A share above 100 % in words: more trials ran than there were workers for them."""
    used = facts.get(ParallelismProfile.efficiency_pct)
    if used is None or used <= 100:
        return tiles
    words = dict(AT_ONCE)[ParallelismProfile.efficiency_pct]
    more = f"all, and {share(used - 100)} more"
    return Tiles(tuple((name, more if name == words else value) for name, value in tiles.items))


def utilization(document: Document) -> list[Block]:
    """How busy each GPU was, and what power it drew."""
    accounted = document.values(LedgerProfile)
    use = accounted.by_row(GpuLedger)
    when = "From the first trial to the last" if accounted.get(LedgerProfile.has_trials) else "Over the whole record"
    caption = f"{when}, weighted by time. Idle is below {share(IDLE_PCT)} utilization, as in the table of GPU time."
    jobs = jobs_alone(document)
    blocks: list[Block] = [Note(_of_jobs(jobs)) if jobs else _missing(document, "utilization")]
    if use:
        several = [Figure("utilization_map")] if len(use) > 1 else []
        said = " ".join(filter(None, (_room(document), limit(document))))
        parts = (
            Figure("utilization"),
            *several,
            _gpu_table(use, USE, caption),
            *causes(document),
            *bottleneck(document),
        )
        blocks = [*([Note(said)] if said else []), Folded("Utilization of each GPU, and what limited it", parts)]
    power = document.values(PowerProfile).by_row(GpuPower)
    if power:
        caption = "Readings that the board cannot produce are set aside before a mean is taken."
        shown = (Figure("power"), Figure("power_use"), _gpu_table(power, POWER, caption))
        blocks.append(Folded("Power and temperature", shown))
    return blocks


def _of_jobs(jobs: TopicValues) -> str:
    """What jobstats recorded of the GPUs of jobs: means, so that what happened within a job stays unknown."""
    hours, unused_h = jobs[JobsProfile.recorded_gpu_h], jobs[JobsProfile.unused_gpu_h]
    text = (
        f"jobstats recorded {gpus_of_jobs(jobs)}, {quantity(hours, 'GPU-h')}: their mean utilization was "
        f"{share(jobs[JobsProfile.mean_util_pct])}, weighted by time."
    )
    if n := jobs[JobsProfile.unused_gpus]:
        are = "was" if n == 1 else "were"
        text += f" {plural(n, 'GPU')} {are} at 0 % for a whole job, {quantity(unused_h, 'GPU-h')}: ask for fewer."
    return f"{text} These are means over whole jobs; telemetry would show when the GPUs were idle."


def _room(document: Document) -> str:
    """What this run's utilization leaves to gain at most; '' where it is unknown."""
    busy = document.advice.busy_pct
    if not busy:
        return ""
    mean, trials = mean_util_pct(document), document.values(LedgerProfile).get(LedgerProfile.has_trials)
    alike = mean is None or share(mean) == share(busy)
    which = "" if alike else " while trials ran" if trials else " of the GPUs that worked"
    faster = f"{'trials' if trials else 'it'} at most {at_most(100 / busy)} as fast"
    return f"Mean utilization{which} was {share(busy)}: kernels that never pause would make {faster}."


def memory(document: Document) -> list[Block]:
    """How full each GPU's memory was."""
    use = document.values(MemoryProfile).by_row(GpuMemory)
    if not use:
        return [_missing(document, "memory")]
    caption = "What the driver reports: a framework's cache counts as used."
    parts = (Figure("memory"), _gpu_table(use, MEMORY, caption))
    return [Note(_fullest(document.values(MemoryProfile))), Folded("Memory of each GPU over time", parts)]


def _fullest(facts: TopicValues) -> str:
    """How full the fullest GPU was."""
    used, free = facts.get(MemoryProfile.max_used_pct), facts.get(MemoryProfile.headroom_mib)
    if used is None or free is None:
        return "How much memory the GPUs have is not known, so nobody can tell how full they were."
    return f"At the peak {share(used)} of a GPU's memory was in use, and {quantity(free, 'MiB')} stayed free."


def _gpu_table(rows: Mapping[str, Mapping[str, Scalar]], columns: TopicColumns, caption: str) -> TableBlock:
    """A row a GPU; columns without any value are left out."""
    named_so = [(column.name, title) for column, title in columns]
    kept = [(name, title) for name, title in named_so if any(row.get(name) is not None for row in rows.values())]
    body: list[tuple[TableCell, ...]] = []
    for gpu, row in rows.items():
        body.append((f"GPU {gpu}", *(Number(named(name, row.get(name), exact=True)) for name, _ in kept)))
    return TableBlock(("GPU", *(title for _, title in kept)), tuple(body), caption)


def _tiles(facts: TopicValues, *wanted: tuple[Fact[Any], str]) -> Tiles:
    """The facts that are known, as key numbers."""
    items = [(text, named(fact.name, facts.get(fact))) for fact, text in wanted]
    return Tiles(tuple(item for item in items if item[1] != UNKNOWN))


def _missing(document: Document, topic: str) -> Note:
    gap = document.not_measured.get(topic, NotMeasured(f"{topic} was not measured.", ""))
    return Note(safe(f"{gap.reason} {gap.remedy}").strip(), "unknown")
