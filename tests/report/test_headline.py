"""Three sentences, composed from what is there and honest about what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sampleruns import diagnosed
from toyrun import with_only

from gpudiag.advice._engine.proposal import Change, Proposal
from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.report._sections.headline import headline
from gpudiag.report.document import CellEntry, Document, LedgerEntry
from gpudiag.rules._engine.verdict import Severity, Status, Verdict


def verdict(status: str, severity: str = "warning", rule: str = "r", **more: Any) -> dict[str, Any]:
    blank = {
        "rule": rule,
        "title": "A title",
        "summary": "",
        "reason": "",
        "remedy": "",
        "topic": "toy",
        "evidence": {},
        "thresholds": {},
        "changed": [],
        "where": {},
        "margin": None,
        "refuted_by": "",
        "why": "",
        "lost_gpu_h": None,
        "caused_by": None,
    }
    return {**blank, "status": status, "severity": severity, **more}


def document(*verdicts: dict[str, Any], **measures: dict[str, float]) -> Document:
    facts = {t: {n: {"value": v, "unit": "1"} for n, v in values.items()} for t, values in measures.items()}
    return with_only(verdicts=list(verdicts), measures=facts)


def with_ledger(seconds: dict[str, float], *, has_trials: bool = True, **measures: dict[str, float]) -> Document:
    total = sum(seconds.values())
    facts = {"n_gpus": 1, "has_trials": has_trials, "mean_util_pct": 84.04}
    out = document(ledger=facts, **measures)
    cells = tuple(CellEntry("0", cell, value) for cell, value in seconds.items())
    return replace(out, ledger=LedgerEntry(total, cells))


BUSY = "CLEAR warning gpu-low-utilization"
OPEN = "1 check could not be assessed."
CASES = {
    "NOT HEALTHY: 1 critical finding and 1 warning.": ("critical", "FOUND critical, FOUND warning, CLEAR"),
    f"NEEDS ATTENTION: 2 warnings; {OPEN}": ("warning", "FOUND warning, FOUND warning, NOT_ASSESSED"),
    "NO SERIOUS FINDING: 1 note.": ("note", "FOUND note, CLEAR"),
    f"HEALTHY AS FAR AS SEEN: nothing was found in 1 check; {OPEN}": ("clear", f"{BUSY}, NOT_ASSESSED"),
    "HEALTHY: nothing was found in 2 checks.": ("clear", f"{BUSY}, CLEAR, NOT_APPLICABLE"),
    f"NOT ENOUGH DATA: nothing was found in 3 checks; {OPEN}": ("unknown", "CLEAR, CLEAR, CLEAR, NOT_ASSESSED"),
    "NOT ENOUGH DATA: nothing was found in 1 check; 3 checks could not be assessed.": (
        "unknown",
        f"{BUSY}, NOT_ASSESSED, NOT_ASSESSED, NOT_ASSESSED, NOT_APPLICABLE",
    ),
    "NOT ASSESSED: no check had the data it needs (1 check).": ("unknown", "NOT_ASSESSED, NOT_APPLICABLE"),
    "NOT ASSESSED: no check had the data it needs (0 checks).": ("unknown", ""),
}


@pytest.mark.parametrize("words", CASES)
def test_level_and_verdict(words: str) -> None:
    level, made_of = CASES[words]
    verdicts = [verdict(*part.split()) for part in made_of.split(", ") if part]
    head = headline(document(*verdicts))
    assert (head.level, head.verdict) == (level, words)
    assert len(head.sentences) == 3 and all(s.endswith(".") for s in head.sentences)
    assert sum(vars(head.counts).values()) == len(verdicts)


def test_where_the_time_went() -> None:
    use = {"mean_pct": 84.04, "n_gpus": 1, "observed_gpu_h": 4.378, "idle_pct": 3.1}
    trials = {
        "n": 200,
        "state.COMPLETE.n": 8,
        "state.PRUNED.n": 173,
        "state.FAIL.n": 15,
        "state.RUNNING.n": 4,
        "state.WAITING.n": 0,
    }
    seconds = {"busy": 9000.0, "stalled": 600.0, "startup_only": 380.0, "idle_no_trial": 20.0, "foreign": 0.0}
    (where, _, _) = headline(with_ledger(seconds, utilization=use, trials=trials)).sentences
    assert where == (
        "Of 2.8 GPU-h on the GPU, 90 % ran at 50 % utilization or more, 6 % stalled inside trials, 3.8 % was "
        "start-up alone; mean utilization was 84 % from the first trial to the last; 200 trials: 8 COMPLETE, "
        "173 PRUNED, 15 FAIL, 4 RUNNING."
    )
    idle = with_ledger({"busy": 0.0, "idle_no_trial": 3600.0}, has_trials=False)
    assert headline(idle).sentences[0] == (
        "Of 1 GPU-h on the GPU, 100 % was idle; mean utilization was 84 % over the whole record."
    )
    assert headline(document(utilization=use)).sentences[0] == "The GPU averaged 84 % utilization."


def test_without_utilization_it_says_so() -> None:
    where = headline(document(trials={"n": 3})).sentences[0]
    assert where == "Without GPU utilization nobody can say where the GPU time went; 3 trials."
    unknown = headline(document(utilization={"mean_pct": None})).sentences[0]
    assert unknown == "Without GPU utilization nobody can say where the GPU time went."


def test_a_study_alone_says_where_its_trials_time_went() -> None:
    times = {"state.COMPLETE.total_worker_s": 900.0, "state.PRUNED.total_worker_s": 2700.0}
    study = {"n": 9, "state.COMPLETE.n": 2, "state.PRUNED.n": 7, **times}
    said = "Of 1 h of trial time 75 % went to PRUNED trials and 25 % went to COMPLETE trials; without GPU utilization "
    said += "nobody can say where the GPU time went; 9 trials: 2 COMPLETE, 7 PRUNED"
    assert headline(document(trials=study)).sentences[0] == f"{said}."
    spent = {"to_best_worker_h": 0.25, "after_best_worker_h": 0.75}
    late = headline(document(trials=study | spent)).sentences[0]
    assert late == f"{said}; the best value was reached after 0.25 of 1 worker-h of trials."


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (5.5, 41.8, "after 5.5 of 47 GPU-h of trials"),
        (0.001, 9.0, "after 3.6 GPU-s of 9 GPU-h of trials"),
        (24.0, 23.0, ""),
        (1.0, None, ""),
    ],
)
def test_the_best_value_is_named_where_more_came_after_it(before: float, after: float | None, words: str) -> None:
    spent = {"to_best_gpu_h": before} | ({} if after is None else {"after_best_gpu_h": after})
    sentence = headline(document(costs=spent, trials={"n": 9})).sentences[0]
    assert ("the best value was reached" in sentence) is bool(words) and words in sentence


def test_the_worst_is_a_serious_finding_and_the_remedy_is_its_own() -> None:
    note = verdict("FOUND", "note", summary="A note", remedy="Smile", lost_gpu_h=9.0)
    fault = verdict("FOUND", "critical", summary="GPU 1 was idle", remedy="Use it", lost_gpu_h=2.08)
    _, worst, then = headline(document(note, fault)).sentences
    assert worst == "GPU 1 was idle. It cost 2.1 GPU-h." and then == "Use it."
    _, worst, then = headline(document(note)).sentences
    assert worst.startswith("A note.") and then == "Smile."


def test_the_worst_is_a_cause_and_no_symptom() -> None:
    symptom = verdict("FOUND", "critical", rule="low", summary="GPU 0 was 9 % busy", remedy="Look", caused_by="feed")
    cause = verdict("FOUND", "warning", rule="feed", summary="The CPU is the limit", remedy="More workers")
    for order in ((symptom, cause), (cause, symptom)):
        assert headline(document(*order)).sentences[1:] == ("The CPU is the limit.", "More workers.")
    alone = verdict("FOUND", "critical", rule="low", summary="GPU 0 was 9 % busy", caused_by="absent")
    assert headline(document(alone)).sentences[1] == "GPU 0 was 9 % busy."


def test_the_next_step_without_findings_is_the_record_that_settles_most() -> None:
    gaps = [verdict("NOT_ASSESSED", remedy=text) for text in ("Record A.", "Record B.", "Record B.")]
    assert headline(document(verdict("CLEAR"), *gaps)).sentences[2] == "To settle 2 more checks: Record B."
    assert headline(document(verdict("CLEAR"))).sentences[1:] == (
        "No fault was found in 1 check.",
        "Nothing needs to be changed.",
    )


def test_the_next_step_is_the_recommendation_for_the_finding_named() -> None:
    proposal = Proposal((Change("num_workers", 2, 3, "num_workers=3"),), None, "")
    workers = Remedy("w", "toy", "Start more workers", (), 1, "minutes", "now", (), (), "", "", lambda now: proposal)
    best = Recommendation.of(workers, proposal, ("feed",), "")
    fault = document(verdict("FOUND", rule="feed", remedy="Look"))
    own = Recommendation.own(Verdict("feed", "Other", Status.FOUND, Severity.WARNING, remedy="Look"))
    advised = replace(fault, recommendations=(own, replace(best, rules=("x",)), best))
    assert headline(advised).sentences[2] == "Start more workers (num_workers: 2 → 3)."
    doubted = replace(best, verify_first="Count the cores.")
    assert headline(replace(fault, recommendations=(doubted,))).sentences[2].endswith("2 → 3; verify first).")
    assert headline(replace(fault, recommendations=(own,))).sentences[2] == "Look."


def test_training_without_a_search_is_not_asked_for_a_study() -> None:
    no_trials = [verdict("NOT_ASSESSED", rule=f"t{n}", remedy=GIVE_TRIALS) for n in range(3)]
    power = verdict("NOT_ASSESSED", rule="p", remedy="Record power")
    use = {"mean_pct": 92.0, "n_gpus": 1}
    assert headline(document(*no_trials, power, utilization=use)).sentences[2] == (
        "To settle 1 more check: Record power."
    )
    assert headline(document(*no_trials, utilization=use)).sentences[2] == "Nothing needs to be changed."
    assert GIVE_TRIALS in headline(document(*no_trials, power)).sentences[2], "without telemetry it is what is there"


@pytest.mark.parametrize("sample", ["hpo-aggressive-pruning", "tiny-batch-laptop"])
def test_what_to_do_next_is_what_the_plan_begins_with(root: Path, sample: str) -> None:
    told = diagnosed(sample).document
    (first,) = [one for one in told.recommendations if one.id == told.advice.plan[0]]
    assert told.headline.sentences[2].startswith(first.title)
    assert told.recommendations[0] is first
