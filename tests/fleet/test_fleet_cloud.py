"""Run folders in an object store: found by name, read as on a disk, and nothing of them left behind."""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.fleets import cloud_runs
from gpudiag.fleets.fleet import fleet
from gpudiag.fleets.found import runs_below
from gpudiag.fleets.worker import close_all
from gpudiag.readers._datasets import cloud
from tests.readers.datasets.s3server import KEY, s3_server

SAMPLE = Path("data/samples/tiny-batch-laptop")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bucket ``b`` with two runs of two projects, weights in one, and documents beside them."""
    cloud._store.cache_clear()
    for name, value in {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    for place in ("vision/one", "text/host=n7/two"):
        shutil.copytree(SAMPLE, tmp_path / "b" / "runs" / place)
    weights = tmp_path / "b" / "runs" / "vision" / "one" / "checkpoints" / "last.pt"
    weights.parent.mkdir()
    weights.write_bytes(b"\0" * 2**21)
    (tmp_path / "b" / "runs" / "README.md").write_text("what is what")
    return tmp_path


@pytest.mark.slow
def test_runs_in_a_bucket_are_those_on_a_disk(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(bucket) as url, ThreadPoolExecutor(1) as pool:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        found = runs_below(["s3://b/runs/"])
        assert [(one.name, one.project, one.host) for one in found.runs] == [
            ("text/host=n7/two", "text", "n7"), ("vision/one", "vision", ""),
        ]  # fmt: skip
        there = fleet("s3://b/runs", bucket / "out", executor=pool)
        here = fleet(bucket / "b" / "runs", bucket / "out-2", executor=pool)
        assert [row.status for row in there.rows] == [row.status for row in here.rows]
        assert {row.gpu_s for row in there.rows} == {row.gpu_s for row in here.rows} and there.rows[0].gpu_s
        assert {row.source for row in there.rows} == {"s3://b/runs/vision/one", "s3://b/runs/text/host=n7/two"}
        (document, *_) = sorted((bucket / "out" / "runs").rglob("diagnosis.json"))
        assert str(bucket) not in document.read_text() and json.loads(document.read_text())["run"]["name"]
        seen: list[str] = []
        fleet("s3://b/runs", bucket / "out", executor=pool, progress=lambda done, of, row: seen.append(row.run))
        assert seen == []  # unchanged
    close_all()
    assert list((bucket / "temporary").iterdir()) == []


@pytest.mark.slow
def test_weights_are_not_fetched_and_what_is_too_large_is_said(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(bucket) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with cloud_runs.on_disk("s3://b/runs/vision/one") as place:
            held = {path.relative_to(place).as_posix() for path in Path(place).rglob("*") if path.is_file()}
            assert held == {path.relative_to(SAMPLE).as_posix() for path in SAMPLE.rglob("*") if path.is_file()}
        assert not Path(place).exists()
        monkeypatch.setattr(cloud_runs, "MOST_MIB", 0.001)
        with pytest.raises(InputError, match="copy it to a disk"), cloud_runs.on_disk("s3://b/runs/vision/one"):
            pass


@pytest.mark.slow
def test_a_run_toml_below_says_where_the_runs_are(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bucket / "b" / "runs" / "index.csv").write_text("run,who\n")
    (bucket / "b" / "runs" / "vision" / "one" / "run.toml").write_text('name = "one"\n')
    with s3_server(bucket) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        found = runs_below(["s3://b/runs"])
    assert [one.name for one in found.runs] == ["text/host=n7/two", "vision/one"] and found.unread == ("s3://b/runs",)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "a//x", "a\\..\\x"])
@pytest.mark.slow
def test_a_name_that_leads_out_of_the_folder_is_refused(
    bucket: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with s3_server(bucket) as url, pytest.raises(InputError, match="no path of a file"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        cloud.fetch("s3://b/runs", [name], bucket / "temporary", 100)


def test_a_web_address_is_refused_with_what_works(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="s3://bucket/folder") as refused:
        fleet("https://example.org/runs", tmp_path / "out")
    assert "download it first" in str(refused.value)
