"""The index over many reports: the worst first, nothing unescaped, links that lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from toyrun import typed

from gpudiag.errors import InputError
from gpudiag.plots._draw.palette import CELL_COLORS
from gpudiag.report._render.blocks import NAMES
from gpudiag.report.index import ORDER, ORDERED, Index, IndexEntry, failed, row_of

EVIL = "<script>alert(1)</script>|x"


def rows() -> list[IndexEntry]:
    return [
        IndexEntry("fine", "fine", "ok", "GPU well used: nothing found.", 95.0, 2.0, 0.0),
        IndexEntry("costly", "a b/costly", "warning", "GPU partly used: 1 warning.", 55.0, 9.0, 4.0, "GPU idle"),
        IndexEntry("cheap", "cheap", "warning", "GPU well used: 1 warning.", 89.0, 9.0, 1.0, EVIL),
        failed(EVIL, "bad", f"{EVIL}: no such file."),
        IndexEntry("no telemetry", "none", "unknown", "GPU use unknown: 3 checks."),
    ]


def test_the_worst_comes_first_and_of_equals_the_costlier() -> None:
    index = Index.of(rows())
    assert [row.name for row in index.rows] == [EVIL, "costly", "cheap", "no telemetry", "fine"]
    assert index.level == "failed"


def test_of_one_level_a_run_of_unknown_idle_time_comes_last_and_pages_say_the_order() -> None:
    lost = {"a unknown": None, "b none": 0.0, "c most": 4.0, "d less": 3.9}
    index = Index.of(IndexEntry(name, name, "warning", lost_gpu_h=hours) for name, hours in lost.items())
    assert [row.name for row in index.rows] == ["c most", "d less", "b none", "a unknown"]
    for page in (index.markdown(), index.html()):
        assert page.index("Worst first: without a report, critical, warning, not assessed, note, ok") < page.index(
            "c most"
        )


def test_the_order_that_is_said_is_that_of_the_levels() -> None:
    said = ORDERED.partition(": ")[2].partition(";")[0].split(", ")
    assert said == ["without a report" if level == "failed" else NAMES[level] for level in ORDER]


def test_pages_escape_what_came_from_inputs() -> None:
    index = Index.of(rows())
    html = index.html()
    assert EVIL not in html and "&lt;script&gt;alert(1)" in html
    assert html.count("<script>") == 1  # our own, which the policy names by its hash
    assert "script-src &#39;sha256-" not in html and "script-src 'sha256-" in html
    assert not re.search(r"<script|(?<!\\)\|x", index.markdown().replace(r"\<script", ""))


def test_links_lead_to_the_reports_and_a_failed_run_has_none() -> None:
    html, text = Index.of(rows()).html(), Index.of(rows()).markdown()
    assert 'href="a%20b/costly/report.html"' in html and "(a%20b/costly/report.md)" in text
    assert "bad/report" not in html and "bad/report" not in text


def test_unknown_numbers_are_dashes_and_sort_before_all_others() -> None:
    html = Index.of(rows()).html()
    row = next(part for part in html.split("<tr>") if "no telemetry" in part)
    assert row.count('data-sort="-1"') == 3 and row.count("–") >= 3
    assert html.count('<th scope="col" class="gd-number">') == 3, "headings stand over their numbers"


def test_a_row_is_read_off_the_document(document: dict[str, Any], tmp_path: Path) -> None:
    row = row_of(typed(document), "here")
    cells = {}
    for cell in document["ledger"]["cells"]:
        cells[cell["cell"]] = cells.get(cell["cell"], 0.0) + cell["gpu_s"]
    assert row.gpu_h == pytest.approx(sum(cells.values()) / 3600)
    lost = sum(cells[name] for name in ("idle_no_trial", "startup_only", "tail_only", "stalled"))
    assert row.lost_gpu_h == pytest.approx(lost / 3600)
    assert row.util_pct == document["measures"]["ledger"]["mean_util_pct"]["value"]
    assert row.cells == pytest.approx({name: 100 * s / sum(cells.values()) for name, s in cells.items() if s})
    assert row.went.startswith(f"busy {cells['busy'] / sum(cells.values()):.0%}".replace("%", " %"))
    (tmp_path / "x" / "here").mkdir(parents=True)
    (tmp_path / "x" / "here" / "diagnosis.json").write_text(json.dumps(document), encoding="utf-8")
    (found,) = Index.read(tmp_path).rows
    assert found == row_of(typed(document), "x/here")
    written = Index.read(tmp_path).write(tmp_path)
    assert [path.name for path in written] == ["index.html", "index.md"]


@pytest.mark.slow
def test_a_bar_shows_where_the_gpu_time_went(document: dict[str, Any]) -> None:
    """As wide as the shares are, in the colours of the figures, in words for who cannot see it."""
    document["ledger"] = {"total_gpu_s": 8.0, "cells": [
        {"gpu": "0", "cell": "idle_no_trial", "gpu_s": 2.0}, {"gpu": "0", "cell": "busy", "gpu_s": 6.0},
    ]}  # fmt: skip
    said = {}
    for has_trials in (True, False):
        document["measures"]["ledger"]["has_trials"]["value"] = has_trials
        row = row_of(typed(document), "x")
        said[has_trials] = row.went
        html = Index.of([row, IndexEntry("bare", "y", "ok")]).html()
        assert html.count('class="went"') == 1 and f'aria-label="{row.went}"' in html
        spans = re.findall(r'<span style="width: ([\d.]+)%; background: (#\w+)"></span>', html)
        assert spans == [("75.00", CELL_COLORS["busy"]), ("25.00", CELL_COLORS["idle_no_trial"])]
    assert said == {True: "busy 75 % and idle, no trial 25 %", False: "busy 75 % and idle 25 %"}
    assert "Where it went" not in Index.of([IndexEntry("bare", "y", "ok")]).html()


def test_the_words_of_older_documents_are_read(document: dict[str, Any], tmp_path: Path) -> None:
    document["schema"], document["headline"]["level"] = "gpudiag.diagnosis/3", "clear"
    for verdict in document["verdicts"]:
        verdict["status"] = {"ok": "CLEAR"}.get(verdict["status"], verdict["status"].upper())
        del verdict["checks"]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "diagnosis.json").write_text(json.dumps(document), encoding="utf-8")
    (found,) = Index.read(tmp_path).rows
    assert (found.level, found.finding) == ("ok", "The toy is broken")


def test_a_folder_without_reports_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no diagnosis.json; make the reports with: gpudiag report"):
        Index.read(tmp_path)


def test_an_index_shows_itself() -> None:
    shown = repr(Index.of(rows()))
    assert "costly" in shown and "5 runs. Worst first: without a report" in shown


def test_comparisons_in_the_batch_are_linked(tmp_path: Path) -> None:
    sides = {"baseline": {"name": "before"}, "experiment": {"name": EVIL}}
    for name, schema in (("b a/compared", "gpudiag.comparison/1"), ("other", "another.tool/1")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "comparison.json").write_text(json.dumps({"schema": schema, **sides}), encoding="utf-8")
        (tmp_path / name / "report.html").touch()
    (tmp_path / "comparison.json").write_text("[1]", encoding="utf-8")
    Index.of(rows()).write(tmp_path)
    html, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "index.md"))
    assert html.count("<li>") == 1 and 'href="b%20a/compared/report.html"' in html and EVIL not in html
    assert "(b%20a/compared/report.md)" in text and "before" in text
    (tmp_path / "b a/compared/report.html").unlink()
    Index.of(rows()).write(tmp_path)
    assert "Comparisons" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_gpu_time_of_all_runs_is_in_one_unit() -> None:
    short = IndexEntry("short", "short", "ok", "", 95.0, 0.02, 0.005)
    assert "| 72 GPU-s | 18 GPU-s |" in Index.of([short]).markdown()
    both = Index.of([short, *rows()])
    assert "| 0.02 GPU-h | < 0.01 GPU-h |" in both.markdown().replace("\\", "") and "18 GPU-s" not in both.html()
