"""Where a training was resumed, as its log shows: the one definition of steps, pauses and ends of jobs."""

from __future__ import annotations

import numpy as np
import pandas as pd


def resumes(intervals: pd.DataFrame) -> np.ndarray:
    """By interval of :func:`step_intervals` whether the training was resumed in it: its steps are counted anew, or a
    line says so, or it goes on in another file behind a silence.

    Another epoch, another trial, and the lines of another rank or kind that stand between are none. Whether the process
    or its job had ended is another question: see ``job_ends`` and, of long pauses behind a failure, ``courses``.
    """
    anew = intervals["first"].to_numpy(bool) & (intervals["attempt"].to_numpy() > 0)
    return anew | intervals["since"].str.contains("resumption", regex=False).to_numpy(bool)
