"""One study of several as a run: what trials of the others did to the GPUs meanwhile is no work of its own.

A trial of another study without an end is known to have run until its last sign of life, and may have run for longer:
of that time nobody knows whose it was, so that it stays the run's, without what is seen of the GPU's load.
Where trials name no GPU, those of all studies together are placed by the marks that they left before one is chosen.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from gpudiag._run.gpu_names import declared_gpus
from gpudiag._run.left_out import left_in_part, workers_in_part
from gpudiag._run.selection import changed, gpus_only, rows
from gpudiag._run.tables import R, RunTables, Whole
from gpudiag.errors import StudyNotFound, nearest
from gpudiag.faults import Fault, attempt
from gpudiag.schema import LOAD

if TYPE_CHECKING:
    import pandas as pd

Spans: TypeAlias = Mapping[str, tuple[tuple[int, int], ...]]
ANY_GPU = ""
MEANWHILE = (
    " Other studies had trials meanwhile: GPU time with these is not counted, and that with trials of both is unknown."
)
PLACED = " On which GPUs trials ran is read off the telemetry of all studies."
MAY_HAVE_RUN = " Trials of theirs have no end: what the GPUs did while these may have run is unknown."


def study(run: R, name: str) -> R:
    """The run with one study's trials only; see :meth:`gpudiag.run.Run.study`."""
    legal = [str(known) for known in run.studies["study"]] or [str(known) for known in run.trials["study"].unique()]
    if name not in legal:
        raise StudyNotFound(f"the run has no study '{name}'; {nearest(name, legal) if legal else 'it has none'}")
    return of_studies(run, [name]) if len(legal) > 1 else run


def of_studies(run: R, names: Collection[str]) -> R:
    """The run with the trials of these studies only, and of the GPUs what no trial of another one had a part in."""
    own = run.trials["study"].isin(names)
    timed = replace(run, trials=_with_ends(run, own))
    placed = _placed(run, left_in_part(timed, own))
    declared = placed | declared_gpus(timed)
    others = timed.trials.index[~own & timed.trials["start"].notna()]
    gone = _only_of_others(timed, own, others, declared)
    theirs = timed.trials.loc[others]
    apart = gone is not None or not run.info.clock.joined
    mine: Spans = {} if apart else _spans(timed.trials[own], timed.trials["end"][own], declared)
    if len(_gpus(run)) > 1:  # of trials that name none nobody knows where; on the only one they ran there
        mine = {gpu: found for gpu, found in mine.items() if gpu != ANY_GPU}
    alive = run.trials["end"].loc[others].fillna(_last_signs(timed))
    spans: Spans = {} if apart else _with_gaps(_spans(theirs, theirs["end"], declared), mine)
    sure: Spans = {} if apart else _with_gaps(_spans(theirs, alive, declared), mine)
    if gone:
        run = _on_gpus(run, _gpus(run) - gone)
    in_part = _in_part(timed, own, apart=gone is not None)
    chosen = {
        "trials": run.trials[own].reset_index(drop=True),
        "reports": rows(run.reports, run.reports["study"].isin(names)),
        "studies": rows(run.studies, run.studies["study"].isin(names)),
        "gpu": _without_load(run.gpu, spans),
    }
    met = bool({"gpus", "sharing"}.intersection(in_part))
    said = [(MEANWHILE, met), (MAY_HAVE_RUN, sure != spans), (PLACED, bool(placed))]
    note = f"Selected: study {', '.join(names)}.{''.join(text for text, holds in said if holds)}"
    keys = list(zip(run.trials["study"], run.trials["trial"], strict=True))
    chosen_gpus = {keys[row]: gpus for row, gpus in placed.items() if own.iloc[row]}
    return changed(run, chosen, note, in_part, others_us=spans, others_at_least_us=sure, placed_gpus=chosen_gpus)


def shares_workers(run: RunTables, name: str) -> bool:
    """Whether workers of one study may have run trials of others in between."""
    own = run.trials["study"] == name
    return "workers" in workers_in_part(replace(run, trials=_with_ends(run, own)), own)


def _with_ends(run: RunTables, own: pd.Series) -> pd.DataFrame:
    """The trials without times of others that did not run in their study; those of others without an end may have
    lasted as long as the longest of theirs, and until the last that is known of it. Where none of theirs ended, they
    may last until the last sample.
    """
    import pandas as pd

    trials = run.trials
    start, end = trials["start"], trials["end"]
    ran = trials["added"].isna() | own if "added" in trials else own | True
    start, end = start.where(ran & ((trials["state"] != "WAITING") | own)), end.where(ran)
    by = trials["study"]
    last = start.groupby(by).transform("max"), end.groupby(by).transform("max")
    longest = (start + (end - start).groupby(by).transform("max")).fillna(run.gpu["time"].max())
    likely = pd.concat([*last, longest, _last_signs(run)], axis=1).max(axis=1).astype(end.dtype).where(start.notna())
    return trials.assign(start=start, end=end.where(own, end.fillna(likely)))


def _last_signs(run: RunTables) -> pd.Series:
    """When each trial last showed that it ran: by its start, its last heartbeat, or its last report that has a time."""
    import pandas as pd

    trials, key = run.trials, ["study", "trial"]
    signs = [trials["start"], *([trials["last_seen"]] if "last_seen" in trials else [])]
    if "time" in run.reports:
        last = run.reports.groupby(key)["time"].max()
        of_trial = pd.MultiIndex.from_frame(trials[key])
        signs.append(pd.Series(last.reindex(of_trial).array, trials.index))
    return pd.concat(signs, axis=1).max(axis=1)


def _placed(run: RunTables, in_part: Collection[Whole]) -> dict[int, tuple[str, ...]]:
    """GPUs by row of the trials that show in the telemetry of all studies on which they ran; nothing where one GPU, or
    no trial of another study beside those chosen, leaves no question.
    """
    if "sharing" not in in_part or len(_gpus(run)) < 2 or not run.info.clock.joined:
        return {}
    attribution: Any = importlib.import_module("gpudiag.measures.attribution")  # above this module: it is measured
    found = attempt("GPUs of trials of all studies", lambda: attribution.measure_attribution(run).trials)
    if isinstance(found, Fault):
        return {}
    weak = found["confidence"].eq("weak")
    return {row: tuple(gpus.split(",")) for row, gpus in found["gpu"][weak].items()}


def _gpus(run: RunTables) -> set[str]:
    return {str(gpu) for gpu in (*run.gpus["gpu"].dropna(), *run.gpu["gpu"].dropna().unique())}


def _only_of_others(
    run: RunTables, own: pd.Series, others: pd.Index, declared: Mapping[int, tuple[str, ...]]
) -> set[str] | None:
    """The GPUs of the other studies where all trials name theirs, and no GPU is of both; else None."""
    at = {label: place for place, label in enumerate(run.trials.index)}
    mine = [declared.get(at[label], ()) for label in run.trials.index[own]]
    theirs = [declared.get(at[label], ()) for label in others]
    if not all(mine) or not all(theirs):
        return None
    used = {gpu for gpus in mine for gpu in gpus}
    gone = {gpu for gpus in theirs for gpu in gpus}
    return None if used & gone else gone


def _on_gpus(run: R, kept: Iterable[str]) -> R:
    """The run on these GPUs with all its trials."""
    part = gpus_only(replace(run, trials=run.trials.iloc[:0]), sorted(kept))
    return replace(part, trials=run.trials, reports=run.reports)


def _in_part(run: RunTables, own: pd.Series, *, apart: bool) -> tuple[Whole, ...]:
    """What the other trials leave in part; of GPUs that are ``apart`` none."""
    found = [part for part in left_in_part(run, own) if part != "workers"]
    return (*([] if apart else found), *workers_in_part(run, own))


def _spans(others: pd.DataFrame, ends: pd.Series, declared: Mapping[int, tuple[str, ...]]) -> Spans:
    """When trials ran until these ends, by GPU (microseconds since 1970); ANY_GPU where nothing names it."""
    from gpudiag.spans import microseconds, union  # and with it numpy

    by_gpu: dict[str, list[tuple[int, int]]] = {}
    start, end = (microseconds(times).tolist() for times in (others["start"], ends))
    for row, low, high in zip(others.index.tolist(), start, end, strict=True):
        for gpu in declared.get(row) or (ANY_GPU,):
            if high > low:
                by_gpu.setdefault(gpu, []).append((low, high))
    return {gpu: tuple(union(found)) for gpu, found in by_gpu.items()}


def _with_gaps(spans: Spans, own: Spans) -> Spans:
    """The same with gaps of up to an hour between trials, in which the study has not left the GPU: but for those in
    which a trial that was chosen is known to have had it.
    """
    from gpudiag.spans import PAUSE_S, overlap, union
    from gpudiag.units import SECOND_US

    out = {}
    for gpu, found in spans.items():
        used = union([*own.get(gpu, ()), *own.get(ANY_GPU, ())])
        gaps = [(before[1], after[0]) for before, after in pairwise(found)]
        short = [gap for gap in gaps if gap[1] - gap[0] < PAUSE_S * SECOND_US and not overlap([gap], used)]
        out[gpu] = tuple(union([*found, *short]))
    return out


def _without_load(gpu: pd.DataFrame, spans: Spans) -> pd.DataFrame:
    """The samples without what they say of the work of a GPU while trials of others may have run there."""
    import numpy as np

    from gpudiag.spans import microseconds

    if not spans or gpu.empty:
        return gpu
    time_us = microseconds(gpu["time"])
    theirs = np.zeros(len(gpu), bool)
    for name, found in spans.items():
        start, end = np.array(found, np.int64).T
        within = np.searchsorted(start, time_us, "right") > np.searchsorted(end, time_us, "right")
        theirs |= within if name == ANY_GPU else within & gpu["gpu"].eq(name).to_numpy(bool)
    return gpu.assign(**{name: gpu[name].mask(theirs) for name in LOAD if name in gpu})
