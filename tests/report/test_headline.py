"""Three sentences, composed from what is there and honest about what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sampleruns import diagnosed
from toyrun import with_only

from gpudiag._run.tables import StudyRecord
from gpudiag.advice._engine.proposal import Change, Gain, Proposal
from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.report._sections.headline import headline, within
from gpudiag.report.document import CellEntry, Document, LedgerEntry
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.run import InputRecord


def verdict(status: str, severity: str = "warning", rule: str = "r", **more: Any) -> dict[str, Any]:
    blank = {
        "rule": rule,
        "title": "A title",
        "checks": "A topic",
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


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a"], "The study a has no trials yet: no worker has asked for one."),
        (["a", "b"], "2 studies have no trials yet: no worker has asked for one."),
        ([], "Neither GPU utilization nor trials were given."),
    ],
)
def test_a_study_without_trials_was_given(names: list[str], said: str) -> None:
    studies = tuple(StudyRecord(name, ("MINIMIZE",), {}, 0, None, None, None) for name in names)
    given = (InputRecord("optuna.db", "trials", "optuna-sqlite", "0", 0, studies=studies),)
    assert headline(replace(document(), inputs=given)).sentences[0] == said
    used = replace(document(utilization=USED), inputs=given, run=replace(document().run, n_trials=0))
    assert headline(used).sentences[0].startswith("The GPU was well used (84 %)")
    assert ("no trials" in headline(used).sentences[0]) is bool(names)
    busy = replace(used, advice=replace(used.advice, busy_pct=84.0))
    assert ("though a GPU worked: another may be" in headline(busy).sentences[0]) is bool(names)


def with_ledger(seconds: dict[str, float], *, has_trials: bool = True, **measures: dict[str, float]) -> Document:
    total = sum(seconds.values())
    facts = {"n_gpus": 1, "has_trials": has_trials, "mean_util_pct": 84.04}
    out = document(ledger=facts, **measures)
    cells = tuple(CellEntry("0", cell, value) for cell, value in seconds.items())
    return replace(out, ledger=LedgerEntry(total, cells))


USED = {"mean_pct": 84.04, "n_gpus": 1}
OPEN = "1 check could not be assessed."
BUSY = "ok warning gpu-low-utilization"
CASES = {
    "GPU well used: 1 critical finding, 1 warning.": ("critical", "found critical, found warning, ok"),
    f"GPU well used: 2 warnings; {OPEN}": ("warning", "found warning, found warning, not_assessed"),
    "GPU well used: 1 note.": ("note", "found note, ok"),
    f"GPU well used: nothing found in 1 check; {OPEN}": ("ok", f"{BUSY}, not_assessed"),
    "GPU well used: nothing found in 2 checks.": ("ok", f"{BUSY}, ok, not_applicable"),
    f"GPU well used: nothing found in 3 checks; {OPEN}": ("unknown", "ok, ok, ok, not_assessed"),
    "GPU well used: nothing found in 1 check; 3 checks could not be assessed.": (
        "unknown",
        f"{BUSY}, not_assessed, not_assessed, not_assessed, not_applicable",
    ),
    f"GPU well used: no check had its data; {OPEN}": ("unknown", "not_assessed, not_applicable"),
    "GPU well used: no check had its data.": ("unknown", ""),
}


@pytest.mark.parametrize("words", CASES)
def test_level_and_verdict(words: str) -> None:
    level, made_of = CASES[words]
    verdicts = [verdict(*part.split()) for part in made_of.split(", ") if part]
    head = headline(document(*verdicts, utilization=USED))
    assert (head.level, head.use, head.verdict) == (level, "well", words)
    assert len(head.sentences) == 3 and all(s.endswith(".") for s in head.sentences)
    assert sum(vars(head.counts).values()) == len(verdicts)


@pytest.mark.parametrize(
    ("mean_pct", "use", "words"),
    [
        (98.7, "well", "The GPU was well used (99 %)."),
        (75.0, "well", "The GPU was well used (75 %)."),
        (74.9, "partly", "The GPU was partly used (75 %)."),
        (25.0, "partly", "The GPU was partly used (25 %)."),
        (11.4, "poorly", "The GPU was poorly used (11 %)."),
        (1.0, "unused", "The GPU was not used (1 %)."),
        (None, "unknown", "Neither GPU utilization nor trials were given."),
    ],
)
def test_the_first_word_is_about_the_use_of_the_gpu(mean_pct: float | None, use: str, words: str) -> None:
    head = headline(document(verdict("ok"), utilization={"mean_pct": mean_pct, "n_gpus": 1}))
    assert (head.use, head.sentences[0]) == (use, words)


@pytest.mark.parametrize(
    ("columns", "n_samples", "words"),
    [
        (("util_pct",), 1.0, "Each GPU was sampled once, which tells nothing of its use over time."),
        (("power_w",), 1.0, "The GPU reported no utilization."),
        (("util_pct",), 9.0, "Neither GPU utilization nor trials were given."),
    ],
)
def test_one_look_at_the_gpus_is_not_called_no_utilization(
    columns: tuple[str, ...], n_samples: float, words: str
) -> None:
    seen = document(verdict("ok"), recorder={"gpu.0.n_samples": n_samples})
    seen = replace(seen, inputs=(InputRecord("gpu.log", "telemetry", columns=columns),))
    assert headline(seen).sentences[0] == words


@pytest.mark.parametrize(
    ("seconds", "n", "glance"),
    [(15.0, 3, True), (59.9, 60, True), (60.0, 10, False), (600.0, 9, True), (600.0, 10, False)],
)
def test_a_glance_at_the_gpus_says_nothing_of_their_use(seconds: float, n: int, glance: bool) -> None:
    """As little as keeps every check of the GPUs from being ok."""
    seen = document(
        verdict("ok"),
        recorder={"gpu.0.n_samples": n},
        sampling={"gpu.0.observed_s": seconds},
        utilization={"mean_pct": 0.0, "n_gpus": 1},
    )
    head = headline(replace(seen, inputs=(InputRecord("gpu.log", "telemetry", columns=("util_pct",)),)))
    assert (head.use == "unknown") is glance
    assert ("tell too little of how the GPU was used" in head.sentences[0]) is glance
    assert glance or head.sentences[0] == "The GPU was not used (0 %)."


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"COMPLETE": 900.0, "PRUNED": 2700.0}, "2 of 9 trials completed, in 25 % of the trial time."),
        ({"COMPLETE": 3600.0}, "2 of 9 trials completed."),
        ({}, "2 of 9 trials completed."),
    ],
)
def test_a_study_alone_opens_with_its_time_by_outcome(times: dict[str, float], words: str) -> None:
    trials: dict[str, float] = {"n": 9, "state.COMPLETE.n": 2, "state.PRUNED.n": 7}
    trials |= {f"state.{state}.total_worker_s": seconds for state, seconds in times.items()}
    assert headline(document(verdict("ok"), trials=trials)).sentences[0] == words


@pytest.mark.parametrize(("mean_pct", "told"), [(90.0, False), (40.0, True)])
def test_free_memory_is_no_fault_of_a_gpu_that_is_well_used(mean_pct: float, told: bool) -> None:
    room = verdict("found", "note", "memory-headroom", remedy="Try a larger batch", summary="23.6 GiB stayed free")
    head = headline(document(verdict("ok"), room, utilization={"mean_pct": mean_pct, "n_gpus": 1}))
    assert (head.sentences[2] == "Nothing needs to be changed.") is not told
    assert (head.sentences[1] == "No fault was found in 1 check.") is not told


def test_one_mean_utilization_is_told_that_of_the_ledger_where_there_is_one() -> None:
    two = with_ledger({"busy": 9000.0}, utilization={"mean_pct": 14.0, "n_gpus": 1})
    assert headline(two).sentences[0] == "The GPU was well used (84 %)."


@pytest.mark.parametrize(
    ("mean_pct", "severity", "rule", "title", "words"),
    [
        (84.0, "warning", "r", "Nearly all trials are pruned", "well used (84 %), but nearly all trials are pruned."),
        (11.0, "warning", "r", "The GPU is hot", "poorly used (11 %), and the GPU is hot."),
        (11.0, "warning", "r", "GPU memory leaks", "poorly used (11 %), and GPU memory leaks."),
        (84.0, "note", "r", "A note", "well used (84 %)."),
        (11.0, "critical", "gpu-low-utilization", "GPU utilization is low", "poorly used (11 %)."),
        (84.0, "warning", "clocks-apart", "Trials and telemetry share no time", "Trials and telemetry share no time."),
    ],
)
def test_the_headline_adds_the_worst_fault(mean_pct: float, severity: str, rule: str, title: str, words: str) -> None:
    found = verdict("found", severity, rule, title=title)
    said = headline(document(found, utilization={"mean_pct": mean_pct, "n_gpus": 1})).sentences[0]
    assert said == (words if rule == "clocks-apart" else f"The GPU was {words}")


def test_the_limit_of_most_time_is_named_though_its_finding_is_a_note() -> None:
    start_up = verdict("found", rule="startup-dominated", title="Start-up takes much", lost_gpu_h=0.1)
    note = verdict("found", "note", "cpu-bound-input")
    limit = {"label": "cpu_bound", "cpu_bound_pct": 52.0, "has_trials": True, "has_host": True}
    use = {"mean_pct": 39.0, "n_gpus": 1}

    def said(*found: dict[str, Any]) -> str:
        return headline(document(*found, utilization=use, bottleneck=limit)).sentences[0]

    named = "The GPU was partly used (39 %): 52 % of the trial time was bound by the CPU, and start-up takes much."
    assert said(start_up, note) == named
    assert said(start_up) == "The GPU was partly used (39 %), and start-up takes much.", "no check found it"
    assert said(note) == "The GPU was partly used (39 %).", "the finding that comes next says it"


@pytest.mark.parametrize(("unknown", "who"), [
    ("2", "there is no dump of rank 2"), ("2, 5-9", "there is no dump of ranks 2 and 5-9"),
    ("1, 3, 5, 7, 9, 11, 13", "there is no dump of many others"),
])  # fmt: skip
def test_a_hang_for_nobody_knows_whom_is_said_with_the_use_of_the_gpus(unknown: str, who: str) -> None:
    """A GPU that waits in a collective of NCCL is busy: only the dumps say that nothing is done."""
    hang = {"hang": "open", "n_dumps": 3, "wait_s": 600.0, "n_waiting": 3, "n_ranks": 1024, "unknown_ranks": unknown}
    left_open = verdict("not_assessed", rule="rank-missing", reason="They wait.", remedy="Fetch it.")
    slow = verdict("found", title="Data are slow", summary="Slow.", remedy="Cache them.")
    said = headline(document(
        slow, left_open, utilization={"mean_pct": 99.0, "n_gpus": 1}, collectives={**hang, "undumped_ranks": unknown},
    ))  # fmt: skip
    assert said.sentences == (
        f"The GPU was well used (99 %), but 3 of 1,024 ranks wait in a collective, and {who}.", "They wait.",
        "Fetch it.",
    )  # fmt: skip
    assert said.level == "warning"


@pytest.mark.parametrize(("rule", "severity", "low_s", "said"), [
    ("rank-missing", "critical", 600.0, "The training hung: rank 2 did not enter {what}; 3 ranks waited 10 min."),
    ("rank-missing", "critical", 100.0, "The training hung: rank 2 did not enter {what}; 3 ranks waited up to 10 min."),
    ("collective-stuck", "critical", 600.0, "The training hung: all ranks entered {what}; 3 ranks waited 10 min."),
    ("rank-missing", "warning", 600.0, "The GPU was partly used (66 %), and nobody came."),
])  # fmt: skip
def test_a_hang_is_said_first(rule: str, severity: str, low_s: float, said: str) -> None:
    """How well GPUs were used says nothing then: those that wait in a collective are busy."""
    what = "all_reduce number 501"
    hang = {"hang": "missing", "missing_ranks": "2", "n_missing": 1, "n_waiting": 3, "collective": what}
    found = verdict("found", rule=rule, severity=severity, title="Nobody came", summary="They wait.", remedy="Look.")
    made = headline(document(
        found, utilization={"mean_pct": 66.0, "n_gpus": 1}, collectives={**hang, "wait_s": 600.0, "wait_low_s": low_s},
    ))  # fmt: skip
    assert made.sentences == (said.format(what=what), "They wait.", "Look.")


def test_a_study_alone_says_how_many_trials_completed() -> None:
    study = document(trials={"n": 1200, "state.COMPLETE.n": 1100})
    assert headline(study).sentences[0] == "1,100 of 1,200 trials completed."
    failing = document(verdict("found", title="Too many trials fail"), trials={"n": 9, "state.COMPLETE.n": 2})
    assert headline(failing).sentences[0] == "2 of 9 trials completed, but too many trials fail."


def test_the_worst_is_a_serious_finding_and_the_remedy_is_its_own() -> None:
    note = verdict("found", "note", summary="A note", remedy="Smile", lost_gpu_h=9.0)
    fault = verdict("found", "critical", summary="GPU 1 was idle", remedy="Use it", lost_gpu_h=2.08)
    _, worst, then = headline(document(note, fault)).sentences
    assert worst == "GPU 1 was idle. It cost 2.1 GPU-h." and then == "Use it."
    _, worst, then = headline(document(note)).sentences
    assert worst.startswith("A note.") and then == "Smile."


def test_the_worst_is_a_cause_and_no_symptom() -> None:
    symptom = verdict("found", "critical", rule="low", summary="GPU 0 was 9 % busy", remedy="Look", caused_by="feed")
    cause = verdict("found", "warning", rule="feed", summary="The CPU is the limit", remedy="More workers")
    for order in ((symptom, cause), (cause, symptom)):
        assert headline(document(*order)).sentences[1:] == ("The CPU is the limit.", "More workers.")
    alone = verdict("found", "critical", rule="low", summary="GPU 0 was 9 % busy", caused_by="absent")
    assert headline(document(alone)).sentences[1] == "GPU 0 was 9 % busy."


def test_a_note_that_explains_what_is_worse_is_told_before_what_is_ready() -> None:
    symptom = verdict("found", "critical", rule="low", summary="GPU 0 was 9 % busy", remedy="Look", caused_by="end")
    cause = verdict("found", "note", rule="end", title="The end was idle", summary="Idle for 1 h", remedy="End the job")
    other = verdict("found", rule="gaps", summary="Parts were not recorded", remedy="Record all")
    own = Recommendation.own(Verdict("gaps", "Other", Status.FOUND, Severity.WARNING, remedy="Record all"))
    told = replace(document(cause, symptom, other, utilization=USED), recommendations=(own,))
    said, proof, then = headline(told).sentences
    assert said.endswith("but the end was idle.") and (proof, then) == ("Idle for 1 h.", "End the job.")


def test_of_notes_a_symptom_is_not_told_before_its_cause() -> None:
    """What is ready to be followed answers the symptom alone."""
    cause = verdict("found", "note", rule="end", summary="Idle for 1 h", remedy="Release it")
    symptom = verdict("found", "note", rule="low", summary="GPU 0 was 9 % busy", remedy="Look", caused_by="end")
    own = Recommendation.own(Verdict("low", "Low", Status.FOUND, Severity.NOTE, remedy="Record the CPU"))
    for order in ((cause, symptom), (symptom, cause)):
        told = replace(document(*order, utilization=USED), recommendations=(own,))
        assert headline(told).sentences[1:] == ("Idle for 1 h.", "Release it.")
    gone = verdict("found", "note", rule="low", summary="GPU 0 was 9 % busy", caused_by="suppressed")
    assert headline(replace(document(gone, utilization=USED), recommendations=(own,))).sentences[1] == (
        "GPU 0 was 9 % busy."
    )


def test_the_next_step_without_findings_is_the_record_that_settles_most() -> None:
    gaps = [verdict("not_assessed", remedy=text) for text in ("Record A.", "Record B.", "Record B.")]
    assert headline(document(verdict("ok"), *gaps)).sentences[2] == "To settle 2 more checks: record B."
    assert headline(document(verdict("ok"))).sentences[1:] == (
        "No fault was found in 1 check.",
        "Nothing needs to be changed.",
    )


WAITED = {"unused_pct": 50.0, "unknown_pct": 60.0, "observed_gpu_s": 36_000.0}  # 30 % of 10 h: 3 h


@pytest.mark.parametrize(
    ("found", "mean_pct", "causes", "said"),
    [
        ({}, 60.0, WAITED, True),
        ({}, 75.0, WAITED, False),
        ({}, 60.0, {**WAITED, "unknown_pct": 50.0}, True),
        ({}, 60.0, {**WAITED, "unknown_pct": 49.0}, False),
        ({}, 74.0, {**WAITED, "unused_pct": 26.0, "unknown_pct": 50.0}, True),
        ({"rule": "x", "severity": "note"}, 74.0, {**WAITED, "unused_pct": 26.0, "unknown_pct": 90.0}, False),
        ({}, 60.0, {**WAITED, "unused_pct": 60.0, "unknown_pct": 42.0}, True),
        ({"rule": "x", "severity": "note"}, 60.0, WAITED, True),
        ({"rule": "x", "severity": "warning"}, 60.0, WAITED, False),
        ({"rule": "io-wait", "severity": "note"}, 60.0, WAITED, False),
        ({"rule": "stalls-aperiodic", "severity": "note", "lost_gpu_h": 1.5}, 60.0, WAITED, False),
        ({"rule": "stalls-aperiodic", "severity": "note", "lost_gpu_h": 1.4}, 60.0, WAITED, True),
    ],
)
def test_no_fault_found_is_not_said_of_time_that_nothing_explains(
    found: dict[str, Any], mean_pct: float, causes: dict[str, float], said: bool
) -> None:
    use = {"mean_pct": mean_pct, "n_gpus": 1}
    verdicts = [verdict("ok", rule="gpu-low-utilization"), *([verdict("found", **found)] if found else [])]
    told = headline(document(*verdicts, utilization=use, causes=causes))
    share = causes["unused_pct"] * causes["unknown_pct"] / 100
    assert (f"No kernel ran in {share:.0f} % of the GPU time" in told.sentences[1]) is said
    assert ("Record the CPU beside the GPU" in told.sentences[2]) is said and "rec.timed" not in told.sentences[2]
    logged = headline(document(*verdicts, utilization=use, causes=causes, steps={"logged_s": 900.0}))
    assert ("Let the log state how long" in logged.sentences[2]) is said, "only where steps are logged"
    assert (told.level == "unknown") is (said and not found) and ("No fault" in told.sentences[1]) is not (
        said or found
    )


@pytest.mark.parametrize(("high_pct", "found", "said"), [(24.9, 0, True), (25.0, 0, False), (24.9, 1, False)])
def test_kernels_that_compute_little_are_no_health(high_pct: float, found: int, said: bool) -> None:
    verdicts = [verdict("ok", rule="gpu-low-utilization"), *[verdict("found", "note")] * found]
    told = headline(document(*verdicts, utilization=USED, mfu={"mfu_low_pct": 6.0, "mfu_high_pct": high_pct}))
    assert ("25 % of the FLOPs that the GPU can do (MFU) at most" in told.sentences[1]) is said
    assert told.sentences[2].startswith("Profile ten steps") is said


def test_the_gpus_that_lack_most_are_named() -> None:
    """GPU 0 gathers what the others computed."""
    means = {f"gpu.{gpu}.mean_pct": mean for gpu, mean in enumerate((95.0, 52.0, 51.0, 53.0))}
    use = {"mean_pct": 63.0, "n_gpus": 4, **means, **{f"gpu.{gpu}.n_samples": 9 for gpu in range(4)}}
    told = headline(document(verdict("ok", rule="gpu-low-utilization"), utilization=use, causes=WAITED)).sentences[1]
    assert "of the GPU time, mostly on GPUs 1, 2 and 3, and the" in told


def test_the_next_step_is_the_recommendation_for_the_finding_named() -> None:
    proposal = Proposal((Change("num_workers", 2, 3, "num_workers=3"),), None, "")
    workers = Remedy("w", "toy", "Start more workers", (), 1, "minutes", "now", (), (), "", "", lambda now: proposal)
    best = Recommendation.of(workers, proposal, ("feed",), "")
    fault = document(verdict("found", rule="feed", remedy="Look"))
    own = Recommendation.own(Verdict("feed", "Other", Status.FOUND, Severity.WARNING, remedy="Look"))
    advised = replace(fault, recommendations=(own, replace(best, rules=("x",)), best))
    assert headline(advised).sentences[2] == "Start more workers (num_workers: 2 → 3)."
    doubted = replace(best, verify_first="Count the cores.")
    assert headline(replace(fault, recommendations=(doubted,))).sentences[2].endswith("2 → 3; test first).")
    assert headline(replace(fault, recommendations=(own,))).sentences[2] == "Look."


@pytest.mark.parametrize(
    ("safe_high", "low", "verify_first", "said"),
    [
        (1.19, 1.57, "", " Then: Second, 1.57–2× faster."),
        (1.19, 1.57, "Try ten trials.", " Test: Second, 1.57–2× faster."),
        (1.6, 1.57, "", ""),
        (1.0, 1.1, "", ""),
    ],
)
def test_what_surely_brings_more_is_named_beside_the_next_step(
    safe_high: float, low: float, verify_first: str, said: str
) -> None:
    """Safety orders the recommendations, and hides none that is worth more."""
    fault = document(verdict("found", rule="r", remedy="Look"), utilization=USED)
    proposal = Proposal((Change("n", None, "2", ""),), None, "")
    toy = Remedy("w", "toy", "First", (), 1, "minutes", "now", (), (), "", "", lambda now: proposal)
    safe = replace(Recommendation.of(toy, proposal, ("r",), ""), text="", gain=Gain(1.0, safe_high))
    larger = replace(safe, title="Second", rules=("x",), gain=Gain(low, 2.0), verify_first=verify_first)
    assert headline(replace(fault, recommendations=(safe, larger))).sentences[2] == f"First.{said}"


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (["gpudiag record -o gpu.csv -- COMMAND"], "Record it: gpudiag record -o gpu.csv -- COMMAND."),
        (["loader(num_workers=8)"], "Record it."),
        (["gpudiag record -o gpu.csv -- COMMAND", "and more"], "Record it."),
    ],
)
def test_the_next_step_says_how_to_record(codes: list[str], said: str) -> None:
    fault = document(verdict("found", rule="r", remedy="Look"), utilization=USED)
    proposal = Proposal(tuple(Change("record", None, "the CPU", code) for code in codes), None, "")
    toy = Remedy("w", "toy", "Record it", (), 0, "minutes", "now", (), (), "", "", lambda now: proposal)
    one = Recommendation.of(toy, proposal, ("r",), "")
    assert headline(replace(fault, recommendations=(replace(one, text=""),))).sentences[2] == said


def test_nvidia_smi_is_not_asked_for_on_a_jetson() -> None:
    told = document(*(verdict("not_assessed", rule=f"r{n}", remedy="Run nvidia-smi -q.") for n in range(2)),
                    verdict("not_assessed", rule="log", remedy="Give the log."))  # fmt: skip
    of_jetson = replace(told, inputs=(InputRecord("tegrastats.log", "telemetry", "tegrastats"),))
    assert headline(told).sentences[2] == "To settle 2 more checks: run nvidia-smi -q."
    assert headline(of_jetson).sentences[2] == "To settle 1 more check: give the log."


def test_training_without_a_search_is_not_asked_for_a_study() -> None:
    no_trials = [verdict("not_assessed", rule=f"t{n}", remedy=GIVE_TRIALS) for n in range(3)]
    power = verdict("not_assessed", rule="p", remedy="Record power")
    use = {"mean_pct": 92.0, "n_gpus": 1}
    assert headline(document(*no_trials, power, utilization=use)).sentences[2] == (
        "To settle 1 more check: record power."
    )
    assert headline(document(*no_trials, utilization=use)).sentences[2] == "Nothing needs to be changed."
    assert within(GIVE_TRIALS) in headline(document(*no_trials, power)).sentences[2], (
        "without telemetry it is what is there"
    )


@pytest.mark.parametrize("sample", ["hpo-aggressive-pruning", "tiny-batch-laptop"])
def test_what_to_do_next_is_what_the_plan_begins_with(root: Path, sample: str) -> None:
    told = diagnosed(sample).document
    (first,) = [one for one in told.recommendations if one.id == told.advice.plan[0]]
    assert told.headline.sentences[2].startswith(first.title)
    assert told.recommendations[0] is first
