"""The GPUs that a scheduler gave to jobs: by their numbers where it states them, else by their nodes and how many it
gave, all of these nodes or some of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from gpudiag._run.numbered_gpus import numbered_gpus
from gpudiag._run.tables import RunTables
from gpudiag.readers._jobs.host_names import host_of_nodes
from gpudiag.readers._jobs.node_list import expanded

JOB, JOB_GPUS = "user_attrs.job", "user_attrs.gpus"
"""Of a job of a scheduler: its id, and how many GPUs it had."""
HANDOVER_S = 2.0
"""Slurm may end a job a moment after the next one began."""
HERE = "?"
"""The host of telemetry that does not name it."""


@dataclass(frozen=True)
class Allocated:
    """By row of ``run.trials``: ``whole``, the GPUs of jobs that had all of their nodes, or of which the scheduler says
    which they had; ``among``, of every job whose nodes are known the GPUs that it may have had, none where its nodes
    were not recorded. ``gpus``: of the run, where the node of each is known. ``n_nodes``: nodes of the jobs where
    nothing says which of them the telemetry is of, else 0.
    """

    whole: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    among: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    n_nodes: int = 0

    def may_have(self, row: int, gpus: Iterable[str]) -> bool:
        """Whether nothing speaks against the job having had these GPUs."""
        return row not in self.among or set(gpus) <= set(self.among[row])


def allocated_gpus(run: RunTables) -> Allocated:
    """Nothing for trials that are no jobs of a scheduler, or where no host of the telemetry is a node of theirs."""
    nodes = _nodes_of_jobs(run)
    every = sorted({node for own in nodes.values() for node in own})
    gpus = [*dict.fromkeys([*run.gpus["gpu"].dropna().astype(str), *run.gpu["gpu"].dropna().astype(str).unique()])]
    gpus += [gpu for gpu in run.info.left_out_gpus if gpu not in gpus]
    if not nodes or not gpus:
        return Allocated()
    host_of_gpu = _hosts(run, gpus, every)
    if HERE in host_of_gpu.values():
        own_nodes = set(nodes.values())
        if len(own_nodes) > 1 or set(host_of_gpu.values()) != {HERE}:
            return Allocated(n_nodes=len(every)) if len(every) > 1 else Allocated()
        host_of = dict.fromkeys(every, HERE)
    else:
        host_of = host_of_nodes(every, set(host_of_gpu.values()))
    if not host_of:
        return Allocated()
    alone = _alone_on_their_nodes(run, nodes)
    whole: dict[int, tuple[str, ...]] = {}
    among: dict[int, tuple[str, ...]] = {}
    given = run.trials[JOB_GPUS] if JOB_GPUS in run.trials else pd.Series(math.nan, run.trials.index)
    numbers = pd.to_numeric(given, errors="coerce").to_numpy(float)
    numbered = numbered_gpus(run, nodes, host_of, host_of_gpu)
    for row, own in nodes.items():
        hosts = {host_of[node] for node in own if node in host_of}
        among[row] = numbered.get(row) or tuple(gpu for gpu in gpus if host_of_gpu[gpu] in hosts)
        kept = tuple(gpu for gpu in among[row] if gpu not in run.info.left_out_gpus)
        has_all = bool(kept) if row in numbered else row in alone and numbers[row] >= len(among[row]) > 0
        if has_all and all(node in host_of for node in own):
            whole[row] = kept
    return Allocated(whole, among, tuple(gpus))


def are_jobs(trials: pd.DataFrame) -> pd.Series:
    """By trial whether it is a job of a scheduler."""
    return trials[JOB].notna() if JOB in trials else pd.Series(False, trials.index)


def of_a_search(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials without those that are jobs of a scheduler. Each of these has a log of its own, and jobs in a row may
    be one training: what a log tells holds beside them as without them.
    """
    return trials[~are_jobs(trials)]


def _nodes_of_jobs(run: RunTables) -> dict[int, tuple[str, ...]]:
    """The nodes of each trial that is a job of a scheduler, by row."""
    out: dict[int, tuple[str, ...]] = {}
    if "host" not in run.trials:
        return out
    listed = run.trials["host"].where(are_jobs(run.trials))
    for row, text in enumerate(listed.tolist()):
        try:
            nodes = expanded(text) if isinstance(text, str) else ()
        except ValueError:
            continue
        if nodes:
            out[row] = nodes
    return out


def _alone_on_their_nodes(run: RunTables, nodes: Mapping[int, tuple[str, ...]]) -> set[int]:
    """Jobs beside which no other ran there, but for the seconds in which one job ends and the next begins: where two
    ran, a node has more GPUs than were recorded, or each had some of them.
    """
    times = run.trials[["start", "end"]].reset_index(drop=True).loc[list(nodes)]
    times["end"] = times["end"].fillna(pd.Timestamp.max.tz_localize("UTC").as_unit("us"))
    on = pd.DataFrame([(node, row) for row, own in nodes.items() for node in own], columns=["node", "row"])
    on = on.merge(times[times["start"].notna()], left_on="row", right_index=True).sort_values(["start", "row"])
    slack = pd.Timedelta(seconds=HANDOVER_S)
    shared: set[int] = set()
    for _, part in on.groupby("node"):
        reached = part["end"].cummax().shift()
        after = part["start"].shift(-1)
        both = (part["start"] + slack < reached) | (after + slack < part["end"])
        shared |= set(part.loc[both, "row"])
    return set(on["row"]) - shared


def _hosts(run: RunTables, gpus: Iterable[str], nodes: Iterable[str]) -> dict[str, str]:
    """The host of each GPU: as the telemetry says, else by a node in the name of its log, else as run.toml says."""
    stated = dict(zip(run.gpus["gpu"].astype(str), run.gpus["host"], strict=True)) if "host" in run.gpus else {}
    alone = _alone(run.info.host)
    words = {node: re.compile(rf"(?<![^\W_]){re.escape(node.partition('.')[0])}(?![^\W_])", re.I) for node in nodes}
    out = {}
    for gpu in gpus:
        log = gpu.rpartition("/")[0]
        met = [node for node, word in words.items() if word.search(log)]
        named = stated.get(gpu)
        known = named if isinstance(named, str) else met[0] if len(met) == 1 else log or alone
        out[gpu] = known or HERE
    return out


def _alone(host: str) -> str:
    """The one machine that run.toml names; '' for several, or none."""
    try:
        named = expanded(host)
    except ValueError:
        return ""
    return named[0] if len(named) == 1 else ""
