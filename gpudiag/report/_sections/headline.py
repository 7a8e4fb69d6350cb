"""What a report says first: one sentence, the number that proves it, and what to do next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from gpudiag.faults import ERROR, Fault, attempt
from gpudiag.measures._gpu.tenants import CHOOSE
from gpudiag.measures.endings import EndingsProfile
from gpudiag.measures.inputs import InputsProfile
from gpudiag.measures.jobs import JobsProfile
from gpudiag.measures.recorder import GpuRecorder, RecorderProfile
from gpudiag.measures.sampling import GpuSampling, SamplingProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.report._sections.answers import brings, recommended, to_do
from gpudiag.report._sections.bottleneck import clear_limit
from gpudiag.report._sections.collectives import hang_found, undecided_hang
from gpudiag.report._sections.key_numbers import (
    gpus_of_jobs,
    jobs_alone,
    mean_util_pct,
    n_gpus,
    of_studies,
    recorded_gpus,
    trial_time_s,
)
from gpudiag.report._sections.unchecked import wanted
from gpudiag.report._sections.unexplained import far_from_peak, unexplained
from gpudiag.report.document import Counts, Document, Headline, Level, Use, VerdictEntry
from gpudiag.report.format import duration, plural, quantity, safe, share
from gpudiag.report.kinds.recommendations import TEST_FIRST
from gpudiag.report.noun import noun
from gpudiag.rules._engine.judging import MIN_COVERAGE_PCT, MIN_OBSERVED_S, MIN_SAMPLES
from gpudiag.rules._engine.verdict import Severity, Status, worst_of

WELL_PCT, PARTLY_PCT, UNUSED_PCT = 75.0, 25.0, 1.0
"""From this mean utilization on a GPU was well used; partly used; up to this one not used. Below 25 % the check of low
utilization warns, as job_defense_shield does (Princeton); 75 % is the same distance from the other end.
"""
OF_USE = ("gpu-low-utilization", "gpu-unused")
"""What these find, a headline has said by how well the GPU was used. Without a word of one of them nobody can call a
run healthy.
"""
SLOWED = ("thermal-throttling", "hardware-slowdown", "power-throttling", "clocks-low", "gpu-straggler")
"""What utilization does not show: a GPU that is slow, or waits for a slow one, is busy and not well used."""
NOT_ONE_RUN = "clocks-apart"
"""Where this is found, nothing that is said of trials and GPUs together holds: it comes first."""
BEFORE_A_HANG = (NOT_ONE_RUN, "collective-mismatch")
ACTIVITY = {"engine_active_pct", "sm_active_pct"}
"""Columns that tell the least that utilization was where that is unknown."""
LIMITS = {
    "startup": ("startup-dominated",),
    "io_wait": ("io-wait",),
    "cpu_bound": ("cpu-bound-input", "loader-slow"),
    "launch_bound": ("launch-bound",),
    "small_work": ("batch-or-kernels-small",),
}
"""Limits that can be mended, by class, and the checks that find them: one that holds half of the time is named even
where the finding to tell first is another.
"""
ROOM = "memory-headroom"
OF_THE_END = "training-failed"
NOTHING = "Nothing needs to be changed."
FEWER_FAIL = "Fewer fail; good trials:"
WORTH_NAMING = 1.1
"""A speed-up that is smaller at least is not named beside what is to be done next."""
ENOUGH = 1 / 3
"""Nor with less than this part of the checks that apply."""


def headline(document: Document) -> Headline:
    """What the rest of the document comes to."""
    counts = _counts(document)
    level = _level(document, counts)
    use = _use(document)
    sentences = (
        _said("what to say first", lambda: _first_sentence(document, use)),
        _said("what proves it", lambda: _proof(document, counts)),
        _said("what to do next", lambda: _next(document, level)),
    )
    inputs = document.values(InputsProfile)
    unread = inputs[InputsProfile.n_unread] if inputs else 0
    return Headline(level, use, _verdict(use, counts, unread), counts, sentences)


def _said(what: str, make: Callable[[], str]) -> str:
    """A sentence, or that it could not be made by a fault of gpudiag."""
    made = attempt(f"headline on {what}", make)
    return f"{ERROR}: {made}" if isinstance(made, Fault) else made


def _counts(document: Document) -> Counts:
    found = Counter(verdict.severity for verdict in document.findings)
    others = Counter(verdict.status for verdict in document.verdicts)
    return Counts(
        critical=found[Severity.CRITICAL],
        warning=found[Severity.WARNING],
        note=found[Severity.NOTE],
        ok=others[Status.OK],
        not_assessed=others[Status.NOT_ASSESSED],
        not_applicable=others[Status.NOT_APPLICABLE],
        suppressed=others[Status.SUPPRESSED],
        error=others[Status.ERROR],
    )


def _level(document: Document, counts: Counts) -> Level:
    if found := document.findings:
        return min((v.severity for v in found), key=lambda severity: severity.rank).value
    if counts.error or not_explained(document)[0]:
        return "unknown"
    seen = any(v.rule in OF_USE for v in document.of_status(Status.OK))
    enough = counts.ok >= ENOUGH * (counts.ok + counts.not_assessed)
    return "ok" if seen and enough else "unknown"


def _use(document: Document) -> Use:
    mean = mean_util_pct(document)
    if mean is None or _glance(document):
        return "unknown"
    if mean <= UNUSED_PCT:
        return "unused"
    return "well" if mean >= WELL_PCT else "partly" if mean >= PARTLY_PCT else "poorly"


USE_WORDS: dict[Use, str] = {
    "well": "well used",
    "partly": "partly used",
    "poorly": "poorly used",
    "unused": "not used",
    "unknown": "use unknown",
}


def _verdict(use: Use, counts: Counts, unread: int) -> str:
    """How well the GPU was used, what was found, and apart from both how much could not be checked."""
    kinds = ((counts.critical, "critical finding", ""), (counts.warning, "warning", ""), (counts.note, "note", ""))
    found = ", ".join(plural(n, noun) for n, noun, _ in kinds if n)
    if not found:
        found = f"nothing found in {plural(counts.ok, 'check')}" if counts.ok else "no check had its data"
    parts = [found]
    if unread:
        parts.append(f"{plural(unread, 'input')} could not be read")
    if counts.not_assessed:
        parts.append(f"{plural(counts.not_assessed, 'check')} could not be assessed")
    if counts.error:
        parts.append(f"{plural(counts.error, 'check')} failed to run (ERROR)")
    if counts.suppressed:
        parts.append(f"{plural(counts.suppressed, 'finding')} suppressed")
    return f"GPU {USE_WORDS[use]}: {'; '.join(parts)}."


def _first_sentence(document: Document, use: Use) -> str:
    """How well the GPU was used, and the fault to tell first, a hang by itself; without telemetry how many trials
    completed.
    """
    if apart := next((v for v in document.findings if v.rule == NOT_ONE_RUN), None):
        return _sentence(apart.title)
    used = _used(document, use) or _completed(document) or _unreported(document)
    first = first_finding(document, document.findings)
    if hang := hang_told_first(document):
        return _sentence(f"{used}, {_joins(document, use)} {within(hang[0])}" if used else hang[0])
    if first is not None and (said := hang_found(document, first)):
        return _sentence(said)
    serious = _serious(document.findings) and first is not None and first.rule not in OF_USE
    fault = within(first.title) if first is not None and serious else ""
    if not used:
        return _sentence(first.title if first else _nothing_known(document))
    if first is not None and (limited := _limited(document, first)):
        used = f"{used}: {limited}"
    if not fault:
        empty = "" if document.run.n_trials else _empty_studies(document)
        return f"{used}, but {within(empty)}." if empty else f"{used}."
    return f"{used}, {_joins(document, use)} {fault}."


def _joins(document: Document, use: Use) -> str:
    """The word between how well the GPUs were used and a fault."""
    return "but" if use == "well" or _some_completed(document, use) else "and"


def hang_told_first(document: Document) -> tuple[str, VerdictEntry] | None:
    """Ranks that wait in a collective for nobody knows whom; None where a finding explains it or comes first."""
    if any(v.rule in BEFORE_A_HANG for v in document.findings):
        return None
    return undecided_hang(document)


def _limited(document: Document, first: VerdictEntry) -> str:
    """What limited the run, where that is clear and another finding than the one that tells it; else ''."""
    label, said = clear_limit(document)
    rules = LIMITS.get(label, ())
    found = {v.rule for v in document.findings}
    return said if first.rule not in rules and not found.isdisjoint(rules) else ""


def _some_completed(document: Document, use: Use) -> bool:
    """Whether the sentence began with something good: trials that completed, of a run without telemetry."""
    completed = document.values(TrialsProfile).get(TrialState.n.at("COMPLETE"))
    return use == "unknown" and bool(completed)


def _nothing_known(document: Document) -> str:
    """Why neither the use of a GPU nor trials can be told."""
    active = any(not ACTIVITY.isdisjoint(entry.columns) for entry in document.inputs)
    said = next((v.reason for v in document.verdicts if v.rule == "gpu-unused"), "") if active else ""
    return _glance(document) or said or _empty_studies(document) or "Neither GPU utilization nor trials were given"


def _empty_studies(document: Document) -> str:
    """That a study was given in which nothing has begun; '' where none was."""
    names = [study.name for entry in document.inputs for study in entry.studies if not study.states]
    if not names:
        return ""
    which = f"The study {names[0]} has" if len(names) == 1 else f"{len(names):,} studies have"
    if document.advice.busy_pct:
        return f"{which} no trials, though a GPU worked: another may be the one that ran"
    return f"{which} no trials yet: no worker has asked for one"


def _unreported(document: Document) -> str:
    """That GPUs were recorded and none says how busy it was; '' where something else says how they were used."""
    silent = [entry for entry in document.inputs if "mem_used_mib" in entry.columns or "power_w" in entry.columns]
    told = any("util_pct" in entry.columns or not ACTIVITY.isdisjoint(entry.columns) for entry in document.inputs)
    if not silent or told or jobs_alone(document):
        return ""
    return "No GPU reported utilization" if len(document.run.gpus) > 1 else "The GPU reported no utilization"


def not_explained(document: Document) -> tuple[str, str]:
    """That the GPUs are not well used, or compute little, for no known cause, and what would tell it; '' and '' else:
    no fault found is no health then.
    """
    use = _use(document)
    if use == "unknown" or jobs_apart(document):
        return "", ""
    return far_from_peak(document, PARTLY_PCT) if use == "well" else unexplained(document, 100 - WELL_PCT)


def _glance(document: Document) -> str:
    """That the GPUs were observed for less than what a check of them needs; '' where it was enough, or is unknown."""
    if not any("util_pct" in entry.columns for entry in document.inputs):
        return ""
    recorded = document.values(RecorderProfile).by_row(GpuRecorder).values()
    n = max((cast(int, cells[GpuRecorder.n_samples.name]) for cells in recorded), default=0)
    sampled = document.values(SamplingProfile).by_row(GpuSampling).values()
    seconds = max((cast(float, cells[GpuSampling.observed_s.name]) for cells in sampled), default=math.nan)
    if n == 1:
        return "Each GPU was sampled once, which tells nothing of its use over time"
    if not n or not (seconds < MIN_OBSERVED_S or (n < MIN_SAMPLES and seconds >= 0)):
        return ""
    return f"{plural(n, 'sample')} within {duration(seconds)} tell too little of how the GPU was used"


def _used(document: Document, use: Use) -> str:
    """'The GPU was well used (84 %)'; '' where its utilization is unknown."""
    mean = mean_util_pct(document)
    if mean is None or _glance(document):
        return ""
    n = n_gpus(document)
    who, average = ("The GPU was", "") if n == 1 else (f"The {n} GPUs were", " on average")
    if 0 < n < (recorded := recorded_gpus(document)):
        who = f"{n} of {recorded} GPUs reported utilization and {'was' if n == 1 else 'were'}"
    if jobs := jobs_alone(document):
        who, average = f"The {gpus_of_jobs(jobs)} {'were' if jobs[JobsProfile.recorded_gpus] > 1 else 'was'}", ""
    how = "busy" if use == "well" and _serious([v for v in document.findings if v.rule in SLOWED]) else USE_WORDS[use]
    seen = document.values(UtilizationProfile).get(UtilizationProfile.coverage_pct)
    when = " while recorded" if seen is not None and seen < MIN_COVERAGE_PCT else ""
    return f"{who} {how}{when} ({share(mean)}{average})"


def _completed(document: Document) -> str:
    """'8 of 200 trials completed, in 14 % of the trial time'; '' without trials."""
    trials = document.values(TrialsProfile)
    n = trials.get(TrialsProfile.n)
    complete: int = trials.get(TrialState.n.at("COMPLETE")) or 0
    if not n:
        return ""
    spent = trial_time_s(document)
    part = 100 * spent["COMPLETE"] / sum(spent.values()) if sum(spent.values()) else 100.0
    time = f", in {share(part)} of the {noun(document)} time" if 0 < part < 99.5 else ""
    return f"{complete:,} of {plural(n, noun(document))}{of_studies(document)} completed{time}"


def within(title: str) -> str:
    """A title within a sentence: a small letter first, unless its word is an abbreviation or a name in capitals."""
    word = title.partition(" ")[0]
    return title if word[1:2].isupper() else title[:1].lower() + title[1:]


def _proof(document: Document, counts: Counts) -> str:
    """The finding to tell first in its numbers and its cost, else what was checked."""
    if hang := hang_told_first(document):
        return _sentence(hang[1].reason)
    apart = jobs_apart(document)
    if wait := not_explained(document)[0]:
        but = stops_short(document)
        return f"{_sentence(wait)}{f' {but.reason}' if but else ''}"
    if first := proved(document):
        cost = first.lost_gpu_h
        price = f" It cost {quantity(cost, 'GPU-h')}." if cost else ""
        return _sentence(first.summary or first.title) + price + (f" {apart.reason}" if apart else "")
    if counts.ok:
        but = stops_short(document) or apart
        return f"No fault was found in {plural(counts.ok, 'check')}." + (f" But {within(but.reason)}" if but else "")
    return "Nothing can be said about faults: the data that the checks need are missing."


def proved(document: Document) -> VerdictEntry | None:
    """The finding that the second sentence of a headline is about; None where it is about something else."""
    if hang_told_first(document) or not_explained(document)[0]:
        return None
    return first_finding(document, _worth_telling(document))


def stops_short(document: Document) -> VerdictEntry | None:
    """The check of a training whose log stops before its last step and says nothing: it may not have run through."""
    if not document.values(EndingsProfile).get(EndingsProfile.n_short):
        return None
    return next((v for v in document.of_status(Status.NOT_ASSESSED) if v.rule == OF_THE_END), None)


def jobs_apart(document: Document) -> VerdictEntry | None:
    """A check whose finding may be of GPUs of other jobs."""
    return next((v for v in document.of_status(Status.NOT_ASSESSED) if v.remedy.startswith(CHOOSE)), None)


def _worth_telling(document: Document) -> list[VerdictEntry]:
    """The findings that a headline may begin with: free memory is no fault of GPUs that are well used."""
    well = _use(document) == "well"
    return [one for one in document.findings if not (well and one.rule == ROOM)]


def first_finding(document: Document, findings: Sequence[VerdictEntry]) -> VerdictEntry | None:
    """The finding to tell first; None where nothing was found. Of mere notes it is one whose recommendation needs no
    test before it is followed, the best ranked of these, or the cause of that one; a note may come first that explains
    what is worse.
    """
    if apart := next((v for v in findings if v.rule == NOT_ONE_RUN), None):
        return apart
    place = worst_of((v.rule, v.severity, v.caused_by) for v in findings)
    if place is None or _serious(findings):
        return None if place is None else findings[place]
    ready = (rule for one in document.recommendations if not one.verify_first for rule in one.rules)
    by_rule = {v.rule: v for v in findings}
    first = next((by_rule[rule] for rule in ready if rule in by_rule), findings[place])
    return _cause_of(first, by_rule)


def _cause_of(finding: VerdictEntry, by_rule: Mapping[str, VerdictEntry]) -> VerdictEntry:
    """The finding that explains it, as far back as findings name one."""
    seen = {finding.rule}
    while (cause := by_rule.get(finding.caused_by or "")) is not None and cause.rule not in seen:
        seen.add(cause.rule)
        finding = cause
    return finding


def _serious(findings: Sequence[VerdictEntry]) -> bool:
    """Whether one is more than a note."""
    return any(one.severity is not Severity.NOTE for one in findings)


def _next(document: Document, level: Level) -> str:
    """What is recommended for the finding named, else its remedy, else, where too little could be checked, the data
    that would settle most.
    """
    if hang := hang_told_first(document):
        return _sentence(hang[1].remedy)
    told = _worth_telling(document)
    if steps := not_explained(document)[1]:
        return _sentence(steps)
    if first := first_finding(document, [v for v in told if v.remedy]):
        said = _price(document, first.rule) + _larger(document, first.rule)
        return _sentence(to_do(document, first)) + said if said else _with_command(document, first)
    if undecided := stops_short(document) or jobs_apart(document):
        return _sentence(undecided.remedy)
    if level == "ok" or told != document.findings:
        return NOTHING
    remedy, n = wanted(document)
    if not remedy:
        return NOTHING
    return f"To settle {plural(n, 'more check')}: {within(_sentence(remedy))}"


def _with_command(document: Document, found: VerdictEntry) -> str:
    """The next step of a finding, and the command where it is to record and no more than that."""
    one, said = recommended(document, found.rule), _sentence(to_do(document, found))
    code = one.changes[0].code if one is not None and len(one.changes) == 1 else ""
    return f"{said.removesuffix('.')}: {code}." if code.startswith("gpudiag record ") else said


def _price(document: Document, rule: str) -> str:
    """What a recommendation that may slow the run down brings: nobody should follow it without knowing; and what one
    brings at most that takes a wait away which was measured.
    """
    one = recommended(document, rule)
    if one is None or one.gain is None or one.gain.unit != "x":
        return ""
    if not (said := brings(one)):
        return ""
    if one.gain.low >= 1:
        return f" It makes the run {said}." if one.is_bounded and one.gain.high > WORTH_NAMING else ""
    if one.gain.source == "failures":
        return f" {FEWER_FAIL} {said}."
    return " Its gain is unknown: test this first." if said == TEST_FIRST else f" It makes the run {said}."


def _larger(document: Document, rule: str) -> str:
    """The recommendation that brings more at least than that of this finding at most: it comes later only for its
    risk, and nobody should miss it.
    """
    named = recommended(document, rule)
    most = named.gain.high if named is not None and named.gain is not None and named.gain.unit == "x" else 1.0
    more = [
        one
        for one in document.recommendations
        if one.gain is not None and one.gain.unit == "x" and one.gain.low > max(most, WORTH_NAMING)
    ]
    if not more:
        return ""
    one = max(more, key=lambda each: each.gain.low if each.gain is not None else 0.0)
    change = f" ({one.text})" if one.text else ""
    how = "Test" if one.tier > 1 or one.verify_first else "Then"
    return f" {how}: {one.title}{change}, {brings(one)}."


def _sentence(text: str) -> str:
    text = safe(text).strip()
    return text if text.endswith((".", "!", "?")) else text + "."
