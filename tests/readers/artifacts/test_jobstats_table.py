"""The table of jobstats in MariaDB: refused by name, with what to give."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify


@pytest.mark.parametrize("sign", [",", "\t"])
def test_a_dump_of_it_is_refused_by_name(sign: str, tmp_path: Path) -> None:
    path = tmp_path / "job_statistics.csv"
    rows = [
        ("cluster", "jobid", "admin_comment", "created_at"),
        ("della", "1000", "JS1:H4sIAAAA", "2026-01-05 10:00:00"),
        ("della", "1001", "JS1:Short", "2026-01-05 10:10:00"),
    ]
    path.write_text("".join(sign.join(row) + "\n" for row in rows))
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "jobstats-table"
    with pytest.raises(gd.InputError, match=r"neither when a job ran nor how it ended.*sacct --allusers"):
        gd.load_run(path)


def test_a_table_of_sacct_with_its_records_is_none(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID|State|Start|End|AdminComment\n1|COMPLETED|2026-01-05T10:00:00|2026-01-05T11:00:00|JS1:Short\n"
    )
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "slurm-sacct"
