"""A cluster by its telemetry: the map of its GPUs, and those that never worked."""

from __future__ import annotations

import math

from gpudiag.report._render.blocks import Block, Figure, Folded, Note, Number, TableBlock, TableCell
from gpudiag.report.fleet.document import RUNS, ClusterDocument, FleetDocument, UnusedGpu
from gpudiag.report.fleet.states import incomplete_gpu_s, rows_by_state
from gpudiag.report.format import UNKNOWN, count, number, plural, quantity, share
from gpudiag.schema import IDLE_PCT

MOST_HOSTS, OPEN_HOSTS = 40, 10


def cluster(document: FleetDocument) -> list[Block]:
    """The section; nothing where the fleet has no such telemetry."""
    about = document.cluster
    if about is None:
        return []
    notes = [Folded(plural(len(about.notes), "remark"), tuple(Note(one) for one in about.notes))] if about.notes else []
    said = "Telemetry of a cluster is added up, not checked: gpudiag diagnose checks single runs."
    checks = [] if document.checked else [Note(said, "unknown")]
    return [Figure("heat", small=True), *_unused(about), *_states(document), *_owners(document), *notes, *checks]


def _unused(about: ClusterDocument) -> list[Block]:
    out: list[Block] = []
    if about.n_hosts_left_out:
        n, why = plural(about.n_hosts_left_out, "host"), "no utilization is above 1 and some are fractions, so that"
        out.append(Note(f"{n} left out: {why} nothing says whether 1 is 1 % or 100 %.", "warning"))
    if about.n_hosts_without_samples:
        out.append(Note(f"{plural(about.n_hosts_without_samples, 'further host')} left no sample.", "unknown"))
    if about.n_without_samples:
        n = plural(about.n_without_samples, "further GPU")
        out.append(Note(f"{n} left no sample of utilization.", "unknown"))
    bar = share(IDLE_PCT)
    return [
        *out,
        *_listed(about.never_used, about.n_observed, f"never worked: no sample reaches {bar}"),
        *_listed(about.hardly_used, about.n_observed, f"hardly worked: less than 0.1 % of the time at {bar} or more"),
    ]


def _listed(gpus: tuple[UnusedGpu, ...], n_observed: int, what: str) -> list[Block]:
    if not gpus:
        return []
    hours = sum(gpu.observed_s for gpu in gpus) / 3600
    said = f"{len(gpus):,} of {plural(n_observed, 'GPU')} {what}, in {number(hours)} GPU-h."
    hosts: dict[tuple[str, str], list[UnusedGpu]] = {}
    for gpu in gpus:
        hosts.setdefault((gpu.host, gpu.model), []).append(gpu)
    rows: list[tuple[TableCell, ...]] = [
        (
            host or UNKNOWN,
            ", ".join(one.gpu for one in held),
            model or UNKNOWN,
            Number(quantity(math.fsum(one.observed_s for one in held) / 3600, "GPU-h")),
        )
        for (host, model), held in list(hosts.items())[:MOST_HOSTS]
    ]
    caption = f"{plural(len(hosts) - MOST_HOSTS, 'further host')} in fleet.json." if len(hosts) > MOST_HOSTS else ""
    table = TableBlock(("Host", "GPUs", "Model", "Observed"), tuple(rows), caption)
    return [Note(said, "warning"), table if len(rows) <= OPEN_HOSTS else Folded("Which GPUs", (table,))]


def _states(document: FleetDocument) -> list[Block]:
    """How the jobs of a scheduler ended, and the GPU time that they surely had, the most first."""
    held = rows_by_state(document.counted)
    if not held:
        return []
    hours = {state: math.fsum(row.gpu_s or 0.0 for row in rows) / 3600 for state, rows in held.items()}
    whole = math.fsum(hours.values())
    lost = incomplete_gpu_s(document.counted) / 3600
    rows: list[tuple[TableCell, ...]] = [
        (
            state,
            Number(count(sum(row.status in RUNS for row in held[state]))),
            Number(quantity(hours[state], "GPU-h")),
            Number(share(100 * hours[state] / whole) if whole else UNKNOWN),
        )
        for state in sorted(held, key=lambda state: (-hours[state], state))
    ]
    said = f"{quantity(lost, 'GPU-h')} of {quantity(whole, 'GPU-h')} of jobs went to jobs that did not complete."
    caption = "By the state in the list of jobs; without GPU time of nodes on which nothing says which GPUs a job had."
    table = TableBlock(("State", "Jobs", "GPU time", "Share"), tuple(rows), caption)
    return [*([Note(said, "warning")] if lost else []), table]


def _owners(document: FleetDocument) -> list[Block]:
    """How much of the GPU time is of no single job."""
    kinds = {
        "unallocated": "no listed job is known to have had the GPUs",
        "shared": "jobs shared a node, and nothing says which GPU each had",
    }
    out: list[Block] = []
    for status, why in kinds.items():
        seconds = sum(row.gpu_s or 0.0 for row in document.counted if row.status == status)
        if seconds:
            out.append(Note(f"{share(100 * seconds / document.total.gpu_s)} of the GPU time is {status}: {why}."))
    return out
