"""All that can be asked of a run, and what must hold of every answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar
from xml.etree import ElementTree

import jsonschema
import numpy as np

from gpudiag.comparison.compare import compare
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import GpudiagError
from gpudiag.export import openmetrics, perfetto, tables
from gpudiag.forecast.memory.capacity import memory_capacity
from gpudiag.forecast.parallelism.what_if import what_if
from gpudiag.forecast.pruning.replay import replay_pruner
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.plain_data import json_text
from gpudiag.plots import PLOTS
from gpudiag.plots.comparison import COMPARISON_PLOTS
from gpudiag.report._render import terminal
from gpudiag.report._sections import forecast as forecasts
from gpudiag.report.github import github_annotations
from gpudiag.report.gitlab import gitlab_issues
from gpudiag.report.junit import junit_xml
from gpudiag.report.sarif import sarif_log
from gpudiag.report.sections import SECTIONS
from gpudiag.report.text import whole
from gpudiag.run import Run
from gpudiag.schemas import schema

T = TypeVar("T")
NO_NUMBER = re.compile(r"(?<![\w.=])[-−+]?(nan|inf|NaN|NaT|<NA>|&lt;NA&gt;|None)(?![\w])")
"""What Python writes for the unknown and the infinite; people never read it."""
MARKUP = re.compile(r"(?<!\\)(?:\\\\)*<img src=x")
"""A tag that no backslash escapes."""
NO_SHARE = ("cpu_pct", "cpu_max_pct", "efficiency_pct", "rise_pct", "fall_pct")
"""Of one core where a process has several; of the workers that somebody configured; a change either way."""
PRUNERS = ("median(n_startup_trials=2)", "patient(hyperband(),patience=2)", "threshold(upper=1)")


def answer(make: Callable[[], T]) -> T | None:
    """What is answered, None where gpudiag says in a sentence why not; anything else is raised."""
    try:
        return make()
    except GpudiagError as error:
        said = str(error)
        assert said and "\n" not in said and not NO_NUMBER.search(said), said
        return None


@cache
def _validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(schema(name))


def valid(text: str, name: str) -> Any:
    """The document that JSON text holds: strict JSON that its schema allows."""

    def refuse(word: str) -> None:
        raise AssertionError(f"JSON holds {word}")

    document = json.loads(text, parse_constant=refuse)
    error = jsonschema.exceptions.best_match(_validator(name).iter_errors(document))
    assert error is None, f"{list(error.absolute_path)}: {error.message[:500]}"
    return document


def known(text: str) -> None:
    """Text without an unknown number."""
    found = NO_NUMBER.search(text)
    assert found is None, text[max(found.start() - 150, 0) : found.end() + 50]


def plain(text: str) -> None:
    """Text of a terminal, where markup is text as any other: no unknown number, and no colors that a name brought."""
    known(text)
    assert "\x1b[31mred" not in text


def readable(text: str) -> None:
    """A page without an unknown number and without markup that a name brought; Markdown may hold it escaped."""
    plain(text)
    assert not MARKUP.search(text)


def diagnosed(run: Run) -> Diagnosis:
    """The diagnosis of a run, with its documents checked."""
    made = diagnose(run)
    assert not made.errors
    ledger_holds(made.ledger, run)
    document = valid(made.to_json(), "diagnosis-4")
    shares_hold(document)
    valid(json_text(made.plan([one.id for one in made.recommendations])), "plan-1")
    return made


def ledger_holds(ledger: LedgerProfile | None, run: Run) -> None:
    """Cells of a GPU are its window to the microsecond, or what of it a job held the GPU; none is negative; compute is
    within its cell.
    """
    if ledger is None:
        return
    cells = ledger.cells["gpu_s"].to_numpy(float)
    assert (cells >= 0).all() and np.isfinite(cells).all()
    windows = (ledger.windows["end"] - ledger.windows["start"]).dt.total_seconds().sum()
    by_gpu = ledger.cells.groupby("gpu", observed=True)["gpu_s"].sum()
    if not (np.rint(by_gpu * 1e6) == np.rint(windows * 1e6)).all():
        held = {gpu: sum(end - start for start, end in of) for gpu, of in gpu_time(run).windows_of.items()}
        assert np.rint(by_gpu * 1e6).to_dict() == held and by_gpu.max() <= windows, (by_gpu, windows)
    assert math.isclose(math.fsum(cells), ledger.total_gpu_s, rel_tol=1e-12)
    assert math.isclose(math.fsum(ledger.totals["gpu_s"]), ledger.total_gpu_s, rel_tol=1e-12)
    assert math.isclose(ledger.totals["share_pct"].sum(), 100)
    both = ledger.compute.merge(ledger.cells, on=["gpu", "cell"], validate="1:1")
    assert both["compute_gpu_s"].between(0, both["gpu_s"] * (1 + 1e-9)).all()
    assert 0 <= ledger.observed_gpu_s <= ledger.total_gpu_s * (1 + 1e-12)


def shares_hold(document: Any) -> None:
    """Every share among the measures lies within 0 and 100 %."""
    for topic, values in document["measures"].items():
        for name, measured in values.items():
            if measured["unit"] == "%" and measured["value"] is not None and not name.endswith(NO_SHARE):
                assert -1e-9 <= measured["value"] <= 100 + 1e-9, f"{topic}.{name} {measured['value']}"


def rendered(made: Diagnosis) -> None:
    """Every renderer of a diagnosis, without pictures."""
    document = made.document
    for text in (repr(made), terminal.render(whole(document)), github_annotations(document)):
        plain(text)
    readable(made.to_markdown())
    ElementTree.fromstring(junit_xml(document))
    for text in (gitlab_issues(document, "gpu.csv"), sarif_log(document, "gpu.csv")):
        json.loads(text)
    show = replace(made.show, draw=lambda name: None)
    for name in SECTIONS:
        shown = getattr(show, name)
        readable(shown._repr_html_())
        readable(shown._repr_markdown_())


def exported(made: Diagnosis) -> None:
    json.dumps(perfetto.trace(made), allow_nan=False)
    assert openmetrics.text(made).endswith("# EOF\n")
    for _, frame in tables.frames(made):
        len(frame)


def drawn(made: Diagnosis, names: Iterable[str] = PLOTS) -> None:
    """Pictures with their words, which pages escape; SVG is made, which lays out every text."""
    for name in names:
        picture = answer(lambda name=name: made.picture(name))
        if picture is not None:
            known(picture.alt)
            known(picture.caption)
            assert "<svg" in picture.svg()


def forecast(run: Run) -> None:
    """Parallelism, memory and pruning, with text, JSON and figures."""
    for parallel in (None, [1, 64]):
        made = answer(lambda parallel=parallel: what_if(run, parallel))
        if made is not None:
            valid(made.to_json(), "forecast-2")
            plain(repr(made))
            readable(made.to_markdown())
            for name in forecasts.FIGURES:
                forecasts.draw(name, made)
    answer(lambda: memory_capacity(run).to_dict())
    for pruner in PRUNERS:
        answer(lambda pruner=pruner: plain(repr(replay_pruner(run, pruner))))


def compared(first: Run, second: Run, *, figures: bool = True) -> None:
    """One against the other, with a plan of the first."""
    plan = answer(lambda: diagnose(first).plan())
    made = answer(lambda: compare(first, second, plan=plan))
    if made is None:
        return
    assert not made.errors
    valid(made.to_json(), "comparison-1")
    readable(made.to_markdown())
    for text in (made.summary(), repr(made)):
        plain(text)
    for name in COMPARISON_PLOTS if figures else ():
        answer(lambda name=name: made.picture(name))
