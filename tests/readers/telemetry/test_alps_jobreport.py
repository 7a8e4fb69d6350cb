"""alps-jobreport's means over a job are no samples, and are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify

RANGES = (
    "powerUsageMin,powerUsageMax,powerUsageAvg,startTime,endTime,smUtilizationMin,smUtilizationMax,smUtilizationAvg,"
)
RANGES += "memoryUtilizationMin,memoryUtilizationMax,memoryUtilizationAvg"
VALUES = "95.123000,612.500000,402.250000,1735689600123456,1735693200123456,0,100,87,0,62,31"


@pytest.mark.parametrize(
    ("names", "cells", "end", "last"),
    [
        ("jobId,stepId,username,slurm_account,n_nodes,host,gpuId", "7,0,a,g34,1,nid1,0", ",maxAllocatedMemory", ",8"),
        ("jobId,stepId,host,gpuId", "7,0,nid001234,3", "", ""),
        ("host,gpuId", "nid001234,3", "", ""),
    ],
)  # fmt: skip
def test_its_files_of_every_version_are_named(tmp_path: Path, names: str, cells: str, end: str, last: str) -> None:
    path = tmp_path / "proc_0.csv"
    path.write_text(f"{names},{RANGES}{end}\n{cells},{VALUES}{last}\n")
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "alps-jobreport"
    for text in (path.read_text(), path.read_text().splitlines()[0]):
        path.write_text(text)
        with pytest.raises(InputError, match=r"no samples\. Read it with jobreport print"):
            gd.load_run(path)


def test_other_tables_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("gpuId,startTime,endTime,smUtilizationAvg\n0,1,2,3\n")
    found = identify(Source.open(tmp_path / "a.csv"))
    assert found is None or found[1].name != "alps-jobreport"
