"""Jobs of a scheduler are called jobs wherever a person reads of them; names, options and code stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from test_alignment_jobs import Jobs, loaded

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.faults import Failed, Fault
from gpudiag.report._notebook.pages import html_page
from gpudiag.report._render import terminal
from gpudiag.report.noun import noun, noun_of, said, worded
from gpudiag.report.text import screen, whole
from gpudiag.report.timeline.lanes import lanes_of
from gpudiag.report.timeline.packed import _content

ALONE = re.compile(r"(?<![-\w.:#])trials?(?![-\w.])", re.IGNORECASE)


@pytest.fixture(scope="module")
def diagnosis(tmp_path_factory: pytest.TempPathFactory) -> gd.Diagnosis:
    return gd.diagnose(loaded(tmp_path_factory.mktemp("of-jobs"), Jobs(waits_s=(900, 300, 600, 1200))))


@pytest.mark.parametrize(
    ("text", "by_jobs"),
    [
        ("Trials took 3 s; a trial's end, the trials' clock.", "Jobs took 3 s; a job's end, the jobs' clock."),
        ("12 trials/h (trial 3)", "12 jobs/h (job 3)"),
        ("--trials optuna.db", "--trials optuna.db"),
        ("See data/trials/trial.csv, trial_1 and trials.csv.", "See data/trials/trial.csv, trial_1 and trials.csv."),
        ("`trial.report(...)` of a trial", "`trial.report(...)` of a job"),
        ("trial(3) of study 'trial'", "trial(3) of study 'trial'"),
        ("industrial trialing", "industrial trialing"),
    ],
)
def test_a_word_by_itself_is_the_noun(text: str, by_jobs: str) -> None:
    assert said(text, "job") == by_jobs
    assert said(text, "trial") == text


def test_what_was_not_measured_keeps_its_values() -> None:
    gap = worded(NotMeasurable("Only {n:trial} ended.", "Give --trials.", n=2), "job")
    assert (gap.reason, gap.remedy) == ("Only 2 jobs ended.", "Give --trials.")
    fault = Failed(Fault("measure trials", "ValueError", "here"))
    assert worded(fault, "job") is fault


@pytest.mark.slow
def test_every_sentence_on_jobs_says_jobs(diagnosis: gd.Diagnosis) -> None:
    assert noun_of(diagnosis.run) == noun(diagnosis.document) == "job"
    shown = [terminal.text(whole(diagnosis.document)), terminal.text(screen(diagnosis.document)), diagnosis.headline]
    shown += [str(text) for verdict in diagnosis.verdicts for text in
              (verdict.title, verdict.checks, verdict.summary, verdict.reason, verdict.remedy)]  # fmt: skip
    shown += [text for one in diagnosis.recommendations for text in _texts(one)]
    assert [text for text in shown if ALONE.search(text)] == []
    assert any("jobs" in text for text in shown)


@pytest.mark.slow
def test_pictures_say_jobs(diagnosis: gd.Diagnosis) -> None:
    from matplotlib.text import Text

    for name in dir(diagnosis.plot):
        picture = diagnosis.picture(name)
        picture.figure.canvas.draw()  # which writes the labels of ticks
        drawn = [one.get_text() for one in picture.figure.findobj(Text) if isinstance(one, Text)]
        assert not [text for text in (picture.alt, picture.caption, *drawn) if ALONE.search(text)], name


@pytest.mark.slow
def test_sections_say_jobs(diagnosis: gd.Diagnosis) -> None:
    for name in set(dir(diagnosis.show)) - {"provenance"}:
        assert not ALONE.search(getattr(diagnosis.show, name)._repr_markdown_()), name


@pytest.mark.slow
def test_trials_of_a_study_stay_trials(diagnosis: gd.Diagnosis) -> None:
    run = diagnosis.run
    searched = gd.diagnose(replace(run, trials=run.trials.drop(columns="user_attrs.job")))
    assert noun_of(searched.run) == noun(searched.document) == "trial"
    assert "trials" in terminal.text(whole(searched.document))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _texts(one)
    elif is_dataclass(value):
        for one in fields(value):
            if one.name not in ("id", "rule", "rules", "measure", "code"):
                yield from _texts(getattr(value, one.name))


@pytest.mark.slow
def test_the_page_says_jobs_in_its_headings_lanes_and_table(diagnosis: gd.Diagnosis) -> None:
    page = diagnosis._notebook(pictures=False)
    prose = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    assert not [title for title in re.findall(r"^#+ .*", prose, re.MULTILINE) if ALONE.search(title)]
    made = html_page(page)
    assert "All 4 jobs: sort, filter and copy" in made and "All 4 trials" not in made
    analysis = diagnosis.analysis
    timeline = _content(lanes_of(analysis))
    assert timeline["noun"] == "job" and timeline["label"].endswith("4 jobs and 1 GPU")
    assert not [cell["label"] for cell in timeline["ledger"]["cells"] if ALONE.search(cell["label"])]
