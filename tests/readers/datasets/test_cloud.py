"""Data sets in object stores: read as from a disk, with keys of the environment, which are never shown."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import numpy as np
import pytest
from s3server import KEY, s3_server

from gpudiag.errors import InputError
from gpudiag.export.partitioned import convert_partitioned
from gpudiag.fleets.fleet import fleet
from gpudiag.readers._datasets import cloud
from gpudiag.readers._datasets.host_samples import samples_of
from gpudiag.readers._datasets.partitions import telemetry_dataset

SECRET = "wJalrXUtnFEMI"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bucket ``b`` with a data set of two hosts and two days."""
    cloud._store.cache_clear()
    for name, value in {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for host in ("n1", "n 2"):
        rows = [f"{1772400000 + 600 * at},0,{at % 101}" for at in range(200)]
        (tmp_path / "gpu.csv").write_text("\n".join(["timestamp,gpu,gpu_util_pct", *rows]) + "\n")
        convert_partitioned([tmp_path / "gpu.csv"], tmp_path / "b" / "deep" / "telemetry", host=host)
    return tmp_path


@pytest.mark.slow
def test_a_data_set_in_a_bucket_is_that_on_the_disk(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(bucket) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        found = telemetry_dataset("s3://b/deep/telemetry/")
        local = telemetry_dataset(bucket / "b" / "deep" / "telemetry")
        assert found is not None and local is not None and list(found.hosts) == list(local.hosts) == ["n 2", "n1"]
        for host in found.hosts:
            (there,), (here,) = (samples_of(host, one.hosts[host], UTC).gpus for one in (found, local))
            np.testing.assert_array_equal(there.time_us, here.time_us)
            np.testing.assert_array_equal(there.util_pct, here.util_pct)
        rows = fleet("s3://b/deep/telemetry", bucket / "out").rows
        wanted = fleet(bucket / "b" / "deep" / "telemetry", bucket / "out-2").rows
        assert [row.gpu_s for row in rows] == [row.gpu_s for row in wanted] and rows[0].gpu_s
        assert rows[0].source == "s3://b/deep/telemetry"


@pytest.mark.slow
def test_what_is_not_there_is_a_sentence_without_keys(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(bucket) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        (bucket / "b" / "logs").mkdir()
        (bucket / "b" / "logs" / "readme.md").write_text("x")
        with pytest.raises(InputError, match="holds no run"):
            fleet("s3://b/logs", bucket / "out")
        with pytest.raises(InputError, match="s3://none/x: cannot be read") as missing:
            telemetry_dataset("s3://none/x")
        cloud._store.cache_clear()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
        with pytest.raises(InputError, match="cannot be read") as denied:
            telemetry_dataset("s3://b/deep")
    assert not any(secret in str(one.value) for one in (missing, denied) for secret in (SECRET, "another"))


@pytest.mark.parametrize(
    "url", ["s3://AKID:topsecret@bucket/x", "s3://topsecret@bucket/x", "s3://bucket/x?secret_key=topsecret", "s3://"]
)
def test_keys_in_a_url_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InputError) as refused:
        telemetry_dataset(url)
    assert "topsecret" not in str(refused.value)
