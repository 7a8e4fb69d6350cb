"""Whose the GPUs of a record were, where its monitoring or the log of its training says so.

What one GPU does says nothing of another one that was of another job, and a GPU that nobody held was not left unused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import NamedTuple

import numpy as np

from gpudiag._run.numbered_gpus import gpus_at_work
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.terms import Term, terms_of
from gpudiag.measures._time.job_spans import job_spans
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.span import ALWAYS
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.statement import NOTHING, Statement
from gpudiag.timezones import parse_zone

LOGGED = "The log says that the training was given {gpus}; the others may have been of other jobs, or of none."
NUMBERED = (
    "The log says that the training was given {n:GPU}, by numbers that a container or Slurm may have given anew, of "
    "{n_known} recorded; the others may have been of other jobs, or of none."
)
NOT_LISTED = "No job that is listed had {gpus}: what these did was of other jobs, or of none."
MONITORED = "The GPUs may be of several jobs: monitoring names {names}."
CHOOSE = "Name the GPUs of one job, and only these are looked at"
_AS_OPTION = CHOOSE + ": --gpus {chosen}."
_OF_A_TIME = CHOOSE + ': --gpus {chosen} --between "{span}".'
_IF_OF_THE_NODE = CHOOSE + ": --gpus {chosen}, if these are the numbers of the node."
_THE_TRAINING, _A_JOB = "the training", "a job"
NOBODY = "nobody"
_MOST_NAMES = 4
_LISTED = re.compile(
    r"\b(?P<name>CUDA_VISIBLE_DEVICES|SLURM_JOB_GPUS)\b\W{0,3}[=:]\W{0,3}(?P<gpus>(?:GPU-[\w-]+|\d{1,3}(?:-\d{1,3})?)"
    r"(?:\s?,\s?(?:GPU-[\w-]+|\d{1,3}(?:-\d{1,3})?))*)"
)
_OF_THE_NODE = "SLURM_JOB_GPUS"


@dataclass(frozen=True)
class Tenants:
    """``of``: who had each GPU, "" for nobody who is known; ``in_turn``: GPUs that were of one job after another;
    ``why``: how that is known, empty where all were of one.
    """

    of: Mapping[str, str]
    why: Statement = NOTHING
    remedy: Statement = NOTHING
    in_turn: frozenset[str] = frozenset()

    def keep_apart(self, gpus: Collection[str], *, beside: bool) -> bool:
        """Whether a finding on these GPUs may be of no job, or, where it sees them ``beside`` others, of several."""
        return bool(self.why) and (beside or any(not self.of.get(gpu) or gpu in self.in_turn for gpu in gpus))


@memoized
def tenants(run: Run) -> Tenants:
    """By the log of the training, else by the list of jobs, else by the jobs and pods that monitoring names. Whoever
    chose GPUs has said it.
    """
    listed = gpu_boards(run)
    if run.info.gpus_chosen:
        return Tenants({})
    known = [str(gpu) for gpu in listed.index]
    if given := _given(run, known):
        chosen, of = ",".join(given.gpus), dict.fromkeys(known, "")
        if given.sure:
            of |= dict.fromkeys(given.gpus, _THE_TRAINING)
            return Tenants(of, Statement(LOGGED, gpus=given.gpus), Statement(_AS_OPTION, chosen=chosen))
        why = Statement(NUMBERED, n=len(given.gpus), n_known=len(known))
        return Tenants(of, why, Statement(_IF_OF_THE_NODE, chosen=chosen))
    spans = job_spans(run)
    free = [gpu for gpu in known if not spans.get(gpu, [ALWAYS])]
    if free and (held := [gpu for gpu in known if gpu not in free]):
        of = {gpu: "" if gpu in free else _A_JOB for gpu in known}
        return Tenants(of, Statement(NOT_LISTED, gpus=tuple(free)), Statement(_AS_OPTION, chosen=",".join(held)))
    if "tenant" not in run.gpu:
        return Tenants({})
    terms = {gpu: terms_of(*said) for gpu, said in _said(run).items()}
    of = {gpu: _in_turn(terms.get(gpu, [])) for gpu in known}
    by_name = {name: [gpu for gpu in known if of[gpu] == name] for name in sorted(set(of.values()))}
    in_turn = frozenset(gpu for gpu, own in terms.items() if len(own) > 1)
    if len(by_name) < 2 and not in_turn:
        return Tenants(of)
    why = Statement(MONITORED, names=_shown(by_name))
    return Tenants(of, why, _choice(terms, parse_zone(run.info.timezone)), in_turn)


def _said(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By GPU the times of its samples, in order, and whom they name."""
    rows = run.gpu.loc[run.gpu["time"].notna(), ["gpu", "time", "tenant"]].sort_values(["gpu", "time"])
    names = rows["tenant"].astype(object).fillna("").to_numpy()
    times = microseconds(rows["time"])
    return {str(gpu): (times[at], names[at]) for gpu, at in rows.reset_index(drop=True).groupby("gpu").indices.items()}


def _in_turn(terms: Sequence[Term]) -> str:
    """'ml/p1, then nobody, then ml/p2'; "" for nobody alone."""
    names = [term.tenant or NOBODY for term in terms[:_MOST_NAMES]]
    more = [f"{len(terms) - _MOST_NAMES} more"] if len(terms) > _MOST_NAMES else []
    return ", then ".join([*names, *more]) if names != [NOBODY] else ""


def _choice(terms: Mapping[str, Sequence[Term]], zone: tzinfo) -> Statement:
    """The GPUs of the job that had most of their time; and when it had all of them, where others had them as well."""
    of_job: dict[str, dict[str, Term]] = {}
    for gpu, own in terms.items():
        for term in sorted((term for term in own if term.tenant), key=lambda term: term.length_us):
            of_job.setdefault(term.tenant, {})[gpu] = term
    if not of_job:
        return NOTHING
    largest = max(of_job.values(), key=lambda held: sum(term.length_us for term in held.values()))
    chosen = ",".join(largest)
    if all(len(terms[gpu]) == 1 for gpu in largest):
        return Statement(_AS_OPTION, chosen=chosen)
    low, high = max(term.start_us for term in largest.values()), min(term.end_us for term in largest.values())
    if low >= high:
        return Statement(CHOOSE + ".")
    span = ",".join(f"{datetime.fromtimestamp(at // SECOND_US, zone):%Y-%m-%d %H:%M:%S}" for at in (low, high))
    return Statement(_OF_A_TIME, chosen=chosen, span=span)


def _shown(by_name: Mapping[str, list[str]]) -> str:
    each = [f"{name or 'nobody'} on {', '.join(gpus)}" for name, gpus in by_name.items() if name]
    free = [f"nobody on {', '.join(gpus)}" for name, gpus in by_name.items() if not name]
    more = len(each) - _MOST_NAMES
    return "; ".join([*each[:_MOST_NAMES], *([f"{more} more"] if more > 0 else []), *free])


class _Given(NamedTuple):
    """The GPUs that a log states; ``sure``: by numbers of the node."""

    gpus: tuple[str, ...]
    sure: bool


def _given(run: Run, known: list[str]) -> _Given | None:
    """What the log states, where these are some of one host's GPUs. Of a search, each worker has its own.

    A container and Slurm may number the GPUs of a job anew from 0, so that CUDA_VISIBLE_DEVICES=0,1 may be any two; not
    where no others were at work.
    """
    if len(run.trials):
        return None
    lines = run.events["detail"][run.events["kind"].eq("gpus_given")].dropna().astype(str)
    found = [(match["name"], match["gpus"]) for line in lines for match in _LISTED.finditer(line)]
    found = [one for one in found if one[0] == _OF_THE_NODE] or found
    stated = {name for _, text in found for part in text.split(",") for name in _each(part.strip())}
    anew = not any(name == _OF_THE_NODE for name, _ in found) and stated == {str(n) for n in range(len(stated))}
    uuids = dict(zip(run.gpus["uuid"], run.gpus["gpu"], strict=True)) if "uuid" in run.gpus else {}
    given = {str(uuids.get(name, name)) for name in stated}
    if not given or not given < set(known):
        return None
    at_work = gpus_at_work(run)
    if anew and not at_work:
        return None
    return _Given(tuple(gpu for gpu in known if gpu in given), sure=not anew or at_work <= given)


def _each(part: str) -> list[str]:
    first, dash, last = part.partition("-")
    return [str(n) for n in range(int(first), int(last) + 1)] if dash and first.isdigit() else [part]
