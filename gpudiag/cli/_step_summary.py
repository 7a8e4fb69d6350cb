"""The job summary of a GitHub workflow: a file that all of a step append to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gpudiag.errors import ConfigError

VARIABLE = "GITHUB_STEP_SUMMARY"


def append_step_summary(markdown: Callable[[], str]) -> None:
    """Append the Markdown, which is only made then, to the file that the variable names; nothing where it names none.

    What is in the file stays, and counts: GitHub limits the step and not each of those who write. Raises ConfigError.
    """
    from gpudiag.report.job_summary import MOST_BYTES, job_summary

    named = os.environ.get(VARIABLE)
    if not named:
        return
    try:
        with Path(named).open("ab") as file:
            there = file.tell()
            between = "\n\n" if there else ""
            text = job_summary(markdown(), MOST_BYTES - there - len(between))
            file.write(f"{between}{text}".encode(errors="replace") if text else b"")
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"{named}: the job summary that ${VARIABLE} names cannot be written ({why}).") from error
