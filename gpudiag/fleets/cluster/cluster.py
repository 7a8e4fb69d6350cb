"""``cluster``: telemetry of many hosts read once, host by host, and cut by the jobs of a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpudiag.errors import InputError
from gpudiag.fleets.cluster.gpu_record import BUSY, LOW
from gpudiag.fleets.cluster.heat import heat_map
from gpudiag.fleets.cluster.host_ledger import GpuTotals, HostLedger, host_ledger
from gpudiag.fleets.cluster.job_rows import job_rows
from gpudiag.fleets.cluster.session_rows import session_rows
from gpudiag.fleets.cluster.tally import iso
from gpudiag.fleets.recordings import NOTHING, Sought
from gpudiag.readers._datasets.host_samples import OTHER, UNREADABLE, samples_of_hosts
from gpudiag.readers._datasets.partitions import TelemetryDataset
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._jobs.host_names import host_of_nodes
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJob, SchedulerJobs
from gpudiag.report.fleet.document import ClusterDocument, Recording, RunRow, UnusedGpu
from gpudiag.report.format import plural, safe
from gpudiag.timezones import Zone, parse_zone
from gpudiag.units import SECOND_US

HARDLY = 0.001
"""A GPU that worked a smaller share of its observed time hardly worked."""
MOST_NAMED = 20
"""Files and hosts that are named one by one."""

HostRead = Callable[[int, int, str], None]
"""Is told of each host that has been read: how many have, of how many, and its name."""


@dataclass(frozen=True)
class Cluster:
    """``rows``: all GPU time of the data set, each part once; ``about``: the cluster as a whole; ``recordings``: what
    of it the runs beside it recorded as well.
    """

    rows: tuple[RunRow, ...]
    about: ClusterDocument
    recordings: tuple[Recording, ...] = ()


def cluster(
    datasets: Sequence[TelemetryDataset],
    jobs: SchedulerJobs | None = None,
    timezone: Zone = None,
    progress: HostRead = lambda done, of, host: None,
    beside: Sought = NOTHING,
) -> Cluster:
    """The runs of a cluster: its jobs, or the sessions of its hosts where none are given.

    ``beside``: what the runs of the same fleet recorded. A host whose utilization may be a share of 1 is left out.
    Raises InputError where no other host has a sample.
    """
    files = _merged(datasets)
    listed = jobs.jobs if jobs else ()
    hosts = host_of_nodes((node for job in listed for node in job.nodes), files)
    moments = _moments(listed, hosts)
    ledgers: list[HostLedger] = []
    problems, unread = ProblemLog(), list[str]()
    fractions: list[str] = []
    for done, samples in enumerate(samples_of_hosts(files.items(), parse_zone(timezone)), 1):
        if samples.shares:
            fractions.append(samples.host)
        else:
            ledgers.append(host_ledger(samples, moments.get(samples.host, ()), beside))
        unread += samples.unread
        for one in samples.problems.all:
            if one.kind not in (UNREADABLE, OTHER):
                problems.add(one.kind, one.count, example=one.example, lost=one.lost)
        progress(done, len(files), samples.host)
    source = ", ".join(dataset.root for dataset in datasets)
    _check(ledgers, source, shares=bool(fractions))
    hosts = {node: host for node, host in hosts.items() if host not in fractions}
    rows = (
        job_rows(ledgers, listed, hosts, safe(source), n_unread=sum(one.count for one in jobs.problems if one.lost))
        if jobs
        else [row for ledger in ledgers for row in session_rows(ledger, safe(source))]
    )
    notes = [
        *_named(
            fractions,
            "left out: no utilization is above 1 and some are fractions, so that nothing says "
            "whether 1 is 1 % or 100 %; call the column util_pct if it is in percent",
        ),
        *_named(unread, ""),
    ]
    both = tuple(one for ledger in ledgers for one in ledger.recordings)
    return Cluster(tuple(rows), _about(ledgers, jobs, problems, notes, len(fractions)), both)


def _check(ledgers: Sequence[HostLedger], source: str, *, shares: bool) -> None:
    if any(ledger.windows for ledger in ledgers):
        return
    if shares:
        raise InputError(
            f"{source}: no utilization is above 1 and some are fractions, as where 1 is all the time; expected percent."
        )
    raise InputError(f"{source}: no GPU has two samples of its utilization with a time.")


def _named(names: Sequence[str], why: str) -> list[str]:
    """A note each, as many as a person reads."""
    more = [f"{len(names) - MOST_NAMED:,} more of these."] if len(names) > MOST_NAMED else []
    return [*(f"{name}: {why}" if why else name for name in names[:MOST_NAMED]), *more]


def _merged(datasets: Sequence[TelemetryDataset]) -> dict[str, tuple[str, ...]]:
    """The files of each host over all data sets."""
    out: dict[str, tuple[str, ...]] = {}
    for dataset in datasets:
        for host, files in dataset.hosts.items():
            out[host] = (*out.get(host, ()), *(file for file in files if file not in out.get(host, ())))
    return out


def _moments(jobs: Sequence[SchedulerJob], hosts: dict[str, str]) -> dict[str, list[int]]:
    """When something begins or ends on each host."""
    out: dict[str, list[int]] = {}
    for job in jobs:
        for node in job.nodes:
            if node in hosts:
                own = out.setdefault(hosts[node], [])
                own += [job.start_us] if job.end_us is None else [job.start_us, job.end_us]
    return out


def _about(
    ledgers: Sequence[HostLedger],
    jobs: SchedulerJobs | None,
    problems: ProblemLog,
    left: Sequence[str],
    n_left_out: int,
) -> ClusterDocument:
    watched = sum(bool(ledger.windows) for ledger in ledgers)
    slots = [observed for ledger in ledgers for observed in _observed_us(ledger)]
    unused, hardly = [], []
    for ledger in ledgers:
        for at, gpu in enumerate(ledger.gpus):
            worked_us = float(ledger.amounts[-1, at, [LOW, BUSY]].sum()) if len(ledger.amounts) else 0.0
            if gpu.never_used:
                unused.append(_unused(gpu, 0.0))
            elif gpu.observed_us and worked_us < HARDLY * gpu.observed_us:
                hardly.append(_unused(gpu, worked_us))
    windows = [window for ledger in ledgers for window in ledger.windows]
    notes = list(jobs.notes) if jobs else []
    if jobs and jobs.n_unstarted:
        notes.append(f"{plural(jobs.n_unstarted, 'job')} never began: no run.")
    if jobs and jobs.n_without_gpu:
        notes.append(f"{plural(jobs.n_without_gpu, 'job')} had no GPU: no run.")
    notes += [f"{one.count:,} x {one.kind}: {one.example}" for one in (*(jobs.problems if jobs else ()), *problems.all)]
    notes += left
    return ClusterDocument(
        n_hosts=watched,
        n_gpus=len(slots),
        n_without_samples=slots.count(0),
        observed_gpu_s=sum(slots) / SECOND_US,
        start=iso(min(low for low, _ in windows)) or "",
        end=iso(max(high for _, high in windows)) or "",
        by_jobs=jobs is not None,
        never_used=tuple(unused),
        hardly_used=tuple(hardly),
        n_hosts_without_samples=len(ledgers) - watched,
        n_hosts_left_out=n_left_out,
        heat=heat_map(ledgers),
        notes=tuple(map(safe, notes)),
    )


def _observed_us(ledger: HostLedger) -> list[int]:
    """The observed time of each slot of a host: a GPU and the one that replaced it are not two at a time."""
    out = [0] * len(ledger.slot_names)
    for slot, gpu in zip(ledger.slots, ledger.gpus, strict=True):
        out[slot] += gpu.observed_us
    return out


def _unused(gpu: GpuTotals, worked_us: float) -> UnusedGpu:
    observed_s = gpu.observed_us / SECOND_US
    return UnusedGpu(safe(gpu.host), safe(gpu.gpu), safe(gpu.uuid), safe(gpu.model), observed_s, worked_us / SECOND_US)
