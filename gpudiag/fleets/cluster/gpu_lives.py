"""Which GPUs a host had when, and under which numbers: boards are replaced, and a reboot may number them otherwise."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpudiag.readers._datasets.host_samples import UtilSamples

Window = tuple[int, int]


@dataclass(frozen=True)
class Stretch:
    """A time of a host in which its GPUs do not change. ``gpus``: the number of each; one in brackets is no number."""

    start_us: int
    end_us: int
    gpus: Mapping[str, str]


def lives_of(gpus: Sequence[UtilSamples], spans: Sequence[Sequence[Window | None]]) -> list[Window]:
    """From when to when each GPU was part of its host.

    That is from the start of the first session (column of ``spans``) in which it was observed to the end of the last
    one, so that a GPU that falls silent is unobserved until its host does as well. Where another GPU comes up under its
    number after its last sample it was replaced, halfway between their samples. One without two samples in any session
    counts throughout.
    """
    windows = [window_of(of_session) for of_session in zip(*spans, strict=True)]
    known = [window for window in windows if window is not None]
    lives = []
    for own in spans:
        met = [window for window, span in zip(windows, own, strict=True) if span is not None and window is not None]
        met = met or known[:1] + known[-1:]
        lives.append((met[0][0], met[-1][1]) if met else (0, 0))
    for before, at in _replaced(gpus):
        border = (int(gpus[before].time_us[-1]) + int(gpus[at].time_us[0])) // 2
        lives[before] = lives[before][0], min(lives[before][1], border)
        lives[at] = max(lives[at][0], border), lives[at][1]
    return [(low, max(low, high)) for low, high in lives]


def slots_of(gpus: Sequence[UtilSamples]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The slot of each GPU, and the names of the slots: a GPU that another one replaced had the same slot.

    A slot is called like its GPU, or by the number where it had several.
    """
    after: dict[int, int] = {}
    for before, at in _replaced(gpus):
        after.setdefault(before, at)
    first = set(after.values())
    slots, names = [0] * len(gpus), list[str]()
    for at in range(len(gpus)):
        if at in first:
            continue
        here = at
        while here in after:
            slots[here] = len(names)
            here = after[here]
        slots[here] = len(names)
        names.append(gpus[here].label if here == at else gpus[here].numbers[0][2])
    return tuple(slots), tuple(names)


def _replaced(gpus: Sequence[UtilSamples]) -> Iterator[tuple[int, int]]:
    """GPUs with the one that came up under their number after their last sample."""
    last: dict[str, int] = {}
    for at in sorted((at for at, gpu in enumerate(gpus) if gpu.numbers), key=lambda at: int(gpus[at].time_us[0])):
        before = last.get(gpus[at].numbers[0][2])
        if before is not None and gpus[before].time_us[-1] < gpus[at].time_us[0]:
            yield before, at
        last[gpus[at].numbers[-1][2]] = at


def window_of(spans: Sequence[Window | None]) -> Window | None:
    """From the first to the last of several spans."""
    known = [span for span in spans if span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def stretches_of(gpus: Sequence[UtilSamples], lives: Sequence[Window], windows: Sequence[Window]) -> Iterator[Stretch]:
    """The windows, cut wherever a GPU comes, goes or gets another number."""
    turns = [_turns(gpu) for gpu in gpus]
    edges = sorted({edge for life in lives for edge in life} | {turn for own in turns for turn in own})
    for first, last in windows:
        cuts = [first, *(edge for edge in edges if first < edge < last), last]
        for low, high in pairwise(cuts):
            alive = [at for at, (start, end) in enumerate(lives) if start <= low and high <= end]
            named = {at: _number(gpus[at], turns[at], low) for at in alive}
            often = Counter(named.values())
            sure = {at: number if number and often[number] == 1 else "" for at, number in named.items()}
            yield Stretch(low, high, {gpus[at].label: sure[at] or f"({gpus[at].label})" for at in alive})


def _turns(gpu: UtilSamples) -> list[int]:
    """When it got another number: halfway between the samples."""
    return [(one[1] + other[0]) // 2 for one, other in pairwise(gpu.numbers)]


def _number(gpu: UtilSamples, turns: Sequence[int], when_us: int) -> str:
    return gpu.numbers[bisect_right(turns, when_us)][2] if gpu.numbers else ""
