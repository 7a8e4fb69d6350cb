"""Records of jobstats in AdminComment: by GPU what it did and how full it was, and nothing that cannot be."""

from __future__ import annotations

import base64
import gzip
import json
import math

import pytest

from gpudiag.readers._jobs.jobstats import MOST_BYTES, jobstats_record

GIB = 2**30
RECORD = {
    "nodes": {
        "della-l07g3": {
            "total_memory": 137438953472, "used_memory": 84683702272, "total_time": 57620.8, "cpus": 12,
            "gpu_total_memory": {"0": 80 * GIB, "1": 80 * GIB}, "gpu_used_memory": {"0": 2 * GIB, "1": 77.5 * GIB},
            "gpu_utilization": {"0": 0, "1": 98.6},
        },
        "della-l07g4": {"total_memory": 1024, "used_memory": 512, "total_time": 3.0, "cpus": 1},
    },
    "total_time": 50944, "gpus": 2,
}  # fmt: skip


def packed(text: bytes) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(text, mtime=0)).decode()


def of_gpu(**values: object) -> str:
    return packed(json.dumps({"nodes": {"n": {name: {"0": value} for name, value in values.items()}}}).encode())


def test_a_record_has_each_gpu_of_each_node() -> None:
    record = jobstats_record(packed(json.dumps(RECORD, separators=(",", ":")).encode()))
    assert record.use_pct == {"della-l07g3": {"0": 0.0, "1": 98.6}, "della-l07g4": {}}
    assert record.used_mib["della-l07g3"] == {"0": 2048.0, "1": 79360.0}
    assert sorted(record.known_pct()) == [0.0, 98.6] and record.fullest() == (79360.0, 81920.0) and record.odd == ()


@pytest.mark.parametrize("comment", ["", "a comment", "JS1:", "JS1:None", "JS1:Short"])
def test_where_there_is_none_nothing_is_known(comment: str) -> None:
    record = jobstats_record(comment)
    assert record.use_pct == {} and record.known_pct() == [] and math.isnan(record.fullest()[0])


@pytest.mark.parametrize(
    ("written", "n_odd"),
    [
        ("150", 1), ("-0.1", 1), ("true", 1), ("NaN", 1), ("1e999", 1), ("9" * 400, 1), ("[3]", 1),
        ('"N/A"', 0), ("null", 0),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_counted_and_unknown(written: str, n_odd: int) -> None:
    text = '{"nodes": {"n": {"gpu_utilization": {"0": 40.5, "1": ?}}}}'.replace("?", written)
    record = jobstats_record(packed(text.encode()))
    assert record.use_pct["n"]["0"] == 40.5 and math.isnan(record.use_pct["n"]["1"])
    assert record.known_pct() == [40.5] and len(record.odd) == n_odd
    assert all("gpu_utilization" in one and "GPU 1 of n" in one and len(one) < 200 for one in record.odd)


def test_memory_beyond_any_gpu_is_none() -> None:
    record = jobstats_record(of_gpu(gpu_used_memory=1e18, gpu_total_memory=-1))
    assert math.isnan(record.fullest()[0]) and len(record.odd) == 2
    used, total = jobstats_record(of_gpu(gpu_used_memory=GIB)).fullest()
    assert used == 1024 and math.isnan(total)


@pytest.mark.parametrize(
    "comment",
    [
        "JS1:nonsense", "JS1:" + base64.b64encode(b"no gzip").decode(), packed(b"{"), packed(b"[]"), packed(b"{}"),
        packed(b'{"nodes": 3}'), packed(b'{"nodes": {"n": 3}}'), packed(b"[" * 100_000), packed(b"\xff\xfe\x00"),
        packed(b" " * (MOST_BYTES + 10)), packed(json.dumps(RECORD).encode())[:80],
    ],
)  # fmt: skip
def test_what_is_no_record_or_would_fill_the_memory_is_an_error(comment: str) -> None:
    with pytest.raises(ValueError, match="no record of jobstats"):
        jobstats_record(comment)
