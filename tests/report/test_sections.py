"""Sections: what they show of a run, and the one line that is left of them without data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sampleruns import diagnosed
from toyrun import TOY_RULES, toy_diagnosis, toy_run, typed, with_only

from gpudiag.advice._engine.proposal import Gain
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.forecast.estimate import Estimate
from gpudiag.measures._gpu.signatures import CLASSES as MEASURED
from gpudiag.plots import PLOTS
from gpudiag.report._render import fragments, terminal
from gpudiag.report._render.blocks import Block, Chip, Figure, FindingBlock, Folded, Note, Number, TableBlock, Tiles
from gpudiag.report._render.markdown import render
from gpudiag.report._sections.bottleneck import CLASSES, bottleneck, limit
from gpudiag.report._sections.collectives import collectives
from gpudiag.report._sections.profiled import profiled
from gpudiag.report.format import UNKNOWN
from gpudiag.report.kinds.parallelism import between
from gpudiag.report.kinds.recommendations import gain
from gpudiag.report.sections import SECTIONS, card, cards, findings
from gpudiag.report.text import whole
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, conform


def unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks and those within folded ones."""
    for block in blocks:
        yield from unfolded(block.blocks) if isinstance(block, Folded) else (block,)


def markdown(name: str, document: dict[str, Any]) -> str:
    return render(SECTIONS[name](typed(document)))


@pytest.mark.parametrize("name", ["trials", "timeline", "utilization", "memory"])
def test_a_section_without_data_is_one_line_that_says_what_would_fill_it(name: str) -> None:
    empty = diagnose(Run(info=RunInfo(name="nothing")), rules=TOY_RULES).to_dict()
    (note,) = SECTIONS[name](typed(empty))
    assert isinstance(note, Note) and note.level == "unknown"
    assert any(hint in note.text for hint in ("Record the GPU with", "Give the study"))


def test_that_there_are_no_trials_is_said_once() -> None:
    empty = typed(diagnose(Run(info=RunInfo(name="nothing")), rules=TOY_RULES).to_dict())
    assert SECTIONS["trials"](empty) and SECTIONS["parallelism"](empty) == []


def with_steps(document: dict[str, Any]) -> None:
    """The toy has no training log."""
    numbers = {
        "step_s": 1.0,
        "logged_s": 100.0,
        "goodput_pct": 90.0,
        "n_left_out": 0,
        "n_undated": 0,
        "n_step_lines": 20,
        "pauses_s": 10.0,
        "evaluations_s": 4.0,
        "evaluations_low_s": 4.0,
        "checkpoints_s": 0.0,
        "checkpoints_low_s": 0.0,
        "first_s": 0.0,
        "down_s": 0.0,
        "resumption_s": 0.0,
    }
    document["measures"]["steps"] = {
        name: {"value": value, "unit": ""} for name, value in {"unit": "step", **numbers}.items()
    }


def with_ranks(document: dict[str, Any], n: int) -> None:
    """Traces of so many ranks."""
    facts = {"n_profiled_steps": 8, "profiled_step_s": 0.3, "profiled_idle_pct": 5.0, "stands_for_run": False}
    cells = {"compute_pct": 80.0, "communication_pct": 15.0, "launch_pct": 5.0}
    facts |= {f"rank.{rank}.{name}": value for rank in range(n) for name, value in cells.items()}
    document["measures"]["profiled"] = {name: {"value": value, "unit": ""} for name, value in facts.items()}


@pytest.mark.parametrize(("n", "kind"), [(1, TableBlock), (8, TableBlock), (9, Figure)])
def test_few_ranks_are_rows_and_many_a_map(document: dict[str, Any], n: int, kind: type) -> None:
    with_ranks(document, n)
    _, shown = profiled(typed(document))
    assert isinstance(shown, kind)
    if isinstance(shown, TableBlock):
        assert shown.columns == ("Rank", "Computing", "Communicating alone", "Idle: launching")
        assert len(shown.rows) == n


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"n_traces": 2, "n_ranks": 1.0}, "The 2 traces are of 1 rank: some count twice."),
        ({"n_traces": 2, "n_ranks": None}, "Not all of the 2 traces say of which rank they are"),
        ({"n_traces": 2, "n_ranks": 2.0}, ""),
        ({"n_traces": 1, "n_ranks": None}, ""),
    ],
)
def test_traces_of_one_rank_or_none_are_said(document: dict[str, Any], facts: dict[str, Any], said: str) -> None:
    with_ranks(document, 2)
    document["measures"]["profiled"] |= {name: {"value": value, "unit": ""} for name, value in facts.items()}
    note, _ = profiled(typed(document))
    assert isinstance(note, Note) and (said in note.text if said else "traces" not in note.text)


def test_that_profiled_steps_do_not_stand_for_the_run_is_said(document: dict[str, Any]) -> None:
    with_ranks(document, 1)
    document["measures"]["causes"] = {"trace_fit": {"value": "other_steps", "unit": ""}}
    note, _ = profiled(typed(document))
    assert isinstance(note, Note) and "do not stand for them" in note.text


def with_dumps(document: dict[str, Any], n: int, hang: str) -> None:
    """Dumps of so many ranks, of which the second is missing, or has no dump."""
    where = {"missing_ranks": "1" if hang == "missing" else "", "unknown_ranks": "1" if hang == "open" else ""}
    facts = {
        "n_dumps": n, "hang": hang, "collective": "all_reduce number 11", "group": "<b>0", **where, "n_waiting": n - 1,
        "waiting_ranks": "0, 2, 3", "waiting_since": "2026-02-03T14:00:11+00:00", "wait_s": 600.0,
    }  # fmt: skip
    for rank in range(n):
        role = (
            ("waiting", "ended")[hang == ""]
            if rank != 1
            else {"missing": "missing", "open": "unknown"}.get(hang, "ended")
        )
        cells = {"last_seq": 1041.0, "last_name": "<i>", "last_state": "started", "scheduled": None, "role": role}
        facts |= {f"rank.{rank}.{name}": value for name, value in cells.items()}
    document["measures"]["collectives"] = {name: {"value": value, "unit": ""} for name, value in facts.items()}


@pytest.mark.parametrize(("hang", "says"), [
    ("missing", "Rank 1 never came to all_reduce number 11 of group <b>0; ranks 0, 2 and 3 have waited for it since "
     "2026-02-03 15:00:11, for up to 10 min."),
    ("stuck", "All ranks came to all_reduce number 11 of group <b>0, and it does not end: ranks 0, 2 and 3 have waited "
     "for it since 2026-02-03 15:00:11, for up to 10 min."),
    ("open", "Ranks 0, 2 and 3 have waited in all_reduce number 11 of group <b>0 since 2026-02-03 15:00:11, for up to "
     "10 min. No dump says how far rank 1 came."),
])  # fmt: skip
def test_where_a_training_hangs_is_a_sentence_and_a_row_a_rank(document: dict[str, Any], hang: str, says: str) -> None:
    document["run"]["timezone"] = "Europe/Berlin"
    with_dumps(document, 4, hang)
    note, table = collectives(typed(document))
    assert note == Note(says)
    assert isinstance(table, TableBlock) and [row[0] for row in table.rows] == (
        ["0", "2", "3", "1"] if hang == "stuck" else ["1", "0", "2", "3"]
    )


def test_of_many_ranks_the_missing_ones_are_shown(document: dict[str, Any]) -> None:
    with_dumps(document, 40, "missing")
    _, table, more = collectives(typed(document))
    assert isinstance(table, TableBlock) and table.rows[0][0] == "1" and len(table.rows) == 16
    assert more == Note("And 24 ranks more.")


def test_without_a_hang_a_sentence_is_enough(document: dict[str, Any]) -> None:
    assert collectives(typed(document)) == []
    with_dumps(document, 4, "")
    assert collectives(typed(document)) == [Note("No rank waits in a collective, by the flight recorders of 4 ranks.")]


def test_every_section_shows_something_of_the_toy(document: dict[str, Any]) -> None:
    with_steps(document)
    for name, section in SECTIONS.items():
        assert section(typed(document)), name


def test_every_picture_has_one_place_and_every_place_a_picture(document: dict[str, Any]) -> None:
    document["measures"]["pruning"]["n_pruned"]["value"] = 1
    with_steps(document)
    with_ranks(document, 9)
    placed = [
        b.name for section in SECTIONS.values() for b in unfolded(section(typed(document))) if isinstance(b, Figure)
    ]
    document["verdicts"][0] |= {"topic": "memory", "severity": "warning"}
    first = [b.name for b in SECTIONS["verdict"](typed(document)) if isinstance(b, Figure)]
    assert first == ["overview_memory"], "it takes the place of the overview where the finding is of memory"
    placed += first
    assert sorted(placed) == sorted(name for name, plot in PLOTS.items() if plot.in_report), (
        "give each plot a place, Figure(name), in a section of gpudiag/report/, or in_report=False"
    )


def test_masthead(document: dict[str, Any]) -> None:
    text = markdown("masthead", document)
    assert text.startswith("# toy\n")
    assert "2 × NVIDIA GeForce RTX 4090, 24.0 GiB" in text
    assert "2026-03-01 18:00:00 to 19:00:00 (Asia/Taipei), 1 h" in text and "Trials: 12" in text


def test_findings_carry_evidence_limits_and_advice(document: dict[str, Any]) -> None:
    broken, folded, _ = SECTIONS["findings"](typed(document))
    assert isinstance(folded, Folded) and folded.summary == "1 note: the toy is dear"
    (dear,) = folded.blocks
    assert isinstance(dear, FindingBlock) and isinstance(broken, FindingBlock)
    assert (dear.id, dear.cost) == ("toy-dear", "cost 2 GPU-h")
    assert broken.facts == (("GPU", "1"), ("cracks", "7"), ("crack", "12.3 %"))
    assert broken.limits == (("max_cracks", "3"),)
    assert (broken.advice, broken.refuted_by) == ("Mend `it` with glue.", "It runs.")


@pytest.mark.slow
def test_a_changed_limit_says_so() -> None:
    document = diagnose(toy_run(), rules=TOY_RULES, thresholds={"toy-broken": {"max_cracks": 5}}).to_dict()
    assert "5 (changed for this run)" in markdown("findings", document)
    assert "`max_cracks` 5 (changed for this run)" in markdown("provenance", document)


def test_checks_list_every_rule_once(document: dict[str, Any]) -> None:
    (folded,) = SECTIONS["checks"](typed(document))
    assert isinstance(folded, Folded) and folded.summary == "4 of 4 checks and their results"
    (table,) = folded.blocks
    assert isinstance(table, TableBlock)
    assert [row[0] for row in table.rows] == [Chip("critical"), Chip("note"), Chip("ok"), Chip("none")]


def test_open_checks_are_a_row_a_reason_and_the_step_that_settles_most_is_said(document: dict[str, Any]) -> None:
    for verdict, reason in zip(document["verdicts"], ("No log.", "No clock.", "No log.", "No log."), strict=True):
        verdict |= {"status": "not_assessed", "reason": reason, "remedy": "Record it."}
    document["verdicts"][1]["remedy"] = "Set it."
    *_, folded = SECTIONS["findings"](typed(document))
    assert isinstance(folded, Folded) and folded.summary == "4 checks could not be assessed"
    step, table = folded.blocks
    assert isinstance(step, Note) and step.text == "For 3 of them: Record it."
    assert isinstance(table, TableBlock)
    ids = [verdict["rule"] for verdict in document["verdicts"]]
    assert [row[0] for row in table.rows] == [Chip("unknown", "3 checks"), Chip("unknown", "1 check")]
    assert [row[1:3] for row in table.rows] == [("No log.", "Record it."), ("No clock.", "Set it.")]
    assert [row[3] for row in table.rows] == [f"`{ids[0]}`, `{ids[2]}`, `{ids[3]}`", f"`{ids[1]}`"]


def test_the_worst_five_stand_open(document: dict[str, Any]) -> None:
    one = document["verdicts"][0]
    many = [{**one, "rule": f"r{n}", "severity": "warning"} for n in range(7)]
    document["verdicts"] = [*many, *document["verdicts"][1:]]
    blocks = SECTIONS["findings"](typed(document))
    assert [block.id for block in blocks if isinstance(block, FindingBlock)] == [f"r{n}" for n in range(5)]
    folded = next(block for block in blocks if isinstance(block, Folded))
    assert folded.summary.startswith("2 more findings and 1 note: ")
    assert [block.id for block in folded.blocks if isinstance(block, FindingBlock)] == ["r5", "r6", "toy-dear"]


def test_the_sections_do_not_print_the_document(toy: Diagnosis) -> None:
    assert len(repr(toy.show)) < 100


@pytest.mark.slow
def test_nothing_found_is_said(toy: Diagnosis) -> None:
    document = diagnose(toy_run(), rules=TOY_RULES[2:]).to_dict()
    note, *_ = SECTIONS["findings"](typed(document))
    assert isinstance(note, Note) and note.level == "ok"


def test_a_run_of_which_too_little_is_known_says_what_is_missing() -> None:
    telemetry = pd.DataFrame({"time": pd.date_range("2026-01-01", periods=3, freq="5s", tz="UTC"), "gpu": "0"})
    told = diagnose(Run(gpu=conform(telemetry.assign(util_pct=0.0, mem_used_mib=300.0, mem_total_mib=24e3), GPU)))
    assert told.document.headline.level == "unknown" and not told.document.findings, "free memory is no finding of 15 s"
    table, *_ = SECTIONS["findings"](told.document)
    assert isinstance(table, TableBlock) and 1 <= len(table.rows) <= 5
    counted = [int(row[0].text) for row in table.rows if isinstance(row[0], Number)]
    assert counted == sorted(counted, reverse=True)
    assert any("15 s were observed" in str(row[1]) and "gpudiag record" in str(row[2]) for row in table.rows)


def test_trials_and_pruning_rates(document: dict[str, Any]) -> None:
    text = markdown("trials", document)
    # 12 trials: 2 COMPLETE, 7 PRUNED, 2 FAIL, 1 RUNNING; the rate is of all, of finished and of decided.
    assert "| PRUNED | 7 | 58.3 % |" in text
    assert "| of all trials | 58.3 % |" in text
    assert "| of finished trials | 63.6 % |" in text
    assert "| of COMPLETE and PRUNED | 77.8 % |" in text


@pytest.mark.parametrize(
    ("running", "abandoned", "said"),
    [(0, 0, []), (3, 0, []), (3, 3, [("abandoned", "3")]), (3, 2, [("or more abandoned", "2")])],
)
def test_abandoned_trials_are_a_least_number_only_where_there_may_be_more(
    document: dict[str, Any], running: int, abandoned: int, said: list[tuple[str, str]]
) -> None:
    facts = document["measures"]["trials"]
    facts["n_running"]["value"], facts["abandoned"]["value"] = running, abandoned
    tiles = [block for block in unfolded(SECTIONS["trials"](typed(document))) if isinstance(block, Tiles)]
    assert [item for block in tiles for item in block.items if "abandoned" in item[0]] == said


def test_utilization_and_memory_a_row_a_gpu(document: dict[str, Any]) -> None:
    use = markdown("utilization", document)
    assert "| GPU 0 | 80 % |" in use and "| GPU 1 | 0 % |" in use
    assert "| GPU 0 | 300 W |" in use
    assert "| GPU 0 | 24.0 GiB | 11.7 GiB |" in markdown("memory", document)


def test_data_quality_names_inputs_oddities_and_clock(document: dict[str, Any]) -> None:
    text = markdown("data_quality", document)
    assert "gpu.csv" in text and "torn line" in text and "line 17" in text and "rows dropped" in text
    assert "(strong; given)" in text and "written by hand" in text


def test_provenance_names_hash_settings_and_versions(document: dict[str, Any]) -> None:
    text = markdown("provenance", document)
    assert "ab" * 32 in text and "| `parallel` | 2 |" in text and "| numpy |" in text


@pytest.mark.slow
def test_a_symptom_stands_on_the_card_of_its_cause() -> None:
    document = toy_diagnosis().to_dict()
    cause, symptom = (next(v for v in document["verdicts"] if v["rule"] == name) for name in ("toy-broken", "toy-dear"))
    symptom["caused_by"] = "toy-broken"
    card, *_ = findings(typed(document))
    assert isinstance(card, FindingBlock)
    assert [one.id for one in card.symptoms] == ["toy-dear"]
    html, text, plain = fragments.render([card]), render([card]), terminal.render([card])
    assert html.index('id="finding-toy-broken"') < html.index("Explained by it:") < html.index('id="finding-toy-dear"')
    assert html.count("<article") == html.count("</article>") == 2
    assert f"#### ● note: {symptom['title']}" in text and f"### ■ critical: {cause['title']}" in text
    assert f"\n\n● note: {symptom['title']}" in plain and plain.count(f"Explained by: {cause['title']}") == 1
    assert f"Explained by: {cause['title']}" in terminal.render(whole(typed(document)))
    document["verdicts"].remove(cause)
    alone, *_ = findings(typed(document))
    assert isinstance(alone, FindingBlock) and alone.id == "toy-dear"


def test_more_than_all_workers_is_said_in_words(document: dict[str, Any]) -> None:
    used = document["measures"]["parallelism"]["efficiency_pct"]
    used["value"] = 100.4
    text = markdown("parallelism", document)
    assert "**all, and 0.4 % more** of the configured workers used" in text and "100.4" not in text
    used["value"] = 100.0
    assert "**100 %** of the configured workers used" in markdown("parallelism", document)


def test_what_limited_a_busy_gpu_is_a_table_where_more_is_known_than_that_it_was_busy() -> None:
    limit = {name: {"value": 0.0, "unit": "%"} for name in (f"{one}_pct" for one in CLASSES)}
    limit |= {"trial_gpu_s": {"value": 7200.0, "unit": "GPU-s"}, "label": {"value": "", "unit": ""}}

    def table(**shares: float) -> list[Block]:
        values = {f"{name}_pct": {"value": share, "unit": "%"} for name, share in shares.items()}
        return bottleneck(with_only(measures={"bottleneck": {**limit, **values}}))

    assert table(busy=80.0, undetermined=20.0) == [] and table(io_wait=100.0) == []
    _, shown = table(compute_bound=60.0, busy=25.0, cpu_bound=15.0)
    assert isinstance(shown, TableBlock)
    assert [row[0] for row in shown.rows] == ["bound by computing", "busy (the record does not show with what)"]
    assert shown.rows[0][2] == Number("1.2 GPU-h")
    assert bottleneck(with_only(measures={})) == []
    assert tuple(CLASSES) == MEASURED


def test_the_headline_says_what_limited_the_run_only_where_there_is_an_answer() -> None:
    def said(label: str, wait_pct: float | None = None) -> str:
        facts = {f"{one}_pct": {"value": 60.0 if one == "io_wait" else 0.0, "unit": "%"} for one in CLASSES}
        facts |= {"trial_gpu_s": {"value": 7200.0, "unit": "GPU-s"}, "has_host": {"value": True, "unit": ""}}
        waits = {} if wait_pct is None else {"of_step_pct": {"value": wait_pct, "unit": "%"}}
        held = facts | {"label": {"value": label, "unit": ""}}
        return limit(with_only(measures={"bottleneck": held, "loader": waits}))

    assert said("") == "" and said("", 49.0) == "" and limit(with_only(measures={})) == ""
    assert said("io_wait", 49.0).startswith("60 % of the trial time was beside I/O wait on the host")
    assert said("io_wait", 76.0) == (
        "The data loader: by the training log a step spends 76 % of its time waiting for it."
    ), "what is known from the log wins"


def test_where_the_time_went_is_a_sentence(document: dict[str, Any]) -> None:
    def said(cells: dict[str, float], *, has_trials: bool, busy_pct: float = 90.0) -> str:
        facts = {"n_gpus": 1, "has_trials": has_trials, "mean_util_pct": 84.04, "coverage_pct": 100.0}
        ledger = {"total_gpu_s": sum(cells.values()),
                  "cells": [{"gpu": "0", "cell": cell, "gpu_s": s} for cell, s in cells.items()]}  # fmt: skip
        measures = {"ledger": {name: {"value": value, "unit": "1"} for name, value in facts.items()}}
        advice = {**document["advice"], "busy_pct": busy_pct}
        note, *_ = SECTIONS["ledger"](typed({**document, "measures": measures, "ledger": ledger, "advice": advice}))
        assert isinstance(note, Note)
        return note.text

    seconds = {"busy": 9000.0, "stalled": 600.0, "startup_only": 380.0, "idle_no_trial": 20.0}
    assert said(seconds, has_trials=True) == (
        "Of 2.8 GPU-h, 90 % ran at 50 % utilization or more, 6 % stalled inside trials and 3.8 % was "
        "start-up alone. Mean utilization from the first trial to the last was 84 %."
    )
    assert said({"idle_no_trial": 3600.0}, has_trials=False) == (
        "Of 1 GPU-h, 100 % was idle. Mean utilization over the whole record was 84 %."
    )
    assert "Mean utilization" not in said(seconds, has_trials=True, busy_pct=84.0), "the next section says it"


def test_what_utilization_leaves_to_gain_is_the_runs_own_number(document: dict[str, Any]) -> None:
    def said(busy: float | None) -> str:
        return markdown("utilization", {**document, "advice": {**document["advice"], "busy_pct": busy}})

    assert "was 84 %: kernels that never pause would make trials at most 1.2× as fast." in said(83.8)
    assert "Mean utilization while trials ran was 50 %: kernels that never pause would make trials" in said(50.0)
    assert "would make trials at most 2× as fast." in said(50.0)
    assert "as fast" not in said(None)


@pytest.mark.parametrize(
    ("mean", "has_trials", "text"),
    [
        (30.0, True, "Mean utilization while trials ran was 32 %"),
        (30.0, False, "Mean utilization of the GPUs that worked was 32 %"),
        (32.0, True, "Mean utilization was 32 %"),
    ],
)
def test_the_time_of_a_mean_is_said_where_the_page_has_another(
    document: dict[str, Any], mean: float, has_trials: bool, text: str
) -> None:
    measured = document["measures"]["ledger"]
    values = {"mean_util_pct": mean, "has_trials": has_trials}
    ledger = {**measured, **{name: {**measured[name], "value": value} for name, value in values.items()}}
    told = {**document, "advice": {**document["advice"], "busy_pct": 32.0}}
    assert text in markdown("utilization", {**told, "measures": {**document["measures"], "ledger": ledger}})


@pytest.mark.parametrize("name", ["run_report", "gpu_report"])
def test_no_notebook_holds_a_number_of_utilization_in_its_prose(root: Path, name: str) -> None:
    assert "leaves room for" not in (root / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_command_is_said_once(samples: Path) -> None:
    """Under Findings, where the step stands that settles most; other sections refer to it."""
    study = diagnose(samples / "hpo-aggressive-pruning/optuna.db")
    said = {name: repr(list(getattr(study.show, name).blocks)).count("nvidia-smi --query-gpu") for name in SECTIONS}
    assert said.pop("findings") == 1 and not any(said.values())
    assert "the command under Findings" in repr(study.show.memory.blocks)
    alone = study.showing("memory")
    assert "nvidia-smi --query-gpu" in repr(alone.show.memory.blocks)


def test_a_value_of_a_forecast_is_rounded_as_its_interval_is() -> None:
    def said(value: float, low: float, high: float) -> str:
        return between(Estimate(value, low, high, "trials/h"))

    assert said(10.2, 9.1, 10.4) == "10.2 (9.1–10.4)" and said(123.4, 98.0, 137.2) == "123 (98–138)"
    assert said(0.0123, 0.0101, 0.0149) == "0.0123 (0.0101–0.0149)" and said(8.0, 8.0, 8.0) == "8 (8–8)"
    assert said(math.nan, math.nan, math.nan) == UNKNOWN


def test_a_gain_is_the_same_number_in_a_forecast_and_in_a_recommendation() -> None:
    for low, high, both in ((1.3618, 1.8766, "1.36–1.88"), (1.0401, 1.2541, "1.04–1.26"), (1.04, 2.93, "1.04–2.93")):
        assert gain(Gain(low, high)) == f"{both}× faster"
        assert between(Estimate(low + 0.1, low, high)) == f"{round(low + 0.1, 2):g} ({both})"
        assert between(Estimate.bounds(low, high, "", "")) == both


@pytest.mark.slow
def test_a_cause_keeps_its_own_severity_on_its_card() -> None:
    made = diagnosed("starved-input-pipeline/before").document
    by_rule = {one.rule: one.severity.value for one in made.findings}
    assert by_rule["loader-slow"] == "warning" and by_rule["gpu-low-utilization"] == "critical"
    (cause,) = [one for one in cards(made, card) if one.id == "loader-slow"]
    assert cause.level == "warning" and [one.level for one in cause.symptoms] == ["critical"]


@pytest.mark.parametrize(
    ("sample", "picture"), [("memory-exhaustion", "overview_memory"), ("hpo-aggressive-pruning", "overview")]
)
def test_the_first_picture_shows_memory_where_the_finding_is_of_memory(sample: str, picture: str) -> None:
    blocks = SECTIONS["verdict"](diagnosed(sample).document)
    assert [block.name for block in blocks if isinstance(block, Figure)] == [picture]
