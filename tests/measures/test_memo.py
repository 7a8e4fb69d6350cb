"""What a copy of a run keeps is made once, and a table that was edited in place is measured anew."""

from __future__ import annotations

import json
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace

import pandas as pd
import pytest
from smallruns import gpu, run, trials

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.memo import Memo, MemoRun, memoized
from gpudiag.run import Run


def test_a_copy_keeps_what_is_made_of_it_and_the_run_itself_nothing() -> None:
    made: list[Run] = []

    @memoized
    def count(about: Run, more: int = 0) -> int:
        made.append(about)
        return len(made) + more

    plain = Run()
    assert [count(plain), count(plain)] == [1, 2]
    copy = MemoRun.of(plain)
    assert [count(copy), count(copy), count(MemoRun.of(copy))] == [3, 3, 3] and copy.gpu is plain.gpu
    assert [count(copy, 10), count(copy, 10)] == [14, 14], "other arguments, other result"
    assert count(MemoRun.fresh(copy)) == 5
    derived = replace(copy, info=replace(copy.info, name="derived"))
    assert [count(derived), count(derived), count(copy)] == [6, 6, 3]
    assert [count(pickle.loads(pickle.dumps(copy))), count(deepcopy(copy))] == [7, 8]


def test_what_failed_is_kept_and_what_was_interrupted_is_not() -> None:
    memo, tried = Memo(), []

    def fail(error: BaseException) -> None:
        tried.append(error)
        raise error

    for kind in (NotMeasurable, ZeroDivisionError, MemoryError, KeyboardInterrupt):
        told = []
        for _ in range(2):
            with pytest.raises(kind) as raised:
                memo.once(kind, lambda kind=kind: fail(kind("no")))  # type: ignore[misc]
            told.append(raised.value)
        assert (told[0] is told[1]) is issubclass(kind, NotMeasurable | ZeroDivisionError)
    assert [type(error) for error in memo.errors] == [NotMeasurable, ZeroDivisionError]
    assert len(tried) == 1 + 1 + 2 + 2


def test_threads_that_ask_for_the_same_wait_for_the_first() -> None:
    memo, made = Memo(), []

    def make() -> int:
        made.append(threading.get_ident())
        time.sleep(0.05)
        return len(made)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: memo.once("key", make), range(8))) == {1}
    assert len(made) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.assign(util_pct=0.0),
        lambda table: table.assign(time=table["time"] + pd.Timedelta(seconds=40)),
        lambda table: table.assign(gpu=table["gpu"].where(table.index % 7 > 0, "9")),
    ],
)
def test_a_table_edited_in_place_is_measured_anew(edit) -> None:
    table = gpu(range(0, 400, 2), util_pct=[85.0] * 200, mem_used_mib=[5000.0] * 200, mem_total_mib=[24000.0] * 200)
    jobs = trials([("COMPLETE", start, start + 95) for start in range(0, 400, 100)])
    edited = Run(trials=jobs, gpu=table)
    before = json.dumps(gd.diagnose(edited).to_dict())
    changed = edit(edited.gpu)
    for column in ("time", "gpu", "util_pct"):
        edited.gpu[column] = changed[column]
    after = json.dumps(gd.diagnose(edited).to_dict())
    assert after != before
    assert after == json.dumps(gd.diagnose(run(trials=jobs, gpu=changed)).to_dict())
