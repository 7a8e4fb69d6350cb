"""What one call shares is made once, and a table that was edited in place is measured anew."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from gpudiag.measures._time.once import once, sharing
from smallruns import gpu, run, trials

import gpudiag as gd


class Thing:
    """Can be referred to weakly."""


def test_within_a_call_nothing_is_made_twice_and_after_it_nothing_is_kept() -> None:
    made = []
    thing = Thing()

    def make(about: Thing) -> int:
        made.append(about)
        return len(made)

    assert [once(make, thing), once(make, thing)] == [1, 2]
    with sharing():
        assert [once(make, thing), once(make, thing)] == [3, 3]
        with sharing():
            assert once(make, thing) == 3
        assert once(make, thing) == 3
        assert once(make, Thing()) == 4
        assert once(make, Thing()) == 5, "another thing, though it may lie where the last one lay"
    assert once(make, thing) == 6


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
    edited = run(trials=jobs, gpu=table)
    before = json.dumps(gd.diagnose(edited).to_dict())
    changed = edit(edited.gpu)
    for column in ("time", "gpu", "util_pct"):
        edited.gpu[column] = changed[column]
    after = json.dumps(gd.diagnose(edited).to_dict())
    assert after != before
    assert after == json.dumps(gd.diagnose(run(trials=jobs, gpu=changed)).to_dict())
