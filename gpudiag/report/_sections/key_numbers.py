"""The few numbers at the top of a report: use of the GPU, its time, what became of the trials, and what it cost."""

from __future__ import annotations

from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.jobs import JobsProfile
from gpudiag.measures.ledger import IDLE, GpuLedger, LedgerProfile
from gpudiag.measures.memory import GpuMemory, MemoryProfile
from gpudiag.measures.mfu import MfuProfile
from gpudiag.measures.power import GpuPower, PowerProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import GpuUtilization, UtilizationProfile
from gpudiag.plain_data import Scalar
from gpudiag.report._sections.step_times import step_times
from gpudiag.report.document import Document, LedgerEntry, TopicValues
from gpudiag.report.format import alike, duration, interval, listed, money, plural, quantity, share
from gpudiag.report.noun import noun, said
from gpudiag.schema import OUTCOMES

LOST = {
    "PRUNED": "in pruned trials", "FAIL": "in failed trials", "STOPPED": "in trials that were stopped",
    "ABANDONED": "in abandoned trials",
}  # fmt: skip
WORTH_SAYING = 0.05
"""Smaller parts of the GPU time are no key number."""
MUCH_OUTSIDE = 0.1
"""Share of the telemetry outside the ledger from which on its key number says what it is of."""
APART_PCT = 10.0
"""Where the mean utilization of GPUs differs by less, the mean of all speaks for each."""
STATE_WORDS = {
    "PRUNED": "pruned", "FAIL": "failed", "STOPPED": "stopped", "RUNNING": "marked RUNNING",
    "ABANDONED": "abandoned", "WAITING": "waiting",
}  # fmt: skip

KeyNumber = tuple[str, str]
"""What a number is, and the number."""


def key_numbers(document: Document) -> tuple[KeyNumber, ...]:
    """At most four, of those that are known."""
    made = (
        _use(document) or _power(document),
        _time(document) or _in_steps(document),
        _trials(document) or _memory(document),
        _money(document) or _best(document) or _step(document),
    )
    return tuple(one for one in made if one)


def mean_util_pct(document: Document) -> float | None:
    """The mean utilization of all GPUs, the one that a report speaks of: from the first trial to the last where trials
    and telemetry share a clock, else over the whole record; without telemetry that of jobs, where a scheduler
    recorded it; None where it is unknown.
    """
    means = (
        document.values(LedgerProfile).get(LedgerProfile.mean_util_pct),
        document.values(UtilizationProfile).get(UtilizationProfile.mean_pct),
        jobs_alone(document).get(JobsProfile.mean_util_pct),
    )
    return next((mean for mean in means if mean is not None), None)


def jobs_alone(document: Document) -> TopicValues:
    """What a scheduler recorded of the GPUs of jobs, where there is no telemetry that says more."""
    return TopicValues({}) if document.values(UtilizationProfile) else document.values(JobsProfile)


def gpus_of_jobs(jobs: TopicValues) -> str:
    """'8 GPUs of 4 jobs', each counted in each job."""
    gpus, n = jobs[JobsProfile.recorded_gpus], jobs[JobsProfile.n_recorded_jobs]
    return f"{plural(gpus, 'GPU')} of {plural(n, 'job')}"


def n_gpus(document: Document) -> int:
    """GPUs whose utilization is known, as :func:`mean_util_pct` is of."""
    use = document.values(UtilizationProfile)
    rows = _rows_of_gpus(document).values()
    known = sum(bool(cells[GpuUtilization.n_samples.name]) for cells in rows)
    n = known if rows else use.get(UtilizationProfile.n_gpus)
    return n or document.values(LedgerProfile).get(LedgerProfile.n_gpus) or 0


def recorded_gpus(document: Document) -> int:
    """GPUs in the telemetry, those without a utilization among them, but for those that no listed job had."""
    return len(_rows_of_gpus(document))


def _rows_of_gpus(document: Document) -> dict[str, dict[str, Scalar]]:
    held = document.values(LedgerProfile).by_row(GpuLedger)
    nobodys = {gpu for gpu, cells in held.items() if cells[GpuLedger.window_s.name] == 0}
    rows = document.values(UtilizationProfile).by_row(GpuUtilization)
    return {gpu: cells for gpu, cells in rows.items() if gpu not in nobodys}


def idle_s(ledger: LedgerEntry) -> float:
    """GPU-seconds below 10 %, whatever the GPUs waited for."""
    seconds = ledger.seconds()
    return sum(seconds.get(cell, 0.0) for cell in IDLE)


def _use(document: Document) -> KeyNumber | None:
    mean = mean_util_pct(document)
    if mean is None:
        return None
    if jobs := jobs_alone(document):
        return (f"mean utilization of {gpus_of_jobs(jobs)}, as jobstats recorded it", share(mean))
    n, recorded = n_gpus(document), recorded_gpus(document)
    if 0 < n < recorded:
        return (f"mean utilization of {n} of {recorded} GPUs", share(mean))
    return ("mean GPU utilization" if n <= 1 else f"mean utilization of {n} GPUs{_from_to(document)}", share(mean))


def _power(document: Document) -> KeyNumber | None:
    """What the GPUs drew, of telemetry that has nothing else of their use."""
    rows = document.values(PowerProfile).by_row(GpuPower).values()
    means, most = ([w for cells in rows if isinstance(w := cells[name], float)] for name in ("mean_w", "max_w"))
    if not means or not most:
        return None
    of = "the GPU" if len(means) == 1 else f"{len(means)} GPUs together"
    peak = "" if len(means) > 1 else f", {quantity(max(most), 'W')} at most"
    return (f"mean power of {of}{peak}", quantity(sum(means), "W"))


def _from_to(document: Document) -> str:
    """', from 52 % to 95 %' where single GPUs lie that far apart: a balance within its limits does not tell."""
    held = document.values(LedgerProfile).by_row(GpuLedger)
    rows, name = (
        (held, GpuLedger.mean_util_pct.name) if held else (_rows_of_gpus(document), GpuUtilization.mean_pct.name)
    )
    means = [mean for cells in rows.values() if isinstance(mean := cells[name], float)]
    low, high = min(means, default=0.0), max(means, default=0.0)
    return f", from {share(low)} to {share(high)}" if high - low >= APART_PCT else ""


def _time(document: Document) -> KeyNumber | None:
    if jobs := jobs_alone(document):
        return _time_of_jobs(jobs)
    held = document.ledger
    if held is None or not held.total_gpu_s:
        return _trial_time(document)
    parts = [(idle_s(held), "idle (below 10 %)")]
    kept = document.values(TrialsProfile).get(TrialsProfile.jobs_logged)  # their logs tell what was lost of it
    outcomes = document.costs.outcomes if document.costs and not kept else ()
    parts += [(row.gpu_s, _lost(document, row.outcome)) for row in outcomes if row.gpu_s and row.outcome in LOST]
    # What was not observed may have been idle too, so that a part of all time means little without it.
    parts = [max(parts), (held.seconds().get("unobserved", 0.0), "not observed")]
    said = [(share(100 * s / held.total_gpu_s), of) for s, of in parts if s >= WORTH_SAYING * held.total_gpu_s]
    words = [f"{part} {of}" if place else f"{part} of it {of}" for place, (part, of) in enumerate(said)]
    return (", ".join((f"of GPU time{_between(document, held)}", *words)), quantity(held.total_gpu_s / 3600, "GPU-h"))


def _between(document: Document, held: LedgerEntry) -> str:
    """' from the first work to the last' where much of the record lies outside, so that times are not those of it."""
    outside_s = document.values(LedgerProfile).get(LedgerProfile.outside_gpu_s) or 0.0
    if outside_s < MUCH_OUTSIDE * (outside_s + held.total_gpu_s):
        return ""
    what = noun(document) if document.values(TrialsProfile) and document.clock.joined else "work"
    return f" from the first {what} to the last"


def _time_of_jobs(jobs: TopicValues) -> KeyNumber:
    hours, unused_h = jobs[JobsProfile.recorded_gpu_h], jobs[JobsProfile.unused_gpu_h]
    n = jobs[JobsProfile.unused_gpus]
    of = f", {share(100 * unused_h / hours)} of it on {plural(n, 'GPU')} at 0 % for a whole job" if n else ""
    return (f"of GPU time{of}", quantity(hours, "GPU-h"))


def _in_steps(document: Document) -> KeyNumber | None:
    """Where only the log of a training is known, how much of its time went into steps."""
    steps = document.values(StepsProfile)
    at_pace, logged_s = steps.get(StepsProfile.productive_pct), steps.get(StepsProfile.logged_s)
    if at_pace is None or logged_s is None:
        return None
    at_most = "at most " if steps.get(StepsProfile.n_unclear) else ""
    return (f"of {duration(logged_s)} went into {steps[StepsProfile.unit]}s", f"{at_most}{share(at_pace)}")


def _step(document: Document) -> KeyNumber | None:
    steps = document.values(StepsProfile)
    took, n = step_times(document)
    if not took:
        return None
    of_each = f", in {plural(n, 'training')}" if n > 1 else ""
    return (f"median time of one {steps[StepsProfile.unit]}{of_each}{_of_peak(document)}", took)


def _of_peak(document: Document) -> str:
    """', at 6.3 % of the peak of the GPU (MFU)', where both bounds of it are known; else ''."""
    facts = document.values(MfuProfile)
    low, high = facts.get(MfuProfile.mfu_low_pct), facts.get(MfuProfile.mfu_high_pct)
    return "" if low is None or high is None else f", at {interval(low, high, '%')} of the GPU's peak (MFU)"


def _trial_time(document: Document) -> KeyNumber | None:
    """Time of the trials, where that of the GPUs is unknown."""
    held = trial_time_s(document)
    total = sum(held.values())
    if not total:
        return None
    lost, state = max((held[state], state) for state in LOST)
    if gpu_h := document.values(TrialsProfile).get(TrialsProfile.job_gpu_h):
        failed_h = document.values(TrialsProfile)[TrialsProfile.failed_job_gpu_h]
        of = f", {share(100 * failed_h / gpu_h)} of it in failed jobs" if failed_h >= WORTH_SAYING * gpu_h else ""
        return (f"of GPU time{of}", quantity(gpu_h, "GPU-h"))
    of = f", {share(100 * lost / total)} of it {_lost(document, state)}" if lost >= WORTH_SAYING * total else ""
    return (f"of {noun(document)} time{of}", quantity(total / 3600, "worker-h"))


def _lost(document: Document, outcome: str) -> str:
    return said(LOST[outcome], noun(document))


def trial_time_s(document: Document) -> dict[str, float]:
    """Seconds of all trials with a known end, by outcome."""
    trials = document.values(TrialsProfile)
    return {state: trials.get(TrialState.total_worker_s.at(state)) or 0.0 for state in OUTCOMES}


def _trials(document: Document) -> KeyNumber | None:
    trials = document.values(TrialsProfile)
    n = trials.get(TrialsProfile.n)
    if not n:
        return None
    states = [(trials.get(TrialState.n.at(state)) or 0, words) for state, words in STATE_WORDS.items()]
    rest = [f"{of:,} {words}" for of, words in states if of]
    others = f"; {listed(rest)}" if rest else ""
    complete = trials.get(TrialState.n.at("COMPLETE")) or 0
    return (f"{noun(document)}s{of_studies(document)} completed{others}", f"{complete:,} of {n:,}")


def of_studies(document: Document) -> str:
    """' of 3 studies' where trials of several are counted together; '' elsewhere."""
    n = len(document.run.studies)
    return f" of {n:,} studies" if n > 1 else ""


def _memory(document: Document) -> KeyNumber | None:
    """The memory of the fullest GPU, where there are no trials."""
    rows = document.values(MemoryProfile).by_row(GpuMemory).values()
    used = [(row["max_used_pct"], row["total_mib"]) for row in rows]
    known = [(pct, mib) for pct, mib in used if isinstance(pct, float) and isinstance(mib, float)]
    if not known:
        return None
    pct, mib = max(known)
    return (f"of {quantity(mib, 'MiB')} GPU memory used at most", share(pct))


def _money(document: Document) -> KeyNumber | None:
    costs = document.values(CostsProfile)
    cost, currency = costs.get(CostsProfile.cost), costs.get(CostsProfile.currency)
    return None if cost is None else ("at the price stated", money(cost, currency or ""))


def _best(document: Document) -> KeyNumber | None:
    """How much the trials took until the best value came, and from then on."""
    costs, trials = document.values(CostsProfile), document.values(TrialsProfile)
    unit, before, after = "GPU-h", costs.get(CostsProfile.to_best_gpu_h), costs.get(CostsProfile.after_best_gpu_h)
    if before is None or after is None:
        unit = "worker-h"
        before, after = trials.get(TrialsProfile.to_best_worker_h), trials.get(TrialsProfile.after_best_worker_h)
    if before is None or after is None or before + after <= 0:
        return None
    spent, rest = alike(unit, before, after)
    return (f"of trials until the best value{f'; {rest} after it' if after else ''}", spent)
