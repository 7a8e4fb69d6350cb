"""Messages keep gpudiag's own words, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.bug_report.masked import Masked

MASKED = Masked(
    {"/home/zoe/runs/zeta": "RUN", "/home/zoe/runs/zeta/gpu.csv": "gpu.csv", "run": "RUN"},
    ["node7.lan", "zoe", "node7"],
    ["zeta sweep", "learning_rate_of_zeta", "trial", "UTC"],
)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("/home/zoe/runs/zeta: has no study 'x'; it has 'zeta'.", "RUN: has no study '***'; it has '***'."),
        ("/home/zoe/runs/zeta/gpu.csv: row 12, 3 %.", "gpu.csv: row 12, 3 %."),
        ("/home/zoe/runs/other.csv cannot be read", "*** cannot be read"),
        ("cannot reach node7.lan:5432 as zoe", "cannot reach ***:5432 as ***"),
        ("lr=0.013 and 0.013 and 1e-4 and -3.5", "*** and *** and *** and ***"),
        ("study zeta sweep: trial 17 of the run", "study ***: trial 17 of the run"),
        (
            "holds no row (2 x torn row, first at line 9: 17, 4711).",
            "holds no row (2 x torn row, first at line 9: ***).",
        ),
        ("from 2026-03-01 to 10:00:05, the trial's end", "from 2026-03-01 to 10:00:05, the trial's end"),
        ("redis://:hunter2@h and me@example.org and https://h/p", "*** and *** and ***"),
        ("of W&B, with --period or as period_s", "of W&B, with --period or as period_s"),
        (
            "run.toml: key 'settings.sampler': a text, but got 4111; 17",
            "run.toml: key 'settings.sampler': a text, but got ***",
        ),
        ("expected a path, but got int.", "expected a path, but got int."),
        ("row 41111111 of 411111111", "row 41111111 of ***"),
        (
            "unknown key 'settings.zeal'; did you mean 'parallel'?",
            "unknown key 'settings.***'; did you mean 'parallel'?",
        ),
        ("of 'x' (2 x row: (a) 17, 'b', 4) and 4", "of '***' (2 x row: ***"),
        (
            "time zone 'Z'; expected an IANA name such as 'Asia/Taipei', 'Europe/Berlin' or 'UTC'.",
            "time zone '***'; expected an IANA name such as 'Asia/Taipei', 'Europe/Berlin' or 'UTC'.",
        ),
        ("mlflow:7f needs MLflow: pip install 'gpudiag[mlflow]'.", "*** needs MLflow: pip install 'gpudiag[mlflow]'."),
        ("study 'gpudiag' of 'Asia/Taipei', pip install 'x'", "study '***' of '***', pip install '***'"),
        ("key 'trial', did you mean 'stated'?", "key '***', did you mean 'stated'?"),
        ("because Optuna 4.2.0 wrote it, zeal 4.2.0", "because Optuna 4.2.0 wrote it, *** ***"),
        ("/home/zoe/runs/zeta: 2 runs (run, trial, 3)", "RUN: 2 runs (RUN, ***, 3)"),
        ("legal names are: batch, UTC, trial and 3 more", "legal names are: batch, ***, *** and 3 more"),
        ("Recorded while running: python3 train.py --workers 4", "Recorded while running: ***"),
        ("/other/home/zoe/runs/zeta/gpu.csv", "***"),
        ("first line\nsecond\tline", "first line second line"),
    ],
)
def test_what_is_left_of_a_message(message: str, left: str) -> None:
    assert MASKED.message(message) == left


FOREIGN = st.text("bcdfghjklmnpqrstvwxz", min_size=9, max_size=20)
AROUND = st.text(" .,:;-_/\\()[]'\"`=@%*0123456789\n", max_size=6)


@given(FOREIGN, AROUND, AROUND)
def test_no_foreign_word_is_left_whatever_stands_around_it(word: str, before: str, after: str) -> None:
    for masked in (MASKED, Masked({}, [], [])):
        assert word not in masked.message(f"the study {before}{word}{after} cannot be read")
