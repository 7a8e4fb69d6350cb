"""The system metrics that runs of MLflow logged, as files of a file store, which the reader of MLflow's logs takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpudiag._load.tracked.machines import machines
from gpudiag.readers.telemetry.mlflow import FOLDER, gpu_metric, is_system_metric

SYSTEM = "system/"
_NODE = re.compile(r"(?:([^/]+)/)?(\w+)")


def system_metrics(server: Any, runs: Sequence[Any], folder: Path) -> Iterator[str]:
    """System metrics as files of a file store: those of the first run if it has some, else of all, since each logs
    every GPU of its machine. Yields what is to be said of them.

    Where names begin with a node's id, or runs were on several machines, the GPUs are numbered one after the other.
    """
    logged = [(run.info.run_id, node, name) for run in runs for node, name in _system_names(run)]
    taken = [one for one in logged if one[0] == runs[0].info.run_id] or logged
    if not taken:
        return
    values = {
        (run, node, name): _values(server, run, f"{SYSTEM}{node}/{name}" if node else SYSTEM + name)
        for run, node, name in taken
    }
    machine_of, is_certain = _machines(values)
    nodes = {(run, node, name): node or machine_of[run] for run, node, name in values}
    first, total = {}, 0
    for node in sorted({*nodes.values()}, key=_natural):
        indices = [gpu[0] for one, of in nodes.items() if of == node and (gpu := gpu_metric(one[2]))]
        first[node], total = total, total + max(indices, default=-1) + 1
    (folder / "system" / FOLDER).mkdir(parents=True)
    for one, points in values.items():
        gpu = gpu_metric(one[2])
        if gpu is None and len(first) > 1:
            continue  # of one host among several
        called = one[2] if gpu is None else f"gpu_{first[nodes[one]] + gpu[0]}_{gpu[1]}"
        with (folder / "system" / FOLDER / called).open("a", encoding="utf-8") as file:
            file.writelines(f"{int(at)} {value!r} {int(step)}\n" for at, value, step in points.tolist())
    if len(first) > 1:
        numbered = ", ".join(f"{node or 'no node'} from {number}" for node, number in first.items())
        yield f"GPUs are numbered one node after the other ({numbered}); CPU and RAM of several nodes are not read."
    if any(machine_of.values()):
        yield "Runs within the run were on several machines: GPUs of the same index differ in the time that they share."
    if not is_certain:
        yield "Runs within the run overlap and do not name their node; readings agree, so it is taken for one machine."


def _values(server: Any, run: str, name: str) -> np.ndarray:
    """Milliseconds since 1970, value and step, a row each, in the order of time."""
    points = [(one.timestamp, one.value, one.step) for one in server.get_metric_history(run, name)]
    return np.array(sorted(points), dtype=np.float64).reshape(-1, 3)


def _machines(values: Mapping[tuple[str, str, str], np.ndarray]) -> tuple[dict[str, str], bool]:
    """A name of the machine for each run, '' where there is one, and whether it was certain which."""
    by_run: dict[str, dict[str, np.ndarray]] = {}
    for (run, node, name), points in values.items():
        held = by_run.setdefault(run, {})
        if not node:
            held[name] = points
    found, is_certain = machines(by_run.values())
    several = max(found) > 0
    return {run: f"machine {at + 1}" if several else "" for run, at in zip(by_run, found, strict=True)}, is_certain


def _natural(name: str) -> list[str | int]:
    """To sort node-2 before node-10."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"(\d{1,18})", name))]


def _system_names(run: Any) -> list[tuple[str, str]]:
    """Node, '' for none, and name of each system metric that is read."""
    found = (_NODE.fullmatch(name.removeprefix(SYSTEM)) for name in run.data.metrics if name.startswith(SYSTEM))
    return sorted((match[1] or "", match[2]) for match in found if match and is_system_metric(match[2]))
