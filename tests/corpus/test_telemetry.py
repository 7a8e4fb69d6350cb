"""Real CSV, home-made tables and prose: numbers taken from the files with awk, date and the eye, not with readers."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.telemetry import read_telemetry

pytestmark = pytest.mark.corpus

TABLE = Path(__file__).with_name("telemetry_expected.csv")
EXPECTED = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
READ = [wanted for wanted in EXPECTED if not wanted["refused"]]
REFUSED = [wanted for wanted in EXPECTED if wanted["refused"]]


@pytest.mark.parametrize("folder", ["nvidia-smi-query-csv", "homemade-csv"])
def test_no_file_is_left_out(folder: str, corpus: Path) -> None:
    files = {f"{folder}/{path.name}" for path in (corpus / "telemetry" / folder).iterdir()}
    assert files == {wanted["file"] for wanted in EXPECTED if wanted["file"].startswith(folder)}


@pytest.mark.parametrize("wanted", READ, ids=lambda wanted: wanted["file"])
def test_rows_gpus_span_and_sums(wanted: dict[str, str], corpus: Path) -> None:
    telemetry = read_telemetry(corpus / "telemetry" / wanted["file"], timezone="UTC")
    gpu = telemetry.gpu
    assert telemetry.reader == wanted["reader"]
    assert (len(gpu), " ".join(telemetry.gpus["gpu"])) == (int(wanted["rows"]), wanted["gpus"])
    for name, at in (("first", gpu["time"].min()), ("last", gpu["time"].max())):
        assert abs(at - pd.Timestamp(wanted[name], tz="UTC")) <= pd.Timedelta(microseconds=1), name
    for name, column, value in (("mean_util_pct", "util_pct", "mean"), ("peak_mem_used_mib", "mem_used_mib", "max")):
        assert (column in gpu) == bool(wanted[name]), column
        if wanted[name]:
            assert gpu[column].agg(value) == pytest.approx(float(wanted[name]), rel=1e-5), column
    assert not any(problem.lost for problem in telemetry.problems), telemetry.problems


@pytest.mark.parametrize("wanted", REFUSED, ids=lambda wanted: wanted["file"])
def test_what_cannot_be_read_is_refused_with_the_reason(wanted: dict[str, str], corpus: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_telemetry(corpus / "telemetry" / wanted["file"], timezone="UTC")
    assert wanted["refused"] in str(caught.value)


def test_names_given_by_the_user_open_what_has_no_header(corpus: Path) -> None:
    folder = corpus / "telemetry"
    names = ("timestamp", "name", "utilization.gpu", "utilization.memory", "memory.total", "memory.free", "memory.used")
    one = read_telemetry(
        folder / "nvidia-smi-query-csv" / "Divpeter__EPO__gpu_usage.one-row-noheader.log", columns=names, timezone="UTC"
    )
    assert one.gpu.loc[0, ["util_pct", "mem_total_mib", "mem_used_mib"]].tolist() == [0, 12288, 2]
    file = next((folder / "homemade-csv").glob("carsonsidhu*"))
    many = read_telemetry(file, columns=("power_w", "temp_c"), period_s=0.5, timezone="UTC")
    assert len(many.gpu) == 2087 and many.gpu["time"].iloc[-1] == pd.Timestamp(1043.0, unit="s", tz="UTC")


def test_one_gpu_in_milliwatts_labelled_watts(corpus: Path) -> None:
    telemetry = read_telemetry(next((corpus / "telemetry" / "homemade-csv").glob("KooSuYeon*")), timezone="UTC")
    assert telemetry.gpu["power_w"].iloc[0] == 4.939
    assert any("milliwatts" in note for note in telemetry.notes)


def query_sections(text: str) -> list[str]:
    """The output of --query-gpu in a transcript: its header and the rows below it."""
    lines = text.split("\n")
    found = []
    for at, line in enumerate(lines):
        if line.startswith("timestamp, driver_version, "):
            rows = [row for row in lines[at + 1 : at + 8] if row[:2] == "20"]
            found.append("\n".join([line, *rows]) + "\n")
    return found


@pytest.mark.slow
def test_every_field_of_new_drivers(corpus: Path, tmp_path: Path) -> None:
    """The full field list of drivers 590 to 610: 200 and more columns, most of which are not ours."""
    files = sorted((corpus / "telemetry" / "nvidia-smi-captures").iterdir())
    assert len(files) == 7
    for file in files:
        sections = query_sections(file.read_text(encoding="utf-8"))
        assert len(sections) == 2, "idle and under load"
        for text in sections:
            (tmp_path / "gpu.csv").write_text(text, encoding="utf-8")
            telemetry = read_telemetry(tmp_path / "gpu.csv", timezone="UTC")
            header, first = (line.split(", ") for line in text.split("\n")[:2])
            cells = dict(zip(header, first, strict=True))
            row = telemetry.gpu.iloc[0]
            assert not telemetry.problems and len(telemetry.gpu) == text.count("\n") - 1
            assert row["mem_total_mib"] == float(cells["memory.total [MiB]"].removesuffix(" MiB"))
            assert row["power_w"] == float(cells["power.draw [W]"].removesuffix(" W"))
            assert row["throttle_reasons"] == int(cells["clocks_event_reasons.active"], 16)
            util = cells["utilization.gpu [%]"]
            assert ("util_pct" in row) == (util != "[N/A]"), "MIG boards have none: unknown, never 0"
            assert telemetry.gpus["name"].tolist() == [cells["name"]]
