"""Results pickled and back, as between the processes of a pool: the same documents, and the same questions answered."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from toyrun import renamed, toy_run

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.diagnosis import diagnose
from gpudiag.errors import ConfigError, InputNotFound, NotMeasurable
from gpudiag.faults import Failed, Fault
from gpudiag.rules import RULES

OWN = '''
from gpudiag.rules import Evidence, rule


def measure_night(run):
    return len(run.trials)


@rule(measure=measure_night, severity="note", title="Trials by night", remedy="Sleep.", checks="Nights",
      says="{n} trials.", refuted_by="Not a problem by day.")
def by_night(n, *, most: float = 3.0):
    """People sleep at night. Source: their beds."""
    return Evidence(values={"n": n}) if n > most else None
'''


def back(made: Any) -> Any:
    return pickle.loads(pickle.dumps(made))


@pytest.mark.slow
def test_a_diagnosis_comes_back_with_the_same_document() -> None:
    made = diagnose(toy_run())
    early, document = back(made), made.to_dict()
    assert early.to_dict() == back(made).to_dict() == document
    assert [rule.judge for rule in early.rules] == [rule.judge for rule in RULES]
    assert all(one is other for one, other in zip(early.rules, RULES, strict=True))
    assert dir(early.plot) == dir(made.plot)


@pytest.mark.slow
def test_a_comparison_and_its_like_come_back(samples: Path) -> None:
    pair = gd.compare(toy_run("a"), renamed(toy_run("b"), "b"))
    assert back(pair).to_dict() == pair.to_dict()
    study = gd.load_run(samples / "healthy")
    forecast = gd.what_if(study)
    assert back(forecast).to_dict() == forecast.to_dict()
    analysis = Analysis(toy_run())
    assert back(analysis).given.trials.equals(analysis.given.trials)


@pytest.mark.slow
def test_another_process_may_diagnose(samples: Path) -> None:
    path = samples / "tiny-batch-laptop"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        (found,) = pool.map(gd.diagnose, [path])
    here = diagnose(path)
    assert found.to_dict()["verdicts"] == here.to_dict()["verdicts"]
    assert found.headline == here.headline


@pytest.mark.slow
def test_a_rule_of_a_file_keeps_its_words_where_the_file_is_not(tmp_path: Path) -> None:
    """Another process wrote it; this one has no module of that name."""
    (tmp_path / "night_rules_of_a_file.py").write_text(OWN)
    program = (
        "import pickle, sys; from toyrun import toy_run; from gpudiag.diagnosis import diagnose\n"
        "made = diagnose(toy_run(), rules=sys.argv[1])\n"
        "sys.stdout.buffer.write(pickle.dumps((made, made.to_json())))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "night_rules_of_a_file.py")]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **paths})
    found, document = pickle.loads(done.stdout)
    assert found.to_json() == document and "by-night" in document
    own = found.rules[-1]
    assert own.thresholds == {"most": 3.0} and own.why.startswith("People sleep at night.")
    assert back(found).to_json() == document
    with pytest.raises(ConfigError, match="by_night of module night_rules_of_a_file cannot be called in this process"):
        own.judge(4)


def test_errors_come_back_with_their_words() -> None:
    errors = [
        NotMeasurable("Only {observed_s} were observed.", "Record for longer.", observed_s=42.0),
        Failed(Fault("measure power", "KeyError", "a.py:1", module="nightly")),
        InputNotFound("x: no such file."),
        ConfigError("wrong"),
    ]
    for error in errors:
        assert type(back(error)) is type(error) and str(back(error)) == str(error)
