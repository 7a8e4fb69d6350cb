"""Jobs of a scheduler that ran on other nodes than the telemetry is of."""

from __future__ import annotations

from dataclasses import replace

from gpudiag._run.allocated_gpus import allocated_gpus
from gpudiag.report.format import plural
from gpudiag.run import Run


def without_jobs_elsewhere(run: Run) -> Run:
    """The run without them, and with a note, where other jobs ran on the nodes that were recorded."""
    among = allocated_gpus(run).among
    gone = [row for row, gpus in among.items() if not gpus]
    if not gone or len(gone) == len(among):
        return run
    left_out = run.trials.iloc[gone]
    trials = run.trials.drop(left_out.index).reset_index(drop=True)
    events = run.events
    if {"trial", "path"} <= set(events):
        source = left_out["study"].map(run.studies.drop_duplicates("study").set_index("study")["source"])
        of_them = set(zip(source, left_out["trial"], strict=True))
        keys = zip(events["path"], events["trial"], strict=True)
        events = events[[key not in of_them for key in keys]].reset_index(drop=True)
    are = "is" if len(gone) == 1 else "are"
    note = f"{plural(len(gone), 'job')} ran on nodes of which there is no telemetry, and {are} left out."
    return replace(run, trials=trials, events=events, info=replace(run.info, notes=(*run.info.notes, note)))
