"""One fault stays one fault: an exception planted into one part ends that part alone, and every output tells of it."""

from __future__ import annotations

import functools
import json
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from documents import fits
from toyrun import renamed, toy_run

import gpudiag as gd
from gpudiag import advice, faults
from gpudiag.advice._engine.advise import advise
from gpudiag.agents.citing import diagnosis as cited
from gpudiag.comparison import compare as comparing
from gpudiag.comparison import quantities
from gpudiag.comparison.compare import Comparison
from gpudiag.errors import NotMeasurable
from gpudiag.faults import REPORT, Failed, Fault, attempt, heard
from gpudiag.forecast.parallelism import what_if as forecast
from gpudiag.measures import power
from gpudiag.plots import PLOTS
from gpudiag.report._notebook.locate import find_notebook
from gpudiag.report._notebook.told_faults import errors_of
from gpudiag.report._render.terminal import render
from gpudiag.report.github import github_annotations
from gpudiag.report.gitlab import gitlab_issues
from gpudiag.report.junit import junit_xml
from gpudiag.report.sarif import sarif_log
from gpudiag.report.sections import SECTIONS
from gpudiag.report.text import screen, whole
from gpudiag.rules import RULES
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.verdict import Status

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "samples"
SAMPLE = SAMPLES / "tiny-batch-laptop"
STUDY = SAMPLES / "healthy"


class Planted(Exception):
    """What nobody raises on purpose."""


def broken(like: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the same name and parameters that fails; its text quotes data that no document may hold."""

    @functools.wraps(like)
    def fails(*args: object, **kwargs: object) -> Any:
        raise Planted("s3cret-of-the-run")

    return fails


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    """As users run it: faults are kept."""
    with faults.strict(False):
        yield


@pytest.fixture(scope="module")
def sound() -> gd.Diagnosis:
    """The toy without any fault."""
    return gd.diagnose(toy_run())


@pytest.fixture(scope="module")
def powerless() -> gd.Diagnosis:
    """The toy where a measure failed."""
    with faults.strict(False), pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "_one_gpu", broken(power._one_gpu))
        return gd.diagnose(toy_run())


@pytest.fixture(scope="module")
def sound_pair() -> Comparison:
    return gd.compare(toy_run("a"), renamed(toy_run("b"), "b"))


@pytest.fixture
def no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "_one_gpu", broken(power._one_gpu))


OF_POWER = {rule.id for rule in RULES if rule.topic == "power"}


def statuses(found: gd.Diagnosis) -> dict[str, str]:
    return {verdict.rule: verdict.status.value for verdict in found.verdicts}


@pytest.mark.slow
def test_a_measure_that_fails_is_missing_and_its_rules_are_error(sound: gd.Diagnosis, powerless: gd.Diagnosis) -> None:
    whole, found = statuses(sound), powerless
    hit = {rule for rule, status in statuses(found).items() if status == "error"}
    assert hit == OF_POWER
    assert {rule: s for rule, s in statuses(found).items() if rule not in hit} == {
        rule: s for rule, s in whole.items() if rule not in hit
    }
    gap = found.missing["power"]
    assert "power" not in found.profiles and isinstance(gap, Failed) and "Planted" in gap.reason
    (fault,) = found.errors
    assert (fault.part, fault.type) == ("measure power", "Planted")
    assert re.fullmatch(r"test_faults\.py:\d+, called at gpudiag/measures/power\.py:\d+", fault.place)
    assert "Planted: s3cret-of-the-run" in fault.traceback


@pytest.mark.slow
def test_a_place_is_a_line_of_gpudiag_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in its own code, or in a library it called, is told as the line of gpudiag."""
    monkeypatch.setattr(power, "cells_where", lambda *args: None)
    (fault,) = gd.diagnose(toy_run()).errors[:1]
    file, line = fault.place.split(":")
    source = Path(gd.__file__).parent.parent / file
    assert file.startswith("gpudiag/") and source.read_text().splitlines()[int(line) - 1].strip()


def failing_rule() -> tuple[Rule, ...]:
    return tuple(
        replace(rule, judge=broken(rule.judge)) if rule.id == "gpu-low-utilization" else rule for rule in RULES
    )


@pytest.mark.slow
def test_a_rule_that_fails_is_error_and_alone(sound: gd.Diagnosis) -> None:
    found = gd.diagnose(toy_run(), rules=failing_rule())
    changed = {rule for rule, status in statuses(found).items() if status != statuses(sound)[rule]}
    assert changed == {"gpu-low-utilization"}
    (verdict,) = [v for v in found.verdicts if v.status is Status.ERROR]
    assert (
        "Planted" in verdict.reason
        and "gpudiag/rules/_engine/judging.py:" in verdict.reason
        and "--debug" in verdict.remedy
    )
    assert "ERROR" in repr(verdict) and "ERROR" in repr(found.verdicts)


def ours(kind: str) -> str:
    return f"The {kind} is of module nightly, not of gpudiag: mend it there."


def told_alike(rule: Rule, part: str, remedy: str, tmp_path: Path) -> None:
    """Every output names the same one who mends it."""
    found = gd.diagnose(toy_run(), rules=(rule,))
    document = found.to_dict()
    fits(document, "diagnosis-4")
    (fault,) = found.errors
    assert (fault.part, fault.remedy) == (part, remedy)
    assert [(one["part"], one["module"]) for one in document["errors"]] == [(part, fault.module)]
    assert [verdict["remedy"] for verdict in document["verdicts"]] == [remedy]
    (tmp_path / "diagnosis.json").write_text(json.dumps(document))
    assert [str(one) for one in errors_of(tmp_path)] == [str(fault)], "as read back from a report"
    page = found.showing("verdict,checks,data_quality", minimal=True).save(tmp_path / "x.html").read_text()
    outputs = {
        "HTML": page,
        "Markdown": found.to_markdown(),
        "terminal": render(screen(found.document), width=1000),
        "terminal, --all": render(whole(found.document), width=1000),
        "verdict": repr(found.verdicts[0]),
        "GitHub": github_annotations(found.document),
        "JUnit": junit_xml(found.document),
        "GitLab": gitlab_issues(found.document, "report.html"),
        "SARIF": sarif_log(found.document, "report.html"),
        "agent": "".join(cited("run", found.document, whole=False).faults),
    }
    others = {ours("rule"), ours("measure"), "This is a fault of gpudiag"} - {remedy}
    for name, text in outputs.items():
        flat = re.sub(r"\s+", " ", text).replace("`", "")
        assert remedy.replace("`", "")[:60] in flat, name
        assert not any(other in flat for other in others if not remedy.startswith(other)), name


@pytest.mark.slow
def test_a_fault_of_a_rule_of_somebody_else_is_theirs_in_every_output(tmp_path: Path) -> None:
    (hit,) = (rule for rule in failing_rule() if rule.id == "gpu-low-utilization")
    theirs = replace(hit, judge=broken(lambda profile, *, low_pct=1.0: None))
    theirs.judge.__module__ = "nightly"
    told_alike(theirs, "rule gpu-low-utilization", ours("rule"), tmp_path)


@pytest.mark.slow
def test_a_fault_of_a_measure_is_of_who_wrote_the_measure(no_power: None, tmp_path: Path) -> None:
    """A rule of somebody's own is not at fault where a measure of gpudiag fails."""
    theirs = replace(next(rule for rule in RULES if rule.topic == "power"), judge=lambda profile: None)
    theirs.judge.__module__ = "nightly"
    told_alike(theirs, "measure power", REPORT, tmp_path)


@pytest.mark.slow
def test_a_fault_of_a_measure_of_somebody_else_is_theirs(tmp_path: Path) -> None:
    def measure_night(run: Any) -> Any:
        raise Planted(run.info.name)

    measure_night.__module__ = "nightly"
    told_alike(replace(RULES[0], measure=measure_night), "measure night", ours("measure"), tmp_path)


@pytest.mark.slow
def test_every_output_of_a_diagnosis_tells_of_it(powerless: gd.Diagnosis, tmp_path: Path) -> None:
    found = powerless
    document = found.to_dict()
    fits(document, "diagnosis-4")
    assert [one["part"] for one in document["errors"]] == ["measure power"]
    assert document["headline"]["counts"]["error"] == len(OF_POWER)
    assert f"{len(OF_POWER)} check failed to run (ERROR)" in document["headline"]["verdict"]
    root = ElementTree.fromstring(junit_xml(found.document).encode())
    assert {
        case.attrib["name"].split(":")[0] for case in root.iter("testcase") if case.find("error") is not None
    } == OF_POWER
    assert root.attrib["errors"] == root[0].attrib["errors"] == str(len(OF_POWER))
    (line,) = [
        one for one in github_annotations(found.document).splitlines() if "ERROR" in one and "measure power" in one
    ]
    assert line.startswith("::warning ")
    metrics = [*gd_export(found, "openmetrics", tmp_path)]
    (metric,) = [one for one in metrics if one.startswith("gpudiag_checks{") and '"error"' in one]
    assert float(metric.rpartition(" ")[2]) == len(OF_POWER)
    brief = found.showing("verdict,checks,data_quality", minimal=True)  # without figures
    for suffix in (".html", ".md", ".json"):
        text = brief.save(tmp_path / f"x{suffix}").read_text()
        assert "Planted" in text and "ERROR" in text and "s3cret" not in text, suffix
        assert str(Path(__file__).parent) not in text, suffix
    for text in (render(whole(found.document)), repr(found), found.to_markdown(), brief._repr_html_()):
        assert "ERROR" in text and "s3cret" not in text
    assert not found.fails("note") or found.findings


def gd_export(found: gd.Diagnosis, to: str, folder: Path) -> list[str]:
    from gpudiag.export import export

    return [line for path in export(found, to, folder / "metrics.txt") for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_run_is_never_healthy_because_its_checks_failed(sound: gd.Diagnosis) -> None:
    whole = statuses(sound)
    quiet = tuple(rule for rule in RULES if whole[rule.id] == "ok")
    head = gd.diagnose(toy_run(), rules=quiet).to_dict()["headline"]
    assert head["level"] in ("ok", "unknown") and "ERROR" not in head["verdict"]
    hit = (replace(quiet[0], judge=broken(quiet[0].judge)), *quiet[1:])
    head = gd.diagnose(toy_run(), rules=hit).to_dict()["headline"]
    assert head["level"] == "unknown" and head["verdict"].startswith("GPU partly used: nothing found in ")
    assert "1 check failed to run (ERROR)" in head["verdict"]


@pytest.mark.slow
def test_a_remedy_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    run = gd.load_run(SAMPLE)
    whole = gd.diagnose(run)
    first = whole.advice.recommendations[0].id
    hit = [replace(r, propose=broken(r.propose)) if r.id == first else r for r in advice.REMEDIES]
    monkeypatch.setattr("gpudiag._diagnosis.result.advise", lambda *given: advise(*given, hit))
    found = gd.diagnose(run)
    left = [one.id for one in whole.advice.recommendations if one.id != first]
    others = {one.id for one in found.advice.recommendations}
    assert set(left) <= others
    assert all(one.startswith("remedy-") for one in others - set(left)), "a finding falls back on its rule's own remedy"
    assert [one["part"] for one in found.to_dict()["errors"]] == [f"remedy {first}"]
    assert f"Remedy {first} failed with Planted" in found.to_markdown()


@pytest.mark.slow
def test_a_plot_that_fails_is_a_note_in_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PLOTS, "utilization", replace(PLOTS["utilization"], paint=broken(PLOTS["utilization"].paint)))
    found = gd.diagnose(toy_run())
    text = found.showing("utilization,memory").save(tmp_path / "x.html").read_text()
    assert "Figure utilization failed with Planted" in text and 'id="figure-memory"' in text
    assert 'id="figure-utilization"' not in text
    with pytest.raises(Planted):
        found.plot.utilization()  # who asks for it alone is told


@pytest.mark.slow
def test_a_section_that_fails_is_a_note_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SECTIONS, "memory", broken(SECTIONS["memory"]))
    found = gd.diagnose(toy_run())
    assert "Section memory failed with Planted" in found.show.memory._repr_html_()
    text = found.to_markdown()
    assert text.count("failed with Planted") == 1 and "## Utilization" in text


@pytest.mark.slow
def test_a_headline_sentence_that_fails_leaves_the_others(sound: gd.Diagnosis, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpudiag.report._sections import headline

    whole = sound.to_dict()["headline"]["sentences"]
    monkeypatch.setattr(headline, "_proof", broken(headline._proof))
    told = gd.diagnose(toy_run()).to_dict()["headline"]["sentences"]
    assert (told[0], told[2]) == (whole[0], whole[2]) and told[1].startswith("ERROR: Headline")


@pytest.mark.slow
def test_a_part_of_a_forecast_that_fails_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    run = gd.load_run(STUDY)
    monkeypatch.setattr(forecast, "memory_capacity", broken(forecast.memory_capacity))
    made = gd.what_if(run)
    assert made.capacity is None and "ERROR: Forecast of memory failed with Planted" in dict(made.gaps)["memory"]
    assert made.to_dict()["parallel"] and "ERROR" in made.to_markdown()
    monkeypatch.setattr(forecast, "forecast_parallelism", broken(forecast.forecast_parallelism))
    bounded = gd.what_if(run)
    assert all(scenario.bounds_only for scenario in bounded.parallel)


def test_who_shows_progress_may_still_cancel() -> None:
    def cancel(what: str) -> None:
        raise Planted(what)

    with pytest.raises(Planted):
        gd.what_if(gd.load_run(STUDY), progress=cancel)


@pytest.mark.slow
def test_a_forecast_that_fails_leaves_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "observe", broken(forecast.observe))
    monkeypatch.setattr(forecast, "bounded_scenarios", broken(forecast.bounded_scenarios))
    text = gd.diagnose(toy_run()).to_markdown()
    assert "Section forecast failed with Planted" in text and "## Findings" in text


@pytest.mark.slow
@pytest.mark.parametrize("part", ["wall_time", "outcomes"])
def test_a_quantity_of_a_comparison_that_fails_is_left_out(
    sound_pair: Comparison, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    whole = {q.name for q in sound_pair.quantities}
    monkeypatch.setattr(quantities, part, broken(getattr(quantities, part)))
    pair = gd.compare(toy_run("a"), renamed(toy_run("b"), "b"))
    left = {q.name for q in pair.quantities}
    assert left < whole
    document = pair.to_dict()
    fits(document, "comparison-1")
    assert [one["part"] for one in document["errors"]] == [f"quantities {part}".replace("_", " ")]
    for text in (pair.to_markdown(), pair.summary()):
        assert "ERROR" in text and f"Quantities {part} failed with Planted".replace("_", " ") in text


@pytest.mark.slow
def test_a_check_of_the_gate_that_fails_is_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpudiag.comparison import gate

    monkeypatch.setattr(gate, "warm_up", broken(gate.warm_up))
    pair = gd.compare(toy_run("a"), toy_run("b"))
    document = pair.to_dict()
    fits(document, "comparison-1")
    assert [c["check"] for c in document["gate"] if c["status"] == "error"] == ["warm-up"]
    assert "ERROR" in pair.to_markdown()


@pytest.mark.slow
def test_items_that_cannot_be_matched_are_error_and_give_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rests on which items are the same failed; the checks of each run for itself stand."""
    monkeypatch.setattr(comparing, "match", broken(comparing.match))
    pair = gd.compare(toy_run("a"), renamed(toy_run("b"), "b"))
    document = pair.to_dict()
    fits(document, "comparison-1")
    failed = [c["check"] for c in document["gate"] if c["status"] == "error"]
    assert failed == ["same-workload", "not-a-subset", "sample-size", "equal-success"]
    assert len(document["gate"]) == 8 and document["quantities"] == [] and pair.verdict == "no evidence"
    assert [one["part"] for one in document["errors"]] == ["comparison's items"]
    assert "Comparison's items failed with Planted" in pair.to_markdown() and "ERROR" in pair.summary()


@pytest.mark.slow
def test_verdicts_that_fail_leave_the_numbers(sound_pair: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = toy_run("a"), renamed(toy_run("b"), "b"), renamed(toy_run("c"), "c")
    whole = {q.name: q.ratio for q in sound_pair.quantities}
    monkeypatch.setattr(comparing, "judged", broken(comparing.judged))
    pairs = gd.compare(a, b, c)
    for pair in pairs:
        document = pair.to_dict()
        fits(document, "comparison-1")
        assert {q.verdict for q in pair.quantities} == {"no evidence"}
        assert all("Comparison's verdicts failed with Planted" in q["note"] for q in document["quantities"])
        assert [one["part"] for one in document["errors"]] == ["comparison's verdicts"]
    assert {q.name: q.ratio for q in pairs[0].quantities} == pytest.approx(whole, nan_ok=True)


@pytest.mark.slow
def test_strict_raises_and_deliberate_errors_keep_their_meaning(no_power: None) -> None:
    with pytest.raises(Planted):
        gd.diagnose(toy_run(), strict=True)
    with faults.strict(), pytest.raises(Planted):
        gd.diagnose(toy_run())
    with faults.strict():
        assert gd.diagnose(toy_run(), strict=False).errors
    strictly = gd.diagnose(toy_run(), rules=[r for r in RULES if r.topic == "clock"], strict=False)
    assert strictly.errors  # every measure is made for the profiles
    for error in (NotMeasurable("no"), MemoryError(), KeyboardInterrupt(), SystemExit(2)):

        def fails(error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)):
            attempt("part", fails)


def test_faults_are_heard_once_and_travel() -> None:
    with heard() as outer:
        with heard() as inner:
            made = [attempt("part", broken(len)) for _ in range(2)]
        assert isinstance(made[0], Fault) and inner == outer == [made[0]]
    again = pickle.loads(pickle.dumps(Failed(made[0])))
    assert again.fault == made[0] and again.reason == Failed(made[0]).reason


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["text", "json", "md", "junit", "github", "gitlab", "sarif"])
def test_the_terminal_says_it_in_a_line_and_the_exit_code_stays(gpudiag: Any, no_power: None, format_: str) -> None:
    code, out, err = gpudiag("diagnose", SAMPLE, "--format", format_)
    lines = [line for line in err.splitlines() if "ERROR" in line]
    assert code == 0 and len(lines) == 1 and lines[0].startswith("gpudiag: ERROR: Measure power failed with Planted")
    assert "--debug" in lines[0] and "Traceback" not in err and "ERROR" in out


@pytest.mark.slow
def test_strict_and_debug_end_the_command_with_all_that_is_known(gpudiag: Any, no_power: None) -> None:
    code, _, err = gpudiag("diagnose", SAMPLE, "--strict", "--debug", "--fail-on", "note")
    assert code == 3 and "Traceback" in err and "s3cret-of-the-run" in err


@pytest.mark.slow
def test_other_commands_stand_too(gpudiag: Any, no_power: None, tmp_path: Path) -> None:
    for command in (["export", SAMPLE, "--to", "openmetrics", "-o", "m.txt"], ["compare", SAMPLE, SAMPLE]):
        code, _, err = gpudiag(*command)
        assert code == 0 and err.count("ERROR: Measure power") == 1, command
        assert gpudiag(*command, "--strict")[0] == 3
    with pytest.MonkeyPatch.context() as plant:
        plant.setattr(forecast, "memory_capacity", broken(forecast.memory_capacity))
        code, out, err = gpudiag("whatif", STUDY)
        assert code == 0 and "ERROR" in out and "ERROR: Forecast of memory" in err


def test_what_nobody_thought_of_is_one_sentence_and_not_exit_1(gpudiag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudiag.load.assemble", broken(lambda *given: None))
    code, out, err = gpudiag("diagnose", SAMPLE)
    assert code == 3 and not out and len(err.splitlines()) == 1
    assert "Planted" in err and "gpudiag/load.py:" in err and "report" in err and "s3cret" not in err
    code, _, err = gpudiag("diagnose", SAMPLE, "--debug")
    assert code == 3 and "Traceback" in err


@pytest.mark.slow
def test_a_report_stands_and_says_what_failed(gpudiag: Any, tmp_path: Path) -> None:
    """Planted inside the kernel: a rule, a section and a figure."""
    notebook = nbformat.read(find_notebook("run_report"), as_version=4)
    plant = """
import functools
from dataclasses import replace
from gpudiag.measures import power
from gpudiag.plots import PLOTS
from gpudiag.report.sections import SECTIONS
def broken(like):
    @functools.wraps(like)
    def fails(*given, **named):
        raise LookupError("s3" + "cret")
    return fails
power._one_gpu = broken(power._one_gpu)
SECTIONS["ledger"] = broken(SECTIONS["ledger"])
PLOTS["memory"] = replace(PLOTS["memory"], paint=broken(PLOTS["memory"].paint))
"""
    others = re.compile(r"diagnosis\.show\.(?!ledger|memory|data_quality)")
    notebook.cells = [cell for cell in notebook.cells if not others.match(cell.source)]
    at = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(plant))
    nbformat.write(notebook, tmp_path / "planted.ipynb")
    code, _, err = gpudiag(
        "report", SAMPLE, "--notebook", tmp_path / "planted.ipynb", "-o", tmp_path / "out", "--debug"
    )
    parts = re.findall(r"gpudiag: ERROR: (.+?) failed with LookupError", err)
    assert code == 0 and parts == ["Measure power", "Section ledger", "Figure memory"]
    assert "gpudiag/report/_render/show.py:" in err
    text = (tmp_path / "out" / "report.html").read_text()
    assert "Section ledger failed with LookupError" in text and "Figure memory failed" in text and "s3cret" not in text
    document = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert {v["rule"] for v in document["verdicts"] if v["status"] == "error"} == OF_POWER
    assert (
        gpudiag("report", SAMPLE, "--notebook", tmp_path / "planted.ipynb", "-o", tmp_path / "out", "--strict")[0] == 3
    )
