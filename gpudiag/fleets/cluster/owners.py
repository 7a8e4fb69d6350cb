"""Whose GPUs of a host were when, as far as the scheduler's records determine it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpudiag.fleets.cluster.gpu_lives import Stretch


@dataclass(frozen=True)
class Claim:
    """A job on one host: from when to when, on how many of its GPUs (None unknown), and on which if that is known, by
    their numbers.
    """

    job: int
    start_us: int
    end_us: int
    n_gpus: int | None
    gpus: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Holding:
    """GPUs of a host, with their numbers, from one moment to another. ``jobs``: none, the one that had them, or those
    of which nobody knows which had which. ``all_held``: between them the jobs surely had all of these GPUs;
    ``some_free``: they surely did not.
    """

    start_us: int
    end_us: int
    gpus: Mapping[str, str]
    jobs: tuple[int, ...]
    exact: bool
    all_held: bool = True
    some_free: bool = False


def holdings(claims: Sequence[Claim], stretches: Sequence[Stretch]) -> Iterator[Holding]:
    """Who had which GPU in all of these stretches, which are in order; nobody where no claim is."""
    moments = sorted({edge for claim in claims for edge in (claim.start_us, claim.end_us)})
    waiting = sorted(claims, key=lambda claim: claim.start_us)
    begun, active = 0, list[Claim]()
    for one in stretches:
        inside = moments[bisect_right(moments, one.start_us) : bisect_left(moments, one.end_us)]
        for low, high in pairwise([one.start_us, *inside, one.end_us]):
            while begun < len(waiting) and waiting[begun].start_us <= low:
                active.append(waiting[begun])
                begun += 1
            active = [claim for claim in active if claim.end_us > low]
            yield from _between(low, high, active, one.gpus)


def _between(low: int, high: int, active: Sequence[Claim], gpus: Mapping[str, str]) -> Iterator[Holding]:
    there = set(gpus.values())
    by_name = [claim for claim in active if claim.gpus and claim.gpus <= there]
    named = [number for claim in by_name for number in claim.gpus]
    sure = [claim for claim in by_name if all(named.count(number) == 1 for number in claim.gpus)]
    for claim in sure:
        own = {gpu: number for gpu, number in gpus.items() if number in claim.gpus}
        yield Holding(low, high, own, (claim.job,), exact=True)
    taken = {number for claim in sure for number in claim.gpus}
    free = {gpu: number for gpu, number in gpus.items() if number not in taken}
    rest = [claim for claim in active if claim not in sure]
    if not free:
        return
    if not rest:
        yield Holding(low, high, free, (), exact=True)
        return
    counts = [claim.n_gpus for claim in rest]
    wanted = sum(n for n in counts if n is not None)
    if len(rest) == 1 and counts[0] is not None and wanted >= len(free):
        yield Holding(low, high, free, (rest[0].job,), exact=True)
    else:
        full = wanted >= len(free)  # more are wanted where one job ends as the next begins
        left = not full and None not in counts
        jobs = tuple(sorted(claim.job for claim in rest))
        yield Holding(low, high, free, jobs, exact=False, all_held=full, some_free=left)
