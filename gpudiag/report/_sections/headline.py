"""Three sentences that a manager can read: where the time went, what is wrong most, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from gpudiag.faults import ERROR, Fault, attempt
from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.inputs import InputsProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.report._sections.answers import answer
from gpudiag.report.document import Counts, Document, Headline, LedgerEntry, Level, VerdictEntry
from gpudiag.report.format import duration, listed, plural, quantity, safe, share
from gpudiag.rules._engine.verdict import Severity, Status, worst_of
from gpudiag.schema import STATES

WENT = {
    "busy": "ran at 50 % utilization or more",
    "busy_low": "ran at 10 to 50 %",
    "stalled": "stalled inside trials",
    "waiting": "was idle, unclear why",
    "startup_only": "was start-up alone",
    "tail_only": "was the end of trials",
    "idle_no_trial": "had no trial",
    "foreign": "was busy without a trial",
    "unobserved": "was not observed",
}
UTILIZATION = ("gpu-low-utilization", "gpu-unused")
"""Without a word of one of these nobody can call a run healthy."""
ENOUGH = 1 / 3
"""Nor with less than this part of the checks that apply."""


def headline(document: Document) -> Headline:
    """What the rest of the document comes to."""
    counts = _counts(document)
    level = _level(document, counts)
    sentences = (
        _said("where the time went", lambda: _where_time_went(document)),
        _said("what is wrong most", lambda: _worst(document, counts)),
        _said("what to do next", lambda: _next(document)),
    )
    inputs = document.values(InputsProfile)
    unread = inputs[InputsProfile.n_unread] if inputs else 0
    return Headline(level, _verdict(level, counts, unread), counts, sentences)


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
        clear=others[Status.CLEAR],
        not_assessed=others[Status.NOT_ASSESSED],
        not_applicable=others[Status.NOT_APPLICABLE],
        suppressed=others[Status.SUPPRESSED],
        error=others[Status.ERROR],
    )


def _level(document: Document, counts: Counts) -> Level:
    if found := document.findings:
        return min((v.severity for v in found), key=lambda severity: severity.rank).value
    if counts.error:
        return "unknown"
    seen = any(v.rule in UTILIZATION for v in document.of_status(Status.CLEAR))
    enough = counts.clear >= ENOUGH * (counts.clear + counts.not_assessed)
    return "clear" if seen and enough else "unknown"


def _verdict(level: Level, counts: Counts, unread: int = 0) -> str:
    """Part of the data can prove a fault, never health: inputs not read and checks not assessed are always named."""
    open_checks = counts.not_assessed
    unsure = f"; {plural(open_checks, 'check')} could not be assessed" if open_checks else ""
    if unread:
        unsure = f"; {plural(unread, 'input')} could not be read{unsure}"
    if counts.error:
        unsure += f"; {plural(counts.error, 'check')} failed in gpudiag itself (ERROR)"
    if counts.suppressed:
        unsure += f"; {plural(counts.suppressed, 'finding')} suppressed"
    found = [plural(counts.critical, "critical finding"), plural(counts.warning, "warning")]
    present = " and ".join(text for text, n in zip(found, (counts.critical, counts.warning), strict=True) if n)
    if level == "critical":
        return f"NOT HEALTHY: {present}{unsure}."
    if level == "warning":
        return f"NEEDS ATTENTION: {present}{unsure}."
    if level == "unknown" and counts.error:
        return f"NOT FULLY CHECKED: nothing was found in {plural(counts.clear, 'check')}{unsure}."
    if level == "unknown" and counts.clear:
        return f"NOT ENOUGH DATA: nothing was found in {plural(counts.clear, 'check')}{unsure}."
    if level == "unknown":
        return f"NOT ASSESSED: no check had the data it needs ({plural(open_checks, 'check')})."
    if level == "note":
        return f"NO SERIOUS FINDING: {plural(counts.note, 'note')}{unsure}."
    named = "HEALTHY AS FAR AS SEEN" if open_checks else "HEALTHY"
    return f"{named}: nothing was found in {plural(counts.clear, 'check')}{unsure}."


def _where_time_went(document: Document) -> str:
    """The ledger's largest cells, the mean utilization and what became of the trials; what is absent is said to be."""
    trials = "; ".join(filter(None, (_outcomes(document), _best_after(document))))
    held = document.ledger
    if held is None:
        return _without_ledger(document, trials)
    facts = document.values(LedgerProfile)
    who = "the GPU" if facts[LedgerProfile.n_gpus] == 1 else f"{facts[LedgerProfile.n_gpus]} GPUs"
    total = quantity(held.total_gpu_s / 3600, "GPU-h")
    sentence = f"Of {total} on {who}, {', '.join(_shares(held, has_trials=facts[LedgerProfile.has_trials]))}"
    if facts.get(LedgerProfile.mean_util_pct) is not None:
        when = "from the first trial to the last" if facts[LedgerProfile.has_trials] else "over the whole record"
        sentence += f"; mean utilization was {share(facts[LedgerProfile.mean_util_pct])} {when}"
    return f"{sentence}; {trials}." if trials else f"{sentence}."


def _shares(held: LedgerEntry, *, has_trials: bool) -> list[str]:
    """The busy share first, then what else took 0.5 % or more, the largest first."""
    pct = {cell: 100 * value / held.total_gpu_s for cell, value in held.seconds().items()}
    order = sorted(pct, key=lambda cell: (cell != "busy", -pct[cell]))
    words = WENT if has_trials else {**WENT, "idle_no_trial": "was idle"}
    return [f"{share(pct[cell])} {words[cell]}" for cell in order if pct[cell] >= 0.5]


def _without_ledger(document: Document, trials: str) -> str:
    use = document.values(UtilizationProfile)
    if use.get(UtilizationProfile.mean_pct) is None:
        missing = "without GPU utilization nobody can say where the GPU time went"
        sentence = "; ".join(filter(None, (_trial_time(document), missing, trials)))
        return f"{sentence[0].upper()}{sentence[1:]}."
    n_gpus = use[UtilizationProfile.n_gpus]
    who = "The GPU" if n_gpus == 1 else f"The {n_gpus} GPUs"
    sentence = f"{who} averaged {share(use[UtilizationProfile.mean_pct])} utilization"
    return f"{sentence}; {trials}." if trials else f"{sentence}."


def _trial_time(document: Document) -> str:
    """How the time of trials divides among their outcomes, the largest first; '' where no duration is known."""
    trials = document.values(TrialsProfile)
    found = {state: trials.get(TrialState.total_worker_s.at(state)) or 0.0 for state in STATES}
    total = sum(found.values())
    order = sorted((state for state in STATES if total and found[state] >= total / 200), key=lambda s: -found[s])
    parts = listed(f"{share(100 * found[state] / total)} went to {state} trials" for state in order)
    return f"of {duration(total)} of trial time {parts}" if len(order) > 1 else ""


def _best_after(document: Document) -> str:
    """After how much the best value was reached, where as much again or more was spent later; '' elsewhere."""
    costs, trials = document.values(CostsProfile), document.values(TrialsProfile)
    unit, before, after = "GPU-h", costs.get(CostsProfile.to_best_gpu_h), costs.get(CostsProfile.after_best_gpu_h)
    if before is None or after is None:
        unit = "worker-h"
        before, after = trials.get(TrialsProfile.to_best_worker_h), trials.get(TrialsProfile.after_best_worker_h)
    if before is None or after is None or not after or after < before:
        return ""
    spent, total = quantity(before, unit), quantity(before + after, unit)
    if spent.rpartition(" ")[2] == total.rpartition(" ")[2]:
        spent = spent.rpartition(" ")[0]
    return f"the best value was reached after {spent} of {total} of trials"


def _outcomes(document: Document) -> str:
    trials = document.values(TrialsProfile)
    if not trials.get(TrialsProfile.n):
        return ""
    states = [(state, trials.get(TrialState.n.at(state))) for state in STATES]
    listed = ", ".join(f"{n:,} {state}" for state, n in states if n)
    total = plural(trials[TrialsProfile.n], "trial")
    return f"{total}: {listed}" if listed else total


def _worst(document: Document, counts: Counts) -> str:
    """The first finding that is more than a note, or its cause, else what was checked."""
    if first := _first(document.findings):
        cost = first.lost_gpu_h
        price = f" It cost {quantity(cost, 'GPU-h')}." if cost else ""
        return _sentence(first.summary or first.title) + price
    if counts.clear:
        return f"No fault was found in {plural(counts.clear, 'check')}."
    return "Nothing can be said about faults: the data that the checks need are missing."


def _first(findings: Sequence[VerdictEntry]) -> VerdictEntry | None:
    """The finding to tell first; None where nothing was found."""
    place = worst_of((v.rule, v.severity, v.caused_by) for v in findings)
    return None if place is None else findings[place]


def _next(document: Document) -> str:
    """What is recommended for the finding named, else its remedy, else the data that would settle most open checks."""
    if first := _first([v for v in document.findings if v.remedy]):
        return _sentence(answer(document, first.rule) or first.remedy)
    wanted: dict[str, int] = {}
    # Training without a search has no study to give: nobody can be asked for one where telemetry is there.
    no_study = GIVE_TRIALS if document.values(UtilizationProfile) and not document.values(TrialsProfile) else ""
    for verdict in document.of_status(Status.NOT_ASSESSED):
        if verdict.remedy and verdict.remedy != no_study:
            wanted[verdict.remedy] = wanted.get(verdict.remedy, 0) + 1
    if not wanted:
        return "Nothing needs to be changed."
    remedy, n = max(wanted.items(), key=lambda item: item[1])
    return f"To settle {plural(n, 'more check')}: {_sentence(remedy)}"


def _sentence(text: str) -> str:
    text = safe(text).strip()
    return text if text.endswith((".", "!", "?")) else text + "."
