"""The GPUs of jobs whose scheduler says which of a node's GPUs each had.

A recorder within a job may see the GPUs of the job alone, counted anew from 0. Then that job had a number that was not
recorded, unless its numbers are the same. Slurm counts the devices of a node, and nvidia-smi counts by bus: where none
of the GPUs that jobs had by these numbers was at work and others were, nothing is taken from them.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpudiag._run.tables import RunTables
from gpudiag.readers._jobs.gpu_numbers import by_node
from gpudiag.schema import IDLE_PCT, gpu_index

NUMBERS = "user_attrs.gpu_numbers"
"""Of a job: the numbers of its GPUs by node, as gpudiag.readers._jobs.gpu_numbers writes them."""


def numbered_gpus(
    run: RunTables, nodes: Mapping[int, tuple[str, ...]], host_of: Mapping[str, str], host_of_gpu: Mapping[str, str]
) -> dict[int, tuple[str, ...]]:
    """By row of the trials, each node that was recorded counted. ``host_of``: of nodes; ``host_of_gpu``: of GPUs."""
    if NUMBERS not in run.trials:
        return {}
    stated = {row: by_node(text) for row, text in enumerate(run.trials[NUMBERS]) if isinstance(text, str)}
    named = _by_host(host_of_gpu)
    own: dict[int, dict[str, tuple[str | None, ...]]] = {}
    for row in nodes.keys() & stated.keys():
        here = [node for node in nodes[row] if node in host_of]
        if here and all(node in stated[row] for node in here):
            own[row] = {
                host_of[node]: tuple(named[host_of[node]].get(number) for number in stated[row][node]) for node in here
            }
    at_work = gpus_at_work(run)
    held = {host: {gpu for of in own.values() for gpu in of.get(host, ())} for host in set(host_of.values())}
    others = {host: set(named[host].values()) - held[host] for host in held}
    doubtful = {host for host, gpus in held.items() if None in gpus or (not gpus & at_work and others[host] & at_work)}
    return {
        row: tuple(gpu for gpus in of.values() for gpu in gpus if gpu)
        for row, of in sorted(own.items())
        if doubtful.isdisjoint(of)
    }


def _by_host(host_of_gpu: Mapping[str, str]) -> dict[str, dict[int, str]]:
    """The GPUs of each host by their number; none of a number that two have, one in the place of the other."""
    out: dict[str, dict[int, str]] = {host: {} for host in host_of_gpu.values()}
    twins = set()
    for gpu, host in host_of_gpu.items():
        name = gpu.rpartition("/")[2]
        number = gpu_index(name)
        if number is not None:
            out[host][number] = gpu
        elif (number := gpu_index(name[:-1])) is not None:
            twins.add((host, number))
    return {host: {n: gpu for n, gpu in own.items() if (host, n) not in twins} for host, own in out.items()}


def gpus_at_work(run: RunTables) -> set[str]:
    """The GPUs that some sample shows at work."""
    return set(run.gpu["gpu"][run.gpu["util_pct"] >= IDLE_PCT].unique()) if "util_pct" in run.gpu else set()
