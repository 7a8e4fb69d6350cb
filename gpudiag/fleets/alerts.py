"""A fleet in a few lines for other tools to send: files, never a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

from gpudiag.errors import ConfigError
from gpudiag.export.openmetrics import Family, MetricSample, document_of
from gpudiag.files import write
from gpudiag.fleets.table import FleetTable
from gpudiag.report.fleet.document import CELLS, CauseTotal
from gpudiag.report.format import plural, quantity, safe

MOST_CAUSES = 3
SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""The three characters that Slack's text gives a meaning: without them no name can mention or link."""


def check_alert(path: Path) -> None:
    """Raise ConfigError unless the suffix is that of an alert."""
    if path.suffix not in FORMS:
        raise ConfigError(f"{path}: an alert is .json (for a webhook), .eml or .prom, by the name of its file.")


def write_alert(table: FleetTable, path: Path) -> Path:
    """Write what its suffix says: .json for a webhook (Slack's ``text``), .eml a mail to be sent, .prom OpenMetrics.

    Raises ConfigError for any other suffix.
    """
    check_alert(path)
    write(path, FORMS[path.suffix](table))
    return path


def webhook(table: FleetTable) -> str:
    """JSON that Slack, Mattermost and others take as a message: ``curl -d @alert.json URL``."""
    text = "\n".join(_lines(table))
    return json.dumps({"text": text.translate(SLACK)}, ensure_ascii=False, indent=1) + "\n"


def mail(table: FleetTable) -> bytes:
    """A mail without sender and recipient: who sends it knows them (``sendmail -t`` wants a To line added)."""
    message = EmailMessage()
    message["Subject"] = safe(f"{table.name}: {table.document.headline.verdict}")[:200]
    message["X-Unsent"] = "1"  # mail programs open it as a draft
    message.set_content("\n".join(_lines(table)) + "\n")
    return message.as_bytes()


def metrics(table: FleetTable) -> str:
    """OpenMetrics for node_exporter's textfile collector."""
    total = table.total
    runs = {state: sum(row.status == state for row in table.rows) for state in sorted({r.status for r in table.rows})}
    return document_of(
        table.name,
        [
            Family("gpudiag_fleet_gpu_seconds", "seconds", "GPU time by category; the categories add up.",
                   [MetricSample({"category": cell}, total.cells[cell]) for cell in CELLS]),
            Family("gpudiag_fleet_runs", "", "Runs by what became of them.",
                   [MetricSample({"status": state}, n) for state, n in runs.items()]),
            Family("gpudiag_fleet_cause_lost_gpu_hours", "hours", "What causes cost at least; they add up.",
                   [MetricSample({"rule": one.rule}, one.lost_gpu_h) for one in table.causes if one.lost_gpu_h]),
            Family("gpudiag_fleet_cause_runs", "", "Runs with a cause.",
                   [MetricSample({"rule": one.rule}, one.n_runs) for one in table.causes]),
        ],
    )  # fmt: skip


def _lines(table: FleetTable) -> list[str]:
    head = table.document.headline
    said = [one for one in dict.fromkeys((head.verdict, *head.sentences)) if one]
    return [safe(line) for line in (*said, *map(_cause, table.causes[:MOST_CAUSES]))]


def _cause(one: CauseTotal) -> str:
    cost = f"at least {quantity(one.lost_gpu_h, 'GPU-h')}, " if one.lost_gpu_h else ""
    known = f", cost known in {one.n_runs - one.n_unpriced:,}" if 0 < one.n_unpriced < one.n_runs else ""
    counted = f", counted in {one.n_top:,}" if one.lost_gpu_h and one.n_top < one.n_runs - one.n_unpriced else ""
    return f"- {one.title}: {cost}{plural(one.n_runs, 'run')}{known}{counted}"


FORMS: dict[str, Callable[[FleetTable], str | bytes]] = {".json": webhook, ".eml": mail, ".prom": metrics}
