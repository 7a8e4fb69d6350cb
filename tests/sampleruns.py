"""The shipped samples, each read and diagnosed once a process, its report made once a session: for tests that look, and
change nothing.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import nbformat

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.load import load_run
from gpudiag.memo import MemoRun
from gpudiag.report._notebook import pages

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "samples"


@cache
def sample(name: str) -> MemoRun:
    """The run, which keeps what is made of it."""
    return MemoRun.of(load_run(SAMPLES / name))


@cache
def diagnosed(name: str) -> Diagnosis:
    return diagnose(sample(name))


@cache
def report_of(name: str) -> Path:
    """The folder with report.html, report.md and report.ipynb, of which both are made; conftest.py names the one in
    which all processes of a session look.
    """
    folder = Path(os.environ["GPUDIAG_TEST_REPORTS"]) / name.replace("/", "-")
    if not folder.exists():
        made = Path(mkdtemp(dir=folder.parent))
        notebook = pages.filled("run_report", diagnosed(name).show)
        pages.save(made / "report.html", lambda: notebook, str)
        pages.save(made / "report.md", lambda: notebook, str)
        nbformat.write(notebook, made / "report.ipynb")
        try:
            made.rename(folder)
        except OSError:  # another process was sooner
            assert folder.exists()
    return folder
