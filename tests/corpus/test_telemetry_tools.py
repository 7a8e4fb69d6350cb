"""Real logs of monitoring tools: counts and sums that were taken from the files with grep and awk, not with readers."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.identify import identify
from gpudiag.readers.telemetry import read_telemetry

pytestmark = pytest.mark.corpus

EXPECTED = [
    row
    for table in sorted(Path(__file__).parent.glob("telemetry_expected_*.csv"))
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())
]
SUMS = {"util_sum": "util_pct", "mem_used_sum": "mem_used_mib", "power_sum": "power_w"}

REFUSED = {
    "nvidia-smi-table/yukiobata1__hirataken20251122-2__gpu_monitor.watch-ansi-short.log": "nvidia-smi -l 1",
    "nvidia-smi-query-csv/justaVinz__trojan-input__gpu_monitor.smi-has-failed.log": "could not communicate",
    "nvidia-smi-query-csv/LeZuy__P2PFDL__nvidia-smi.date-only.log": "only date lines",
    "npu-smi/So-cean__PTNet3D__gpu.log": "Ascend",
    "nvidia-smi-query-csv/fridanl__thesis-mas__nvidia-smi.empty.log": "is empty",
}


def the_file(corpus: Path, pattern: str) -> Path:
    found = sorted((corpus / "telemetry").glob(pattern))
    assert len(found) == 1, f"{pattern}: {len(found)} files"
    return found[0]


@pytest.mark.parametrize("wanted", EXPECTED, ids=lambda wanted: wanted["file"])
def test_counts_and_sums(wanted: dict[str, str], corpus: Path) -> None:
    path = the_file(corpus, wanted["file"])
    found = identify(Source.open(path))
    assert found is not None and (found[0], found[1].name) == ("telemetry", wanted["reader"])
    telemetry = read_telemetry(path, timezone="UTC")
    gpu = telemetry.gpu
    assert len(gpu) == int(wanted["rows"] or len(gpu)) and len(telemetry.processes) == int(wanted["processes"])
    assert " ".join(telemetry.gpus["gpu"]) == wanted["gpus"]
    assert not any(problem.lost for problem in telemetry.problems), telemetry.problems
    for name, at in (("first", gpu["time"].min()), ("last", gpu["time"].max())):
        if wanted[name]:
            assert at == pd.Timestamp(wanted[name], tz="UTC"), name
    if wanted["util_n"]:
        assert (gpu["util_pct"].notna().sum() if "util_pct" in gpu else 0) == int(wanted["util_n"])
    for name, column in SUMS.items():
        if wanted[name]:
            assert gpu[column].sum() == pytest.approx(float(wanted[name])), column


@pytest.mark.parametrize("file", REFUSED)
def test_files_without_a_sample_are_refused_with_what_they_hold(file: str, corpus: Path) -> None:
    path = the_file(corpus, file)
    with pytest.raises(InputError, match=REFUSED[file]) as caught:
        read_telemetry(path, timezone="UTC")
    assert str(path) in str(caught.value)
