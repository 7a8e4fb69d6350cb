"""The command line as a person meets it: output, exit codes, and one sentence for every bad input."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gpudiag.cli import expand

CSV = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]
2026/03/01 10:00:00.000, 0, NVIDIA GeForce RTX 4090, 95 %, 9000 MiB, 24564 MiB
2026/03/01 10:00:05.000, 0, NVIDIA GeForce RTX 4090, 97 %, 9100 MiB, 24564 MiB
2026/03/01 10:00:10.000, 0, NVIDIA GeForce RTX 4090, 96 %, 9100 MiB, 24564 MiB
"""


SLIPS = [
    (
        ("report", "no-run"),
        "no-run: no such file or folder; expected a run folder, a run.toml, a file, a storage URL or a tracker's run "
        "such as mlflow:RUN_ID.",
    ),
    (("report", ".", "no-run"), "no-run: no such file or folder"),
    (("diagnose", "no-run"), "no-run: no such file or folder"),
    (("export", "no-run"), "no-run: no such file or folder"),
    (("whatif", "no-run"), "no-run: no such file or folder"),
    (("lab", "no-run"), "no-run: no such file or folder"),
    (("compare", ".", "no-run"), "no-run: no such file or folder"),
    (("report",), "no run given; expected a run folder"),
]


@pytest.mark.slow
def test_a_slip_of_the_hand_is_told_before_anything_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from gpudiag.cli import main\n"
        f"for command in {[list(arguments) for arguments, _ in SLIPS]!r}:\n"
        "    sys.argv[:] = ['gpudiag', *command]\n"
        "    try:\n        main()\n"
        "    except SystemExit as stop:\n"
        "        print(stop.code, sorted({'pandas', 'matplotlib', 'papermill'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["2 []"] * len(SLIPS)
    for (_, said), line in zip(SLIPS, done.stderr.splitlines(), strict=True):
        assert line.startswith(f"gpudiag: {said}")


def digest(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()
    }


def foreign_schema(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("create table alembic_version (version_num text)")
        db.execute("create table dashboards (id integer)")
    db.close()


def torn_study(path: Path, samples: Path) -> None:
    path.write_bytes((samples / "healthy" / "optuna.db").read_bytes()[:700])


BAD = {
    "missing.csv": (None, "no such file"),
    "empty.csv": (lambda p, s: p.write_bytes(b""), "is empty"),
    "binary.bin": (lambda p, s: p.write_bytes(bytes(range(256)) * 20), "binary file of no known kind"),
    "prose.txt": (lambda p, s: p.write_text("dear diary\n"), "no reader recognizes it"),
    "weather.csv": (lambda p, s: p.write_text("time,rain\n2026-01-01T00:00:00,3\n2026-01-02T00:00:00,4\n"), "expected"),
    "grafana.db": (lambda p, s: foreign_schema(p), "expected"),
    "torn.db": (torn_study, "torn.db"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), [*(("diagnose", name) for name in BAD), ("report", "torn.db")])
def test_a_bad_file_gets_one_sentence_and_exit_2(
    gpudiag, samples: Path, tmp_path: Path, name: str, command: str
) -> None:
    make, expected = BAD[name]
    path = tmp_path / name
    if make is not None:
        make(path, samples)
    before = digest(tmp_path)
    option = "--trials" if name.endswith(".db") else "--telemetry"
    code, out, err = gpudiag(command, option, path)
    assert code == 2
    assert expected in err and name in err
    assert err.startswith("gpudiag: ") and err.count("\n") == 1 and "Traceback" not in err
    assert out == ""
    assert digest(tmp_path) == before


@pytest.mark.slow
def test_a_folder_without_data(gpudiag, tmp_path: Path) -> None:
    code, _, err = gpudiag("report", tmp_path)
    assert (code, "the folder is empty" in err, len(err) < 200) == (2, True, True)
    (tmp_path / "notes.md").write_text("hello")
    code, _, err = gpudiag("diagnose", tmp_path)
    assert code == 2 and "notes.md" in err
    assert not (tmp_path / "reports").exists()


def test_a_study_that_is_not_there_lists_those_that_are(gpudiag, samples: Path) -> None:
    code, _, err = gpudiag("diagnose", samples / "healthy", "--study", "no-such-study")
    assert code == 2
    assert "no-such-study" in err
    with sqlite3.connect(f"file:{samples / 'healthy' / 'optuna.db'}?mode=ro", uri=True) as db:
        (name,) = db.execute("select study_name from studies").fetchone()
    db.close()
    assert name in err


def test_end_before_start_is_named(gpudiag, tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(
        '{"task": "a", "status": "ok", "start": "2026-03-01T10:10:00Z", "end": "2026-03-01T10:00:00Z"}\n'
        '{"task": "b", "status": "ok", "start": "2026-03-01T10:10:00Z", "end": "2026-03-01T10:20:00Z"}\n'
    )
    code, out, _ = gpudiag("inspect", tmp_path / "tasks.jsonl", "--format", "json")
    (entry,) = json.loads(out)
    assert code == 0
    assert entry["rows"] == 2
    assert any("end before" in problem["kind"] and problem["line"] == 1 for problem in entry["problems"])


def test_a_misspelt_notebook_parameter_is_refused_before_anything_is_written(
    gpudiag, samples: Path, tmp_path: Path
) -> None:
    code, _, err = gpudiag("report", samples / "healthy", "-p", "titel=x")
    assert code == 2
    assert "titel" in err and "title" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("gpu-unused.max_utl_pct=1", "did you mean 'max_util_pct'"),
        ("gpu-unsed.max_util_pct=1", "did you mean 'gpu-unused'"),
        ("gpu-unused.max_util_pct=lots", "expected rule.threshold=number"),
        ("gpu-unused.max_util_pct=200", "between 0 and 100"),
        ("gpu-unused", "expected rule.threshold=number"),
    ],
)
def test_a_wrong_threshold_is_refused(gpudiag, samples: Path, setting: str, message: str) -> None:
    code, _, err = gpudiag("diagnose", samples / "healthy", "--set", setting)
    assert code == 2 and message in err


def test_good_rows_beside_bad_ones_are_read_and_counted(gpudiag, tmp_path: Path) -> None:
    lines = CSV.splitlines(keepends=True)
    (tmp_path / "gpu.csv").write_text("".join([*lines[:3], "2026/03/01 10:00:07.000, 0, NVI\n", lines[3]]))
    code, out, _ = gpudiag("inspect", tmp_path / "gpu.csv", "--format", "json")
    (entry,) = json.loads(out)
    assert (code, entry["rows"], entry["kind"], entry["gpus"]) == (0, 3, "telemetry", ["0"])
    assert sum(problem["count"] for problem in entry["problems"] if problem["lost"]) == 1
    assert entry["problems"][0]["line"] == 4


def test_inspect_says_how_each_input_was_read(gpudiag, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(CSV)
    (tmp_path / "notes.md").write_text("hello")
    code, out, _ = gpudiag("inspect", tmp_path, "--timezone", "Asia/Taipei")
    assert code == 0
    out = " ".join(out.split())
    assert "3 rows" in out and "1 GPU" in out and "02:00:00 to 02:00:10 UTC" in out and "every 5 s" in out
    assert "notes.md: not read" in out
    code, _, _ = gpudiag("inspect", tmp_path / "notes.md")
    assert code == 2


@pytest.mark.slow
def test_diagnose_formats_and_fail_on(gpudiag, samples: Path) -> None:
    code, out, err = gpudiag("diagnose", samples / "tiny-batch-laptop", "--format", "json")
    assert code == 0 and err == ""
    assert json.loads(out)["schema"] == "gpudiag.diagnosis/4"
    code, out, _ = gpudiag("diagnose", samples / "idle-second-gpu" / "baseline", "--fail-on", "critical")
    assert code == 1 and "\x1b" not in out
    code, _, _ = gpudiag("diagnose", samples / "healthy", "--fail-on", "warning")
    assert code == 0
    code, _, err = gpudiag("diagnose", samples / "healthy", "--format", "yaml")
    assert code == 2 and "must be one of text, json, md" in err


@pytest.mark.slow
def test_rules_list_and_explain(gpudiag) -> None:
    from gpudiag.rules import RULES

    code, out, _ = gpudiag("rules", "list")
    assert code == 0 and all(rule.id in out for rule in RULES)
    code, out, _ = gpudiag("rules", "list", "--format", "json")
    assert [entry["id"] for entry in json.loads(out)] == [rule.id for rule in RULES]
    for rule in RULES:
        code, out, _ = gpudiag("rules", "explain", rule.id)
        assert code == 0 and all(name in out for name in rule.thresholds)
    code, _, err = gpudiag("rules", "explain", "gpu-unsed")
    assert code == 2 and "did you mean 'gpu-unused'?" in err


@pytest.mark.slow
def test_demo_writes_a_run_that_can_be_diagnosed(gpudiag, tmp_path: Path) -> None:
    code, out, _ = gpudiag("demo", "--list")
    assert code == 0 and out.split() == [
        "hpo-aggressive-pruning",
        "healthy",
        "second-worker",
        "slow-rank",
        "hung-collective",
    ]
    code, out, _ = gpudiag("demo", "--case", "healthy", "-o", tmp_path / "t")
    assert code == 0 and (tmp_path / "t" / "run.toml").exists()
    code, out, _ = gpudiag("diagnose", tmp_path / "t")
    assert code == 0 and "24 of 24  trials completed" in out
    code, _, err = gpudiag("demo", "--case", "helthy")
    assert code == 2 and "did you mean 'healthy'?" in err


def test_no_run_given(gpudiag) -> None:
    code, _, err = gpudiag("diagnose")
    assert code == 2 and "no run given" in err


def test_expand_repeats_options_that_take_many() -> None:
    assert expand(["report", "--telemetry", "a", "b", "--trials", "t", "x"]) == [
        "report", "--telemetry", "a", "--telemetry", "b", "--trials", "t", "x",
    ]  # fmt: skip
    assert expand(["diagnose", "run"]) == ["diagnose", "run"]


def test_a_report_that_cannot_be_written_is_refused_before_any_work(gpudiag, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    code, out, err = gpudiag("report", samples / "tiny-batch-laptop", "-o", tmp_path / "taken" / "deep")
    assert (code, out) == (2, "")
    assert "is not a folder; choose another -o" in err and err.count("\n") == 1


def test_a_suppression_file_that_lies_about_is_for_notebooks_that_know_of_it(
    gpudiag, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by what papermill would be given; nothing is executed."""
    asked: list[dict[str, object]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "gpudiag.report._notebook.runner._execute", lambda notebook, parameters, *_: asked.append(parameters)
    )
    (tmp_path / "gpudiag.toml").touch()
    (tmp_path / "mine.toml").touch()
    run = samples / "tiny-batch-laptop"
    for chosen in (["--notebook", "capacity_report"], [], ["--suppress", "mine.toml"], ["-p", "suppress=mine.toml"]):
        with suppress(AttributeError):  # there is no executed notebook to write
            gpudiag("report", run, "-o", tmp_path / "out", *chosen)
    assert [Path(str(given.get("suppress", "none"))).name for given in asked] == [
        "none", "gpudiag.toml", "mine.toml", "mine.toml",
    ]  # fmt: skip


def test_a_report_stays_in_its_folder_whatever_the_run_is_called() -> None:
    from gpudiag.cli._arguments import folder_name

    assert folder_name("../../etc/x") == "etc-x"
    assert folder_name("lr search 3") == "lr-search-3"
    assert folder_name("//") == "run"


def test_inspect_reads_a_folder_as_its_run_toml_says(gpudiag, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "gpu.csv").write_text(CSV)
    (tmp_path / "run" / "run.toml").write_text('timezone = "Asia/Taipei"\n')
    code, out, _ = gpudiag("inspect", tmp_path / "run")
    assert code == 0 and "02:00:00 to 02:00:10 UTC" in out and "run.toml" not in out
