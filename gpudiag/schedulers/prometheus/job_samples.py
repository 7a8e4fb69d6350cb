"""The samples of the GPUs of one job: what is asked, window by window, and the file that it becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from gpudiag.errors import ConfigError, InputError
from gpudiag.files import write
from gpudiag.readers._fields.host_labels import ADDRESS, HOSTS, first_of
from gpudiag.readers._fields.metric_names import JOBSTATS, METRICS
from gpudiag.schedulers.prometheus.api import Prometheus

MOST_POINTS = 10_000
"""Of a series in one answer; Prometheus refuses more than 11,000."""
MOST_WINDOWS = 1_000
PHASE_S = 0.001
"""Past each multiple of the step. Up to version 2 a range of 30 s includes both of its ends, so that a sample at a full
multiple would be in two of them."""
FILE = "prometheus.json"
OURS = '{"fetched_by": "gpudiag"'
"""How the file begins, so that an earlier one may be replaced."""
NAMESPACE_OF = {"pod": "namespace", "exported_pod": "exported_namespace", "pod_name": "pod_namespace"}
"""By which dcgm-exporter names a pod, and the namespace of that, in its versions."""
JOB_LABELS = ("hpc_job", *NAMESPACE_OF)
"""By which it names a job of Slurm, or a pod."""
JOB_ID = "nvidia_gpu_jobId"


@dataclass(frozen=True)
class Asked:
    """A job between two times (seconds since 1970, UTC), a sample each ``step_s``; of a pod, its namespace if known.

    Raises ConfigError for times in no order, a step below a second, and more than MOST_WINDOWS times MOST_POINTS.
    """

    job: str
    start_s: int
    end_s: int
    step_s: int = 30
    namespace: str = ""

    def __post_init__(self) -> None:
        if not self.job.strip():
            raise ConfigError("expected the id of a job or the name of a pod with --job, but got nothing.")
        if self.step_s < 1:
            raise ConfigError(f"--step must be 1 s or more, but got {self.step_s}.")
        if self.end_s <= self.start_s:
            raise ConfigError(f"--end ({iso(self.end_s)}) must be later than --start ({iso(self.start_s)}).")
        if (self.end_s - self.start_s) // self.step_s > MOST_POINTS * MOST_WINDOWS:
            raise ConfigError(f"{iso(self.start_s)} to {iso(self.end_s)} is too much at once; raise --step.")

    def queries(self) -> Iterator[str]:
        """What is asked.

        The last sample within the step before, and not the last one at all: Prometheus would repeat that for five
        minutes after the GPU was last seen.
        """
        others = "|".join(sorted(re.escape(name) for name in METRICS if name not in JOBSTATS))
        held = [f'{{__name__=~"{others}",{his}}}' for his in self._selectors()]
        yield " or ".join(f"last_over_time({one}[{self.step_s}s])" for one in held)
        if self.may_be_of_slurm:
            for name in JOBSTATS:
                his = f"last_over_time({JOB_ID}[{self.step_s}s]) == {int(self.job)}"
                yield f"last_over_time({name}[{self.step_s}s]) and ({his})"

    def _selectors(self) -> list[str]:
        if not self.namespace:
            return [f"{label}={quoted(self.job)}" for label in JOB_LABELS]
        space = quoted(self.namespace)
        return [f"{label}={quoted(self.job)},{of_it}={space}" for label, of_it in NAMESPACE_OF.items()]

    @property
    def may_be_of_slurm(self) -> bool:
        return not self.namespace and self.job.isascii() and self.job.isdigit()

    def windows(self) -> Iterator[tuple[int, int]]:
        """First and last instant of each query: multiples of the step, so that asking again gives the same."""
        first = -(-self.start_s // self.step_s) * self.step_s
        while first <= self.end_s:
            last = min(first + (MOST_POINTS - 1) * self.step_s, self.end_s // self.step_s * self.step_s)
            if last < first:
                return
            yield first, last
            first = last + self.step_s


def job_samples(server: Prometheus, asked: Asked) -> list[dict[str, Any]]:
    """The series of the job, each once, with its points in the order of time.

    Raises InputError where there is none, ConfigError where they are of pods of several namespaces.
    """
    found: dict[str, dict[str, Any]] = {}
    for first, last in asked.windows():
        for query in asked.queries():
            for series in server.query_range(query, first + PHASE_S, last + PHASE_S, asked.step_s):
                key = json.dumps(series["metric"], sort_keys=True)
                whole = found.setdefault(key, {"metric": series["metric"], "values": []})
                points = series.get("values")
                whole["values"] += points if isinstance(points, list) else []
    if not any(series["values"] for series in found.values()):
        raise InputError(_nothing(server, asked))
    if len(spaces := _namespaces(found.values(), asked.job)) > 1:
        raise ConfigError(
            f"{asked.job}: is a pod in each of the namespaces {', '.join(spaces)}, which are several jobs; choose one "
            "with --namespace."
        )
    return [found[key] for key in sorted(found)]


def hosts_at_once(series: Iterable[Mapping[str, Any]], pod: str) -> list[str]:
    """The hosts on which pods of this name ran at the same time, though a pod has one; none for other jobs.

    Of a pod that was moved, the last sample on one host may be the first on the other.
    """
    at: dict[str, set[float]] = {}
    for one in series:
        labels = one["metric"]
        if any(labels.get(label) == pod for label in NAMESPACE_OF):
            host = first_of(labels, (*HOSTS, ADDRESS))
            at.setdefault(host, set()).update(point[0] for point in one["values"])
    pairs = ((one, other) for one, other in combinations(sorted(at), 2) if len(at[one] & at[other]) > 1)
    return sorted({host for pair in pairs for host in pair})


def _namespaces(series: Iterable[Mapping[str, Any]], pod: str) -> list[str]:
    """The namespaces that the labels state of pods of this name."""
    pairs = [(one["metric"], label) for one in series for label in NAMESPACE_OF if one["metric"].get(label) == pod]
    return sorted({space for labels, label in pairs if (space := labels.get(NAMESPACE_OF[label], ""))})


def write_samples(folder: Path, series: list[dict[str, Any]]) -> Path:
    """Write them as one answer of Prometheus. Raises ConfigError where another file has its name."""
    path = folder / FILE
    check_free(path)
    folder.mkdir(parents=True, exist_ok=True)
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    write(path, f"{OURS}, {json.dumps(answer).removeprefix('{')}\n")
    return path


def check_free(path: Path) -> None:
    """Raise ConfigError where a file is there that was not fetched by gpudiag."""
    if path.is_dir() or (path.exists() and not path.read_bytes().startswith(OURS.encode())):
        raise ConfigError(f"{path}: was not fetched by gpudiag and would be overwritten; choose another -o.")


def quoted(text: str) -> str:
    """A string of PromQL, whose escapes are those of Go; JSON's are among them."""
    return json.dumps(text, ensure_ascii=False)


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _nothing(server: Prometheus, asked: Asked) -> str:
    labels = ", ".join(NAMESPACE_OF if asked.namespace else JOB_LABELS)
    if asked.namespace:
        return (
            f"{server.url}: has no sample of {asked.job} in namespace {asked.namespace} from {iso(asked.start_s)} to "
            f"{iso(asked.end_s)}. Looked for metrics of dcgm-exporter with these as labels {labels} and "
            f"{', '.join(NAMESPACE_OF.values())}. Give the time of the job with --start and --end."
        )
    jobstats = (
        f"; and for {', '.join(JOBSTATS)} where {JOB_ID} is {asked.job}"
        if asked.may_be_of_slurm
        else f"; {JOB_ID} of jobstats is a number, so its metrics were not looked for"
    )
    return (
        f"{server.url}: has no sample of {asked.job} from {iso(asked.start_s)} to {iso(asked.end_s)}. Looked for "
        f"metrics of dcgm-exporter and nvidia_gpu_exporter with that as label {labels}{jobstats}. Give the time of the "
        "job with --start and --end."
    )
