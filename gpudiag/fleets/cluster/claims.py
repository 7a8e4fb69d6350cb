"""What each job of a scheduler claims of each host: how many of its GPUs, and which where jobstats says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpudiag.fleets.cluster.host_ledger import HostLedger
from gpudiag.fleets.cluster.owners import Claim
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJob
from gpudiag.report.format import plural


@dataclass
class Claims:
    """``of_host``: the claims on each host; ``too_many``: by job, how many GPUs the telemetry of its hosts has,
    where the scheduler gave it more.
    """

    of_host: dict[str, list[Claim]] = field(default_factory=dict)
    too_many: dict[int, int] = field(default_factory=dict)


def claims_of(
    ledgers: Sequence[HostLedger],
    jobs: Sequence[SchedulerJob],
    hosts: Mapping[str, str],
    left_out: Mapping[int, str],
) -> Claims:
    """The claims of jobs, the last moment of a host for those that still run. Of jobs in ``left_out`` the record of
    jobstats does not count.
    """
    by_host = {ledger.host: ledger for ledger in ledgers if ledger.windows}
    out = Claims()
    for at, job in enumerate(jobs):
        own = {node: by_host[hosts[node]] for node in job.nodes if hosts.get(node) in by_host}
        ends = {node: ledger.windows[-1][1] if job.end_us is None else job.end_us for node, ledger in own.items()}
        sizes = {ledger.host: _size(ledger, job.start_us, ends[node]) for node, ledger in own.items()}
        known = sum(sizes.values()) if own and len(own) == len(job.nodes) and all(sizes.values()) else None
        if job.n_gpus is not None and known is not None and job.n_gpus > known:
            out.too_many[at] = known
        for node, ledger in own.items():
            if ends[node] <= job.start_us:
                continue
            use = {} if at in left_out else (job.use or {}).get(node) or {}
            n_gpus = len(use) or _share(job, sizes[ledger.host], known)
            claim = Claim(at, job.start_us, ends[node], n_gpus, frozenset(use))
            out.of_host.setdefault(ledger.host, []).append(claim)
    return out


def incomplete_records(jobs: Sequence[SchedulerJob]) -> dict[int, str]:
    """Jobs of which jobstats lists more or fewer GPUs than the scheduler gave, and that it does."""
    out = {}
    for at, job in enumerate(jobs):
        n_listed = sum(map(len, (job.use or {}).values()))
        if n_listed and job.n_gpus is not None and n_listed != job.n_gpus:
            out[at] = f"jobstats lists {plural(n_listed, 'GPU')} of it and the scheduler {job.n_gpus:,}"
    return out


def _size(ledger: HostLedger, low: int, high: int) -> int:
    """The most GPUs that the host had at once in that time."""
    return max((len(one.gpus) for one in ledger.stretches if one.start_us < high and one.end_us > low), default=0)


def _share(job: SchedulerJob, size: int, known: int | None) -> int | None:
    """GPUs of a job on one of its nodes: known where it has one node, or all GPUs of all its nodes."""
    if job.n_gpus is None or len(job.nodes) == 1:
        return job.n_gpus
    return size if known is not None and job.n_gpus >= known else None
