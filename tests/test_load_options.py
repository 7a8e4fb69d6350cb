"""What a log does not say can be given to load_run and on the command line, as in run.toml."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.cli import main
from gpudiag.errors import InputError

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
