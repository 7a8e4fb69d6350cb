"""A row a scheduler job, and rows for the GPU time that is of no single job: together all time of all GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gpudiag.fleets.cluster.claims import Claims, claims_of, incomplete_records
from gpudiag.fleets.cluster.gpu_lives import Window
from gpudiag.fleets.cluster.host_ledger import HostLedger, mondays
from gpudiag.fleets.cluster.owners import Claim, holdings
from gpudiag.fleets.cluster.tally import Tally, iso
from gpudiag.fleets.weeks import week_of
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJob
from gpudiag.report.fleet.document import RunRow
from gpudiag.report.format import duration, listed, plural, safe, share
from gpudiag.units import SECOND_US

CHECKED_US = 1200 * SECOND_US
CHECKED_SHARE, FAR_PCT = 0.8, 10.0
"""Of a job this long, seen this much, jobstats and telemetry must agree that far, or they number the GPUs otherwise (a
default without a source: both sample the same counter, so that only the ends of the job should differ)."""
MOST_NAMED = 4
"""Jobs in the name of a row."""


@dataclass(frozen=True)
class _Book:
    """``own``: by job and host; ``shared``: by host and jobs; ``free``: by host and week; ``shared_us``: by job, how
    long it shared one of its hosts at most; ``outside_us``: by job, the most that lies outside the telemetry of one of
    its hosts; ``too_many``: as in Claims.
    """

    own: dict[int, dict[str, Tally]]
    shared: dict[tuple[str, tuple[int, ...]], Tally]
    free: dict[tuple[str, str], Tally]
    shared_us: dict[int, int]
    outside_us: dict[int, int]
    too_many: dict[int, int]


def job_rows(
    ledgers: Sequence[HostLedger],
    jobs: Sequence[SchedulerJob],
    hosts: Mapping[str, str],
    source: str,
    *,
    n_unread: int = 0,
) -> list[RunRow]:
    """The rows. ``hosts``: which host of the telemetry each node of the jobs is; ``n_unread``: lines of the list of
    jobs that could not be read.
    """
    left_out = incomplete_records(jobs)
    book = _booked(ledgers, claims_of(ledgers, jobs, hosts, left_out))
    odd = _disagreeing(book, jobs, hosts, left_out)
    if odd:
        left_out |= odd
        book = _booked(ledgers, claims_of(ledgers, jobs, hosts, left_out))
    taken: set[str] = set()
    rows: list[RunRow] = []
    for at, job in enumerate(jobs):
        reasons = _reasons(job, at, book, hosts, odd=left_out.get(at, ""))
        rows += _rows_of_job(job, book.own.get(at, {}), hosts, source, reasons, taken, trusted=at not in left_out)
    for (host, who), tally in book.shared.items():
        rows.append(_shared_row(host, [jobs[at] for at in who], tally, taken, source))
    said = "GPU time in which no listed job had the GPUs"
    if n_unread:
        said += f"; {plural(n_unread, 'line')} of the list could not be read"
    for (host, week), tally in book.free.items():
        name = _free_name(f"{safe(host)}: unallocated, {week}", taken)
        rows.append(RunRow(name, source, "unallocated", said, host=safe(host), **tally.columns()))
    return rows


def _booked(ledgers: Sequence[HostLedger], claims: Claims) -> _Book:
    book = _Book({}, {}, {}, {}, {}, claims.too_many)
    for ledger in ledgers:
        _book_host(book, ledger, claims.of_host.get(ledger.host, []))
    return book


def _book_host(book: _Book, ledger: HostLedger, claims: Sequence[Claim]) -> None:
    for claim in claims:
        length = claim.end_us - claim.start_us
        outside = length - sum(high - low for low, high in _within(ledger.windows, claim.start_us, claim.end_us))
        if outside > min(ledger.period_us, length - 1):  # a sampler does not begin and end with the job
            book.outside_us[claim.job] = max(outside, book.outside_us.get(claim.job, 0))
    shared_us: Counter[int] = Counter()
    for held in holdings(claims, ledger.stretches):
        low, high = held.start_us, held.end_us
        if not held.jobs:
            _book_free(book, ledger, low, high, held.gpus)
        elif held.exact:
            book.own.setdefault(held.jobs[0], {}).setdefault(ledger.host, Tally()).add(ledger, low, high, held.gpus)
        else:
            tally = book.shared.setdefault((ledger.host, held.jobs), Tally())
            tally.add(ledger, low, high, held.gpus)
            tally.all_held &= held.all_held
            tally.some_free |= held.some_free
            shared_us.update(dict.fromkeys(held.jobs, high - low))
    for at, length_us in shared_us.items():
        book.shared_us[at] = max(length_us, book.shared_us.get(at, 0))


def _book_free(book: _Book, ledger: HostLedger, low: int, high: int, gpus: Mapping[str, str]) -> None:
    """Time of nobody, week by week: a row of months would count in the week in which it began."""
    begun = ledger.begun_us(low, high)
    for first, last in pairwise(dict.fromkeys([low, *mondays([(begun, high)]), high])):
        key = ledger.host, week_of(iso(max(first, begun)))
        book.free.setdefault(key, Tally()).add(ledger, first, last, gpus)


def _within(windows: Sequence[Window], low: int, high: int) -> Iterator[Window]:
    for first, last in windows:
        if max(first, low) < min(last, high):
            yield max(first, low), min(last, high)


def _disagreeing(
    book: _Book, jobs: Sequence[SchedulerJob], hosts: Mapping[str, str], left_out: Mapping[int, str]
) -> dict[int, str]:
    """Jobs of which jobstats and the telemetry say different things about the same GPU, and what: their numbers of GPUs
    do not mean the same.
    """
    out = {}
    for at, tallies in book.own.items():
        for node, use in (jobs[at].use or {}).items():
            tally = tallies.get(hosts.get(node, ""))
            if tally is None or at in left_out:
                continue
            for (_, gpu), (work, observed, length) in tally.per_gpu.items():
                pct = use.get(gpu)
                known = length >= CHECKED_US and observed >= CHECKED_SHARE * length and pct is not None and pct == pct
                if known and abs(work / observed - pct) > FAR_PCT:
                    said, seen = share(pct), share(work / observed)
                    out[at] = (
                        f"jobstats has {said} for GPU {gpu} of {node}, the telemetry {seen}: "
                        "the two may number the GPUs differently"
                    )
    return out


def _reasons(job: SchedulerJob, at: int, book: _Book, hosts: Mapping[str, str], *, odd: str) -> Iterator[str]:
    """What is to be said of the row of a job."""
    missing = [node for node in job.nodes if node not in hosts]
    if job.end_us == job.start_us:
        yield "it ended when it began"
    if odd:
        yield f"{odd}, so the record of jobstats was left out"
    if at in book.too_many:
        yield f"the scheduler gave it {plural(job.n_gpus or 0, 'GPU')}, the telemetry has {book.too_many[at]:,}"
    if at in book.shared_us:
        part = f"for {duration(book.shared_us[at] / SECOND_US)} of it " if at in book.own else ""
        yield f"{part}nothing says which GPUs of a shared node it had; their time is in a row of its own"
    if missing or not job.nodes:
        yield f"no telemetry of {listed(missing[:MOST_NAMED])}" if missing else "it names no node"
    if at in book.outside_us:
        where = "its host" if len(job.nodes) == 1 else "one of its hosts"
        yield f"{duration(book.outside_us[at] / SECOND_US)} of it lie outside the telemetry of {where}"


def _rows_of_job(
    job: SchedulerJob,
    tallies: Mapping[str, Tally],
    hosts: Mapping[str, str],
    source: str,
    reasons: Iterable[str],
    taken: set[str],
    *,
    trusted: bool,
) -> Iterator[RunRow]:
    """A row a host on which the job surely had GPUs, so that hosts add up; the first one counts as the run."""
    name = f"job {safe(job.id)}"
    met = [hosts.get(node, node) for node in job.nodes]
    row = RunRow(
        name,
        source,
        "accounted",
        safe("; ".join(reasons)),
        user=safe(job.user),
        project=safe(job.account),
        host=safe(next((host for host in met if host in hosts.values()), met[0] if met else "")),
        state=safe(job.state),
        gpu_model=safe(job.gpu_model),
        n_gpus=job.n_gpus,
        start=iso(job.start_us),
        end=iso(job.end_us),
    )
    if not tallies:
        known = [pct for use in (job.use or {}).values() for pct in use.values() if pct == pct and trusted]
        yield replace(row, run=_free_name(name, taken), util_pct=sum(known) / len(known) if known else None)
    for at, (host, tally) in enumerate(tallies.items()):
        cells = tally.columns()
        model = cells.pop("gpu_model") or row.gpu_model
        n_gpus = cells["n_gpus"] if len(job.nodes) > 1 else job.n_gpus or cells["n_gpus"]
        cells |= {"start": row.start, "end": row.end or cells["end"], "n_gpus": n_gpus, "gpu_model": model}
        own = _free_name(f"{name} on {safe(host)}" if len(tallies) > 1 else name, taken)
        if at:
            cells |= {"status": "continued", "reason": ""}
        yield replace(row, run=own, host=safe(host), **cells)


def _shared_row(host: str, jobs: Sequence[SchedulerJob], tally: Tally, taken: set[str], source: str) -> RunRow:
    ids = [job.id for job in jobs]
    some = listed([*ids[:MOST_NAMED], *([f"{len(ids) - MOST_NAMED} more"] if len(ids) > MOST_NAMED else [])])
    free = "" if tally.all_held else ", and some were free" if tally.some_free else ", or whether some were free"
    perhaps = "" if tally.some_free else "perhaps "
    what = f"shared by jobs {some}" if len(ids) > 1 else f"job {some} and {perhaps}no job"
    said = f"nothing says which of these GPUs each job had{free}"

    def common(kind: str) -> str:
        names = {getattr(job, kind) for job in jobs}
        return safe(names.pop()) if len(names) == 1 and tally.all_held else ""

    return RunRow(
        _free_name(safe(f"{host}: {what}"), taken),
        source,
        "shared",
        said,
        user=common("user"),
        project=common("account"),
        host=safe(host),
        **tally.columns(),
    )


def _free_name(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken; a job that was requeued is there several times."""
    n, free = 1, name
    while free in taken:
        n += 1
        free = f"{name} ({n})"
    taken.add(free)
    return free
