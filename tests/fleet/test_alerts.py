"""Alerts as others read them: JSON, a mail, OpenMetrics; and names that try to be more than names."""

from __future__ import annotations

import json
import re
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from gpudiag.errors import ConfigError
from gpudiag.fleets.alerts import write_alert
from gpudiag.fleets.table import FleetTable
from gpudiag.report.fleet.document import CELLS, Cause, RunRow

EVIL = "<!channel> & <https://evil|x>\r\nBcc: all@example.com"


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Samples by family, then by labels."""
    out: dict[str, dict[str, float]] = {}
    assert text.endswith("# EOF\n")
    for line in text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r"(\w+)(\{(?:\w+=\"(?:[^\"\\]|\\.)*\",?)*\}) (\S+)", line)
            assert match, line
            out.setdefault(match[1], {})[match[2]] = float(match[3])
    return out


@pytest.fixture
def table() -> FleetTable:
    cells = {f"{cell}_gpu_s": 0.0 for cell in CELLS} | {"busy_gpu_s": 7200.0, "stalled_gpu_s": 3600.0}
    causes = (Cause("loader-slow", "Training waits for the data loader", "critical", 1.5, None),)
    more: dict[str, object] = {"causes": causes, "top_cause": "loader-slow", "recoverable_gpu_h": 1.5, "util_pct": 60.0}
    row = RunRow(EVIL, "/x", "diagnosed", gpu_s=10800.0, inputs="1", **cells, **more)  # type: ignore[arg-type]
    return FleetTable.of([row, RunRow("b", "/b", "not diagnosed", "broken")], f"fleet {EVIL}")


def test_a_webhook_gets_text_in_which_no_name_calls_anybody(table: FleetTable, tmp_path: Path) -> None:
    text = json.loads(write_alert(table, tmp_path / "a.json").read_text(encoding="utf-8"))["text"]
    assert "1 run held GPUs for 3 GPU-h, at 60 % mean utilization" in text
    assert "- Training waits for the data loader: at least 1.5 GPU-h, 1 run" in text
    assert "<" not in text and ">" not in text and "&lt;!channel&gt; &amp;" in text


def test_runs_with_a_cause_and_runs_of_known_cost_are_told_apart(tmp_path: Path) -> None:
    """Of four runs with the cause two state its cost, and in one of these another cause cost more."""
    slow, unknown = Cause("slow", "Slow", "critical", 1.5, None), Cause("slow", "Slow", "critical", None, None)
    more = Cause("idle", "Idle", "critical", 2.0, None)
    table = FleetTable.of(
        [
            RunRow("a", "/a", "diagnosed", inputs="1", causes=(slow,), top_cause="slow", recoverable_gpu_h=1.5),
            RunRow("b", "/b", "diagnosed", inputs="2", causes=(unknown,), top_cause="slow"),
            RunRow("c", "/c", "diagnosed", inputs="3", causes=(unknown,), top_cause="slow"),
            RunRow("d", "/d", "diagnosed", inputs="4", causes=(more, slow), top_cause="idle", recoverable_gpu_h=2.0),
        ]
    )
    lines = json.loads(write_alert(table, tmp_path / "a.json").read_text(encoding="utf-8"))["text"].splitlines()
    assert "- Slow: at least 1.5 GPU-h, 4 runs, cost known in 2, counted in 1" in lines
    assert "- Idle: at least 2 GPU-h, 1 run" in lines


def test_a_mail_has_a_subject_and_no_header_of_a_name(table: FleetTable, tmp_path: Path) -> None:
    message = message_from_bytes(write_alert(table, tmp_path / "a.eml").read_bytes(), policy=policy.default)
    assert message["Bcc"] is None and message["To"] is None and "The GPUs were partly used" in message["Subject"]
    assert "Training waits for the data loader" in message.get_content()


def test_metrics_add_up(table: FleetTable, tmp_path: Path) -> None:
    held = parsed(write_alert(table, tmp_path / "a.prom").read_text(encoding="utf-8"))
    assert sum(held["gpudiag_fleet_gpu_seconds"].values()) == 10800.0
    assert sorted(held["gpudiag_fleet_runs"].values()) == [1.0, 1.0]
    assert list(held["gpudiag_fleet_cause_lost_gpu_hours"].values()) == [1.5]


def test_another_suffix_is_said(table: FleetTable, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.eml or \.prom"):
        write_alert(table, tmp_path / "a.txt")
