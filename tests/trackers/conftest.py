"""Servers and files for tests of what is written beside a run."""

from pathlib import Path

import pytest
from databases import mysql_url, postgres_url

__all__ = ["mysql_url", "postgres_url", "report_files"]


@pytest.fixture
def report_files(tmp_path: Path) -> list[Path]:
    """The files of a report, as they are handed to a tracker."""
    (tmp_path / "out" / "report_files").mkdir(parents=True)
    for name in ("report.html", "report.md", "diagnosis.json", "report_files/a.png"):
        (tmp_path / "out" / name).write_text(name)
    return [tmp_path / "out" / name for name in ("report.html", "report.md", "diagnosis.json", "report_files")]
