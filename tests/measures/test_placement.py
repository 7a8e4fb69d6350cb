"""Chains of trials, and where marks place them."""

from __future__ import annotations

import numpy as np
import pytest

from gpudiag.measures._gpu.chains import chains_of
from gpudiag.measures._gpu.marks import Mark, marks_of
from gpudiag.measures._gpu.placement import Lives, place
from gpudiag.measures._gpu.statements import _Account
from gpudiag.measures._time.timeline import Samples

US = 1_000_000
Lived = tuple[np.ndarray, np.ndarray, np.ndarray, list[Samples], list[Samples]]
"""Starts, ends and true GPUs of trials; memory and activity by GPU."""
NOBODY = np.full(9, np.nan)


def chains(spans: list[tuple[float, float]], never: tuple[int, ...] = ()) -> list[int]:
    start, end = (np.array([span[i] for span in spans]) * US for i in (0, 1))
    ended = ~np.isin(np.arange(len(spans)), never)
    return chains_of(start.astype(np.int64), end.astype(np.int64), ended, NOBODY[: len(spans)]).tolist()


def test_who_starts_where_one_place_is_free_follows_the_one_before() -> None:
    assert chains([(0, 10), (0, 20), (11, 30), (21, 40)]) == [0, 1, 0, 1]


def test_of_two_free_places_nobody_knows_which_was_taken() -> None:
    # 2 and 3 take the places of 0 and 1 in some order; 4 follows 2, for 3 still runs.
    assert chains([(0, 10), (0, 11), (12, 20), (13, 40), (21, 30)]) == [0, 1, 2, 3, 2]


def test_what_never_ended_gives_no_place_free() -> None:
    assert chains([(0, 10), (0, 20), (21, 30)], never=(0,)) == [0, 1, 1]


def test_named_workers_are_the_chains() -> None:
    start = np.arange(4) * US
    found = chains_of(start, start + US, np.ones(4, bool), np.array(["b", "a", "b", "a"], object))
    assert found.tolist() == [1, 0, 1, 0]


def log(changes: list[tuple[float, float]], n: int = 100) -> Samples:
    """A value a second, from each change on."""
    time = np.arange(n, dtype=np.int64) * US
    value = np.zeros(n)
    for at, level in changes:
        value[time >= at * US] = level
    return Samples(time, time, time + US, value)


def test_marks_of_a_trial_on_its_gpu_and_on_another() -> None:
    memory = [log([(0, 300), (24, 700), (40, 5000), (80, 300)]), log([(0, 4000)])]
    activity = [log([(40, 90), (77, 0)]), log([(0, 90)])]
    one = np.ones(1, bool)
    rose, begin, fell, dropped, freed, within, stopped, late = marks_of(
        np.array([20 * US]), np.array([80 * US]), one, memory, activity
    )
    assert [mark.kind[0].tolist() for mark in (rose, begin, freed)] == [[1, 7], [2, 0], [4, 0]]
    assert [mark.kind[0].tolist() for mark in (fell, dropped)] == [[2, 9], [3, 9]]
    assert [mark.kind[0].tolist() for mark in (within, stopped, late)] == [[0, 0], [0, 2], [2, 2]]


def test_nothing_is_read_off_a_gap() -> None:
    whole = log([(0, 5000), (80, 300)])
    kept = np.abs(whole.time_us - 80 * US) > 15 * US
    gapped = Samples(*(getattr(whole, name)[kept] for name in ("time_us", "start_us", "end_us", "value")))
    marks = marks_of(np.array([20 * US]), np.array([80 * US]), np.ones(1, bool), [gapped], [gapped])
    assert [mark.kind.tolist() for mark in marks[2:5]] == [[[-1]]] * 3 and marks[6].kind.tolist() == [[-1]]


def clear_mark(where: np.ndarray, n_gpus: int) -> Mark:
    """A mark that only the trial's own GPU shows; -1: none does."""
    kind = (where[:, None] == np.arange(n_gpus)).astype(int)
    return Mark(kind, np.zeros(len(where), int), (1.0, 9.0), np.where(kind, 0.1, 0.9))


def lives(spans: list[tuple[float, float]], chain: list[int]) -> Lives:
    start, end = (np.array([span[i] for span in spans]) for i in (0, 1))
    return Lives((start * US).astype(np.int64), (end * US).astype(np.int64), np.array(chain), np.full(len(spans), -1))


def rounds(n: int, lanes: int) -> tuple[list[tuple[float, float]], list[int]]:
    """Lanes of n trials after each other, shifted so that one place is free at a time."""
    spans = [(100.0 * i + 7 * lane, 100.0 * i + 7 * lane + 99) for i in range(n) for lane in range(lanes)]
    return spans, [lane for _ in range(n) for lane in range(lanes)]


def test_a_chain_without_a_mark_of_its_own_gets_the_gpu_that_has_room() -> None:
    spans, chain = rounds(12, 3)
    true = np.where(np.array(chain) == 2, -1, chain)
    made = place([clear_mark(true, 3)], lives(spans, chain), 3, 3)
    assert made.shared and made.gpu.tolist() == chain
    assert made.chance.sum(axis=1) == pytest.approx(1)


def test_two_chains_without_marks_are_alike_on_both_gpus_left() -> None:
    spans, chain = rounds(12, 4)
    true = np.where(np.array(chain) >= 2, -1, chain)
    made = place([clear_mark(true, 4)], lives(spans, chain), 4, 4)
    unknown = true < 0
    assert made.shared and (made.gpu[unknown] == -1).all()
    assert made.chance[unknown][:, 2:] == pytest.approx(0.5, abs=0.03)
    assert made.gpu[~unknown].tolist() == true[~unknown].tolist()


def test_a_gpu_with_more_workers_than_its_share_is_believed() -> None:
    spans, chain = rounds(12, 4)
    true = np.array([0, 0, 0, 1])[chain]
    made = place([clear_mark(true, 2)], lives(spans, chain), 2, 4)
    assert made.shared and made.gpu.tolist() == true.tolist()


def test_trials_that_draw_their_gpu_are_judged_one_by_one() -> None:
    spans, chain = rounds(20, 3)
    true = np.random.default_rng(1).integers(0, 3, len(chain))
    marks = [clear_mark(true, 3)] * 3
    made = place(marks, lives(spans, chain), 3, 3)
    assert not made.shared and made.gpu.tolist() == true.tolist()


def test_how_often_a_gpu_shows_a_mark_at_any_time() -> None:
    # Lives of 10 s, each begun by a rise of memory; of the others no second in this GPU's log has one.
    start = np.arange(0, 1000, 20, dtype=np.int64) * US
    rising = log([at for i in range(50) for at in ((20.0 * i + 1, 5000.0), (20.0 * i + 9, 0.0))], 1000)
    rose = marks_of(start, start + 10 * US, np.ones(50, bool), [rising, log([], 1000)], [rising, log([], 1000)])[0]
    assert (rose.kind[1:-1] == [0, 7]).all()  # within 3 s, and never
    assert (rose.any_time[1:-1, 0] < 0.5).all() and (rose.any_time[1:-1, 1] > 0.9).all()


def lived(seed: int, lengths: tuple[float, ...], *, tail: float, jitter: float, step_s: float, keeps: bool) -> Lived:
    """Two hours and a half of one worker a GPU, trials of unlike lengths that end their work ``tail`` seconds early and
    free their memory then, unless the process ``keeps`` it.
    """
    rng = np.random.default_rng(seed)
    time = (np.arange(0, 9000, step_s) * US).astype(np.int64)
    rows, memory, activity = [], [], []
    for gpu, length in enumerate(lengths):
        used, busy, at = np.full(len(time), 21_000.0 if keeps else 1000.0), np.zeros(len(time)), 60.0
        while at < 8900 - max(lengths):
            end = at + length + rng.uniform(-jitter, jitter)
            works = (time >= (at + 10) * US) & (time < (end - tail) * US)
            busy[works], used[works] = 90 - 25 * gpu, 21_000
            rows.append((int(at * US), int(end * US), gpu))
            at = end + 5
        memory.append(Samples(time, time, time + int(step_s * US), used))
        activity.append(Samples(time, time, time + int(step_s * US), busy))
    start, end, where = np.array(sorted(rows)).T
    return start, end, where, memory, activity


def placed(made: Lived) -> tuple[int, int, int]:
    """Trials that are placed right, wrong, and not at all."""
    start, end, where, memory, activity = made
    ended, unknown = np.ones(len(start), bool), np.full(len(start), -1)
    own = Lives(start, end, chains_of(start, end, ended, np.full(len(start), np.nan)), unknown)
    found = place(marks_of(start, end, ended, memory, activity), own, len(memory), len(memory)).gpu
    return int((found == where).sum()), int(((found >= 0) & (found != where)).sum()), int((found < 0).sum())


@pytest.mark.parametrize("seed", (41, 42))
@pytest.mark.parametrize(
    ("lengths", "tail", "step_s", "keeps"),
    [
        ((100.0, 300.0), 0.0, 1.0, False),
        ((100.0, 300.0), 2.0, 1.0, False),
        ((300.0, 100.0), 2.0, 1.0, True),
        ((120.0, 150.0), 4.0, 1.0, False),
        ((150.0, 150.0), 3.0, 1.0, False),
        ((200.0, 420.0), 8.0, 5.0, False),
        ((100.0, 260.0), 15.0, 2.0, False),
        ((110.0, 170.0, 300.0), 3.0, 1.0, False),
        ((120.0, 200.0, 300.0, 410.0), 6.0, 5.0, False),
    ],
)
def test_gpus_are_not_exchanged_where_work_and_memory_end_before_the_trial(
    lengths: tuple[float, ...], tail: float, step_s: float, keeps: bool, seed: int
) -> None:
    right, wrong, withheld = placed(lived(seed, lengths, tail=tail, jitter=25, step_s=step_s, keeps=keeps))
    assert wrong == 0 and right >= 0.95 * (right + withheld)


@pytest.mark.parametrize("seed", (51, 52, 53))
@pytest.mark.parametrize(("jitter", "tail"), [(0.0, 3.0), (1.0, 3.0), (4.0, 6.0)])
def test_trials_in_step_on_two_gpus_are_placed_right_or_not_at_all(jitter: float, tail: float, seed: int) -> None:
    made = lived(seed, (150.0, 150.0), tail=tail, jitter=jitter, step_s=1.0, keeps=False)
    assert placed(made)[1] == 0


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ([0, 1, 2], set()),
        ([1, 0, 2], {0, 1}),  # the third is at home
        ([1, 2, 0], {0, 1, 2}),
        ([1, 0, None], {0, 1}),  # the third shows nothing
        ([1, 2, None], {0, 1, 2}),  # but has no other place left
        ([0, 0, 0], set()),  # on one GPU all of them, as of no use
    ],
)
def test_only_gpus_whose_trials_are_elsewhere_are_exchanged(marked: list[int | None], expected: set[int]) -> None:
    pairs = [(own, other) for own, other in enumerate(marked) if other is not None for _ in range(20)]
    stated, found = np.array(pairs).T
    assert _Account(stated, found, stated != found).exchanged(3) == expected
