"""What a log does not say can be given to load_run and on the command line, as in run.toml."""

from __future__ import annotations

import gzip
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd
from gpudiag.cli import main
from gpudiag.errors import ConfigError, InputError, NotMeasurable

BARE = "".join(f"{util} %, {4000 + util} MiB\n" for util in range(0, 100, 2))
NAKED = "".join(f"{100 + n / 10:.1f}, {util}, {util / 3:.2f}\n" for n, util in enumerate(range(0, 100, 2)))


def test_the_period_of_a_log_without_timestamps(tmp_path: Path) -> None:
    log = tmp_path / "gpu.log"
    log.write_text(BARE, encoding="utf-8")
    run = gd.load_run(telemetry=log, period_s=5)
    assert (run.gpu["time"].max() - run.gpu["time"].min()).total_seconds() == 5 * 49
    (tmp_path / "run.toml").write_text('telemetry = "gpu.log"\nperiod_s = 2\n', encoding="utf-8")
    for given, period_s in ((None, 2), (5, 5)):
        run = gd.load_run(tmp_path, period_s=given)
        assert (run.gpu["time"].max() - run.gpu["time"].min()).total_seconds() == period_s * 49


def test_the_columns_of_a_log_without_names(tmp_path: Path) -> None:
    log = tmp_path / "gpu.csv"
    log.write_text(NAKED, encoding="utf-8")
    with pytest.raises(InputError, match="--columns"):
        gd.load_run(telemetry=log)
    run = gd.load_run(telemetry=log, columns=("-", "util_pct", "-"))
    assert run.gpu["util_pct"].tolist() == list(range(0, 100, 2))


@pytest.mark.slow
def test_an_assumed_period_is_said_before_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "gpu.log"
    log.write_text(BARE, encoding="utf-8")
    for options, said in (((), True), (("--period", "5"), False)):
        monkeypatch.setattr(sys, "argv", ["gpudiag", "diagnose", "--telemetry", str(log), *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        out = capsys.readouterr().out
        assert ("Assumed: Its samples carry no time" in out) is said
        assert not said or out.index("Assumed:") < out.index("add --all")


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [
        ("1970-01-01 00:00:10,1970-01-01 00:00:20", 10, 19),
        (" 1970-01-01 00:00:10 , ", 10, 49),
        (",1970-01-01 00:00:20", 0, 19),
        ((datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC), None), 10, 49),
        (["1970-01-01T01:00:10+01:00", "1970-01-01 00:00:12"], 10, 11),
        ("", 0, 49),
        (None, 0, 49),
        (",", 0, 49),
        ((None, None), 0, 49),
    ],
)
def test_a_span_of_a_run(tmp_path: Path, given: Any, first: int, last: int) -> None:
    (tmp_path / "gpu.log").write_text(BARE, encoding="utf-8")
    for source in (tmp_path, tmp_path / "gpu.log"):
        run = gd.load_run(source, between=given, timezone="UTC")
        assert run.gpu["util_pct"].tolist() == list(range(2 * first, 2 * last + 2, 2))
    assert gd.Run.from_files(telemetry=[tmp_path / "gpu.log"], between=given, timezone="UTC").gpu.equals(run.gpu)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("1970-01-01", ConfigError, "two times with a comma"),
        ("1970-01-01,1970-01-02,1970-01-03", ConfigError, "two times with a comma"),
        ("noon,", ConfigError, "'noon' is not a time"),
        (7, ConfigError, "two times with a comma"),
        (",9999-12-31 23:59:59", ConfigError, "years 1970 to 2200"),
        ("0001-01-01,", ConfigError, "years 1970 to 2200"),
        ("1970-01-02,1970-01-01", ConfigError, "must lie before"),
        ("1970-01-02,", NotMeasurable, "Nothing of the run lies between"),
    ],
)
def test_a_span_that_is_none_is_refused(tmp_path: Path, given: Any, error: type[Exception], said: str) -> None:
    (tmp_path / "gpu.log").write_text(BARE, encoding="utf-8")
    with pytest.raises(error, match=said):
        gd.load_run(tmp_path, between=given, timezone="UTC")


@pytest.mark.slow
def test_what_is_stated_of_all_of_a_run_is_not_of_a_span(samples: Path) -> None:
    run = gd.load_run(samples / "hpo-aggressive-pruning")
    part = run.between("2025-10-24 18:30", "2025-10-24 19:00")
    assert run.info.settings.n_trials and run.info.stated and len(part.trials) < len(run.trials)
    assert part.info.settings.n_trials is None and not part.info.stated


@pytest.mark.slow
def test_a_report_of_a_span_is_the_same_with_and_without_a_kernel(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_kernel: None
) -> None:
    run = gd.load_run(samples / "tiny-batch-laptop")
    first, middle = run.gpu["time"].iloc[[0, len(run.gpu) // 2]]
    span = f"{first},{middle}"
    for folder, options in (("kernel", ()), ("direct", ("--no-notebook",))):
        typed = [
            "gpudiag",
            "report",
            str(samples / "tiny-batch-laptop"),
            "--between",
            span,
            "-o",
            str(tmp_path / folder),
        ]
        monkeypatch.setattr(sys, "argv", [*typed, "-p", "minimal=true", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    made = [json.loads((tmp_path / folder / "diagnosis.json").read_text()) for folder in ("kernel", "direct")]
    assert made[0]["measures"] == made[1]["measures"]
    assert made[0]["measures"] == gd.diagnose(run.between(first, middle)).to_dict()["measures"]


@pytest.mark.parametrize(("file", "name"), [("gpu.csv", "gpu"), ("gpu.csv.gz", "gpu"), ("v1.2.csv", "v1.2")])
def test_a_packed_file_gives_its_run_the_name_of_the_file_in_it(tmp_path: Path, file: str, name: str) -> None:
    rows = "time,gpu,util_pct\n" + "".join(f"2026-03-01 10:00:0{second},0,50\n" for second in range(5))
    packed = gzip.compress(rows.encode()) if file.endswith(".gz") else rows.encode()
    (tmp_path / file).write_bytes(packed)
    assert gd.load_run(tmp_path / file).info.name == name
